"""How a placement is asked for units: with what a job wants on each node, of sets of units or of masks."""

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
    """A placement that picks nodes by what is free on them."""

    def pick_nodes(self, job: SchedulerJob, able: NodeSet, free: Ints, machine: Machine) -> NodeSet | None:
        """Return as many of the nodes ``able`` as the job has units, None if it refuses.

        ``free`` is how many open units each node has; ``machine`` has nodes for units.
        """


@runtime_checkable
class RequestPlacement(Protocol):
    """A placement that looks itself at how many units a job asks for on each node."""

    takes_requests: Literal[True]


def picked(placement: Placement, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
    """Return the units that a placement picks for a job among some that the job may have, None if it refuses.

    Where the job asks for a number of units on each node, the placement picks nodes that have so many, as it would
    pick units on a machine of such, and then the node of the rest; of each the job gets the lowest units.
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
    """Return the units that a placement picks for a job among ``units``, 0 if it refuses; both are masks."""
    if takes_lowest(placement) and not job.by_nodes:  # the same without the detour
        return lowest(units, job.size)
    found = picked(placement, job, units_of(units), machine)
    return 0 if found is None else mask_of(found)


def take(placement: Placement, job: SchedulerJob, free: FreeUnits, machine: Machine) -> tuple[NodeSet, FreeUnits]:
    """Take the units of a job that fits by count from the free ones; return them, and the set to go on with.

    Raises
    ------
    ValueError
        if the placement refuses although it says that it never does.
    """
    if type(placement) is FirstInLine and placement.one_line:
        return placement.take(job, free, machine)
    alloc = placement.pick(job, free.snapshot(), machine)
    if alloc is None:
        raise ValueError(f"the placement finds no units for {job.id}, which needs {job.size} of {free.count}")
    free.remove(alloc)
    return alloc, free
