"""Jobs on their way to the queue: a workload's, one at a time, those that are kept back, and those that come back."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isnan
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.events import JobCancelled, JobCancelledData, NoMoreJobs
from pipistrelle.server.engine.agenda import CANCELLATION, REQUEUE, SUBMISSION, Handlers
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.dependencies import Dependencies
from pipistrelle.server.engine.jobs import LABEL_NAMES, Job, Labels, LogRecord
from pipistrelle.server.engine.lives import JobLives
from pipistrelle.server.requests import requests_of
from pipistrelle.traces.batsim.profiles import Composed, Profile
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.resilience import Resilience
from pipistrelle.traces.workload import CANCELLED_AFTER, Workload, decimal_texts

#: rows that are turned from arrays into numbers at a time
_BLOCK: Final = 4096


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
            if isinstance(self._source, WorkloadJobs):
                self._jobs = self._source.from_row(row)
            else:
                deque(islice(self._jobs, row), maxlen=0)
            self._next = next(self._jobs)

    def labels(self) -> dict[str, Labels]:
        """Return {job id: whose it is} of the workload's jobs; empty if they do not tell."""
        return self._source.labels() if isinstance(self._source, WorkloadJobs) else {}

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


@mypyc_attr(allow_interpreted_subclasses=True)
class WorkloadJobs:
    """The workload's jobs in its order, made some thousands at a time; ids become ``PREFIX!NAME``.

    Those of another type than `Job` derive it, and tell the rest of them in `_complete`.

    Parameters
    ----------
    has_hosts
        whether there are hosts to work on; without them, a composed profile of delays is one delay.
    labelled
        whether the jobs tell whose they are.
    resiliences
        {job id: how it meets failures}, for the jobs that have a way of their own.
    recorded
        when and where each job ran in reality; None: nobody asks.
    """

    job_type: ClassVar[type[Job]] = Job

    def __init__(
        self,
        workload: Workload,
        prefix: str,
        *,
        has_hosts: bool = False,
        labelled: bool = False,
        resiliences: Mapping[str, Resilience] | None = None,
        recorded: Sequence[LogRecord] | None = None,
    ) -> None:
        self.workload = workload
        self._prefix = prefix
        self._has_hosts = has_hosts
        self._labels = labels_of(workload) if labelled else None
        self._resiliences = resiliences
        self._recorded = recorded
        self._cancelled = workload.measures.get(CANCELLED_AFTER)
        self._requests = requests_of(workload)
        self._outcomes = {name: outcome(profile) for name, profile in (workload.table or {}).items()}

    def __iter__(self) -> Iterator[Job]:
        return self.from_row(0)

    def labels(self) -> dict[str, Labels]:
        """Return {job id: whose it is}, empty if the jobs do not tell."""
        ids = (f"{self._prefix}!{name}" for name in self.workload.ids)
        return {} if self._labels is None else dict(zip(ids, self._labels, strict=True))

    def from_row(self, row: int) -> Iterator[Job]:
        """Iterate over the jobs from that of a row on, counted from 0."""
        workload, prefix = self.workload, self._prefix
        for begin in range(row, len(workload), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            runtimes = workload.runtime[block]
            rows = zip(
                workload.ids[block],
                workload.submit[block].tolist(),
                workload.size[block].tolist(),
                workload.walltime[block].tolist(),
                runtimes.tolist(),
                decimal_texts(runtimes) if workload.profiles is None else workload.profiles[block],
                strict=True,
            )
            # A block at a time, too: as little as possible is left to do between two round trips.
            jobs = [
                self.job_type(f"{prefix}!{name}", submit, size, walltime, runtime, profile)
                for name, submit, size, walltime, runtime, profile in rows
            ]
            if self._outcomes:
                for job in jobs:
                    work, job.return_code = self._outcomes[job.profile]
                    if isnan(job.runtime) or (self._has_hosts and isinstance(work, Composed)):
                        job.work = work
            if self._labels is not None:
                for job, names in zip(jobs, self._labels[block], strict=True):
                    job.labels = names
            if self._resiliences:
                for job in jobs:
                    job.resilience = self._resiliences.get(job.id)
            if self._requests is not None:
                for job, request in zip(jobs, self._requests[block], strict=True):
                    job.request = request
            if self._cancelled is not None:
                for job, after in zip(jobs, self._cancelled[block].tolist(), strict=True):
                    if after >= 0:
                        job.cancelled_at = job.submit + after
            if self._recorded is not None:
                for job, told in zip(jobs, self._recorded[block], strict=True):
                    job.recorded = told
            self._complete(begin, jobs)
            yield from jobs

    def _complete(self, row: int, jobs: list[Any]) -> None:
        """Tell what else there is of jobs, of which the first is that of a row."""


def labels_of(workload: Workload) -> list[Labels]:
    """Return of each job the names of its user, group, account, queue and QOS."""
    unknown: list[str | None] = [None] * len(workload)
    columns = []
    for name in LABEL_NAMES:
        texts = named_column(workload, name)
        columns.append(unknown if texts is None else [text or None for text in texts])
    return list(zip(*columns, strict=True))


def outcome(profile: Profile) -> tuple[Profile, int]:
    """Return the part of a profile that is carried out and what the job then returns.

    A part that fails ends a composed profile at once, in its first round.
    """
    return _outcome(profile, {})


def _outcome(profile: Profile, known: dict[int, tuple[Profile, int]]) -> tuple[Profile, int]:
    """Do so; ``known`` has the outcomes of parts by their identity, since profiles may share many of them."""
    if not isinstance(profile, Composed):
        return profile, profile.ret
    done: list[Profile] = []
    for part in profile.seq:
        if id(part) not in known:
            known[id(part)] = _outcome(part, known)
        carried_out, code = known[id(part)]
        done.append(carried_out)
        if code:
            names = profile.names[: len(done)]
            return Composed(name=profile.name, repeat=1, seq=tuple(done), names=names, ret=code), code
    return profile, profile.ret
