"""Submission, start and end of jobs, with prologue and epilogue."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, inf
from typing import Any, ClassVar, Final, Protocol

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.decisions import PreemptJobData
from pipistrelle.protocol.events import JobCompleted, JobCompletedData, JobSubmitted, Progress
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import END, PHASE, Handlers
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job, Step
from pipistrelle.server.errors import Illegal
from pipistrelle.traces.profiles import Profile

_NO_TIME: Final = (0.0, 0.0)
#: returns the factor on the runtime of a job that holds these units, at least 1
Dilation = Callable[[NodeSet], float]


class LimitChecks:
    """Regular checks of walltimes; a job over its limit is killed at the next check.

    Args:
        period, phase: time between two checks (s), and the time of any one check (s).
        grace: time (s) that jobs may run beyond their walltime; inf: jobs are never killed.
        graces: {queue: grace of its jobs}, where it differs.
    """

    def __init__(self, period: float, phase: float, grace: float, graces: Mapping[str, float]) -> None:
        self._period = period
        self._phase = phase
        self._grace = grace
        self._graces = dict(graces)

    def deadline(self, job: Job, begun: float) -> tuple[float, float]:
        """Return the last time within a job's limit, and when the job is killed (s).

        The job's work began at ``begun`` (s). As in Slurm, a check counts whole seconds since the second of the start.
        """
        longest = job.walltime + self._graces.get(job.queue or "", self._grace)
        if longest == inf:
            return inf, inf
        counted = floor(begun) + longest
        killed = self._phase + max(0, ceil((counted - self._phase) / self._period)) * self._period
        return min(begun + longest, killed), killed


class Overheads:
    """Prologue and epilogue times of jobs, which depend on pools and job classes."""

    def __init__(self, platform: Platform | None = None) -> None:
        #: (first unit, last unit + 1, prologue (s), epilogue (s)) of each pool
        self._pools: list[tuple[int, int, float, float]] = []
        self._classes: dict[str, tuple[float, float]] = {}
        first = 0
        for pool in () if platform is None else platform.pools:
            self._pools.append((first, first + pool.units, pool.prologue, pool.epilogue))
            first += pool.units
        for one in () if platform is None else platform.classes:
            self._classes[one.name] = (one.prologue, one.epilogue)
        times = [(before, after) for _, _, before, after in self._pools] + list(self._classes.values())
        self.exist = any(before or after for before, after in times)

    def of(self, job: Job) -> tuple[float, float]:
        """Return a job's prologue and epilogue (s).

        Each is the longest time of the pools that the job uses, plus the time of the job's class.
        """
        before, after = self._classes.get(job.queue or "", _NO_TIME)
        longest = [0.0, 0.0]
        for begin, end, prologue, epilogue in self._pools:
            if any(low < end and high >= begin for low, high in job.alloc.intervals):
                longest = [max(longest[0], prologue), max(longest[1], epilogue)]
        return before + longest[0], after + longest[1]


class Work(Protocol):
    """Interface to the simulated hosts that decide how long jobs take."""

    def begins(self, job: Job) -> None:
        """Begin the work of a job that has its units; put its walltime on the agenda."""

    def phase_over(self, task: int) -> Job | None:
        """End the task with number ``task``, which is a part of a job's work and ends now.

        Return the job if all its work is done, else None.
        """

    def over(self, job: Job) -> None:
        """Stop the work of a job that ends now."""

    def progress(self, job: Job) -> Progress:
        """Return the progress of a job whose work has begun."""

    def work_of(self, job_id: str, profile: str) -> Profile:
        """Return the profile called ``profile`` of the job's workload.

        The profile describes the job's work.
        """

    def state(self) -> Any:
        """Return the progress of all jobs as plain values, for a snapshot."""

    def restore(self, state: Any) -> None:
        """Restore a saved state; the cluster must be restored first."""


class LifePart(Protocol):
    """A part of job handling that only some runs have, such as preemption."""

    def leaves(self, job: Job) -> None:
        """Handle the end of a running job, which still holds its units."""

    def state(self) -> Any:
        """Return the state of this part as plain values, for a snapshot."""

    def restore(self, state: Any) -> None:
        """Restore a saved state; cluster and agenda must be restored first."""

    def check_invariants(self) -> None:
        """Assert that the state of this part agrees with cluster and agenda."""


class AttemptsPart(LifePart, Protocol):
    """The engine part that tracks attempts, in runs where jobs can lose their units."""

    @property
    def unsettled(self) -> bool:
        """Whether nodes may have failed or come up since `idle_and_down` was last called."""

    def submitted(self, job: Job) -> None:
        """Record that a job joins the queue now."""

    def begins(self, job: Job) -> None:
        """Begin a job that just got its units; its work may begin later."""

    def share(self, job: Job) -> float:
        """Return the share of a running job's work that is done, 0 to 1."""

    def is_awaited(self, job: Job) -> bool:
        """Return whether a running job ends only after an event not yet on the agenda.

        Such an event is a repair, for example.
        """

    def idle_and_down(self) -> tuple[int, int]:
        """Return the number of free units, and of down units that no job holds."""


