"""The placement that keeps a job's nodes close together."""

from typing import Annotated, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.schedulers.placement.contiguous import BestFit
from pipistrelle.schedulers.placement.lines import Line
from pipistrelle.schedulers.placement.ordered import LineOptions, Positions
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: hops, more than between any two nodes
_FAR: Final = 1 << 40


class CompactOptions(LineOptions, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the placement ``compact``: the number of centres to try."""

    centres: Annotated[int, Meta(ge=1)] = 16


class Compact(BestFit):
    """The placement ``compact``: nodes that are few network hops apart on average.

    It compares several sets of units and picks the one with the fewest mean hops over all pairs of nodes. One set is
    the choice of ``best-fit``. Each other set has the units nearest to one centre. The centres are open units, evenly
    spaced along the line (the order of all units). Ties go to the unit that comes first in the line. If every open node
    is a centre, the mean hops are less than twice the optimum (Krumke et al., "Compact location problems", 1997).
    """

    def __init__(self, options: CompactOptions | None = None) -> None:
        options = options or CompactOptions()
        super().__init__(options)
        self._centres = options.centres

    def _choose(self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine) -> Positions | None:
        best = super()._choose(job, open_at, line, machine)
        topology = machine.topology
        if best is None or job.size == 1 or topology.kind == "flat":
            return best
        at = np.flatnonzero(open_at)
        first = int(np.searchsorted(at, line.first_kind))
        nodes = line.nodes[at]
        hops = np.inf
        if job.size <= first or first in (0, len(at)):  # else best-fit may use more of the other kind than needed
            hops = topology.mean_hops(line.nodes[best])
        among = first or len(at)
        if job.size <= first:
            at, nodes = at[:first], nodes[:first]
        for place in np.unique(np.linspace(0, among - 1, self._centres).astype(np.intp)):
            distances = topology.distance(nodes[place], nodes)
            if first < job.size:  # all of the first kind, and the nearest of the other kind
                distances = np.where(np.arange(len(at)) < first, distances - _FAR, distances)
            near = _nearest(distances, job.size)
            found = topology.mean_hops(nodes[near])
            if found < hops:
                best, hops = at[near], found
        return best


def _nearest(distances: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return the indices of the ``count`` smallest distances.

    Of equal distances, those with the lowest indices are chosen.
    """
    farthest = np.partition(distances, count - 1)[count - 1]
    nearer = np.flatnonzero(distances < farthest)
    return np.concatenate((nearer, np.flatnonzero(distances == farthest)[: count - len(nearer)]))
