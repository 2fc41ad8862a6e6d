"""The waiting jobs on shared nodes, as arrays that show which of them might start."""

from math import inf
from typing import Final

import numpy as np

from pipistrelle.platforms.resources.shared_nodes import Amounts
from pipistrelle.schedulers.policy.ends_and_shadow import in_time
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.shared_view import Bools
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.waiting.rows import WaitingRows

#: with more released nodes than this, the most that is free on any of them is compared
_FEW: Final = 8


class NodeCandidates(WaitingRows):
    """The waiting jobs, and which of them are known not to fit now.

    A job that did not fit can fit only after resources were freed on a node that has room for a part of the job. So
    when jobs have ended, it is enough to compare the free amounts on their nodes with what each waiting job needs of
    one node. Nodes that change for another reason, such as failures, make all jobs candidates again.
    """

    columns = ("_least", "_total", "_occupies", "_alone", "_licensed", "_unfit")

    def __init__(self, view: View) -> None:
        super().__init__(view)
        assert view.shared is not None
        self._shared = view.shared
        width = len(self._shared.nodes.resources)
        #: the least that a job takes of one node, of all nodes, and how long (s); GPUs are the last row
        self._least: Amounts = np.zeros((width + 1, 0), dtype=np.int64)
        self._total: Amounts = np.zeros((width + 1, 0), dtype=np.int64)
        self._occupies = np.zeros(0)
        #: whether a job needs idle nodes, whether it needs licences, and whether it is known not to fit
        self._alone: Bools = np.zeros(0, dtype=np.bool_)
        self._licensed: Bools = np.zeros(0, dtype=np.bool_)
        self._unfit: Bools = np.zeros(0, dtype=np.bool_)
        self._whole = False
        self._changes = -1

    def follow(self) -> None:
        """Update the candidates for the events since the last decision.

        Arrived jobs are added and cancelled jobs are dropped. Jobs that may now fit, because other jobs ended, become
        candidates again.
        """
        super().follow()
        view = self.view
        whole = view.free.count == view.units and not view.has_timed_windows
        if not (whole and self._whole and view.windows.changes == self._changes):
            self._unfit[:] = False
        elif view.released:
            self._freed(np.unique([node for one in view.ended for node in one.job.alloc]).astype(np.int64))
        self._whole, self._changes = whole, view.windows.changes

    def fill(self, row: int, job: SchedulerJob) -> None:
        """Write the amounts that a waiting job requires to row ``row`` of the arrays."""
        shape = self._shared.shape(job)
        self._least[:-1, row], self._least[-1, row] = shape.least, shape.least_gpus
        self._total[:, row] = shape.total
        self._occupies[row] = job.occupies
        self._alone[row], self._licensed[row] = shape.request.exclusive, bool(shape.request.licenses)
        self._unfit[row] = False

    def is_unfit(self, job: SchedulerJob) -> bool:
        """Return whether a job is known not to fit now."""
        row = self.row_of(job)
        return row is not None and bool(self._unfit[row])

    def does_not_fit(self, job: SchedulerJob) -> None:
        """Record that a job does not fit now."""
        row = self.row_of(job)
        if row is not None and not self._licensed[row]:
            self._unfit[row] = True

    def _freed(self, nodes: Amounts) -> None:
        """Make jobs candidates again if they might fit where resources were freed."""
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
        """Return the rows (in the arrays) of the waiting jobs that might start now.

        Args:
            shadow: when (s) the first job's reservation begins.
            spare: what the first job will leave free at that time on all nodes together, shape (resources + 1,), GPUs
                last. None: there is no reservation.
        """
        return self.still(np.flatnonzero(self.waits & ~self._unfit), shadow, spare)

    def still(self, rows: Amounts, shadow: float = inf, spare: Amounts | None = None) -> Amounts:
        """Return those of ``rows`` (waiting jobs) that might start now.

        ``shadow`` and ``spare`` are as in the method `rows`.
        """
        if not len(rows):
            return rows
        free = self._shared.free
        in_all = np.append(free.amounts.sum(axis=0), free.gpus.sum())
        total = self._total[:, rows]
        may = (total <= in_all[:, None]).all(axis=0)
        may &= (self._least[:-1, rows] <= free.amounts.max(axis=0)[:, None]).all(axis=0)
        if spare is not None:
            in_time_for = in_time(self.view.now, self._occupies[rows], shadow)
            may &= in_time_for | (total <= spare[:, None]).all(axis=0)
        found: Amounts = rows[may]
        return found
