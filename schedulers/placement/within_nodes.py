"""Placements that look at what is free on each node: on as few nodes as can be, or on as many."""

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.requests.node_counts import Ints
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.placement.ordered import InLine, LineOptions, Positions
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class WithinNodes(InLine):
    """Takes units by how many are open on their nodes; derived ones say which nodes come first."""

    def __init__(self, options: LineOptions | None = None) -> None:
        super().__init__(options or LineOptions())
        #: while nodes are picked, how many open units each has
        self._free_on: Ints | None = None

    def pick_nodes(self, job: SchedulerJob, able: NodeSet, free: Ints, machine: Machine) -> NodeSet | None:
        """Return as many of the nodes ``able`` as the job has units, by how many are ``free`` on each; None: refused.

        ``machine`` has nodes for units.
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
        # The units of a node stand together in the line.
        begins = np.flatnonzero(np.concatenate(([True], node[1:] != node[:-1])))
        free = np.diff(np.append(begins, len(at)))
        wanted = self._wanted(job.size, free, at[begins] >= line.first_kind)
        return at[np.arange(len(at)) - np.repeat(begins, free) < np.repeat(wanted, free)]

    def _first(self, free: Ints, later: NDArray[np.bool_]) -> Ints:
        """Return nodes, by their places in the line, in the order in which they are taken for jobs by nodes.

        ``free`` units are open on each, more than none; those that are ``later`` are taken after all others; of equals
        the first in the line.
        """
        raise NotImplementedError

    def _wanted(self, size: int, free: Ints, later: NDArray[np.bool_]) -> Ints:
        """Return how many units of each node make ``size``, for a job that does not say how many it wants on each."""
        raise NotImplementedError


class Pack(WithinNodes):
    """As few nodes as can be, and of those that will do the ones with the fewest open units.

    The nodes with the most open units are taken whole as long as no node has enough for the rest.
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
    """As many nodes as can be: a unit of each in turn, those with the most open units first."""

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
        """Return how many units of each node make ``size``, of at least as many."""
        low, high = 0, int(free.max(initial=0))  # how many rounds leave no unit too many
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
