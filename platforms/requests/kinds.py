"""Kinds of nodes: pools, taken apart where groups of nodes say otherwise of some of them."""

from collections.abc import Sequence

from msgspec.structs import replace

from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.events import NodeGroupInfo, PoolInfo
from pipistrelle.protocol.units.nodesets import NodeSet


def kinds_of(pools: Sequence[PoolInfo], groups: Sequence[NodeGroupInfo]) -> tuple[PoolInfo, ...]:
    """Return the pools as parts whose nodes have one class and the same properties each.

    A part has the name of its pool; its nodes need not be consecutive. MTTFs and ages make no parts.

    Raises
    ------
    PlatformError
        if a pool's nodes and units do not go together.
    """
    telling = [group for group in groups if group.node_class or group.properties]
    if not telling:
        return tuple(pools)
    kinds = [(pool, NodeSet.parse(pool.nodes)) for pool in pools]
    for group in telling:
        members = NodeSet.parse(group.nodes)
        parts: dict[tuple[object, ...], tuple[PoolInfo, NodeSet]] = {}
        for kind, nodes in kinds:
            changed = replace(
                kind,
                node_class=group.node_class or kind.node_class,
                properties=kind.properties | group.properties,
            )
            for part, some in ((kind, nodes - members), (changed, nodes & members)):
                if some:
                    key = (
                        part.name,
                        part.node_class,
                        *sorted((name, repr(one)) for name, one in part.properties.items()),
                    )
                    known = parts.get(key)
                    parts[key] = (part, some) if known is None else (known[0], known[1] | some)
        kinds = list(parts.values())
    numbering = NodeUnits.told(pools)
    return tuple(replace(kind, nodes=str(nodes), units=str(numbering.units_of(nodes))) for kind, nodes in kinds)
