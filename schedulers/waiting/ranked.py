"""The queue under a fixed order; a long queue uses arrays instead of Python loops."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Any, ClassVar, Final

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.ends_and_shadow import in_time, is_late
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import FixedOrder, Order, is_dynamic
from pipistrelle.schedulers.policy.waiting import Rank, Staircase
from pipistrelle.schedulers.waiting.by_size import SizeIndex

#: size stored at an empty position: no staircase or limit is as large
GONE: Final = np.iinfo(np.int64).max
#: with more sizes than this, array operations over a deep queue are faster than an index by size
MOST_SIZES: Final = 300
#: queue length at which a Python loop and array operations are equally fast, if half of the jobs are small enough
SHALLOW: Final = 240


class SizeCounts:
    """The number of waiting jobs of each size, and the smallest of these sizes."""

    def __init__(self) -> None:
        #: {size: number of jobs}, possibly 0, for each size in the heap
        self._counts: dict[int, int] = {}
        self._heap: list[int] = []

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, size: int) -> None:
        """Count one more job of this size."""
        counts = self._counts
        if size in counts:
            counts[size] += 1
        else:
            counts[size] = 1
            heappush(self._heap, size)

    def remove(self, size: int) -> None:
        """Count one job of this size less."""
        self._counts[size] -= 1

    def least(self) -> int:
        """Return the smallest size; `GONE` if there are no jobs."""
        heap, counts = self._heap, self._counts
        while heap:
            if counts[heap[0]]:
                return heap[0]
            del counts[heappop(heap)]
        return GONE


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingQueue:
    """The queue of waiting jobs, sorted by their fixed ranks, ties by submission.

    In a deep queue, an index by size finds the jobs that can start. If jobs have too many different sizes, or if limits
    depend on jobs' ends (`Staircase`), numpy arrays hold the jobs' sizes and the times that they occupy units. Starting
    all jobs that fit then takes a few array operations. The arrays are updated only when they are needed; a short queue
    has none. If a job leaves the middle of the queue, its entry stays empty. Empty entries are removed when they
    outnumber the jobs.

    Args:
        order: a fixed order; a dynamic one needs a `MovingQueue`.
    """

    #: a queue with at most this many positions is scanned by a loop
    _shallow: ClassVar[int] = SHALLOW
    #: whether a deep queue has an index by size
    _indexes: ClassVar[bool] = True

    def __init__(self, order: Order) -> None:
        if is_dynamic(order):
            raise TypeError("a dynamic order needs a MovingQueue")
        fixed: FixedOrder = order  # type: ignore[assignment]
        self._rank = fixed.rank
        #: whether a new job never passes a waiting one
        self.arrivals_last: bool = getattr(order, "arrivals_last", False)
        self._ranks: list[Rank] = []
        self._jobs: list[SchedulerJob | None] = []
        self._sizes: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._occupies: NDArray[np.float64] = np.empty(0)
        #: positions below this number are up to date in the arrays
        self._synced = 0
        #: position of the first job; all positions before it are gaps
        self._head = 0
        self._count = 0
        self._by_size = SizeCounts()
        #: the jobs of a deep queue by size; None: not needed
        self._index: SizeIndex | None = None

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __iter__(self) -> Iterator[SchedulerJob]:
        return (job for job in self._jobs[self._head :] if job is not None)

    def each(self) -> Iterator[SchedulerJob]:
        """Yield the waiting jobs in the order of storage, which here is queue order."""
        return (job for job in self._jobs if job is not None)

    def state(self) -> dict[str, Any]:
        """Return the jobs' ids in queue order, and whether new jobs always join last."""
        return {"jobs": [job.id for job in self.each()], "arrivals_last": self.arrivals_last}

    def restore(self, state: dict[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        """Restore the state that the method `state` returned.

        ``jobs`` has the queued jobs by id.
        """
        for job_id in state["jobs"]:
            self.add(jobs[job_id])
        self.arrivals_last = state["arrivals_last"]

    @property
    def first(self) -> SchedulerJob | None:
        """The job with the lowest rank; None if the queue is empty."""
        return self._jobs[self._head] if self._count else None

    @property
    def smallest(self) -> int:
        """The fewest units that a waiting job needs; `GONE` if the queue is empty."""
        return self._by_size.least()

    def rerank(self, now: float) -> None:
        """Do nothing: a fixed order does not change with time."""

    def in_order(self, jobs: list[SchedulerJob]) -> list[SchedulerJob]:
        """Sort waiting jobs, given in the order of submission, into queue order."""
        if self.arrivals_last or len(jobs) == 1:
            return jobs
        return sorted(jobs, key=lambda job: (self._rank(job), job.number))

    def ranks_of(self, jobs: list[SchedulerJob]) -> list[Rank]:
        """Return the keys by which the queue sorts jobs: (rank, job number)."""
        return [(self._rank(job), job.number) for job in jobs]

    def add(self, job: SchedulerJob) -> None:
        """Add a job to the queue, at the position of its rank."""
        jobs, ranks = self._jobs, self._ranks
        if len(jobs) - self._count > self._count + SHALLOW:
            self._close_gaps()
            jobs, ranks = self._jobs, self._ranks
        rank = (self._rank(job), job.number)
        if not ranks or ranks[-1] < rank:
            ranks.append(rank)
            jobs.append(job)
        else:
            place = bisect_left(ranks, rank)
            ranks.insert(place, rank)
            jobs.insert(place, job)
            self._shift(place, job)
            self._head = min(self._head, place)
        self._count += 1
        self._by_size.add(job.size)
        if self._index is not None:
            self._index.add(rank, job)

    def remove(self, job: SchedulerJob) -> None:
        """Remove a job.

        Raise KeyError if it is not in the queue.
        """
        place = self._head
        jobs = self._jobs
        if not self._count or jobs[place] is not job:
            place = bisect_left(self._ranks, (self._rank(job), job.number))
            if place == len(jobs) or jobs[place] is not job:
                raise KeyError(job.id)
        jobs[place] = None
        if place < self._synced:
            self._sizes[place] = GONE
        self._count -= 1
        self._by_size.remove(job.size)
        if self._index is not None:
            self._index.remove((self._rank(job), job.number), job)
        if place == self._head:
            end = len(jobs)
            place += 1
            while place < end and jobs[place] is None:
                place += 1
            self._head = place

    def leading(self, count: int) -> list[SchedulerJob]:
        """Return the first ``count`` jobs, or all if fewer wait."""
        return list(islice(self, count))

    def pass_under(self, start: Callable[[SchedulerJob], Staircase], stairs: Staircase, *, now: float) -> None:
        """Start jobs in queue order, as long as one fits; see `Waiting.pass_under`."""
        self._sync()
        begin, end = self._head, len(self._jobs)
        places: NDArray[np.intp] = (self._sizes[begin:end] <= stairs.units[0]).nonzero()[0] + begin
        while len(places):
            # A job that cannot start now cannot start later in this pass.
            places = places[stairs.fits(self._sizes[places], self._occupies[places] + now)]
            if not len(places):
                return
            stairs = start(self._job(int(places[self._foremost(places)])))

    def pass_over(
        self,
        start: Callable[[SchedulerJob], tuple[int, int]],
        most_units: int,
        *,
        spare: int = 0,
        ends_by: float = inf,
        now: float = 0.0,
        shortest_first: bool = False,
    ) -> None:
        """Start jobs behind the first job, until none of them can start.

        See `Waiting.pass_over`.
        """
        begin, end = self._head, len(self._jobs)
        if end - begin <= self._shallow:
            self._index = None
            if self._by_size.least() > most_units:
                return
            behind = [job for job in self._jobs[begin + 1 :] if job is not None and job.size <= most_units]
            if shortest_first:
                behind.sort(key=_occupies)  # the sort is stable: jobs with equal times stay in queue order
            for job in behind:
                if job.size <= most_units and (job.size <= spare or not is_late(now, job.occupies, ends_by)):
                    most_units, spare = start(job)
            return
        if not self:
            return
        index = self._indexed()
        if index is not None and self._job(begin).size > most_units:
            while True:
                following = index.next_to_start(most_units, spare, ends_by, now, shortest_first=shortest_first)
                if following is None:
                    return
                most_units, spare = start(following)
        self._sync()
        first = self._place_of_first()
        places: NDArray[np.intp] | None = None
        sizes, occupies = self._sizes[begin:end], self._occupies[begin:end]
        while True:
            fits = sizes <= most_units
            if ends_by != inf:
                fits &= in_time(now, occupies, ends_by) | (sizes <= spare)
            if places is None:
                fits[first - begin] = False
            # A job that cannot start now cannot start later in this pass: units and spare only shrink.
            chosen = fits.nonzero()[0]
            if not len(chosen):
                return
            places = chosen + begin if places is None else places[chosen]
            occupies = occupies[chosen]
            if shortest_first:
                shortest = (occupies == occupies.min()).nonzero()[0]
                which = int(shortest[self._foremost(places[shortest])])
            else:
                which = self._foremost(places)
            most_units, spare = start(self._job(int(places[which])))
            # The started job's position is a gap now.
            sizes = self._sizes[places]

    def units_needed(self, free: int, *, spare: int, ends_by: float, now: float) -> int | None:
        """Return the fewest free units with which a job can start.

        See `Waiting.units_needed`.
        """
        if not (self.arrivals_last and self._count):
            return None
        begin, end = self._head, len(self._jobs)
        least, beyond, smallest = self._job(begin).size, max(free - spare, 0), self._by_size.least()
        if not beyond or ends_by == inf:  # each job can start once its units are free
            return smallest
        if end - begin > SHALLOW:
            index = self._indexed()
            return None if index is None else min(least, index.units_needed(beyond, ends_by, now))
        if smallest < least:
            for job in self._jobs[begin + 1 :]:
                if job is not None and job.size < least:
                    needs = job.size + beyond if is_late(now, job.occupies, ends_by) else job.size
                    if needs < least:
                        least = needs
                        if needs == smallest:
                            break
        return least

    def _indexed(self) -> SizeIndex | None:
        """Return the index of the waiting jobs by size; None if they have too many sizes.

        The index is made if it does not exist.
        """
        if not self._indexes or len(self._by_size) > MOST_SIZES:
            self._index = None
        elif self._index is None:
            self._index = SizeIndex()
            for rank, job in zip(self._ranks, self._jobs, strict=True):
                if job is not None:
                    self._index.add(rank, job)
        return self._index

    def _place_of_first(self) -> int:
        return self._head

    def _foremost(self, places: NDArray[np.intp]) -> int:
        """Return 0: of positions in ascending order, the first is first in the queue."""
        return 0

    def _job(self, place: int) -> SchedulerJob:
        job = self._jobs[place]
        if job is None:
            raise AssertionError(f"place {place} is a gap")
        return job

    def _sync(self) -> None:
        """Write the sizes and times of jobs added since the last call to the arrays."""
        end, begin = len(self._jobs), self._synced
        if end > len(self._sizes):
            room = max(2 * len(self._sizes), end + SHALLOW)
            self._sizes = np.concatenate([self._sizes[:begin], np.full(room - begin, GONE, dtype=np.int64)])
            self._occupies = np.concatenate([self._occupies[:begin], np.zeros(room - begin)])
        if begin < end:
            fresh = self._jobs[begin:]
            self._sizes[begin:end] = [GONE if job is None else job.size for job in fresh]
            self._occupies[begin:end] = [0.0 if job is None else job.occupies for job in fresh]
            self._synced = end

    def _shift(self, place: int, job: SchedulerJob) -> None:
        """Insert a job into the arrays at position ``place``, in the middle of the queue."""
        synced = self._synced
        if place < synced < len(self._sizes):
            self._sizes[place + 1 : synced + 1] = self._sizes[place:synced]
            self._occupies[place + 1 : synced + 1] = self._occupies[place:synced]
            self._sizes[place] = job.size
            self._occupies[place] = job.occupies
            self._synced = synced + 1
        else:  # beyond the current part, or no room: the next pass updates the rest
            self._synced = min(synced, place)

    def _close_gaps(self) -> None:
        kept = [place for place, job in enumerate(self._jobs) if job is not None]
        self._ranks = [self._ranks[place] for place in kept]
        self._jobs = [self._jobs[place] for place in kept]
        self._head = 0
        self._synced = 0


def _occupies(job: SchedulerJob) -> float:
    return job.occupies
