"""The waiting jobs, grouped by size.

In a long queue this finds at once a job that can start, or shows that no job can.
"""

from bisect import bisect_left, bisect_right, insort
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.ends_and_shadow import is_late
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.waiting import Rank

#: fewest places of a class's array
_ROOM: Final = 32


class JobsOfSize:
    """The waiting jobs that all need the same number of units, in queue order.

    The queue is sorted by the jobs' keys, (rank, job number); jobs are numbered in the order of submission. The entry
    of a job that leaves stays empty for some time.

    Attributes:
        shortest: the least time (s) for which one of the jobs occupies units.
    """

    __slots__ = ("_count", "_head", "_jobs", "_keys", "_occupies", "shortest")

    def __init__(self) -> None:
        self._keys: list[Rank] = []
        self._jobs: list[SchedulerJob | None] = []
        #: time (s) for which each job occupies units, inf in a gap
        self._occupies: NDArray[np.float64] = np.full(_ROOM, inf)
        self._head = 0
        self._count = 0
        self.shortest = inf

    def __len__(self) -> int:
        return self._count

    def add(self, key: Rank, job: SchedulerJob) -> None:
        """Add a job at the position of its key (rank, job number)."""
        end = len(self._keys)
        if end == len(self._occupies):
            self._make_room()
            end = len(self._keys)
        if not end or self._keys[-1] < key:
            place = end
        else:
            place = bisect_left(self._keys, key)
            self._occupies[place + 1 : end + 1] = self._occupies[place:end]
        self._keys.insert(place, key)
        self._jobs.insert(place, job)
        self._occupies[place] = job.occupies
        self._head = place if not self._count else min(self._head, place)
        self._count += 1
        self.shortest = min(self.shortest, job.occupies)

    def remove(self, key: Rank) -> None:
        """Remove the job with this key (rank, job number)."""
        place = bisect_left(self._keys, key)
        was = self._occupies[place]
        self._jobs[place] = None
        self._occupies[place] = inf
        self._count -= 1
        if place == self._head and self._count:
            while self._jobs[place] is None:
                place += 1
            self._head = place
        if was <= self.shortest:
            self.shortest = float(self._occupies[self._head : len(self._keys)].min(initial=inf))

    def first(self) -> tuple[Rank, SchedulerJob]:
        """Return (key, job) of the first job in queue order.

        The key is (rank, job number).
        """
        return self._at(self._head)

    def first_in_time(self, now: float, ends_by: float) -> tuple[Rank, SchedulerJob] | None:
        """Return (key, job) of the first job that ends by ``ends_by`` if started ``now``.

        Times are in s. The key is (rank, job number). Return None if there is no such job.
        """
        if ends_by == inf:
            return self.first()
        if is_late(now, self.shortest, ends_by):
            return None
        ends = now + self._occupies[self._head : len(self._keys)]
        return self._at(self._head + int((ends <= ends_by).argmax()))

    def first_shortest(self) -> tuple[Rank, SchedulerJob]:
        """Return (key, job) of the job that occupies units for the least time.

        The key is (rank, job number). Of several such jobs, return the first in the queue.
        """
        if self.shortest == inf:
            return self.first()
        return self._at(self._head + int(self._occupies[self._head : len(self._keys)].argmin()))

    def _at(self, place: int) -> tuple[Rank, SchedulerJob]:
        job = self._jobs[place]
        assert job is not None, f"place {place} is a gap"
        return self._keys[place], job

    def _make_room(self) -> None:
        """Remove empty entries from the arrays.

        If at least half of the array of times is then still used, double its size.
        """
        kept = [place for place, job in enumerate(self._jobs) if job is not None]
        self._keys = [self._keys[place] for place in kept]
        self._jobs = [self._jobs[place] for place in kept]
        room = len(self._occupies) if 2 * len(kept) < len(self._occupies) else 2 * len(self._occupies)
        occupies = np.full(room, inf)
        occupies[: len(kept)] = self._occupies[kept]
        self._occupies, self._head = occupies, 0


class SizeIndex:
    """The waiting jobs of a queue, by size.

    The queue is sorted by the jobs' keys, (rank, job number); jobs are numbered in the order of submission.
    """

    __slots__ = ("_classes", "_sizes")

    def __init__(self) -> None:
        self._classes: dict[int, JobsOfSize] = {}
        #: the sizes of the classes, ascending
        self._sizes: list[int] = []

    def add(self, key: Rank, job: SchedulerJob) -> None:
        """Add a waiting job with its key (rank, job number)."""
        some = self._classes.get(job.size)
        if some is None:
            some = self._classes[job.size] = JobsOfSize()
            insort(self._sizes, job.size)
        some.add(key, job)

    def remove(self, key: Rank, job: SchedulerJob) -> None:
        """Remove a waiting job, given its key (rank, job number)."""
        some = self._classes[job.size]
        some.remove(key)
        if not len(some):
            del self._classes[job.size], self._sizes[bisect_left(self._sizes, job.size)]

    def next_to_start(
        self, most_units: int, spare: int, ends_by: float, now: float, *, shortest_first: bool
    ) -> SchedulerJob | None:
        """Return the next job that `Waiting.pass_over` starts; None if none can start."""
        best: tuple[float, Rank] | None = None
        found: SchedulerJob | None = None
        for size in self._sizes[: bisect_right(self._sizes, most_units)]:
            some = self._classes[size]
            if size > spare and is_late(now, some.shortest, ends_by):
                continue
            if shortest_first:
                key, job = some.first_shortest()
                place = (job.occupies, key)
            else:
                first = some.first() if size <= spare else some.first_in_time(now, ends_by)
                if first is None:
                    continue
                key, job = first
                place = (0.0, key)
            if best is None or place < best:
                best, found = place, job
        return found

    def units_needed(self, beyond: int, ends_by: float, now: float) -> int:
        """Return the fewest free units with which one of the jobs can start.

        A job that ends after ``ends_by`` (s) if started ``now`` needs ``beyond`` units more than its size.
        """
        return min(
            size + beyond if is_late(now, some.shortest, ends_by) else size for size, some in self._classes.items()
        )