class PreemptionPart(LifePart, Protocol):
    """The engine part that preempts running jobs on the scheduler's request."""

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}."""

    def preempt(self, order: PreemptJobData) -> None:
        """Preempt a running job after its grace period, or raise Illegal."""


class JobLives(Kept):
    """The engine part that submits, starts, preempts and ends jobs.

    A job takes its runtime, or as long as its simulated hosts need. If the run needs `attempts` or `preemption`, set
    them before it begins.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_work", "attempts", "preemption")

    def __init__(
        self,
        clockwork: Clockwork,
        overheads: Overheads,
        work: Work | None = None,
        dilation: Dilation | None = None,
        checks: LimitChecks | None = None,
    ) -> None:
        self._clockwork = clockwork
        self._cluster = clockwork.cluster
        self._agenda = clockwork.agenda
        self._overheads = overheads
        self._dilation = dilation
        self._checks = checks
        self._work = work
        if work is not None:
            self._cluster.work_of = work.work_of
        #: tracks attempts; None if jobs cannot lose their units
        self.attempts: AttemptsPart | None = None
        #: carries out preemptions; None if the scheduler cannot preempt
        self.preemption: PreemptionPart | None = None

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}."""
        own: Handlers = {END: self._end_comes, PHASE: self._phase_over}
        return own if self.preemption is None else {**own, **self.preemption.handlers()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; cluster and agenda must be restored first."""
        for job_id, entry in self._agenda.of(END).items():
            self._cluster.running[job_id].ending = entry
        super().restore(state)

    @property
    def retries(self) -> bool:
        """Whether jobs can lose their units and be requeued."""
        return self.attempts is not None

    def submit(self, job: Job, *, announce: bool = True) -> None:
        """Add a job to the queue now and announce it."""
        now = self._clockwork.now
        if self.attempts is not None:
            self.attempts.submitted(job)
        self._cluster.submit(now, job)
        if announce:
            self._clockwork.tell(JobSubmitted(now, job.announcement()))

    def start(self, job: Job, alloc_text: str, takes: Sequence[NodeTake] = ()) -> None:
        """Start a queued job now; raise Illegal if it cannot start."""
        self._cluster.execute(self._clockwork.now, job, alloc_text, takes)
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
                if self._checks is None:
                    job.in_time = False
                    runtime = walltime
                else:
                    begun = self._clockwork.now + job.prologue
                    limit, killed = self._checks.deadline(job, begun)
                    job.in_time = begun + runtime <= limit
                    runtime = min(runtime, killed - begun)
            time = self._clockwork.now + (runtime + (job.prologue + job.epilogue))
            job.ending = self._agenda.put(time, END, job.id)

    def progress(self, job: Job) -> Progress:
        """Return the progress of a running job."""
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

        If ``announce``, report the end to the scheduler. This is False for an end that the scheduler itself declared.
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
        # Every final state of a job that ran is also a state of the protocol.
        alloc = job.alloc.written or str(job.alloc)
        data = JobCompletedData(job.id, job.state, alloc, return_code, cause)  # type: ignore[arg-type]
        self._clockwork.tell(JobCompleted(now, data))

    def preempt(self, order: PreemptJobData) -> None:
        """Preempt a running job after its grace period, or raise Illegal."""
        if self.preemption is None:
            raise Illegal("feature_off", "PREEMPT_JOB needs the feature 'preemption', wanted in HELLO")
        self.preemption.preempt(order)

    @property
    def unsettled(self) -> bool:
        """Whether nodes may have failed or come up since `idle_and_down` was last called."""
        return self.attempts is not None and self.attempts.unsettled

    def idle_and_down(self) -> tuple[int, int]:
        """Return the number of free units, and of down units that no job holds."""
        return (self._cluster.ledger.idle, 0) if self.attempts is None else self.attempts.idle_and_down()

    def check_invariants(self) -> None:
        """Assert that something will end each running job, such as a scheduled event."""
        ending = self._agenda.of(END)
        for job in self._cluster.running.values():
            assert ending.get(job.id) is job.ending, f"the end of {job.id} differs from the one on the agenda"
            assert job.ending is not None or self._is_awaited(job), f"{job.id} runs, and nothing will end it"
        assert ending.keys() <= self._cluster.running.keys(), f"ends of jobs that do not run: {ending.keys()}"
        for part in (self.attempts, self.preemption):
            if part is not None:
                part.check_invariants()

    def _worked(self, job: Job) -> Work:
        assert self._work is not None, f"{job.id} has work, but no part of the run does work"
        return self._work

    def _runtime(self, job: Job) -> float:
        return job.runtime if self._dilation is None else job.runtime * self._dilation(job.alloc)

    def _is_awaited(self, job: Job) -> bool:
        if job.work is not None or not job.alloc:  # the scheduler will declare the end of a job without units
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
