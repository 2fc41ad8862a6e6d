"""How a job lives on the machine: it joins the queue, starts, goes on and ends; and the time beside its work."""

from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.decisions import PreemptJobData
from pipistrelle.protocol.events import JobCompleted, JobCompletedData, JobSubmitted, Progress
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import END, PHASE, Handlers
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job, Step
from pipistrelle.server.errors import Illegal
from pipistrelle.traces.profiles import Profile

_NO_TIME: Final = (0.0, 0.0)
#: returns by what the runtime of a job on these units is multiplied, at least 1
Dilation = Callable[[NodeSet], float]


class Overheads:
    """Knows how long jobs take before they begin to work and after they have ended: prologue and epilogue.

    A job takes the longest of the pools that it has units of, and in addition that of its class.
    """

    def __init__(self, platform: Platform | None = None) -> None:
        #: (first unit, the one after the last, seconds before, seconds after) of each pool
        self._pools: list[tuple[int, int, float, float]] = []
        self._classes: dict[str, tuple[float, float]] = {}
        first = 0
        for pool in () if platform is None else platform.pools:
            self._pools.append((first, first + pool.units, pool.prologue, pool.epilogue))
            first += pool.units
        for one in () if platform is None else platform.classes:
            self._classes[one.name] = (one.prologue, one.epilogue)
        times = [(before, after) for _, _, before, after in self._pools] + list(self._classes.values())
        #: whether some job takes such time
        self.exist = any(before or after for before, after in times)

    def of(self, job: Job) -> tuple[float, float]:
        """Return how long a job that has its units takes before and after its work, in seconds."""
        before, after = self._classes.get(job.queue or "", _NO_TIME)
        longest = [0.0, 0.0]
        for begin, end, prologue, epilogue in self._pools:
            if any(low < end and high >= begin for low, high in job.alloc.intervals):
                longest = [max(longest[0], prologue), max(longest[1], epilogue)]
        return before + longest[0], after + longest[1]


class Work(Protocol):
    """Does the work of jobs that have more than a runtime: hosts decide how long that takes."""

    def begins(self, job: Job) -> None:
        """Let a job that has its units begin to work; its walltime is put on the agenda."""

    def phase_over(self, task: int) -> Job | None:
        """Begin what comes after a task that stood on the agenda in class `PHASE`; return a job that is done."""

    def over(self, job: Job) -> None:
        """Take note that a job that has begun ends now, whatever has ended it."""

    def progress(self, job: Job) -> Progress:
        """Return how far a job is that has begun."""

    def work_of(self, job_id: str, profile: str) -> Profile:
        """Return what is done for a job with a profile of this name."""

    def state(self) -> Any:
        """Return how far the jobs are, as plain values."""

    def restore(self, state: Any) -> None:
        """Go on from such a state; the cluster has its jobs again."""


class LifePart(Protocol):
    """A part of the jobs' lives that only some runs have."""

    def leaves(self, job: Job) -> None:
        """Take note that a running job ends now; it still holds its units."""

    def state(self) -> Any:
        """Return what it keeps, as plain values."""

    def restore(self, state: Any) -> None:
        """Go on from such a state; cluster and agenda are restored."""

    def check_invariants(self) -> None:
        """Assert that it agrees with cluster and agenda."""


class AttemptsPart(LifePart, Protocol):
    """The part that follows each attempt of a job, where jobs can lose their units and come back."""

    @property
    def unsettled(self) -> bool:
        """Whether units may have gone down or come up since `idle_and_down` was asked last."""

    def submitted(self, job: Job) -> None:
        """Take note of a job that joins the queue now."""

    def begins(self, job: Job) -> None:
        """Let a job begin that was just given its units, now or later."""

    def share(self, job: Job) -> float:
        """Return how much of a running job's work is done: 1 is all."""

    def is_awaited(self, job: Job) -> bool:
        """Tell whether something else than its end on the agenda will end a running job."""

    def idle_and_down(self) -> tuple[int, int]:
        """Return how many units are free and in service, and how many are neither free nor held by a job."""


class PreemptionPart(LifePart, Protocol):
    """The part that takes units away from running jobs because the scheduler says so."""

    def handlers(self) -> Handlers:
        """Return what is done with which class of what stands on the agenda."""

    def preempt(self, order: PreemptJobData) -> None:
        """Take a running job's units away, at the end of its grace; Illegal if that cannot be."""


