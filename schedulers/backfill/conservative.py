"""Conservative backfilling: every waiting job has a reservation on fixed units."""

from collections.abc import Mapping
from functools import cache
from math import inf
from types import ModuleType
from typing import Any, Final

from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.protocol.messages import WakeWhen
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.backfill.easy import start_in_order
from pipistrelle.schedulers.backfill.waking import NOTHING_TO_PLAN
from pipistrelle.schedulers.placement.lowest import takes_lowest
from pipistrelle.schedulers.plan import gaps
from pipistrelle.schedulers.plan.machine_code import is_cached
from pipistrelle.schedulers.plan.plan import Plan
from pipistrelle.schedulers.plan.reservations import Reservations
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.interfaces import Backfill, Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.plan.conservative import ConservativeOnNodes

#: From this many job placements on, the compiled loops are used. Compiling takes some seconds.
MANY_LOOKS: Final = 10_000
#: the same if an earlier run compiled the loops
SOME_LOOKS: Final = 1_000


@cache
def _compiled() -> ModuleType:
    """Return the module with the loops that make reservations.

    It is the version compiled by numba if numba is installed, and plain Python otherwise.
    """
    try:
        from pipistrelle.schedulers.plan import compiled
    except ImportError:
        return gaps
    return compiled


@cache
def _is_ready() -> bool:
    """Return whether the loops can run now, without a compilation by numba first."""
    return is_cached(_compiled().place_all)


class Conservative:
    """Conservative backfilling: every waiting job has a reservation on fixed units.

    A new job gets a reservation that delays no earlier reservation. When a job ends, each waiting job is planned again,
    in the order of the queue, while all others keep their reservations. A job's old reservation is released first, so
    its new start is never later (Mu'alem and Feitelson, 2001). docs/reference/scheduling.md has the full rule. If jobs
    get the lowest units and there is no maintenance, only jobs whose reservations can change are planned again. For
    long queues the loops are compiled if numba is installed. Neither changes a decision.
    """

    def __init__(self) -> None:
        self._plan: _InSlices | Reservations | None = None
        #: number of placements of jobs so far
        self._looks = 0

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""
        return ConservativeOnNodes()

    def reservation(self, job: SchedulerJob) -> float:
        """Return the latest expected start (s) of a waiting job; inf if unknown."""
        return inf if self._plan is None else self._plan.begin(job.number)

    def state(self) -> Any:
        """Return the plan and all reservations as plain values; None if there is no plan."""
        plan = self._plan
        return None if plan is None else {"swift": type(plan) is not _InSlices, **plan.state()}

    def restore(self, state: Any, view: View, placement: Placement) -> None:
        """Restore a saved state; `view` must already be restored to the same instant."""
        if state is None:
            return
        if state["swift"]:
            places, new = message_of(state["places"]), {job.number for job in view.arrivals}
            jobs = [job for job in view.waiting.each() if job.number in places or job.number not in new]
            jobs += [job for job in view.cancelled if job.number in places]  # the plan does not know of these yet
            self._plan = Reservations(view, places, jobs, NodeSet.parse(state["gone"]))
        else:
            self._plan = _InSlices(view, placement, {})
            self._plan.restore(state)

    def schedule(self, view: View, placement: Placement) -> None:
        """Start every job whose reservation begins now."""
        plan = self._plan
        if plan is not None and not plan.holds_for(view):
            plan = None
        swift = takes_lowest(placement) and not view.windows and not (type(plan) is _InSlices and plan.cuts_short)
        if plan is None and swift:  # units that are free now stay free
            start_in_order(view, placement)
            if not view.waiting:
                self._plan = None
                return
        if plan is None or swift == (type(plan) is _InSlices):
            places = {} if plan is None else plan.places()
            plan = Reservations(view, places) if swift else _InSlices(view, placement, places)
            anew = True
        else:
            anew = view.released
        looks = self._looks
        if type(plan) is Reservations and (looks >= MANY_LOOKS or (looks >= SOME_LOOKS and _is_ready())):
            plan.form = _compiled()
        plan.schedule(anew=anew)
        if type(plan) is Reservations:
            self._looks += plan.new_looks()
        self._plan = plan if plan.needed else None

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which the policy must be called.

        Return None while jobs wait, because then every event can start a job or move a reservation.
        """
        return None if view.waiting else NOTHING_TO_PLAN


class _InSlices(Plan):
    """Conservative backfilling for every placement, also with maintenance windows.

    It keeps the reservations of all queued jobs.
    """

    needed = True

    def __init__(self, view: View, placement: Placement, places: Mapping[int, Place]) -> None:
        super().__init__(view, placement)
        #: {job's number: its reservation (start, end and units)}
        self._places: dict[int, Place] = {}
        self._claim(places)

    def _claim(self, places: Mapping[int, Place]) -> None:
        self._places = dict(places)
        for place in places.values():
            self.slices.take(place.units, place.begin, place.end)

    def begin(self, number: int) -> float:
        """Return the start (s) of a waiting job's reservation; inf if it has none.

        ``number`` is the job's number.
        """
        place = self._places.get(number)
        return inf if place is None else place.begin

    def places(self) -> dict[int, Place]:
        """Return the reservations of waiting jobs, {number of the job: its reservation}."""
        return self._places

    def state(self) -> dict[str, Any]:
        return {**super().state(), "places": plain(self._places)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._claim(message_of(state["places"]))

    def holds_for(self, view: View) -> bool:
        """Return whether the plan is still valid.

        It is invalid if a job has not started although its reserved start is past.
        """
        return super().holds_for(view) and not any(place.begin < view.now for place in self._places.values())

    def schedule(self, *, anew: bool) -> None:
        """Start new jobs, or make reservations for them, in queue order.

        Args:
            anew: whether units were released; then all queued jobs are planned again.
        """
        view = self._view
        self.follow()
        if view.cancelled:
            for number in self._places.keys() & {job.number for job in view.cancelled}:
                self.clear(self._places.pop(number))
        jobs = list(view.waiting) if anew or self.windows_changed else view.waiting.in_order(view.arrivals)
        for job in jobs:
            self._place(job)
        self.look_ahead()

    def _place(self, job: SchedulerJob) -> None:
        old = self._places.get(job.number)
        if old is not None and old.is_closed(self.closures(job)):  # by a new window
            self.clear(self._places.pop(job.number))
            old = None
        fit = self.fit(job, old)
        now = self._view.now
        if fit is None or (fit.begin > now and old is not None and (old.begin, old.units) == fit):
            return
        if old is not None:
            self.clear(self._places.pop(job.number))
        if fit.begin > now:
            self._places[job.number] = self.take(job, fit.begin, fit.units)
        else:
            self.start(job, fit.units)
