"""A scheduler that looks at the cluster at fixed steps only, as those of many centres do."""

from collections.abc import Sequence
from math import floor, inf
from typing import Any, Final, cast

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.interfaces import PastStep, Policy, state_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.takeover import tell_past

#: the call's name; a policy's own calls have others
CALL: Final = "pipistrelle poll"
#: from here on steps are finer than times
_FINEST: Final = 2.0**52


class PollingError(PipistrelleError):
    """A step that cannot be."""


class Polling(Kept):
    """Lets a policy decide at the multiples of a step only, counted from time 0.

    What happens in between is collected until the next multiple; there is none if nothing waits and nobody asked to be
    called. What happens at a multiple is decided then and there. Where nothing has happened nothing is decided: a
    dynamic order moves jobs while they wait, but they start when something else happens.

    Parameters
    ----------
    policy
        decides.
    step
        seconds, above 0.

    Raises
    ------
    PollingError
        when the step is not a finite number above 0.
    """

    _kept = ("_calls", "_released", "_failed", "_due")

    def __init__(self, policy: Policy, step: float) -> None:
        if not 0.0 < step < inf:
            raise PollingError("a poll at such steps is not possible", expected="seconds above 0", found=repr(step))
        self._policy = policy
        self._step = step
        self.features: tuple[str, ...] = tuple(getattr(policy, "features", ()))
        self._view: View | None = None
        self._arrivals: list[SchedulerJob] = []
        self._cancelled: list[SchedulerJob] = []
        self._calls: list[str] = []
        self._released = False
        self._failed: list[NodeSet] = []
        #: when the call is due that was asked for, -inf if none was
        self._due = -inf

    @property
    def name(self) -> str:
        """What the policy is called, and the step."""
        return f"{self._policy.name}+poll={self._step:g}s"

    @property
    def order(self) -> Order:
        """The policy's."""
        return self._policy.order

    def reservations(self) -> Sequence[str]:
        """Return what the policy keeps units for, in words; nothing if it has none."""
        return getattr(self._policy, "reservations", tuple)()

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Let the policy know the past."""
        tell_past(self._policy, view, steps)

    def decide(self, view: View) -> None:
        """Let the policy decide if it is time; else take note, and ask to be woken."""
        if view is not self._view:
            self._view, self._due = view, -inf
            self._forget()
        self._arrivals += view.arrivals
        if view.cancelled:
            self._cancelled += view.cancelled
            gone = {job.number for job in view.cancelled}
            self._arrivals = [job for job in self._arrivals if job.number not in gone]
        self._calls += [call for call in view.calls if call != CALL]
        self._released |= view.released
        self._failed += view.failed
        if self._is_time(view.now):
            view.arrivals, view.calls, view.released = self._arrivals, self._calls, self._released
            view.failed, view.cancelled = self._failed, self._cancelled
            self._forget()
            self._policy.decide(view)
        elif view.waiting or self._calls:
            if self._due <= view.now:
                self._due = self._next(view.now)
                view.call_me_later(self._due, CALL)
            view.wake = ()  # nothing but calls, and what always wakes

    def state(self) -> dict[str, Any]:
        """Return what was collected since the last decision, when the next is due, and the policy's state."""
        arrivals = [job.id for job in self._arrivals]
        cancelled = [job.state() for job in self._cancelled]
        kept = {**super().state(), "policy": state_of(self._policy, "policy")}
        return {**kept, "arrivals": arrivals, "cancelled": cancelled}

    def restore(self, state: dict[str, Any], view: View) -> None:
        """Go on from a state, in a view that is as it was then."""
        super().restore(state)
        waiting = {job.id: job for job in view.waiting.each()}
        self._view, self._arrivals = view, [waiting[job_id] for job_id in state["arrivals"]]
        self._cancelled = [SchedulerJob.restored(job) for job in state["cancelled"]]
        between = view.arrivals, view.cancelled  # the policy does not know of those whom it was not told of
        view.arrivals, view.cancelled = self._arrivals, self._cancelled
        cast(Any, self._policy).restore(state["policy"], view)
        view.arrivals, view.cancelled = between

    def _forget(self) -> None:
        self._arrivals, self._calls, self._released, self._failed = [], [], False, []
        self._cancelled = []

    def _is_time(self, now: float) -> bool:
        steps = now / self._step
        return steps >= _FINEST or round(steps) * self._step == now

    def _next(self, now: float) -> float:
        count = floor(now / self._step) + 1
        while count * self._step <= now:
            count += 1
        return count * self._step
