"""EASY backfilling, and two rules without reservations, on nodes that jobs share.

The two rules are ``none`` and ``firstfit``.
"""

from math import inf
from typing import Any

from pipistrelle.platforms.resources.shared_nodes import Amounts
from pipistrelle.schedulers.policy.ends_and_shadow import is_late
from pipistrelle.schedulers.policy.interfaces import Placement, Stateless
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.open_nodes import OpenNodes, opened
from pipistrelle.schedulers.sharing.reserved import FirstReserved


class NoBackfillOnNodes(Stateless):
    """No backfilling on nodes that jobs share: jobs start strictly in queue order."""

    def __init__(self) -> None:
        self._open: OpenNodes | None = None

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs from the front of the queue until one does not fit."""
        self._open = opened(self._open, view, placement)
        self._open.candidates.follow()
        self._open.start_in_order()


class FirstFitOnNodes(Stateless):
    """First fit on nodes that jobs share: every job that fits starts, in queue order."""

    def __init__(self) -> None:
        self._open: OpenNodes | None = None

    def schedule(self, view: View, placement: Placement) -> None:
        """Start all jobs that fit."""
        known = self._open
        nodes = self._open = opened(known, view, placement)
        nodes.candidates.follow()
        every = view.released or known is not self._open or bool(view.windows)
        if not nodes.placer.is_steady:
            for job in nodes.could_fit(list(view.waiting) if every else view.waiting.in_order(view.arrivals)):
                takes = nodes.pick(job)
                if takes is not None:
                    nodes.start(job, takes)
            return
        rows = nodes.candidates.rows() if every else nodes.candidates.rows_of(view.arrivals)
        for job in nodes.candidates.in_order(nodes.candidates.still(rows)):
            takes = nodes.pick(job)
            if takes is not None:
                nodes.start(job, takes)


class EasyOnNodes:
    """EASY backfilling on nodes that jobs share.

    Only the queue's first job has a reservation. The shadow time is the earliest time at which the first job fits if
    every running job takes its full walltime. All resources count. Another job may pass in two cases: it ends by the
    shadow time, or both jobs fit at that time. The reservation is constant until resources are freed, so until then
    only arrivals are tested.

    Args:
        shortest_first: whether candidates are tried by shortest walltime (EASY-SJBF).
    """

    def __init__(self, *, shortest_first: bool = False) -> None:
        self._shortest_first = shortest_first
        self._open: OpenNodes | None = None
        self._reserved_for: SchedulerJob | None = None
        self._shadow = inf
        #: the reservation; None: it must be computed
        self._reserved: FirstReserved | None = None

    def reservation(self, job: SchedulerJob) -> float | None:
        """Return the latest expected start (s) of the queue's first job.

        Return None for every other job.
        """
        return self._shadow if job is self._reserved_for else None

    def earliest(self, view: View, job: SchedulerJob, placement: Placement) -> float:
        """Return the shadow time (s) of any waiting job.

        It is computed as if the job were the first in the queue.
        """
        return FirstReserved(OpenNodes(view, placement), job).shadow

    def state(self) -> dict[str, Any]:
        """Return the id of the queue's first job, and its shadow time (s).

        The rest of its reservation is computed again after `restore`.
        """
        return {"first": None if self._reserved_for is None else self._reserved_for.id, "shadow": self._shadow}

    def restore(self, state: dict[str, Any], view: View, placement: Placement) -> None:
        """Restore a saved state; `view` must already be restored to that state's time."""
        self._open = OpenNodes(view, placement)
        self._shadow = state["shadow"]
        known = (*view.waiting.each(), *view.cancelled)
        self._reserved_for = next((job for job in known if job.id == state["first"]), None)
        self._reserved = None

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs from the front, then backfill behind the first job that does not fit."""
        nodes = self._open = opened(self._open, view, placement)
        nodes.candidates.follow()
        before = len(view.decisions)
        first = nodes.start_in_order()
        if first is None:
            self._reserved_for = None
            return
        anew = view.released or first is not self._reserved_for or len(view.decisions) > before
        # Windows, and jobs that run past their expected end, make the reservation change with time.
        changes = bool(view.windows) and (view.has_timed_windows or view.running.next_end <= view.now)
        reserved = self._reserved
        if anew or changes or reserved is None:
            self._reserved_for = first
            reserved = self._reserved = FirstReserved(nodes, first)
            self._shadow = reserved.shadow
        every = anew or changes
        if nodes.placer.is_steady:
            rows = nodes.candidates.rows() if every else nodes.candidates.rows_of(view.arrivals)
            self._pass_over(nodes, first, reserved, nodes.candidates.still(rows, reserved.shadow, reserved.spare))
            return
        jobs = list(view.waiting) if every else view.waiting.in_order(view.arrivals)
        jobs = nodes.could_fit([job for job in jobs if job is not first])
        if self._shortest_first:
            jobs.sort(key=lambda job: job.occupies)
        for job in jobs:
            self._try(nodes, first, reserved, job)

    def _pass_over(self, nodes: OpenNodes, first: SchedulerJob, reserved: FirstReserved, rows: Amounts) -> None:
        """Start the waiting jobs in ``rows`` that do not delay the first job."""
        known = nodes.candidates
        jobs = [job for job in known.in_order(rows) if job is not first]
        if self._shortest_first:
            jobs.sort(key=lambda job: job.occupies)
        at = 0
        while at < len(jobs):
            started = self._try(nodes, first, reserved, jobs[at])
            at += 1
            if started and at < len(jobs):  # less is free now
                jobs, at = jobs[at:], 0
                rows = known.rows_of(jobs)
                may = set(known.still(rows, reserved.shadow, reserved.spare).tolist())
                jobs = [job for job, row in zip(jobs, rows.tolist(), strict=True) if row in may]

    def _try(self, nodes: OpenNodes, first: SchedulerJob, reserved: FirstReserved, job: SchedulerJob) -> bool:
        """Start a job, and return True, if it fits and does not delay the first job.

        Otherwise return False.
        """
        takes = nodes.pick(job)
        if takes is None:
            return False
        if is_late(nodes.view.now, job.occupies, reserved.shadow):
            takes = reserved.beside(job, takes)
            if takes is None:
                return False
            reserved.passes(job, takes)
        nodes.start(job, takes, f"backfilled before {first.id}")
        return True
