"""The waiting jobs, ranked; for a deep queue in arrays: no event costs a Python loop over thousands of jobs."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import inf
from typing import Any, ClassVar, Final

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import FixedOrder, Order, is_dynamic
from pipistrelle.schedulers.policy.waiting import Rank, Staircase

#: size of a place that no job holds any more: nothing ever fits it
GONE: Final = np.iinfo(np.int64).max
#: places at which a Python loop and the array operations take equally long, when half of the jobs are small enough
SHALLOW: Final = 240


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingQueue:
    """Jobs in the order of ``rank``, ties by submission.

    Sizes of the jobs of a deep queue, and how long they hold their units, also stand in numpy arrays, so that a
    backfilling pass is a few array operations; the arrays follow when such a pass needs them, and a shallow queue
    never does. A job that leaves the middle of the queue leaves a gap behind; gaps are closed when they are more
    than the jobs.

    Parameters
    ----------
    order
        ranks a job; lower comes first. A dynamic one needs a `MovingQueue`.
    """

    #: a queue of so many places is gone through one by one
    _shallow: ClassVar[int] = SHALLOW

    def __init__(self, order: Order) -> None:
        if is_dynamic(order):
            raise TypeError("a dynamic order needs a MovingQueue")
        fixed: FixedOrder = order  # type: ignore[assignment]
        self._rank = fixed.rank
        #: whether a job that joins never passes one that waits
        self.arrivals_last: bool = getattr(order, "arrivals_last", False)
        self._ranks: list[Rank] = []
        self._jobs: list[SchedulerJob | None] = []
        self._sizes: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._occupies: NDArray[np.float64] = np.empty(0)
        #: places before this one are up to date in the arrays
        self._synced = 0
        #: place of the first job; before it there are only gaps
        self._head = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __iter__(self) -> Iterator[SchedulerJob]:
        return (job for job in self._jobs[self._head :] if job is not None)

    def each(self) -> Iterator[SchedulerJob]:
        """Iterate over the jobs in the order in which they are kept, which need not be that of the queue."""
        return (job for job in self._jobs if job is not None)

    def state(self) -> dict[str, Any]:
        """Return the jobs' ids in the order of the queue, and whether those who join come last."""
        return {"jobs": [job.id for job in self.each()], "arrivals_last": self.arrivals_last}

    def restore(self, state: dict[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        """Go on from a state; ``jobs`` has the waiting jobs by id."""
        for job_id in state["jobs"]:
            self.add(jobs[job_id])
        self.arrivals_last = state["arrivals_last"]

    @property
    def first(self) -> SchedulerJob | None:
        """The job with the lowest rank, None when nothing waits."""
        return self._jobs[self._head] if self._count else None

    def rerank(self, now: float) -> None:
        """Take note that the policy decides now (s); a fixed order does not move."""

    def in_order(self, jobs: list[SchedulerJob]) -> list[SchedulerJob]:
        """Return jobs, given in the order of submission, in the order of the queue."""
        if self.arrivals_last or len(jobs) == 1:
            return jobs
        return sorted(jobs, key=lambda job: (self._rank(job), job.number))

    def ranks_of(self, jobs: list[SchedulerJob]) -> list[Rank]:
        """Return what the order of these waiting jobs in the queue follows from."""
        return [(self._rank(job), job.number) for job in jobs]

    def add(self, job: SchedulerJob) -> None:
        """Let a job join at its rank."""
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

    def remove(self, job: SchedulerJob) -> None:
        """Let a job leave; KeyError if it does not wait here."""
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
        if place == self._head:
            end = len(jobs)
            place += 1
            while place < end and jobs[place] is None:
                place += 1
            self._head = place

    def leading(self, count: int) -> list[SchedulerJob]:
        """Return the first ``count`` jobs, or as many as there are."""
        return list(islice(self, count))

    def pass_under(self, start: Callable[[SchedulerJob], Staircase], stairs: Staircase, *, now: float) -> None:
        """Start jobs in the order of the queue, one after the other, as long as one fits under the staircase."""
        self._sync()
        begin, end = self._head, len(self._jobs)
        places: NDArray[np.intp] = (self._sizes[begin:end] <= stairs.units[0]).nonzero()[0] + begin
        while len(places):
            # What cannot start now will not start in this pass.
            places = places[stairs.fits(self._sizes[places], self._occupies[places] + now)]
            if not len(places):
                return
            stairs = start(self._job(int(places[self._foremost(places)])))
            # The job's own place is a gap by now.

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
        """Start jobs behind the first, one after the other, as long as one can."""
        begin, end = self._head, len(self._jobs)
        if end - begin <= self._shallow:
            behind = [job for job in self._jobs[begin + 1 :] if job is not None and job.size <= most_units]
            if shortest_first:
                behind.sort(key=_occupies)  # stable: equals stay in the order of the queue
            for job in behind:
                if job.size <= most_units and (now + job.occupies <= ends_by or job.size <= spare):
                    most_units, spare = start(job)
            return
        if not self:
            return
        self._sync()
        first = self._place_of_first()
        places: NDArray[np.intp] | None = None
        sizes, occupies = self._sizes[begin:end], self._occupies[begin:end]
        while True:
            fits = sizes <= most_units
            if ends_by != inf:
                fits &= (occupies + now <= ends_by) | (sizes <= spare)
            if places is None:
                fits[first - begin] = False
            # What cannot start now will not start in this pass: units and spare only shrink.
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
            # The job's own place is a gap by now.
            sizes = self._sizes[places]

    def _place_of_first(self) -> int:
        return self._head

    def _foremost(self, places: NDArray[np.intp]) -> int:
        """Return where in ``places``, ascending, that of the first job in the queue's order stands."""
        return 0

    def _job(self, place: int) -> SchedulerJob:
        job = self._jobs[place]
        if job is None:
            raise AssertionError("a gap fits nothing")
        return job

    def _sync(self) -> None:
        """Bring the arrays up to date."""
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
        """Make room in the arrays for a job that joined in the middle."""
        synced = self._synced
        if place < synced < len(self._sizes):
            self._sizes[place + 1 : synced + 1] = self._sizes[place:synced]
            self._occupies[place + 1 : synced + 1] = self._occupies[place:synced]
            self._sizes[place] = job.size
            self._occupies[place] = job.occupies
            self._synced = synced + 1
        else:  # beyond what is up to date, or no room: the next pass brings the rest up to date
            self._synced = min(synced, place)

    def _close_gaps(self) -> None:
        kept = [place for place, job in enumerate(self._jobs) if job is not None]
        self._ranks = [self._ranks[place] for place in kept]
        self._jobs = [self._jobs[place] for place in kept]
        self._head = 0
        self._synced = 0


def _occupies(job: SchedulerJob) -> float:
    return job.occupies
