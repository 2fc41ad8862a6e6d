"""Orders that rank each job once, when it joins the queue."""

from mypy_extensions import mypyc_attr

from pipistrelle.schedulers.policy.interfaces import Stateless
from pipistrelle.schedulers.policy.jobs import SchedulerJob


@mypyc_attr(allow_interpreted_subclasses=True)
class Fcfs(Stateless):
    """The queue order ``fcfs``: first come, first served."""

    arrivals_last = True

    def rank(self, job: SchedulerJob) -> float:
        """Return the submit time (s), by which jobs are ordered."""
        return job.submit


@mypyc_attr(allow_interpreted_subclasses=True)
class Sjf(Stateless):
    """The queue order ``sjf``: shortest job first, by requested walltime."""

    arrivals_last = False

    def rank(self, job: SchedulerJob) -> float:
        """Return the requested walltime (s), by which jobs are ordered."""
        return job.walltime
