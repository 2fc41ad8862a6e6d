"""A policy is order x backfill x placement; anything with the same two methods is one too."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, cast

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Backfill, PastStep, Placement, learn, state_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import ChoosyOrder, Order, UsageOrder, is_dynamic
from pipistrelle.schedulers.policy.view import View


class ComposedPolicy:
    """An order, a backfilling rule and a placement put together.

    ``anew`` makes another such backfilling rule, for those whose placement changes (`begin_anew`).
    """

    def __init__(
        self,
        name: str,
        order: Order,
        backfill: Backfill,
        placement: Placement,
        anew: Callable[[], Backfill] | None = None,
    ) -> None:
        self.name = name
        self.order = order
        #: what its parts want of the protocol, such as whose a job is
        self.features = tuple(
            dict.fromkeys(name for part in (order, backfill, placement) for name in getattr(part, "features", ()))
        )
        self._backfill = backfill
        #: picks the units of a job
        self.placement = placement
        self._anew = anew
        self._choosy = order if isinstance(order, ChoosyOrder) else None
        self._usage = order if isinstance(order, UsageOrder) else None
        self._moves = is_dynamic(order)
        self._view: View | None = None
        #: jobs of which the order knows that they run, in the order of start, as in the view
        self._running: dict[str, SchedulerJob] = {}

    @property
    def backfill(self) -> Backfill:
        """Who may pass whom."""
        return self._backfill

    def decide(self, view: View) -> None:
        """Refuse whom the order does not take, rank the others; let the backfilling rule start what may start."""
        if self._choosy is not None:
            self._refuse(view, self._choosy.refusal)
        counts = self.placement.fits_by_count
        if not counts or view.by_nodes:
            self._refuse(view, lambda job: self._never_placed(view, job) if job.by_nodes or not counts else None)
        if self._usage is not None:
            self._tell_ends(view, self._usage)
        if self._moves:
            view.waiting.rerank(view.now)
        self._backfill.schedule(view, self.placement)
        if self._usage is not None:
            self._tell_starts(view, self._usage)

    def begin_anew(self) -> None:
        """Forget all reservations: the placement may pick others, or refuse, from now on.

        Raises
        ------
        PolicyError
            if nobody said how another backfilling rule is made.
        """
        if self._anew is None:
            raise PolicyError(
                "the backfilling rule cannot be made anew", where=self.name, expected="a rule by its name"
            )
        self._backfill = self._anew()

    def state(self) -> dict[str, Any]:
        """Return the states of order and backfilling rule, and the jobs of which the order knows that they run."""
        runs = () if self._view is None else self._view.running
        return {
            "order": state_of(self.order, "order"),
            "backfill": state_of(self._backfill, "backfilling rule"),
            "running": [job.id if job.id in runs else job.state() for job in self._running.values()],
        }

    def restore(self, state: dict[str, Any], view: View) -> None:
        """Go on from a state, in a view that is as it was then."""
        order, backfill = cast(Any, self.order), cast(Any, self._backfill)
        order.restore(state["order"])
        backfill.restore(state["backfill"], view, self.placement)
        runs = {job.id: job for job in view.running}
        jobs = [runs[job] if isinstance(job, str) else SchedulerJob.restored(job) for job in state["running"]]
        self._view, self._running = view, {job.id: job for job in jobs}

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Tell an order that keeps account of it what ran under the scheduler before, and what runs now."""
        if self._usage is not None:
            for time, job, starts in steps:
                (self._usage.started if starts else self._usage.ended)(job, time)
            self._view, self._running = view, {job.id: job for job in view.running}

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return by when (s) a waiting job will start, as the backfilling rule tells; None if it does not tell."""
        tell = getattr(self._backfill, "reservation", None)
        when: float | None = None if tell is None else tell(job)
        return when

    @staticmethod
    def _refuse(view: View, refusal: Callable[[SchedulerJob], str | None]) -> None:
        asked: set[int] = set()
        while fresh := [job for job in view.arrivals if job.number not in asked]:  # a refusal may let others in
            for job in fresh:
                asked.add(job.number)
                why = refusal(job)
                if why is not None:
                    view.reject(job, why)

    def _never_placed(self, view: View, job: SchedulerJob) -> str | None:
        """Return why a job would wait for ever, as the placement refuses it on an empty machine; None if not."""
        if picked(self.placement, job, view.machine.all_units - view.closed_pools(job), view.machine) is not None:
            return None
        return f"the placement finds no {job.size} units for it even if all are free"

    def learn(self, machine: Machine) -> None:
        """Take note of the machine before a run begins; PipistrelleError if it has not what the placement asks for."""
        learn(self.placement, machine)

    def _tell_ends(self, view: View, usage: UsageOrder) -> None:
        if view is not self._view:
            self._view, self._running = view, {}
        elif view.released:
            for job in [job for job in self._running.values() if job.id not in view.running]:
                del self._running[job.id]
                usage.ended(job, view.now)

    def _tell_starts(self, view: View, usage: UsageOrder) -> None:
        for job in islice(view.running, len(self._running), None):
            self._running[job.id] = job
            usage.started(job, view.now)
