"""A job inside the server."""

from collections.abc import Iterator
from math import inf, isnan, nan
from typing import Final

from msgspec import Struct

from pipistrelle.protocol.events import JobDescription, JobSubmittedData
from pipistrelle.protocol.nodesets import NodeSet
from pipistrelle.server.agenda import Entry
from pipistrelle.server.lifecycle import State
from pipistrelle.server.work import outcome
from pipistrelle.traces.profiles import Composed, Profile
from pipistrelle.traces.workload import Workload, decimal_texts

#: rows that are turned from arrays into numbers at a time
_BLOCK: Final = 4096


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
    #: joules that its units consumed while it ran; NaN where they are not metered
    energy: float = nan

    def announcement(self) -> JobSubmittedData:
        """Return what a scheduler is told."""
        return JobSubmittedData(
            self.id, JobDescription(self.id, self.size, None if self.walltime == inf else self.walltime)
        )


def jobs_of(workload: Workload, prefix: str, *, has_hosts: bool = False) -> Iterator[Job]:
    """Yield the workload's jobs in its order, made some thousands at a time; ids become ``PREFIX!NAME``.

    ``has_hosts`` tells whether there are hosts to work on; without them, a composed profile of delays is one delay.
    """
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
        yield from jobs
