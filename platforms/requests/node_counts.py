"""Count units by node, and choose units with a given number on each node."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.events import PoolInfo
from pipistrelle.protocol.units.indices import numbers, set_of
from pipistrelle.protocol.units.nodesets import NodeSet

Ints = NDArray[np.intp]
#: a function (count, candidate nodes ascending, free units of each node) -> chosen nodes, or None to refuse
ChooseNodes = Callable[[int, Ints, Ints], Ints | None]


class NodeCounts:
    """The number of units of each node of a machine, and the node of each unit.

    Raises:
        PlatformError: if a pool's nodes and units do not match.
    """

    def __init__(self, pools: Sequence[PoolInfo]) -> None:
        told = NodeUnits.told(pools).pools
        #: the number of units of each node, shape (nodes,)
        self.each: Ints = np.repeat(
            np.array([each for _, _, _, each in told], dtype=np.intp), [count for _, count, _, _ in told]
        )
        #: the node of each unit, shape (units,)
        self.node: Ints = np.repeat(np.arange(len(self.each), dtype=np.intp), self.each)

    def of(self, units: NodeSet) -> Ints:
        """Return how many of ``units`` are on each node, shape (nodes,)."""
        if not units:
            return np.zeros(len(self.each), dtype=np.intp)
        return np.bincount(self.node[numbers(units)], minlength=len(self.each)).astype(np.intp, copy=False)

    def fill(
        self, units: NodeSet, each: int, size: int, choose: ChooseNodes, *, together: bool = False
    ) -> NodeSet | None:
        """Choose units for a job, with the same number on each node.

        Return None if that is impossible. The lowest units of each node are chosen. If ``each`` does not divide
        ``size``, one more node has the remaining units.

        Args:
            units: the free units.
            each: the number of units to choose on each node.
            size: the number of units of the job.
            choose: picks the nodes; a second call picks the node with the remaining units.
            together: call ``choose`` only once, for all nodes, so that it can refuse them as a whole.
        """
        free = self.of(units)
        full, rest = divmod(size, each)
        if int((free >= each).sum()) < full or (rest and int((free >= rest).sum()) <= full):
            return None
        wanted = np.zeros(len(free), dtype=np.intp)
        if together and full and rest:
            nodes = _with_one_less(free, full + 1, each, rest, choose)
            if nodes is None:
                return None
            wanted[nodes] = each
            short = nodes[free[nodes] < each]
            wanted[short if len(short) else nodes.max()] = rest
            return self.take(units, wanted)
        for count, on_each in ((full, each), (1, rest)):
            if count and on_each:
                found = choose(count, np.flatnonzero((free >= on_each) & (wanted == 0)), free)
                if found is None:
                    return None
                wanted[found] = on_each
        return self.take(units, wanted)

    def take(self, units: NodeSet, wanted: Ints) -> NodeSet:
        """Return a set with the lowest units of each node.

        Args:
            units: the units to choose from.
            wanted: how many units to choose on each node, at most as many as ``units`` has there, shape (nodes,).
        """
        there = numbers(units)
        node = self.node[there]
        # Units and their nodes ascend, so a unit's rank in its node is its distance from the first unit of the node.
        behind = np.arange(len(there)) - np.searchsorted(node, node, side="left")
        return set_of(there[behind < wanted[node]])


def lowest_nodes(count: int, able: Ints, free: Ints) -> Ints:
    """Return the first ``count`` nodes of ``able``; ``free`` is ignored."""
    return able[:count]


def _with_one_less(free: Ints, count: int, each: int, rest: int, choose: ChooseNodes) -> Ints | None:
    """Choose ``count`` nodes with ``each`` free units.

    One of them may have only ``rest``. Return None if impossible.
    """
    able, short = free >= each, np.flatnonzero((free >= rest) & (free < each))
    nodes = choose(count, np.flatnonzero(able), free) if int(able.sum()) >= count else None
    if nodes is None and len(short):
        nodes = choose(count, np.flatnonzero(free >= rest), free)
        if nodes is None or int((free[nodes] < each).sum()) <= 1:
            return nodes
        found = (choose(count, np.sort(np.append(np.flatnonzero(able), one)), free) for one in short.tolist())
        nodes = next((some for some in found if some is not None), None)
    return nodes
