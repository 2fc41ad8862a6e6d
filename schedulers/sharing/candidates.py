"""The waiting jobs on shared nodes, as arrays that tell which of them may start."""

from math import inf
from typing import Final

import numpy as np

from pipistrelle.platforms.resources.shared_nodes import Amounts
from pipistrelle.schedulers.policy.ends_and_shadow import in_time
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.shared_view import Bools
from pipistrelle.schedulers.policy.view import View

_ROOM: Final = 64
#: with more released nodes than this, the most that is free on any of them is compared
_FEW: Final = 8


class NodeCandidates:
    """The waiting jobs, and which of them are known not to fit until more is free.

    A job that did not fit can only fit once something was freed on a node that has room for a part of it. So after the
    end of jobs, it is enough to compare what their nodes have free with what each job takes of one node. Nodes that
    change otherwise, such as failed ones, make all jobs candidates again.
    """

    def __init__(self, view: View) -> None:
        assert view.shared is not None
        self._view = view
        self._shared = view.shared
        width = len(self._shared.nodes.resources)
        self._jobs: list[SchedulerJob | None] = []
        self._row: dict[int, int] = {}
        self._unused: list[int] = []
        #: one row per job, the columns are the rows: the least that it takes of one node, of all nodes, and how long
        self._least: Amounts = np.zeros((width + 1, 0), dtype=np.int64)
        self._total: Amounts = np.zeros((width + 1, 0), dtype=np.int64)
        self._occupies = np.zeros(0)
        #: whether it needs idle nodes, whether it needs licences, whether it waits, and whether it is known not to fit
        self._alone: Bools = np.zeros(0, dtype=np.bool_)
        self._licensed: Bools = np.zeros(0, dtype=np.bool_)
        self._waits: Bools = np.zeros(0, dtype=np.bool_)
        self._unfit: Bools = np.zeros(0, dtype=np.bool_)
        self._whole = False
        self._changes = -1

    def follow(self) -> None:
        """Add the arrived jobs, drop the cancelled ones, and take account of what was freed since the last decision."""
        view = self._view
        for job in view.cancelled:
            self.drop(job)
        for job in view.arrivals:
            self._add(job)
        if len(self._row) != len(view.waiting):  # after a restore, or if the policy rejected jobs
            waiting = {job.number: job for job in view.waiting.each()}
            for job in [job for job in self._jobs if job is not None and job.number not in waiting]:
                self.drop(job)
            for job in waiting.values():
                self._add(job)
        whole = view.free.count == view.units and not view.has_timed_windows
        if not (whole and self._whole and view.windows.changes == self._changes):
            self._unfit[:] = False
        elif view.released:
            self._freed(np.unique([node for one in view.ended for node in one.job.alloc]).astype(np.int64))
        self._whole, self._changes = whole, view.windows.changes

    def _add(self, job: SchedulerJob) -> None:
        if job.number in self._row:
            return
        shape = self._shared.shape(job)
        if not self._unused:
            self._grow()
        row = self._row[job.number] = self._unused.pop()
        self._jobs[row] = job
        self._least[:-1, row], self._least[-1, row] = shape.least, shape.least_gpus
        self._total[:, row] = shape.total
        self._occupies[row] = job.occupies
        self._alone[row], self._licensed[row] = shape.request.exclusive, bool(shape.request.licenses)
        self._waits[row], self._unfit[row] = True, False

    def _grow(self) -> None:
        old = len(self._jobs)
        more = max(old, _ROOM)
        for name in ("_least", "_total", "_occupies", "_alone", "_licensed", "_waits", "_unfit"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((*array.shape[:-1], more), array.dtype)], axis=-1))
        self._jobs += [None] * more
        self._unused = list(range(old + more - 1, old - 1, -1))

    def drop(self, job: SchedulerJob) -> None:
        """Remove a job that no longer waits."""
        row = self._row.pop(job.number, None)
        if row is not None:
            self._jobs[row] = None
            self._waits[row] = False
            self._unused.append(row)

    def is_unfit(self, job: SchedulerJob) -> bool:
        """Return whether a job is known not to fit now."""
        row = self._row.get(job.number)
        return row is not None and bool(self._unfit[row])

    def does_not_fit(self, job: SchedulerJob) -> None:
        """Record that a job does not fit now."""
        row = self._row.get(job.number)
        if row is not None and not self._licensed[row]:
            self._unfit[row] = True

    def _freed(self, nodes: Amounts) -> None:
        """Make jobs candidates again that may fit since something was freed on these nodes."""
        unfit = np.flatnonzero(self._unfit)
        if not len(unfit) or not len(nodes):
            return
        free = self._shared.free
        has = np.hstack([free.amounts[nodes], (free.gpus[nodes] > 0).sum(axis=1)[:, None]])
        if len(nodes) > _FEW:
            has = np.vstack([has.max(axis=0)])
        least, may = self._least[:, unfit], np.zeros(len(unfit), dtype=np.bool_)
        for amounts in has:
            may |= (least <= amounts[:, None]).all(axis=0)
        all_free = (free.amounts[nodes] == free.nodes.amounts[nodes]).all(axis=1)
        if not (all_free & (free.gpus[nodes] == free.nodes.gpus[nodes]).all(axis=1)).any():
            may &= ~self._alone[unfit]
        self._unfit[unfit[may]] = False

    def rows(self, shadow: float = inf, spare: Amounts | None = None) -> Amounts:
        """Return the rows of the jobs that may start now.

        Args:
            shadow: when (s) the reservation begins.
            spare: what is then free in all beside it, GPUs last, shape (resources + 1,); None: there is no reservation.
        """
        return self.still(np.flatnonzero(self._waits & ~self._unfit), shadow, spare)

    def still(self, rows: Amounts, shadow: float = inf, spare: Amounts | None = None) -> Amounts:
        """Return those of some `rows` whose jobs may start now."""
        if not len(rows):
            return rows
        free = self._shared.free
        in_all = np.append(free.amounts.sum(axis=0), free.gpus.sum())
        total = self._total[:, rows]
        may = (total <= in_all[:, None]).all(axis=0)
        may &= (self._least[:-1, rows] <= free.amounts.max(axis=0)[:, None]).all(axis=0)
        if spare is not None:
            in_time_for = in_time(self._view.now, self._occupies[rows], shadow)
            may &= in_time_for | (total <= spare[:, None]).all(axis=0)
        found: Amounts = rows[may]
        return found

    def in_order(self, rows: Amounts) -> list[SchedulerJob]:
        """Return the jobs of some rows in the order of the queue."""
        jobs = []
        for row in rows.tolist():
            job = self._jobs[row]
            if job is not None and job.waits:
                jobs.append(job)
            elif job is not None:  # it was started elsewhere, such as by preemption
                self.drop(job)
        jobs.sort(key=lambda job: job.number)
        return self._view.waiting.in_order(jobs) if jobs else jobs

    def rows_of(self, jobs: list[SchedulerJob]) -> Amounts:
        """Return the rows of some jobs."""
        return np.array([self._row[job.number] for job in jobs], dtype=np.int64)
