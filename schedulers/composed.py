"""A policy composed of an order, a backfilling rule and a placement."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, cast

from mypy_extensions import mypyc_attr

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.messages import WakeWhen
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Backfill, PastStep, Placement, learn, state_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import ChoosyOrder, Order, UsageOrder, is_dynamic
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.rules import on_nodes


@mypyc_attr(allow_interpreted_subclasses=True)
class ComposedPolicy:
    """A policy made of an order, a backfilling rule and a placement.

    ``anew`` returns a new backfilling rule, which replaces the old one if the placement changes (`begin_anew`).
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
        #: protocol features that its parts ask for
        self.features = tuple(
            dict.fromkeys(name for part in (order, backfill, placement) for name in getattr(part, "features", ()))
        )
        self._backfill = backfill
        self.placement = placement
        self._anew = anew
        self._choosy = order if isinstance(order, ChoosyOrder) else None
        self._usage = order if isinstance(order, UsageOrder) else None
        self._moves = is_dynamic(order)
        # An order that follows usage counts from the decision at which it learns of an end; some orders reject jobs.
        self._can_skip = self._choosy is None and self._usage is None
        self._view: View | None = None
        self._shares = False
        #: running jobs that the order was informed of, in the order of start, as in the view
        self._running: dict[str, SchedulerJob] = {}

    @property
    def backfill(self) -> Backfill:
        """Return the backfilling rule."""
        return self._backfill

    def decide(self, view: View) -> None:
        """Rank the queue, and start the jobs that the backfilling rule allows.

        Jobs that the order or the placement refuse are rejected first.
        """
        if view.shared is not None:
            self._share()
        if self._choosy is not None:
            self._refuse(view, self._choosy.refusal)
        counts = self.placement.fits_by_count
        if view.shared is None and (not counts or view.by_nodes):
            self._refuse(view, lambda job: self._never_placed(view, job) if job.by_nodes or not counts else None)
        if self._usage is not None:
            self._tell_ends(view, self._usage)
        if self._moves:
            view.waiting.rerank(view.now)
        self._backfill.schedule(view, self.placement)
        if self._usage is not None:
            self._tell_starts(view, self._usage)

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which an event can change a decision.

        Other events need not wake the policy. It learns of the jobs that ended or arrived in between from the next
        notice. Return None if every event can change a decision. Call this after `decide`.
        """
        if not self._can_skip or view.shared is not None or view.limits is not None:
            return None
        tell = getattr(self._backfill, "wake_when", None)
        if tell is None or not self.placement.fits_by_count:  # a placement may reject a new job
            return None
        when: WakeWhen | None = tell(view)
        return when

    def _share(self) -> None:
        """Switch to the backfilling rule's version for shared nodes.

        Raise PolicyError if it has none.
        """
        if not self._shares:
            self._backfill = on_nodes(self._backfill)
            self._shares = True

    def begin_anew(self) -> None:
        """Replace the backfilling rule by a new one without reservations.

        This is necessary after a change of placement. Raise PolicyError if the rule cannot be created again.
        """
        if self._anew is None:
            raise PolicyError(
                "cannot create the backfilling rule again", where=self.name, expected="a rule given by name"
            )
        self._backfill = self._anew()
        self._shares = False

    def state(self) -> dict[str, Any]:
        """Return the states of order and backfilling rule.

        The jobs that the order tracks are included.
        """
        runs = () if self._view is None else self._view.running
        return {
            "order": state_of(self.order, "order"),
            "backfill": state_of(self._backfill, "backfilling rule"),
            "running": [job.id if job.id in runs else job.state() for job in self._running.values()],
        }

    def restore(self, state: dict[str, Any], view: View) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        if view.shared is not None:
            self._share()
        order, backfill = cast(Any, self.order), cast(Any, self._backfill)
        order.restore(state["order"])
        backfill.restore(state["backfill"], view, self.placement)
        runs = {job.id: job for job in view.running}
        jobs = [runs[job] if isinstance(job, str) else SchedulerJob.restored(job) for job in state["running"]]
        self._view, self._running = view, {job.id: job for job in jobs}

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Report the starts and ends under the previous scheduler to the order.

        Do nothing if the order does not depend on past usage.
        """
        if self._usage is not None:
            for time, job, starts in steps:
                (self._usage.started if starts else self._usage.ended)(job, time)
            self._view, self._running = view, {job.id: job for job in view.running}

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the latest expected start (s) of a queued job.

        Return None if the job has no reservation.
        """
        tell = getattr(self._backfill, "reservation", None)
        when: float | None = None if tell is None else tell(job)
        return when

    @staticmethod
    def _refuse(view: View, refusal: Callable[[SchedulerJob], str | None]) -> None:
        asked: set[int] = set()
        while fresh := [job for job in view.arrivals if job.number not in asked]:  # a rejection may admit other jobs
            for job in fresh:
                asked.add(job.number)
                why = refusal(job)
                if why is not None:
                    view.reject(job, why)

    def _never_placed(self, view: View, job: SchedulerJob) -> str | None:
        """Return why the placement finds no units for a job even on an empty machine.

        Return None if it finds some.
        """
        if picked(self.placement, job, view.machine.all_units - view.closed_pools(job), view.machine) is not None:
            return None
        return f"the placement finds no {job.size} units for it even if all are free"

    def learn(self, machine: Machine) -> None:
        """Pass the machine to the placement.

        Raise PipistrelleError if the machine does not suit the placement.
        """
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
