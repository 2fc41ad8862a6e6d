"""The waiting jobs of the Maui policy, one array per attribute."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.jobs import SchedulerJob

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: size of an empty row: it never fits
GONE: Final = np.iinfo(np.int64).max
_ROOM: Final = 64
_Scalar = TypeVar("_Scalar", bound=np.generic)


def longer(column: NDArray[_Scalar], length: int, empty: float = 0) -> NDArray[_Scalar]:
    """Return an array of at least ``length`` values that begins with ``column``.

    This is ``column`` itself if it is long enough; else a copy of at least twice its length, filled up with ``empty``.
    """
    if length <= len(column):
        return column
    more = np.full((max(length - len(column), len(column)), *column.shape[1:]), empty, dtype=column.dtype)
    return np.concatenate([column, more])


class GrowingInts:
    """A growing array of whole numbers."""

    __slots__ = ("_count", "_room")

    def __init__(self) -> None:
        self._room: Ints = np.empty(0, dtype=np.int64)
        self._count = 0

    def append(self, number: int) -> None:
        """Append a number."""
        if self._count == len(self._room):
            self._room = longer(self._room, self._count + 1)
        self._room[self._count] = number
        self._count += 1

    def array(self) -> Ints:
        """Return the numbers; valid until the next change."""
        return self._room[: self._count]


class MauiQueue:
    """The waiting jobs as rows, by submission, with columns for their attributes.

    Empty rows are removed when there are many. Row numbers are valid until the next `add`.

    Attributes:
        size: processors; `GONE` in an empty row.
        walltime: planned, s.
        since: time from which queue time counts, s.
        code: combination of credentials.
        access: number of the set of standing reservations that admit the job.
        bypass: number of jobs of lower priority that were backfilled before this job.
        held: end of the deferral, s.
        live: whether the row has a job.

    Args:
        size_of: returns a job's size.
    """

    def __init__(self, size_of: Callable[[SchedulerJob], int] = lambda job: job.size) -> None:
        self._size_of = size_of
        self.rows = 0
        #: number of renumberings of the rows
        self.generation = 0
        self.count = 0
        self.jobs: list[SchedulerJob | None] = []
        #: {number of a waiting job: its row}
        self.row_of: dict[int, int] = {}
        self._allot(_ROOM)

    def _allot(self, room: int) -> None:
        self._size: Ints = np.full(room, GONE, dtype=np.int64)
        self._code: Ints = np.zeros(room, dtype=np.int64)
        self._access: Ints = np.zeros(room, dtype=np.int64)
        self._walltime: Floats = np.zeros(room)
        self._since: Floats = np.zeros(room)
        self._bypass: Floats = np.zeros(room)
        self._held: Floats = np.zeros(room)
        self._live: Bools = np.zeros(room, dtype=np.bool_)
        self._narrow()

    def _narrow(self) -> None:
        rows = self.rows
        self.size, self.code, self.access = self._size[:rows], self._code[:rows], self._access[:rows]
        self.walltime, self.since = self._walltime[:rows], self._since[:rows]
        self.bypass, self.held, self.live = self._bypass[:rows], self._held[:rows], self._live[:rows]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[SchedulerJob]:
        """Iterate over the jobs in the order of submission."""
        return (job for job in self.jobs if job is not None)

    def state(self) -> list[list[Any]]:
        """Return the rows as plain values.

        Each row is (id, walltime, code, access, since, bypass, held).
        """
        columns = (self.walltime, self.code, self.access, self.since, self.bypass, self.held)
        return [
            [job.id, *(column[row].item() for column in columns)]
            for row, job in enumerate(self.jobs)
            if job is not None
        ]

    def restore(self, state: Sequence[Sequence[Any]], jobs: Mapping[str, SchedulerJob]) -> None:
        """Restore the state that the method `state` returned.

        ``jobs`` is {id: job}, with the jobs that wait or were just cancelled.
        """
        for job_id, walltime, code, access, since, bypass, held in state:
            self.add(jobs[job_id], walltime=walltime, code=code, access=access, since=since)
            self.bypass[-1], self.held[-1] = bypass, held

    def job(self, row: int) -> SchedulerJob:
        """Return the job of a row, which must not be empty."""
        job = self.jobs[row]
        if job is None:
            raise AssertionError(f"row {row} is empty")
        return job

    def add(self, job: SchedulerJob, *, walltime: float, code: int, access: int, since: float) -> None:
        """Add a job as the last row; ``walltime`` (s) is the planned one."""
        if not self.count and self.rows:
            self.jobs.clear()
            self._size[: self.rows] = GONE
            self.rows = 0
            self.generation += 1
        if self.rows == len(self._size):
            self._make_room()
        row = self.rows
        self._size[row], self._code[row], self._access[row] = self._size_of(job), code, access
        self._walltime[row], self._since[row] = walltime, since
        self._bypass[row] = self._held[row] = 0.0
        self._live[row] = True
        self.jobs.append(job)
        self.row_of[job.number] = row
        self.rows += 1
        self.count += 1
        self._narrow()

    def set_access(self, job: SchedulerJob, access: int) -> None:
        """Change the set of standing reservations that admit a job."""
        self._access[self.row_of[job.number]] = access

    def remove(self, job: SchedulerJob) -> None:
        """Remove a job.

        Raise KeyError if it is not in the queue.
        """
        row = self.row_of.pop(job.number)
        self.jobs[row] = None
        self._size[row] = GONE
        self._live[row] = False
        self.count -= 1

    def _make_room(self) -> None:
        """Remove empty rows, and double the number of rows if over half are used."""
        kept = np.flatnonzero(self._live)
        old = self._columns()
        room = len(self._size)
        self.rows = len(kept)
        self.generation += 1
        self._allot(2 * room if 2 * len(kept) > room else room)
        for before, after in zip(old, self._columns(), strict=True):
            after[: len(kept)] = before[kept]
        self.jobs = [self.jobs[row] for row in kept.tolist()]
        self.row_of = {job.number: row for row, job in enumerate(self.jobs) if job is not None}

    def _columns(self) -> tuple[NDArray[Any], ...]:
        columns = (self._size, self._code, self._access, self._walltime, self._since, self._bypass, self._held)
        return (*columns, self._live)


class FixedColumn(Generic[_Scalar]):
    """An array with one value per row of the queue.

    A job's value stays the same while the job waits, so it is computed only once.
    """

    def __init__(self, kind: type[_Scalar]) -> None:
        self._generation = -1
        self._rows = 0
        self._values: NDArray[_Scalar] = np.zeros(0, dtype=kind)

    def of(self, generation: int, rows: int, worked_out: Callable[[slice], NDArray[_Scalar]]) -> NDArray[_Scalar]:
        """Return one value per row; ``rows`` is the number of rows.

        Args:
            generation: the queue's generation, which changes when rows are renumbered. After a change, all rows are
                new.
            worked_out: computes the values of new rows.
        """
        if generation != self._generation:
            self._generation, self._rows = generation, 0
        if self._rows < rows:
            fresh = slice(self._rows, rows)
            self._values = longer(self._values, rows)
            self._values[fresh] = worked_out(fresh)
            self._rows = rows
        return self._values[:rows]


class RowsByCounter:
    """The rows of the queued jobs that count toward each limit.

    A job can count toward several limits.
    """

    def __init__(self) -> None:
        #: counters by combination
        self.counters_of: list[tuple[int, ...]] = []
        #: combinations and rows of the queue by counter
        self.codes: defaultdict[int, GrowingInts] = defaultdict(GrowingInts)
        self.rows: defaultdict[int, GrowingInts] = defaultdict(GrowingInts)
        self._generation = -1
        self._count = 0

    def add_code(self, counters: tuple[int, ...]) -> None:
        """Add the next combination of credentials.

        ``counters`` are the numbers of the limits toward which its jobs count.
        """
        for counter in counters:
            self.codes[counter].append(len(self.counters_of))
        self.counters_of.append(counters)

    def follow(self, queue: MauiQueue) -> Ints:
        """Add the rows of jobs that joined the queue since the last call.

        Return these rows.
        """
        if queue.generation != self._generation:
            self._generation, self._count = queue.generation, 0
            self.rows.clear()
        fresh = np.arange(self._count, queue.rows)
        if len(fresh):
            for row, code in enumerate(queue.code[self._count :].tolist(), self._count):
                for counter in self.counters_of[code]:
                    self.rows[counter].append(row)
            self._count = queue.rows
        return fresh
