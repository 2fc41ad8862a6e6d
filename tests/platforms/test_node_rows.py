"""Properties of single nodes: groups of a platform, and tables of nodes applied to it."""

import numpy as np
import pytest

from pipistrelle.platforms import catalogue
from pipistrelle.platforms.describe import describe
from pipistrelle.platforms.description import NodeGroup, Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.node_rows import NodeRow, with_node_rows
from pipistrelle.platforms.read import parse_platform, to_toml
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.nodes import NodeTable
from pipistrelle.platforms.topology.orders import node_order
from pipistrelle.protocol.events import NodeGroupInfo, PlatformInfo, PoolInfo

TEXT = """
name = "m"
[[pools]]
name = "all"
nodes = 6
names = "n[1-6]"
mttf = "100h"
properties = { gpu_model = "k20x", cage = 1 }
[[groups]]
nodes = "0-1 4"
node_class = "old"
age = "3y"
[[groups]]
nodes = "n2, n[5-6]"
mttf = 60
[groups.properties]
gpu_model = "v100"
"""


def test_groups_replace_what_pools_say() -> None:
    """By numbers or names, key by key, and the last one wins; TOML in, TOML out."""
    platform = parse_platform(TEXT, "m.toml")
    nodes = NodeTable.of(platform.info)

    assert parse_platform(to_toml(platform), "again") == platform
    assert [nodes.classes[one] for one in nodes.node_class] == ["old", "old", "", "", "old", ""]
    np.testing.assert_array_equal(nodes.mttf, [360_000.0, 60.0, 360_000.0, 360_000.0, 60.0, 60.0])
    assert np.isnan(nodes.age).tolist() == [False, False, True, True, False, True]
    said = {value: str(some) for value, some in nodes.with_property("gpu_model").items()}
    assert said == {"k20x": "0 2-3", "v100": "1 4-5"}
    assert {value: str(some) for value, some in nodes.with_property("cage").items()} == {1: "0-5"}
    assert nodes.with_property("no") == {}
    assert dict(describe(platform))["nodes by group"] == (
        "class not known: 3 nodes; class old: 3 nodes; MTTF of 6 nodes: 0.0166667 to 100 h; "
        "age of 3 nodes: 26298 to 26298 h"
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("0-1 4", "0-1 6", r"groups\[0\].nodes: a group has nodes that do not exist: expected nodes from 0 to 5"),
        ("0-1 4", "", r"groups\[0\].nodes: a group has nodes that do not exist"),
        ("0-1 4", "0,1", r"groups\[0\].nodes"),
        ("n2, n[5-6]", "n2, n7", r"groups\[1\].nodes: there is no node 'n7'. Known"),
        ("mttf = 60", "mttf = 0", r"groups\[1\].mttf: a time is out of range"),
        ("mttf = 60", 'mttf = "-1h"', r"groups\[1\].mttf"),
        ('node_class = "old"', 'node_class = "o d"', r"groups\[0\].node_class: a class's name is not valid"),
        ("mttf = 60", "mtbf = 60", r"groups\[1\]: unknown key 'mtbf'"),
    ],
)
def test_groups_that_are_wrong(old: str, new: str, says: str) -> None:
    """Each is refused with its path."""
    with pytest.raises(PlatformError, match=says):
        parse_platform(TEXT.replace(old, new), "m.toml")


def test_groups_from_a_server_must_have_its_nodes() -> None:
    """The groups that a server sends are validated."""
    pools = (PoolInfo("a", "0-2", "0-2"),)
    for nodes in ("3", "0,1"):
        with pytest.raises(PlatformError, match="groups: "):
            _ = Machine(3, PlatformInfo("m", pools, groups=(NodeGroupInfo(nodes),))).nodes


def rows(*told: dict[str, object]) -> list[NodeRow]:
    """Return rows of a table, whose lines begin at 2."""
    return [NodeRow(where=f"t.csv, line {line}", **one) for line, one in enumerate(told, 2)]  # type: ignore[arg-type]


def test_a_table_finds_nodes_by_name_and_place() -> None:
    """Nodes with equal rows form one group; a node at a location takes the row's name."""
    text = TEXT.split("[[groups]]", maxsplit=1)[0].replace('names = "n[1-6]"\n', "")
    text += '[topology]\nkind = "mesh"\nshape = [6]\nnames = "rack[1-6]"\n'
    platform = with_node_rows(
        parse_platform(text, "m.toml"),
        rows(
            {"name": "rack3", "node_class": "new", "mttf": "2h"},
            {"location": "rack1", "name": "login", "properties": {"cage": 7}},
            {"location": "rack2", "node_class": "new", "age": 0.0},
        ),
    )
    nodes = NodeTable.of(platform.info)

    assert nodes.names == ("login", "rack2", "rack3", "rack4", "rack5", "rack6")
    assert [(group.nodes, group.node_class) for group in platform.info.groups] == [
        *(("1-2", "new"), ("2", ""), ("0", ""), ("1", "")),
    ]
    assert nodes.stable is not None
    assert nodes.stable.tolist() == [False, True, True, False, False, False]
    assert parse_platform(to_toml(platform), "again") == platform


