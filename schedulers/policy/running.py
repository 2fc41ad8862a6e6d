"""The running jobs by expected end, and the longest prologue and epilogue of jobs."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.protocol.units.masks import mask_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.ends_and_shadow import Reservation, reservation_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class RunningJobs:
    """The running jobs, sorted by expected end; ties by number."""

    __slots__ = ("_by_end", "_masks", "by_id")

    def __init__(self) -> None:
        # A list, not a SortedList: adding and removing a job takes 0.4 us instead of 1.0 us (100 running jobs).
        self._by_end: list[tuple[float, int, int]] = []
        #: {job's number: its units as a mask}; made when needed
        self._masks: dict[int, int] = {}
        #: {id: job} in the order of start; read-only
        self.by_id: dict[str, SchedulerJob] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[SchedulerJob]:
        """Iterate over the running jobs in the order of start."""
        return iter(self.by_id.values())

    def __contains__(self, job_id: str) -> bool:
        return job_id in self.by_id

    @property
    def next_end(self) -> float:
        """The earliest expected end of a running job (s); inf if no job runs."""
        return self._by_end[0][0] if self._by_end else inf

    @property
    def by_end(self) -> Sequence[tuple[float, int, int]]:
        """Each running job as (expected end in s, number, units), ascending.

        The caller must not change the sequence.
        """
        return self._by_end

    def add(self, job: SchedulerJob) -> None:
        """Add a job that has started to the running jobs."""
        insort(self._by_end, (job.expected_end, job.number, job.size))
        self.by_id[job.id] = job

    def remove(self, job_id: str) -> SchedulerJob:
        """Remove a job from the running jobs, and return it.

        Raise KeyError if it does not run.
        """
        job = self.by_id.pop(job_id)
        self._masks.pop(job.number, None)
        del self._by_end[bisect_left(self._by_end, (job.expected_end, job.number))]
        return job

    @property
    def masks(self) -> Mapping[int, int]:
        """The units of the running jobs, as {job's number: bit mask}.

        The caller must not change them.
        """
        masks = self._masks
        if len(masks) != len(self.by_id):
            for job in self.by_id.values():
                if job.number not in masks:
                    masks[job.number] = mask_of(job.alloc)
        return masks

    def keep_mask(self, job: SchedulerJob, mask: int) -> None:
        """Record the bit mask of a running job's units; `masks` then need not compute it."""
        self._masks[job.number] = mask

    def state(self) -> list[str]:
        """Return the ids of the running jobs, in the order of start."""
        return list(self.by_id)

    def restore(self, state: Sequence[str], jobs: Mapping[str, SchedulerJob]) -> None:
        """Add the jobs with these ids, which are in the order of start.

        ``jobs`` is {id: job}.
        """
        for job_id in state:
            self.add(jobs[job_id])

    def reserve(self, size: int, free: int) -> Reservation:
        """Return the earliest start of a job that needs ``size`` units.

        ``free`` units are free now. Running jobs are assumed to use their full walltime. See `Reservation` for the
        result.
        """
        return reservation_of(self._by_end, size, free)


class HeldTimes:
    """The longest prologue plus epilogue of jobs, by job class.

    A job holds its units for this time beyond its walltime. It is the class's own prologue and epilogue, plus the
    longest prologue and the longest epilogue of the pools that the class may use. The longest ones are used because a
    waiting job's pools are not known yet.
    """

    def __init__(self, begins: SimulationBeginsData) -> None:
        platform = begins.platform
        pools = () if platform is None else platform.pools
        #: longest prologue + epilogue (s) of a job without a class
        self.usual = self._longest([(pool.prologue, pool.epilogue) for pool in pools])
        self._classes: dict[str, float] = {}
        for one in () if platform is None else platform.classes:
            units = NodeSet.parse(one.units)
            times = [(p.prologue, p.epilogue) for p in pools if not units.isdisjoint(NodeSet.parse(p.units))]
            self._classes[one.name] = self._longest(times, one.prologue, one.epilogue)

    @staticmethod
    def _longest(times: list[tuple[float, float]], before: float = 0.0, after: float = 0.0) -> float:
        # In the server's order of addition, so that expected and actual end are the same double.
        longest = [max((time[at] for time in times), default=0.0) for at in (0, 1)]
        return (before + longest[0]) + (after + longest[1])

    def of(self, queue: str | None) -> float:
        """Return the longest prologue + epilogue (s) of a class's jobs.

        ``queue`` is the class; None stands for jobs without a class.
        """
        return self.usual if queue is None else self._classes.get(queue, self.usual)
