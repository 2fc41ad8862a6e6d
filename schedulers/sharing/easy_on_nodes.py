"""EASY backfilling, and the two rules without reservations (`none`, `firstfit`), on nodes that jobs share."""

from collections.abc import Mapping
from math import inf
from operator import itemgetter
from typing import Any

import numpy as np

from pipistrelle.platforms.resources.shared_nodes import Amounts
from pipistrelle.schedulers.policy.ends_and_shadow import held_until, is_late
from pipistrelle.schedulers.policy.interfaces import Placement, Stateless
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.shared_view import SharedView, Takes
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.placing import NodePlacer, placer_of


class OpenNodes:
    """Jobs and shared nodes during one decision: which job fits now, and on which nodes."""

    def __init__(self, view: View, placement: Placement) -> None:
        assert view.shared is not None
        self.view = view
        self.shared: SharedView = view.shared
        self.placer: NodePlacer = placer_of(placement, view)

    def pick(self, job: SchedulerJob, table: Amounts | None = None) -> Takes | None:
        """Return what a job would take now; None if it does not fit.

        Args:
            table: the free amounts that the job may take; None: all that is free.
        """
        return self.placer.place(job, self.shared.open(self.view.shut(job)), table)

    def start_in_order(self) -> SchedulerJob | None:
        """Start jobs from the front of the queue while they fit; return the first job that does not."""
        waiting = self.view.waiting
        while (first := waiting.first) is not None:
            takes = self.pick(first)
            if takes is None:
                break
            self.view.start(first, takes)
        return first

    def could_fit(self, jobs: list[SchedulerJob]) -> list[SchedulerJob]:
        """Return the jobs that might fit; the others are too large for every node in some resource.

        The test asks for each resource by itself whether one task fits on some node.
        """
        if not jobs:
            return jobs
        free = self.shared.free
        largest = free.amounts.max(axis=0)
        need = np.array([self.shared.shape(job).least for job in jobs], dtype=np.int64)
        return [jobs[row] for row in np.flatnonzero((need <= largest).all(axis=1)).tolist()]


