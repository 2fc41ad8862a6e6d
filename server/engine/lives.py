"""How a job lives on the machine: how it begins, how far it is, how it ends; and the time it takes beside its work."""

from typing import Any, ClassVar, Final, Protocol

from mypy_extensions import mypyc_attr

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.decisions import PreemptJobData
from pipistrelle.protocol.events import JobCompleted, JobCompletedData, JobSubmitted, Progress
from pipistrelle.server.attempts.dispersion import Dispersion
from pipistrelle.server.engine.agenda import END, PHASE, Handlers
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job, Step
from pipistrelle.server.errors import Illegal
from pipistrelle.traces.batsim.profiles import Profile

_NO_TIME: Final = (0.0, 0.0)


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
    """Has the work done of jobs that have more than a runtime: hosts decide how long that takes."""

    def begins(self, job: Job) -> None:
        """Let a job that has its units begin to work; its walltime is put on the agenda."""

    def phase_over(self, task: int) -> Job | None:
        """Let what comes after a task begin, which stood on the agenda in class `PHASE`; return a job that is done."""

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


class NoWork:
    """Where no hosts are known every job has a runtime."""

    def begins(self, job: Job) -> None:
        """Raise AssertionError: who made such a job?"""
        raise AssertionError(f"{job.id} has work, but there is nothing that does it")

    def phase_over(self, task: int) -> Job | None:
        """Return None."""

    def over(self, job: Job) -> None:
        """Do nothing."""

    def progress(self, job: Job) -> Progress:
        """Return that nothing is done."""
        return Progress(0.0, job.profile)

    def work_of(self, job_id: str, profile: str) -> Profile:
        """Raise AssertionError."""
        raise AssertionError(f"{job_id} has work, but there is nothing that does it")

    def state(self) -> Any:
        """Return nothing."""

    def restore(self, state: Any) -> None:
        """Do nothing."""


