"""The simulation's clockwork, without I/O: ``advance() -> notice``, ``apply(reply)``.

Each instant has three phases: all that happens by itself is absorbed, in the agenda's order; the scheduler is asked;
its decisions are carried out. Only then does time go on. A decision dated later waits in the agenda, and no notice is
sent before the scheduler is ready again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import (
    Event,
    JobCompleted,
    JobCompletedData,
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
from pipistrelle.protocol.fields import EndReason, Feature
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.engine.agenda import CALL, DECISION, END, READY, SUBMISSION, Agenda, Entry
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.lifecycle import Step
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.engine.stalls import StallDetector, describe_waiting
from pipistrelle.server.engine.verdicts import Illegal, Verdicts
from pipistrelle.server.engine.wake import WakeFilters
from pipistrelle.server.errors import DecisionRefused, SchedulerFailed

if TYPE_CHECKING:
    from pipistrelle.server.attempts.attempts import Trials
    from pipistrelle.server.engine.dependencies import Dependencies
    from pipistrelle.server.engine.overheads import Overheads
    from pipistrelle.server.hosts.working import Working


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
        #: tells of the time that jobs take beside their work; None where they take none
        self.overheads: Overheads | None = None
        #: how many jobs are kept back for others that they depend on
        self.held = 0
        #: keeps them back; None where no job depends on another
        self.dependencies: Dependencies | None = None
        #: how many things other than jobs are under way that the end of the run waits for
        self.pending = 0
        #: whether the run does not end before the last call that was asked for, as with Batsim
        self.waits_for_calls = news_apart
        #: whether the scheduler may still register jobs
        self.registering = "dynamic_jobs" in self.features
        #: has the jobs' work done whose hosts decide how long they take; None where there are no such jobs
        self.working: Working | None = None
        #: follows the jobs' attempts where nodes can fail; None where they cannot
        self.trials: Trials | None = None
        #: {class on the agenda: what is done with its subjects}, for classes that not every run has
        self.handlers: dict[int, Callable[[Any], None]] = {}
        self._hooks = self.cluster.hooks
        self._begins: SimulationBeginsData | None = begins
        self._prefixes = frozenset(begins.workloads)
        self._jobs = jobs
        self._drained = False
        self._strict = strict
        self._news_apart = news_apart
        self._news: list[Event] = []
        self._outbox: list[Event] = []
        self._wake: frozenset[type[Event]] | None = None
        self._wakes = WakeFilters()
        self._must_wake, self._told_at = False, -1.0
        #: how many units were free when an instant was closed last
        self._settled = -1
        self._busy_until = 0.0
        self._ended: tuple[EndReason, str] = ("error", "")
        self.verdicts = Verdicts(self)
        self.stalls = StallDetector()

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
            if self._drained and not self.exhausted:
                self._no_more_jobs()  # the last job that was kept back may have been rejected
            if self._must_wake and self.now >= self._busy_until:
                return self._notice()
            if self.exhausted and self._all_done():
                return None
            entry = self.agenda.pop()
            if entry is None:
                if self._outbox:  # the wake filter held these back, but nothing else is to come
                    return self._notice()
                self.stalls.nothing_to_come(self.now, self.cluster, registering=self.registering and self._news_apart)
                return None
            if entry[0] != self.now:
                if self.cluster.ledger.idle != self._settled or (self.trials is not None and self.trials.unsettled):
                    self._settle()
                self.now = entry[0]
            self._absorb(entry)

    def _absorb(self, entry: Entry | None) -> None:
        now, pop_at = self.now, self.agenda.pop_at
        while entry is not None:
            _, kind, _, subject = entry
            if kind == END:
                self._end(subject, "finish" if subject.in_time else "reach_walltime")
            elif kind == SUBMISSION:
                if self.dependencies is None or not self.dependencies.hold(subject):
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
        cause = job.attempt.cause if job.attempt is not None else ""
        # Every state that a running job can end in is one of the protocol's.
        data = JobCompletedData(job.id, job.state, str(job.alloc), return_code, cause)  # type: ignore[arg-type]
        self.tell(JobCompleted(self.now, data))

    def _release(self, job: Job, step: Step) -> None:
        job.ending = None
        if job.work is not None and self.working is not None:
            self.working.over(job)
        if self.trials is not None:
            self.trials.over(job)
        self.cluster.end(self.now, job, step)

    def _next_submission(self) -> None:
        job = next(self._jobs, None)
        if job is not None:
            self.agenda.put(job.submit, SUBMISSION, job)
        else:
            self._drained = True
            self._no_more_jobs()

    def _no_more_jobs(self) -> None:
        """Say, once, that the workload has no more jobs, unless some are kept back."""
        if self._drained and not self.held and not self.exhausted:
            self.exhausted = True
            self.tell_apart(NoMoreJobs(self.now))

    def queue(self, job: Job) -> None:
        """Let a job queue now that was kept back, or that comes back after it lost its nodes."""
        self.submit(job)
        self._no_more_jobs()

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
            self.stalls.same_instant(now, self.cluster)
        self._told_at = now
        if self.exhausted and not self.cluster.running:
            self.stalls.idle(now, self.cluster)
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
            self._wake = self._wakes.types(tuple(reply.wake))
        now, busy_until = self.now, reply.now
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
        if self.trials is not None:
            self.trials.admit(job)
        self.cluster.submit(self.now, job)
        if announce:
            self.tell(JobSubmitted(self.now, job.announcement()))

    def start(self, job: Job, alloc_text: str) -> None:
        """Start a waiting job now and put its end on the agenda; IllegalAllocation if that cannot be."""
        self.cluster.execute(self.now, job, alloc_text)
        if self.overheads is not None:
            job.prologue, job.epilogue = self.overheads.of(job)
        if self.trials is not None:
            self.trials.started(job)
        elif job.work is None:
            runtime, walltime = job.runtime, job.walltime
            if runtime > walltime:
                job.in_time = False
                runtime = walltime
            if self.overheads is not None:
                runtime += job.prologue + job.epilogue
            job.ending = self.agenda.put(self.now + runtime, END, job)
        else:
            assert self.working is not None, f"{job.id} has work, but there is nothing that does it"
            self.working.started(job)

    def progress(self, job: Job) -> Progress:
        """Return how far a running job has come."""
        if job.work is not None and self.working is not None:
            return self.working.progress(job)
        if self.trials is not None:
            return Progress(self.trials.progress(job), job.profile if self._news_apart else None)
        done = (self.now - job.start - job.prologue) / job.runtime if job.runtime > 0 else 1.0
        return Progress(min(max(done, 0.0), 1.0), job.profile if self._news_apart else None)

    def kill(self, job: Job, step: Step = "kill") -> None:
        """End a running job now, before its time, and announce it."""
        if job.ending is not None:
            self.agenda.cancel(job.ending)
        self._end(job, step)

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
        idle, down = (self._settled, 0) if self.trials is None else self.trials.idle_and_down()
        for hook in self._hooks.settled:
            hook(self.now, idle, down)

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
        if self.seq > 1 and (self.cluster.ledger.idle != self._settled or self.trials is not None):
            self._settle()
        for hook in self._hooks.ends:
            hook(self.now, *self._ended)
