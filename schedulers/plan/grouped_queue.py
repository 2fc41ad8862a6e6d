"""The waiting jobs as arrays, grouped by the units that they may use."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.units.masks import lowest, mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.around_windows import OpenUnits, reserve_beside_pools
from pipistrelle.schedulers.plan.plan import Plan
from pipistrelle.schedulers.policy.ends_and_shadow import in_time, is_late, spares
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.waiting import Staircase
from pipistrelle.schedulers.waiting.rows import WaitingRows

Ints = NDArray[np.int64]
#: up to this number of jobs, testing one by one is faster than with arrays
_FEW: Final = 3


class GroupedQueue(WaitingRows):
    """The waiting jobs for backfilling, grouped by the units that are closed to them.

    For each group, the number of units that it may use tells which of its jobs can be backfilled. It starts the same
    jobs as `OpenUnits.pass_over`. The placement must accept any set of enough units, all windows must be permanent, and
    no job may hold units that are out of service.
    """

    columns = ("_sizes", "_occupies", "_groups", "_numbers")

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._sizes = np.zeros(0, dtype=np.int64)
        self._occupies = np.zeros(0)
        self._groups = np.zeros(0, dtype=np.intp)
        self._numbers = np.zeros(0, dtype=np.int64)
        #: {closed units: number of the group}, and the closed units of each group as a mask
        self._group_of: dict[NodeSet, int] = {}
        self._closed: list[int] = []
        #: the first job at the last `pass_over`, its reservation, and how many jobs ran afterwards
        self._last: tuple[SchedulerJob, float, int, int] | None = None
        #: the free units at this decision, as a mask
        self._free = 0

    def fill(self, row: int, job: SchedulerJob) -> None:
        """Write a waiting job's values to row ``row`` of the arrays."""
        closed = self.view.closed_pools(job)
        group = self._group_of.setdefault(closed, len(self._closed))
        if group == len(self._closed):
            self._closed.append(mask_of(closed))
        self._sizes[row], self._occupies[row], self._groups[row] = job.size, job.occupies, group
        self._numbers[row] = job.number

    def holds(self, first: SchedulerJob) -> bool:
        """Return whether the last reservation is that of ``first`` and still valid.

        If so, ``first`` cannot start now.
        """
        view, last = self.view, self._last
        if last is None or last[0] is not first or last[3] != len(view.running) or view.released:
            return False
        return view.running.next_end > view.now

    def start_in_order(self, units: OpenUnits) -> SchedulerJob | None:
        """Start jobs in queue order while they fit.

        Return the first job that does not fit; None if all started.
        """
        view = self.view
        waiting = view.waiting
        if (first := waiting.first) is None or self.holds(first):
            return first
        self._free = mask_of(view.free.snapshot())
        while (first := waiting.first) is not None:
            open_to = self._free & ~self._closed[self._group(first)]
            alloc = self._pick(units, first, open_to) if open_to.bit_count() >= first.size else None
            if alloc is None:
                break
            self._start(units, first, alloc)
        return first

    def pass_over(self, units: OpenUnits, first: SchedulerJob, *, shortest_first: bool = False) -> None:
        """Start the jobs that do not delay ``first``, the first job that does not fit.

        Call `follow` and `start_in_order` before.
        """
        view, last = self.view, self._last
        holds = self.holds(first)
        if holds and not view.arrivals:
            return  # time only removes candidates
        fitting = False
        if last is not None and holds:
            self._free = mask_of(view.free.snapshot())
            shadow, reserved = last[1], last[2]
            rows = self.rows_of(view.arrivals)
        else:
            self._last = None
            fits = self._sizes <= self._open(self._free).take(self._groups)
            rows = (self.waits & fits).nonzero()[0]
            if not len(rows):
                return
            fitting = True
            shadow, reserved = reserve_beside_pools(view, first, self._free, self._closed[self._group(first)])
        rows = self._passing(rows, shadow, reserved, first.size, fitting=fitting)
        if len(rows) > 1:
            rows = self._in_queue_order(rows)
        if shortest_first:
            rows = rows[np.argsort(self._occupies[rows], kind="stable")]
        while len(rows):
            job = self._jobs[int(rows[0])]
            rows = rows[1:]
            if job is None or job is first:
                continue
            open_to = self._free & ~self._closed[self._group(job)]
            late = is_late(view.now, job.occupies, shadow)
            alloc = self._pick_late(units, job, open_to, first, reserved) if late else self._pick(units, job, open_to)
            if alloc is None:
                continue
            taken = self._start(units, job, alloc, f"backfilled before {first.id}")
            if late:
                reserved &= ~taken
            if len(rows):
                rows = self._passing(rows, shadow, reserved, first.size)
        self._last = first, shadow, reserved, len(view.running)

    def start_fitting(self, plan: Plan) -> None:
        """Start, in queue order, all jobs that fit now for their full walltime.

        Units that the plan reserves for other jobs are not used. Any placement and any windows are supported, because
        `Plan.start_if_fits` decides; this method only skips jobs for which too few units are free until their end. Call
        `follow` before, and `drop` for each job started since then.
        """
        rows = self._long_enough(plan, self.waits.nonzero()[0])
        rows = self._in_queue_order(rows) if len(rows) > 1 else rows
        while len(rows):
            job = self._jobs[int(rows[0])]
            rows = rows[1:]
            if job is None:
                continue
            plan.start_if_fits(job)
            if not job.waits:
                self.drop(job)
                rows = self._long_enough(plan, rows)

    def _long_enough(self, plan: Plan, rows: Ints) -> Ints:
        """Return those of ``rows`` (waiting jobs) that have enough units until their end.

        These units must be free from now until then, and the job must be allowed to use them.
        """
        rows = rows[self._sizes[rows] <= self.view.free.count]
        if not len(rows):
            return rows
        ends, groups, enough = self._occupies[rows] + self.view.now, self._groups[rows], np.zeros(len(rows), np.bool_)
        for group, closed in enumerate(self._closed):
            mine = (groups == group).nonzero()[0]
            if len(mine):
                free = plan.slices.free_now
                free ^= free & closed
                steps = plan.slices.steps(self.view.now, (free, free.bit_count()))
                stairs = Staircase.until([step.end for step in steps], [step.width for step in steps])
                enough[mine] = stairs.fits(self._sizes[rows[mine]], ends[mine])
        return rows[enough]

    def _open(self, among: int) -> Ints:
        """Return how many of the units in ``among`` the jobs of each group may use.

        A group is the waiting jobs to which the same units are closed. ``among`` is a bit mask; the result has shape
        (groups,).
        """
        return np.array([(among & ~closed).bit_count() for closed in self._closed], dtype=np.int64)

    def _fitting(self, rows: Ints) -> Ints:
        """Return those of ``rows`` (waiting jobs) that fit on the free units open to them."""
        return rows[self._sizes[rows] <= self._open(self._free)[self._groups[rows]]]

    def _passing(self, rows: Ints, shadow: float, reserved: int, wanted: int, *, fitting: bool = False) -> Ints:
        """Return those of ``rows`` (waiting jobs) that can be backfilled.

        Such a job fits now. It also ends by ``shadow`` (s), or leaves free ``wanted`` of the ``reserved`` units (a bit
        mask). So it does not delay the first job. ``fitting`` says that all jobs are known to fit.
        """
        if len(rows) <= _FEW:
            return rows[[self._passes(int(row), shadow, reserved, wanted) for row in rows]] if len(rows) else rows
        if not fitting:
            rows = self._fitting(rows)
            if not len(rows):
                return rows
        may = in_time(self.view.now, self._occupies[rows], shadow)
        beside = self._open(self._free & ~reserved)[self._groups[rows]]
        may |= self._sizes[rows] - beside <= reserved.bit_count() - wanted
        return rows[may]

    def _passes(self, row: int, shadow: float, reserved: int, wanted: int) -> bool:
        """Return whether the waiting job in row ``row`` can be backfilled; see `_passing`."""
        open_to, size = self._free & ~self._closed[self._groups[row]], int(self._sizes[row])
        if size > open_to.bit_count():
            return False
        if not is_late(self.view.now, float(self._occupies[row]), shadow):
            return True
        return spares(size, (open_to & ~reserved).bit_count(), reserved.bit_count(), wanted)

    def _in_queue_order(self, rows: Ints) -> Ints:
        if self.view.waiting.arrivals_last:
            return rows[np.argsort(self._numbers[rows])]
        return np.array([self._row[job.number] for job in self.in_order(rows)], dtype=np.int64)

    def _group(self, job: SchedulerJob) -> int:
        return int(self._groups[self._row[job.number]])

    def _pick(self, units: OpenUnits, job: SchedulerJob, open_to: int) -> NodeSet | None:
        if units.takes_lowest:
            return units_of(lowest(open_to, job.size))
        return units.pick(job, units.to(job))

    def _pick_late(
        self, units: OpenUnits, job: SchedulerJob, open_to: int, first: SchedulerJob, reserved: int
    ) -> NodeSet | None:
        """Return units for a backfilled job that runs past ``first``'s reserved start.

        The result is that of `OpenUnits.by_count`; ``open_to`` and ``reserved`` are bit masks of units.
        """
        if not units.takes_lowest:
            return units.by_count(job, units.to(job), first, units_of(reserved))
        alloc = lowest(open_to, job.size)
        if (alloc & reserved).bit_count() > reserved.bit_count() - first.size:
            beside = open_to & ~reserved
            missing = job.size - beside.bit_count()
            alloc = lowest(beside, job.size) if missing <= 0 else beside | lowest(open_to & reserved, missing)
        return units_of(alloc)

    def _start(self, units: OpenUnits, job: SchedulerJob, alloc: NodeSet, why: str | None = None) -> int:
        """Start a job on ``alloc``, and return these units as a bit mask."""
        units.start(job, alloc, why)
        self.drop(job)
        mask = mask_of(alloc)
        self._free &= ~mask
        self.view.running.keep_mask(job, mask)
        return mask
