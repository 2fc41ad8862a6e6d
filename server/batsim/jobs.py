"""Jobs with the JSON of their workload, as Batsim's schedulers receive it."""

from collections.abc import Iterable
from math import inf
from typing import Self

import msgspec

from pipistrelle.protocol.batsim.messages import BatsimJob, BatsimSubmittedData
from pipistrelle.server.engine.jobs import Job, Try
from pipistrelle.server.setup.workload_jobs import WorkloadJobs
from pipistrelle.traces.batsim.text import job_text, profile_texts, with_members
from pipistrelle.traces.workload import Workload, submissions


class ForwardedJob(Job):
    """A job with its JSON as Batsim's schedulers receive it.

    ``description`` is the JSON of the job, and ``forwarded`` the JSON of its profile. ``forwarded`` is None if the
    profile is not sent.
    """

    description: bytes = b"{}"
    forwarded: bytes | None = None

    def announcement(self) -> BatsimSubmittedData:
        """Return the job's data for the JOB_SUBMITTED event."""
        walltime = None if self.walltime == inf else self.walltime
        job = BatsimJob(self.id, self.size, walltime, self.submit, self.profile, raw=msgspec.Raw(self.description))
        return BatsimSubmittedData(self.id, job, None if self.forwarded is None else msgspec.Raw(self.forwarded))

    def again(self, attempt: Try, now: float, walltime: float) -> Self:
        """Return the requeued job, with values of its new attempt in its JSON."""
        job = super().again(attempt, now, walltime)
        changes = {"subtime": now if attempt.queued is None else attempt.queued}
        if walltime < inf:
            changes["walltime"] = walltime
        job.description = with_members(self.description, id=job.id, **changes)
        return job


class ForwardedJobs(WorkloadJobs):
    """The jobs of a workload with their JSON and, if forwarded, their profiles' JSON."""

    job_type = ForwardedJob

    def __init__(self, workload: Workload, prefix: str, *, forward: bool, has_hosts: bool) -> None:
        super().__init__(workload, prefix, has_hosts=has_hosts)
        self._texts = profile_texts(workload) if forward else None

    def _complete(self, row: int, jobs: list[ForwardedJob]) -> None:
        for number, job in enumerate(jobs, row):
            job.description = job_text(self.workload, number, job.id)
            if self._texts is not None:
                job.forwarded = self._texts[job.profile]


def forwarded_jobs(workloads: dict[str, Workload], *, forward: bool, has_hosts: bool) -> Iterable[Job]:
    """Return an iterable of the jobs of all workloads by submit time.

    Their ids are ``PREFIX!NAME``.

    Args:
        forward: whether jobs are sent with their profiles.
        has_hosts: whether hosts are simulated; without them, a sequence of delays is run as one delay.
    """
    sources = {
        prefix: ForwardedJobs(workload, prefix, forward=forward, has_hosts=has_hosts)
        for prefix, workload in workloads.items()
    }
    if len(sources) == 1:
        return next(iter(sources.values()))
    streams = {prefix: iter(source) for prefix, source in sources.items()}
    return (next(streams[prefix]) for prefix, _ in submissions(workloads))
