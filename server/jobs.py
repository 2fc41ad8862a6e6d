"""A job inside the server."""

from collections.abc import Iterator
from math import inf, nan
from typing import Final

from msgspec import Struct

from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.nodesets import NodeSet
from pipistrelle.server.agenda import Entry
from pipistrelle.server.lifecycle import State
from pipistrelle.traces.workload import Workload, decimal_texts

#: rows that are turned from arrays into numbers at a time
_BLOCK: Final = 4096


class Job(Struct, eq=False):
    """A job from its submission to its end; times in seconds of simulated time.

    ``runtime`` is how long the job takes if nothing ends it earlier, ``walltime`` what its user asked for (inf: no
    limit). ``start`` and ``end`` are NaN until they are known, ``alloc`` is empty until the start.
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

    def describe(self) -> JobDescription:
        """Return what a scheduler is told."""
        return JobDescription(self.id, self.size, None if self.walltime == inf else self.walltime)


def jobs_of(workload: Workload, prefix: str) -> Iterator[Job]:
    """Yield the workload's jobs in its order, made some thousands at a time; ids become ``PREFIX!NAME``."""
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
        yield from [
            Job(f"{prefix}!{name}", submit, size, walltime, runtime, profile)
            for name, submit, size, walltime, runtime, profile in rows
        ]
