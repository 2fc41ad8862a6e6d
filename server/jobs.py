"""A job inside the server."""

from collections.abc import Iterator
from math import inf, nan

from msgspec import Struct

from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.nodesets import NodeSet
from pipistrelle.server.agenda import Entry
from pipistrelle.server.lifecycle import State
from pipistrelle.traces.workload import Workload


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
    #: ``alloc`` in its canonical text, which is needed more than once
    alloc_text: str = ""
    metadata: str = ""
    #: entry on the agenda of the end to come, while the job runs
    ending: Entry | None = None

    def describe(self) -> JobDescription:
        """Return what a scheduler is told."""
        return JobDescription(self.id, self.size, None if self.walltime == inf else self.walltime)


def jobs_of(workload: Workload, prefix: str) -> Iterator[Job]:
    """Yield the workload's jobs in its order, made only when asked for; ids become ``PREFIX!NAME``."""
    rows = zip(
        workload.ids,
        workload.submit.tolist(),
        workload.size.tolist(),
        workload.walltime.tolist(),
        workload.runtime.tolist(),
        strict=True,
    )
    for index, (name, submit, size, walltime, runtime) in enumerate(rows):
        yield Job(f"{prefix}!{name}", submit, size, walltime, runtime, workload.profile_of(index))
