"""Polling: let a policy decide only at fixed intervals.

Schedulers of many centres work in this way.
"""

from collections.abc import Sequence
from math import floor, inf
from typing import Any, Final, cast

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.interfaces import PastStep, Policy, state_of
from pipistrelle.schedulers.policy.jobs import EndedJob, SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.takeover import tell_past

#: id of the call that polling requests; a policy's own calls have other ids
CALL: Final = "pipistrelle poll"
#: from this many intervals since time 0 on, an interval is below the precision of the time
_FINEST: Final = 2.0**52


class PollingError(PipistrelleError):
    """The polling interval is invalid or too short."""


class Polling(Kept):
    """A policy that lets another policy decide only at fixed intervals.

    Decisions are made at multiples of the interval, counted from time 0. Events in between are collected until the next
    multiple. The policy handles events at a multiple at once. It makes no decision at a multiple without events, so
    jobs that a dynamic order moves forward start only at a later event. After an event in between, a call at the next
    multiple is requested only if a job waits or a call of the inner policy has arrived.

    Args:
        step: the interval in seconds.

    Raises:
        PollingError: the interval is not a finite number above 0.
    """

    _kept = ("_calls", "_released", "_failed", "_due")

    def __init__(self, policy: Policy, step: float) -> None:
        if not 0.0 < step < inf:
            raise PollingError("invalid polling step", expected="seconds above 0", found=repr(step))
        self._policy = policy
        self._step = step
        self.features: tuple[str, ...] = tuple(getattr(policy, "features", ()))
        self._view: View | None = None
        self._arrivals: list[SchedulerJob] = []
        self._cancelled: list[SchedulerJob] = []
        self._ended: list[EndedJob] = []
        self._calls: list[str] = []
        self._released = False
        self._failed: list[NodeSet] = []
        #: time (s) of the pending call, or -inf if none is pending
        self._due = -inf

    @property
    def name(self) -> str:
        """The inner policy's name, with the polling interval."""
        return f"{self._policy.name}+poll={self._step:g}s"

    @property
    def order(self) -> Order:
        """The queue order of the inner policy."""
        return self._policy.order

    def reservations(self) -> Sequence[str]:
        """Return the texts of the inner policy's reservations, if any."""
        return getattr(self._policy, "reservations", tuple)()

    def learn_past(self, view: View, steps: Sequence[PastStep]) -> None:
        """Tell the inner policy which jobs started and ended under a previous scheduler."""
        tell_past(self._policy, view, steps)

    def decide(self, view: View) -> None:
        """Let the inner policy decide if a multiple of the interval is reached.

        Otherwise collect the events, and ask the server for a call at the next multiple.
        """
        if view is not self._view:
            self._view, self._due = view, -inf
            self._forget()
        self._arrivals += view.arrivals
        self._ended += view.ended
        if view.cancelled:
            self._cancelled += view.cancelled
            gone = {job.number for job in view.cancelled}
            self._arrivals = [job for job in self._arrivals if job.number not in gone]
        self._calls += [call for call in view.calls if call != CALL]
        self._released |= view.released
        self._failed += view.failed
        if self._is_time(view.now):
            view.arrivals, view.calls, view.released = self._arrivals, self._calls, self._released
            view.failed, view.cancelled, view.ended = self._failed, self._cancelled, self._ended
            self._forget()
            self._policy.decide(view)
        elif view.waiting or self._calls:
            if self._due <= view.now:
                self._due = self._next(view.now)
                view.call_me_later(self._due, CALL)
            view.wake = ()  # the scheduler is woken only by calls, and by the events that always wake it

    def state(self) -> dict[str, Any]:
        """Return the events collected, the next call's time, and the inner policy's state."""
        arrivals = [job.id for job in self._arrivals]
        cancelled = [job.state() for job in self._cancelled]
        kept = {**super().state(), "policy": state_of(self._policy, "policy")}
        ended = [[one.job.state(), one.end, one.state] for one in self._ended]
        return {**kept, "arrivals": arrivals, "cancelled": cancelled, "ended": ended}

    def restore(self, state: dict[str, Any], view: View) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        super().restore(state)
        waiting = {job.id: job for job in view.waiting.each()}
        self._view, self._arrivals = view, [waiting[job_id] for job_id in state["arrivals"]]
        self._cancelled = [SchedulerJob.restored(job) for job in state["cancelled"]]
        self._ended = [EndedJob(SchedulerJob.restored(job), end, fate) for job, end, fate in state["ended"]]
        between = view.arrivals, view.cancelled  # jobs that the policy does not yet know
        view.arrivals, view.cancelled = self._arrivals, self._cancelled
        cast(Any, self._policy).restore(state["policy"], view)
        view.arrivals, view.cancelled = between

    def _forget(self) -> None:
        self._arrivals, self._calls, self._released, self._failed = [], [], False, []
        self._cancelled, self._ended = [], []

    def _is_time(self, now: float) -> bool:
        steps = now / self._step
        return steps >= _FINEST or round(steps) * self._step == now

    def _next(self, now: float) -> float:
        count = floor(now / self._step) + 1
        while count * self._step <= now:
            count += 1
        return count * self._step
