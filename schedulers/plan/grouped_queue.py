"""The waiting jobs by the units that they may use, as arrays, when classes or requests for nodes restrict them."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.around_windows import OpenUnits, reserve_beside_pools
from pipistrelle.schedulers.policy.ends_and_shadow import in_time, is_late, spares
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View

_ROOM: Final = 64


class GroupedQueue:
    """Finds the jobs that may pass the first one among jobs that may use different units.

    Jobs with the same closed units are a group. The numbers of open units of each group tell which jobs can pass, as in
    `OpenUnits.pass_over`, which has the same result. The placement must fit by count, and all windows be permanent.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._jobs: list[SchedulerJob | None] = []
        self._row: dict[int, int] = {}
        self._unused: list[int] = []
        self._sizes = np.zeros(0, dtype=np.int64)
        self._occupies = np.zeros(0)
        self._groups = np.zeros(0, dtype=np.intp)
        self._waits: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        #: {closed units: number of the group}, and the closed units of each group as a mask
        self._group_of: dict[NodeSet, int] = {}
        self._closed: list[int] = []
        #: the first job at the last `pass_over`, its reservation, and how many jobs ran afterwards
        self._last: tuple[SchedulerJob, float, int, int] | None = None

    def serves(self, view: View) -> bool:
        """Return whether the arrays are those of a view that has only permanent windows and no units held while out."""
        return view is self._view and not (view.has_timed_windows or view.by_nodes or view.lost)

    def follow(self) -> None:
        """Add the jobs that have arrived, and drop those that were cancelled."""
        view = self._view
        self.drop(view.cancelled)
        for job in view.arrivals:
            if job.waits:
                self._add(job)
        if len(self._row) != len(view.waiting):  # jobs were started elsewhere or rejected, or after a restore
            waiting = {job.number: job for job in view.waiting.each()}
            for number in [number for number in self._row if number not in waiting]:
                self._drop(number)
            for job in waiting.values():
                self._add(job)

    def _add(self, job: SchedulerJob) -> None:
        if job.number in self._row:
            return
        if not self._unused:
            old = len(self._jobs)
            more = max(old, _ROOM)
            for name in ("_sizes", "_occupies", "_groups", "_waits"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros(more, array.dtype)]))
            self._jobs += [None] * more
            self._unused = list(range(old + more - 1, old - 1, -1))
        row = self._row[job.number] = self._unused.pop()
        closed = self._view.closed_pools(job)
        group = self._group_of.setdefault(closed, len(self._closed))
        if group == len(self._closed):
            self._closed.append(mask_of(closed))
        self._jobs[row], self._sizes[row], self._occupies[row] = job, job.size, job.occupies
        self._groups[row], self._waits[row] = group, True

    def drop(self, jobs: list[SchedulerJob]) -> None:
        """Drop jobs that no longer wait."""
        for job in jobs:
            self._drop(job.number)

    def _drop(self, number: int) -> None:
        row = self._row.pop(number, None)
        if row is not None:
            self._jobs[row] = None
            self._waits[row] = False
            self._unused.append(row)

    def pass_over(self, units: OpenUnits, first: SchedulerJob, *, shortest_first: bool = False) -> None:
        """Start the jobs that do not delay ``first``, the first job that does not fit; `follow` was called before."""
        view, last = self._view, self._last
        holds = last is not None and last[0] is first and last[3] == len(view.running)
        holds = holds and not view.released and view.running.next_end > view.now
        if holds and not view.arrivals:
            return  # time only removes candidates
        free = mask_of(view.free.snapshot())
        opened = [free & ~closed for closed in self._closed]
        counts = np.array([one.bit_count() for one in opened], dtype=np.int64)
        if holds:
            rows = np.array([self._row[job.number] for job in view.arrivals], dtype=np.intp)
        else:
            self._last = None
            rows = np.flatnonzero(self._waits)
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
        jobs = [job for row in rows[may].tolist() if (job := self._jobs[row]) and job.waits and job is not first]
        jobs.sort(key=lambda job: job.number)
        jobs = view.waiting.in_order(jobs) if jobs else jobs
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
            self._drop(job.number)
            free = mask_of(view.free.snapshot())
        self._last = first, shadow, reserved, len(view.running)
