"""The waiting jobs as rows of arrays, for rules that compare many of them at once."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View

#: fewest rows that are added at a time
_ROOM: Final = 64


class WaitingRows(ABC):
    """The waiting jobs of a view, each in its own row of some arrays.

    The row of a job that left is given to a later job.

    Attributes:
        columns: names of the arrays that a subclass adds, each of shape (..., rows).
        waits: whether a row has a job, shape (rows,).
    """

    columns: ClassVar[tuple[str, ...]]

    def __init__(self, view: View) -> None:
        self.view = view
        self.waits: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._jobs: list[SchedulerJob | None] = []
        self._row: dict[int, int] = {}
        self._unused: list[int] = []

    @abstractmethod
    def fill(self, row: int, job: SchedulerJob) -> None:
        """Write a job's values to row ``row`` of the arrays that a subclass adds."""

    def follow(self) -> None:
        """Add the jobs that joined the queue since the last call; remove those that left."""
        view = self.view
        for job in view.cancelled:
            self.drop(job)
        for job in view.arrivals:
            if job.waits:
                self._add(job)
        if len(self._row) != len(view.waiting):  # jobs were started elsewhere or rejected, or after a restore
            waiting = {job.number: job for job in view.waiting.each()}
            for job in [job for job in self._jobs if job is not None and job.number not in waiting]:
                self.drop(job)
            for job in waiting.values():
                self._add(job)

    def _add(self, job: SchedulerJob) -> None:
        if job.number in self._row:
            return
        if not self._unused:
            self._grow()
        row = self._row[job.number] = self._unused.pop()
        self._jobs[row] = job
        self.waits[row] = True
        self.fill(row, job)

    def _grow(self) -> None:
        old = len(self._jobs)
        more = max(old, _ROOM)
        for name in ("waits", *self.columns):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((*array.shape[:-1], more), array.dtype)], axis=-1))
        self._jobs += [None] * more
        self._unused = list(range(old + more - 1, old - 1, -1))

    def drop(self, job: SchedulerJob) -> None:
        """Remove a job that no longer waits."""
        row = self._row.pop(job.number, None)
        if row is not None:
            self._jobs[row] = None
            self.waits[row] = False
            self._unused.append(row)

    def row_of(self, job: SchedulerJob) -> int | None:
        """Return the row of the arrays for a job; None if the job does not wait."""
        return self._row.get(job.number)

    def rows_of(self, jobs: Iterable[SchedulerJob]) -> NDArray[np.int64]:
        """Return the rows of the arrays that describe the given jobs.

        Jobs that do not wait are left out.
        """
        rows = (self._row.get(job.number) for job in jobs)
        return np.array([row for row in rows if row is not None], dtype=np.int64)

    def in_order(self, rows: NDArray[np.int64]) -> list[SchedulerJob]:
        """Return the waiting jobs that these rows of the arrays describe, in queue order."""
        jobs = [job for row in rows.tolist() if (job := self._jobs[row]) is not None and job.waits]
        jobs.sort(key=lambda job: job.number)
        return self.view.waiting.in_order(jobs) if jobs else jobs
