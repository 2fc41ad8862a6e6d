"""Which units belong to which nodes."""

from dataclasses import dataclass

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.units.nodesets import NodeSet


@dataclass(frozen=True, slots=True)
class Places:
    """Nodes and units of a machine, both numbered from 0.

    Parameters
    ----------
    pools
        (first node, number of nodes, first unit, units per node) of each pool.
    """

    pools: tuple[tuple[int, int, int, int], ...]
    #: whether each node is one unit
    same: bool

    @classmethod
    def of(cls, platform: Platform) -> "Places":
        """Return those of a machine."""
        pools = []
        node = unit = 0
        for pool in platform.pools:
            pools.append((node, pool.nodes, unit, pool.units_per_node))
            node += pool.nodes
            unit += pool.units
        return cls(tuple(pools), all(each == 1 for _, _, _, each in pools))

    def units_of(self, nodes: NodeSet) -> NodeSet:
        """Return the units of some nodes."""
        if self.same:
            return nodes
        found: list[tuple[int, int]] = []
        for first_node, count, first_unit, each in self.pools:
            for low, high in (nodes & NodeSet.interval(first_node, first_node + count - 1)).intervals:
                begin = first_unit + (low - first_node) * each
                found.append((begin, begin + (high - low + 1) * each - 1))
        return NodeSet(found)

    def nodes_of(self, units: NodeSet) -> NodeSet:
        """Return the nodes that have at least one of some units."""
        if self.same:
            return units
        found = NodeSet.EMPTY
        for first_node, count, first_unit, each in self.pools:
            for low, high in (units & NodeSet.interval(first_unit, first_unit + count * each - 1)).intervals:
                found |= NodeSet.interval(
                    first_node + (low - first_unit) // each, first_node + (high - first_unit) // each
                )
        return found