class NoBackfillOnNodes(Stateless):
    """Starts jobs strictly in the order of the queue."""

    def __init__(self) -> None:
        self._open: OpenNodes | None = None

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs from the front of the queue until one does not fit."""
        self._open = opened(self._open, view, placement)
        self._open.start_in_order()


class FirstFitOnNodes(Stateless):
    """Starts every job that fits, in the order of the queue."""

    def __init__(self) -> None:
        self._open: OpenNodes | None = None

    def schedule(self, view: View, placement: Placement) -> None:
        """Start all jobs that fit."""
        known = self._open
        self._open = opened(known, view, placement)
        every = view.released or known is not self._open or bool(view.windows)
        jobs = list(view.waiting) if every else view.waiting.in_order(view.arrivals)
        for job in self._open.could_fit(jobs):
            takes = self._open.pick(job)
            if takes is not None:
                view.start(job, takes)


class EasyOnNodes:
    """EASY backfilling on nodes that jobs share: one reservation, for the first job in the queue.

    The shadow time is the earliest time at which the first job fits if every running job takes its whole walltime. All
    resources count. Another job may pass in two cases: it ends by the shadow time, or both jobs fit at that time. The
    reservation is constant until resources are freed, so until then only arrivals are tested.

    Args:
        shortest_first: whether candidates are tried by shortest walltime (EASY-SJBF).
    """

    def __init__(self, *, shortest_first: bool = False) -> None:
        self._shortest_first = shortest_first
        self._open: OpenNodes | None = None
        self._reserved_for: SchedulerJob | None = None
        self._shadow = inf
        #: what is free at the shadow time beside the jobs that run or have passed, and which nodes are open then
        self._then: Amounts | None = None

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the latest expected start (s) of the first job in the queue; None for every other job."""
        return self._shadow if job is self._reserved_for else None

    def state(self) -> dict[str, Any]:
        """Return the first job's reservation; it is computed again after `restore`."""
        return {"first": None if self._reserved_for is None else self._reserved_for.id, "shadow": self._shadow}

    def restore(self, state: dict[str, Any], view: View, placement: Placement) -> None:
        """Restore a state, into a view restored to the same instant."""
        self._open = OpenNodes(view, placement)
        self._shadow = state["shadow"]
        known = (*view.waiting.each(), *view.cancelled)
        self._reserved_for = next((job for job in known if job.id == state["first"]), None)
        self._then = None

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs from the front of the queue, then backfill behind the first job that does not fit."""
        known = self._open
        self._open = opened(known, view, placement)
        before = len(view.decisions)
        first = self._open.start_in_order()
        if first is None:
            self._reserved_for = None
            return
        anew = view.released or first is not self._reserved_for or len(view.decisions) > before
        if anew or self._then is None or view.windows:
            self._reserved_for = first
            self._reserve(first)
        jobs = list(view.waiting) if anew or view.windows else view.waiting.in_order(view.arrivals)
        self._pass_over(first, [job for job in jobs if job is not first])

    def _reserve(self, first: SchedulerJob) -> None:
        """Find the earliest time at which the first job fits, and what is free at that time."""
        assert self._open is not None
        view, shared = self._open.view, self._open.shared
        now, windows = view.now, view.windows
        ends = [
            (held_until(windows.ends_at(job, now) if windows else job.expected_end, now), job) for job in view.running
        ]
        ends = sorted((pair for pair in ends if pair[0] < inf), key=itemgetter(0))
        rows = [shared.held_by(job) for _, job in ends]
        counts = [len(nodes) for nodes, _ in rows]
        #: end, node and amounts of each row of the running jobs, by end
        released = np.repeat(np.array([end for end, _ in ends], dtype=np.float64), counts)
        nodes = np.concatenate([nodes for nodes, _ in rows]) if rows else np.zeros(0, dtype=np.int64)
        free = shared.table()
        taken = np.concatenate([some for _, some in rows]) if rows else free[:0]
        times = sorted({now, *(end for end, _ in ends), *(w.end for w in windows if now < w.end < inf)})

        def table_at(time: float) -> Amounts:
            until = int(np.searchsorted(released, time, side="right"))
            table = free.copy()
            np.add.at(table, nodes[:until], taken[:until])
            return table

        self._then = table_at(inf)
        if windows:
            found = next((time for time in times if self._fits(first, table_at(time), time)), inf)
        elif not self._fits(first, self._then, inf):
            found = inf
        else:  # without windows, more and more is free
            low, high = 0, len(times) - 1
            while low < high:
                middle = (low + high) // 2
                if self._fits(first, table_at(times[middle]), times[middle]):
                    high = middle
                else:
                    low = middle + 1
            found = times[low]
        self._shadow = found
        if found < inf:
            self._then = table_at(found)

    def _fits(self, job: SchedulerJob, table: Amounts, time: float) -> bool:
        assert self._open is not None
        view, shared = self._open.view, self._open.shared
        amounts, gpus = shared.split(table)
        shape = shared.shape(job)
        if shape.request.licenses and self._short_of_licenses(shape.request.licenses, time):
            return False
        most = np.where(shared.open(view.shut(job, time)), shape.most_tasks(amounts, gpus), 0)
        return shape.choose(shared.by_weight, most, gpus) is not None

    def _short_of_licenses(self, wanted: Mapping[str, int], time: float) -> bool:
        """Return whether too few licences are free at ``time``, when the jobs that end by then have ended."""
        assert self._open is not None
        view, shared = self._open.view, self._open.shared
        free = dict(shared.free.licenses)
        for job in view.running:
            if held_until(view.windows.ends_at(job, view.now), view.now) <= time:
                for name, count in shared.shape(job).request.licenses.items():
                    free[name] += count
        return any(count > free.get(name, 0) for name, count in wanted.items())

    def _pass_over(self, first: SchedulerJob, jobs: list[SchedulerJob]) -> None:
        assert self._open is not None
        assert self._then is not None
        view, shared = self._open.view, self._open.shared
        jobs = self._open.could_fit(jobs)
        if self._shortest_first:
            jobs.sort(key=lambda job: job.occupies)
        for job in jobs:
            takes = self._open.pick(job)
            if takes is None:
                continue
            if is_late(view.now, job.occupies, self._shadow):
                takes = self._beside(job, takes, first)
                if takes is None:
                    continue
                nodes, taken = shared.rows(job, takes)
                self._then[nodes] -= taken
            view.start(job, takes, f"backfilled before {first.id}")

    def _beside(self, job: SchedulerJob, takes: Takes, first: SchedulerJob) -> Takes | None:
        """Return what a job that runs beyond the shadow time may take; None if the first job would then not fit."""
        assert self._open is not None
        assert self._then is not None
        shared = self._open.shared
        if self._spares(job, takes, first):
            return takes
        amounts, gpus = shared.split(self._then)
        shape = shared.shape(first)
        most = np.where(shared.open(self._open.view.shut(first, self._shadow)), shape.most_tasks(amounts, gpus), 0)
        kept = shape.choose(shared.by_weight, most, gpus)
        if kept is None:
            return None
        nodes, taken = shared.rows(first, kept)
        spare = self._then.copy()
        spare[nodes] -= taken
        found = self._open.pick(job, np.minimum(shared.table(), spare))
        return found if found is not None and self._spares(job, found, first) else None

    def _spares(self, job: SchedulerJob, takes: Takes, first: SchedulerJob) -> bool:
        assert self._open is not None
        assert self._then is not None
        wanted, first_wants = (self._open.shared.shape(one).request.licenses for one in (job, first))
        both = {name: wanted.get(name, 0) + count for name, count in first_wants.items()}
        if both and self._short_of_licenses(both, self._shadow):
            return False
        nodes, taken = self._open.shared.rows(job, takes)
        table = self._then.copy()
        table[nodes] -= taken
        return bool((table[nodes] >= 0).all()) and self._fits(first, table, self._shadow)


def opened(known: OpenNodes | None, view: View, placement: Placement) -> OpenNodes:
    """Return the object for a view's open nodes, and register new arrivals with the placement.

    The known object is returned if it belongs to this view; otherwise a new one is made.
    """
    found = known if known is not None and known.view is view else OpenNodes(view, placement)
    for job in view.arrivals:
        found.placer.saw(job)
    return found
