"""Jobs whose hosts decide how long they take: between their lives and what works through their profiles."""

from math import inf

from pipistrelle.protocol.events import Progress
from pipistrelle.server.engine.agenda import END
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.hosts.executor import Executor


class HostWork:
    """Has an executor do such jobs' work.

    Parameters
    ----------
    clockwork
        the run's.
    executor
        does the work; its phases are on the same agenda.
    """

    def __init__(self, clockwork: Clockwork, executor: Executor) -> None:
        self._clockwork = clockwork
        self._executor = executor

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
