"""Estimate the starts of queued jobs by simulating the future of a run.

In this future every job takes its full walltime, no job arrives and no node fails.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CancelCall,
    Decision,
    ExecuteJob,
    KillJob,
    PreemptJob,
    PreemptJobData,
    RegisterJob,
    RejectJob,
    SetJobMetadata,
    Stop,
)
from pipistrelle.protocol.events import (
    Event,
    JobCompleted,
    JobCompletedData,
    JobKilled,
    JobKilledData,
    JobSubmitted,
    JobSubmittedData,
    MaintenanceBegins,
    MaintenanceBeginsData,
    MaintenanceEnds,
    MaintenanceEndsData,
    NoMoreJobs,
    RequestedCall,
    RequestedCallData,
)
from pipistrelle.protocol.fields import PREEMPTED, JobState, WakeType
from pipistrelle.protocol.messages import Notice
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.stalls import MAX_FRUITLESS

#: separates a job's name from its attempt number
_AGAIN: Final = "#"
#: kinds of future events, in the order in which the server processes them at one instant
_END, _MAINTENANCE, _PREEMPTION, _CALL = range(4)
_FILTERED: Final[dict[type[Event], WakeType]] = {
    JobSubmitted: "JOB_SUBMITTED",
    JobCompleted: "JOB_COMPLETED",
    JobKilled: "JOB_KILLED",
    NoMoreJobs: "NO_MORE_JOBS",
}


class EstimateError(PipistrelleError):
    """The start times of queued jobs cannot be estimated."""


class Standstill(NamedTuple):
    """The state of a run at ``time`` (s).

    The starts of queued jobs are estimated from it.

    - ``untold``: events that the scheduler has not received yet.
    - ``wake``: the types of events for which the scheduler wants a notice; None means all.
    - ``calls``: time (s) and id of each requested wake-up call.
    - ``going``: end of the grace period (s) and the preemption decision of each job that is being preempted.
    - ``to_old_place``: whether preempted jobs return to their old position in the queue.
    - ``seq``: the number of the last notice.
    """

    time: float
    untold: Sequence[Event]
    wake: tuple[WakeType, ...] | None
    calls: Sequence[tuple[float, str]]
    going: Sequence[tuple[float, PreemptJobData]]
    to_old_place: bool
    seq: int


class Foreseen(NamedTuple):
    """The expected starts and the expected rejections of queued jobs.

    Each is {job id: (time in s, the scheduler's reason or "")}.
    """

    starts: dict[str, tuple[float, str]]
    refusals: dict[str, tuple[float, str]]


def waiting_in(view: View, untold: Sequence[Event]) -> list[str]:
    """Return the ids of the queued jobs.

    These are the queued jobs in ``view``, and jobs whose submission is in ``untold``.
    """
    told = [job.id for job in (*view.waiting.each(), *view.set_aside)]
    return told + [event.data.job_id for event in untold if isinstance(event, JobSubmitted)]


def foresee(runtime: Runtime, moment: Standstill) -> Foreseen:
    """Simulate a scheduler's future decisions, as if every job took its walltime.

    No job arrives and no node fails, but announced maintenance takes place. Nodes that are down stay down, and jobs
    without walltime never end. The simulation stops when no job is queued or no event remains.

    Args:
        runtime: the scheduler in its state at ``moment``; it cannot be used afterwards.
        moment: the state of the run from which the simulation starts.

    Raises:
        EstimateError: if the scheduler makes a decision that is not supported in estimates.
        PolicyFailed: if the policy raises an exception.
    """
    ahead = _Ahead(runtime, moment)
    ahead.go_on()
    return Foreseen(ahead.starts, ahead.refusals)


class _Ahead:
    """A stand-in for the server while the future of a run is simulated."""

    def __init__(self, runtime: Runtime, moment: Standstill) -> None:
        assert runtime.view is not None
        self._runtime = runtime
        self._view = view = runtime.view
        self._now, self._seq = moment.time, moment.seq
        self._outbox: list[Event] = list(moment.untold)
        self._wake = moment.wake
        self._to_old_place = moment.to_old_place
        self._left = set(waiting_in(view, moment.untold))
        self._numbers = count()
        ended = {event.data.job_id for event in moment.untold if isinstance(event, JobCompleted)}
        #: {id: running job}
        self._running = {job.id: job for job in view.running if job.id not in ended}
        #: future events: (when (s), kind, number, data such as the job)
        self._agenda: list[tuple[float, int, int, Any]] = []
        #: number of future events that are not calls
        self._certain = 0
        for job in self._running.values():
            self._put_end(job)
        for window in view.windows:
            if window.admits is None:
                for time, begins in ((window.begin, True), (window.end, False)):
                    if self._now < time < inf:
                        self._put(time, _MAINTENANCE, (window, begins))
        for time, call in moment.calls:
            self._put(time, _CALL, call)
        for time, order in moment.going:
            self._put(max(time, self._now), _PREEMPTION, order)
        self._fruitless = 0
        self.starts: dict[str, tuple[float, str]] = {}
        self.refusals: dict[str, tuple[float, str]] = {}

    def go_on(self) -> None:
        """Simulate until no job is queued, or until no remaining event could start a job."""
        while self._left and self._fruitless < MAX_FRUITLESS:
            if any(map(self._wakes, self._outbox)) or (self._outbox and not self._agenda):
                if not self._ask():
                    return
            elif not self._agenda:
                return
            else:
                self._next_instant()

    # -- events -------------------------------------------------------------------------------------------------------

    def _put(self, time: float, kind: int, subject: Any) -> None:
        heappush(self._agenda, (time, kind, next(self._numbers), subject))
        self._certain += kind != _CALL

    def _put_end(self, job: SchedulerJob) -> None:
        if job.expected_end < inf:
            self._put(max(job.expected_end, self._now), _END, job)

    def _next_instant(self) -> None:
        """Advance to the next simulated event, and process all events at its time."""
        self._now = self._agenda[0][0]
        while self._agenda and self._agenda[0][0] == self._now:
            _, kind, _, subject = heappop(self._agenda)
            if kind == _CALL:
                self._outbox.append(RequestedCall(self._now, RequestedCallData(subject)))
                continue
            self._certain -= 1
            self._fruitless = 0
            if kind == _END:
                self._end(subject, "COMPLETED_SUCCESSFULLY")
            elif kind == _PREEMPTION:
                self._preempted(subject)
            else:
                self._maintenance(*subject)

    def _end(self, job: SchedulerJob, state: JobState, cause: str = "") -> None:
        """End a job if it is still running."""
        if self._running.pop(job.id, None) is not None:
            data = JobCompletedData(job.id, state, str(job.alloc), cause=cause)
            self._outbox.append(JobCompleted(self._now, data))

    def _preempted(self, order: PreemptJobData) -> None:
        """End a preempted job after its grace period, and requeue it without saved work."""
        job = self._running.get(order.job_id)
        if job is None:
            return
        self._end(job, "COMPLETED_KILLED", PREEMPTED)
        if order.mode != "cancel" and job.description is not None:
            attempt = job.description.attempt + 1
            name = f"{job.id.partition(_AGAIN)[0]}{_AGAIN}{attempt}"
            subtime = job.submit if self._to_old_place else None
            again = replace(job.description, id=name, attempt=attempt, subtime=subtime)
            self._outbox.append(JobSubmitted(self._now, JobSubmittedData(again.id, again)))

    def _maintenance(self, window: Window, begins: bool) -> None:
        units, nodes = str(window.units), str(self._view.machine.numbering.nodes_of(window.units))
        if begins:
            for job in [job for job in self._running.values() if not window.units.isdisjoint(job.alloc)]:
                self._end(job, "COMPLETED_FAILED")
            self._outbox.append(MaintenanceBegins(self._now, MaintenanceBeginsData(window.id, nodes, units)))
        else:
            self._outbox.append(MaintenanceEnds(self._now, MaintenanceEndsData(window.id, nodes, units)))

    # -- the scheduler ------------------------------------------------------------------------------------------------

    def _wakes(self, event: Event) -> bool:
        """Return whether the scheduler wants a notice of this event."""
        name = _FILTERED.get(type(event))
        return self._wake is None or name is None or name in self._wake

    def _ask(self) -> bool:
        """Send the scheduler a notice and apply its decisions.

        Return whether the simulation continues.
        """
        self._seq += 1
        self._fruitless += not self._certain or self._agenda[0][0] <= self._now
        events, self._outbox = self._outbox, []
        reply = self._runtime.answer(Notice(self._seq, self._now, events))  # type: ignore[arg-type]
        self._wake = reply.wake
        for decision in reply.events:
            if type(decision) is Stop:
                return False
            carry_out = _CARRIED_OUT.get(type(decision))
            if carry_out is None:
                what = type(decision).__struct_config__.tag
                raise EstimateError(
                    f"the scheduler decides {what}, which has no meaning in an estimate",
                    where=f"expected at {self._now:.10g} s",
                )
            carry_out(self, decision)
        return True

    def _execute(self, decision: ExecuteJob) -> None:
        job_id = decision.data.job_id
        self.starts.setdefault(job_id, (self._now, decision.data.why or ""))
        self._left.discard(job_id)
        self._fruitless = 0
        job = self._running[job_id] = self._view.running.by_id[job_id]
        self._put_end(job)

    def _reject(self, decision: RejectJob) -> None:
        self.refusals.setdefault(decision.data.job_id, (self._now, decision.data.why or ""))
        self._left.discard(decision.data.job_id)
        self._fruitless = 0

    def _kill(self, decision: KillJob) -> None:
        for job_id in decision.data.job_ids:
            if job_id in self._running:
                self._end(self._running[job_id], "COMPLETED_KILLED")
        self._outbox.append(JobKilled(self._now, JobKilledData(decision.data.job_ids)))

    def _preempt(self, decision: PreemptJob) -> None:
        self._put(self._now + decision.data.grace, _PREEMPTION, decision.data)

    def _call(self, decision: CallMeLater) -> None:
        self._put(decision.data.timestamp, _CALL, decision.data.id)

    def _cancel(self, decision: CancelCall) -> None:
        self._agenda = [one for one in self._agenda if one[1] != _CALL or one[3] != decision.data.id]
        heapify(self._agenda)

    def _register(self, decision: RegisterJob) -> None:
        self._outbox.append(JobSubmitted(self._now, JobSubmittedData(decision.data.job_id, decision.data.job)))

    def _nothing(self, decision: Decision) -> None:
        """Ignore a decision that only attaches text for readers, such as SET_JOB_METADATA."""


#: {type of decision: method that carries it out}
_CARRIED_OUT: Final[dict[type[Decision], Callable[[_Ahead, Any], None]]] = {
    ExecuteJob: _Ahead._execute,
    RejectJob: _Ahead._reject,
    KillJob: _Ahead._kill,
    PreemptJob: _Ahead._preempt,
    CallMeLater: _Ahead._call,
    CancelCall: _Ahead._cancel,
    RegisterJob: _Ahead._register,
    SetJobMetadata: _Ahead._nothing,
}
