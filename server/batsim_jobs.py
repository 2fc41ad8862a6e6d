"""Jobs as Batsim's clients are told of them: as their workload describes them, with every field that stands there."""

from collections.abc import Iterator
from math import inf, isnan

import msgspec

from pipistrelle.protocol.batsim_messages import BatsimJob, BatsimSubmittedData
from pipistrelle.server.jobs import Job
from pipistrelle.server.work import outcome
from pipistrelle.traces.batsim_text import job_text, profile_texts
from pipistrelle.traces.merge import submissions
from pipistrelle.traces.profiles import Composed, Profile
from pipistrelle.traces.workload import Workload


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


def forwarded_jobs(workloads: dict[str, Workload], *, forward: bool, has_hosts: bool) -> Iterator[ForwardedJob]:
    """Yield the jobs of all workloads by submit time; ids become ``PREFIX!NAME``.

    Parameters
    ----------
    forward
        whether jobs are announced with their profile.
    has_hosts
        whether there are hosts to work on; without them, composed profiles of delays are one long delay.
    """
    texts = {prefix: profile_texts(workload) for prefix, workload in workloads.items()} if forward else {}
    outcomes: dict[str, dict[str, tuple[Profile, int]]] = {
        prefix: {name: outcome(profile) for name, profile in (workload.table or {}).items()}
        for prefix, workload in workloads.items()
    }
    for prefix, row in submissions(workloads):
        workload = workloads[prefix]
        profile = workload.profile_of(row)
        runtime = float(workload.runtime[row])
        work, code = outcomes[prefix].get(profile, (None, 0))
        job_id = f"{prefix}!{workload.ids[row]}"
        yield ForwardedJob(
            job_id,
            float(workload.submit[row]),
            int(workload.size[row]),
            float(workload.walltime[row]),
            runtime,
            profile,
            work=work if isnan(runtime) or (has_hosts and isinstance(work, Composed)) else None,
            return_code=code,
            description=job_text(workload, row, job_id),
            forwarded=texts[prefix][profile] if forward else None,
        )
