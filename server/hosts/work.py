"""Jobs whose hosts decide how long they take: between their lives and what works through their profiles."""

from collections.abc import Callable
from math import inf
from typing import Any

from pipistrelle.protocol.events import Progress
from pipistrelle.server.engine.agenda import END
from pipistrelle.server.engine.arrivals import outcome
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.hosts.executor import Executor
from pipistrelle.traces.batsim.profiles import Profile


class HostWork:
    """Has an executor do such jobs' work.

    Parameters
    ----------
    clockwork
        the run's.
    executor
        does the work; its phases are on the same agenda.
    profile_of
        returns a profile, given the prefix of a job's id and the profile's name.
    """

    def __init__(self, clockwork: Clockwork, executor: Executor, profile_of: Callable[[str, str], Profile]) -> None:
        self._profile_of = profile_of
        self._clockwork = clockwork
        self._executor = executor

    def work_of(self, job_id: str, profile: str) -> Profile:
        """Return what is done for a job with a profile of this name."""
        return outcome(self._profile_of(job_id.partition("!")[0], profile))[0]

    def state(self) -> dict[str, Any]:
        """Return how far the jobs are, as plain values."""
        return self._executor.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state; the cluster has its jobs again."""
        self._executor.restore(state, self._clockwork.cluster.running)

    def begins(self, job: Job) -> None:
        """Let a job that was just given its units begin to work; its walltime is put on the agenda."""
        clockwork = self._clockwork
        job.in_time = False  # unless all its work is done before
        if job.walltime < inf:
            job.ending = clockwork.agenda.put(clockwork.now + job.walltime, END, job.id)
        self._executor.start(clockwork.now, job)

    def phase_over(self, task: int) -> Job | None:
        """Let a job's next phase begin after a task; return the job if all its work is done."""
        run = self._executor.phase_over(self._clockwork.now, task)
        return None if run is None else self._clockwork.cluster.running[run.job_id]

    def over(self, job: Job) -> None:
        """Take note that a job ends now, whatever has ended it."""
        self._executor.stop(self._clockwork.now, job)

    def progress(self, job: Job) -> Progress:
        """Return how far a running job has come: with the parts of its profile, where the dialect tells them."""
        progress = self._executor.progress(self._clockwork.now, job)
        return progress if self._clockwork.rules.tells_profiles else Progress(progress.progress)
