"""Backfilling around a few reservations on nodes that jobs share.

The rules are ``easy-slices``, ``depth`` and ``fill``.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any, ClassVar, Final, Literal

from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.schedulers.policy.interfaces import KeepsBegins, Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.open_nodes import OpenNodes, opened
from pipistrelle.schedulers.sharing.plan.filling import FillPolicy, Release, fill
from pipistrelle.schedulers.sharing.plan.plan import NodePlan
from pipistrelle.schedulers.sharing.plan.slices import NodePlace

#: number of jobs beyond the depth to read at a time from the queue
_BEYOND: Final = 4

Metric = Callable[[SchedulerJob], float]
#: {Maui's BACKFILLMETRIC: a job's value}
METRICS: Final[dict[str, Metric]] = {
    "procs": lambda job: job.processors,
    "seconds": lambda job: job.occupies,
    "procseconds": lambda job: job.processors * job.occupies,
}


class EasySlicesOnNodes:
    """EASY backfilling on shared nodes; the reservation is for particular nodes.

    A job that would run beyond the reserved start cannot use the reserved resources, even if the first job could then
    start on other resources.
    """

    def __init__(self) -> None:
        self._open: OpenNodes | None = None
        self._plan: NodePlan | None = None
        self._reserved_for: int | None = None
        self._place: NodePlace | None = None

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the latest expected start (s) of the queue's first job.

        Return None for other jobs.
        """
        return self._place.begin if self._place is not None and job.number == self._reserved_for else None

    def state(self) -> Any:
        """Return the plan, and the first job's number and reservation.

        Return None if there is no plan.
        """
        if self._plan is None:
            return None
        return {"plan": self._plan.state(), "reserved_for": self._reserved_for, "place": plain(self._place)}

    def restore(self, state: Any, view: View, placement: Placement) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        if state is None:
            return
        self._open = OpenNodes(view, placement)
        self._plan = NodePlan(view, self._open.placer)
        self._plan.restore(state["plan"])
        self._reserved_for = state["reserved_for"]
        place = self._place = message_of(state["place"])
        if place is not None:
            self._plan.slices.take(place.rows, place.begin, place.end)

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs in queue order, then backfill around the first job's reservation."""
        self._open = opened(self._open, view, placement)
        plan = self._plan
        if plan is None or not plan.holds_for(view):
            plan = self._plan = NodePlan(view, self._open.placer)
            self._reserved_for = self._place = None
        else:
            plan.follow()
        first = view.waiting.first
        anew = view.released or plan.windows_changed or (first and first.number) != self._reserved_for
        if anew:
            first = self._front(view, plan)
        plan.look_ahead()
        if first is None:
            return
        jobs = list(view.waiting) if anew else view.waiting.in_order(view.arrivals)
        for job in self._open.could_fit([job for job in jobs if job is not first]):
            plan.start_if_fits(job)

    def _front(self, view: View, plan: NodePlan) -> SchedulerJob | None:
        """Start jobs from the front of the queue while they fit.

        Make a reservation for the first job that does not fit, and return that job.
        """
        if self._place is not None:
            plan.clear(self._place)
            self._place = None
        first = view.waiting.first
        while first is not None and plan.start_if_fits(first):
            first = view.waiting.first
        fit = None if first is None else plan.fit(first)
        if first is not None and fit is not None:
            self._place = plan.take(first, fit.begin, fit.takes)
        self._reserved_for = None if first is None else first.number
        return first


class ReservingOnNodes(KeepsBegins):
    """Backfilling on shared nodes with reservations.

    The first jobs that do not fit get reservations. The reservations are computed again at each decision. Other jobs
    start around them.

    Args:
        depth: number of jobs that get a reservation.
        policy: how other jobs are chosen: in the order of the queue (``firstfit``), by descending metric (``bestfit``),
            or the set with the largest sum of metrics among the sets tried (``greedy``).
        metric: a key of `METRICS`.
        most: choose only among the first ``most`` other jobs that each fit alone; 0: among all.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_begins",)

    def __init__(
        self,
        depth: int,
        policy: FillPolicy = "firstfit",
        metric: Literal["procs", "seconds", "procseconds"] = "procs",
        most: int = 0,
    ) -> None:
        super().__init__()
        self._depth = depth
        self._policy = policy
        self._metric = METRICS[metric]
        self._most = most
        self._open: OpenNodes | None = None
        self._plan: NodePlan | None = None
        self._places: list[NodePlace] = []

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs in queue order, make reservations for the next jobs, then backfill."""
        self._begins = {}
        self._open = opened(self._open, view, placement)
        if not view.waiting:
            self._plan = None
            return
        plan = self._plan
        if plan is None or not plan.holds_for(view):
            plan = self._plan = NodePlan(view, self._open.placer)
        else:
            plan.follow()
            for place in self._places:
                plan.clear(place)
        self._places = []
        for job in self._top(view):
            fit = plan.fit(job)
            if fit is not None and fit.begin == view.now:
                plan.start(job, fit.takes)
                continue
            self._begins[job.number] = inf if fit is None else fit.begin
            if fit is not None:
                self._places.append(plan.take(job, fit.begin, fit.takes))
        others = [job for job in view.waiting if job.number not in self._begins]
        self._fill(plan, self._open.could_fit(others))
        plan.look_ahead()

    def _top(self, view: View) -> Iterator[SchedulerJob]:
        """Yield jobs in queue order, until ``depth`` of them remain waiting.

        The caller starts a job, if it can, before it asks for the next one.
        """
        asked: set[int] = set()
        kept = 0
        while kept < self._depth:
            fresh = [job for job in view.waiting.leading(self._depth + _BEYOND) if job.number not in asked]
            if not fresh:
                return
            for job in fresh:
                asked.add(job.number)
                yield job
                if job.waits:
                    kept += 1
                    if kept == self._depth:
                        return

    def _fill(self, plan: NodePlan, jobs: list[SchedulerJob]) -> None:
        def hold(job: SchedulerJob) -> Release | None:
            fit = plan.fit(job, plan.view.now)
            return None if fit is None else partial(plan.clear, plan.take(job, plan.view.now, fit.takes))

        fill(jobs, self._policy, self._metric, self._most, hold, plan.start_if_fits)
