"""The placement that takes the lowest units."""

from mypy_extensions import mypyc_attr

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob


@mypyc_attr(allow_interpreted_subclasses=True)
class LowestIds:
    """The placement that picks the lowest of the free units that the job may use."""

    fits_by_count = True

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return the lowest of the open units; None if there are fewer than the job needs."""
        return FreeUnits(open_units).take_lowest(job.size) if job.size <= len(open_units) else None


def takes_lowest(placement: Placement) -> bool:
    """Return whether a placement is known to always take the lowest units."""
    return type(placement) is LowestIds
