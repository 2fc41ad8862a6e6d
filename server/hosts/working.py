"""Jobs whose hosts decide how long they take: between the engine and what works through their profiles."""

from math import inf
from typing import TYPE_CHECKING

from pipistrelle.protocol.events import Progress
from pipistrelle.server.engine.agenda import END, PHASE
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.hosts.executor import Executor
from pipistrelle.server.hosts.phases import Task

if TYPE_CHECKING:
    from pipistrelle.server.engine.engine import Engine


class Working:
    """Has an executor do such jobs' work on an engine's machine.

    Parameters
    ----------
    engine
        the engine, which this makes able to have such jobs.
    executor
        does the work; its phases are on the engine's agenda.
    detailed
        whether the progress of a job tells of the parts of its profile, as Batsim's does.
    """

    def __init__(self, engine: "Engine", executor: Executor, *, detailed: bool) -> None:
        self._engine = engine
        self._executor = executor
        self._detailed = detailed
        engine.working = self
        engine.handlers[PHASE] = self._phase_over

    def started(self, job: Job) -> None:
        """Let a job that was just given its units begin to work."""
        engine = self._engine
        job.in_time = False  # unless all its work is done before
        if job.walltime < inf:
            job.ending = engine.agenda.put(engine.now + job.walltime, END, job)
        self._executor.start(engine.now, job)

    def over(self, job: Job) -> None:
        """Take note that a job ends now, whatever has ended it."""
        self._executor.stop(self._engine.now, job)

    def progress(self, job: Job) -> Progress:
        """Return how far a running job has come."""
        progress = self._executor.progress(self._engine.now, job)
        return progress if self._detailed else Progress(progress.progress)

    def _phase_over(self, task: Task) -> None:
        """Let a job's next phase begin, or the job end if all its work is done."""
        engine = self._engine
        run = self._executor.phase_over(engine.now, task)
        if run is not None:
            engine.kill(engine.cluster.running[run.job_id], "finish")
