"""Units counted by nodes: how many of some units each node has, and units of which a node has a given number."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.events import PoolInfo
from pipistrelle.protocol.units.indices import numbers, set_of
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

    def fill(
        self, units: NodeSet, each: int, size: int, choose: ChooseNodes, *, together: bool = False
    ) -> NodeSet | None:
        """Return ``size`` of ``units``, ``each`` of them on a node and the rest on one more; None if there are none.

        ``choose`` picks the nodes, that of the rest last, or ``together`` with the others where it may refuse them; the
        lowest units of a node are taken.
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
        """Return of each node so many of ``units``, the lowest; it has as many. ``wanted`` is by node, (nodes,)."""
        there = numbers(units)
        node = self.node[there]
        # Units ascend, and so do their nodes: the place of a unit among those of its node is that behind the first.
        behind = np.arange(len(there)) - np.searchsorted(node, node, side="left")
        return set_of(there[behind < wanted[node]])


def lowest_nodes(count: int, able: Ints, free: Ints) -> Ints:
    """Return the lowest of some nodes."""
    return able[:count]


def _with_one_less(free: Ints, count: int, each: int, rest: int, choose: ChooseNodes) -> Ints | None:
    """Return nodes of which all, or all but one, have ``each`` open units, and that one ``rest``; None if refused."""
    able, short = free >= each, np.flatnonzero((free >= rest) & (free < each))
    nodes = choose(count, np.flatnonzero(able), free) if int(able.sum()) >= count else None
    if nodes is None and len(short):
        nodes = choose(count, np.flatnonzero(free >= rest), free)
        if nodes is None or int((free[nodes] < each).sum()) <= 1:
            return nodes
        found = (choose(count, np.sort(np.append(np.flatnonzero(able), one)), free) for one in short.tolist())
        nodes = next((some for some in found if some is not None), None)
    return nodes