class JobLives(Kept):
    """Takes every step of a job from the queue to its end; the engine asks for it and does not know how jobs live.

    By itself it lets each job take its runtime, or as long as its hosts decide. Further parts are added in a run that
    needs them, before it begins.

    Parameters
    ----------
    clockwork
        the run's.
    overheads
        the times that jobs take beside their work.
    work
        does what jobs have in place of a runtime; None: no job has such work.
    dilation
        how much longer jobs take on their units; None: no longer.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_work", "attempts", "preemption")

    def __init__(
        self, clockwork: Clockwork, overheads: Overheads, work: Work | None = None, dilation: Dilation | None = None
    ) -> None:
        self._clockwork = clockwork
        self._cluster = clockwork.cluster
        self._agenda = clockwork.agenda
        self._overheads = overheads
        self._dilation = dilation
        self._work = work
        if work is not None:
            self._cluster.work_of = work.work_of
        #: follows the attempts of jobs; None: no job can lose its units
        self.attempts: AttemptsPart | None = None
        #: None: the scheduler cannot preempt
        self.preemption: PreemptionPart | None = None

    def handlers(self) -> Handlers:
        """Return what is done with which class of what stands on the agenda."""
        own: Handlers = {END: self._end_comes, PHASE: self._phase_over}
        return own if self.preemption is None else {**own, **self.preemption.handlers()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state; cluster and agenda are restored."""
        for job_id, entry in self._agenda.of(END).items():
            self._cluster.running[job_id].ending = entry
        super().restore(state)

    # -- steps that the engine asks for -----------------------------------------------------------------------------

    @property
    def retries(self) -> bool:
        """Whether jobs can lose their units and come back to the queue."""
        return self.attempts is not None

    def submit(self, job: Job, *, announce: bool = True) -> None:
        """Let a job join the queue now and announce it."""
        now = self._clockwork.now
        if self.attempts is not None:
            self.attempts.submitted(job)
        self._cluster.submit(now, job)
        if announce:
            self._clockwork.tell(JobSubmitted(now, job.announcement()))

    def start(self, job: Job, alloc_text: str) -> None:
        """Start a waiting job now and put its end on the agenda; Illegal if that cannot be."""
        self._cluster.execute(self._clockwork.now, job, alloc_text)
        if self._overheads.exist:
            job.prologue, job.epilogue = self._overheads.of(job)
        if self.attempts is not None:
            self.attempts.begins(job)
        elif job.work is not None:
            self._worked(job).begins(job)
        else:
            runtime = job.runtime if self._dilation is None else self._runtime(job)
            walltime = job.walltime
            if runtime > walltime:
                job.in_time = False
                runtime = walltime
            time = self._clockwork.now + (runtime + (job.prologue + job.epilogue))
            job.ending = self._agenda.put(time, END, job.id)

    def progress(self, job: Job) -> Progress:
        """Return how far a running job has come."""
        if job.work is not None and (job.attempt is None or job.attempt.has_begun):
            return self._worked(job).progress(job)
        if self.attempts is not None:
            done = self.attempts.share(job)
        else:
            runtime = self._runtime(job)
            done = (self._clockwork.now - job.start - job.prologue) / runtime if runtime > 0 else 1.0
        return Progress(min(max(done, 0.0), 1.0), job.profile if self._clockwork.rules.tells_profiles else None)

    def end(self, job: Job, step: Step, *, announce: bool = True) -> None:
        """End a running job now.

        Its end is announced unless the scheduler has declared it; it fails if it finishes and returns a failure.
        """
        if job.ending is not None:
            self._agenda.cancel(job.ending)
            job.ending = None
        if announce and step == "finish" and job.return_code:
            step = "fail"
        if self.preemption is not None:
            self.preemption.leaves(job)
        if job.work is not None and (job.attempt is None or job.attempt.has_begun):
            self._worked(job).over(job)
        if self.attempts is not None:
            self.attempts.leaves(job)
        now = self._clockwork.now
        self._cluster.end(now, job, step)
        if not announce:
            return
        return_code = job.return_code if step in ("finish", "fail") else -1
        cause = job.attempt.cause if job.attempt is not None else ""
        # Every state that a running job can end in is one of the protocol's.
        alloc = job.alloc.written or str(job.alloc)
        data = JobCompletedData(job.id, job.state, alloc, return_code, cause)  # type: ignore[arg-type]
        self._clockwork.tell(JobCompleted(now, data))

    def preempt(self, order: PreemptJobData) -> None:
        """Take a running job's units away, at the end of its grace; Illegal if that cannot be."""
        if self.preemption is None:
            raise Illegal("feature_off", "PREEMPT_JOB needs the feature 'preemption', wanted in HELLO")
        self.preemption.preempt(order)

    @property
    def unsettled(self) -> bool:
        """Whether units may have gone down or come up since `idle_and_down` was asked last."""
        return self.attempts is not None and self.attempts.unsettled

    def idle_and_down(self) -> tuple[int, int]:
        """Return how many units are free and in service, and how many are neither free nor held by a job."""
        return (self._cluster.ledger.idle, 0) if self.attempts is None else self.attempts.idle_and_down()

    def check_invariants(self) -> None:
        """Assert that each running job has an end to come, or something else that it waits for."""
        ending = self._agenda.of(END)
        for job in self._cluster.running.values():
            assert ending.get(job.id) is job.ending, f"{job.id} has another end than the one on the agenda"
            assert job.ending is not None or self._is_awaited(job), f"{job.id} runs, and nothing will end it"
        assert ending.keys() <= self._cluster.running.keys(), f"jobs are to end that do not run: {ending.keys()}"
        for part in (self.attempts, self.preemption):
            if part is not None:
                part.check_invariants()

    # -- how jobs live without further parts ------------------------------------------------------------------------

    def _worked(self, job: Job) -> Work:
        """Return what does the work of a job."""
        assert self._work is not None, f"{job.id} has work, but there is nothing that does it"
        return self._work

    def _runtime(self, job: Job) -> float:
        """Return how long a job that has its units takes on these (s)."""
        return job.runtime if self._dilation is None else job.runtime * self._dilation(job.alloc)

    def _is_awaited(self, job: Job) -> bool:
        """Tell whether something else than its end on the agenda will end a running job."""
        if job.work is not None or not job.alloc:  # its scheduler will declare its end
            return True
        return self.attempts is not None and self.attempts.is_awaited(job)

    def _end_comes(self, job_id: str) -> None:
        job = self._cluster.running[job_id]
        job.ending = None
        self.end(job, "finish" if job.in_time else "reach_walltime")

    def _phase_over(self, task: int) -> None:
        assert self._work is not None
        job = self._work.phase_over(task)
        if job is not None:
            self.end(job, "finish")
