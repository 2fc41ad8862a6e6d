"""Ramp-down: which free units are open to a job, and the reservation of the first, while there are windows."""

from math import inf
from typing import NamedTuple

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.lowest import Placement
from pipistrelle.schedulers.plan.slices import end_of
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

    def pick(self, units: NodeSet, size: int) -> NodeSet:
        """Return the ``size`` units that the placement picks among ``units``."""
        return self._placement.take(FreeUnits(units), size)

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
            units = self.to(first)
            if len(units) < first.size:
                break
            self.start(first, self.pick(units, first.size))
        return first

    def start_all(self) -> None:
        """Start every job that fits, in the order of the queue."""
        for job in list(self._view.waiting):
            units = self.to(job)
            if len(units) >= job.size:
                self.start(job, self.pick(units, job.size))

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
                shadow, reserved = reserve(view, first)
            late = view.now + job.occupies > shadow
            extra = len(reserved) - first.size
            if late:  # most do not pass: find out without looking at single units again and again
                found = beside_count.get(id(units))
                if found is None:
                    found = beside_count[id(units)] = len(units - reserved)
                if job.size - found > extra:
                    continue
            alloc = self.pick(units, job.size)
            if late:
                if len(alloc & reserved) > extra:
                    beside = units - reserved
                    missing = job.size - len(beside)
                    alloc = self.pick(beside, job.size) if missing <= 0 else beside
                    if missing > 0:
                        alloc |= self.pick(units & reserved, missing)
                reserved -= alloc
            self.start(job, alloc, f"backfilled before {first.id}")
            beside_count.clear()


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


def reserve(view: View, job: SchedulerJob) -> UnitReservation:
    """Return when enough units will be free, and open to ``job`` for its whole walltime, and which.

    Every running job uses its whole walltime, or is ended by maintenance before; units under maintenance come back at
    its announced end, other units out of service never do.
    """
    now, gone = view.now, view.gone
    if job.size > view.free.count and not view.lost:
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
            return UnitReservation(time, free.snapshot() - closed)
    return UnitReservation(inf, NodeSet.EMPTY)
