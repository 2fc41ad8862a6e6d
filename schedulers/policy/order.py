"""The interface of orders: who comes first in the queue.

There are two kinds. A fixed order ranks each job once, when it joins. Under a dynamic order (priorities that grow with
the time waited, fairshare) jobs pass each other while they wait: it ranks all of them anew whenever the policy decides.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.jobs import SchedulerJob

Floats = NDArray[np.float64]


class FixedOrder(Protocol):
    """Ranks the waiting jobs; ties go to the job submitted first.

    An order under which a job that arrives never ranks before one that waits may say so with the attribute
    ``arrivals_last = True``: then some arrivals need not wake the scheduler.
    """

    def rank(self, job: SchedulerJob) -> float:
        """Return the job's rank, fixed while it waits; lower comes first."""


class DynamicOrder(Protocol):
    """Ranks the waiting jobs anew at each decision; ties go to the job submitted first.

    The queue keeps, in a table, what the order wants to know of each job; the order works on whole columns of it, so
    that 60,000 waiting jobs cost a few array operations. It is asked only when somebody looks at the queue.
    """

    dynamic: Literal[True]

    def begin(self) -> None:
        """Forget everything: another simulation begins, before its first job joins."""

    def attributes(self, job: SchedulerJob) -> Sequence[float]:
        """Return the job's line in the table, always as many numbers; asked once, when it joins the queue."""

    def ranks(self, table: Floats, now: float) -> Floats:
        """Return a rank for each waiting job; lower comes first.

        Parameters
        ----------
        table
            shape (attributes, jobs); must not be changed. Some jobs of it may have left: their ranks do not matter.
        now
            simulated time, s.

        Returns
        -------
        shape (jobs,), a new array without NaN; inf and -inf are ranks like others.
        """


@runtime_checkable
class UsageOrder(Protocol):
    """A dynamic order that depends on what has run, such as fairshare: the policy tells it of starts and ends."""

    def started(self, job: SchedulerJob, now: float) -> None:
        """Take note that a job started at ``now`` (s)."""

    def ended(self, job: SchedulerJob, now: float) -> None:
        """Take note that a running job has left the machine; ``now`` (s) is when the policy noticed."""


@runtime_checkable
class ChoosyOrder(Protocol):
    """An order of a queue that does not take every job, such as one with walltime limits."""

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return why a job that was just submitted is refused for good, None if it may wait."""


@runtime_checkable
class ClassOrder(Protocol):
    """An order that looks at the priorities of the machine's classes."""

    def learn_classes(self, priorities: Mapping[str, float]) -> None:
        """Take note of {class: its priority}, as a simulation begins."""


Order = FixedOrder | DynamicOrder


def is_dynamic(order: Order) -> TypeGuard[DynamicOrder]:
    """Tell whether an order moves waiting jobs: whether its attribute ``dynamic`` is true."""
    return getattr(order, "dynamic", False) is True
