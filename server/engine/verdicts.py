"""Check the scheduler's decisions: carry out legal ones, and reject illegal ones."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, ClassVar, NoReturn

from mypy_extensions import mypyc_attr

from pipistrelle.platforms.requests.requests import NodeRequest
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CancelCall,
    Decision,
    ExecuteJob,
    KillJob,
    Malformed,
    PreemptJob,
    RegisterJob,
    RejectJob,
    SetJobMetadata,
    Stop,
)
from pipistrelle.protocol.events import (
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobKilled,
    JobKilledData,
    Progress,
    RequestedCall,
    RequestedCallData,
)
from pipistrelle.protocol.fields import MAX_CALLS, MAX_REGISTERED
from pipistrelle.server.engine.agenda import CALL, Entry, Handlers
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.lives import JobLives
from pipistrelle.server.errors import Illegal
from pipistrelle.traces.workload import decimal_text


@mypyc_attr(allow_interpreted_subclasses=True)
class Verdicts(Kept):
    """The engine part that carries out the scheduler's decisions.

    The scheduler may register jobs. Their ids must not begin with one of the workloads' ``prefixes``.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_open_calls", "_registered")

    def __init__(self, clockwork: Clockwork, lives: JobLives, prefixes: Iterable[str]) -> None:
        self._clockwork = clockwork
        self._lives = lives
        self._cluster = clockwork.cluster
        self._prefixes = frozenset(prefixes)
        #: {call id: agenda entry} of the pending calls that can be cancelled
        self.calls: dict[str, Entry] = {}
        #: number of pending calls, with or without an id; number of jobs registered so far
        self._open_calls = self._registered = 0
        #: {type of decision: method that carries it out, or raises `Illegal` before any effect}
        self.table: dict[type[Decision], Callable[[Any], None]] = {
            ExecuteJob: self._execute,
            RejectJob: self._reject,
            KillJob: self._kill,
            PreemptJob: self._preempt,
            CallMeLater: self._call_me_later,
            CancelCall: self._cancel_call,
            RegisterJob: self._register,
            SetJobMetadata: self._set_metadata,
            Stop: self._stop,
            Malformed: self._malformed,
        }

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}."""
        return {CALL: self._called}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; the agenda must be restored first."""
        super().restore(state)
        self.calls = {call_id: entry for call_id, entry in self._clockwork.agenda.of(CALL).items() if call_id}

    def forget_calls(self) -> None:
        """Forget all pending wake-up calls (CALL_ME_LATER).

        The caller removes them from the agenda.
        """
        self.calls.clear()
        self._open_calls = 0

    def _called(self, call_id: str) -> None:
        clockwork = self._clockwork
        self.calls.pop(call_id, None)
        self._open_calls -= 1
        clockwork.pending -= clockwork.rules.waits_for_calls
        clockwork.tell(RequestedCall(clockwork.now, RequestedCallData(call_id)))

    def _execute(self, decision: ExecuteJob) -> None:
        data = decision.data
        job = self._cluster.waiting.get(data.job_id)
        if job is None:
            ghost = self._cluster.ghosts.get(data.job_id)
            if ghost is None:
                self._not_waiting(data.job_id)
            alloc, now = self._cluster.lay(ghost, data.alloc, data.takes), self._clockwork.now
            self._clockwork.tell(JobCompleted(now, JobCompletedData(ghost.id, "COMPLETED_KILLED", str(alloc), -1)))
            return
        self._lives.start(job, data.alloc, data.takes)

    def _reject(self, decision: RejectJob) -> None:
        job = self._cluster.waiting.get(decision.data.job_id)
        if job is None:
            if self._cluster.ghosts.pop(decision.data.job_id, None) is not None:
                return  # the cancelled job has already left the queue
            self._not_waiting(decision.data.job_id)
        self._cluster.reject(self._clockwork.now, job)

    def _kill(self, decision: KillJob) -> None:
        self._end_early(decision.data.job_ids)

    def _preempt(self, decision: PreemptJob) -> None:
        self._lives.preempt(decision.data)

    def _end_early(self, job_ids: tuple[str, ...]) -> None:
        clockwork, cluster = self._clockwork, self._cluster
        for job_id in job_ids:
            if job_id in cluster.waiting:
                raise Illegal(
                    "wrong_state", f"{job_id} waits; only a running job can be killed (REJECT_JOB refuses it)"
                )
            if not cluster.knows(job_id):
                raise Illegal("unknown_job", f"no job {job_id} was submitted")
        progress: dict[str, Progress] = {}
        for job_id in job_ids:
            job = cluster.running.get(job_id)
            if job is not None:  # else the job ended before the kill arrived: not an error
                progress[job_id] = self._lives.progress(job)
                self._lives.end(job, "kill")
        clockwork.tell(JobKilled(clockwork.now, JobKilledData(job_ids, progress)))

    def _call_me_later(self, decision: CallMeLater) -> None:
        clockwork, data = self._clockwork, decision.data
        if not clockwork.now <= data.timestamp < inf:
            raise Illegal("past_time", f"no call can be at {data.timestamp!r}: it is {clockwork.now!r}")
        if data.id in self.calls:
            raise Illegal("duplicate_call", f"a call '{data.id}' is pending already")
        if self._open_calls >= MAX_CALLS:
            raise Illegal("too_many", f"{MAX_CALLS:,} calls are pending, and there may be no more")
        self._open_calls += 1
        entry = clockwork.agenda.put(data.timestamp, CALL, data.id)
        clockwork.pending += clockwork.rules.waits_for_calls
        if data.id:
            self.calls[data.id] = entry

    def _cancel_call(self, decision: CancelCall) -> None:
        entry = self.calls.pop(decision.data.id, None)
        if entry is None:
            raise Illegal("unknown_call", f"no call '{decision.data.id}' is pending")
        self._open_calls -= 1
        self._clockwork.agenda.cancel(entry)

    def _register(self, decision: RegisterJob) -> None:
        clockwork, data = self._clockwork, decision.data
        if "dynamic_jobs" not in clockwork.features:
            raise Illegal("feature_off", "REGISTER_JOB needs the feature 'dynamic_jobs', wanted in HELLO")
        if data.job.id != data.job_id:
            raise Illegal("malformed", f"job_id is {data.job_id}, but job.id is {data.job.id}")
        prefix, mark, name = data.job_id.partition("!")
        if not (prefix and mark and name) or prefix in self._prefixes:
            raise Illegal(
                "duplicate_job",
                f"'{data.job_id}' must be PREFIX!NAME with a prefix that no workload has, as in 'dyn!1'",
            )
        if self._cluster.knows(data.job_id):
            raise Illegal("duplicate_job", f"a job {data.job_id} exists already")
        if data.job.res > self._cluster.ledger.units:
            raise Illegal("too_large", f"{data.job_id} asks for {data.job.res} of {self._cluster.ledger.units} units")
        request = self._requested(data.job)
        book = self._cluster.requests
        allowed = None if request is None or book is None else book.allowed(request)
        resources = self._cluster.ledger.resources_of(data.job, allowed)
        self._count_registered()
        walltime = float("inf") if data.job.walltime is None else data.job.walltime
        profile = data.job.profile or decimal_text(data.runtime)
        self._lives.submit(
            Job(
                data.job_id,
                clockwork.now,
                data.job.res,
                walltime,
                data.runtime,
                profile,
                request=request,
                resources=resources,
            )
        )

    def _count_registered(self) -> None:
        if self._registered >= MAX_REGISTERED:
            raise Illegal("too_many", f"{MAX_REGISTERED:,} jobs were registered, and there may be no more")
        self._registered += 1

    def _requested(self, job: JobDescription) -> NodeRequest | None:
        """Return a registered job's node request; raise Illegal if it cannot be satisfied."""
        if job.whole_nodes and (job.units_per_node is None or job.res % job.units_per_node):
            raise Illegal("malformed", f"{job.id} asks for whole nodes: 'res' must be a multiple of 'units_per_node'")
        request, book = NodeRequest.of(job), self._cluster.requests
        refusal = None if book is None or request is None else book.refusal(request, job.res)
        if refusal is not None:
            raise Illegal("too_large", f"{job.id}: {refusal}")
        return request

    def _set_metadata(self, decision: SetJobMetadata) -> None:
        job_id = decision.data.job_id
        job = self._cluster.waiting.get(job_id) or self._cluster.running.get(job_id)
        if job is None and job_id in self._cluster.ghosts:
            return
        if job is None:
            if job_id in self._cluster.finished:
                raise Illegal("wrong_state", f"{job_id} has ended, its line is written")
            raise Illegal("unknown_job", f"no job {job_id} was submitted")
        job.metadata = decision.data.metadata

    def _stop(self, decision: Stop) -> None:
        self._clockwork.stopped = decision.data.reason or "the scheduler asked for it"

    def _malformed(self, decision: Malformed) -> None:
        raise Illegal(decision.code, decision.message)

    def _not_waiting(self, job_id: str) -> NoReturn:
        if job_id in self._cluster.running:
            raise Illegal("wrong_state", f"{job_id} runs already")
        if job_id in self._cluster.finished:
            raise Illegal("wrong_state", f"{job_id} has ended already")
        raise Illegal("unknown_job", f"no job {job_id} was submitted")
