"""A job as a scheduler knows it."""

from math import inf, nan

from msgspec import Struct

from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.nodesets import NodeSet


class SchedulerJob(Struct, eq=False):
    """A job that waits or runs; times in seconds of simulated time.

    ``number`` counts the jobs in the order in which they were submitted, from 0: it settles every tie.
    ``expected_end`` is start + walltime, inf without a walltime, NaN while the job waits.
    """

    id: str
    number: int
    size: int
    walltime: float
    submit: float
    start: float = nan
    expected_end: float = nan
    alloc: NodeSet = NodeSet.EMPTY

    @property
    def waits(self) -> bool:
        """Whether the job has not been started yet."""
        return not self.alloc

    @classmethod
    def submitted(cls, description: JobDescription, number: int, now: float) -> "SchedulerJob":
        """Return the job of a JOB_SUBMITTED event."""
        walltime = inf if description.walltime is None else description.walltime
        submit = now if description.subtime is None else description.subtime
        return cls(description.id, number, description.res, walltime, submit)
