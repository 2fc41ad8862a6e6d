"""The interfaces of the queue and of its limits; room `waiting` implements both."""

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
    """Units that a job may use from now on, depending on its end.

    Jobs that end by ``times[0]`` (s) may use ``units[0]``, those that end by ``times[1]`` fewer, and so on.

    Attributes:
        times: ascending, shape (steps,).
        units: descending, shape (steps + 1,); the last is for jobs that end after all times.
    """

    times: NDArray[np.float64]
    units: NDArray[np.int64]

    def fits(self, sizes: NDArray[np.int64], ends: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return for each job whether it may start, given its size and latest end (s)."""
        return sizes <= self.units[np.searchsorted(self.times, ends)]


class Waiting(Protocol):
    """The jobs in the queue: lowest rank first, ties by submission."""

    #: whether a new job never passes a waiting one
    arrivals_last: bool

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[SchedulerJob]: ...

    def each(self) -> Iterator[SchedulerJob]:
        """Iterate over the jobs in storage order, which may differ from the queue's."""

    @property
    def first(self) -> SchedulerJob | None:
        """The job with the lowest rank; None if the queue is empty."""

    def rerank(self, now: float) -> None:
        """Let the next read of the queue rank the jobs for ``now`` (s)."""

    def in_order(self, jobs: list[SchedulerJob]) -> list[SchedulerJob]:
        """Sort waiting jobs, given in the order of submission, into the queue's order."""

    def ranks_of(self, jobs: list[SchedulerJob]) -> list[Rank]:
        """Return the sort keys of these waiting jobs."""

    def leading(self, count: int) -> list[SchedulerJob]:
        """Return the first ``count`` jobs, or all if fewer wait."""

    def add(self, job: SchedulerJob) -> None:
        """Add a job at its rank."""

    def remove(self, job: SchedulerJob) -> None:
        """Remove a job; KeyError if it is not in the queue."""

    def pass_under(self, start: Callable[[SchedulerJob], Staircase], stairs: Staircase, *, now: float) -> None:
        """Start jobs in the order of the queue while one fits under the staircase.

        ``start`` starts the job at ``now`` (s), which removes it from the queue. It returns the new staircase, nowhere
        higher than before.
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
        """Start jobs behind the first while one can start.

        A job can start if it has at most ``most_units`` units and either ends (by its walltime, started at ``now``) by
        ``ends_by`` (s) or has at most ``spare`` units.

        Args:
            start: starts the job, which removes it from the queue; returns the new ``most_units`` and ``spare``,
                neither larger than before.
            shortest_first: take the job with the least walltime first, instead of the first in the queue.
        """

    def state(self) -> dict[str, Any]:
        """Return the jobs' ids and what determines their order."""

    def restore(self, state: dict[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        """Restore a state; ``jobs`` has the waiting jobs by id."""


class QueueLimits(Protocol):
    """Decides which waiting jobs are in the queue; iterates over the others."""

    #: time (s) of the last change that no `let_in` followed; None if there was none
    pending: float | None

    def __iter__(self) -> Iterator[SchedulerJob]: ...

    def __contains__(self, job: SchedulerJob) -> bool: ...

    def each(self) -> Iterator[SchedulerJob]:
        """Iterate over the jobs set aside, in storage order."""

    def windows(self) -> list[Window]:
        """Return, for each class with its own pools, the window that closes other units to it."""

    def closed(self, job: SchedulerJob) -> NodeSet:
        """Return the units that the job's class excludes."""

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return why a submitted job can never run; None if it can."""

    def set_aside(self, job: SchedulerJob, now: float) -> bool:
        """Set aside a job submitted at ``now`` (s); return False if it has no such limits."""

    def admit(self, job: SchedulerJob) -> None:
        """Count a job that already runs."""

    def left(self, job: SchedulerJob, now: float) -> None:
        """Record that a job left the machine, or the queue unstarted, at ``now`` (s)."""

    def forget(self, job: SchedulerJob) -> bool:
        """Remove a job if it is set aside; return whether it was."""

    def let_in(self) -> list[SchedulerJob]:
        """Return the jobs that now join the queue."""

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return the text of the limit that keeps a job set aside; None if none does."""
