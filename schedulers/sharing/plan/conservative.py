"""Conservative backfilling on nodes that jobs share.

Every waiting job has a reservation.
"""

from math import inf
from typing import Any

import numpy as np

from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.open_nodes import OpenNodes, opened
from pipistrelle.schedulers.sharing.plan.loops import Bools, Floats, Ints
from pipistrelle.schedulers.sharing.plan.plan import NodeFit, NodePlan
from pipistrelle.schedulers.sharing.plan.slices import NodePlace


class ConservativeOnNodes:
    """Conservative backfilling on nodes that jobs share.

    Every waiting job has a reservation. A new job gets a reservation on fixed nodes, and delays no earlier reservation.
    When a job ends, the waiting jobs are planned again, one by one in the order of the queue. Meanwhile all other jobs
    keep their reservations. A job changes its reservation only if it can start earlier, or at the same time on
    preferred nodes. Jobs that cannot gain from the freed resources are skipped.
    """

    def __init__(self) -> None:
        self._open: OpenNodes | None = None
        self._plan: _Reserved | None = None

    def reservation(self, job: SchedulerJob) -> float:
        """Return the latest expected start (s) of a waiting job; inf if unknown."""
        return inf if self._plan is None else self._plan.begin(job)

    def state(self) -> Any:
        """Return the plan and all reservations; None if there is no plan."""
        return None if self._plan is None else self._plan.state()

    def restore(self, state: Any, view: View, placement: Placement) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        if state is None:
            return
        self._open = OpenNodes(view, placement)
        self._plan = _Reserved(self._open)
        self._plan.restore(state)

    def schedule(self, view: View, placement: Placement) -> None:
        """Start every job whose reservation begins now."""
        self._open = opened(self._open, view, placement)
        plan, anew = self._plan, view.released
        if plan is not None and not plan.holds_for(view):
            plan = None
        if plan is None:
            self._open.start_in_order()  # without reservations, what is free now stays free
            if not view.waiting:
                self._plan = None
                return
            plan, anew = _Reserved(self._open), True
        plan.schedule(anew=anew)
        self._plan = plan if view.waiting else None


