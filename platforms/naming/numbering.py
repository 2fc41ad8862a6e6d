"""The numbering of a machine's nodes and units."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.events import PoolInfo
from pipistrelle.protocol.units.nodesets import NodeSet


@dataclass(frozen=True, slots=True)
class NodeUnits:
    """The mapping between a machine's nodes and units, both numbered from 0.

    Args:
        pools: (first node, number of nodes, first unit, units per node) of each pool.
    """

    pools: tuple[tuple[int, int, int, int], ...]
    #: whether each node is one unit
    same: bool

    @classmethod
    def told(cls, pools: Sequence[PoolInfo]) -> "NodeUnits":
        """Return the mapping between nodes and units for the pools of a machine.

        The server sent these pools to a scheduler.

        Raises:
            PlatformError: if a pool's nodes or units are not consecutive, or their numbers do not match.
        """
        found = []
        for pool in pools:
            nodes, units = NodeSet.parse(pool.nodes), NodeSet.parse(pool.units)
            if len(nodes.intervals) != 1 or len(units.intervals) != 1 or len(units) != len(nodes) * pool.units_per_node:
                raise PlatformError(
                    "a pool's nodes and units do not match",
                    where=f"pool {pool.name}",
                    expected=f"consecutive nodes with {pool.units_per_node} consecutive units each",
                    found=f"nodes {pool.nodes}, units {pool.units}",
                )
            found.append((nodes.first, len(nodes), units.first, pool.units_per_node))
        same = all(each == 1 and node == unit for node, _, unit, each in found)
        return cls(tuple(found), same)

    def units_per_node(self, nodes: int) -> NDArray[np.int64]:
        """Return the number of units of each node, shape (nodes,).

        The machine has `nodes` nodes.
        """
        found = np.ones(nodes, dtype=np.int64)
        for first, count, _, each in self.pools:
            found[first : first + count] = each
        return found

    def units_of(self, nodes: NodeSet) -> NodeSet:
        """Return all units of these nodes."""
        if self.same:
            return nodes
        found: list[tuple[int, int]] = []
        for first_node, count, first_unit, each in self.pools:
            for low, high in (nodes & NodeSet.interval(first_node, first_node + count - 1)).intervals:
                begin = first_unit + (low - first_node) * each
                found.append((begin, begin + (high - low + 1) * each - 1))
        return NodeSet(found)

    def nodes_of(self, units: NodeSet) -> NodeSet:
        """Return the nodes that have at least one of these units."""
        if self.same:
            return units
        found = NodeSet.EMPTY
        for first_node, count, first_unit, each in self.pools:
            for low, high in (units & NodeSet.interval(first_unit, first_unit + count * each - 1)).intervals:
                found |= NodeSet.interval(
                    first_node + (low - first_unit) // each, first_node + (high - first_unit) // each
                )
        return found
