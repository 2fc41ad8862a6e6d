"""Placements that look at what is free on each node: on as few nodes as can be, or on as many."""

import numpy as np

from pipistrelle.platforms.requests.node_counts import Ints
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class Pack:
    """As few nodes as can be, and of those that will do the ones with the fewest open units; of equals the lowest.

    The nodes with the most open units are taken whole as long as no node has enough for the rest.
    """

    fits_by_count = True

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return units of few nodes, None if there are too few."""
        if job.size > len(open_units):
            return None
        counts = machine.requests.counts
        free = counts.of(open_units)
        most_first = np.argsort(-free, kind="stable")
        filled = np.cumsum(free[most_first])
        whole = most_first[: int(np.searchsorted(filled, job.size))]
        rest = job.size - int(free[whole].sum())
        others = most_first[len(whole) :]
        enough = others[free[others] >= rest]
        wanted = np.zeros(len(free), dtype=np.intp)
        wanted[whole] = free[whole]
        wanted[enough[np.lexsort((enough, free[enough]))[0]]] = rest
        return counts.take(open_units, wanted)

    def pick_nodes(self, count: int, able: Ints, free: Ints) -> Ints:
        """Return the nodes with the fewest open units."""
        found: Ints = able[np.argsort(free[able], kind="stable")[:count]]
        return found


class Spread:
    """As many nodes as can be: a unit of each in turn, those with the most open units first; of equals the lowest."""

    fits_by_count = True

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return units of many nodes, None if there are too few."""
        if job.size > len(open_units):
            return None
        counts = machine.requests.counts
        free = counts.of(open_units)
        low, high = 0, int(free.max())  # how many rounds leave no unit too many
        while low < high:
            middle = (low + high + 1) // 2
            if int(np.minimum(free, middle).sum()) <= job.size:
                low = middle
            else:
                high = middle - 1
        wanted = np.minimum(free, low)
        more = np.flatnonzero(free > low)
        wanted[self.pick_nodes(job.size - int(wanted.sum()), more, free)] += 1
        return counts.take(open_units, wanted)

    def pick_nodes(self, count: int, able: Ints, free: Ints) -> Ints:
        """Return the nodes with the most open units."""
        found: Ints = able[np.argsort(-free[able], kind="stable")[:count]]
        return found
