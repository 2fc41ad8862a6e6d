"""Orders: who comes first in the queue."""

from typing import Protocol

from pipistrelle.schedulers.jobs import SchedulerJob


class Order(Protocol):
    """Ranks the waiting jobs; ties go to the job submitted first.

    An order under which a job that arrives never ranks before one that waits may say so with the attribute
    ``arrivals_last = True``: then some arrivals need not wake the scheduler.
    """

    def rank(self, job: SchedulerJob) -> float:
        """Return the job's rank, fixed while it waits; lower comes first."""


class Fcfs:
    """First come, first served."""

    arrivals_last = True

    def rank(self, job: SchedulerJob) -> float:
        """Return the submit time in seconds."""
        return job.submit


class Sjf:
    """Shortest job first, by the walltime that its user asked for."""

    arrivals_last = False

    def rank(self, job: SchedulerJob) -> float:
        """Return the walltime in seconds."""
        return job.walltime


ORDERS: dict[str, type[Order]] = {"fcfs": Fcfs, "sjf": Sjf}
