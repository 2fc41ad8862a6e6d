"""Maui's plan of shared nodes: jobs share the cores, memory and GPUs of a node."""

from collections.abc import Sequence
from functools import partial
from itertools import compress
from math import inf
from typing import Any, cast

import numpy as np

from pipistrelle.platforms.resources.shape import Shape, Takes
from pipistrelle.platforms.resources.takes import parsed_takes, plain_takes
from pipistrelle.protocol.base.state import message_of, plain
from pipistrelle.protocol.resources.amounts import CORES, MILLI
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.masks import units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.maui.config.settings import MauiSettings
from pipistrelle.schedulers.maui.machine import Backfilled, Filling
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.plan.access import Restriction
from pipistrelle.schedulers.policy.ends_and_shadow import end_of, held_until
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.preemption.nodes import is_free
from pipistrelle.schedulers.sharing.placing import placer_of
from pipistrelle.schedulers.sharing.plan.filling import FillPolicy, Release, fill
from pipistrelle.schedulers.sharing.plan.loops import Ints, Need
from pipistrelle.schedulers.sharing.plan.plan import NodeSearch, Period
from pipistrelle.schedulers.sharing.plan.slices import NodePlace


class PlannedNodes(NodeSearch):
    """Nodes that jobs share; see `PlannedMachine`.

    What a job takes is its tasks and GPUs on each node. RESDEPTH limits the jobs and reservations per node; all running
    jobs of a node count as one.

    Args:
        placement: chooses the nodes of jobs that start now; None: by NODEALLOCATIONPOLICY.
    """

    def __init__(self, view: View, settings: MauiSettings, placement: Placement | None) -> None:
        super().__init__(view, placer_of(placement or LowestIds(), view))
        self._last_available = placement is None and settings.text("NODEALLOCATIONPOLICY") == "LASTAVAILABLE"
        self._depth = settings.number("RESDEPTH")
        cores = self.shared.nodes.column(CORES)
        assert cores is not None
        self._cores = cores
        self.processors: Sequence[int] | None = (self.shared.nodes.amounts[:, cores] // MILLI).tolist()
        self.processors_per_node = max(self.processors or [1])
        #: {number of a running job: its place}
        self._running: dict[int, NodePlace] = {}
        #: places that are reserved until the next decision
        self._kept_now: list[NodePlace] = []
        self._restrictions: Sequence[Restriction] = ()
        #: {access: the nodes that are open at some time, and the periods in which some are closed}
        self._open: dict[int, tuple[Ints, list[Period]]] = {}
        #: number of reservations of each node; empty if no node can exceed the depth
        self._loads: Ints = np.zeros(0, dtype=np.int64)

    # -- sizes ------------------------------------------------------------------------------------------------------

    def size(self, job: SchedulerJob) -> int:
        """Return the number of cores that a job asks for."""
        return job.processors

    @property
    def in_service(self) -> int:
        """Return the number of cores in service."""
        return self._sum(self.shared.nodes.amounts)

    @property
    def free(self) -> int:
        """Return the number of free cores on nodes in service."""
        return self._sum(self.shared.free.amounts)

    def _sum(self, amounts: Ints) -> int:
        total = int(amounts[self.shared.open(self.view.gone), self._cores].sum())
        return -(-total // MILLI)

    def never(self, job: SchedulerJob) -> str | None:
        """Return None: the view rejects jobs that fit nowhere."""
        return None

    # -- running jobs -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the running jobs as values that JSON can hold.

        Each has its tasks and GPUs per node and its times.
        """
        return {"now": self.slices.now, "running": [[number, plain(one)] for number, one in self._running.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the running jobs that the method `state` returned."""
        self._running = {number: message_of(told) for number, told in state["running"]}
        self._kept_now = []
        self.slices = self.empty(state["now"])
        for place in sorted(self._running.values(), key=lambda one: -one.end):
            self.slices.take(place.rows, state["now"], place.end)

    def plain(self, taken: Takes) -> list[Any]:
        """Return a job's tasks and GPUs per node as values that JSON can hold."""
        return plain_takes(taken)

    def parse(self, told: Any) -> Takes:
        """Return the tasks and GPUs per node that ``told`` describes.

        ``told`` is a result of `plain`.
        """
        return parsed_takes(told)

    def started(self, job: SchedulerJob, taken: Takes, end: float) -> None:
        """Add a job that starts now; ``end`` (s) is its latest end."""
        place = self._running[job.number] = self.place(job, taken, self.view.now, end)
        self.slices.take(place.rows, place.begin, end)
        if len(self._loads):
            self._loads[place.rows.nodes] += 1
        self.forget_need(job)

    def ended(self, number: int) -> None:
        """Remove a job that has ended; ``number`` is the job's number."""
        place = self._running.pop(number)
        self.slices.give_back(place.rows, self.slices.now, place.end)

    def end(self, number: int) -> float:
        """Return the latest end (s) of a running job, given its number."""
        return self._running[number].end

    def is_end(self, time: float) -> bool:
        """Return whether ``time`` (s) is the latest end of a running job."""
        return any(place.end == time for place in self._running.values())

    def held_by(self, job: SchedulerJob) -> Takes:
        """Return the tasks and GPUs that a running job has on each node."""
        return self.shared.takes_of(job)

    # -- a decision -------------------------------------------------------------------------------------------------

    def follow(self, now: float, unavailable: NodeSet) -> None:
        """Advance the plan to ``now`` (s); ``unavailable`` nodes are out of service."""
        self.slices.advance(now)

    def begin(self, restrictions: Sequence[Restriction], reservations: int) -> None:
        """Begin a decision.

        ``restrictions`` say which nodes are closed to which jobs, and when. At most ``reservations`` reservations may
        be made before the next call.
        """
        for place in self._kept_now:
            self.slices.give_back(place.rows, place.begin, place.end)
        self._kept_now, self._open = [], {}
        self._loads = np.zeros(0, dtype=np.int64)
        self._restrictions = restrictions
        now = self.view.now
        for place in self._running.values():
            if place.end <= now:  # it runs past its expected end
                self._hold(NodePlace(now, held_until(place.end, now), place.rows))
        counted = [one.closure.units for one in restrictions if one.counts]
        if 1 + len(counted) + reservations > self._depth:
            nodes = self.shared.nodes
            self._loads = np.any(self.shared.free.amounts < nodes.amounts, axis=1).astype(np.int64)
            for units in counted:
                self._loads[numbers(units_of(units))] += 1

    def _hold(self, place: NodePlace) -> None:
        self.slices.take(place.rows, place.begin, place.end)
        self._kept_now.append(place)

    def _access(self, access: int) -> tuple[Ints, list[Period]]:
        """Return the nodes that some jobs may use, and when some of the nodes are closed.

        The jobs are those with the access number ``access``. Jobs that the same reservations admit share an access
        number.

        Returns:
            The indices of the nodes that these jobs may use at some time, and the periods in which some are closed.
        """
        found = self._open.get(access)
        if found is None:
            allowed, periods = self.shared.open(self.view.gone), []
            for (begin, end, units), open_to, _ in self._restrictions:
                if access in open_to:
                    continue
                closed = numbers(units_of(units))
                if begin <= self.view.now and end == inf:
                    allowed[closed] = False
                else:
                    periods.append(Period(begin, end, closed))
            found = self._open[access] = (np.flatnonzero(allowed), periods)
        return found

    def _search(self, access: int, job: SchedulerJob, walltime: float, before: float) -> NodePlace | None:
        among, periods = self._access(access)
        able = self.shared.shape(job).able[among]
        if len(self._loads):
            able = able & (self._loads[among] < self._depth)
        need: Need = self.need(job)._replace(length=walltime)
        fit = self.earliest(job, need, among[np.flatnonzero(able)], periods, before)
        return None if fit is None else self.place(job, fit.takes, fit.begin, end_of(fit.begin, walltime))

    def order(self, shape: Shape, at: int, length: float, good: Ints) -> Ints:
        """Return the nodes ``good`` in the order in which a job should use them.

        Under LASTAVAILABLE, a job that starts now (``at`` is 0) prefers the nodes that remain suitable for the shortest
        time. Otherwise the order is by weight and number.
        """
        if at or not self._last_available:
            return super().order(shape, at, length, good)
        until = self.slices.enough_until(length, good, shape.least)
        order: Ints = good[np.lexsort((self.shared.rank[good], until))]
        return order

    def fit_now(self, access: int, job: SchedulerJob, walltime: float) -> Takes | None:
        """Return the tasks and GPUs per node with which a job could start now.

        ``access`` is the number of the set of reservations that admit the job. Return None if the job does not fit.
        """
        if not self.shared.may_fit([job])[0]:
            return None
        found = self._search(access, job, walltime, self.view.now)
        return None if found is None else found.rows.takes

    def fit_without(self, access: int, job: SchedulerJob, walltime: float, gone: Sequence[int]) -> Takes | None:
        """Return where a job could start now if some running jobs had ended.

        The result has the job's tasks and GPUs per node; it is None if the job does not fit even then. ``gone`` has the
        numbers of these running jobs.
        """
        now = self.view.now
        places = [self._running[number] for number in gone]
        for place in places:
            self.slices.give_back(place.rows, now, place.end)
        found = self._search(access, job, walltime, now)
        for place in places:
            self.slices.take(place.rows, now, place.end)
        return None if found is None else found.rows.takes

    def find(self, access: int, job: SchedulerJob, walltime: float) -> NodePlace | None:
        """Return the earliest reservation that a job could get.

        It has the job's tasks and GPUs per node. Return None if the job fits nowhere.
        """
        return self._search(access, job, walltime, inf)

    def reserve(self, access: int, job: SchedulerJob, walltime: float) -> NodePlace | None:
        """Make and return the earliest reservation for a job.

        The reservation has the tasks and GPUs per node, start and end. Return None if the job fits nowhere.
        """
        place = self.find(access, job, walltime)
        if place is not None:
            self.keep(place)
        return place

    def keep(self, place: NodePlace) -> None:
        """Keep a reservation, ``place``, until `begin` is called again."""
        self._hold(place)
        if len(self._loads):
            self._loads[place.rows.nodes] += 1

    def is_free(self, access: int, place: NodePlace) -> bool:
        """Return whether what ``place`` takes is free from its start to its end."""
        slices, rows = self.slices, place.rows
        if place.begin < self.view.now:
            return False
        among, periods = self._access(access)
        if not np.isin(rows.nodes, among).all():
            return False
        if any(one.begin < place.end and one.end > place.begin and np.isin(rows.nodes, one.nodes).any()
               for one in periods):  # fmt: skip
            return False
        at = slices.cut(place.begin)
        after = max(slices.cut(place.end), at + 1)
        enough = bool((slices.free_licenses()[at:after] >= rows.licenses).all())
        return enough and bool((slices.least_free(at, place.end - place.begin, rows.nodes) >= rows.taken).all())

    def place(self, job: SchedulerJob, taken: Takes, begin: float, end: float) -> NodePlace:
        """Return a reservation, from ``begin`` to ``end`` (s), of the amounts ``taken``."""
        return NodePlace(begin, end, self.rows(job, taken))

    def taken(self, place: NodePlace) -> Takes:
        """Return how many tasks and GPUs a reservation takes on each of its nodes."""
        return place.rows.takes

    def is_lost(self, taken: Takes) -> bool:
        """Return whether any of the nodes that a job would take is out of service."""
        return any(take.node in self.view.unavailable for take in taken)

    def is_free_now(self, job: SchedulerJob, taken: Takes) -> bool:
        """Return whether the cores, memory and GPUs that a job would take are free now."""
        return is_free(self.view, job, taken)

    def start(self, job: SchedulerJob, taken: Takes, why: str | None) -> None:
        """Start a job now with these tasks and GPUs per node."""
        self.view.start(job, taken, why)

    def backfill(self, jobs: Backfilled, accesses: int, window: Filling) -> None:
        """Start jobs that fit and do not delay any reservation.

        ``window`` has the parameters of backfilling; its BACKFILLPOLICY chooses among the jobs that fit.
        """
        queue, now = jobs.queue, self.view.now
        eligible = jobs.eligible & queue.live
        rows = np.flatnonzero(eligible)
        rows = rows[np.argsort(-jobs.ranks[rows], kind="stable")].tolist()
        if not rows:
            return
        changed = jobs.changed

        def may(row: int) -> bool:
            if not changed:
                return True
            allowed = jobs.allowed(np.array([row], dtype=np.intp))
            return allowed is None or bool(allowed[0])

        def start(row: int) -> None:
            nonlocal changed
            if may(row) and jobs.start(row):
                changed = True
                jobs.eligible[row] = False

        def hold(row: int) -> Release | None:
            job, walltime = queue.job(row), float(queue.walltime[row])
            if not may(row):
                return None
            place = self._search(int(queue.access[row]), job, walltime, now)
            if place is None:
                return None
            self.slices.take(place.rows, place.begin, place.end)
            return partial(self.slices.give_back, place.rows, place.begin, place.end)

        def value(row: int) -> float:
            size, walltime = int(queue.size[row]), float(queue.walltime[row])
            if window.metric == "NODES":
                return self.shared.shape(queue.job(row)).low
            if window.metric == "SECONDS":
                return walltime
            return size * walltime if window.metric in ("PROCSECONDS", "PESECONDS") else size

        able = self.shared.may_fit([queue.job(row) for row in rows]).tolist()
        fill(list(compress(rows, able)), cast(FillPolicy, window.policy.lower()), value, window.depth, hold, start)
