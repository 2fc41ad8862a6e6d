"""Statistics of the jobs that a scheduler has seen, by job size.

The sizes of partitions are computed from these statistics.
"""

from collections.abc import Iterable
from math import fsum
from typing import Any, Final

from sortedcontainers import SortedList

from pipistrelle.platforms.topology.partitions import HOUR, RankedClass
from pipistrelle.protocol.base.state import Kept, plain
from pipistrelle.schedulers.policy.interfaces import PastStep
from pipistrelle.schedulers.policy.view import View

#: classes are first computed after this many jobs have ended, and again whenever the number of ended jobs has doubled
FIRST_CLASSES: Final = 32
_MOST: Final = 0.95


class JobsSeen(Kept):
    """Statistics of the jobs seen so far, by size rounded up to a power of two."""

    _kept = ("_begin", "_came", "_took", "_asked", "_running", "_due")

    def __init__(self) -> None:
        #: submit time of the first job, s
        self._begin = 0.0
        #: {exponent of the size: number of jobs submitted}
        self._came: dict[int, int] = {}
        #: {exponent: run times of ended jobs, s}
        self._took: dict[int, SortedList[float]] = {}
        #: {exponent: unit-seconds of ended jobs}
        self._asked: dict[int, float] = {}
        #: {id: (size, start)} of running jobs
        self._running: dict[str, tuple[int, float]] = {}
        self._due = FIRST_CLASSES

    def state(self) -> Any:
        """Return the statistics as values that JSON can hold."""
        return {**super().state(), "_took": plain({power: list(took) for power, took in self._took.items()})}

    def restore(self, state: Any, *made: Any, **more: Any) -> None:
        """Restore the statistics that the method `state` returned."""
        super().restore(state)
        self._took = {power: SortedList(took) for power, took in self._took.items()}

    def learn(self, steps: Iterable[PastStep]) -> None:
        """Record the starts and ends of jobs under an earlier scheduler."""
        for time, job, starts in steps:
            if starts:
                self._begin = min(self._begin, job.submit) if self._came else job.submit
                power = _power(job.size)
                self._came[power] = self._came.get(power, 0) + 1
                self._running[job.id] = job.size, job.start
            else:
                self._ended(*self._running.pop(job.id), time)

    def look(self, view: View) -> bool:
        """Record the jobs that have arrived or ended since the last call.

        Return whether the job classes must be computed again, because many more jobs have ended.
        """
        for job in view.arrivals:
            if not self._came:
                self._begin = job.submit
            power = _power(job.size)
            self._came[power] = self._came.get(power, 0) + 1
        if view.released:
            for job_id, (size, start) in list(self._running.items()):
                if job_id not in view.running:
                    self._ended(size, start, view.now)
                    del self._running[job_id]
        if (ended := sum(map(len, self._took.values()))) < self._due:
            return False
        while self._due <= ended:
            self._due *= 2
        return True

    def started(self, view: View) -> None:
        """Record the running jobs with their sizes and starts."""
        for job in view.running:
            self._running.setdefault(job.id, (job.size, job.start))

    def _ended(self, size: int, start: float, end: float) -> None:
        power, took = _power(size), end - start
        self._took.setdefault(power, SortedList()).add(took)
        self._asked[power] = self._asked.get(power, 0.0) + size * took

    def classes(self, now: float, units: int) -> tuple[RankedClass, ...]:
        """Return the job classes, with arrival rates and the run times of ended jobs.

        Return an empty tuple if no time has passed.
        """
        hours = (now - self._begin) / HOUR
        found = []
        for power, took in sorted(self._took.items()):
            total, size = fsum(took), min(1 << power, units)
            if hours > 0 and total > 0:
                most = took[min(int(_MOST * len(took)), len(took) - 1)]
                fill = min(self._asked[power] / (size * total), 1.0)
                rate, mean = self._came[power] / hours, total / len(took) / HOUR
                found.append(RankedClass(size=size, rate=rate, service=mean, service_95=most / HOUR, fill=fill))
        return tuple(found)


def _power(size: int) -> int:
    return (size - 1).bit_length()
