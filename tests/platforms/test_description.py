"""A machine's numbers: nodes, units, groups."""

import math
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.describe import describe
from pipistrelle.platforms.description import MOST_UNITS, Platform, Pool, homogeneous
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.events import PlatformInfo
from pipistrelle.protocol.units.nodesets import NodeSet


@dataclass
class Counted:
    """A machine numbered in a slow and simple way: the node and the pool of each unit."""

    node_of_unit: list[int]
    pool_of_unit: list[str]


def count(platform):
    """Return the machine's numbering, one unit after the other."""
    counted = Counted([], [])
    node = 0
    for pool in platform.pools:
        for _ in range(pool.nodes):
            counted.node_of_unit += [node] * pool.units_per_node
            counted.pool_of_unit += [pool.name] * pool.units_per_node
            node += 1
    return counted


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=5))
def test_units_are_numbered_pool_by_pool_and_node_by_node(sizes):
    """Every query about numbers agrees with counting units one by one."""
    pools = tuple(
        Pool(name=f"p{index}", nodes=nodes, units_per_node=each, unit="core")
        for index, (nodes, each) in enumerate(sizes)
    )
    platform = Platform(name="m", pools=pools)
    counted = count(platform)

    assert platform.units == len(counted.node_of_unit)
    assert platform.nodes == counted.node_of_unit[-1] + 1
    numbering = NodeUnits.told(platform.info.pools)
    assert [numbering.nodes_of(NodeSet.of([unit])).first for unit in range(platform.units)] == counted.node_of_unit
    for node in range(platform.nodes):
        assert list(numbering.units_of(NodeSet.of([node]))) == [
            unit for unit, its_node in enumerate(counted.node_of_unit) if its_node == node
        ]
    for pool, group in zip(pools, platform.info.pools, strict=True):
        units = [unit for unit, its_pool in enumerate(counted.pool_of_unit) if its_pool == pool.name]
        assert list(platform.pool_units(pool.name)) == units
        assert group.units == str(platform.pool_units(pool.name))
        nodes = sorted({counted.node_of_unit[unit] for unit in units})
        assert group.nodes == (f"{nodes[0]}-{nodes[-1]}" if len(nodes) > 1 else f"{nodes[0]}")


def test_pools_are_sent_as_plain_data():
    """JSON has a pool's name and ranges, and its other properties if given."""
    more = {"names": "n[9-10]", "node_class": "v1", "mttf": "2h", "age": 0.0}
    gpu = Pool(name="b", nodes=2, units_per_node=4, unit="gpu", properties={"gb": 80}, **more)
    platform = Platform(name="m", pools=(Pool(name="a", nodes=1), gpu))
    times = {"prologue": 0.0, "epilogue": 0.0}
    expected = [
        {"name": "a", "nodes": "0", "units": "0", **times},
        {"name": "b", "nodes": "1-2", "units": "1-8", "units_per_node": 4, "unit": "gpu", "properties": {"gb": 80}}
        | times
        | {"names": "n[9-10]", "node_class": "v1", "mttf": 7200.0, "age": 0.0},
    ]

    assert msgspec.json.decode(msgspec.json.encode(platform.info.pools)) == expected
    assert msgspec.json.decode(msgspec.json.encode(platform.info), type=PlatformInfo) == platform.info


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"names": "n[1-3]"}, "pools[0].names: a pool has more or fewer names than nodes"),
        ({"names": "n[2-1]"}, "pools[0].names: names of nodes are not valid: expected 2 names"),
        ({"names": "n m[1-2]"}, "pools[0].names: names of nodes are not valid"),
        ({"names": "login"}, "more or fewer names than nodes"),
        ({"names": ""}, "names of nodes are not valid"),
        ({"node_class": "a b"}, "pools[0].node_class: a class's name is not valid"),
        ({"mttf": 0.0}, "pools[0].mttf: a time is out of range: expected seconds, above 0"),
        ({"mttf": "3 parsecs"}, "pools[0].mttf: a length of time has an unknown unit"),
        ({"mttf": math.inf}, "pools[0].mttf: a time is out of range"),
        ({"age": -1.0}, "pools[0].age: a time is out of range: expected seconds, 0 or more"),
    ],
)
def test_invalid_properties_of_nodes_are_rejected(keys, says):
    """Names, class, MTTF and age are checked, and the message says where."""
    with pytest.raises(PlatformError) as caught:
        Platform(name="m", pools=(Pool(name="a", nodes=2, **keys),))

    assert says in str(caught.value)


def test_describe_shows_the_properties_of_nodes():
    """`describe` prints names, class, MTTF and age of a pool."""
    pool = Pool(name="a", nodes=2, names="n[1-2]", node_class="thin", mttf="10250h", age=7200.0)
    shown = dict(describe(Platform(name="m", pools=(pool,))))["pool a"]

    assert shown == "2 nodes, nodes 0-1, names n[1-2], class thin, MTTF 10250 h, age 2 h"


