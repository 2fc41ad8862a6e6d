"""The running jobs by their expected end, and how long jobs hold their units beside their walltimes."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.ends_and_shadow import Reservation, reservation_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class RunningJobs:
    """Running jobs ordered by (expected end, number)."""

    __slots__ = ("_by_end", "by_id")

    def __init__(self) -> None:
        # A list, not a SortedList: each job joins and leaves, in 0.4 us together instead of 1.0 us (100 running jobs).
        self._by_end: list[tuple[float, int, int]] = []
        #: in the order of start; read it, never write it
        self.by_id: dict[str, SchedulerJob] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[SchedulerJob]:
        """Iterate in the order of start."""
        return iter(self.by_id.values())

    def __contains__(self, job_id: str) -> bool:
        return job_id in self.by_id

    @property
    def next_end(self) -> float:
        """The earliest expected end (s), inf if nothing runs."""
        return self._by_end[0][0] if self._by_end else inf

    def add(self, job: SchedulerJob) -> None:
        """Let a started job join."""
        insort(self._by_end, (job.expected_end, job.number, job.size))
        self.by_id[job.id] = job

    def remove(self, job_id: str) -> SchedulerJob:
        """Let a job leave and return it; KeyError if it does not run."""
        job = self.by_id.pop(job_id)
        del self._by_end[bisect_left(self._by_end, (job.expected_end, job.number))]
        return job

    def state(self) -> list[str]:
        """Return the ids of the running jobs, in the order of start."""
        return list(self.by_id)

    def restore(self, state: Sequence[str], jobs: Mapping[str, SchedulerJob]) -> None:
        """Let the jobs run that have these ids; ``jobs`` has them by id."""
        for job_id in state:
            self.add(jobs[job_id])

    def reserve(self, size: int, free: int) -> Reservation:
        """Return the reservation of ``size`` units, ``free`` of which, fewer, are free now; see `reservation_of`."""
        return reservation_of(self._by_end, size, free)


class HeldTimes:
    """Knows the most that a job can take for prologue and epilogue, by its class.

    It is those of its class, and in addition the longest of the pools that it may get units of: which these will be
    nobody knows as long as it waits.
    """

    def __init__(self, begins: SimulationBeginsData) -> None:
        platform = begins.platform
        pools = () if platform is None else platform.pools
        #: what a job without a class takes at most beside its walltime, s
        self.usual = self._longest([(pool.prologue, pool.epilogue) for pool in pools])
        self._classes: dict[str, float] = {}
        for one in () if platform is None else platform.classes:
            units = NodeSet.parse(one.units)
            times = [(p.prologue, p.epilogue) for p in pools if not units.isdisjoint(NodeSet.parse(p.units))]
            self._classes[one.name] = self._longest(times, one.prologue, one.epilogue)

    @staticmethod
    def _longest(times: list[tuple[float, float]], before: float = 0.0, after: float = 0.0) -> float:
        # In the order in which the server adds up, so that an end is expected at just the double where it will be.
        longest = [max((time[at] for time in times), default=0.0) for at in (0, 1)]
        return (before + longest[0]) + (after + longest[1])

    def of(self, queue: str | None) -> float:
        """Return the seconds that a job of this queue takes at most beside its walltime."""
        return self.usual if queue is None else self._classes.get(queue, self.usual)
