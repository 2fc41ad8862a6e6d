"""Units counted by nodes: how many of some units each node has, and units of which a node has a given number."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.topology.numbering import NodeUnits
from pipistrelle.protocol.events import PoolInfo
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet

Ints = NDArray[np.intp]
#: picks so many of some nodes (ascending), at least as many, by how many units of each are open; None: it refuses
ChooseNodes = Callable[[int, Ints, Ints], Ints | None]


class NodeCounts:
    """A machine's nodes as arrays.

    Parameters
    ----------
    pools
        of the machine, as the server tells of them.

    Raises
    ------
    PlatformError
        if a pool's nodes and units do not go together.
    """

    def __init__(self, pools: Sequence[PoolInfo]) -> None:
        told = NodeUnits.told(pools).pools
        #: how many units each node has, shape (nodes,)
        self.each: Ints = np.repeat(
            np.array([each for _, _, _, each in told], dtype=np.intp), [count for _, count, _, _ in told]
        )
        #: the node of each unit, shape (units,)
        self.node: Ints = np.repeat(np.arange(len(self.each), dtype=np.intp), self.each)

    def of(self, units: NodeSet) -> Ints:
        """Return how many of ``units`` each node has, shape (nodes,)."""
        if not units:
            return np.zeros(len(self.each), dtype=np.intp)
        return np.bincount(self.node[numbers(units)], minlength=len(self.each)).astype(np.intp, copy=False)

    def fill(self, units: NodeSet, each: int, size: int, choose: ChooseNodes) -> NodeSet | None:
        """Return ``size`` of ``units``, ``each`` of them on a node and the rest on one more; None if there are none.

        ``choose`` picks the nodes, those of the rest last; of a node the lowest units are taken.
        """
        free = self.of(units)
        full, rest = divmod(size, each)
        able = np.flatnonzero(free >= each)
        if len(able) < full or (rest and int((free >= rest).sum()) <= full):
            return None
        wanted = np.zeros(len(free), dtype=np.intp)
        for count, on_each in ((full, each), (1, rest)):
            if count and on_each:
                nodes = choose(count, np.flatnonzero((free >= on_each) & (wanted == 0)), free)
                if nodes is None:
                    return None
                wanted[nodes] = on_each
        return self.take(units, wanted)

    def take(self, units: NodeSet, wanted: Ints) -> NodeSet:
        """Return of each node so many of ``units``, the lowest; it has as many. ``wanted`` is by node, (nodes,)."""
        there = numbers(units)
        node = self.node[there]
        # Units ascend, and so do their nodes: the place of a unit among those of its node is that behind the first.
        behind = np.arange(len(there)) - np.searchsorted(node, node, side="left")
        return set_of(there[behind < wanted[node]])


def lowest_nodes(count: int, able: Ints, free: Ints) -> Ints:
    """Return the lowest of some nodes."""
    return able[:count]


def set_of(units: Ints) -> NodeSet:
    """Return the set of some units, ascending, shape (units,)."""
    if not len(units):
        return NodeSet.EMPTY
    breaks = np.flatnonzero(np.diff(units) > 1)
    lows = units[np.concatenate([[0], breaks + 1])].tolist()
    highs = units[np.concatenate([breaks, [len(units) - 1]])].tolist()
    return NodeSet(zip(lows, highs, strict=True))
