"""Starts and reservations by sets of units, when windows exclude jobs from units."""

from functools import reduce
from math import inf
from operator import or_
from typing import NamedTuple

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.lowest import takes_lowest
from pipistrelle.schedulers.placement.pickers import pick, picked
from pipistrelle.schedulers.policy.ends_and_shadow import Releases, end_of, held_until, is_late, opening, spares
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import closed_by


class UnitReservation(NamedTuple):
    """The latest start of a job with a reservation, and the units it may use then.

    The start is ``shadow`` (s); it is inf if unknown.
    """

    shadow: float
    units: NodeSet


class OpenUnits:
    """The units that are free during a decision, and which of them each job may use.

    A unit is open to a job if no window closes it during the job's time.
    """

    def __init__(self, view: View, placement: Placement) -> None:
        self._view = view
        self._placement = placement
        #: whether the placement always picks the lowest units
        self.takes_lowest = takes_lowest(placement)
        self._free: NodeSet | None = None
        #: {units closed to a job: the other free units}
        self._open: dict[NodeSet, NodeSet] = {}

    def to(self, job: SchedulerJob) -> NodeSet:
        """Return the free units that no window closes to a job.

        Return the empty set if the job needs more units than are free.
        """
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
        """Return the units that the placement picks among ``units``; None if it refuses."""
        return picked(self._placement, job, units, self._view.machine) if job.size <= len(units) else None

    def start(self, job: SchedulerJob, alloc: NodeSet, why: str | None = None) -> None:
        """Start a job now on free units."""
        self._view.free.remove(alloc)
        self._view.start(job, alloc, why)
        self._free = None
        self._open.clear()

    def start_in_order(self) -> SchedulerJob | None:
        """Start jobs in queue order while they fit.

        Return the first job that does not fit; None if all started.
        """
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
        """Return whether a job is the first in the queue."""
        return job is self._view.waiting.first

    def reserve(self, job: SchedulerJob) -> UnitReservation:
        """Return when a job that does not fit now can start, and which units it may use."""
        return reserve(self._view, job, self._placement)

    def pass_over(self, first: SchedulerJob, jobs: list[SchedulerJob]) -> None:
        """Start the jobs in ``jobs`` that fit and do not delay ``first``.

        ``first`` is the first job in the queue that does not fit.
        """
        view = self._view
        shadow: float | None = None
        reserved = NodeSet.EMPTY
        #: {id() of a set of open units: how many of them are not reserved}; the sets live until the next start
        beside_count: dict[int, int] = {}
        for job in jobs:
            units = self.to(job)
            if job is first or len(units) < job.size:
                continue
            if shadow is None:  # computed when first needed
                shadow, reserved = self.reserve(first)
            late = is_late(view.now, job.occupies, shadow)
            if not late:
                alloc = self.pick(job, units)
            elif not self._placement.fits_by_count or job.by_nodes or first.by_nodes:
                alloc = self._beside(job, units, first, reserved)
            else:
                # Most jobs cannot pass; counts show that faster than sets of units.
                found = beside_count.get(id(units))
                if found is None:
                    found = beside_count[id(units)] = len(units - reserved)
                if not spares(job.size, found, len(reserved), first.size):
                    continue
                alloc = self.by_count(job, units, first, reserved)
            if alloc is None:
                continue
            if late:
                reserved -= alloc
            self.start(job, alloc, f"backfilled before {first.id}")
            beside_count.clear()

    def by_count(self, job: SchedulerJob, units: NodeSet, first: SchedulerJob, reserved: NodeSet) -> NodeSet | None:
        """Return units for a job that will run past the reserved start of ``first``.

        The job must leave ``first`` enough of the reserved units. Return None if that is impossible.
        """
        alloc = self.pick(job, units)
        if alloc is None or len(alloc & reserved) <= len(reserved) - first.size:
            return alloc
        beside = units - reserved
        missing = job.size - len(beside)
        if missing <= 0:
            return self.pick(job, beside)
        return beside | FreeUnits(units & reserved).take_lowest(missing)

    def _beside(self, job: SchedulerJob, units: NodeSet, first: SchedulerJob, reserved: NodeSet) -> NodeSet | None:
        """Return units for a job that will run past the reserved start of ``first``.

        It must still be possible to place ``first`` on the remaining reserved units. Return None if it is not.
        """
        alloc = self.pick(job, units)
        if alloc is None or self.pick(first, reserved - alloc) is not None:
            return alloc
        kept = self.pick(first, reserved)
        alloc = None if kept is None else self.pick(job, units - kept)
        # A user's placement may fail to find units that it found among more units.
        return None if alloc is None or self.pick(first, reserved - alloc) is None else alloc


