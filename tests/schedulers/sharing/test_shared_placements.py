"""Placements for shared nodes choose what a plain search over all nodes and GPUs finds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.resources.free_resources import FreeResources
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.platforms.resources.shared_nodes import SharedNodes
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.sharing.compiled_usable import fast_usable
from pipistrelle.schedulers.sharing.fragmentation import TypicalRequests
from pipistrelle.schedulers.sharing.placements import SHARED, FirstFitShared, make_shared
from pipistrelle.schedulers.sharing.usable import usable, usable_loop

SHARES = st.sampled_from([200, 500, 700])
MODELS = st.sampled_from([None, (0,), (1,), (0, 1)])
CORES = st.sampled_from([0, 1000, 2000, 5000])
requests = st.one_of(
    st.builds(lambda cores: OneNodeRequest((cores, 1)), CORES),
    st.builds(lambda cores, share, models: OneNodeRequest((cores, 1), 1, share, models), CORES, SHARES, MODELS),
    st.builds(
        lambda cores, gpus, models: OneNodeRequest((cores, 1), gpus, 1000, models), CORES, st.integers(1, 3), MODELS
    ),
)


@st.composite
def clusters(draw):
    """Return small clusters."""
    count = draw(st.integers(1, 5))
    column = st.lists(st.integers(0, 4), min_size=count, max_size=count)
    gpus = np.array(draw(column))
    return SharedNodes(
        ("cores", "memory"),
        np.column_stack((2000 * (1 + np.array(draw(column))), np.full(count, 30))),
        gpu_counts=gpus,
        models=("A", "B"),
        model_of=np.where(gpus > 0, np.array(draw(column)) % 2, -1),
    )


def fragment(cores, gpus, model, typical):
    """Return the fragment of a node, times the number of typical requests."""
    found = 0
    for request, count in typical.items():
        large = [free for free in gpus if free >= request.share]
        fits = request.gpus and cores >= request.amounts[0] and len(large) >= request.gpus
        fits = fits and (request.models is None or model in request.models)
        found += count * (sum(gpus) - (sum(large) if fits else 0))
    return found


def plain_choice(name, free, request, typical):
    """Return what a placement chooses, by a search in plain Python."""
    nodes = free.nodes
    most_cores = max(1, int(nodes.amounts[:, 0].max()))
    most_gpus = max(1, int(nodes.gpus.sum(axis=1).max()))
    best = None
    for node in range(len(nodes)):
        cores, gpus = int(free.amounts[node, 0]), free.gpus[node].tolist()
        model, has = int(nodes.model_of[node]), nodes.gpus[node].tolist()
        enough = [number for number, one in enumerate(gpus) if one >= request.share]
        if cores < request.amounts[0] or free.amounts[node, 1] < request.amounts[1] or len(enough) < request.gpus:
            continue
        if request.gpus and request.models is not None and model not in request.models:
            continue
        chosen = sorted(enough, key=lambda number: (gpus[number], number))[: request.gpus]
        if name in ("first-fit", "worst-fit"):
            sign = 0 if name == "first-fit" else -1
            chosen = sorted(enough, key=lambda number: (sign * gpus[number], number))[: request.gpus]
        left, gpu_left = cores - request.amounts[0], sum(gpus) - request.gpu_amount
        score = 0
        if name == "best-fit":
            score = math.floor(100 * (1.0 - (0.5 * (left / most_cores) + 0.5 * (gpu_left / most_gpus))))
        elif name == "worst-fit":
            score = left + 100 * gpu_left
        elif name == "dot-product":
            product = cores / most_cores * (request.amounts[0] / most_cores)
            product += sum(gpus) / most_gpus * (request.gpu_amount / most_gpus)
            score = math.floor(100 * (1.0 - product / 2))
        elif name == "gpu-packing" and request.gpus:
            whole = sum(gpus[number] == 1000 for number in chosen)
            count = sum(one > 0 for one in has)
            if gpus == has:
                score = max(33 - count, count)
            elif whole:
                score = max(50 - whole, 33)
            else:
                score = max(100 - sum(gpus[number] // 10 for number in chosen) // 10, 50)
        elif name == "gpu-clustering" and request.gpus:
            kinds = {kind for kind, held in enumerate(free.holders[node].tolist()) if held}
            same = (0 if request.is_share else request.gpus) in kinds
            step = (3 if len(kinds) == 1 else 2) if same else (1 if not kinds else 0)
            score = 25 * step + 25 * (most_gpus - sum(gpus)) // most_gpus
        choices = [(score, chosen)]
        if name == "fgd":
            choices = []
            for numbers in [[number] for number in enough] if request.is_share else [chosen]:
                after = [one - request.share * (number in numbers) for number, one in enumerate(gpus)]
                weight = sum(typical.values())
                less = fragment(cores, gpus, model, typical) - fragment(left, after, model, typical)
                choices.append((math.floor(100 / (1 + math.exp(-less / weight / 1000))), numbers))
        for score, numbers in choices:
            if best is None or score > best[0]:
                best = score, node, tuple(sorted(numbers))
    return None if best is None else best[1:]


@pytest.mark.parametrize("name", [name for name in SHARED if name != "random"])
@settings(max_examples=60)
@given(nodes=clusters(), arriving=st.lists(requests, min_size=1, max_size=25))
def test_a_placement_chooses_as_a_plain_search(name, nodes, arriving):
    """Also after requests were taken and given back, when only changed nodes get new scores."""
    free = FreeResources(nodes)
    typical = {}
    for request in arriving:
        typical[request] = typical.get(request, 0) + 1
    fragmentation = TypicalRequests(nodes, typical)
    if fragmentation.shapes < len({request._replace(amounts=request.amounts[:1]) for request in typical}):
        typical = {}  # rare shapes were left out; compared in the test of typical requests
    placement = make_shared(name, free, fragmentation=fragmentation, rng=np.random.Generator(np.random.PCG64(1)))
    held = []
    for step, request in enumerate(arriving):
        chosen = placement.choose(request)
        if name != "fgd" or typical:
            assert chosen == plain_choice(name, free, request, typical)
        if chosen is not None:
            free.take(chosen[0], request, chosen[1])
            held.append((chosen[0], request, chosen[1]))
        if step % 4 == 3 and held:
            free.give_back(*held.pop(0))


@given(nodes=clusters(), arriving=st.lists(requests, min_size=1, max_size=25))
def test_random_chooses_a_node_that_fits_or_none(nodes, arriving):
    """It finds a node if and only if one fits."""
    free = FreeResources(nodes)
    rng = np.random.Generator(np.random.PCG64(1))
    placement = make_shared("random", free, fragmentation=TypicalRequests(nodes, dict.fromkeys(arriving, 1)), rng=rng)
    for request in arriving:
        chosen = placement.choose(request)
        assert (chosen is not None) == free.fits(request).any()
        if chosen is not None:
            free.take(chosen[0], request, chosen[1])
    free.check()


@given(nodes=clusters(), typical=st.dictionaries(requests, st.integers(1, 9), min_size=1), seed=st.integers(0, 99))
def test_all_forms_of_the_inner_loop_are_equal(nodes, typical, seed):
    """numpy, the loop, and the loop compiled by numba give the same integers."""
    rng = np.random.Generator(np.random.PCG64(seed))
    gpus = rng.integers(0, 1001, nodes.gpus.shape) * (nodes.gpus > 0)
    cores = rng.integers(0, 10_000, len(nodes))
    found = [
        TypicalRequests(nodes, typical, form).usable(cores, gpus, nodes.model_of.copy()).tolist()
        for form in (usable, usable_loop, fast_usable())
    ]

    assert found[0] == found[1] == found[2]


def test_first_fit_prefers_a_lower_weight():
    """Among equal weights, the lower number comes first."""
    nodes = SharedNodes(("cores",), np.array([[1], [1], [1]]))
    placement = FirstFitShared(FreeResources(nodes), np.array([2, 1, 1]))

    assert placement.choose(OneNodeRequest((1,))) == (1, ())


def test_typical_requests_make_up_95_percent():
    """Of equally frequent shapes, the one with more cores comes first."""
    nodes = SharedNodes(("cores",), np.array([[9]]))
    fragmentation = TypicalRequests(nodes, {OneNodeRequest((1,)): 90, OneNodeRequest((2,)): 5, OneNodeRequest((3,)): 5})

    assert (fragmentation.shapes, fragmentation.weight) == (2, 95)


def test_an_unknown_placement_is_named():
    """The error suggests the closest name."""
    nodes = SharedNodes(("cores",), np.array([[9]]))
    free, rng = FreeResources(nodes), np.random.Generator(np.random.PCG64(1))
    with pytest.raises(PolicyError, match="Did you mean 'best-fit'"):
        make_shared("bestfit", free, fragmentation=TypicalRequests(nodes, {OneNodeRequest((1,)): 1}), rng=rng)
