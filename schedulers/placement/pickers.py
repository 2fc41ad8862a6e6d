"""Pick a job's units with a placement, even if the job requests units per node."""

from typing import Literal, Protocol, runtime_checkable

from msgspec import structs

from pipistrelle.platforms.requests.node_counts import Ints
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.indices import numbers, set_of
from pipistrelle.protocol.units.masks import lowest, mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.lowest import takes_lowest
from pipistrelle.schedulers.placement.ordered import FirstInLine
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob


@runtime_checkable
class NodePlacement(Protocol):
    """A placement that picks nodes by their free units."""

    def pick_nodes(self, job: SchedulerJob, able: NodeSet, free: Ints, machine: Machine) -> NodeSet | None:
        """Return the nodes that each give a job one unit; None to refuse the job.

        Pick them from ``able``, as many as ``job.size``. ``free`` is the number of open units per node. ``machine``
        describes each node as one unit.
        """


@runtime_checkable
class RequestPlacement(Protocol):
    """A placement that handles requests for units per node itself."""

    takes_requests: Literal[True]


def picked(placement: Placement, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
    """Return the units that a placement picks among open units; None if it refuses.

    For a job with units per node, the placement first picks nodes with enough open units, as if nodes were units. Then
    it picks one more node for the remaining units, if any. The job gets the lowest units of each node.
    """
    request = job.request
    if request is None or request.units_per_node is None or isinstance(placement, RequestPlacement):
        return placement.pick(job, open_units, machine)

    def choose(count: int, able: Ints, free: Ints) -> Ints | None:
        alike, nodes = structs.replace(job, size=count, request=None), set_of(able)
        if isinstance(placement, NodePlacement):
            found = placement.pick_nodes(alike, nodes, free, machine.of_nodes)
        else:
            found = placement.pick(alike, nodes, machine.of_nodes)
        return None if found is None else numbers(found)

    counts, together = machine.requests.counts, not placement.fits_by_count
    return counts.fill(open_units, request.units_per_node, job.size, choose, together=together)


def pick(placement: Placement, units: int, job: SchedulerJob, machine: Machine) -> int:
    """Return the units that a placement picks among ``units``.

    Return 0 if the placement refuses the job. Both sets of units are bit masks.
    """
    if takes_lowest(placement) and not job.by_nodes:  # the same result, faster
        return lowest(units, job.size)
    found = picked(placement, job, units_of(units), machine)
    return 0 if found is None else mask_of(found)


def take(placement: Placement, job: SchedulerJob, free: FreeUnits, machine: Machine) -> tuple[NodeSet, FreeUnits]:
    """Take units for a job for which enough units are free.

    Return the units taken, and the set of the free units that remain.
    """
    if type(placement) is FirstInLine and placement.one_line:
        return placement.take(job, free, machine)
    alloc = placement.pick(job, free.snapshot(), machine)
    if alloc is None:
        raise ValueError(f"the placement finds no units for {job.id}, which needs {job.size} of {free.count}")
    free.remove(alloc)
    return alloc, free
