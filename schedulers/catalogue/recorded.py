"""What really happened as a policy: each job starts when the log says that it did, on the nodes that it got."""

from typing import Any, Final

import numpy as np

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import RemoteProtocolError, legible, quoted
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.indices import numbers, set_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.schedulers.catalogue.names import RECORDED
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.interfaces import Placement, Stateless, learn
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View

#: characters of what is wrong with a set of nodes: it may quote the server
_SAID: Final = 500


def _due(job: SchedulerJob) -> float:
    """Return when a job is to start (s): as it did, or when there is room for it; if nothing is known, at once."""
    told = job.description
    if told is None:
        return job.submit
    times = (told.recorded_room, told.recorded_start, job.submit)
    return next(time for time in times if time is not None)


class ByRecordedStart(Stateless):
    """The order in which jobs started in reality, or could have: one of which nothing is known, as it comes."""

    arrivals_last = False

    def rank(self, job: SchedulerJob) -> float:
        """Return when the job is due, in seconds."""
        return _due(job)


class RecordedPolicy(Kept):
    """Starts each job when the log says that it started, on its nodes where the log and the machine have such.

    Where the log has more jobs at a time than the machine has room for, or no start, the server tells from when on
    there is room that no other job of the log needs. A job that even then finds too few units, as nodes fail or its
    class has a limit, and one that comes back after it lost its nodes, starts as soon as there are enough that no job
    needs whose time has come just now. Nodes that are not free, or too few, are replaced by those that the placement
    picks.

    Parameters
    ----------
    placement
        picks the units of jobs that cannot have their own; None: the lowest.
    """

    _kept = ("_calls",)
    #: what it wants of the protocol, which is called so, too
    features = (RECORDED,)
    name = RECORDED

    def __init__(self, placement: Placement | None = None) -> None:
        self._placement = placement or LowestIds()
        self.order: Order = ByRecordedStart()
        #: when calls are due that were asked for, s
        self._calls: set[float] = set()
        self._view: View | None = None

    def learn(self, machine: Machine) -> None:
        """Take note of the machine before a run begins; PipistrelleError if it has not what the placement asks for."""
        learn(self._placement, machine)

    def restore(self, state: Any, view: View) -> None:
        """Go on from a state, in a view that is as it was then."""
        super().restore(state)
        self._view = view

    def decide(self, view: View) -> None:
        """Start whom it is time for; ask to be called when the next is due."""
        now = view.now
        if view is not self._view:
            self._view, self._calls = view, set()
        self._calls = {time for time in self._calls if time > now}
        due, ahead = [], None
        for job in view.waiting:
            if _due(job) > now:
                ahead = _due(job)
                break
            due.append(job)
        left = 0
        for job in sorted(due, key=lambda job: _due(job) < now):  # the others stay in their order
            alloc = self._units(view, job)
            if alloc is None:
                left += 1
                continue
            recorded = None if job.description is None else job.description.recorded_start
            late = recorded is not None and recorded < now
            view.free.remove(alloc)
            view.start(job, alloc, f"no room at its recorded start, {recorded!r}" if late else None)
        if ahead is not None and ahead not in self._calls:
            self._calls.add(ahead)
            view.call_me_later(ahead)
        if not left and view.limits is None:
            view.wake = ("JOB_SUBMITTED",)

    def _units(self, view: View, job: SchedulerJob) -> NodeSet | None:
        """Return the units for a job that starts now, its own nodes' if possible; None if there are none."""
        free = view.free.snapshot()
        if job.size > len(free):
            return None
        open_units = free - view.closed_pools(job)
        own = self._own(view.machine, job, open_units)
        return picked(self._placement, job, open_units, view.machine) if own is None else own

    @staticmethod
    def _own(machine: Machine, job: SchedulerJob, open_units: NodeSet) -> NodeSet | None:
        """Return units of the nodes that a job got in reality, as many of each as that can be; None if they lack."""
        text = None if job.description is None else job.description.recorded_nodes
        if text is None:
            return None
        try:
            nodes, numbering = NodeSet.parse(text), machine.numbering
        except NodeSetError as error:
            what = f"'recorded_nodes' of {quoted(job.id)} is no set of nodes: {legible(str(error), _SAID)}"
            raise RemoteProtocolError(what) from None
        units = numbering.units_of(nodes) & open_units
        if len(units) < job.size:
            return None
        if numbering.same or job.size % len(nodes):
            found = FreeUnits(units).take_lowest(job.size)
        else:
            each = job.size // len(nodes)
            of_node = [units & numbering.units_of(NodeSet.interval(node, node)) for node in numbers(nodes).tolist()]
            if any(len(some) < each for some in of_node):
                return None
            found = set_of(np.concatenate([numbers(some)[:each] for some in of_node]))
        if job.request is not None and machine.requests.fault(job.request, job.size, found) is not None:
            return None
        return found
