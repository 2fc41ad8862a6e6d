"""The table of nodes: what server and scheduler know of each node."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform, Property
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import names_in_order
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.topology.topology import Topology, topology_of
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, shown
from pipistrelle.protocol.events import NodeGroupInfo, PlatformInfo, PoolInfo, TopologyInfo
from pipistrelle.protocol.units.nodesets import NodeSet

#: classes of stable nodes, whatever their other values
_STABLE_CLASSES = ("stable", "new")


class NodeTable:
    """The nodes of a machine, one column for each kind of value; row n is node n.

    Args:
        pools, topology, groups: from the server's description. Without a topology the network is flat.

    Raises:
        PlatformError: if a pool's nodes, units or names do not match, the topology does not match the nodes, or a group
            has nodes that do not exist.
    """

    def __init__(
        self,
        pools: Sequence[PoolInfo],
        topology: TopologyInfo | None = None,
        groups: Sequence[NodeGroupInfo] = (),
    ) -> None:
        self._pools = pools
        numbers = NodeUnits.told(pools).pools
        ranges = [NodeSet.interval(first, first + count - 1) for first, count, _, _ in numbers]
        total = sum(count for _, count, _, _ in numbers)
        #: names of the pools
        self.pools: tuple[str, ...] = tuple(pool.name for pool in pools)
        #: the index in ``pools`` of each node's pool, shape (nodes,)
        self.pool: NDArray[np.intp] = _column(total, 0, zip(ranges, range(len(pools)), strict=True))
        #: pools and groups with their nodes; later ones override earlier ones
        self._said: list[tuple[NodeSet, PoolInfo | NodeGroupInfo]] = list(zip(ranges, pools, strict=True))
        self._said += [(_nodes_of(group, total), group) for group in groups]
        #: names of the classes of nodes; the first, "", is for nodes without a class
        self.classes: tuple[str, ...] = tuple(dict.fromkeys(["", *(said.node_class for _, said in self._said)]))
        classes = [(nodes, self.classes.index(said.node_class)) for nodes, said in self._said if said.node_class]
        ages = [(nodes, said.age) for nodes, said in self._said if said.age is not None]
        mttfs = [(nodes, said.mttf) for nodes, said in self._said if said.mttf is not None]
        #: the index in ``classes`` of each node's class, shape (nodes,)
        self.node_class: NDArray[np.intp] = _column(total, 0, classes)
        #: each node's time in service at time 0 (s), NaN if unknown, shape (nodes,)
        self.age: NDArray[np.float64] = _column(total, nan, ages)
        #: each node's mean time to failure (s), NaN if unknown, shape (nodes,)
        self.mttf: NDArray[np.float64] = _column(total, nan, mttfs)
        #: the network, with the place of each node
        self.topology: Topology = topology_of(topology, total)

    @classmethod
    def of(cls, platform: PlatformInfo) -> "NodeTable":
        """Return the table of nodes of a machine that the server describes."""
        return cls(platform.pools, platform.topology, platform.groups)

    @property
    def place(self) -> NDArray[np.intp]:
        """Coordinates of each node's router, shape (nodes, dimensions).

        In a flat network the only coordinate is the node's number.
        """
        return self.topology.place

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def named(self) -> bool:
        """Whether nodes have names."""
        return bool(self.topology.info.names) or any(pool.names for pool in self._pools)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Each node's name.

        It comes from the pattern of the node's pool. Without a pattern, it is the name of the node's position in the
        topology, or else the node's number.
        """
        counts = np.bincount(self.pool, minlength=len(self.pools)).tolist()
        pools = [(pool.name, pool.names, count) for pool, count in zip(self._pools, counts, strict=True)]
        return names_in_order(pools, self.topology.names)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def number(self, name: str, where: str | None = None) -> int:
        """Return the number of the node called `name`; PlatformError if it is unknown."""
        number = self._numbers.get(name)
        if number is None:
            raise PlatformError(
                f"there is no node {shown(name)}", where=where, hint=did_you_mean(name, list(self._numbers))
            )
        return number

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of all properties of nodes, in the order of first occurrence."""
        return tuple(dict.fromkeys(key for _, said in self._said for key in said.properties))

    def with_property(self, key: str) -> dict[Property, NodeSet]:
        """Return {value: nodes with this value} of a property."""
        found: dict[Property, NodeSet] = {}
        for nodes, said in self._said:
            if key in said.properties:
                found = {value: others - nodes for value, others in found.items()}
                value = said.properties[key]
                found[value] = found.get(value, NodeSet.EMPTY) | nodes
        return {value: nodes for value, nodes in found.items() if nodes}

    @cached_property
    def stable(self) -> NDArray[np.bool_] | None:
        """Which nodes are stable, shape (nodes,); None if that is unknown.

        Nodes of class ``stable`` or ``new`` are stable. If there are no such nodes, the stable nodes are those with a
        failure rate (1 / MTTF) below the mean of the known rates. If no MTTF is known, the stable nodes are those
        younger than the mean of the known ages. In both cases, a node whose value is unknown is not stable.
        """
        named = [number for number, name in enumerate(self.classes) if name in _STABLE_CLASSES]
        if named:
            return np.isin(self.node_class, named)
        for badness in (1.0 / self.mttf, self.age):
            known = ~np.isnan(badness)
            if known.any():
                found: NDArray[np.bool_] = known & (badness < badness[known].mean())
                return found
        return None


def _column(rows: int, default: float, said: Iterable[tuple[NodeSet, float]]) -> NDArray[Any]:
    """Return one value per node.

    It is the last value that ``said`` gives for the node, or ``default``. A constant column takes no memory.
    """
    column = np.broadcast_to(np.asarray(default), rows)
    for nodes, value in said:
        if len(nodes) == rows:
            column = np.broadcast_to(np.asarray(value, dtype=column.dtype), rows)
            continue
        if not column.flags.writeable:
            column = column.copy()
        for low, high in nodes.intervals:
            column[low : high + 1] = value
    return column


def _nodes_of(group: NodeGroupInfo, nodes: int) -> NodeSet:
    try:
        found = NodeSet.parse(group.nodes)
    except PipistrelleError as error:
        raise error.at("groups", PlatformError) from None
    if found and found.last >= nodes:
        raise PlatformError(
            "a group has nodes that do not exist",
            where="groups",
            expected=f"nodes from 0 to {nodes - 1}",
            found=shown(group.nodes),
        )
    return found


def numbers_by_name(platform: Platform) -> dict[str, int]:
    """Return {name: number} of a machine's nodes, empty if they have no names."""
    nodes = NodeTable.of(platform.info)
    return {name: number for number, name in enumerate(nodes.names)} if nodes.named else {}
