"""EASY backfilling, and two rules without reservations.

The two rules are strict queue order and first fit.
"""

from math import inf
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.messages import WakeAtEnd, WakeAtSubmission, WakeWhen
from pipistrelle.schedulers.backfill.waking import NOTHING_TO_PLAN, once_free, once_one_fits, until_reserved
from pipistrelle.schedulers.placement.lowest import takes_lowest
from pipistrelle.schedulers.placement.pickers import take
from pipistrelle.schedulers.plan.around_windows import OpenUnits
from pipistrelle.schedulers.plan.grouped_queue import GroupedQueue
from pipistrelle.schedulers.policy.ends_and_shadow import is_late
from pipistrelle.schedulers.policy.interfaces import Backfill, Placement, Stateless
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


def start_by_count(view: View, placement: Placement, job: SchedulerJob, why: str | None = None) -> None:
    """Start a job on free units that the placement picks.

    Use it only with placements that never refuse a job.
    """
    alloc = None  # None: the lowest free units
    if not takes_lowest(placement):
        alloc, view.free = take(placement, job, view.free, view.machine)
    view.start(job, alloc, why)


def start_in_order(view: View, placement: Placement) -> tuple[bool, SchedulerJob | None]:
    """Start jobs from the front of the queue while they fit.

    Return whether any job started, and the first job that did not fit (None if no unit is free).
    """
    free, waiting, started = view.free, view.waiting, False
    while free.count:  # reading the first makes a dynamic order rank all jobs; useless if nothing is free
        first = waiting.first
        if first is None or first.size > free.count:
            return started, first
        start_by_count(view, placement, first)
        started = True
        free = view.free  # the placement may have replaced the set
    return started, None


class NoBackfill(Stateless):
    """No backfilling: jobs start strictly in the order of the queue."""

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""
        from pipistrelle.schedulers.sharing.easy_on_nodes import NoBackfillOnNodes  # most machines do not need it

        return NoBackfillOnNodes()

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs in queue order until one does not fit."""
        if view.windows or not placement.fits_by_count:
            OpenUnits(view, placement).start_in_order()
        else:
            start_in_order(view, placement)
        if not view.free.count or (view.waiting and view.waiting.arrivals_last):  # no job can pass the first
            view.wake = ("JOB_COMPLETED",)

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which an event can start a job; None: any event can."""
        first = view.waiting.first if view.waiting.arrivals_last else None
        if first is None or first.size <= view.free.count:
            return once_one_fits(view)
        return WakeWhen((), (WakeAtEnd(first.size),))


@mypyc_attr(allow_interpreted_subclasses=True)
class FirstFit(Kept):
    """First fit: every job that fits starts, in the order of the queue.

    Large jobs may starve.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_kept_back",)

    def __init__(self) -> None:
        #: whether a window or the placement may have held back a job that fits by count
        self._kept_back = False

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""
        from pipistrelle.schedulers.sharing.easy_on_nodes import FirstFitOnNodes  # most machines do not need it

        return FirstFitOnNodes()

    def schedule(self, view: View, placement: Placement) -> None:
        """Start all jobs that fit."""
        if view.windows or not placement.fits_by_count:
            self._kept_back = True
            OpenUnits(view, placement).start_all()
        else:
            self._start_all(view, placement)
            self._kept_back = False
        if not view.free.count:
            view.wake = ("JOB_COMPLETED",)

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which an event can start a job; None: any event can."""
        return once_one_fits(view)

    def _start_all(self, view: View, placement: Placement) -> None:
        start_in_order(view, placement)
        if not (view.released or self._kept_back):  # earlier jobs still do not fit
            for job in view.waiting.in_order(view.arrivals):
                if job.waits and job.size <= view.free.count:
                    start_by_count(view, placement, job)
        elif view.free.count and len(view.waiting) > 1:

            def start(job: SchedulerJob) -> tuple[int, int]:
                start_by_count(view, placement, job)
                return view.free.count, 0

            view.waiting.pass_over(start, view.free.count)


