"""Where nodes are: places by rule, hops between nodes, and their exact means."""

from itertools import combinations
from math import prod
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.read import parse_platform, to_toml
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.topology import Topology, topology_of
from pipistrelle.protocol.events import TopologyInfo

TITAN = TopologyRule(kind="torus", shape=(25, 16, 24), nodes_per_router=2, numbering=((0, 25), (1, 8), (2, 24), (1, 2)))


def machine_with(topology: TopologyRule, nodes: int) -> Machine:
    """Return a machine of one pool with a topology, as its scheduler sees it."""
    platform = Platform(name="m", pools=(Pool(name="all", nodes=nodes),), topology=topology)
    return Machine(platform.units, platform.info)


def hops_apart(topology: Topology, a: int, b: int) -> int:
    """Return the hops between two nodes, by the definition."""
    one, other = topology.place[a].tolist(), topology.place[b].tolist()
    if topology.kind == "groups":
        hops = topology.info.hops or tuple(range(2, 2 * len(one) + 1, 2))
        return next((hops[-1 - k] for k in range(len(one)) if one[k] != other[k]), 0)
    total = 0
    for at, to, size in zip(one, other, topology.shape, strict=True):
        straight = abs(at - to)
        total += min(straight, size - straight) if topology.kind == "torus" else straight
    return total if topology.kind != "flat" else 0


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Draw a network of up to four dimensions with some places left out."""
    kind = draw(st.sampled_from(["torus", "mesh", "groups", "flat"]))
    if kind == "flat":
        return topology_of(None, draw(st.integers(1, 9)))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    each = draw(st.integers(1, 3))
    places = prod(shape) * each
    absent = draw(st.sets(st.integers(0, places - 1), max_size=min(5, places - 1)))
    text = " ".join(map(str, sorted(absent)))
    hops = tuple(sorted(draw(st.integers(1, 5)) for _ in shape)) if kind == "groups" and draw(st.booleans()) else ()
    return topology_of(TopologyInfo(kind, shape, each, absent=text, hops=hops), places - len(absent))


@settings(deadline=None)
@given(topology=topologies(), data=st.data())
def test_mean_hops_are_those_of_all_pairs(topology: Topology, data: st.DataObject) -> None:
    """The histograms say what a count of each pair says, and so do distances of whole arrays."""
    nodes = data.draw(st.lists(st.integers(0, len(topology.places) - 1), unique=True, max_size=12))
    numbers = np.array(nodes, dtype=np.intp)
    total = sum(hops_apart(topology, a, b) for a, b in combinations(nodes, 2))

    assert topology.total_hops(numbers) == total
    assert topology.mean_hops(numbers) == (total / (len(nodes) * (len(nodes) - 1) / 2) if len(nodes) > 1 else 0.0)
    table = topology.distance(numbers[:, None], numbers[None, :])
    assert table.tolist() == [[hops_apart(topology, a, b) for b in nodes] for a in nodes]


def test_places_go_by_the_digits_of_the_numbering() -> None:
    """A dimension may have two digits; node k of a router is its k-th place; names are those of the places."""
    rule = msgspec.structs.replace(TITAN, names="c[0-24]-[0-7]c[0-2]s[0-7]n[0-3]", absent="0-3 8")
    machine = machine_with(rule, 19_195)
    nodes = machine.nodes

    assert nodes.names[:6] == ("c0-0c0s1n0", "c0-0c0s1n1", "c0-0c0s1n2", "c0-0c0s1n3", "c0-0c0s2n1", "c0-0c0s2n2")
    number = nodes.number("c7-5c2s3n2")
    assert nodes.place[number].tolist() == [7, 2 * 5 + 1, 8 * 2 + 3]
    assert machine.named
    assert nodes.place[0].tolist() == [0, 0, 1]
    with pytest.raises(PlatformError, match="there is no node 'c0-0c0s0n0'"):
        nodes.number("c0-0c0s0n0")


def test_titans_means() -> None:
    """All pairs of a 25 x 16 x 24 torus of two nodes a router: 6.24 + 4 + 6 hops, of 19,200 places."""
    topology = machine_with(TITAN, 19_200).topology

    assert topology.mean_hops(np.arange(19_200)) == pytest.approx(16.24 * 19_200 / 19_199, rel=1e-12)


def test_absent_places_by_name() -> None:
    """The platform's file may name them; schedulers are told numbers."""
    rule = TopologyRule(kind="mesh", shape=(2, 2), nodes_per_router=2, names="r[0-3]n[0-1]", absent="r0n1, r2n[0-1]")

    assert machine_with(rule, 5).topology.info.absent == "1 4-5"
    for absent, says in (("r0n2", "there is no place 'r0n2'"), ("r0n[1", "names of places are not valid")):
        with pytest.raises(PlatformError, match=says.replace("[", r"\[")):
            machine_with(msgspec.structs.replace(rule, absent=absent), 5)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"shape": ()}, "topology.shape: a topology's shape is not valid"),
        ({"shape": (2,) * 9}, "topology.shape: a topology's shape is not valid"),
        ({"nodes_per_router": 5_000_000}, "topology.nodes_per_router: a topology's size is out of range"),
        ({"shape": (2, 3)}, "topology: a topology does not match the nodes: expected places for 8 node"),
        ({"absent": "0"}, "found 8 place.s., 1 of them absent"),
        ({"absent": "8"}, "topology.absent: an absent place does not exist: expected places from 0 to 7"),
        ({"absent": "1,2"}, "topology.absent: "),
        ({"numbering": ((0, 2), (1, 2))}, "topology.numbering: a numbering does not fit the shape"),
        ({"numbering": ((0, 2), (1, 4), (2, 1))}, "topology.numbering: a numbering does not fit the shape"),
        ({"hops": (1, 2)}, "topology.hops: hops do not fit"),
        ({"kind": "groups", "hops": (2, 1)}, "topology.hops: hops do not fit"),
        ({"bandwidth": (1.0,)}, "topology.bandwidth: bandwidths do not fit"),
        ({"bandwidth": (1.0, ())}, "topology.bandwidth: bandwidths do not fit"),
        ({"names": "n[0-6]"}, "topology.names: a pool has more or fewer names than nodes"),
        ({"kind": "flat"}, "topology.shape: a flat topology has no shape"),
    ],
)
def test_a_topology_that_contradicts_itself_or_the_nodes(changes: dict[str, Any], says: str) -> None:
    """Each is refused by name, in a platform and from a server."""
    rule = msgspec.structs.replace(TopologyRule(kind="mesh", shape=(2, 4)), **changes)
    with pytest.raises(PlatformError, match=says):
        machine_with(rule, 8)
    with pytest.raises(PlatformError, match=says):
        topology_of(rule.told, 8)


def test_a_platform_file_with_a_topology() -> None:
    """TOML in, TOML out; a wrong kind or key is refused with its path."""
    text = (
        'name = "m"\npools = [{name = "all", nodes = 12}]\n[topology]\nkind = "torus"\nshape = [2, 3]\n'
        "nodes_per_router = 2\nbandwidth = [9.36e9, [9.36e9, 4.68e9]]\nnumbering = [[1, 3], [0, 2]]\n"
        'names = "n[01-12]"\n'
    )
    platform = parse_platform(text, "m.toml")

    assert parse_platform(to_toml(platform), "again") == platform
    assert platform.info.topology is not None
    assert platform.info.topology.bandwidth == (9.36e9, (9.36e9, 4.68e9))
    for old, new, says in (
        ('"torus"', '"ring"', "topology.kind: not one of the choices"),
        ("[2, 3]", "[2, 0]", r"topology.shape\[1\]"),
        ("shape", "shapes", "unknown key 'shapes'"),
        ("[9.36e9,", "[0,", r"topology.bandwidth\[0\]"),
    ):
        with pytest.raises(PlatformError, match=says):
            parse_platform(text.replace(old, new, 1), "m.toml")
