"""The log itself as a policy: jobs start when and where they did in reality."""

from typing import Any, Final

import numpy as np

from pipistrelle.platforms.resources.shape import Takes
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
from pipistrelle.schedulers.policy.shared_view import SharedView
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.open_nodes import OpenNodes, opened

#: most characters of an error text that may quote the server
_SAID: Final = 500


def _due(job: SchedulerJob) -> float:
    """Return the time (s) at which the policy ``recorded`` should start a job.

    This is the first possible start if the server states one, else the start in the log, else the submit time.
    """
    told = job.description
    if told is None:
        return job.submit
    times = (told.recorded_room, told.recorded_start, job.submit)
    return next(time for time in times if time is not None)


class ByRecordedStart(Stateless):
    """The queue order of the scheduler `recorded`.

    Jobs are ordered by planned start; ties are broken by submission.
    """

    arrivals_last = False

    def rank(self, job: SchedulerJob) -> float:
        """Return the planned start of the job (s)."""
        return _due(job)


class RecordedPolicy(Kept):
    """A policy that starts each job at its recorded time.

    The job gets its recorded nodes if possible. If the log has no start, or the machine is too small for all jobs that
    ran then, the server gives the job another start: the first time at which it fits beside the log's other jobs. If
    failed nodes or class limits delay the job, it starts as soon as enough units are left once all jobs due at that
    instant have started. A job that runs again after a failure starts by the same rule. If its recorded nodes are busy
    or too few, the placement picks others.

    Args:
        placement: picks units for jobs that cannot have their recorded nodes; None: the lowest units.
    """

    _kept = ("_calls",)
    features = (RECORDED,)
    name = RECORDED

    def __init__(self, placement: Placement | None = None) -> None:
        self._placement = placement or LowestIds()
        self.order: Order = ByRecordedStart()
        #: times of pending calls, s
        self._calls: set[float] = set()
        self._view: View | None = None
        #: the nodes that jobs may use, on a machine whose nodes are shared
        self._open: OpenNodes | None = None

    def learn(self, machine: Machine) -> None:
        """Pass the machine to the placement.

        Raise PipistrelleError if the machine does not suit the placement.
        """
        learn(self._placement, machine)

    def restore(self, state: Any, view: View) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        super().restore(state)
        self._view = view

    def decide(self, view: View) -> None:
        """Start the jobs that are due.

        Ask for a call at the time when the next job is due.
        """
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
        for job in sorted(due, key=lambda job: _due(job) < now):  # stable
            alloc = self._units(view, job) if view.shared is None else self._takes(view, view.shared, job)
            if alloc is None:
                left += 1
                continue
            recorded = None if job.description is None else job.description.recorded_start
            late = recorded is not None and recorded < now
            if isinstance(alloc, NodeSet):
                view.free.remove(alloc)
            view.start(job, alloc, f"no room at its recorded start, {recorded!r}" if late else None)
        if ahead is not None and ahead not in self._calls:
            self._calls.add(ahead)
            view.call_me_later(ahead)
        if not left and view.limits is None:
            view.wake = ("JOB_SUBMITTED",)

    def _takes(self, view: View, shared: SharedView, job: SchedulerJob) -> Takes | None:
        """Return the tasks and GPUs per node with which a job on shared nodes starts now.

        Its recorded nodes are preferred. Return None if the job does not fit.
        """
        self._open = opened(self._open, view, self._placement)
        allowed = shared.open(view.shut(job))
        recorded = self._recorded(job)
        if recorded:
            own = np.zeros_like(allowed)
            own[numbers(recorded & view.machine.all_units)] = True
            takes = shared.pick(job, allowed & own)
            if takes is not None:
                return takes
        return self._open.placer.place(job, allowed)

    def _units(self, view: View, job: SchedulerJob) -> NodeSet | None:
        """Return units for a job that starts now; None if it does not fit.

        Its recorded nodes are preferred.
        """
        free = view.free.snapshot()
        if job.size > len(free):
            return None
        open_units = free - view.closed_pools(job)
        own = self._own(view.machine, job, open_units)
        return picked(self._placement, job, open_units, view.machine) if own is None else own

    @staticmethod
    def _own(machine: Machine, job: SchedulerJob, open_units: NodeSet) -> NodeSet | None:
        """Return units of the job's recorded nodes; None if too few of these are free.

        ``open_units`` are the free units that the job may use. Each node contributes equally many units if possible.
        """
        nodes, numbering = RecordedPolicy._recorded(job), machine.numbering
        if nodes is None:
            return None
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

    @staticmethod
    def _recorded(job: SchedulerJob) -> NodeSet | None:
        """Return the nodes on which the job ran in the log; None if unknown."""
        text = None if job.description is None else job.description.recorded_nodes
        if text is None:
            return None
        try:
            return NodeSet.parse(text)
        except NodeSetError as error:
            what = f"'recorded_nodes' of {quoted(job.id)} is not a set of nodes: {legible(str(error), _SAID)}"
            raise RemoteProtocolError(what) from None
