"""Conservative backfilling on the lowest units.

After a change, only the jobs that can move are planned again.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from math import inf
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.state import plain
from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan import book as layout
from pipistrelle.schedulers.plan import gaps as loops
from pipistrelle.schedulers.plan.book import BEGIN, COUNT, END, FRESH, HIGH, LOW, MARKED, RUNS, SIZE, Book, Ints, Runs
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.ends_and_shadow import end_of, held_until
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.waiting import Rank
from pipistrelle.schedulers.waiting.moving import MovingQueue

_ROOM: Final = 256


class Holds:
    """The units that running jobs hold, and when each job is planned to free them.

    ``gone`` are the units out of service.
    """

    def __init__(self, view: View, gone: NodeSet) -> None:
        self._view = view
        self.gone = gone
        #: {id of a running job: planned end (s), units}
        self._until: dict[str, tuple[float, Runs]] = {}
        for job in view.running:
            end = held_until(end_of(job.start, job.occupies), view.now)
            self._until[job.id] = (end, (job.alloc - self.gone).intervals if self.gone else job.alloc.intervals)

    def free(self) -> list[tuple[float, int, int]]:
        """Return when the units become free as running jobs end.

        Each entry is (time in s, lowest unit, highest unit) of a run of units; units free now are included. Each run
        then stays free, because waiting jobs are ignored.
        """
        held = NodeSet(run for _, runs in self._until.values() for run in runs)
        free = self._view.machine.all_units - self.gone - held
        gaps = [(self._view.now, lo, hi) for lo, hi in free.intervals]
        gaps += [(end, lo, hi) for end, runs in self._until.values() if end < inf for lo, hi in runs]
        return gaps

    def last(self, view: View) -> bool:
        """Return whether the plan of an earlier notice is still valid; see `Plan.holds_for`."""
        return view is self._view and view.gone == self.gone and view.running.next_end > view.now

    def ended(self) -> list[tuple[float, Runs]]:
        """Return (planned end in s, units) of the jobs that ended since the last call.

        Jobs that ended when planned, or later, are left out.
        """
        running = self._view.running.by_id
        ended = [self._until.pop(job_id) for job_id in [job_id for job_id in self._until if job_id not in running]]
        return [one for one in ended if one[0] > self._view.now]

    def start(self, job: SchedulerJob, runs: Runs, end: float) -> None:
        """Start a job now on free units; ``end`` (s) is its planned end."""
        view = self._view
        first = view.waiting.first
        alloc = NodeSet(runs)
        self._until[job.id] = (end, alloc.intervals)
        view.free.remove(alloc)
        view.start(job, alloc, None if first is None or first is job else f"backfilled before {first.id}")


class Reservations:
    """The reservations of all waiting jobs, each on the free units with the lowest numbers.

    The machine has no maintenance windows. A job gets the earliest possible reservation. Later starts of other jobs,
    and the passing of time, do not change it. A job must be planned again only after units were freed, and only in one
    of these cases:

    - With the freed units, enough units are free for the job's whole duration from an earlier start on.
    - The freed units belong to its reservation, and are free just before its start.
    - A freed unit is free during its reservation, and has a lower number than one of its units.

    Args:
        places: current reservations of waiting jobs, by the job's number.
        jobs: the waiting jobs that this plan knows; None: all.
        gone: the units out of service that this plan knows; None: those of the view.
        form: the functions of `pipistrelle.schedulers.plan.gaps`, plain or compiled; it may change at any time.
    """

    def __init__(
        self,
        view: View,
        places: Mapping[int, Place],
        jobs: Iterable[SchedulerJob] | None = None,
        gone: NodeSet | None = None,
        form: ModuleType = loops,
    ) -> None:
        self.form = form
        self._view = view
        self._holds = Holds(view, view.gone if gone is None else gone)
        free = self._holds.free()
        begins = [gap[0] for gap in free]
        ends = [time for place in places.values() for time in (place.begin, place.end)]
        times, at = np.unique(np.array([*begins, *ends, view.now, inf]), return_inverse=True)
        table = np.zeros((layout.GAP_LINES, len(free)), dtype=np.int64)
        table[BEGIN], table[END] = at[: len(free)], len(times) - 1
        table[LOW], table[HIGH] = [gap[1] for gap in free], [gap[2] for gap in free]
        self._book = Book(
            times=np.concatenate([times, np.full(_ROOM, inf)]),
            gaps=table,
            jobs=np.zeros((layout.JOB_LINES, _ROOM), dtype=np.int64),
            lengths=np.zeros(_ROOM),
            runs=np.zeros((2, _ROOM), dtype=np.int64),
            scratch=np.zeros((layout.SCRATCH_LINES, _ROOM), dtype=np.int64),
            counts=np.zeros(layout.COUNTS, dtype=np.int64),
        )
        self._book.counts[layout.TIMES] = len(times)
        self._fill(table)
        #: by column
        self._waiting: list[SchedulerJob | None] = []
        #: {a job's number: its column}
        self._columns: dict[int, int] = {}
        self._free_columns: list[int] = []
        #: whether waiting jobs keep their order; then it is kept here
        self._still = not isinstance(view.waiting, MovingQueue)
        # Parallel to the array that compiled loops scan; a SortedList cannot keep an array parallel.
        self._ranks: list[Rank] = []
        self._order = np.zeros(_ROOM, dtype=np.int64)
        for job in view.waiting.each() if jobs is None else jobs:
            column = self._join(job)
            place = places.get(job.number)
            if place is not None:
                begin, end = (int(np.searchsorted(times, time)) for time in (place.begin, place.end))
                self._claim(column, begin, end, units_of(place.units).intervals)
        self._make_room(0)

    def _claim(self, column: int, begin: int, end: int, runs: Runs) -> None:
        """Take the units of a job's reservation out of the plan; record the reservation.

        ``column`` is the job's column; ``begin`` and ``end`` are indices of times.
        """
        for low, high in runs:
            self._make_room(len(runs))
            self.form.claim(self._book, begin, end, low, high)
        first = self._note(runs)
        self._book.counts[layout.USED] += len(runs)
        jobs = self._book.jobs
        jobs[:SIZE, column] = begin, end, runs[0][0], runs[-1][1], first, len(runs)
        jobs[layout.EARLY, column] = jobs[SIZE, column]

    def places(self) -> dict[int, Place]:
        """Return the reservations of the waiting jobs, by job number."""
        times, jobs = self._book.times, self._book.jobs
        return {
            number: Place(self.begin(number), float(times[jobs[END, column]]), mask_of(self._units(column)))
            for number, column in sorted(self._columns.items())
            if jobs[BEGIN, column] >= 0
        }

    def begin(self, number: int) -> float:
        """Return when (s) a waiting job's reservation begins; inf without a reservation."""
        column = self._columns.get(number)
        begin = -1 if column is None else self._book.jobs[BEGIN, column]
        return float(self._book.times[begin]) if begin >= 0 else inf

    def _units(self, column: int) -> NodeSet:
        first, count = self._book.jobs[RUNS : COUNT + 1, column].tolist()
        low, high = self._book.runs[:, first : first + count].tolist()
        return NodeSet(zip(low, high, strict=True))

    def new_looks(self) -> int:
        """Return how many reservations were computed since the last call."""
        looks, self._book.counts[layout.LOOKS] = int(self._book.counts[layout.LOOKS]), 0
        return looks

    @property
    def needed(self) -> bool:
        """Whether any job is queued, so that the plan is needed."""
        return bool(self._columns)

    def state(self) -> dict[str, Any]:
        """Return the reservations and the units out of service.

        After a restore, every job is planned again at the next decision.
        """
        return {"places": plain(self.places()), "gone": str(self._holds.gone)}

    def holds_for(self, view: View) -> bool:
        """Return whether the plan is still valid and no planned start was missed.

        `Plan.holds_for` says when a plan is valid.
        """
        return self._holds.last(view) and self.form.first_begin(self._book) >= view.now

    def schedule(self, *, anew: bool) -> None:
        """Reserve units for new jobs in queue order, and start jobs that can start.

        Args:
            anew: whether units were freed; then all affected jobs are planned again.
        """
        view = self._view
        self.form.advance(self._book, view.now)
        arrivals = view.waiting.in_order(view.arrivals)
        fresh = [job for job in arrivals if job.waits and job.number not in self._columns]
        if len(self._columns) + len(fresh) > len(view.waiting):
            self._forget({job.number for job in view.waiting.each()})
        joined = [self._join(job) for job in fresh]
        if not anew:
            self._place(np.array(joined, dtype=np.int64))
            return
        for end, runs in self._holds.ended():
            self._give_back(0, end, runs)
        self._mark()
        jobs = self._book.jobs
        jobs[MARKED, (jobs[BEGIN] == 0) & (jobs[SIZE] > 0)] = 1
        self._place(self._in_order())

    def _in_order(self) -> Ints:
        if self._still:
            return self._order[: len(self._ranks)].copy()
        columns = list(self._columns.values())
        ranks = self._view.waiting.ranks_of([job for job in map(self._waiting.__getitem__, columns) if job is not None])
        return np.array([column for _, column in sorted(zip(ranks, columns, strict=True))], dtype=np.int64)

    def _place(self, order: Ints) -> None:
        """Reserve units for the marked jobs in ``order``, an array of job columns.

        Start the jobs whose reservations begin now.
        """
        counts = self._book.counts
        counts[layout.TURN] = 0
        while (column := int(self.form.place_all(self._book, order))) != layout.DONE:
            if column == layout.UNTIDY:
                if self.form.is_untidy(self._book):
                    self._tidy()
                self._make_room(int(self._book.jobs[COUNT, order[counts[layout.TURN]]]))
            else:
                job = self._waiting[column]
                assert job is not None
                until = float(self._book.times[self._book.jobs[END, column]])
                self._holds.start(job, self._units(column).intervals, until)
                self._leave(job)

    def _give_back(self, begin: int, end: float, runs: Runs) -> None:
        self._make_room(len(runs))
        first = self._note(runs)
        self.form.give_back(self._book, begin, self.form.slot(self._book, end), first, first + len(runs))

    def _mark(self) -> None:
        """Mark jobs to be planned again: those that might move because units were freed."""
        self.form.mark(self._book, -1, int(self._book.counts[layout.TIMES]))

    def _forget(self, waiting: set[int]) -> None:
        """Drop the reservations of jobs that left the queue without starting.

        ``waiting`` has the numbers of the jobs that are still queued.
        """
        for number, column in list(self._columns.items()):
            if number in waiting:
                continue
            begin, end = self._book.jobs[: END + 1, column].tolist()
            if begin >= 0:
                self._give_back(begin, float(self._book.times[end]), self._units(column).intervals)
            job = self._waiting[column]
            assert job is not None
            self._leave(job)
        self._mark()

    def _leave(self, job: SchedulerJob) -> None:
        column = self._columns.pop(job.number)
        self._free_columns.append(column)
        self._waiting[column] = None
        self._book.jobs[:, column] = 0
        self._book.jobs[BEGIN, column] = -1
        if self._still:
            at, count = bisect_left(self._ranks, self._view.waiting.ranks_of([job])[0]), len(self._ranks)
            del self._ranks[at]
            self._order[at : count - 1] = self._order[at + 1 : count]

    def _join(self, job: SchedulerJob) -> int:
        """Add a column for a job without a reservation, and mark it for planning.

        Return the column's number.
        """
        if self._free_columns:
            column = self._free_columns.pop()
        else:
            column = len(self._waiting)
            self._waiting.append(None)
            self._book.counts[layout.JOBS] += 1
            if column == len(self._order):
                jobs, lengths = (_wider(table, 2 * column) for table in (self._book.jobs, self._book.lengths))
                self._book = self._book._replace(jobs=jobs, lengths=lengths)
                self._order = _wider(self._order, 2 * column)
        self._waiting[column], self._columns[job.number] = job, column
        jobs = self._book.jobs
        jobs[:, column] = 0
        jobs[BEGIN, column], jobs[SIZE, column], jobs[MARKED, column] = -1, job.size, 1
        self._book.lengths[column] = job.occupies
        if self._still:
            rank = self._view.waiting.ranks_of([job])[0]
            at, count = bisect_left(self._ranks, rank), len(self._ranks)
            self._ranks.insert(at, rank)
            self._order[at + 1 : count + 1] = self._order[at:count]
            self._order[at] = column
        return column

    def _note(self, runs: Runs) -> int:
        """Store runs of units in unused columns of the array of runs.

        Return the first of these columns.
        """
        at = int(self._book.counts[layout.USED])
        self._book.runs[:, at : at + len(runs)] = np.array(runs, dtype=np.int64).T
        return at

    def _make_room(self, runs: int) -> None:
        """Enlarge the plan's arrays so that ``runs`` runs of units can be taken or freed."""
        if self.form.has_room(self._book, runs):
            return
        book, counts = self._book, self._book.counts
        kept = [column for column, job in enumerate(self._waiting) if job is not None]
        columns = [np.arange(first, first + count) for first, count in book.jobs[RUNS : COUNT + 1, kept].T.tolist()]
        used = book.runs[:, np.concatenate([np.zeros(0, dtype=np.int64), *columns])]
        book.jobs[RUNS, kept] = np.cumsum([0, *book.jobs[COUNT, kept]])[:-1]
        counts[layout.USED] = used.shape[1]
        held = int(counts[layout.GAPS] - counts[layout.EMPTY])
        room = 2 * (6 * (held + runs) + 16)
        times = np.full(2 * int(counts[layout.TIMES]) + _ROOM, inf)
        times[: counts[layout.TIMES]] = book.times[: counts[layout.TIMES]]
        widest = max(room, book.gaps.shape[1], len(times), book.jobs.shape[1])
        self._book = book._replace(
            times=times,
            gaps=_wider(book.gaps, max(room, book.gaps.shape[1])),
            runs=_wider(used, 2 * (used.shape[1] + room)),
            scratch=np.zeros((layout.SCRATCH_LINES, widest), dtype=np.int64),
        )

    def _tidy(self) -> None:
        """Merge adjacent gaps in the plan, and remove unnecessary times.

        A time is unnecessary if no gap or reservation begins or ends then.
        """
        book, counts = self._book, self._book.counts
        gaps = book.gaps[:, : counts[layout.GAPS]]
        gaps = gaps[:, gaps[END] > 0]
        gaps = gaps[:, np.lexsort((gaps[LOW], gaps[END], gaps[BEGIN]))]
        joins = (gaps[:LOW, 1:] == gaps[:LOW, :-1]).all(axis=0) & (gaps[LOW, 1:] == gaps[HIGH, :-1] + 1)
        first = np.append(0, np.flatnonzero(~joins) + 1)
        joined = gaps[:, first]
        joined[HIGH] = gaps[HIGH, np.append(first[1:], gaps.shape[1]) - 1]
        joined[FRESH] = np.maximum.reduceat(gaps[FRESH], first)
        places = book.jobs[:LOW, book.jobs[SIZE] > 0]
        told = np.concatenate([joined[:LOW].ravel(), places[places >= 0], [0, counts[layout.TIMES] - 1]])
        used = np.unique(told)
        joined[:LOW] = np.searchsorted(used, joined[:LOW])
        places = book.jobs[:LOW]
        places[places >= 0] = np.searchsorted(used, places[places >= 0])
        book.times[: len(used)] = book.times[used]
        counts[layout.TIMES] = len(used)
        self._fill(joined)

    def _fill(self, gaps: Ints) -> None:
        book, count = self._book, gaps.shape[1]
        self._book = book._replace(gaps=_wider(gaps, max(8 * count + _ROOM, book.gaps.shape[1])))
        book.counts[layout.GAPS], book.counts[layout.EMPTY] = count, 0
        book.counts[layout.MANY_GAPS] = count + count // 4 + _ROOM
        times = int(book.counts[layout.TIMES])
        book.counts[layout.MANY_TIMES] = times + times // 4 + _ROOM


def _wider(table: NDArray[Any], columns: int) -> NDArray[Any]:
    """Return a copy of a table, extended with zeros to this many columns."""
    made = np.zeros((*table.shape[:-1], columns), dtype=table.dtype)
    made[..., : table.shape[-1]] = table
    return made
