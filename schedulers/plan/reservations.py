"""Conservative backfilling's reservations where all units are alike: only whom a change can move is looked at again."""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from math import inf, nextafter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.state import plain
from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.gaps import Gap, GapTable, Runs
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import end_of

_ROOM: Final = 256
#: so many are looked at rather than told apart
_FEW: Final = 3
_EMPTY: Final = {"_begin": -inf, "_end": -inf, "_length": inf, "_size": 0, "_early": 0, "_low": 0, "_high": -1}


class Holds:
    """The units of the running jobs, as far as a plan knows of them: each job holds its units until its planned end."""

    def __init__(self, view: View) -> None:
        self._view = view
        #: units out of service
        self.gone = view.gone
        #: {id of a running job: until when (s) it is planned to hold its units, and these}
        self._until: dict[str, tuple[float, Runs]] = {}
        for job in view.running:
            # One that should have ended already may do so any moment, but its units are not free yet.
            end = max(end_of(job.start, job.occupies), nextafter(view.now, inf))
            self._until[job.id] = (end, (job.alloc - self.gone).intervals if self.gone else job.alloc.intervals)

    def free(self) -> list[Gap]:
        """Return when which units are free as long as nobody else starts."""
        gaps = [(-inf, inf, lo, hi) for lo, hi in self._view.free.snapshot().intervals]
        gaps += [(end, inf, lo, hi) for end, runs in self._until.values() if end < inf for lo, hi in runs]
        return gaps

    def last(self, view: View) -> bool:
        """Tell whether nothing has happened to them that no plan foresees: see `Plan.holds_for`."""
        return view is self._view and view.gone == self.gone and view.running.next_end > view.now

    def ended(self) -> list[tuple[float, Runs]]:
        """Return until when (s) the jobs that have ended since the last call would have held their units, and these."""
        running = self._view.running.by_id
        ended = [self._until.pop(job_id) for job_id in [job_id for job_id in self._until if job_id not in running]]
        return [one for one in ended if one[0] > self._view.now]

    def start(self, job: SchedulerJob, runs: Runs, end: float) -> None:
        """Start a job now on these free units, which it is planned to hold until then (s)."""
        view = self._view
        first = view.waiting.first
        alloc = NodeSet(runs)
        self._until[job.id] = (end, alloc.intervals)
        view.free.remove(alloc)
        view.start(job, alloc, None if first is None or first is job else f"backfilled before {first.id}")


