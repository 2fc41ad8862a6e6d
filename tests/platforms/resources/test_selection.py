"""The choice of nodes for a request: found whenever some nodes suffice, and within what is free."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipistrelle.platforms.resources.selection import places_for
from pipistrelle.platforms.resources.shape import Shape
from pipistrelle.platforms.resources.shared_nodes import SharedNodes
from pipistrelle.protocol.resources.request import Request

_NODES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=5)


@given(_NODES, st.integers(1, 3), st.integers(0, 2), st.integers(0, 9), st.integers(0, 9))
def test_nodes_are_found_if_and_only_if_some_suffice(
    nodes: list[tuple[int, int]], low: int, more: int, tasks: int, gpus: int
) -> None:
    """The chosen nodes suffice for tasks and GPUs; if none are chosen, no set of nodes suffices."""
    asked = max(tasks, low) if tasks else None
    high = low + more if asked is None else min(low + more, asked)
    tasks_on, gpus_on = (np.array(column, dtype=np.int64) for column in zip(*nodes, strict=True))

    def suffices(some: tuple[int, ...] | list[int]) -> bool:
        held = list(some)
        return int(tasks_on[held].sum()) >= (asked or 0) and int(gpus_on[held].sum()) >= gpus

    found = places_for(tasks_on, low, high, asked, gpus_on, gpus)
    if found is None:
        sets = (some for count in range(low, high + 1) for some in combinations(range(len(nodes)), count))
        assert not any(suffices(some) for some in sets)
    else:
        assert low <= len(set(found.tolist())) == len(found) <= high
        assert suffices(found.tolist())


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=4),
    st.integers(1, 2),
    st.integers(0, 2),
    st.integers(1, 8),
    st.integers(0, 6),
    st.sampled_from(["memory_per_gpu", "memory_per_node", "memory_per_core"]),
    st.booleans(),
)
@example([(6, 4, 4)], 1, 2, 2, 3, "memory_per_gpu", False)
@example([(6, 4, 4), (6, 9, 4)], 1, 2, 2, 4, "memory_per_gpu", False)
def test_takes_are_within_what_is_free(
    free: list[tuple[int, int, int]], low: int, more: int, tasks: int, gpus: int, memory: str, exclusive: bool
) -> None:
    """Whatever is free, the chosen takes satisfy the request and no node gives more than it has free."""
    if memory == "memory_per_gpu" and not gpus:
        return
    nodes = SharedNodes(
        ("cores", "memory"), np.full((len(free), 2), (6000, 12)), gpu_counts=np.full(len(free), 4, dtype=np.int64)
    )
    amounts = np.array([[1000 * cores, mib] for cores, mib, _ in free], dtype=np.int64)
    gpus_free = np.array([[1000] * count + [300] * (4 - count) for *_, count in free], dtype=np.int64)
    if exclusive:
        amounts, gpus_free = nodes.amounts, nodes.gpus
    request = Request(
        nodes=low, most_nodes=low + more, tasks=max(tasks, low), gpus=gpus, exclusive=exclusive, **{memory: 3}
    )
    shape = Shape(request, nodes)
    takes = shape.choose(np.arange(len(free)), shape.most_tasks(amounts, gpus_free), amounts, gpus_free)
    if takes is not None:
        assert shape.fault(takes) is None
        at, held, gpus_held = shape.rows(takes)
        assert (held <= amounts[at]).all()
        assert (gpus_held <= gpus_free[at]).all()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(tasks=13), "it asks for 13 cores in all, the usable nodes have 12"),
        (Request(tasks=12, memory_per_core=3), "it asks for 36 MiB of memory in all, the usable nodes have 24 MiB"),
        (Request(tasks=4, gpus=9), "it asks for 9 GPUs in all, the usable nodes give it at most 8"),
        (Request(tasks=4, gpus=6, memory_per_gpu=5), "it asks for 30 MiB of memory in all"),
        (Request(tasks=2, gpus=5, memory_per_gpu=4), None),
        (Request(tasks=2, gpus=3, memory_per_gpu=8), "it asks for 3 GPUs in all, the usable nodes give it at most 2"),
        (
            Request(nodes=1, most_nodes=1, tasks=7),
            "at most 1 node; one node holds at most 6 of them (cores: 6 on",
        ),
        (
            Request(nodes=1, most_nodes=1, tasks=3, gpus_per_task=2),
            "one node holds at most 2 of them (GPUs: 4 on a node)",
        ),
    ],
)
def test_a_refusal_names_the_resource_that_is_short_on_all_nodes_together(
    request_: Request, message: str | None
) -> None:
    """Two nodes with 6 cores, 12 MiB and 4 GPUs each: the message says what they lack for the whole job."""
    nodes = SharedNodes(("cores", "memory"), np.full((2, 2), (6000, 12)), gpu_counts=np.array([4, 4]))
    found = Shape(request_, nodes).refusal(np.ones(2, dtype=np.bool_))
    assert found is None if message is None else message in (found or "")


def test_a_refusal_says_what_the_nodes_lack_on_which_no_task_fits() -> None:
    """Only one of two nodes has GPUs: the message names them."""
    nodes = SharedNodes(("cores",), np.full((2, 1), 6000), gpu_counts=np.array([4, 0]))
    found = Shape(Request(nodes=2, most_nodes=2, gpus_per_node=1), nodes).refusal(np.ones(2, dtype=np.bool_))
    assert found is not None
    assert found.startswith("2 nodes are asked for, and only 1 can hold one of the tasks: elsewhere, it asks for 1 GPU")
