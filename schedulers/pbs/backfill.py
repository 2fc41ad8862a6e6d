"""PBS's backfilling around several reservations.

The options are ``strict_ordering`` and ``backfill_depth``.
"""

from collections.abc import Iterator
from math import inf
from typing import Annotated, Final

import numpy as np
from msgspec import Meta, Struct

from pipistrelle.protocol.messages import WakeWhen
from pipistrelle.schedulers.backfill.easy import FirstFit, NoBackfill, start_by_count, start_in_order
from pipistrelle.schedulers.backfill.waking import once_one_fits
from pipistrelle.schedulers.plan.grouped_queue import GroupedQueue
from pipistrelle.schedulers.plan.plan import Plan
from pipistrelle.schedulers.policy.ends_and_shadow import end_of, held_until
from pipistrelle.schedulers.policy.interfaces import Backfill, KeepsBegins, Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.waiting import Staircase
from pipistrelle.schedulers.sharing.plan.reserving import ReservingOnNodes

#: number of jobs beyond the depth to read at a time from the queue
_BEYOND: Final = 4


class DepthOptions(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the backfilling rule ``depth``.

    Attributes:
        depth: number of jobs at the head of the queue that get a reservation; with 0, jobs start strictly in queue
            order.
        strict_ordering: if false, no job gets a reservation, and every job that fits starts.
    """

    depth: Annotated[int, Meta(ge=0)] = 1
    strict_ordering: bool = True


class Depth(KeepsBegins):
    """The backfilling rule ``depth``: the first jobs that do not fit get reservations.

    All reservations are computed again at each decision. Other jobs start if they delay none of these reservations.
    Usually a reservation is only a number of units. It is a set of units or nodes if jobs share nodes, if jobs hold
    units out of service, or if maintenance is announced. Depth 1 is EASY.
    """

    _kept = ("_begins", "_liberal")

    def __init__(self, options: DepthOptions | None = None) -> None:
        super().__init__()
        options = options or DepthOptions()
        self._depth = options.depth
        self._strict: NoBackfill | None = NoBackfill() if options.strict_ordering and not options.depth else None
        self._liberal: FirstFit | None = None if options.strict_ordering else FirstFit()
        #: the queue by the units that jobs may use, if reservations are sets of units
        self._grouped: GroupedQueue | None = None

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""
        rule = self._liberal or self._strict
        return ReservingOnNodes(self._depth) if rule is None else rule.on_nodes()

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs in queue order, make reservations for the next jobs, then backfill."""
        self._begins = {}
        rule = self._liberal or self._strict
        if rule is not None:
            rule.schedule(view, placement)
        elif not view.free.count:
            view.wake = ("JOB_COMPLETED",)
            if self._grouped is not None and self._grouped.view is view:
                self._grouped.follow()
        elif view.plain and placement.fits_by_count:
            self._grouped = None  # it does not learn of the jobs that start here
            self._schedule(view, placement)
        else:
            self._schedule_by_units(view, placement)

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which an event can start a job; None: any event can."""
        return once_one_fits(view)

    def _schedule(self, view: View, placement: Placement) -> None:
        start_in_order(view, placement)
        first = view.waiting.first
        if first is None or not view.free.count or len(view.waiting) == 1:
            return
        profile = _Profile(view)
        why = f"backfilled before {first.id}"
        for job in self._top(view):
            begin = profile.earliest(job)
            profile.take(job, begin)
            if begin == view.now:
                start_by_count(view, placement, job, why)
            else:
                self._begins[job.number] = begin

        def start(job: SchedulerJob) -> Staircase:
            profile.take(job, view.now)
            start_by_count(view, placement, job, why)
            return profile.staircase()

        if view.free.count:
            view.waiting.pass_under(start, profile.staircase(), now=view.now)

    def _schedule_by_units(self, view: View, placement: Placement) -> None:
        plan, grouped = Plan(view, placement), self._grouped
        if grouped is None or grouped.view is not view:
            grouped = self._grouped = GroupedQueue(view)
        grouped.follow()
        for job in self._top(view):
            fit = plan.fit(job)
            if fit is None:
                self._begins[job.number] = inf
            elif fit.begin == view.now:
                plan.start(job, fit.units)
                grouped.drop(job)
            else:
                plan.take(job, fit.begin, fit.units)
                self._begins[job.number] = fit.begin
        if view.free.count:
            grouped.start_fitting(plan)

    def _top(self, view: View) -> Iterator[SchedulerJob]:
        """Yield jobs in queue order, until ``depth`` of them remain waiting.

        The caller starts a job, if it can, before it asks for the next one.
        """
        kept: list[SchedulerJob] = []
        while len(kept) < self._depth:
            fresh = [job for job in view.waiting.leading(self._depth + _BEYOND) if job not in kept]
            if not fresh:
                return
            for job in fresh:
                yield job
                if job.waits:
                    kept.append(job)
                    if len(kept) == self._depth:
                        return


class _Profile:
    """The number of free units over time, given running jobs and reservations."""

    def __init__(self, view: View) -> None:
        now = view.now
        ends = sorted((held_until(job.expected_end, now), job.size) for job in view.running)
        self._times = [now]
        self._free = [view.free.count]
        for end, size in ends:
            if end == self._times[-1]:
                self._free[-1] += size
            elif end < inf:
                self._times.append(end)
                self._free.append(self._free[-1] + size)

    def earliest(self, job: SchedulerJob) -> float:
        """Return when (s) the job first fits for its walltime; inf if unknown."""
        at = 0
        for later, free in enumerate(self._free):
            if later > at and self._times[later] >= end_of(self._times[at], job.occupies):
                break
            if free < job.size:
                at = later + 1
        return self._times[at] if at < len(self._times) else inf

    def take(self, job: SchedulerJob, begin: float) -> None:
        """Reserve the job's units from ``begin`` (s) for its walltime.

        Do nothing if ``begin`` is inf.
        """
        if begin == inf:
            return
        first, after = self._cut(begin), self._cut(end_of(begin, job.occupies))
        for at in range(first, after):
            self._free[at] -= job.size

    def _cut(self, time: float) -> int:
        if time == inf:
            return len(self._times)
        at = int(np.searchsorted(self._times, time))
        if at == len(self._times) or self._times[at] != time:
            self._times.insert(at, time)
            self._free.insert(at, self._free[at - 1])
        return at

    def staircase(self) -> Staircase:
        """Return how many units are free from now until each later time.

        Only the times (s) at which this number falls are listed.
        """
        times, units = [], [self._free[0]]
        for time, free in zip(self._times[1:], self._free[1:], strict=True):
            if free < units[-1]:
                times.append(time)
                units.append(free)
        return Staircase(np.array(times), np.array(units, dtype=np.int64))
