"""All units of a machine as a line: the order in which jobs get them.

Placements take units from the line's beginning or from its end.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.orders import node_order
from pipistrelle.schedulers.policy.errors import PolicyError


class Line(NamedTuple):
    """All units of a machine in the order in which jobs get them.

    Attributes:
        units: the unit at each position, shape (units,).
        nodes: the node at each position, shape (units,).
        position: the position of each unit, shape (units,).
        first_kind: number of positions, from the beginning, whose nodes are used before all others.
    """

    units: NDArray[np.intp]
    nodes: NDArray[np.intp]
    position: NDArray[np.intp]
    first_kind: int

    @classmethod
    def of(cls, machine: Machine, order: str) -> "Line":
        """Return all units of a machine, sorted by the `node_order` of their nodes.

        ``order`` names this order. The units of a node are adjacent.
        """
        nodes: list[NDArray[np.intp]] = []
        for first, count, _, each in machine.numbering.pools:
            nodes.append(np.repeat(np.arange(first, first + count, dtype=np.intp), each))
        node_of = np.concatenate(nodes)  # pools have ascending unit numbers
        rank = np.empty(len(machine.nodes), dtype=np.intp)
        rank[node_order(order, machine)] = np.arange(len(rank))
        units = np.argsort(rank[node_of], kind="stable")
        return cls._of(units, node_of[units], len(units))

    @classmethod
    def _of(cls, units: NDArray[np.intp], nodes: NDArray[np.intp], first_kind: int) -> "Line":
        position = np.empty_like(units)
        position[units] = np.arange(len(units))
        return cls(units, nodes, position, first_kind)

    def by_age(self, stable: NDArray[np.bool_]) -> "Line":
        """Return a line with the stable nodes first.

        Apart from that, the order is unchanged. ``stable`` says which nodes are stable, shape (nodes,).
        """
        first = stable[self.nodes]
        at = np.concatenate((np.flatnonzero(first), np.flatnonzero(~first)))
        return self._of(self.units[at], self.nodes[at], int(first.sum()))

    def turned(self) -> "Line":
        """Return a line with the same units in reverse order."""
        count = len(self.units)
        rest = count - self.first_kind
        return self._of(self.units[::-1].copy(), self.nodes[::-1].copy(), rest or count)


def stable_nodes(machine: Machine) -> NDArray[np.bool_]:
    """Return for each node whether it is stable: expected to fail less than others.

    The result has shape (nodes,). Raise PolicyError if it is unknown which nodes are stable.
    """
    found = machine.nodes.stable
    if found is None:
        raise PolicyError(
            "it is unknown which nodes of the machine are stable",
            where="--age-aware",
            expected="a class 'new' or 'stable', or the MTTF or the age of nodes",
            hint="Set it in the platform's file or by --node-table; see 'pipistrelle help placement'.",
        )
    return found
