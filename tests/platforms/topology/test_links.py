"""Loads of links: against routes that are walked step by step, closed forms, and hops."""

from collections import Counter
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.topology.links import LinkLoads
from pipistrelle.platforms.topology.topology import Topology, topology_of
from pipistrelle.protocol.events import TopologyInfo

SHAPES = ((5, 4, 3), (2, 3, 4), (7,), (1, 6), (2, 2), (3, 1, 2, 4))


def network(kind: Any, shape: tuple[int, ...], each: int = 2, **more: Any) -> Topology:
    """Return a torus or mesh with this many nodes per router."""
    return topology_of(TopologyInfo(kind, shape, nodes_per_router=each, **more), each * prod(shape))


def walked(topology: Topology, source: int, target: int, size: float) -> Counter[Any]:
    """Return the load of a message on each link (dimension, back, router), step by step."""
    found: Counter[Any] = Counter()
    here, there = topology.place[source].tolist(), topology.place[target].tolist()
    for axis, length in enumerate(topology.shape):
        ways = []
        for step in (1, -1):
            at, path = list(here), []
            while at[axis] != there[axis] and len(path) < length:
                before = list(at)
                at[axis] += step
                if topology.kind == "torus":
                    at[axis] %= length
                elif not 0 <= at[axis] < length:
                    break
                # A link is named by the router at its beginning; two routers have only one.
                low = before if step == 1 else at
                if length == 2:
                    low = [*at[:axis], 0, *at[axis + 1 :]]
                path.append((axis, int((before[axis] > at[axis]) if length == 2 else step == -1), tuple(low)))
            if at[axis] == there[axis]:
                ways.append(path)
        least = min(map(len, ways))
        best = [path for path in ways if len(path) == least]
        best = best[:1] if length == 2 else best
        for path in best:
            for link in path:
                found[link] += size / len(best)
        here[axis] = there[axis]
    return found


@given(data=st.data(), kind=st.sampled_from(["torus", "mesh"]), shape=st.sampled_from(SHAPES))
def test_loads_equal_walked_routes(data: st.DataObject, kind: str, shape: tuple[int, ...]) -> None:
    """The closed form for all-to-all is the sum over messages; all loads together are the hops."""
    topology = network(kind, shape)
    links = LinkLoads(topology)
    nodes = np.array(sorted(data.draw(st.sets(st.integers(0, 2 * prod(shape) - 1), min_size=2, max_size=7))))
    pairs = np.array(list(permutations(nodes.tolist(), 2)))
    expected: Counter[Any] = Counter()
    for source, target in pairs.tolist():
        expected.update(walked(topology, source, target, 1.0))

    closed = links.full(links.all_to_all(nodes))
    single = links.full(links.of_messages(pairs[:, 0], pairs[:, 1], np.ones(len(pairs))))

    for axis, (one, other) in enumerate(zip(closed, single, strict=True)):
        assert (one == other).all()
        for back, *router in product((0, 1), *map(range, shape)):
            assert one[(back, *router)] == expected[axis, back, tuple(router)]
    assert sum(float(load.sum()) for load in closed) == 2 * topology.total_hops(nodes)
    assert links.busiest(links.all_to_all(nodes)) == (max(expected.values(), default=0.0), None)


@pytest.mark.parametrize(("shape", "loads"), [((4, 6), (12.0, 18.0)), ((5, 3), (9.0, 5.0)), ((8,), (8.0,))])
def test_a_whole_torus(shape: tuple[int, ...], loads: tuple[float, ...]) -> None:
    """All routers, one node each: N k / 8 on each link of a ring of even k, N (k^2 - 1) / (8 k) of odd k."""
    links = LinkLoads(network("torus", shape, each=1))
    found = links.full(links.all_to_all(np.arange(prod(shape))))
    for load, expected in zip(found, loads, strict=True):
        assert (load == expected).all()


def test_bandwidths_by_coordinate() -> None:
    """Alternating ones begin with the link from 0 to 1; a rate is limited by the first full link."""
    links = LinkLoads(network("torus", (3, 4), each=1, bandwidth=(6.0, (8.0, 2.0))))
    assert links.bandwidths is not None
    assert [width.tolist() for width in links.bandwidths] == [[6.0, 6.0, 6.0], [8.0, 2.0, 8.0, 2.0]]
    # From y = 0 to 1 and from 1 to 2: both links carry one, the second is full at 2 bytes/s.
    assert links.busiest(links.of_messages(np.array([0, 1]), np.array([1, 2]), np.ones(2))) == (1.0, 2.0)
    assert links.busiest(links.of_messages(np.array([0]), np.array([1]), np.ones(1) * 4)) == (4.0, 2.0)
    assert links.busiest(links.all_to_all(np.array([5]))) == (0.0, None)


def test_how_many_links() -> None:
    """Both directions; a mesh has no wrap-around links, and two routers are joined by one."""
    assert LinkLoads(network("torus", (3, 4, 2))).counts == [48, 48, 24]
    assert LinkLoads(network("mesh", (3, 4, 1))).counts == [16, 18, 0]


def test_other_networks_have_no_known_links() -> None:
    """Groups and flat networks are rejected."""
    for info, nodes in ((TopologyInfo("groups", (2, 4)), 8), (TopologyInfo("flat"), 8)):
        with pytest.raises(PlatformError, match="the links of the network are unknown: expected a torus or a mesh"):
            LinkLoads(topology_of(info, nodes))