@mypyc_attr(allow_interpreted_subclasses=True)
class JobLives(Kept):
    """Jobs on a machine that does not fail: each takes its runtime, or as long as its hosts decide.

    Every step of a job from the queue to its end is taken here; the engine asks for it and does not know how jobs live.

    Parameters
    ----------
    clockwork
        the run's.
    overheads
        the times that jobs take beside their work.
    work
        does what jobs have in place of a runtime.
    dispersion
        how much longer jobs take on nodes that are far apart; None: no longer.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_work", "unsettled")
    #: whether jobs can lose their nodes
    fails: ClassVar[bool] = False

    def __init__(
        self, clockwork: Clockwork, overheads: Overheads, work: Work, dispersion: Dispersion | None = None
    ) -> None:
        self._clockwork = clockwork
        self._cluster = clockwork.cluster
        self._agenda = clockwork.agenda
        self._overheads = overheads
        self._dispersion = dispersion
        self._work = work
        self._cluster.work_of = work.work_of
        #: whether units may have gone down or come up since `idle_and_down` was asked last
        self.unsettled = False

    def handlers(self) -> Handlers:
        """Return what is done with which class of what stands on the agenda."""
        return {END: self._end_comes, PHASE: self._phase_over}

    # -- steps that the engine asks for -----------------------------------------------------------------------------

    def submit(self, job: Job, *, announce: bool = True) -> None:
        """Let a job join the queue now and announce it."""
        now = self._clockwork.now
        self._cluster.submit(now, job)
        if announce:
            self._clockwork.tell(JobSubmitted(now, job.announcement()))

    def start(self, job: Job, alloc_text: str) -> None:
        """Start a waiting job now and put its end on the agenda; Illegal if that cannot be."""
        self._cluster.execute(self._clockwork.now, job, alloc_text)
        if self._overheads.exist:
            job.prologue, job.epilogue = self._overheads.of(job)
        self._begins(job)

    def progress(self, job: Job) -> Progress:
        """Return how far a running job has come."""
        if job.work is not None:
            return self._work.progress(job)
        runtime = self._runtime(job)
        done = (self._clockwork.now - job.start - job.prologue) / runtime if runtime > 0 else 1.0
        return self._share(job, max(done, 0.0))

    def kill(self, job: Job, step: Step = "kill") -> None:
        """End a running job now, before its time, and announce it."""
        if job.ending is not None:
            self._agenda.cancel(job.ending)
        self._end(job, step)

    def preempt(self, order: PreemptJobData) -> None:
        """Take a running job's units away; Illegal if that cannot be."""
        raise Illegal("feature_off", "PREEMPT_JOB needs the feature 'preemption', wanted in HELLO")

    def is_going(self, job: Job) -> bool:
        """Tell whether a running job is being preempted."""
        return False

    def declare_ended(self, job: Job, step: Step) -> None:
        """End a running job now as its scheduler says; it is not announced."""
        if job.ending is not None:
            self._agenda.cancel(job.ending)
        job.ending = None
        self._leaves(job)
        self._cluster.end(self._clockwork.now, job, step)

    def idle_and_down(self) -> tuple[int, int]:
        """Return how many units are free and in service, and how many are neither free nor held by a job."""
        return self._cluster.ledger.idle, 0

    def check_invariants(self) -> None:
        """Assert that each running job has an end to come, or something else that it waits for."""
        entries = self._agenda.entries()
        ending = {entry[3] for entry in entries.values() if entry[1] == END}
        for job in self._cluster.running.values():
            if job.ending is not None:
                assert entries.get(job.ending[2]) is job.ending, f"the end of {job.id} is not on the agenda"
            assert (job.id in ending) == (job.ending is not None), f"{job.id} knows of no end, or of another"
            assert job.ending is not None or self._is_awaited(job), f"{job.id} runs, and nothing will end it"
        assert ending <= self._cluster.running.keys(), f"jobs are to end that do not run: {ending}"

    # -- how such jobs live -----------------------------------------------------------------------------------------

    def _begins(self, job: Job) -> None:
        """Let a job begin that was just given its units."""
        if job.work is not None:
            self._work.begins(job)
            return
        runtime = job.runtime if self._dispersion is None else self._runtime(job)
        walltime = job.walltime
        if runtime > walltime:
            job.in_time = False
            runtime = walltime
        time = self._clockwork.now + (runtime + (job.prologue + job.epilogue))
        job.ending = self._agenda.put(time, END, job.id)

    def _runtime(self, job: Job) -> float:
        """Return how long a job that has its units takes on these (s)."""
        return job.runtime if self._dispersion is None else job.runtime * self._dispersion.factor(job.alloc)

    def _leaves(self, job: Job) -> None:
        """Take note that a job ends now; it still holds its units."""
        if job.work is not None:
            self._work.over(job)

    def _is_awaited(self, job: Job) -> bool:
        """Tell whether something else than its end on the agenda will end a running job."""
        return job.work is not None or not job.alloc  # its scheduler will declare its end

    def _share(self, job: Job, done: float) -> Progress:
        return Progress(min(done, 1.0), job.profile if self._clockwork.rules.tells_profiles else None)

    def _end_comes(self, job_id: str) -> None:
        job = self._cluster.running[job_id]
        self._end(job, "finish" if job.in_time else "reach_walltime")

    def _phase_over(self, task: int) -> None:
        job = self._work.phase_over(task)
        if job is not None:
            self.kill(job, "finish")

    def _end(self, job: Job, step: Step) -> None:
        if step == "finish" and job.return_code:
            step = "fail"
        job.ending = None
        self._leaves(job)
        self._cluster.end(self._clockwork.now, job, step)
        return_code = job.return_code if step in ("finish", "fail") else -1
        cause = job.attempt.cause if job.attempt is not None else ""
        # Every state that a running job can end in is one of the protocol's.
        alloc = job.alloc.written or str(job.alloc)
        data = JobCompletedData(job.id, job.state, alloc, return_code, cause)  # type: ignore[arg-type]
        self._clockwork.tell(JobCompleted(self._clockwork.now, data))
