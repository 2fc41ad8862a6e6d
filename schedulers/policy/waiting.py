"""The waiting jobs, and those that limits keep out of the queue, as a view has them; room `waiting` implements both."""

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
    """What a job may use from now on, by when it ends: until ``times[0]`` (s) ``units[0]``, until ``times[1]`` fewer...

    ``times`` ascend, shape (steps,); ``units`` descend, shape (steps + 1,): the last are for jobs that end later still.
    """

    times: NDArray[np.float64]
    units: NDArray[np.int64]

    def fits(self, sizes: NDArray[np.int64], ends: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell of jobs of these sizes that end then (s), at the latest, whether each may start."""
        return sizes <= self.units[np.searchsorted(self.times, ends)]


class Waiting(Protocol):
    """The jobs in the queue, in its order: those of the lowest rank first, ties by submission."""

    #: whether a job that joins never passes one that waits
    arrivals_last: bool

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[SchedulerJob]: ...

    def each(self) -> Iterator[SchedulerJob]:
        """Iterate over the jobs in the order in which they are kept, which need not be that of the queue."""

    @property
    def first(self) -> SchedulerJob | None:
        """The job with the lowest rank, None when nothing waits."""

    def rerank(self, now: float) -> None:
        """Rank the jobs anew, as of ``now`` (s), before the next look at the queue."""

    def in_order(self, jobs: list[SchedulerJob]) -> list[SchedulerJob]:
        """Return waiting jobs, given in the order of submission, in the order of the queue."""

    def ranks_of(self, jobs: list[SchedulerJob]) -> list[Rank]:
        """Return what the order of these waiting jobs in the queue follows from."""

    def leading(self, count: int) -> list[SchedulerJob]:
        """Return the first ``count`` jobs, or as many as there are."""

    def add(self, job: SchedulerJob) -> None:
        """Let a job join at its rank."""

    def remove(self, job: SchedulerJob) -> None:
        """Let a job leave; KeyError if it does not wait here."""

    def pass_under(self, start: Callable[[SchedulerJob], Staircase], stairs: Staircase, *, now: float) -> None:
        """Start jobs in the order of the queue, one after the other, as long as one fits under the staircase.

        ``start`` starts the job it is given at ``now`` (s), which removes it here, and returns the new staircase,
        nowhere higher than before.
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
        """Start jobs behind the first, one after the other, as long as one can.

        A job can start if it has at most ``most_units`` units and either ends, by its walltime, not later than
        ``ends_by`` (seconds) when it starts at ``now``, or has at most ``spare`` units.

        Parameters
        ----------
        start
            starts the job it is given, which removes it here, and returns the new ``most_units`` and ``spare``,
            neither larger than before.
        shortest_first
            whether of several jobs the one with the least walltime goes first, else the first in the queue.
        """

    def state(self) -> dict[str, Any]:
        """Return the jobs' ids, and what their order follows from."""

    def restore(self, state: dict[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        """Go on from a state; ``jobs`` has the waiting jobs by id."""


class QueueLimits(Protocol):
    """Decides which waiting jobs are in the queue; the others are set aside, and iterating yields them."""

    #: instant (s) of the last change that was not followed by `let_in`; None: there is none
    pending: float | None

    def __iter__(self) -> Iterator[SchedulerJob]: ...

    def __contains__(self, job: SchedulerJob) -> bool: ...

    def each(self) -> Iterator[SchedulerJob]:
        """Iterate over the jobs that are set aside, in the order in which they are kept."""

    def windows(self) -> list[Window]:
        """Return windows that keep jobs from the units that their class may not have."""

    def closed(self, job: SchedulerJob) -> NodeSet:
        """Return the units that the job's class may not have."""

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return why a job that was just submitted can never run; None if it can."""

    def set_aside(self, job: SchedulerJob, now: float) -> bool:
        """Set a job aside that was submitted at ``now`` (s), until `let_in`; False if it has no such limits."""

    def admit(self, job: SchedulerJob) -> None:
        """Count a job that runs already."""

    def left(self, job: SchedulerJob, now: float) -> None:
        """Take note at ``now`` (s) that a job has left the machine, or the queue without a start."""

    def forget(self, job: SchedulerJob) -> bool:
        """Remove a job that is set aside; return whether it was."""

    def let_in(self) -> list[SchedulerJob]:
        """Return the jobs that join the queue."""

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return the limit that keeps a job set aside, in words; None if none does."""
