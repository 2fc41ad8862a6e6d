"""The simulation's clockwork, without I/O: ``advance() -> notice``, ``apply(reply)``.

Each instant has three phases: all that happens by itself is absorbed, in the agenda's order; the scheduler is asked;
its decisions are carried out. Only then does time go on. A decision dated later waits in the agenda, and no notice is
sent before the scheduler is ready again.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final

from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import (
    DecisionRejected,
    Event,
    JobCompleted,
    JobCompletedData,
    JobKilled,
    JobSubmitted,
    NoMoreJobs,
    Progress,
    RequestedCall,
    RequestedCallData,
    SimulationBegins,
    SimulationBeginsData,
    SimulationEnds,
    SimulationEndsData,
)
from pipistrelle.protocol.fields import EndReason, Feature, WakeType
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.agenda import CALL, DECISION, END, PHASE, READY, SUBMISSION, Agenda, Entry
from pipistrelle.server.cluster import Cluster
from pipistrelle.server.errors import DecisionRefused, SchedulerFailed
from pipistrelle.server.jobs import Job
from pipistrelle.server.lifecycle import Step
from pipistrelle.server.observers import Observer
from pipistrelle.server.stalls import StallDetector, describe_waiting
from pipistrelle.server.verdicts import Illegal, Verdicts

if TYPE_CHECKING:
    from pipistrelle.server.executor import Executor
    from pipistrelle.server.phases import Task

#: these wake the scheduler whatever its wake filter says: it asked for the first, and must know of the second
_ALWAYS_WAKE: Final[frozenset[type[Event]]] = frozenset((RequestedCall, DecisionRejected))
_WAKE: Final[dict[str, type[Event]]] = {
    "JOB_SUBMITTED": JobSubmitted,
    "JOB_COMPLETED": JobCompleted,
    "JOB_KILLED": JobKilled,
    "NO_MORE_JOBS": NoMoreJobs,
}


class Engine:
    """A simulated cluster that a scheduler decides for.

    Parameters
    ----------
    begins
        what the scheduler is told first; its ``nb_resources`` is the machine's size in units.
    jobs
        the workload's jobs, by ascending submit time; taken one at a time.
    features
        the optional parts of the protocol that were agreed on.
    strict
        whether an illegal decision ends the run (`DecisionRefused`) instead of being rejected.
    observers
        told of all that happens.
    cluster
        the machine; one of free units, each for one job at a time, unless another kind is given.
    news_apart
        whether the news that a source is exhausted comes with a notice of its own, after that of the source's last
        event, as Batsim does it.
    """

    def __init__(
        self,
        begins: SimulationBeginsData,
        jobs: Iterator[Job],
        *,
        features: Sequence[Feature] = (),
        strict: bool = False,
        observers: Sequence[Observer] = (),
        cluster: Cluster | None = None,
        news_apart: bool = False,
    ) -> None:
        #: simulated time in seconds
        self.now = 0.0
        self.cluster = Cluster(begins.nb_resources, observers) if cluster is None else cluster
        self.agenda = Agenda()
        #: {call id: agenda entry} of the pending calls that can be cancelled
        self.calls: dict[str, Entry] = {}
        #: number of the last notice
        self.seq = 0
        #: set by a STOP decision: its reason
        self.stopped: str | None = None
        self.features = frozenset(features)
        #: whether the workload has no more jobs to submit
        self.exhausted = False
        #: how many things other than jobs are under way that the end of the run waits for
        self.pending = 0
        #: whether the run does not end before the last call that was asked for, as with Batsim
        self.waits_for_calls = news_apart
        #: whether the scheduler may still register jobs
        self.registering = "dynamic_jobs" in self.features
        #: runs the jobs whose hosts decide how long they take; None where there are no such jobs
        self.executor: Executor | None = None
        #: {class on the agenda: what is done with its subjects}, for classes that not every run has
        self.handlers: dict[int, Callable[[Any], None]] = {}
        self._hooks = self.cluster.hooks
        self._begins: SimulationBeginsData | None = begins
        self._prefixes = frozenset(begins.workloads)
        self._jobs = jobs
        self._strict = strict
        self._news_apart = news_apart
        self._news: list[Event] = []
        self._outbox: list[Event] = []
        self._wake: frozenset[type[Event]] | None = None
        #: {filters that replies have had: the types that they let pass}
        self._wakes: dict[tuple[WakeType, ...], frozenset[type[Event]]] = {}
        self._must_wake = False
        self._told_at = -1.0
        #: how many units were free when an instant was closed last
        self._settled = -1
        self._busy_until = 0.0
        self._ended: tuple[EndReason, str] = ("error", "")
        self.verdicts = Verdicts(self)
        self._stalls = StallDetector()

    # -- phase 1: absorb --------------------------------------------------------------------------------------------

    def advance(self) -> Notice | None:
        """Let time pass until the scheduler must be told something; None when the run is over.

        Raises
        ------
        Stalled
            when jobs wait and nothing will ever happen again.
        """
        if self._begins is not None:
            return self._first_notice(self._begins)
        while True:
            if self.stopped is not None:
                return None
            if self._must_wake and self.now >= self._busy_until:
                return self._notice()
            if self.exhausted and self._all_done():
                return None
            entry = self.agenda.pop()
            if entry is None:
                if self._outbox:  # the wake filter held these back, but nothing else is to come
                    return self._notice()
                self._stalls.nothing_to_come(self.now, self.cluster, registering=self.registering and self._news_apart)
                return None
            if entry[0] != self.now:
                if self.cluster.ledger.idle != self._settled:
                    self._settle()
                self.now = entry[0]
            self._absorb(entry)

    def _absorb(self, entry: Entry | None) -> None:
        now, pop_at = self.now, self.agenda.pop_at
        while entry is not None:
            _, kind, _, subject = entry
            if kind == END:
                self._end(subject, "finish" if subject.runtime <= subject.walltime else "reach_walltime")
            elif kind == SUBMISSION:
                self.submit(subject)
                self._next_submission()
            elif kind == CALL:
                self.calls.pop(subject, None)
                self.pending -= self.waits_for_calls
                self.tell(RequestedCall(now, RequestedCallData(subject)))
            elif kind == DECISION:
                self._carry_out(*subject)
            elif kind in self.handlers:
                self.handlers[kind](subject)
            entry = pop_at(now)

    def _end(self, job: Job, step: Step) -> None:
        if step == "finish" and job.return_code:
            step = "fail"
        self._release(job, step)
        return_code = job.return_code if step in ("finish", "fail") else -1
        # Every state that a running job can end in is one of the protocol's.
        data = JobCompletedData(job.id, job.state, str(job.alloc), return_code)  # type: ignore[arg-type]
        self.tell(JobCompleted(self.now, data))

    def _release(self, job: Job, step: Step) -> None:
        job.ending = None
        if job.work is not None and self.executor is not None:
            self.executor.stop(self.now, job)
        self.cluster.end(self.now, job, step)

    def _next_submission(self) -> None:
        job = next(self._jobs, None)
        if job is not None:
            self.agenda.put(job.submit, SUBMISSION, job)
        elif not self.exhausted:
            self.exhausted = True
            self.tell_apart(NoMoreJobs(self.now))

    # -- phase 2: the scheduler's turn ------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Put an event into the next notice."""
        self._outbox.append(event)
        if self._wake is None or type(event) in self._wake:
            self._must_wake = True

    def tell_apart(self, event: Event) -> None:
        """Tell that a source is exhausted: after the notice that its last event comes with, if that is the way."""
        if self._news_apart and self._must_wake:
            self._news.append(event)
        else:
            self.tell(event)

    def _first_notice(self, begins: SimulationBeginsData) -> Notice:
        self._begins = None
        for hook in self._hooks.begins:
            hook(self.now, begins.nb_resources)
        self.tell(SimulationBegins(self.now, begins))
        notice = self._notice()
        self._next_submission()
        return notice

    def _notice(self) -> Notice:
        now = self.now
        if now == self._told_at:
            self._stalls.same_instant(now, self.cluster)
        self._told_at = now
        if self.exhausted and not self.cluster.running:
            self._stalls.idle(now, self.cluster)
        events, self._outbox = self._outbox, []
        self._must_wake = False
        if self._news:
            self._outbox, self._news = self._news, []
            self._must_wake = True
        self.seq += 1
        return Notice(self.seq, now, events)  # type: ignore[arg-type]

    # -- phase 3: decisions -----------------------------------------------------------------------------------------

    def apply(self, reply: Reply) -> None:
        """Carry out the decisions of the reply to the last notice; those dated later are kept for their time.

        Raises
        ------
        SchedulerFailed
            when the reply's ``now`` lies before the notice's.
        DecisionRefused
            when a decision is illegal and the engine is strict.
        """
        if reply.now < self.now:
            raise SchedulerFailed(
                "the reply is dated before the notice that it answers",
                where="$.now",
                expected=f"at least {self.now!r}",
                found=repr(reply.now),
                hint="Take the time from the notice, never from a clock.",
            )
        if reply.wake is None or "wake_filter" not in self.features:
            self._wake = None
        else:
            wake = tuple(reply.wake)
            if wake not in self._wakes:
                self._wakes[wake] = _ALWAYS_WAKE.union(_WAKE[name] for name in wake)
            self._wake = self._wakes[wake]
        now = self.now
        busy_until = reply.now
        for index, decision in enumerate(reply.events):
            if decision.timestamp <= now:
                self._carry_out(decision, reply.reply_to, index)
            else:
                busy_until = max(busy_until, decision.timestamp)
                self.agenda.put(decision.timestamp, DECISION, (decision, reply.reply_to, index))
        if busy_until > now:
            self._busy_until = busy_until
            self.agenda.put(busy_until, READY, READY)
        if reply.events and self.stopped is None:
            self._absorb(self.agenda.pop_at(now))  # what decisions have put on this very instant

    def _carry_out(self, decision: Decision, reply_to: int, index: int) -> None:
        try:
            self.verdicts.carry_out(decision)
            rejected = None
        except Illegal as illegal:
            rejected = illegal.event(self.now, decision, reply_to, index)
        for hook in self._hooks.decided:
            hook(self.now, decision, None if rejected is None else rejected.data)
        if rejected is not None:
            if self._strict:
                raise DecisionRefused(
                    f"illegal decision ({rejected.data.code}): {rejected.data.message}",
                    where=f"decision {index} ({rejected.data.decision}) of the reply to notice {reply_to}",
                    hint="Batsim's protocol cannot say so to the scheduler: the run ends."
                    if self._news_apart
                    else "Without --strict it would be answered with DECISION_REJECTED.",
                )
            self.tell(rejected)

    def submit(self, job: Job, *, announce: bool = True) -> None:
        """Let a job join the queue now and announce it."""
        self.cluster.submit(self.now, job)
        if announce:
            self.tell(JobSubmitted(self.now, job.announcement()))

    def start(self, job: Job, alloc_text: str) -> None:
        """Start a waiting job now and put its end on the agenda; IllegalAllocation if that cannot be."""
        self.cluster.execute(self.now, job, alloc_text)
        if job.work is None:
            job.ending = self.agenda.put(self.now + min(job.runtime, job.walltime), END, job)
        else:
            self._begin_work(job)

    def _begin_work(self, job: Job) -> None:
        assert self.executor is not None, f"{job.id} has work, but there is nothing that does it"
        if job.walltime < inf:
            job.ending = self.agenda.put(self.now + job.walltime, END, job)
        self.executor.start(self.now, job)

    def let_work(self, executor: "Executor") -> None:
        """Have jobs whose hosts decide how long they take, too."""
        self.executor = executor
        self.handlers[PHASE] = self._phase_over

    def _phase_over(self, task: "Task") -> None:
        """Let a job's next phase begin, or the job end if all its work is done."""
        assert self.executor is not None
        run = self.executor.phase_over(self.now, task)
        if run is not None:
            job = self.cluster.running[run.job_id]
            if job.ending is not None:
                self.agenda.cancel(job.ending)
            self._end(job, "finish")

    def progress(self, job: Job) -> Progress:
        """Return how far a running job has come."""
        if job.work is not None and self.executor is not None:
            progress = self.executor.progress(self.now, job)
            return progress if self._news_apart else Progress(progress.progress)
        done = (self.now - job.start) / job.runtime if job.runtime > 0 else 1.0
        return Progress(min(done, 1.0), job.profile if self._news_apart else None)

    def kill(self, job: Job) -> None:
        """End a running job now, before its time, and announce it."""
        if job.ending is not None:
            self.agenda.cancel(job.ending)
        self._end(job, "kill")

    def declare_ended(self, job: Job, step: Step) -> None:
        """End a running job now as its scheduler says; it is not announced."""
        if job.ending is not None:
            self.agenda.cancel(job.ending)
        self._release(job, step)

    def is_workload(self, prefix: str) -> bool:
        """Tell whether job ids with this prefix belong to a workload."""
        return prefix in self._prefixes

    def _settle(self) -> None:
        """Close an instant that leaves another number of units free than the one before."""
        self._settled = self.cluster.ledger.idle
        for hook in self._hooks.settled:
            hook(self.now, self._settled)

    # -- the end ----------------------------------------------------------------------------------------------------

    def _all_done(self) -> bool:
        cluster = self.cluster
        if cluster.running or cluster.waiting or self.pending or self._must_wake:
            return False
        if self._news_apart and self.now < self._busy_until:  # Batsim says the end when its scheduler can hear it
            return False
        # What a scheduler that may register jobs has asked for can still lead to something.
        return not self.registering

    def end(self, reason: EndReason, message: str = "") -> Notice:
        """Return the last notice, which tells the scheduler that the run is over, and why."""
        if self.stopped is not None and reason == "completed":
            reason, message = "stopped", self.stopped
            if self.cluster.waiting or self.cluster.running:
                message = f"{message} ({describe_waiting(self.cluster)})"
        self._ended = (reason, message)
        self.seq += 1
        ends = SimulationEnds(self.now, SimulationEndsData(reason, message))
        return Notice(self.seq, self.now, [*self._outbox, ends])  # type: ignore[list-item]

    def close(self) -> None:
        """Tell the observers that the run is over, as `end` said it."""
        # Before the first reply the observers were not even told of a beginning.
        if self.seq > 1 and self.cluster.ledger.idle != self._settled:
            self._settle()
        for hook in self._hooks.ends:
            hook(self.now, *self._ended)
