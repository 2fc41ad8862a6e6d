"""The interfaces of the queue and of class limits.

The package schedulers/waiting implements them.
"""

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.windows import Window

Rank = tuple[float, int]


class Staircase(NamedTuple):
    """The number of units that a job may use, depending on when the job ends.

    A job that ends by ``times[0]`` (s) may use ``units[0]`` units. A job that ends by ``times[1]`` may use
    ``units[1]``, which is fewer, and so on.

    Attributes:
        times: ascending, shape (steps,).
        units: descending, shape (steps + 1,); the last number is for jobs that end after all times.
    """

    times: NDArray[np.float64]
    units: NDArray[np.int64]

    @classmethod
    def until(cls, ends: list[float], units: list[int]) -> "Staircase":
        """Return the limits that let jobs use ``units[k]`` units until ``ends[k]`` (s).

        After the last end, no units may be used.
        """
        return cls(np.array(ends), np.array([*units, 0], dtype=np.int64))

    def fits(self, sizes: NDArray[np.int64], ends: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return for each job whether it needs at most the units allowed for its end.

        ``sizes`` has each job's number of units, ``ends`` its latest end (s).
        """
        return sizes <= self.units[np.searchsorted(self.times, ends)]


class Waiting(Protocol):
    """The queue of waiting jobs: lowest rank first, ties by submission."""

    #: whether a new job never passes a waiting one
    arrivals_last: bool

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[SchedulerJob]: ...

    def each(self) -> Iterator[SchedulerJob]:
        """Yield the queued jobs in the order of storage, not necessarily in queue order."""

    @property
    def first(self) -> SchedulerJob | None:
        """The job with the lowest rank; None if the queue is empty."""

    @property
    def smallest(self) -> int:
        """The fewest units that a queued job needs.

        If the queue is empty, the number is larger than any machine.
        """

    def rerank(self, now: float) -> None:
        """Make the next read of the queue rank the jobs again, for time ``now`` (s)."""

    def in_order(self, jobs: list[SchedulerJob]) -> list[SchedulerJob]:
        """Sort waiting jobs, given in the order of submission, into queue order."""

    def ranks_of(self, jobs: list[SchedulerJob]) -> list[Rank]:
        """Return the keys by which the queue sorts jobs: (rank, job number)."""

    def leading(self, count: int) -> list[SchedulerJob]:
        """Return the first ``count`` jobs, or all if fewer wait."""

    def add(self, job: SchedulerJob) -> None:
        """Add a job to the queue, at the position of its rank."""

    def remove(self, job: SchedulerJob) -> None:
        """Remove a job.

        Raise KeyError if it is not in the queue.
        """

    def pass_under(self, start: Callable[[SchedulerJob], Staircase], stairs: Staircase, *, now: float) -> None:
        """Start jobs in queue order, as long as one fits under the limits ``stairs``.

        The limits say how many units a job may use, depending on when it ends. ``start`` starts a job at ``now`` (s),
        which removes the job from the queue, and returns the new limits. These never allow more units than before.
        """

    def pass_over(
        self,
        start: Callable[[SchedulerJob], tuple[int, int]],
        most_units: int,
        *,
        spare: int = 0,
        ends_by: float = inf,
        now: float = 0.0,
        shortest_first: bool = False,
    ) -> None:
        """Start jobs behind the first job of the queue, until none of them can start.

        A job can start if it has at most ``most_units`` units and meets one of two conditions: it ends by ``ends_by``
        (s) if started at ``now`` with its full walltime, or it has at most ``spare`` units.

        Args:
            start: starts the job, which removes it from the queue; returns the new ``most_units`` and ``spare``,
                neither larger than before.
            shortest_first: take the job with the least walltime first, instead of the first in the queue.
        """

    def units_needed(self, free: int, *, spare: int, ends_by: float, now: float) -> int | None:
        """Return the least number of free units at which a waiting job can start.

        The number holds while no job is submitted and no job starts, so that jobs only end. The queue's first job can
        start when as many units are free as it needs. Another job must also not delay the first: either it would end by
        ``ends_by`` (s) if it started at ``now``, or it needs at most ``spare`` units plus those freed from now on.

        Return None if the queue is too long to compute this, or if a new job can rank before the first one.

        Args:
            free: number of units free now.
        """

    def state(self) -> dict[str, Any]:
        """Return the waiting jobs' ids and the data that determine their order."""

    def restore(self, state: dict[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        """Restore the state that the method `state` returned.

        ``jobs`` has the queued jobs by id.
        """


class QueueLimits(Protocol):
    """The limits of job classes.

    They admit jobs to the queue and set aside all other jobs.
    """

    #: time (s) of the last change since the last `let_in`; None if there was none
    pending: float | None

    def __iter__(self) -> Iterator[SchedulerJob]: ...

    def __contains__(self, job: SchedulerJob) -> bool: ...

    def each(self) -> Iterator[SchedulerJob]:
        """Yield the jobs kept out of the queue, in the order of storage."""

    def windows(self) -> list[Window]:
        """Return a window for each class with its own pools: its jobs stay in the pools.

        The window covers all units outside these pools, and excludes only the jobs of this class.
        """

    def closed(self, job: SchedulerJob) -> NodeSet:
        """Return the units that the job's class may not use."""

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return why a submitted job can never run; None if it can."""

    def set_aside(self, job: SchedulerJob, now: float) -> bool:
        """Keep a job submitted at ``now`` (s) out of the queue.

        Return False, and do nothing, if its class has no limits.
        """

    def admit(self, job: SchedulerJob) -> None:
        """Count an already running job against its class's limits."""

    def left(self, job: SchedulerJob, now: float) -> None:
        """Record that a job ended, or left the queue without starting, at ``now`` (s)."""

    def forget(self, job: SchedulerJob) -> bool:
        """Remove a job from the jobs that are kept out of the queue.

        Return whether it was one of them.
        """

    def let_in(self) -> list[SchedulerJob]:
        """Return the jobs kept out of the queue that may now join it.

        As many jobs are returned as the limits of their classes allow. They no longer count as kept out.
        """

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return the limit (as text) that keeps a job out of the queue.

        Return None if the job is queued.
        """
