"""Apply a table of nodes, one row per node, to a platform, as groups of nodes."""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from pipistrelle.platforms.description import NodeGroup, Platform, Property, check_node_facts
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.topology.nodes import NodeTable
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.units.nodesets import NodeSet


class NodeRow(Struct, frozen=True, kw_only=True):
    """One row of a table of nodes: the values of one node.

    All fields that are not listed here are as in a pool. They are empty or None if the row does not give them.

    Args:
        where: the row's name in messages: its file, and its line if known.
        name, location: the node's name and its place in the topology; one of them may be missing.
    """

    where: str
    name: str = ""
    location: str = ""
    node_class: str = ""
    mttf: float | str | None = None
    age: float | str | None = None
    properties: dict[str, Property] = field(default_factory=dict)


def with_node_rows(platform: Platform, rows: Sequence[NodeRow]) -> Platform:
    """Return the machine with the values of a table of nodes.

    If nodes have names, a row with a location describes the node at this location, and a row without a location
    describes the node with this name. A row with a location and a name renames the node. If nodes have no names, the
    table has one row per node, in order, and names them.

    Raises:
        PlatformError: with the name of the row, if the row's node does not exist, two rows have the same node, or a
            value is out of range. Also if nodes have no names, and the table has more or fewer rows than the machine
            has nodes.
    """
    table = NodeTable.of(platform.info)
    nodes = _found(table, rows) if table.named else _counted(platform, rows)
    seen: dict[int, NodeRow] = {}
    said: dict[tuple[str, Property], list[int]] = {}
    facts: dict[tuple[str, Property], NodeGroup] = {}
    for node, row in zip(nodes, rows, strict=True):
        other = seen.setdefault(node, row)
        if other is not row:
            what = f"two rows describe the node {shown(table.names[node])}"
            raise PlatformError(what, where=row.where, found=other.where)
        for key, value, group in _facts(row):
            if (key, value) not in facts:
                check_node_facts(group, f"{row.where}: node {shown(row.name or row.location)}")
                facts[key, value] = group
            said.setdefault((key, value), []).append(node)
    groups = [replace(facts[fact], nodes=str(NodeSet.of(members))) for fact, members in said.items()]
    return replace(_named(platform, table, seen), groups=(*(platform.groups or ()), *groups))


def _facts(row: NodeRow) -> list[tuple[str, Property, NodeGroup]]:
    """Return each value that a table row sets for its node.

    A value is given as (key, value, node group with only this value).
    """
    found: list[tuple[str, Property, NodeGroup]] = []
    if row.node_class:
        found.append(("class", row.node_class, NodeGroup(nodes="", node_class=row.node_class)))
    if row.mttf is not None:
        found.append(("mttf", row.mttf, NodeGroup(nodes="", mttf=row.mttf)))
    if row.age is not None:
        found.append(("age", row.age, NodeGroup(nodes="", age=row.age)))
    found += [
        (f"properties.{key}", value, NodeGroup(nodes="", properties={key: value}))
        for key, value in row.properties.items()
    ]
    return found


def _found(table: NodeTable, rows: Sequence[NodeRow]) -> list[int]:
    places = {name: number for number, name in enumerate(table.topology.names)}
    nodes = []
    for row in rows:
        if not row.location:
            nodes.append(table.number(row.name, row.where))
        elif row.location in places:
            nodes.append(places[row.location])
        else:
            hint = did_you_mean(row.location, list(places)) if places else "The platform's topology names no places."
            raise PlatformError(f"the place {shown(row.location)} does not exist", where=row.where, hint=hint)
    return nodes


def _counted(platform: Platform, rows: Sequence[NodeRow]) -> list[int]:
    if len(rows) != platform.nodes:
        raise PlatformError(
            "a table of nodes does not match the nodes, which have no names",
            where=rows[0].where if rows else None,
            expected=f"one row for each of {platform.nodes} nodes, in their order",
            found=f"{len(rows)}",
        )
    return list(range(len(rows)))


def _named(platform: Platform, table: NodeTable, rows: dict[int, NodeRow]) -> Platform:
    new = {
        node: row.name or row.location
        for node, row in rows.items()
        if not table.named or (row.name and row.location and row.name != table.names[node])
    }
    if not new:
        return platform
    names = [new.get(node, name) for node, name in enumerate(table.names)]
    pools = []
    for pool in platform.pools:
        mine, names = names[: pool.nodes], names[pool.nodes :]
        rule = NodeNames.of(mine)
        if rule is None:
            raise PlatformError(
                "a node's name is not valid",
                where="the table of nodes",
                expected="ASCII letters, digits, '.', '_', '-'",
                found=shown(next(name for name in mine if NodeNames.of([name]) is None)),
            )
        pools.append(replace(pool, names=str(rule)))
    return replace(platform, pools=tuple(pools))
