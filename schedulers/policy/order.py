"""The interface of queue orders, which determine the order of waiting jobs.

A fixed order ranks each job once, when it joins the queue. A dynamic order ranks all waiting jobs again at each
decision, for example by fairshare or by priorities that grow with waiting time.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.jobs import SchedulerJob

Floats = NDArray[np.float64]


class FixedOrder(Protocol):
    """A queue order that ranks each job once; ties go to the job submitted first.

    Set the attribute ``arrivals_last = True`` if an arriving job never ranks before a waiting one. Then some arrivals
    need not wake the scheduler.
    """

    def rank(self, job: SchedulerJob) -> float:
        """Return the job's rank; the lowest rank is first.

        The rank must stay the same while the job waits.
        """


class DynamicOrder(Protocol):
    """A queue order that ranks all waiting jobs at each decision.

    Ties go to the job submitted first. The queue keeps a table with attributes of each job. The order computes the
    ranks from whole columns, so 60,000 waiting jobs cost a few array operations. Ranks are computed only when the queue
    is read.
    """

    dynamic: Literal[True]

    def begin(self) -> None:
        """Clear all data; called when a simulation begins, before the first job joins."""

    def attributes(self, job: SchedulerJob) -> Sequence[float]:
        """Return the job's attributes for the table; called when the job joins.

        All jobs have the same number of attributes.
        """

    def ranks(self, table: Floats, now: float) -> Floats:
        """Return a rank for each waiting job; the lowest rank is first.

        Args:
            table: shape (attributes, jobs); read-only. It may contain columns of jobs that have left the queue; their
                ranks are ignored.
            now: simulated time, s.

        Returns:
            shape (jobs,), a new array without NaN; inf and -inf are allowed.
        """


@runtime_checkable
class UsageOrder(Protocol):
    """A queue order that depends on past usage, such as fairshare."""

    def started(self, job: SchedulerJob, now: float) -> None:
        """Record that a job started at ``now`` (s)."""

    def ended(self, job: SchedulerJob, now: float) -> None:
        """Record that a running job ended; the policy noticed it at ``now`` (s)."""


@runtime_checkable
class ChoosyOrder(Protocol):
    """A queue order that rejects some jobs, for example by walltime limits."""

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return why a submitted job is rejected permanently; None if it may wait."""


@runtime_checkable
class ClassOrder(Protocol):
    """A queue order that uses the priorities of the machine's classes (queues)."""

    def learn_classes(self, priorities: Mapping[str, float]) -> None:
        """Record {class: priority}; called when a simulation begins."""


Order = FixedOrder | DynamicOrder


def is_dynamic(order: Order) -> TypeGuard[DynamicOrder]:
    """Return whether an order is dynamic: whether its attribute ``dynamic`` is true."""
    return getattr(order, "dynamic", False) is True
