"""Jobs as Batsim's clients are told of them: as their workload describes them, with every field that stands there."""

from collections.abc import Iterator
from math import inf, isnan
from typing import Final, Self

import msgspec

from pipistrelle.protocol.batsim.messages import BatsimJob, BatsimSubmittedData
from pipistrelle.server.attempts.attempt import Attempt
from pipistrelle.server.engine.arrivals import outcome
from pipistrelle.server.engine.jobs import Job
from pipistrelle.traces.batsim.profiles import Composed, Profile
from pipistrelle.traces.batsim.text import job_text, profile_texts, with_id
from pipistrelle.traces.workload import Workload, decimal_texts, submissions

#: rows that are turned from arrays into numbers at a time
_BLOCK: Final = 4096


class ForwardedJob(Job):
    """A job with its own JSON.

    ``description`` is the JSON object that clients get; ``forwarded`` is that of its profile, None unless profiles are
    forwarded.
    """

    description: bytes = b"{}"
    forwarded: bytes | None = None

    def announcement(self) -> BatsimSubmittedData:
        """Return what a scheduler is told."""
        walltime = None if self.walltime == inf else self.walltime
        job = BatsimJob(self.id, self.size, walltime, self.submit, self.profile, raw=msgspec.Raw(self.description))
        return BatsimSubmittedData(self.id, job, None if self.forwarded is None else msgspec.Raw(self.forwarded))

    def again(self, attempt: Attempt, now: float, walltime: float) -> Self:
        """Return the job as it comes back to the queue now, its JSON with the values of the new attempt."""
        job = super().again(attempt, now, walltime)
        changes = {"subtime": now if attempt.queued is None else attempt.queued}
        if walltime < inf:
            changes["walltime"] = walltime
        job.description = with_id(self.description, job.id, **changes)
        return job


def forwarded_jobs(workloads: dict[str, Workload], *, forward: bool, has_hosts: bool) -> Iterator[ForwardedJob]:
    """Yield the jobs of all workloads by submit time; ids become ``PREFIX!NAME``.

    Parameters
    ----------
    forward
        whether jobs are announced with their profile.
    has_hosts
        whether there are hosts to work on; without them, composed profiles of delays are one long delay.
    """
    streams = {prefix: _jobs_of(workload, prefix, forward, has_hosts) for prefix, workload in workloads.items()}
    if len(streams) == 1:
        yield from next(iter(streams.values()))
    else:
        for prefix, _ in submissions(workloads):
            yield next(streams[prefix])


def _jobs_of(workload: Workload, prefix: str, forward: bool, has_hosts: bool) -> Iterator[ForwardedJob]:
    """Yield the jobs of one workload, made some thousands at a time: little is left to do between two round trips."""
    texts = profile_texts(workload) if forward else {}
    #: {profile: (what is done where hosts decide how long it takes, what is done else, what the job returns)}
    works: dict[str, tuple[Profile, Profile | None, int]] = {}
    for name, profile in (workload.table or {}).items():
        work, code = outcome(profile)
        works[name] = (work, work if has_hosts and isinstance(work, Composed) else None, code)
    for begin in range(0, len(workload), _BLOCK):
        end = min(begin + _BLOCK, len(workload))
        runtimes = workload.runtime[begin:end]
        rows = zip(
            workload.ids[begin:end],
            workload.submit[begin:end].tolist(),
            workload.size[begin:end].tolist(),
            workload.walltime[begin:end].tolist(),
            runtimes.tolist(),
            decimal_texts(runtimes) if workload.profiles is None else workload.profiles[begin:end],
            range(begin, end),
            strict=True,
        )
        jobs: list[ForwardedJob] = []
        for name, submit, size, walltime, runtime, profile_name, row in rows:
            job_id = f"{prefix}!{name}"
            job = ForwardedJob(job_id, submit, size, walltime, runtime, profile_name)
            job.description = job_text(workload, row, job_id)
            if forward:
                job.forwarded = texts[profile_name]
            if works:
                where_hosts_decide, else_done, job.return_code = works[profile_name]
                job.work = where_hosts_decide if isnan(runtime) else else_done
            jobs.append(job)
        yield from jobs
