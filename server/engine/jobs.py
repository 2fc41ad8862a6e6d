"""A job inside the server."""

from collections.abc import Iterator, Mapping
from math import inf, isnan, nan
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.protocol.events import JobDescription, JobSubmittedData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.attempts.attempt import Attempt
from pipistrelle.server.engine.agenda import Entry
from pipistrelle.server.engine.lifecycle import State
from pipistrelle.server.hosts.work import outcome
from pipistrelle.traces.batsim.profiles import Composed, Profile
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.resilience import Resilience
from pipistrelle.traces.workload import Workload, decimal_texts

#: rows that are turned from arrays into numbers at a time
_BLOCK: Final = 4096
_QUEUE: Final = 3
_UNNAMED: Final = (None, None, None, None, None)


#: names of user, group, account, queue and QOS; None where the workload does not tell
Labels = tuple[str | None, str | None, str | None, str | None, str | None]


class Job(Struct, eq=False):
    """A job from its submission to its end; times in seconds of simulated time.

    ``runtime`` is how long the job takes if nothing ends it earlier, ``walltime`` what its user asked for (inf: no
    limit). ``start`` and ``end`` are NaN until they are known, ``alloc`` is empty until the start. ``work`` is what the
    job does where its hosts decide how long that takes; ``runtime`` is NaN then.
    """

    id: str
    submit: float
    size: int
    walltime: float
    runtime: float
    profile: str
    state: State = "SUBMITTED"
    start: float = nan
    end: float = nan
    alloc: NodeSet = NodeSet.EMPTY
    metadata: str = ""
    #: entry on the agenda of the end to come, while the job runs
    ending: Entry | None = None
    work: Profile | None = None
    #: what a job that comes to its end returns; it has failed unless that is 0
    return_code: int = 0
    #: for each executor of ``work``, the place in ``alloc`` where it runs; None: one on each unit, in order
    mapping: tuple[int, ...] | None = None
    #: whether the end on the agenda is that of its work, not of its walltime
    in_time: bool = True
    #: how long its units are taken before it begins to work, and after it has ended (s); known at its start
    prologue: float = 0.0
    epilogue: float = 0.0
    #: names of user, group, account, queue and QOS; None where nobody needs them
    labels: Labels | None = None
    #: how it meets failures; None: as all jobs do
    resilience: Resilience | None = None
    #: where nodes can fail, what is known of this try
    attempt: Attempt | None = None
    #: joules that its units consumed while it ran; NaN where they are not metered
    energy: float = nan

    @property
    def queue(self) -> str | None:
        """The name of the queue that it was submitted to, None if that is not known."""
        return None if self.labels is None else self.labels[_QUEUE]

    def announcement(self) -> JobSubmittedData:
        """Return what a scheduler is told."""
        walltime = None if self.walltime == inf else self.walltime
        if self.labels is None and self.attempt is None:
            return JobSubmittedData(self.id, JobDescription(self.id, self.size, walltime))
        user, group, account, queue, qos = self.labels or _UNNAMED
        number, remaining, queued = 0, 1.0, None
        if self.attempt is not None and self.attempt.number:
            number = self.attempt.number
            remaining = self.attempt.remaining(self.runtime)
            queued = self.attempt.queued
        job = JobDescription(
            self.id, self.size, walltime, queued, None, user, group, account, queue, qos, number, remaining
        )
        return JobSubmittedData(self.id, job)

    def again(self, attempt: Attempt, now: float, walltime: float) -> Self:
        """Return the job as it comes back to the queue now, for another attempt with this walltime (s)."""
        return replace(
            self,
            id=f"{attempt.root}#{attempt.number}",
            submit=now,
            walltime=walltime,
            state="SUBMITTED",
            start=nan,
            end=nan,
            alloc=NodeSet.EMPTY,
            metadata="",
            ending=None,
            in_time=True,
            attempt=attempt,
            energy=nan,
        )


def jobs_of(
    workload: Workload,
    prefix: str,
    *,
    has_hosts: bool = False,
    labelled: bool = False,
    resiliences: Mapping[str, Resilience] | None = None,
) -> Iterator[Job]:
    """Yield the workload's jobs in its order, made some thousands at a time; ids become ``PREFIX!NAME``.

    Parameters
    ----------
    has_hosts
        whether there are hosts to work on; without them, a composed profile of delays is one delay.
    labelled
        whether the jobs tell whose they are.
    resiliences
        {job id: how it meets failures}, for the jobs that have a way of their own.
    """
    labels = labels_of(workload) if labelled else []
    outcomes = {name: outcome(profile) for name, profile in (workload.table or {}).items()}
    for begin in range(0, len(workload), _BLOCK):
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
            Job(f"{prefix}!{name}", submit, size, walltime, runtime, profile)
            for name, submit, size, walltime, runtime, profile in rows
        ]
        if outcomes:
            for job in jobs:
                work, job.return_code = outcomes[job.profile]
                if isnan(job.runtime) or (has_hosts and isinstance(work, Composed)):
                    job.work = work
        if labelled:
            for job, names in zip(jobs, labels[block], strict=True):
                job.labels = names
        if resiliences:
            for job in jobs:
                job.resilience = resiliences.get(job.id)
        yield from jobs


def labels_of(workload: Workload) -> list[Labels]:
    """Return of each job the names of its user, group, account, queue and QOS."""
    unknown: list[str | None] = [None] * len(workload)
    columns = []
    for name in ("user", "group", "account", "queue", "qos"):
        texts = named_column(workload, name)
        columns.append(unknown if texts is None else [text or None for text in texts])
    return list(zip(*columns, strict=True))
