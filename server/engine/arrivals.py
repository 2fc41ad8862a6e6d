"""Submission of new jobs, requeued jobs, and jobs whose dependencies are met."""

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
    """The engine part that submits each job at its submit time.

    ``jobs`` are in order of submit time.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_taken", "drained", "exhausted", "_dependencies")

    def __init__(self, clockwork: Clockwork, lives: JobLives, jobs: Iterable[Job], dependencies: Dependencies) -> None:
        self._clockwork = clockwork
        self._lives = lives
        self._source = jobs
        self._jobs = iter(jobs)
        self._dependencies = dependencies
        #: the next job, whose submission is on the agenda; the number of jobs taken so far, including the next
        self._next: Job | None = None
        self._taken = 0
        #: whether all jobs of the workload have been taken
        self.drained = False
        #: whether the workload has no more jobs to submit
        self.exhausted = False

    @property
    def held(self) -> int:
        """Number of jobs held because of their dependencies."""
        return self._dependencies.held

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}."""
        return {SUBMISSION: self._submit, REQUEUE: self._queue, CANCELLATION: self._cancel}

    def put_next(self) -> None:
        """Put the next job's submission on the agenda."""
        job = self._next = next(self._jobs, None)
        if job is not None:
            self._taken += 1
            self._clockwork.agenda.put(job.submit, SUBMISSION, job.id)
        else:
            self.drained = True
            self.tell_the_last()

    def tell_the_last(self) -> None:
        """Tell the scheduler, once, that no more jobs will be submitted.

        Do nothing while the workload has further jobs, or a job is held because of its dependencies.
        """
        if self.drained and not self.exhausted and not self._dependencies.held:
            self.exhausted = True
            self._clockwork.tell_apart(NoMoreJobs(self._clockwork.now))

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state from a snapshot.

        Jobs that were read before the snapshot are skipped.
        """
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
        """Return {job id: user, group, account, queue and QOS}.

        The result is empty if the workload has no such labels.
        """
        return self._source.labels() if isinstance(self._source, JobSource) else {}

    def label(self, *jobs: Mapping[str, Job]) -> None:
        """Set user, group, account, queue and QOS on the given jobs and on held jobs."""
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
        """Queue a job that was held, or that lost its nodes."""
        self._dependencies.let_go(job_id)
        job = self._clockwork.cluster.coming.pop(job_id)
        job.joined = self._clockwork.now
        self._lives.submit(job)
        if job.cancelled_at <= self._clockwork.now:
            self._cancel(job_id)
        self.tell_the_last()

    def _cancel(self, job_id: str) -> None:
        """Cancel a queued job at its submitter's request, or kill the job if it runs."""
        clockwork, cluster = self._clockwork, self._clockwork.cluster
        job = cluster.waiting.get(job_id) or cluster.running.get(job_id)
        if job is None and self._lives.retries:  # the job may have been requeued under another id
            tries = (*cluster.waiting.values(), *cluster.running.values())
            job = next((one for one in tries if one.attempt is not None and one.attempt.root == job_id), None)
        if job is None:  # the job has ended, or it is held and is cancelled when it joins the queue
            return
        if job.id in cluster.running:
            self._lives.end(job, "kill")
            return
        told = "cancellations" in clockwork.features
        cluster.cancel(clockwork.now, job, told=told)
        if told:
            clockwork.tell(JobCancelled(clockwork.now, JobCancelledData(job.id)))