def test_a_table_names_nodes_that_had_no_names() -> None:
    """The table must have a row for each node, in their order."""
    platform = Platform(name="m", pools=(Pool(name="a", nodes=1), Pool(name="b", nodes=2)))
    named = with_node_rows(platform, rows({"name": "x"}, {"name": "y1"}, {"name": "y2", "mttf": 5.0}))

    assert [pool.names for pool in named.pools] == ["x", "y[1-2]"]
    with pytest.raises(PlatformError, match=r"line 2: .* does not match the nodes, which have no names: .* found 1"):
        with_node_rows(platform, rows({"name": "x"}))
    with pytest.raises(PlatformError, match="two nodes are called 'x'"):
        with_node_rows(platform, rows({"name": "x"}, {"name": "x"}, {"name": "y"}))
    with pytest.raises(PlatformError, match=r"a node.s name is not valid: .* found 'a b'"):
        with_node_rows(platform, rows({"name": "x"}, {"name": "a b"}, {"name": "y"}))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"name": "n7"}, "t.csv, line 3: there is no node 'n7'. Known"),
        ({"location": "n1"}, "t.csv, line 3: the place .n1. does not exist. The platform's topology names no places"),
        ({"name": "n1"}, "t.csv, line 3: two rows describe the node 'n1': found t.csv, line 2"),
        ({"name": "n2", "mttf": 0.0}, "t.csv, line 3: node 'n2'.mttf: a time is out of range: expected .*above 0"),
        ({"name": "n2", "mttf": -1.0}, "t.csv, line 3: node 'n2'.mttf: a time is out of range"),
        ({"name": "n2", "age": "long"}, "t.csv, line 3: node 'n2'.age: "),
        ({"name": "n2", "node_class": "?"}, "t.csv, line 3: node 'n2'.node_class: a class's name is not valid"),
    ],
)
def test_rows_that_are_wrong(row: dict[str, object], says: str) -> None:
    """Each is rejected with its line and node."""
    platform = parse_platform(TEXT, "m.toml")
    with pytest.raises(PlatformError, match=says):
        with_node_rows(platform, rows({"name": "n1"}, row))


def test_which_nodes_are_stable() -> None:
    """By a class that says so, else by the MTTF, else by the age; otherwise unknown."""

    def stable(*pools: Pool) -> list[bool] | None:
        found = NodeTable.of(Platform(name="m", pools=pools).info).stable
        return None if found is None else found.tolist()

    assert stable(Pool(name="a", nodes=2)) is None
    assert stable(Pool(name="a", nodes=2, age=9), Pool(name="b", nodes=1, age=1)) == [False, False, True]
    old, new = Pool(name="a", nodes=2, mttf=9, age=9), Pool(name="b", nodes=1, mttf=1, age=1)
    assert stable(old, new) == [True, True, False]
    named = Pool(name="c", nodes=1, node_class="stable", age=99)
    assert stable(old, new, named) == [False, False, False, True]


def test_titan_agrees_with_the_lives() -> None:
    """19,200 places, 512 of them without a compute node; the ALPS order has each of the 18,688 nodes once."""
    platform = catalogue.get("titan")
    machine = Machine(platform.units, platform.info)
    order = node_order("alps", machine)

    assert len(machine.topology.names) == 18_688
    assert sorted(order.tolist()) == list(range(18_688))
    assert machine.topology.mean_hops(order) == pytest.approx(16.2408, abs=5e-5)
    node = machine.nodes.number("c6-3c1s1n2")
    assert machine.nodes.place[node].tolist() == [6, 2 * 3 + 1, 8 * 1 + 1]
    assert platform.info.topology is not None
    assert len(platform.info.topology.absent.split()) == 128
    # A router's two nodes are absent together, so the rest of a block stays together.
    places = machine.nodes.place[order]
    blocks = (places // [4, 2, 4]) @ [48, 6, 1]
    assert (np.diff(blocks) >= 0).all()


def test_intrepid_has_the_counts_of_its_table() -> None:
    """14 ranges of MTTF, the best nodes last; their mean equals that of the midpoints."""
    platform = catalogue.get("intrepid")
    nodes = Machine(platform.units, platform.info).nodes

    assert np.bincount(nodes.node_class).tolist() == [
        *(0, 1470, 2520, 1995, 2940, 1785, 2625, 3255, 4200, 4305, 4620, 3237, 3536, 3640, 832),
    ]
    assert nodes.mttf.mean() / 3600 == pytest.approx(10255.04, abs=0.005)
    assert (np.diff(nodes.mttf) >= 0).all()


def test_a_node_group_alone_says_nothing() -> None:
    """It has the nodes and no other property unless given."""
    assert NodeGroup(nodes="0").properties == {}