@mypyc_attr(allow_interpreted_subclasses=True)
class Easy:
    """EASY backfilling: one reservation, for the first job in the queue.

    A job may start before the first job if its walltime ends by the reserved start (shadow time), or if it needs no
    more units than the reservation leaves over (Lifka, "The ANL/IBM SP scheduling system", 1995; Mu'alem and Feitelson,
    2001). Candidates are tried in the order of the queue, or by shortest walltime (`ShortestFirst`; EASY-SJBF of
    Tsafrir, Etsion and Feitelson, 2007). Until units are released, the reservation stays the same, and a candidate that
    did not fit still does not fit. So only new arrivals are tested until then.
    """

    _shortest_first: ClassVar[bool] = False

    def __init__(self) -> None:
        self._reserved_for: SchedulerJob | None = None
        self._shadow = inf
        self._extra = 0
        #: set if the first job's reservation is by single units
        self._by_units: OpenUnits | None = None
        #: the queue by the units that jobs may use; None unless only classes and requests restrict them
        self._grouped: GroupedQueue | None = None

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""
        from pipistrelle.schedulers.sharing.easy_on_nodes import EasyOnNodes  # most machines do not need it

        return EasyOnNodes(shortest_first=self._shortest_first)

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the first job's latest expected start (s); None for every other job.

        The start is inf if unknown.
        """
        if self._by_units is not None:
            return self._by_units.reserve(job).shadow if self._by_units.is_first(job) else None
        return self._shadow if job is self._reserved_for else None

    def state(self) -> dict[str, Any]:
        """Return the first job's reservation as plain values.

        Without a reservation, the id of the job is None.
        """
        first = None if self._reserved_for is None else self._reserved_for.id
        by_units = self._by_units is not None
        return {"first": first, "shadow": self._shadow, "extra": self._extra, "by_units": by_units}

    def restore(self, state: dict[str, Any], view: View, placement: Placement) -> None:
        """Restore a saved state; `view` must already be restored to the same instant."""
        self._shadow, self._extra = state["shadow"], state["extra"]
        known = (*view.waiting.each(), *view.cancelled)
        self._reserved_for = next((job for job in known if job.id == state["first"]), None)
        self._by_units = OpenUnits(view, placement) if state["by_units"] else None

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs in queue order, then backfill behind the first job that does not fit."""
        if not (view.plain and placement.fits_by_count):
            self._by_units = OpenUnits(view, placement)
            self._schedule_by_units(view, self._by_units, fits_by_count=placement.fits_by_count)
            return
        self._by_units = None
        started, first = start_in_order(view, placement)
        if not view.free.count:
            # An arrival cannot start; if it becomes the first, the next release handles it.
            self._reserved_for = None
            view.wake = ("JOB_COMPLETED",)
            return
        if first is None:
            self._reserved_for = None
            return
        if view.released or started or first is not self._reserved_for:
            self._reserved_for = first
            self._shadow, self._extra = view.running.reserve(first.size, view.free.count)
            self._pass_over_all(view, placement, first)
        else:
            self._pass_over(view, placement, first, view.waiting.in_order(view.arrivals))

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which an event can start a job; None: any event can.

        The shadow time does not become later when jobs end. So a waiting job that would run past the shadow time cannot
        start before more units are free than now.
        """
        if self._reserved_for is None:
            return once_one_fits(view)
        free, shadow = view.free.count, self._shadow
        least = view.waiting.units_needed(free, spare=self._extra, ends_by=shadow, now=view.now)
        if least is None:
            return once_one_fits(view)
        if least <= free:
            return None
        beyond = free - self._extra
        if beyond <= 0 or shadow == inf:
            return once_free(least)
        return until_reserved(least, beyond, shadow)

    def _schedule_by_units(self, view: View, units: OpenUnits, *, fits_by_count: bool) -> None:
        """Schedule by comparing sets of units; `schedule` itself only counts units.

        This is necessary if jobs may not all use the same units, or if jobs hold units that are out of service.
        """
        self._reserved_for = None
        grouped = self._grouped
        if not fits_by_count or view.has_timed_windows or view.by_nodes or view.lost:
            grouped = None
        elif grouped is None or grouped.view is not view:
            grouped = GroupedQueue(view)
        self._grouped = grouped
        if grouped is None:
            first = units.start_in_order()
        else:
            grouped.follow()
            first = grouped.start_in_order(units)
        if first is None:
            return
        if not view.free.count:
            view.wake = ("JOB_COMPLETED",)
            return
        if grouped is not None:
            grouped.pass_over(units, first, shortest_first=self._shortest_first)
            return
        jobs = [job for job in view.waiting if job.size <= view.free.count]
        if self._shortest_first:
            jobs.sort(key=lambda job: job.occupies)
        units.pass_over(first, jobs)

    def _pass_over_all(self, view: View, placement: Placement, first: SchedulerJob) -> None:
        if len(view.waiting) == 1:
            return

        def start(job: SchedulerJob) -> tuple[int, int]:
            self._backfill(view, placement, job, first)
            return view.free.count, self._extra

        view.waiting.pass_over(
            start,
            view.free.count,
            spare=self._extra,
            ends_by=self._shadow,
            now=view.now,
            shortest_first=self._shortest_first,
        )

    def _pass_over(self, view: View, placement: Placement, first: SchedulerJob, jobs: list[SchedulerJob]) -> None:
        if self._shortest_first and len(jobs) > 1:
            jobs = sorted(jobs, key=lambda job: job.occupies)
        for job in jobs:
            if (
                job is not first
                and job.size <= view.free.count
                and (job.size <= self._extra or not is_late(view.now, job.occupies, self._shadow))
            ):
                self._backfill(view, placement, job, first)

    def _backfill(self, view: View, placement: Placement, job: SchedulerJob, first: SchedulerJob) -> None:
        if is_late(view.now, job.occupies, self._shadow):
            self._extra -= job.size
        start_by_count(view, placement, job, f"backfilled before {first.id}")


class ShortestFirst(Easy):
    """EASY backfilling that tries candidates by shortest walltime."""

    _shortest_first: ClassVar[bool] = True


class FixedReservation(Easy):
    """EASY backfilling in which the first job's shadow time never changes.

    This is the algorithm ``easy_bf_fast`` of batsched.

    The shadow time is computed once, when a job becomes the first that does not fit. A job that would run beyond it
    never passes the first job, even on units that the reservation leaves over. If single units must be compared, as
    with maintenance windows or job classes, the rule is that of `Easy`.
    """

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs in queue order, then backfill jobs that end by the shadow time."""
        if not (view.plain and placement.fits_by_count):
            super().schedule(view, placement)
            return
        self._by_units = None
        started, first = start_in_order(view, placement)
        first = first or view.waiting.first  # even if no unit is free, the shadow time is computed now
        fresh = first is not self._reserved_for
        if fresh:
            self._reserved_for = first
            if first is not None:
                self._shadow, self._extra = view.running.reserve(first.size, view.free.count).shadow, 0
        if first is None:
            return
        if not view.free.count:
            if view.waiting.arrivals_last:
                view.wake = ("JOB_COMPLETED",)
        elif view.released or started or fresh:
            self._pass_over_all(view, placement, first)
        else:
            self._pass_over(view, placement, first, view.waiting.in_order(view.arrivals))

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which an event can start a job or set a shadow time.

        None means that any event can.
        """
        if self._by_units is not None:
            return once_one_fits(view)
        if self._reserved_for is None:
            return NOTHING_TO_PLAN
        late = view.units  # a job that would run beyond the shadow time cannot start
        least = view.waiting.units_needed(0, spare=-late, ends_by=self._shadow, now=view.now)
        if least is None or least <= view.free.count:
            return None
        ends_by = None if self._shadow == inf else self._shadow  # any end is before an unknown start
        return WakeWhen((WakeAtSubmission(spare=0, ends_by=ends_by),), (WakeAtEnd(least),))
