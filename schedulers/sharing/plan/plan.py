"""The plan for rules that reserve shared nodes: free amounts per node over time."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from pipistrelle.platforms.resources.shape import Shape, Takes
from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.ends_and_shadow import end_of, held_until
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.sharing.placing import NodePlacer
from pipistrelle.schedulers.sharing.plan.compiled import fast_loops
from pipistrelle.schedulers.sharing.plan.loops import Bools, Ints, Need, Shut
from pipistrelle.schedulers.sharing.plan.slices import NodePlace, NodeSlices, Rows


class NodeFit(NamedTuple):
    """The time (s) from which a job fits, and its tasks and GPUs per node then."""

    begin: float
    takes: Takes


class Access(NamedTuple):
    """The nodes that a job may ever use, and when windows close some of them.

    Attributes:
        allowed: whether the job may ever use each node, shape (nodes,).
        nodes: the numbers of the nodes that it may ever use.
        windows: the windows that exclude the job and do not last forever.
    """

    allowed: Bools
    nodes: Ints
    windows: tuple[Window, ...]


class Period(NamedTuple):
    """A period (s) during which a job may not use some nodes."""

    begin: float
    end: float
    nodes: Ints


class NodeSearch:
    """A search for the earliest time at which a job fits on shared nodes.

    Attributes:
        slices: what is free over time.

    Args:
        placer: chooses the nodes of jobs that start now; reservations prefer nodes by weight and number.
    """

    def __init__(self, view: View, placer: NodePlacer) -> None:
        assert view.shared is not None
        self.view = view
        self.shared = view.shared
        self.placer = placer
        self._names = tuple(self.shared.nodes.licenses)
        self._needs: dict[int, Need] = {}
        self.slices = self.empty(view.now)

    def empty(self, now: float) -> NodeSlices:
        """Return time slices from ``now`` (s) on in which no job runs."""
        nodes = self.shared.nodes
        has = np.hstack([nodes.amounts, nodes.gpus])
        licenses = np.array(list(nodes.licenses.values()), dtype=np.int64)
        return NodeSlices(now, has.copy(), has, licenses, fast_loops())

    def rows(self, job: SchedulerJob, takes: Takes) -> Rows:
        """Return the amounts that a job holds, as arrays with the plan's columns.

        ``takes`` has the job's tasks and GPUs per node.
        """
        counts = self._counts(self.shared.shape(job))
        return Rows(takes, *self.shared.rows(job, takes), counts)

    def _counts(self, shape: Shape) -> Ints:
        wanted = shape.request.licenses
        return np.array([wanted.get(name, 0) for name in self._names], dtype=np.int64)

    def need(self, job: SchedulerJob) -> Need:
        """Return the amounts that must be free on each node that a job uses."""
        known = self._needs.get(job.number)
        if known is None:
            shape = self.shared.shape(job)
            base, each, most = shape.parts
            known = Need(
                shape.least,
                shape.least_gpus,
                shape.share,
                shape.request.exclusive,
                shape.low,
                float(job.occupies),
                shape.tasks or 0,
                most,
                base,
                each,
            )
            self._needs[job.number] = known
        return known

    def forget_need(self, job: SchedulerJob) -> None:
        """Drop the stored result of `need` for a job that no longer waits."""
        self._needs.pop(job.number, None)

    def earliest(
        self, job: SchedulerJob, need: Need, among: Ints, periods: Sequence[Period] = (), before: float = inf
    ) -> NodeFit | None:
        """Return when (s) a job first fits, and with which tasks and GPUs per node.

        Return None if there is no such time.

        Args:
            among: the nodes that may be used.
            periods: periods in which the job may not use some of these nodes.
            before: the latest time to try, s.
        """
        slices, shape = self.slices, self.shared.shape(job)
        slices.cut(before)  # all slices must exist before they are numbered
        shut = self._shut(shape, periods)
        last = len(slices) - 1 if before == inf else min(slices.cut(before), len(slices) - 1)
        at = 0
        while at <= last and len(among) >= need.low:
            at, good = slices.first_begin(need, among, shut, at, last)
            if at < 0:
                return None
            begin = float(slices.begins[at])
            takes = self._choose(shape, at, need.length, good)
            if takes is not None:
                return NodeFit(begin, takes)
            at += 1
        return None

    def _choose(self, shape: Shape, at: int, length: float, good: Ints) -> Takes | None:
        """Return the tasks and GPUs that a job would get on the nodes ``good``.

        The job would start in slice ``at`` and run for ``length`` s. Return None if it does not fit.
        """
        has, width = self.slices.has, len(self.shared.nodes.resources)
        table = np.zeros_like(has)
        table[good] = self.slices.least_free(at, length, good)
        most = np.zeros(len(table), dtype=np.int64)
        amounts, gpus = table[:, :width], table[:, width:]
        most[good] = shape.most_tasks(amounts, gpus)[good]
        if not most.any():
            return None
        return shape.choose(self.order(shape, at, length, good), most, amounts, gpus)

    def order(self, shape: Shape, at: int, length: float, good: Ints) -> Ints:
        """Return all nodes, preferred first, for a job that starts in time slice ``at``."""
        return self.shared.by_weight if at else self.placer.order(shape)

    def _shut(self, shape: Shape, periods: Sequence[Period]) -> Shut:
        """Convert periods (s) to ranges of slices.

        Also record the slices in which too few licences are free for the job.
        """
        slices = self.slices
        periods = [one for one in periods if one.end > slices.now]
        for one in periods:
            slices.cut(one.begin)
            slices.cut(one.end)
        nodes: Bools = np.zeros((len(periods), len(slices.has)), dtype=np.bool_)
        first, after = np.zeros(len(periods), dtype=np.int64), np.zeros(len(periods), dtype=np.int64)
        for place, one in enumerate(periods):
            nodes[place, one.nodes] = True
            first[place], after[place] = slices.cut(one.begin), slices.cut(one.end)
        never: Bools = np.zeros(0, dtype=np.bool_)
        if shape.request.licenses:
            never = np.any(slices.free_licenses() < self._counts(shape), axis=1)
        return Shut(nodes, first, after, never)


class NodePlan(NodeSearch):
    """What running jobs and reservations leave free on shared nodes over time.

    A running job holds its resources until its expected end (start + walltime), or until maintenance kills it. It is
    removed when it ends. The plan does not contain windows, because a window may admit some jobs.

    Args:
        placer: chooses the nodes of jobs that start now; reservations prefer nodes by weight and number.
    """

    def __init__(self, view: View, placer: NodePlacer) -> None:
        super().__init__(view, placer)
        self._gone = view.gone
        self._changes = view.windows.changes
        self._next_end = inf
        #: {id of a running job: its place}
        self._running: dict[str, NodePlace] = {}
        #: {id of a job that maintenance will kill: when (s)}
        self._killed: dict[str, float] = {}
        #: {job's number: what it may use}
        self._accesses: dict[int, Access] = {}
        for job in view.running:
            end = held_until(self._ends_at(job), view.now)
            self._running[job.id] = NodePlace(view.now, end, self.rows(job, self.shared.takes_of(job)))
        self.slices = self._sliced(view.now)
        #: whether windows were added, removed or ended since the last decision
        self.windows_changed = True

    def _sliced(self, now: float) -> NodeSlices:
        """Return what is free from ``now`` (s) on if only running jobs hold resources."""
        slices = self.empty(now)
        # The latest end first: each job then changes only slices that exist already.
        for place in sorted(self._running.values(), key=lambda one: -one.end):
            slices.take(place.rows, now, place.end)
        return slices

    def state(self) -> dict[str, Any]:
        """Return the plan as plain values, without the waiting jobs' reservations.

        The backfilling rule saves and restores those reservations.
        """
        return {
            "now": self.slices.now,
            "gone": str(self._gone),
            "running": {job: plain(place) for job, place in self._running.items()},
            "killed": dict(self._killed),
            "changes": self._changes,
            "next_end": self._next_end,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the plan that the method `state` returned."""
        self._gone = NodeSet.parse(state["gone"])
        self._running = {job: message_of(place) for job, place in state["running"].items()}
        self._killed = dict(state["killed"])
        self._changes, self._next_end = state["changes"], state["next_end"]
        self._accesses = {}
        self.slices = self._sliced(state["now"])

    def holds_for(self, view: View) -> bool:
        """Return whether an earlier plan is still valid in this view.

        It is invalid in another simulation, after nodes failed or returned unannounced, and if a job runs past its
        expected end or survives maintenance.
        """
        return (
            view is self.view
            and view.gone == self._gone
            and view.running.next_end > view.now
            and not any(job in view.running and time <= view.now for job, time in self._killed.items())
        )

    def follow(self) -> list[NodePlace]:
        """Advance to the view's time, and remove the jobs that ended.

        Return the places (amounts, begin and planned end) of the jobs that ended earlier than planned.
        """
        view, ended = self.view, []
        self.slices.advance(view.now)
        if view.released:
            for job_id in [job_id for job_id in self._running if job_id not in view.running]:
                place = self._running.pop(job_id)
                self._killed.pop(job_id, None)
                self.clear(place)
                if place.end > view.now:
                    ended.append(place)
        self.windows_changed = view.now >= self._next_end
        if view.windows.changes != self._changes:
            self.windows_changed = True
            self._changes = view.windows.changes
            self._accesses = {}
            self._cut_short()
        return ended

    def look_ahead(self) -> None:
        """Record when the next maintenance window ends.

        Call this after all decisions about a notice (message from the server).
        """
        windows = self.view.windows
        self._next_end = windows.next_end(self.view.now) if windows else inf

    def _ends_at(self, job: SchedulerJob) -> float:
        """Return the latest end (s) of a running job.

        Also record whether maintenance kills the job.
        """
        end = self.view.windows.ends_at(job, self.view.now)
        if end < job.expected_end:
            self._killed[job.id] = end
        return end

    def _cut_short(self) -> None:
        for job in self.view.running:
            place = self._running[job.id]
            end = self._ends_at(job)
            if end < place.end:
                self.slices.give_back(place.rows, end, place.end)
                self._running[job.id] = place._replace(end=end)

    # -- one job ----------------------------------------------------------------------------------------------------

    def access(self, job: SchedulerJob) -> Access:
        """Return the nodes that a job may ever use, and when windows close some of them."""
        known = self._accesses.get(job.number)
        if known is None:
            allowed = self.shared.shape(job).able.copy()
            if self._gone:
                allowed[numbers(self._gone)] = False
            timed = []
            for window in self.view.windows.against(job, self.view.now):
                if window.begin <= self.view.now and window.end == inf:
                    allowed[numbers(window.units)] = False
                else:
                    timed.append(window)
            known = Access(allowed, np.flatnonzero(allowed), tuple(timed))
            self._accesses[job.number] = known
        return known

    def forget(self, job: SchedulerJob) -> None:
        """Drop what is stored about a job that no longer waits."""
        self._accesses.pop(job.number, None)
        self.forget_need(job)

    def fit(self, job: SchedulerJob, before: float = inf, among: Ints | None = None) -> NodeFit | None:
        """Return when (s) a job first fits, and with which tasks and GPUs per node.

        Return None if there is no such time.

        Args:
            before: the latest time to try, s.
            among: the nodes that may be used; None: all that the job may use.
        """
        access = self.access(job)
        periods = [Period(one.begin, one.end, numbers(one.units)) for one in access.windows]
        return self.earliest(job, self.need(job), access.nodes if among is None else among, periods, before)

    def start_if_fits(self, job: SchedulerJob) -> bool:
        """Start a job if it fits now and until its expected end.

        Return whether the job was started.
        """
        fit = self.fit(job, self.view.now)
        if fit is not None:
            self.start(job, fit.takes)
        return fit is not None

    def take(self, job: SchedulerJob, begin: float, takes: Takes) -> NodePlace:
        """Reserve amounts on nodes for a job from ``begin`` (s) until its latest end.

        ``takes`` has the job's tasks and GPUs per node.
        """
        place = NodePlace(begin, end_of(begin, job.occupies), self.rows(job, takes))
        self.slices.take(place.rows, place.begin, place.end)
        return place

    def clear(self, place: NodePlace) -> None:
        """Remove a reservation from the plan, so that its amounts are free again."""
        self.slices.give_back(place.rows, place.begin, place.end)

    def start(self, job: SchedulerJob, takes: Takes) -> None:
        """Start a job now on amounts that must be free for its full walltime.

        ``takes`` has the job's tasks and GPUs per node.
        """
        view = self.view
        first = view.waiting.first
        self._running[job.id] = self.take(job, view.now, takes)
        self.forget(job)
        view.start(job, takes, None if first is None or first is job else f"backfilled before {first.id}")
