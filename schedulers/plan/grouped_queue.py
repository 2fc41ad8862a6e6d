"""The waiting jobs as arrays, grouped by the units that they may use."""

import numpy as np

from pipistrelle.protocol.units.masks import lowest, mask_of, units_of
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
    may
    hold units that are out of service.
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
        #: the free units at this decision, as a mask
        self._free = 0

    def fill(self, row: int, job: SchedulerJob) -> None:
        """Write a job's values to its row of the arrays."""
        closed = self.view.closed_pools(job)
        group = self._group_of.setdefault(closed, len(self._closed))
        if group == len(self._closed):
            self._closed.append(mask_of(closed))
        self._sizes[row], self._occupies[row], self._groups[row] = job.size, job.occupies, group

    def holds(self, first: SchedulerJob) -> bool:
        """Return whether the last reservation is that of ``first`` and still valid, so that ``first`` cannot start."""
        view, last = self.view, self._last
        if last is None or last[0] is not first or last[3] != len(view.running) or view.released:
            return False
        return view.running.next_end > view.now

    def start_in_order(self, units: OpenUnits) -> SchedulerJob | None:
        """Start jobs from the front while they fit; return the first that does not."""
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
        if last is not None and holds:
            self._free = mask_of(view.free.snapshot())
            shadow, reserved = last[1], last[2]
            jobs = [job for job in view.arrivals if job.number in self._row]
            jobs = view.waiting.in_order(jobs) if len(jobs) > 1 else jobs
        else:
            self._last = None
            opened = [self._free & ~closed for closed in self._closed]
            counts = np.array([one.bit_count() for one in opened], dtype=np.int64)
            rows = np.flatnonzero(self.waits & (self._sizes <= counts[self._groups]))
            if not len(rows):
                return
            shadow, reserved = reserve_beside_pools(view, first, self._free, self._closed[self._group(first)])
            beside = np.array([(one & ~reserved).bit_count() for one in opened], dtype=np.int64)
            may = in_time(view.now, self._occupies[rows], shadow)
            may |= self._sizes[rows] - beside[self._groups[rows]] <= reserved.bit_count() - first.size
            jobs = self.in_order(rows[may])
        if shortest_first:
            jobs.sort(key=lambda job: job.occupies)
        #: {group: number of open units, and of those that are not reserved}
        open_counts: dict[int, tuple[int, int]] = {}
        for job in jobs:
            if job is first:
                continue
            group = self._group(job)
            known = open_counts.get(group)
            if known is None:
                open_to = self._free & ~self._closed[group]
                known = open_counts[group] = open_to.bit_count(), (open_to & ~reserved).bit_count()
            if known[0] < job.size:
                continue
            late, open_to = is_late(view.now, job.occupies, shadow), self._free & ~self._closed[group]
            if not late:
                alloc = self._pick(units, job, open_to)
            elif spares(job.size, known[1], reserved.bit_count(), first.size):
                alloc = self._pick_late(units, job, open_to, first, reserved)
            else:
                continue
            if alloc is None:
                continue
            if late:
                reserved &= ~mask_of(alloc)
            self._start(units, job, alloc, f"backfilled before {first.id}")
            open_counts.clear()
        self._last = first, shadow, reserved, len(view.running)

    def _group(self, job: SchedulerJob) -> int:
        return int(self._groups[self._row[job.number]])

    def _pick(self, units: OpenUnits, job: SchedulerJob, open_to: int) -> NodeSet | None:
        if units.takes_lowest:
            return units_of(lowest(open_to, job.size))
        return units.pick(job, units.to(job))

    def _pick_late(
        self, units: OpenUnits, job: SchedulerJob, open_to: int, first: SchedulerJob, reserved: int
    ) -> NodeSet | None:
        """Return the units that `OpenUnits.by_count` returns."""
        if not units.takes_lowest:
            return units.by_count(job, units.to(job), first, units_of(reserved))
        alloc = lowest(open_to, job.size)
        if (alloc & reserved).bit_count() > reserved.bit_count() - first.size:
            beside = open_to & ~reserved
            missing = job.size - beside.bit_count()
            alloc = lowest(beside, job.size) if missing <= 0 else beside | lowest(open_to & reserved, missing)
        return units_of(alloc)

    def _start(self, units: OpenUnits, job: SchedulerJob, alloc: NodeSet, why: str | None = None) -> None:
        units.start(job, alloc, why)
        self.drop(job)
        self._free &= ~mask_of(alloc)
