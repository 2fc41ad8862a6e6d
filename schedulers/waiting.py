"""The waiting jobs, ranked, in arrays: no event costs a Python loop over the queue."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.jobs import SchedulerJob

#: size of a place that no job holds any more: nothing ever fits it
_GONE: Final = np.iinfo(np.int64).max
_MIN_CAPACITY: Final = 64

Rank = tuple[float, int]


class WaitingQueue:
    """Jobs in the order of ``rank``, ties by submission.

    Sizes and walltimes stand in numpy arrays beside the jobs, so that a backfilling pass is a few array operations.
    A job that leaves the middle of the queue leaves a gap behind; gaps are closed when they are more than the jobs.

    Parameters
    ----------
    rank
        returns a job's rank; lower comes first. It is asked for once, when the job joins.
    """

    def __init__(self, rank: Callable[[SchedulerJob], float]) -> None:
        self._rank = rank
        self._ranks: list[Rank] = []
        self._jobs: list[SchedulerJob | None] = []
        self._sizes: NDArray[np.int64] = np.full(_MIN_CAPACITY, _GONE, dtype=np.int64)
        self._walltimes: NDArray[np.float64] = np.zeros(_MIN_CAPACITY)
        self._head = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __iter__(self) -> Iterator[SchedulerJob]:
        return (job for job in self._jobs[self._head :] if job is not None)

    @property
    def first(self) -> SchedulerJob | None:
        """The job with the lowest rank, None when nothing waits."""
        return self._jobs[self._head] if self._count else None

    def add(self, job: SchedulerJob) -> None:
        """Let a job join at its rank."""
        rank = (self._rank(job), job.number)
        if len(self._jobs) - self._count > self._count + _MIN_CAPACITY:
            self._close_gaps()
        end = len(self._jobs)
        if end == len(self._sizes):
            self._sizes = np.concatenate([self._sizes, np.full(end, _GONE, dtype=np.int64)])
            self._walltimes = np.concatenate([self._walltimes, np.zeros(end)])
        place = end if not self._ranks or self._ranks[-1] < rank else bisect_left(self._ranks, rank)
        if place < end:
            self._sizes[place + 1 : end + 1] = self._sizes[place:end]
            self._walltimes[place + 1 : end + 1] = self._walltimes[place:end]
        self._ranks.insert(place, rank)
        self._jobs.insert(place, job)
        self._sizes[place] = job.size
        self._walltimes[place] = job.walltime
        self._head = min(self._head, place)
        self._count += 1

    def remove(self, job: SchedulerJob) -> None:
        """Let a job leave; KeyError if it does not wait here."""
        place = bisect_left(self._ranks, (self._rank(job), job.number), self._head)
        if place == len(self._jobs) or self._jobs[place] is not job:
            raise KeyError(job.id)
        self._jobs[place] = None
        self._sizes[place] = _GONE
        self._count -= 1
        if place == self._head:
            self._skip_gaps()

    def candidates(self, most_units: int, ends_by: float = inf, now: float = 0.0, spare: int = 0) -> NDArray[np.intp]:
        """Return the places of all jobs behind the first that could start now, in the order of the queue.

        A job can if it has at most ``most_units`` units and either ends, by its walltime, not later than ``ends_by``
        (seconds) when it starts at ``now``, or has at most ``spare`` units.
        """
        begin, end = self._head + 1, len(self._jobs)
        sizes = self._sizes[begin:end]
        fits = sizes <= most_units
        if ends_by != inf:
            fits &= (self._walltimes[begin:end] + now <= ends_by) | (sizes <= spare)
        return np.flatnonzero(fits) + begin

    def narrow(
        self, places: NDArray[np.intp], most_units: int, ends_by: float = inf, now: float = 0.0, spare: int = 0
    ) -> NDArray[np.intp]:
        """Return those of the places that still meet the conditions of `candidates`."""
        sizes = self._sizes[places]
        fits = sizes <= most_units
        if ends_by != inf:
            fits &= (self._walltimes[places] + now <= ends_by) | (sizes <= spare)
        return places[fits]

    def shortest(self, places: NDArray[np.intp]) -> int:
        """Return the place of the job with the least walltime; of equals the first in the queue."""
        return int(places[np.argmin(self._walltimes[places])])

    def at(self, place: int) -> SchedulerJob:
        """Return the job at a place that `candidates` gave; places are valid until the next `add`."""
        job = self._jobs[place]
        if job is None:
            raise KeyError(place)
        return job

    def _skip_gaps(self) -> None:
        head, jobs = self._head, self._jobs
        end = len(jobs)
        while head < end and jobs[head] is None:
            head += 1
        self._head = head

    def _close_gaps(self) -> None:
        kept = [place for place, job in enumerate(self._jobs) if job is not None]
        places = np.array(kept, dtype=np.intp)
        count = len(kept)
        self._sizes[:count] = self._sizes[places]
        self._sizes[count:] = _GONE
        self._walltimes[:count] = self._walltimes[places]
        self._ranks = [self._ranks[place] for place in kept]
        self._jobs = [self._jobs[place] for place in kept]
        self._head = 0
