"""Test whether a job is eligible now.

Holds, dependencies, begin times and limits of running tasks are tested.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETING, PENDING, RUNNING, SlurmJob
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.passes.dependencies import MET, NEVER, test_dependencies

#: reasons that a test of the queue sets and clears
_GATES: Final = frozenset(
    {"Dependency", "BeginTime", "Reservation", "PartitionDown", "PartitionInactive", "JobArrayTaskLimit"}
)


class KnowsJobs(Protocol):
    """The part of a controller that the tests of eligibility need.

    Attributes:
        by_number: {job id: records of the job or of an array's tasks}.
        dropped: jobs cancelled by the controller itself.
    """

    config: SlurmConfig
    by_number: dict[int, list[SlurmJob]]
    dropped: list[SlurmJob]

    def records(self, number: int, task: int | None) -> Sequence[SlurmJob] | None:
        """Return the records of a job id, or of one task of an array; None if unknown."""

    def twins(self, job: SlurmJob) -> Sequence[SlurmJob]:
        """Return the jobs of the same user and name that have not ended."""

    def cancel(self, job: SlurmJob, now: int) -> None:
        """Remove a waiting job permanently."""


def is_eligible(controller: KnowsJobs, job: SlurmJob, now: int) -> bool:
    """Return whether dependencies and begin times let a job run.

    Also set the job's eligible time and reason.
    """
    if not job.priority:
        if job.reason not in ("JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied", "BadConstraints"):
            job.reason = "JobHeldAdmin"
        return False
    if job.depends:
        state = test_dependencies(job, controller.records, lambda one: _has_twin(controller, one), now)
        if state == NEVER:
            job.reason = "DependencyNeverSatisfied"
            kills = job.sub.kill_on_invalid
            if controller.config.scheduler_parameters.kill_invalid_depend if kills is None else kills:
                controller.cancel(job, now)
                controller.dropped.append(job)
            return False
        if state != MET:
            if job.reason != "Dependency":
                job.reason = "Dependency"
            if job.eligible and job.eligible <= now and job.begin <= now:
                job.eligible = job.accrued = 0
            return False
    if job.begin > now:
        job.reason = "BeginTime"
        return False
    if not job.eligible:
        job.eligible = now
    job.accrued = job.accrued or job.eligible
    if job.reason in _GATES:
        job.reason = "None"
    return True


def _has_twin(controller: KnowsJobs, job: SlurmJob) -> bool:
    """Return whether another job of the same name and user runs or waits before it.

    It waits before it if its id is lower.
    """
    for some in controller.twins(job):
        if some is job or some.order_number == job.order_number:
            continue
        if some.state in (RUNNING, COMPLETING) or (some.state == PENDING and some.order_number < job.order_number):
            return True
    return False


def array_may_start(controller: KnowsJobs, job: SlurmJob) -> bool:
    """Return whether the limit of running tasks (%N) lets an array start another task."""
    if not job.array_limit:
        return True
    running = sum(one.state in (RUNNING, COMPLETING) for one in controller.by_number[job.number])
    if running >= job.array_limit:
        job.reason = "JobArrayTaskLimit"
        job.eligible = 0
        return False
    return True
