"""The table of nodes, and how nodes and units are numbered."""

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.events import NodeGroupInfo, PlatformInfo, PoolInfo
from pipistrelle.protocol.units.nodesets import NodeSet

sizes = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=4)


@given(sizes=sizes, data=st.data())
def test_units_and_nodes_go_together(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    """A set of nodes has the units that each of them has, and these have those nodes."""
    pools = tuple(
        Pool(name=f"p{index}", nodes=nodes, units_per_node=each, unit="core")
        for index, (nodes, each) in enumerate(sizes)
    )
    platform = Platform(name="m", pools=pools)
    numbering = NodeUnits.told(platform.info.pools)
    nodes = data.draw(st.sets(st.integers(0, platform.nodes - 1)))
    node_of = [node for node in range(platform.nodes) for _ in range(_pool_of(node, pools).units_per_node)]
    units = {unit for unit, node in enumerate(node_of) if node in nodes}

    assert set(numbering.units_of(NodeSet.of(nodes))) == units
    assert set(numbering.nodes_of(NodeSet.of(units))) == nodes
    assert set(numbering.nodes_of(NodeSet.of({unit for unit in units if unit % 2}))) == {
        node_of[unit] for unit in units if unit % 2
    }


def _pool_of(node: int, pools: tuple[Pool, ...]) -> Pool:
    return [pool for pool in pools for _ in range(pool.nodes)][node]


def test_the_table_has_what_the_pools_say() -> None:
    """A row for each node, in the order of the numbers; NaN and no class where nothing is given."""
    pools = (
        Pool(name="login", nodes=1, names="front", age=5.0),
        Pool(name="gpu", nodes=3, names="g[09-11].x", node_class="k20x", mttf="1h", units_per_node=2, unit="gpu"),
        Pool(name="cpu", nodes=1),
    )
    platform = Platform(name="m", pools=pools)
    nodes = Machine(platform.units, platform.info).nodes

    assert nodes.names == ("front", "g09.x", "g10.x", "g11.x", "4")
    assert [nodes.pools[pool] for pool in nodes.pool] == ["login", "gpu", "gpu", "gpu", "cpu"]
    assert [nodes.classes[one] for one in nodes.node_class] == ["", "k20x", "k20x", "k20x", ""]
    np.testing.assert_array_equal(nodes.mttf, [np.nan, 3600.0, 3600.0, 3600.0, np.nan])
    np.testing.assert_array_equal(nodes.age, [5.0, np.nan, np.nan, np.nan, np.nan])
    assert nodes.place.tolist() == [[0], [1], [2], [3], [4]]
    assert (len(nodes), nodes.number("g10.x")) == (5, 2)
    with pytest.raises(PlatformError, match=r"there is no node 'g12\.x'"):
        nodes.number("g12.x")


def test_a_machine_without_a_description() -> None:
    """Each unit is a node."""
    machine = Machine(3)

    assert (str(machine.all_units), machine.nodes.names, machine.nodes.pools) == ("0-2", ("0", "1", "2"), ("all",))
    assert str(machine.numbering.nodes_of(NodeSet.parse("1-2"))) == "1-2"


@pytest.mark.parametrize(("nodes", "units", "each"), [("0-2", "0-2", 2), ("0 2", "0-1", 1), ("0", "0 2", 2)])
def test_a_pool_that_does_not_fit_together(nodes: str, units: str, each: int) -> None:
    """The pools that a server sends are validated."""
    with pytest.raises(PlatformError, match="do not match"):
        _ = Machine(6, PlatformInfo("m", (PoolInfo("a", nodes, units, each),))).nodes


@pytest.mark.parametrize(
    ("units", "pools", "says"),
    [
        (10_000_001, (), r"a machine is too large: expected at most 10000000 units, found 10000001"),
        (10**15, (), r"a machine is too large"),
        (4, (PoolInfo("a", f"0-{10**14}", f"0-{10**14}"),), r"the pools' units are not those of the machine"),
        (4, (PoolInfo("a", "0-3", "0-3"), PoolInfo("b", f"4-{10**14}", f"4-{10**14}")), r"the pools' units are not"),
        (4, (PoolInfo("a", "0-1", "0-3", 2), PoolInfo("b", f"2-{10**14}", f"4-{2 * 10**14 + 1}", 2)), r"are not those"),
    ],
)
def test_a_machine_that_is_too_large_is_refused_before_there_is_a_row_for_each_node(
    units: int, pools: tuple[PoolInfo, ...], says: str
) -> None:
    """A server that sends such numbers does not cost memory."""
    with pytest.raises(PlatformError, match=says):
        Machine(units, PlatformInfo("m", pools)).check()


ages = st.none() | st.sampled_from([0.0, 5.0, 7.0])
node_classes = st.sampled_from(["", "new", "old"])


@given(data=st.data())
def test_properties_of_nodes_are_in_their_rows(data: st.DataObject) -> None:
    """First from pools, then from groups, where a later one wins; also if all nodes have the same value."""
    counts = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    total = sum(counts)
    rows: list[list[object]] = [[0, "", nan, nan] for _ in range(total)]
    pools, groups, first = [], [], 0

    def say(nodes: list[int], age: float | None, mttf: float | None, node_class: str) -> None:
        for node in nodes:
            rows[node][1] = node_class or rows[node][1]
            rows[node][2] = rows[node][2] if age is None else age
            rows[node][3] = rows[node][3] if mttf is None else mttf

    for index, count in enumerate(counts):
        nodes, said = f"{first}-{first + count - 1}", (data.draw(ages), data.draw(ages), data.draw(node_classes))
        pools.append(PoolInfo(f"p{index}", nodes, nodes, age=said[0], mttf=said[1], node_class=said[2]))
        say([*range(first, first + count)], *said)
        for node in range(first, first + count):
            rows[node][0] = index
        first += count
    for _ in range(data.draw(st.integers(0, 3))):
        some = sorted(data.draw(st.sets(st.integers(0, total - 1), min_size=1)))
        said = (data.draw(ages), data.draw(ages), data.draw(node_classes))
        groups.append(NodeGroupInfo(str(NodeSet((node, node) for node in some)), said[2], said[1], said[0]))
        say(some, *said)

    table = Machine(total, PlatformInfo("m", tuple(pools), groups=tuple(groups))).nodes

    assert table.pool.tolist() == [row[0] for row in rows]
    assert [table.classes[place] for place in table.node_class] == [row[1] for row in rows]
    np.testing.assert_array_equal(table.age, np.array([row[2] for row in rows], dtype=float))
    np.testing.assert_array_equal(table.mttf, np.array([row[3] for row in rows], dtype=float))


def test_a_server_must_send_one_name_per_node() -> None:
    """A rule that is none, or of other names, is an error when the names are asked for."""
    wrong = "more or fewer names than nodes"
    for rule, says in (("n[1-2]", wrong), ("n[", "not valid"), ("n", wrong)):
        nodes = Machine(3, PlatformInfo("m", (PoolInfo("a", "0-2", "0-2", names=rule),))).nodes
        with pytest.raises(PlatformError, match=f"pool a: .* {says}: expected 3 names"):
            _ = nodes.names


def test_rules_of_names() -> None:
    """Numbers are filled up to as many digits as the first has."""
    assert [*NodeNames.parse("n[8-10]", 3, "here")] == ["n8", "n9", "n10"]
    assert [*NodeNames.parse("n[098-101]-x", 4, "here")] == ["n098-x", "n099-x", "n100-x", "n101-x"]
    assert [*NodeNames.parse("login1", 1, "here")] == ["login1"]
    assert [*NodeNames.parse("a[1-2]b[09-10]c,x", 5, "here")] == ["a1b09c", "a1b10c", "a2b09c", "a2b10c", "x"]
    assert str(NodeNames.parse("a[1-2]b[09-10]c,x[4-4]", 5, "here")) == "a[1-2]b[09-10]c,x4"
    for rule in ("", "n[1]", "n[2-1]", "n[1-2][2-1]", "é[1-2]"):
        with pytest.raises(PlatformError, match="here: names of nodes are not valid"):
            NodeNames.parse(rule, 1, "here")