class Reservations:
    """The places of all waiting jobs on the lowest units, without windows.

    A job has moved to the earliest place there is when it was looked at last. What others take since then leaves it
    where it is, and so does time. So it need be looked at again only if units have become free that it could use:

    - for as long as it lasts, from a time before its begin, and so many of them together with others that are free then
      that it would fit; or
    - just before its begin, on its own units; or
    - during its place, with a lower number than one of its own.

    Parameters
    ----------
    view
        the machine.
    places
        those that waiting jobs have already, by the job's number.
    jobs
        all that wait, as far as this plan knows; None: all.
    """

    def __init__(self, view: View, places: Mapping[int, Place], jobs: Iterable[SchedulerJob] | None = None) -> None:
        self._view = view
        self._holds = Holds(view)
        self._gaps = GapTable(self._holds.free())
        self._rows: dict[int, int] = {}
        self._free_rows: list[int] = []
        self._jobs: list[SchedulerJob | None] = []
        self._runs: list[Runs] = []
        self._begin = np.full(_ROOM, -inf)
        self._end = np.full(_ROOM, -inf)
        self._length = np.full(_ROOM, inf)
        self._size = np.zeros(_ROOM, dtype=np.int64)
        #: how many of a job's units are free just before its begin, at most
        self._early = np.zeros(_ROOM, dtype=np.int64)
        self._low = np.zeros(_ROOM, dtype=np.int64)
        self._high = np.full(_ROOM, -1, dtype=np.int64)
        #: whom a change may move
        self._marked: set[int] = set()
        #: how often a job was looked at
        self.looks = 0
        for job in view.waiting.each() if jobs is None else jobs:
            place = places.get(job.number)
            row = self._join(job)
            if place is not None:
                self._runs[row] = list(units_of(place.units).intervals)
                self._gaps.claim(place.begin, place.end, self._runs[row])
                self._hold(row, place.begin, place.end, job.size)
            self._marked.add(row)

    def places(self) -> dict[int, Place]:
        """Return the places of the waiting jobs, by number."""
        return {
            number: Place(float(self._begin[row]), float(self._end[row]), mask_of(NodeSet(self._runs[row])))
            for number, row in sorted(self._rows.items())
            if self._begin[row] < inf
        }

    def begin(self, number: int) -> float:
        """Return when (s) a waiting job's place begins, inf if it has none."""
        row = self._rows.get(number)
        return inf if row is None else float(self._begin[row])

    @property
    def needed(self) -> bool:
        """Whether anybody waits."""
        return bool(self._rows)

    def state(self) -> dict[str, Any]:
        """Return the places, and the units out of service; after `restore` everybody is looked at."""
        return {"places": plain(self.places()), "gone": str(self._holds.gone)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state whose places were given."""
        self._holds.gone = NodeSet.parse(state["gone"])

    def holds_for(self, view: View) -> bool:
        """Tell whether the plan, made earlier, can be followed up: see `Plan.holds_for`; and no begin was missed."""
        return self._holds.last(view) and not ((self._begin < view.now) & (self._begin > -inf)).any()

    def schedule(self, *, anew: bool) -> None:
        """Place those who have just come, in the order of the queue; if units were freed also whom that can move."""
        view, now = self._view, self._view.now
        self._gaps.tidy(now)
        fresh = [job for job in view.waiting.in_order(view.arrivals) if job.waits and job.number not in self._rows]
        if len(self._rows) + len(fresh) > len(view.waiting):
            self._forget({job.number for job in view.waiting.each()})
        if not anew:
            for job in fresh:
                self._place(self._join(job))
            return
        for end, runs in self._holds.ended():
            self._gaps.give_back(now, end, runs, now)
        self._mark(self._gaps.fresh(now, inf))
        self._marked.update(self._join(job) for job in fresh)
        self._marked.update(np.flatnonzero(self._begin == now).tolist())
        ahead = self._by_rank(self._marked)
        heapify(ahead)
        while ahead:
            rank, row = heappop(ahead)
            if row in self._marked:
                for other in self._by_rank(self._place(row)):
                    if other > (rank, row):
                        heappush(ahead, other)

    def _by_rank(self, rows: Iterable[int]) -> list[tuple[tuple[float, int], int]]:
        found = list(rows)
        jobs = [job for row in found if (job := self._jobs[row]) is not None]
        return list(zip(self._view.waiting.ranks_of(jobs), found, strict=True)) if found else []

    def _place(self, row: int) -> set[int]:
        """Give a job the earliest place, or start it; return whom that may let move."""
        self.looks += 1
        gaps, now = self._gaps, self._view.now
        size, length = int(self._size[row]), float(self._length[row])
        begin, end, runs = float(self._begin[row]), float(self._end[row]), self._runs[row]
        self._marked.discard(row)
        # With the units that are free just before its begin, too, a job needs so many others to move forward.
        others = size - int(self._early[row])
        first = min(gaps.earliest(others, length, now, begin), begin) if others > 0 else -inf
        if runs:
            if first == begin and gaps.lowest(begin, end) > self._high[row]:
                if begin == now:
                    self._start(row, end)
                return set()
            gaps.give_back(begin, end, runs, now)
            if others < size and first < begin:
                first = min(gaps.earliest(size, length, now, begin), begin)
        if first == inf:
            return set()
        last = end_of(first, length)
        self._runs[row], early = gaps.take(first, last, size, now)
        fresh = gaps.fresh(begin, end)
        if (first, self._runs[row]) == (begin, runs):
            fresh = []
        if first > now:
            self._hold(row, first, last, early)
        else:
            self._start(row, last)
        return self._mark(fresh)

    def _start(self, row: int, end: float) -> None:
        job = self._jobs[row]
        assert job is not None
        self._holds.start(job, self._runs[row], end)
        self._leave(row)

    def _forget(self, waiting: set[int]) -> None:
        """Give back the places of jobs that have left the queue without a start."""
        for row in [row for number, row in self._rows.items() if number not in waiting]:
            if self._begin[row] < inf:
                self._gaps.give_back(float(self._begin[row]), float(self._end[row]), self._runs[row], self._view.now)
            self._marked.discard(row)
            self._leave(row)
        self._mark(self._gaps.fresh(self._view.now, inf))

    def _leave(self, row: int) -> None:
        job = self._jobs[row]
        assert job is not None
        del self._rows[job.number]
        self._free_rows.append(row)
        self._jobs[row], self._runs[row] = None, ()
        for name, value in _EMPTY.items():
            getattr(self, name)[row] = value

    def _join(self, job: SchedulerJob) -> int:
        """Return a new row for a job that has no place yet."""
        if self._free_rows:
            row = self._free_rows.pop()
        else:
            row = len(self._jobs)
            self._jobs.append(None)
            self._runs.append(())
            if row == len(self._begin):
                for name, value in _EMPTY.items():
                    column = getattr(self, name)
                    setattr(self, name, np.concatenate([column, np.full(row, value, dtype=column.dtype)]))
        self._jobs[row], self._rows[job.number] = job, row
        self._size[row], self._length[row] = job.size, job.occupies
        self._begin[row] = self._end[row] = inf
        return row

    def _hold(self, row: int, begin: float, end: float, early: int) -> None:
        runs = self._runs[row]
        self._begin[row], self._end[row], self._early[row] = begin, end, early
        self._low[row], self._high[row] = runs[0][0], runs[-1][1]

    def _mark(self, fresh: list[Gap]) -> set[int]:
        """Mark whom units that have become free may let move; return them."""
        if not fresh or not self._rows:
            return set()
        now, count = self._view.now, len(self._jobs)
        begin, end, length = self._begin[:count], self._end[:count], self._length[:count]
        low, high = self._low[:count], self._high[:count]
        #: {(from, until): (lowest and highest unit, how many)}
        joined: dict[tuple[float, float], tuple[int, int, int]] = {}
        for since, until, lo, hi in fresh:
            least, most, units = joined.get((max(since, now), until), (lo, hi, 0))
            joined[max(since, now), until] = (min(lo, least), max(hi, most), units + hi - lo + 1)
        sure: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)
        maybe: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)
        for (since, until), (lo, hi, units) in joined.items():
            maybe |= (begin > since) & (since + length <= until)
            sure |= (begin >= since) & (end <= until) & (high > lo)
            before = ((begin == until) & (low <= hi) & (high >= lo)).nonzero()[0]
            if len(before):
                self._early[before] = np.minimum(self._early[before] + units, self._size[before])
                maybe[before] = True
        marked = set(sure.nonzero()[0].tolist())
        rows: NDArray[np.intp] = (maybe & ~sure).nonzero()[0]
        if self._marked and len(rows):
            rows = rows[[row not in self._marked for row in rows.tolist()]]
        since, until = min(since for since, _ in joined), max(until for _, until in joined)
        if len(rows) <= _FEW:
            marked.update(rows.tolist())
            rows = rows[:0]
        while len(rows):  # the shortest show which of the others need not be looked at
            shortest = self._length[rows].min()
            times, counts = self._gaps.openings(shortest, since, min(until, float(self._begin[rows].max())))
            needed = self._size[rows] - self._early[rows]
            at = np.maximum.accumulate(counts).searchsorted(needed)
            rows = rows[(np.append(times, inf)[at] < self._begin[rows]) | (needed <= 0)]
            longer = self._length[rows] > shortest
            marked.update(rows[~longer].tolist())
            rows = rows[longer]
        marked -= self._marked
        self._marked |= marked
        return marked
