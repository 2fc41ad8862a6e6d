"""Compute the earliest start of a waiting job, for policies that users write."""

from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.plan.around_windows import reserve
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.easy_on_nodes import EasyOnNodes


def earliest_start(view: View, job: SchedulerJob) -> float:
    """Return the earliest time (s) at which a waiting job fits.

    It is the time at which EASY would reserve units for the job. Every running job is expected to run for its full
    walltime. No other job is expected to start before this one. The job's request, maintenance and nodes out of service
    are taken into account; limits of the job's class are ignored. The time is ``view.now`` if the job fits now. It is
    inf if jobs without a walltime, or nodes that never return, keep the job from starting.
    """
    if view.fits(job):
        return view.now
    if view.shared is not None:
        return EasyOnNodes().earliest(view, job, LowestIds())
    return reserve(view, job, LowestIds()).shadow
