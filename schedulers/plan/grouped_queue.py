"""The waiting jobs as arrays, grouped by the units that they may use."""

import numpy as np

from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.around_windows import OpenUnits, reserve_beside_pools
from pipistrelle.schedulers.policy.ends_and_shadow import in_time, is_late, spares
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.waiting.rows import WaitingRows


class GroupedQueue(WaitingRows):
    """The waiting jobs, grouped by the units that are closed to them, for backfilling.

    The number of open units of each group determines which jobs may pass the first. The result is that of
    `OpenUnits.pass_over`. The placement must accept any set of enough units, all windows must be permanent, and no job
    may hold units that are out of service.
    """

    columns = ("_sizes", "_occupies", "_groups")

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._sizes = np.zeros(0, dtype=np.int64)
        self._occupies = np.zeros(0)
        self._groups = np.zeros(0, dtype=np.intp)
        #: {closed units: number of the group}, and the closed units of each group as a mask
        self._group_of: dict[NodeSet, int] = {}
        self._closed: list[int] = []
        #: the first job at the last `pass_over`, its reservation, and how many jobs ran afterwards
        self._last: tuple[SchedulerJob, float, int, int] | None = None

    def fill(self, row: int, job: SchedulerJob) -> None:
        """Write a job's values to its row of the arrays."""
        closed = self.view.closed_pools(job)
        group = self._group_of.setdefault(closed, len(self._closed))
        if group == len(self._closed):
            self._closed.append(mask_of(closed))
        self._sizes[row], self._occupies[row], self._groups[row] = job.size, job.occupies, group

    def pass_over(self, units: OpenUnits, first: SchedulerJob, *, shortest_first: bool = False) -> None:
        """Start the jobs that do not delay ``first``, the first job that does not fit.

        Call `follow` first.
        """
        view, last = self.view, self._last
        holds = last is not None and last[0] is first and last[3] == len(view.running)
        holds = holds and not view.released and view.running.next_end > view.now
        if holds and not view.arrivals:
            return  # time only removes candidates
        free = mask_of(view.free.snapshot())
        opened = [free & ~closed for closed in self._closed]
        counts = np.array([one.bit_count() for one in opened], dtype=np.int64)
        if holds:
            rows = self.rows_of(view.arrivals)
        else:
            self._last = None
            rows = np.flatnonzero(self.waits)
        rows = rows[self._sizes[rows] <= counts[self._groups[rows]]]
        if last is not None and holds:
            shadow, reserved = last[1], last[2]
        elif len(rows):
            shadow, reserved = reserve_beside_pools(view, first)
        else:
            return
        wanted, found = first.size, reserved.bit_count()
        beside = np.array([(one & ~reserved).bit_count() for one in opened], dtype=np.int64)
        may = in_time(view.now, self._occupies[rows], shadow)
        may |= self._sizes[rows] - beside[self._groups[rows]] <= found - wanted
        jobs = [job for job in self.in_order(rows[may]) if job is not first]
        if shortest_first:
            jobs.sort(key=lambda job: job.occupies)
        for job in jobs:
            open_to = free & ~self._closed[int(self._groups[self._row[job.number]])]
            if open_to.bit_count() < job.size:
                continue
            late = is_late(view.now, job.occupies, shadow)
            if not late:
                alloc = units.pick(job, units.to(job))
            elif spares(job.size, (open_to & ~reserved).bit_count(), reserved.bit_count(), wanted):
                alloc = units.by_count(job, units.to(job), first, units_of(reserved))
            else:
                continue
            if alloc is None:
                continue
            if late:
                reserved &= ~mask_of(alloc)
            units.start(job, alloc, f"backfilled before {first.id}")
            self.drop(job)
            free = mask_of(view.free.snapshot())
        self._last = first, shadow, reserved, len(view.running)