class _Reserved(NodePlan):
    """The plan of running jobs and of the reservations of all waiting jobs."""

    def __init__(self, nodes: OpenNodes) -> None:
        super().__init__(nodes.view, nodes.placer)
        #: {job's number: its reservation}
        self._places: dict[int, NodePlace] = {}
        self._marks = _Marks(len(self.shared.nodes), len(self.shared.nodes.resources))

    def begin(self, job: SchedulerJob) -> float:
        """Return the start (s) of a waiting job's reservation; inf if it has none."""
        place = self._places.get(job.number)
        return inf if place is None else place.begin

    def state(self) -> dict[str, Any]:
        places = [[number, plain(place)] for number, place in self._places.items()]
        return {**super().state(), "places": places, "marks": self._marks.state()}

    def restore(self, state: Any) -> None:
        super().restore(state)
        jobs = {job.number: job for job in (*self.view.waiting.each(), *self.view.cancelled)}
        for number, told in state["places"]:
            place = self._places[number] = message_of(told)
            self.slices.take(place.rows, place.begin, place.end)
            self._marks.join(jobs[number], self, place.end)
        self._marks.restore(state["marks"])

    def holds_for(self, view: View) -> bool:
        """Return whether the plan is still valid.

        It is invalid if a job has not started although its reservation has begun.
        """
        return super().holds_for(view) and not any(place.begin < view.now for place in self._places.values())

    def schedule(self, *, anew: bool) -> None:
        """Make reservations for new jobs in queue order, and start jobs that can start.

        Args:
            anew: whether to also plan again the jobs that may move because resources were freed.
        """
        view, marks = self.view, self._marks
        for place in self.follow():
            self._freed(place)
        for job in view.cancelled:
            if job.number in self._places:
                self._drop(job)
                marks.leave(job)
                self.forget(job)
        if self.windows_changed:
            marks.mark_all()
        if anew or self.windows_changed:
            now = view.now
            for job in list(view.waiting):
                held = self._places.get(job.number)
                if held is None or held.begin <= now or marks.marked(job):
                    self._place(job)
        else:
            for job in view.waiting.in_order(view.arrivals):
                self._place(job)
        self.look_ahead()

    def _drop(self, job: SchedulerJob) -> NodePlace:
        """Remove a job's reservation and return it; mark the jobs that may gain from this."""
        place = self._places.pop(job.number)
        self.clear(place)
        self._freed(place)
        return place

    def _freed(self, place: NodePlace) -> None:
        begin = max(place.begin, self.view.now)
        if place.end > begin:
            nodes = place.rows.nodes
            has_licenses = bool(place.rows.licenses.any())
            self._marks.mark(nodes, self.slices.most_free(begin, place.end, nodes), begin, everyone=has_licenses)

    def _is_closed(self, job: SchedulerJob, place: NodePlace) -> bool:
        """Return whether a job can no longer use some node of its reservation.

        The reason is a failure, or a window that excludes the job.
        """
        access = self.access(job)
        if not access.allowed[place.rows.nodes].all():
            return True
        held = {take.node for take in place.rows.takes}
        return any(
            window.begin < place.end and window.end > place.begin and not held.isdisjoint(window.units)
            for window in access.windows
        )

    def _place(self, job: SchedulerJob) -> None:
        old, now, marks = self._places.get(job.number), self.view.now, self._marks
        if old is not None and self.windows_changed and self._is_closed(job, old):
            self._drop(job)
            old = None
        if old is None:
            fit = self.fit(job)
            if fit is not None:
                self._settle(job, fit)
            return
        if not marks.marked(job):
            fit = NodeFit(old.begin, old.rows.takes)
        else:
            fit = self._better(job, old) or NodeFit(old.begin, old.rows.takes)
        marks.clear(job)
        if fit.begin > now and (fit.begin, fit.takes) == (old.begin, old.rows.takes):
            return
        if fit.begin <= now or fit.begin < old.begin or fit.takes != old.rows.takes:
            self.clear(old)
            del self._places[job.number]
            self._settle(job, fit)
            self._freed(old)

    def _settle(self, job: SchedulerJob, fit: NodeFit) -> None:
        if fit.begin > self.view.now:
            place = self._places[job.number] = self.take(job, fit.begin, fit.takes)
            self._marks.join(job, self, place.end)
        else:
            self._marks.leave(job)
            self.start(job, fit.takes)

    def _better(self, job: SchedulerJob, old: NodePlace) -> NodeFit | None:
        """Return a better reservation for a job than ``old``; None if there is none.

        It begins earlier, or at the same time on preferred nodes.
        """
        nodes, single = self._marks.nodes(job), self.shared.shape(job).high == 1
        among: Ints | None = None
        if single and nodes is not None:
            allowed = self.access(job).allowed
            among = nodes[allowed[nodes]]
            among = among if old.rows.nodes[0] in among else np.append(among, old.rows.nodes[0])
        self.clear(old)
        fit = self.fit(job, old.begin, among)
        self.slices.take(old.rows, old.begin, old.end)
        if fit is None or (fit.begin >= old.begin and not self._prefers(fit, old)):
            return None
        return fit

    def _prefers(self, fit: NodeFit, old: NodePlace) -> bool:
        rank = self.shared.rank
        new = sorted(rank[[take.node for take in fit.takes]].tolist())
        return new < sorted(rank[old.rows.nodes].tolist())


