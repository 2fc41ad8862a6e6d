"""The interface of orders: which job is first in the queue.

A fixed order ranks each job once, when it joins. A dynamic order (priorities that grow with waiting time, fairshare)
ranks all waiting jobs again at each decision.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.jobs import SchedulerJob

Floats = NDArray[np.float64]


class FixedOrder(Protocol):
    """Ranks the waiting jobs; ties go to the job submitted first.

    Set the attribute ``arrivals_last = True`` if an arriving job never ranks before a waiting one. Then some arrivals
    need not wake the scheduler.
    """

    def rank(self, job: SchedulerJob) -> float:
        """Return the job's rank, fixed while it waits; lower comes first."""


class DynamicOrder(Protocol):
    """Ranks all waiting jobs again at each decision; ties by submission.

    The queue keeps a table with the order's attributes of each job. The order works on whole columns, so 60,000 waiting
    jobs cost a few array operations. It is called only when the queue is read.
    """

    dynamic: Literal[True]

    def begin(self) -> None:
        """Forget everything; called when a simulation begins, before the first job joins."""

    def attributes(self, job: SchedulerJob) -> Sequence[float]:
        """Return the job's row, always of the same length; called when the job joins."""

    def ranks(self, table: Floats, now: float) -> Floats:
        """Return a rank for each waiting job; lower comes first.

        Args:
            table: shape (attributes, jobs); read-only. Columns of jobs that have left may remain; their ranks are
                ignored.
            now: simulated time, s.

        Returns:
            shape (jobs,), a new array without NaN; inf and -inf are allowed.
        """


@runtime_checkable
class UsageOrder(Protocol):
    """A dynamic order that depends on past usage, such as fairshare."""

    def started(self, job: SchedulerJob, now: float) -> None:
        """Record that a job started at ``now`` (s)."""

    def ended(self, job: SchedulerJob, now: float) -> None:
        """Record that a running job left; ``now`` (s) is when the policy noticed."""


@runtime_checkable
class ChoosyOrder(Protocol):
    """An order that rejects some jobs, for example by walltime limits."""

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return why a submitted job is rejected for good; None if it may wait."""


@runtime_checkable
class ClassOrder(Protocol):
    """An order that uses the priorities of the machine's classes."""

    def learn_classes(self, priorities: Mapping[str, float]) -> None:
        """Record {class: its priority} when a simulation begins."""


Order = FixedOrder | DynamicOrder


def is_dynamic(order: Order) -> TypeGuard[DynamicOrder]:
    """Return whether the order's attribute ``dynamic`` is true."""
    return getattr(order, "dynamic", False) is True
