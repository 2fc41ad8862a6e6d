"""Conservative backfilling: every waiting job has a reservation, on units of its own."""

from math import inf
from typing import Any

from pipistrelle.protocol.base.state import Kept
from pipistrelle.schedulers.plan.plan import Plan
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class Conservative(Kept):
    """Every waiting job has a reservation, and none ever passes it.

    A job that arrives is placed behind all reservations there are. When a job has ended, each waiting job, in the order
    of the queue, leaves its place and is placed anew, while all others keep theirs: it finds its own place free, so
    that its reservation only ever moves forward (Mu'alem and Feitelson, 2001). docs/scheduling.md has the rule in full.
    """

    _kept = ("_places",)

    def __init__(self) -> None:
        self._plan: Plan | None = None
        #: by the job's number
        self._places: dict[int, Place] = {}

    def reservation(self, job: SchedulerJob) -> float:
        """Return by when (s) a waiting job will start, inf if no one can tell."""
        place = self._places.get(job.number)
        return inf if place is None else place.begin

    def state(self) -> Any:
        """Return the plan, and the places of those that wait."""
        return None if self._plan is None else {**super().state(), "plan": self._plan.state()}

    def restore(self, state: Any, view: View, placement: Placement) -> None:
        """Go on from a state, in a view that is as it was then."""
        if state is not None:
            super().restore(state)
            plan = self._plan = Plan(view, placement)
            plan.restore(state["plan"])
            for place in self._places.values():
                plan.slices.take(place.units, place.begin, place.end)

    def schedule(self, view: View, placement: Placement) -> None:
        """Start every job whose place begins now."""
        plan = self._plan
        if plan is None or not plan.holds_for(view) or self._missed(view.now):
            plan = self._plan = Plan(view, placement)
            self._places = {}
            jobs = list(view.waiting)
        else:
            plan.follow()
            anew = view.released or plan.windows_changed
            jobs = list(view.waiting) if anew else view.waiting.in_order(view.arrivals)
            if anew:
                # A place that jobs ran into, beyond their expected ends, is in nobody's way any more.
                for number in [number for number, place in self._places.items() if place.begin < view.now]:
                    plan.clear(self._places.pop(number))
        for job in jobs:
            self._place(view, plan, job)
        plan.look_ahead()

    def _missed(self, now: float) -> bool:
        """Tell whether a place has begun without its job, since nobody asked then: a policy that polls."""
        return any(place.begin < now for place in self._places.values())

    def _place(self, view: View, plan: Plan, job: SchedulerJob) -> None:
        old = self._places.get(job.number)
        if old is not None and (old.begin < view.now or old.is_closed(plan.closures(job))):  # a window has come
            plan.clear(self._places.pop(job.number))
            old = None
        fit = plan.fit(job, old)
        if fit is None or (fit.begin > view.now and old is not None and (old.begin, old.units) == fit):
            return
        if old is not None:
            plan.clear(self._places.pop(job.number))
        if fit.begin > view.now:
            self._places[job.number] = plan.take(job, fit.begin, fit.units)
        else:
            plan.start(job, fit.units)