class _Marks:
    """The waiting jobs that might move because resources were freed, and where.

    Such a job is called marked.

    Args:
        nodes: number of nodes.
        resources: number of resources.
    """

    def __init__(self, nodes: int, resources: int) -> None:
        self._width = resources
        self._column: dict[int, int] = {}
        self._unused: list[int] = []
        #: what each job needs of a node at least; an empty row needs more than there is
        self._least: Ints = np.zeros((0, resources), dtype=np.int64)
        self._ends: Floats = np.zeros(0)
        self._marked: Bools = np.zeros(0, dtype=np.bool_)
        self._nodes: Bools = np.zeros((0, nodes), dtype=np.bool_)

    def state(self) -> list[list[Any]]:
        """Return the number of each marked job, and its nodes with freed resources."""
        return [
            [number, np.flatnonzero(self._nodes[row]).tolist()]
            for number, row in self._column.items()
            if self._marked[row]
        ]

    def restore(self, state: list[list[Any]]) -> None:
        """Restore the marks that the method `state` returned.

        Call `join` for all marked jobs first.
        """
        for number, nodes in state:
            self._marked[self._column[number]] = True
            self._nodes[self._column[number], nodes] = True

    def join(self, job: SchedulerJob, plan: NodePlan, end: float) -> None:
        """Add a job without a mark; ``end`` (s) is the end of its reservation.

        If the job was added before, only set this end.
        """
        row = self._column.get(job.number)
        if row is None:
            if not self._unused:
                self._grow()
            row = self._column[job.number] = self._unused.pop()
            self._least[row] = plan.need(job).least
            self._marked[row] = False
            self._nodes[row] = False
        self._ends[row] = end

    def _grow(self) -> None:
        old = len(self._ends)
        more = max(old, 64)
        self._least = np.concatenate([self._least, np.zeros((more, self._width), dtype=np.int64)])
        self._ends = np.concatenate([self._ends, np.full(more, -inf)])
        self._marked = np.concatenate([self._marked, np.zeros(more, dtype=np.bool_)])
        self._nodes = np.concatenate([self._nodes, np.zeros((more, self._nodes.shape[1]), dtype=np.bool_)])
        self._unused = list(range(old + more - 1, old - 1, -1))

    def leave(self, job: SchedulerJob) -> None:
        row = self._column.pop(job.number, None)
        if row is not None:
            self._ends[row] = -inf
            self._marked[row] = False
            self._unused.append(row)

    def marked(self, job: SchedulerJob) -> bool:
        """Return whether a job is marked, because it might move."""
        return bool(self._marked[self._column[job.number]])

    def nodes(self, job: SchedulerJob) -> Ints:
        """Return the nodes on which resources were freed since the job was last planned."""
        return np.flatnonzero(self._nodes[self._column[job.number]])

    def clear(self, job: SchedulerJob) -> None:
        """Remove a job's mark."""
        row = self._column.get(job.number)
        if row is not None and self._marked[row]:
            self._marked[row] = False
            self._nodes[row] = False

    def mark_all(self) -> None:
        """Mark every job, with all nodes."""
        self._marked[self._ends > -inf] = True
        self._nodes[self._marked] = True

    def mark(self, nodes: Ints, most: Ints, begin: float, *, everyone: bool = False) -> None:
        """Mark the jobs that might gain from freed resources.

        Args:
            nodes: the nodes with freed resources, shape (n,).
            most: the largest amount free there at any time of the freed period, shape (n, columns).
            begin: start of the freed period, s; only jobs that end later can gain.
            everyone: mark all jobs that end later, on all nodes, because licences were freed too.
        """
        later = self._ends > begin
        if everyone:
            self._marked |= later
            self._nodes[later] = True
            return
        rows = np.flatnonzero(later)
        if not len(rows):
            return
        most = most[:, : self._width]
        if len(nodes) == 1:
            fits = (self._least[rows] <= most[0]).all(axis=1)
            found = rows[np.flatnonzero(fits)]
            self._marked[found] = True
            self._nodes[found, nodes[0]] = True
            return
        each: Bools = np.all(self._least[rows][:, None, :] <= most[None, :, :], axis=2)
        found = rows[np.flatnonzero(np.any(each, axis=1))]
        self._marked[found] = True
        self._nodes[np.ix_(found, nodes)] = True
