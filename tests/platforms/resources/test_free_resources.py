"""What is free on shared nodes: taken, given back, kept and restored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.platforms.resources.shared_nodes import SharedNodes


def two_nodes() -> SharedNodes:
    """Return a node with two GPUs and one without."""
    return SharedNodes(
        ("cores", "memory"),
        np.array([[8000, 100], [4000, 200]]),
        gpu_counts=np.array([2, 0]),
        models=("T4",),
        model_of=np.array([0, -1]),
        names=("a", "b"),
    )


requests = st.builds(
    OneNodeRequest,
    st.tuples(st.integers(0, 5000), st.integers(0, 120)),
    st.integers(0, 2),
    st.sampled_from([300, 600, 1000]),
    st.sampled_from([None, (0,)]),
)


@given(st.lists(st.tuples(st.integers(0, 1), requests, st.booleans()), max_size=12))
def test_take_and_give_back_keep_the_sums(steps):
    """A request is taken if and only if it fits; nothing free is ever negative, and all comes back at the end."""
    free = FreeResources(two_nodes())
    held = []
    for node, request, give in steps:
        enough = np.flatnonzero(free.gpus[node] >= request.share)[: request.gpus].tolist()
        if free.fits(request)[node]:
            free.take(node, request, enough)
            held.append((node, request, enough))
        else:
            fits_gpus = len(enough) == request.gpus
            if fits_gpus and (free.amounts[node] < request.amounts).any():
                with pytest.raises(PlatformError, match="too little free"):
                    free.take(node, request, enough)
        if give and held:
            free.give_back(*held.pop(0))
        free.check()
    for one in held:
        free.give_back(*one)

    assert FreeResources(two_nodes()).state() == free.state()


def test_restore_gives_the_kept_state_and_marks_all_nodes_as_changed():
    """Placements then compute all scores again."""
    free = FreeResources(two_nodes())
    free.take(0, OneNodeRequest((1000, 10), 1, 300), (1,))
    kept = free.state()
    free.take(0, OneNodeRequest((1000, 10)), ())
    free.restore(kept)

    assert free.state() == kept
    assert (free.changed == free.changes).all()


@pytest.mark.parametrize(
    ("request_", "gpus", "message"),
    [
        (OneNodeRequest((0, 0), 1), (), "other GPUs than it asks for"),
        (OneNodeRequest((0, 0), 2, 500), (0, 0), "other GPUs than it asks for"),
        (OneNodeRequest((0, 0), 1), (2,), "does not have these GPUs"),
        (OneNodeRequest((9000, 0)), (), "too little free of cores: expected at least 9, found 8"),
    ],
)
def test_an_impossible_take_changes_nothing(request_, gpus, message):
    """The error says what is wrong."""
    free = FreeResources(two_nodes())

    with pytest.raises(PlatformError, match=message):
        free.take(0, request_, gpus)
    assert free.state() == FreeResources(two_nodes()).state()


def test_more_than_was_taken_is_not_given_back():
    """A node never has more free than it has."""
    with pytest.raises(PlatformError, match="more than was taken"):
        FreeResources(two_nodes()).give_back(0, OneNodeRequest((1, 0)))


def test_a_negative_amount_of_a_node_is_refused():
    """The error names the resource."""
    with pytest.raises(PlatformError, match="impossible number of cores"):
        SharedNodes(("cores",), np.array([[1], [-1]]))
