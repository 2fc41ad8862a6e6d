"""Whether a job may run at all at a moment: holds, dependencies, begin times, limits of running tasks."""

from typing import TYPE_CHECKING, Final

from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETING, PENDING, RUNNING, Job
from pipistrelle.schedulers.slurm.passes.dependencies import MET, NEVER, test_dependencies

if TYPE_CHECKING:  # the controller calls this module
    from pipistrelle.schedulers.slurm.passes.controller import Controller

#: reasons that a test of the queue sets and clears
_GATES: Final = frozenset(
    {"Dependency", "BeginTime", "Reservation", "PartitionDown", "PartitionInactive", "JobArrayTaskLimit"}
)


def is_eligible(controller: "Controller", job: Job, now: int) -> bool:
    """Return whether dependencies and begin times let a job run; set its eligible time and reason."""
    if not job.priority:
        if job.reason not in ("JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied", "BadConstraints"):
            job.reason = "JobHeldAdmin"
        return False
    if job.depends:
        state = test_dependencies(job, controller.records, lambda one: _has_twin(controller, one), now)
        if state == NEVER:
            job.reason = "DependencyNeverSatisfied"
            if controller.config.scheduler_parameters.kill_invalid_depend:
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
    job.accrued = job.eligible
    if job.reason in _GATES:
        job.reason = "None"
    return True


def _has_twin(controller: "Controller", job: Job) -> bool:
    """Return whether a job of the same name and user runs, or waits with a lower id."""
    for some in controller.twins(job):
        if some is job or some.order_number == job.order_number:
            continue
        if some.state in (RUNNING, COMPLETING) or (some.state == PENDING and some.order_number < job.order_number):
            return True
    return False


def array_may_start(controller: "Controller", job: Job) -> bool:
    """Return whether the limit of running tasks (%N) lets another task of an array start."""
    if not job.array_limit:
        return True
    running = sum(one.state in (RUNNING, COMPLETING) for one in controller.by_number[job.number])
    if running >= job.array_limit:
        job.reason = "JobArrayTaskLimit"
        job.eligible = job.accrued = 0
        return False
    return True
