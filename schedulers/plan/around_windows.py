"""Ramp-down: which free units are open to a job, and the reservation of the first, while there are windows."""

from math import inf
from typing import NamedTuple

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.slices import end_of
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class UnitReservation(NamedTuple):
    """When a job can start at the latest: ``shadow`` (s; inf if no one can tell), and ``units`` it can have then."""

    shadow: float
    units: NodeSet


class OpenUnits:
    """The free units by the jobs that may start on them now, while the view is asked about one instant."""

    def __init__(self, view: View, placement: Placement) -> None:
        self._view = view
        self._placement = placement
        self._free: NodeSet | None = None
        #: {units closed to some jobs: free units without them}
        self._open: dict[NodeSet, NodeSet] = {}

    def to(self, job: SchedulerJob) -> NodeSet:
        """Return the free units on which a job would run into no window; too few if it does not fit."""
        free = self._free
        if free is None:
            free = self._free = self._view.free.snapshot()
        if job.size > len(free):
            return NodeSet.EMPTY
        closed = self._view.closed(job)
        if not closed:
            return free
        found = self._open.get(closed)
        if found is None:
            found = self._open[closed] = free - closed
        return found

    def pick(self, job: SchedulerJob, units: NodeSet) -> NodeSet | None:
        """Return the units that the placement picks for a job among ``units``, None if there are none for it."""
        return self._placement.pick(job, units, self._view.machine) if job.size <= len(units) else None

    def start(self, job: SchedulerJob, alloc: NodeSet, why: str | None = None) -> None:
        """Start a job now on free units."""
        self._view.free.remove(alloc)
        self._view.start(job, alloc, why)
        self._free = None
        self._open.clear()

    def start_in_order(self) -> SchedulerJob | None:
        """Start the first job again and again as long as it fits; return the one that does not."""
        waiting = self._view.waiting
        while (first := waiting.first) is not None:
            alloc = self.pick(first, self.to(first))
            if alloc is None:
                break
            self.start(first, alloc)
        return first

    def start_all(self) -> None:
        """Start every job that fits, in the order of the queue."""
        for job in list(self._view.waiting):
            alloc = self.pick(job, self.to(job))
            if alloc is not None:
                self.start(job, alloc)

    def is_first(self, job: SchedulerJob) -> bool:
        """Tell whether a job is the first in the queue."""
        return job is self._view.waiting.first

    def reserve(self, job: SchedulerJob) -> UnitReservation:
        """Return the reservation of a job that does not fit now, among the units that will be open."""
        return reserve(self._view, job, self._placement)

    def pass_over(self, first: SchedulerJob, jobs: list[SchedulerJob]) -> None:
        """Start those of ``jobs``, in their order, that do not delay ``first``, which does not fit now."""
        view = self._view
        shadow: float | None = None
        reserved = NodeSet.EMPTY
        #: {identity of a set of open units, which lives until the next start: how many of them are not reserved}
        beside_count: dict[int, int] = {}
        for job in jobs:
            units = self.to(job)
            if job is first or len(units) < job.size:
                continue
            if shadow is None:  # not before somebody asks
                shadow, reserved = self.reserve(first)
            late = view.now + job.occupies > shadow
            if not late:
                alloc = self.pick(job, units)
            elif not self._placement.fits_by_count:
                alloc = self._beside(job, units, first, reserved)
            else:
                # Most do not pass: find out without looking at single units again and again.
                found = beside_count.get(id(units))
                if found is None:
                    found = beside_count[id(units)] = len(units - reserved)
                if job.size - found > len(reserved) - first.size:
                    continue
                alloc = self._by_count(job, units, first, reserved)
            if alloc is None:
                continue
            if late:
                reserved -= alloc
            self.start(job, alloc, f"backfilled before {first.id}")
            beside_count.clear()

    def _by_count(self, job: SchedulerJob, units: NodeSet, first: SchedulerJob, reserved: NodeSet) -> NodeSet | None:
        """Return units for a job that stays beyond the shadow time, of which enough of the reserved are left."""
        alloc = self.pick(job, units)
        if alloc is None or len(alloc & reserved) <= len(reserved) - first.size:
            return alloc
        beside = units - reserved
        missing = job.size - len(beside)
        if missing <= 0:
            return self.pick(job, beside)
        return beside | FreeUnits(units & reserved).take_lowest(missing)

    def _beside(self, job: SchedulerJob, units: NodeSet, first: SchedulerJob, reserved: NodeSet) -> NodeSet | None:
        """Return units for a job that stays beyond the shadow time, so that the placement still finds the first's."""
        alloc = self.pick(job, units)
        if alloc is None or self.pick(first, reserved - alloc) is not None:
            return alloc
        kept = self.pick(first, reserved)
        alloc = None if kept is None else self.pick(job, units - kept)
        # A placement of the user's own need not find again what it found among more units.
        return None if alloc is None or self.pick(first, reserved - alloc) is None else alloc


def _before_windows(view: View, job: SchedulerJob) -> UnitReservation | None:
    """Return the reservation by numbers of units if the job would be over when the first window begins, else None."""
    shadow = view.running.reserve(job.size, view.free.count).shadow
    if end_of(shadow, job.occupies) > next((window.begin for window in view.windows.against(job, view.now)), inf):
        return None
    free = FreeUnits(view.free.snapshot())
    for other in view.running:
        if other.expected_end <= shadow:
            free.add(other.alloc)
    return UnitReservation(shadow, free.snapshot())


def reserve(view: View, job: SchedulerJob, placement: Placement) -> UnitReservation:
    """Return when the placement will find units for ``job``, open to it for its whole walltime, and all that are then.

    Every running job uses its whole walltime, or is ended by maintenance before; units under maintenance come back at
    its announced end, other units out of service never do.
    """
    now, gone = view.now, view.gone
    counts = placement.fits_by_count
    if counts and job.size > view.free.count and not view.lost:
        early = _before_windows(view, job)
        if early is not None:
            return early
    ends = sorted(
        (max(min(other.expected_end, view.windows.killed_at(other, now)), now), other.number, other.alloc - gone)
        for other in view.running
    )
    free = FreeUnits(view.free.snapshot() | view.returning)
    times = {end for end, _, _ in ends} | {window.end for window in view.windows if window.end > now}
    ended = 0
    seen = 0
    closed = None
    count = 0
    for time in sorted(time for time in times if time < inf):
        while ended < len(ends) and ends[ended][0] <= time:
            free.add(ends[ended][2])
            ended += 1
        if free.count < job.size:
            continue
        before, closed = closed, view.closed(job, time)
        if closed == before:
            count += sum(len(alloc - closed) for _, _, alloc in ends[seen:ended])
        else:
            count = len(free.snapshot() - closed)
        seen = ended
        if count >= job.size:
            units = free.snapshot() - closed
            if counts or placement.pick(job, units, view.machine) is not None:
                return UnitReservation(time, units)
    return UnitReservation(inf, NodeSet.EMPTY)
