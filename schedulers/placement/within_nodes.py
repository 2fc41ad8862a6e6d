"""Placements that use as few or as many nodes as possible."""

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.requests.node_counts import Ints
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.placement.ordered import InLine, LineOptions, Positions
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class WithinNodes(InLine):
    """Base class of placements that choose nodes by their number of free units."""

    def __init__(self, options: LineOptions | None = None) -> None:
        super().__init__(options or LineOptions())
        #: open units of each node, during `pick_nodes`
        self._free_on: Ints | None = None

    def pick_nodes(self, job: SchedulerJob, able: NodeSet, free: Ints, machine: Machine) -> NodeSet | None:
        """Return the nodes that each give a job one unit; None to refuse the job.

        They are picked from ``able``, as many as ``job.size``. ``free`` is the number of open units per node.
        ``machine`` describes each node as one unit.
        """
        self._free_on = free
        try:
            return self.pick(job, able, machine)
        finally:
            self._free_on = None

    def _choose(self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine) -> Positions | None:
        at = np.flatnonzero(open_at)
        node = line.nodes[at]
        if self._free_on is not None:
            return at[self._first(self._free_on[node], at >= line.first_kind)[: job.size]]
        # The units of a node are adjacent in the line.
        begins = np.flatnonzero(np.concatenate(([True], node[1:] != node[:-1])))
        free = np.diff(np.append(begins, len(at)))
        wanted = self._wanted(job.size, free, at[begins] >= line.first_kind)
        return at[np.arange(len(at)) - np.repeat(begins, free) < np.repeat(wanted, free)]

    def _first(self, free: Ints, later: NDArray[np.bool_]) -> Ints:
        """Return nodes in the order in which a job with units per node takes them.

        A node's number is its position in the machine's `Line`. Ties are broken by position.

        Args:
            free: number of open units of each node, at least 1.
            later: which nodes come after all others.
        """
        raise NotImplementedError

    def _wanted(self, size: int, free: Ints, later: NDArray[np.bool_]) -> Ints:
        """Return how many units a job without units per node takes of each node.

        The result has shape (nodes,), in the order of ``free``, and adds up to ``size``. The arguments are as in
        `_first`.
        """
        raise NotImplementedError


class Pack(WithinNodes):
    """The placement ``pack``: units on as few nodes as possible.

    The nodes with the most free units are used whole, until one node has enough for the rest. The rest comes from the
    node with the fewest free units among those that have enough.
    """

    def _first(self, free: Ints, later: NDArray[np.bool_]) -> Ints:
        return np.lexsort((free, later))

    def _wanted(self, size: int, free: Ints, later: NDArray[np.bool_]) -> Ints:
        most_first = np.lexsort((-free, later))
        whole = most_first[: int(np.searchsorted(np.cumsum(free[most_first]), size))]
        rest = size - int(free[whole].sum())
        enough = np.sort(most_first[len(whole) :][free[most_first[len(whole) :]] >= rest])
        wanted = np.zeros(len(free), dtype=np.intp)
        wanted[whole] = free[whole]
        wanted[enough[self._first(free[enough], later[enough])[0]]] = rest
        return wanted


class Spread(WithinNodes):
    """The placement ``spread``: units on as many nodes as possible.

    Each round takes one unit of each node. In the last round, nodes with the most free units come first.
    """

    def _first(self, free: Ints, later: NDArray[np.bool_]) -> Ints:
        return np.lexsort((-free, later))

    def _wanted(self, size: int, free: Ints, later: NDArray[np.bool_]) -> Ints:
        wanted = np.zeros(len(free), dtype=np.intp)
        for kind in (~later, later):
            (nodes,) = kind.nonzero()
            among = min(size, int(free[nodes].sum()))
            wanted[nodes] = self._rounds(among, free[nodes])
            size -= among
        return wanted

    def _rounds(self, size: int, free: Ints) -> Ints:
        """Return how many units to take of each node, to use nodes as evenly as possible.

        Each round takes one unit per node. The numbers, shape (nodes,), add up to ``size`` units, or to all free units
        if there are fewer.
        """
        low, high = 0, int(free.max(initial=0))  # number of complete rounds
        while low < high:
            middle = (low + high + 1) // 2
            if int(np.minimum(free, middle).sum()) <= size:
                low = middle
            else:
                high = middle - 1
        wanted = np.minimum(free, low)
        (more,) = (free > low).nonzero()
        wanted[more[np.argsort(-free[more], kind="stable")[: size - int(wanted.sum())]]] += 1
        return wanted
