"""EASY backfilling that reserves fixed units for the first job.

Older versions of Batsim use this rule.
"""

from typing import Any

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.messages import WakeWhen
from pipistrelle.schedulers.backfill.waking import once_one_fits
from pipistrelle.schedulers.plan.plan import Plan
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.interfaces import Backfill, Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.plan.reserving import EasySlicesOnNodes


class EasySlices(Kept):
    """EASY backfilling with one reservation, on fixed units.

    The first job gets a reservation on chosen units. A job that would run past the reserved start cannot use these
    units, even if enough other units will be free for the first job (Horace et al., "Exploring the Trade-off Between
    Repair Time and Reliability in Large Scale Cluster Computers", algorithm 1 and figure 1).
    """

    _kept = ("_reserved_for", "_place")

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._reserved_for: int | None = None
        self._place: Place | None = None

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""
        return EasySlicesOnNodes()

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the first job's latest expected start (s); None for any other job."""
        return self._place.begin if self._place is not None and job.number == self._reserved_for else None

    def state(self) -> Any:
        """Return the plan and the first job's number and reservation; None without a plan."""
        return None if self._plan is None else {**super().state(), "plan": self._plan.state()}

    def restore(self, state: Any, view: View, placement: Placement) -> None:
        """Restore a saved state; `view` must already be restored to the same instant."""
        if state is not None:
            super().restore(state)
            plan = self._plan = Plan(view, placement)
            plan.restore(state["plan"])
            if self._place is not None:
                plan.slices.take(self._place.units, self._place.begin, self._place.end)

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs in queue order, then backfill around the first job's reservation."""
        plan = self._plan
        if plan is None or not plan.holds_for(view):
            plan = self._plan = Plan(view, placement)
            self._reserved_for = self._place = None
        else:
            plan.follow()
        first = view.waiting.first
        number = None if first is None else first.number
        anew = view.released or plan.windows_changed or number != self._reserved_for
        if anew:
            first = self._front(view, plan)
        plan.look_ahead()
        if first is None:
            return
        if not view.free.count:
            view.wake = ("JOB_COMPLETED",)
            return
        jobs = list(view.waiting) if anew else view.waiting.in_order(view.arrivals)
        for job in jobs:
            if job is not first:
                plan.start_if_fits(job)

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which an event can start a job; None: any event can."""
        return once_one_fits(view)

    def _front(self, view: View, plan: Plan) -> SchedulerJob | None:
        """Start jobs from the front of the queue while they fit.

        Reserve units, if possible, for the first job that does not fit now, and return this job. Return None if the
        queue is then empty.
        """
        if self._place is not None:
            plan.clear(self._place)
        self._place = None
        while (first := view.waiting.first) is not None:
            fit = plan.fit(first)
            if fit is None:
                break
            if fit.begin > view.now:
                self._place = plan.take(first, fit.begin, fit.units)
                break
            plan.start(first, fit.units)
        self._reserved_for = None if first is None else first.number
        return first