def reserve(view: View, job: SchedulerJob, placement: Placement) -> UnitReservation:
    """Return when a job can start, and all units that it may use from then on.

    The units are open for the job's whole walltime. Running jobs are expected to use their full walltime, unless
    maintenance kills them earlier. Units under maintenance return at its announced end; other units out of service
    never return.
    """

    all_end_later = view.running.next_end > view.now and not view.lost
    if placement.fits_by_count and not job.by_nodes and job.size > view.free.count and all_end_later:
        early = _before_windows(view, job)
        if early is not None:
            return early
    if placement.fits_by_count and not (job.by_nodes or view.lost or view.has_timed_windows):
        closed_to = mask_of(view.closed_pools(job))
        shadow, open_then = reserve_beside_pools(view, job, mask_of(view.free.snapshot()), closed_to)
        return UnitReservation(shadow, units_of(open_then))

    closed = closed_by(view.windows.against(job, view.now))
    in_service = ((1 << view.units) - 1) & ~mask_of(view.gone)
    held = [mask_of(other.alloc) & in_service for other in view.running]
    ends = [held_until(view.windows.ends_at(other, view.now), view.now) for other in view.running]
    order = sorted(range(len(held)), key=ends.__getitem__)
    releases = Releases([ends[at] for at in order], order, held)
    free, units, time = [in_service & ~reduce(or_, held, 0)], [0], view.now
    while time < inf:
        begin, time, found = opening(time, job.size, job.occupies, free, units, releases, closed)
        if found and pick(placement, units[0], job, view.machine):
            return UnitReservation(begin, units_of(units[0]))
    return UnitReservation(inf, NodeSet.EMPTY)


def reserve_beside_pools(view: View, job: SchedulerJob, free: int, closed: int) -> tuple[float, int]:
    """Return a job's latest start (s) and the units that are then open to it.

    Use this only if all windows are permanent, if the job can run on any set of open units that is large enough, and if
    no job holds units that are out of service.

    Args:
        free: the free units, a bit mask.
        closed: the units that the job may never use, a bit mask.

    Returns:
        The start and a bit mask of units; (inf, 0) if unknown.
    """
    closed |= mask_of(view.gone)
    usable, size, time = ~closed, job.size, view.now
    found = free & usable
    count, masks, soonest = found.bit_count(), view.running.masks, held_until(-inf, time)
    for end, number, _ in view.running.by_end:
        planned = max(end, soonest)  # as `held_until`
        if end == inf or (count >= size and planned > time):
            break
        time = planned
        more = masks[number] & usable
        if more:
            found |= more
            count += more.bit_count()
    return (time, found) if count >= size else (inf, 0)


def _before_windows(view: View, job: SchedulerJob) -> UnitReservation | None:
    """Return a job's reservation if the job would end before the first window begins.

    Otherwise return None. Before the first window no unit is closed to the job, so the number of free units alone gives
    its start.
    """
    shadow = view.running.reserve(job.size, view.free.count).shadow
    if end_of(shadow, job.occupies) > next((window.begin for window in view.windows.against(job, view.now)), inf):
        return None
    free = FreeUnits(view.free.snapshot())
    for other in view.running:
        if other.expected_end <= shadow:
            free.add(other.alloc)
    return UnitReservation(shadow, free.snapshot())
