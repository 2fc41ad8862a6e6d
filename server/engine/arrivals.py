"""Jobs on their way to the queue: a workload's, one at a time, those that are kept back, and those that come back."""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice
from math import isnan
from typing import Any, ClassVar

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.events import JobCancelled, JobCancelledData, NoMoreJobs
from pipistrelle.server.engine.agenda import CANCELLATION, REQUEUE, SUBMISSION, Handlers
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.dependencies import Dependencies
from pipistrelle.server.engine.jobs import Job, JobSource, Labels
from pipistrelle.server.engine.lives import JobLives


class Arrivals(Kept):
    """Lets jobs queue, each at its time.

    Parameters
    ----------
    clockwork
        the run's.
    lives
        which jobs begin by joining the queue.
    jobs
        the workload's jobs, by ascending submit time; taken one at a time.
    dependencies
        keep some of them back.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_taken", "drained", "exhausted", "_dependencies")

    def __init__(self, clockwork: Clockwork, lives: JobLives, jobs: Iterable[Job], dependencies: Dependencies) -> None:
        self._clockwork = clockwork
        self._lives = lives
        self._source = jobs
        self._jobs = iter(jobs)
        self._dependencies = dependencies
        #: the job whose submission is on the agenda, and how many were taken before and with it
        self._next: Job | None = None
        self._taken = 0
        #: whether all jobs of the workload were taken
        self.drained = False
        #: whether the workload has no more jobs to submit
        self.exhausted = False

    @property
    def held(self) -> int:
        """How many jobs are kept back for others that they depend on."""
        return self._dependencies.held

    def handlers(self) -> Handlers:
        """Return what is done with which class of what stands on the agenda."""
        return {SUBMISSION: self._submit, REQUEUE: self._queue, CANCELLATION: self._cancel}

    def put_next(self) -> None:
        """Put the next submission on the agenda."""
        job = self._next = next(self._jobs, None)
        if job is not None:
            self._taken += 1
            self._clockwork.agenda.put(job.submit, SUBMISSION, job.id)
        else:
            self.drained = True
            self.tell_the_last()

    def tell_the_last(self) -> None:
        """Say, once, that the workload has no more jobs, unless some are kept back."""
        if self.drained and not self.exhausted and not self._dependencies.held:
            self.exhausted = True
            self._clockwork.tell_apart(NoMoreJobs(self._clockwork.now))

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state: the jobs that were taken are passed over."""
        super().restore(state)
        if self.drained:
            self._jobs = iter(())
        elif self._taken:
            row = self._taken - 1
            if isinstance(self._source, JobSource):
                self._jobs = self._source.from_row(row)
            else:
                deque(islice(self._jobs, row), maxlen=0)
            self._next = next(self._jobs)

    def labels(self) -> dict[str, Labels]:
        """Return {job id: whose it is} of the workload's jobs; empty if they do not tell."""
        return self._source.labels() if isinstance(self._source, JobSource) else {}

    def label(self, *jobs: Mapping[str, Job]) -> None:
        """Let these jobs, by id, and those that are kept back tell whose they are, if the jobs to come do; else not."""
        labels = self.labels()
        for job in [*(job for some in jobs for job in some.values()), *self._dependencies.each()]:
            job.labels = labels.get(job.id if job.attempt is None else job.attempt.root)

    def _submit(self, job_id: str) -> None:
        job = self._next
        assert job is not None
        if not (self._dependencies.exist and self._dependencies.hold(job)):
            self._lives.submit(job)
        if not isnan(job.cancelled_at):
            self._clockwork.agenda.put(job.cancelled_at, CANCELLATION, job.id)
        self.put_next()

    def _queue(self, job_id: str) -> None:
        """Let a job queue now that was kept back, or that comes back after it lost its nodes."""
        self._dependencies.let_go(job_id)
        job = self._clockwork.cluster.coming.pop(job_id)
        job.joined = self._clockwork.now
        self._lives.submit(job)
        if job.cancelled_at <= self._clockwork.now:
            self._cancel(job_id)
        self.tell_the_last()

    def _cancel(self, job_id: str) -> None:
        """Let a job leave the queue that its submitter takes back now, or end it if it runs."""
        clockwork, cluster = self._clockwork, self._clockwork.cluster
        job = cluster.waiting.get(job_id) or cluster.running.get(job_id)
        if job is None and self._lives.retries:  # it may have come back, under another id
            tries = (*cluster.waiting.values(), *cluster.running.values())
            job = next((one for one in tries if one.attempt is not None and one.attempt.root == job_id), None)
        if job is None:  # it has ended, or is kept back: then it leaves when it would join
            return
        if job.id in cluster.running:
            self._lives.end(job, "kill")
            return
        told = "cancellations" in clockwork.features
        cluster.cancel(clockwork.now, job, told=told)
        if told:
            clockwork.tell(JobCancelled(clockwork.now, JobCancelledData(job.id)))
