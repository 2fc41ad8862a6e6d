"""The queue under an order that changes with time.

It is an unsorted table, sorted only when necessary.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, ClassVar, Final

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import DynamicOrder, Floats, Order, is_dynamic
from pipistrelle.schedulers.policy.waiting import Rank
from pipistrelle.schedulers.waiting.ranked import GONE, SHALLOW, SizeCounts, WaitingQueue

#: to return at most this many first jobs, the queue takes minima instead of sorting
_FEW: Final = 32


@mypyc_attr(allow_interpreted_subclasses=True)
class MovingQueue(WaitingQueue):
    """The queue of waiting jobs under a dynamic order; ties by submission.

    Each job has a row of a table. Rows are in the order in which the jobs joined, usually the order of submission. When
    a job leaves, its row stays empty; empty rows are removed when they outnumber the jobs. After each `rerank`, the
    first read of the queue computes the ranks. The first job is the one with the lowest rank, and a backfilling pass
    takes the one with the lowest rank among the jobs that fit. The jobs are sorted only to iterate over them.
    """

    _shallow: ClassVar[int] = 0
    _indexes: ClassVar[bool] = False

    def __init__(self, order: Order) -> None:
        if not is_dynamic(order):
            raise TypeError("a fixed order needs a WaitingQueue")
        order.begin()
        self._order: DynamicOrder = order
        self.arrivals_last = False
        self._now = 0.0
        self._jobs = []
        self._head = 0
        self._rows: dict[int, int] = {}
        self._sizes = np.full(SHALLOW, GONE, dtype=np.int64)
        self._occupies = np.zeros(SHALLOW)
        self._numbers = np.zeros(SHALLOW, dtype=np.int64)
        #: whether the rows are in the order of submission
        self._sorted = True
        self._table: Floats = np.zeros((0, SHALLOW))
        #: ranks by row, inf in an empty row; None when out of date
        self._moving: Floats | None = None
        self._first_row: int | None = None
        self._by_size = SizeCounts()
        self._index = None

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __iter__(self) -> Iterator[SchedulerJob]:
        ranks = self._ranked()
        live = np.flatnonzero(self._sizes[: len(ranks)] != GONE)
        if self._sorted:
            order = np.argsort(ranks[live], kind="stable")
        else:
            order = np.lexsort((self._numbers[live], ranks[live]))
        return iter([self._job(row) for row in live[order].tolist()])

    def __contains__(self, job: SchedulerJob) -> bool:
        return job.number in self._rows

    def state(self) -> dict[str, Any]:
        """Return the jobs' ids, their attributes and, if known, their ranks."""
        rows = list(self._rows.values())
        return {
            "jobs": [self._job(row).id for row in rows],
            "lines": [self._table[:, row].tolist() for row in rows],
            "ranks": None if self._moving is None else self._moving[rows].tolist(),
            "now": self._now,
            "arrivals_last": self.arrivals_last,
        }

    def restore(self, state: dict[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        """Restore a saved state without calling the order.

        ``jobs`` has the queued jobs by id.
        """
        for job_id, line in zip(state["jobs"], state["lines"], strict=True):
            self._join(jobs[job_id], line)
        self._now, self.arrivals_last = state["now"], state["arrivals_last"]
        if state["ranks"] is not None:
            self._moving = np.array(state["ranks"], dtype=np.float64)

    @property
    def first(self) -> SchedulerJob | None:
        """The job with the lowest rank; None if the queue is empty."""
        return self._job(self._place_of_first()) if self._rows else None

    def rerank(self, now: float) -> None:
        """Make the next read of the queue rank the jobs again, for time ``now`` (s)."""
        self._now = now
        self._moving = None
        self._first_row = None

    def in_order(self, jobs: list[SchedulerJob]) -> list[SchedulerJob]:
        """Sort waiting jobs, given in the order of submission, into queue order."""
        jobs = [job for job in jobs if job.number in self._rows]
        if len(jobs) < 2:
            return jobs
        ranks = self._ranked()
        return sorted(jobs, key=lambda job: ranks[self._rows[job.number]])

    def ranks_of(self, jobs: list[SchedulerJob]) -> list[Rank]:
        """Return the current keys by which the queue sorts jobs.

        A key is (rank, job number).
        """
        ranks = self._ranked()
        return [(float(ranks[self._rows[job.number]]), job.number) for job in jobs]

    def add(self, job: SchedulerJob) -> None:
        """Add a job to the queue."""
        self._join(job, self._order.attributes(job))

    def _join(self, job: SchedulerJob, line: Sequence[float]) -> None:
        if len(self._jobs) == len(self._sizes) or len(self._jobs) - len(self._rows) > len(self._rows) + SHALLOW:
            self._close_gaps()
        if len(self._table) != len(line):  # the first job sets the number of attributes
            self._table = np.zeros((len(line), len(self._sizes)))
        row = len(self._jobs)
        if row and self._numbers[row - 1] > job.number:
            self._sorted = False
        self._jobs.append(job)
        self._rows[job.number] = row
        self._sizes[row] = job.size
        self._occupies[row] = job.occupies
        self._numbers[row] = job.number
        self._table[:, row] = line
        self._by_size.add(job.size)
        self._moving = None
        self._first_row = None

    def remove(self, job: SchedulerJob) -> None:
        """Remove a job.

        Raise KeyError if it is not in the queue.
        """
        row = self._rows.get(job.number)
        if row is None or self._jobs[row] is not job:
            raise KeyError(job.id)
        del self._rows[job.number]
        self._by_size.remove(job.size)
        self._jobs[row] = None
        self._sizes[row] = GONE
        if self._moving is not None:
            self._moving[row] = inf
        if row == self._first_row:
            self._first_row = None

    def leading(self, count: int) -> list[SchedulerJob]:
        """Return the first ``count`` jobs, or all if fewer wait."""
        if count >= len(self._rows) or count > _FEW:
            return super().leading(count)
        ranks = self._ranked().copy()
        found = []
        for _ in range(count):
            row = self._best(slice(0, len(ranks)), ranks)
            if ranks[row] == inf:  # empty rows also have inf
                return super().leading(count)
            found.append(self._job(row))
            ranks[row] = inf
        return found

    def _ranked(self) -> Floats:
        """Return the jobs' ranks by row of the table; inf in empty rows.

        The array is empty if no job waits.
        """
        if not self._rows:
            return np.empty(0)
        if self._moving is None:
            end = len(self._jobs)
            table = self._table[:, :end]
            table.flags.writeable = False  # a write by the order would corrupt its next input
            self._moving = self._order.ranks(table, self._now)
            if self._moving.shape != (end,) or np.isnan(self._moving.min(initial=inf)):
                raise ValueError(f"the order {type(self._order).__name__} must return a number for each job")
            if len(self._rows) < end:
                self._moving[self._sizes[:end] == GONE] = inf
        return self._moving

    def _place_of_first(self) -> int:
        """Return the row of the table with the first job; the queue must not be empty."""
        if self._first_row is None:
            ranks = self._ranked()
            row = self._best(slice(0, len(ranks)), ranks)
            if self._jobs[row] is None:  # all ranks are inf
                live = np.flatnonzero(self._sizes[: len(ranks)] != GONE)
                row = int(live[np.argmin(self._numbers[live])])
            self._first_row = row
        return self._first_row

    def _sync(self) -> None:
        """Do nothing, because the arrays of this queue are always up to date."""

    def _foremost(self, places: NDArray[np.intp]) -> int:
        return self._best(places, self._ranked()[places])

    def _best(self, rows: NDArray[np.intp] | slice, ranks: Floats) -> int:
        """Return the index in ``rows`` of the job with the lowest rank.

        Each row of the table is a waiting job. ``ranks`` has the ranks of these rows; at least one row must be given.
        """
        which = int(np.argmin(ranks))
        if not self._sorted:
            ties = np.flatnonzero(ranks == ranks[which])
            which = int(ties[np.argmin(self._numbers[rows][ties])])
        return which

    def _close_gaps(self) -> None:
        """Remove empty rows of the table, and sort the rows by submission.

        If over half of the table is used, double its size.
        """
        kept = [row for _, row in sorted(self._rows.items())]
        room = len(self._sizes) if 2 * len(kept) < len(self._sizes) else 2 * len(self._sizes)
        for name, empty in (("_sizes", GONE), ("_occupies", 0), ("_numbers", 0), ("_table", 0)):
            before = getattr(self, name)
            after = np.full((*before.shape[:-1], room), empty, dtype=before.dtype)
            after[..., : len(kept)] = before[..., kept]
            setattr(self, name, after)
        self._sorted = True
        self._jobs = [self._jobs[row] for row in kept]
        self._rows = {job.number: row for row, job in enumerate(self._jobs) if job is not None}
        self._moving = None
        self._first_row = None


def queue_of(order: Order) -> WaitingQueue:
    """Return an empty queue for a fixed or a dynamic order."""
    return MovingQueue(order) if is_dynamic(order) else WaitingQueue(order)