def test_no_two_nodes_have_one_name():
    """A name occurs once on a machine, in whatever pools."""
    with pytest.raises(PlatformError, match="two nodes are called 'n10'"):
        Platform(name="m", pools=(Pool(name="a", nodes=9, names="n[2-10]"), Pool(name="b", nodes=2, names="n[10-11]")))


@pytest.mark.parametrize("rule", ["[2-3]", "[3-4]"])
def test_a_number_is_the_name_of_a_node_without_one(rule):
    """A rule that produces the number of another pool's node would give two nodes the same name."""
    with pytest.raises(PlatformError, match=r"two nodes are called '\d': found '\d' in pools\[0\] too"):
        Platform(name="m", pools=(Pool(name="a", nodes=2, names=rule), Pool(name="b", nodes=2)))


def test_an_unknown_pool_is_refused():
    """The error for an unknown pool suggests the closest name."""
    platform = Platform(name="m", pools=(Pool(name="thin", nodes=1), Pool(name="fat", nodes=1)))
    with pytest.raises(PlatformError, match=r"^platform 'm' has no pool 'thn'\. Did you mean 'thin'\?$"):
        platform.pool_units("thn")


def test_a_homogeneous_machine_is_one_pool_of_whole_nodes():
    """`homogeneous` gives one pool called all, each node one unit, up to the limit."""
    platform = homogeneous(100, "KTH SP2")

    assert platform.pools == (Pool(name="all", nodes=100),)
    assert platform.units == platform.nodes == 100
    assert homogeneous(MOST_UNITS, "large").units == MOST_UNITS


@pytest.mark.parametrize(
    ("units", "name", "message"),
    [
        (0, "m", "pools[0].nodes: a count is too small: expected a whole number of at least 1, found 0."),
        (-5, "m", "found -5."),
        (MOST_UNITS + 1, "m", "pools: a platform is too large: expected at most 10000000 schedulable units in all"),
        (
            4,
            "",
            "name: a platform's name is not valid: expected 1 to 300 printable characters, not all blank, found ''.",
        ),
        (4, " ", "a platform's name is not valid"),
        (4, "a\nb", "found 'a\\nb'."),
        (4, "x" * 301, "a platform's name is not valid"),
    ],
)
def test_an_impossible_homogeneous_machine_is_refused(units, name, message):
    """Sizes and names out of range raise `PlatformError`."""
    with pytest.raises(PlatformError) as caught:
        homogeneous(units, name)

    assert message in str(caught.value)


def test_a_machine_built_in_python_is_checked_like_a_file():
    """The constructor itself refuses what a file could not say either."""
    with pytest.raises(PlatformError, match=r"^pools\[1\]\.name: the pool name 'a' is used twice"):
        Platform(name="m", pools=(Pool(name="a", nodes=1), Pool(name="a", nodes=1)))
    with pytest.raises(PlatformError, match=r"^pools: a platform has no pool"):
        Platform(name="m", pools=())


def test_the_facts_of_a_machine():
    """`describe` gives name, provenance, totals by kind of unit, and one line per pool with its properties."""
    platform = Platform(
        name="zeus",
        description="a cluster",
        source="inventory",
        pools=(
            Pool(name="cpu", nodes=1),
            Pool(
                name="gpu",
                nodes=1200,
                units_per_node=4,
                unit="gpu",
                properties={"model": "H100", "nvlink": True, "gb": 80, "price": 1.5},
            ),
            Pool(name="more", nodes=2),
        ),
    )

    assert describe(platform) == [
        ("platform", "zeus"),
        ("description", "a cluster"),
        ("source", "inventory"),
        ("nodes", "1,203"),
        ("schedulable units", "3 nodes + 4,800 GPUs"),
        ("pool cpu", "1 node, node 0"),
        (
            "pool gpu",
            "1,200 nodes of 4 GPUs, nodes 1-1200, units 1-4800, model = H100, nvlink = true, gb = 80, price = 1.5",
        ),
        ("pool more", "2 nodes, nodes 1201-1202, units 4801-4802"),
    ]
    assert describe(homogeneous(4, "four"))[1] == ("nodes", "4")


@given(st.lists(st.from_regex(r"[a-c]{0,2}[0-9]{1,2}[a-b]?", fullmatch=True), min_size=1, unique=True))
def test_any_names_are_a_rule_and_back(names):
    """Sequences of numbered names are written as ranges, and read back equal, in the same order."""
    rule = str(NodeNames.of(names))

    assert list(NodeNames.parse(rule, len(names), "here")) == names
    assert NodeNames.of(["no name"]) is None


def test_a_rule_may_have_several_stretches():
    """Names of nodes sorted alphabetically: each once."""
    assert str(NodeNames.of(["h0", "h1", "h10", "h11", "h2", "x"])) == "h[0-1],h[10-11],h2,x"
    Platform(name="m", pools=(Pool(name="p", nodes=3, names="h[0-1],x"),))
    with pytest.raises(PlatformError, match="two nodes are called 'h1'"):
        Platform(name="m", pools=(Pool(name="p", nodes=3, names="h[0-1],h1"),))
