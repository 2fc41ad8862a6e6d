"""The older EASY of Batsim's schedulers: the first job's units are chosen beforehand."""

from pipistrelle.schedulers.plan.planned import Plan, pick
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class EasySlices:
    """EASY backfilling with one reservation on single units, in time slices.

    The first in the queue is promised, beside a time, units: a job that would hold some of them beyond that time does
    not pass, even if as many others will be free (Horace et al., "Exploring the Trade-off Between Repair Time and
    Reliability in Large Scale Cluster Computers", algorithm 1 and figure 1).
    """

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._reserved_for: SchedulerJob | None = None
        self._place: Place | None = None

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return by when (s) the first job will start, None for any other job."""
        return self._place.begin if self._place is not None and job is self._reserved_for else None

    def schedule(self, view: View, placement: Placement) -> None:
        """Start from the front, then backfill around the first job's place."""
        plan = self._plan
        if plan is None or not plan.holds_for(view):
            plan = self._plan = Plan(view)
            self._reserved_for = self._place = None
        else:
            plan.follow()
        first = view.waiting.first
        anew = view.released or plan.windows_changed or first is not self._reserved_for
        if anew:
            first = self._front(view, placement, plan)
        plan.look_ahead()
        if first is None:
            return
        if not view.free.count:
            view.wake = ("JOB_COMPLETED",)
            return
        windows = len(view.windows) > 0
        jobs = list(view.waiting) if anew else view.waiting.in_order(view.arrivals)
        for job in jobs:
            if job is not first and job.size <= view.free.count:
                units = plan.slices.now_for(job.size, job.occupies, plan.closures(job) if windows else ())
                if units:
                    plan.start(job, pick(placement, units, job, view.machine))

    def _front(self, view: View, placement: Placement, plan: Plan) -> SchedulerJob | None:
        """Start the first job again and again as long as it fits; give the one that does not its place, return it."""
        if self._place is not None:
            plan.clear(self._place)
        self._place = None
        while (first := view.waiting.first) is not None:
            fit = plan.slices.earliest(first.size, first.occupies, closures=plan.closures(first))
            if fit is None:
                break
            units = pick(placement, fit.units, first, view.machine)
            if fit.begin > view.now:
                self._place = plan.take(first, fit.begin, units)
                break
            plan.start(first, units)
        self._reserved_for = first
        return first
