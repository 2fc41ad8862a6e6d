"""The queued jobs that Maui's limits allow to start, kept up to date in arrays.

Queues can be long. When a job starts or ends, only queued jobs that share a limited credential with it are checked
again.
"""

from collections.abc import Mapping, Sequence
from math import fsum, inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.maui.priority.waiting import Bools, GrowingInts, Ints, MauiQueue, RowsByCounter, longer
from pipistrelle.schedulers.policy.order import Floats

Rows = NDArray[np.intp]
#: counter, metric, soft and hard limit
Entry = tuple[int, int, float, float]
#: more units than any job has, less than an empty row
_UNLIMITED: Final = 2.0**53
JOB, UNITS, NODES = range(3)


class Slots:
    """The limits on running jobs that apply to each combination of credentials.

    The k-th array of each list is for the k-th limit of the combinations; it has one entry per combination.

    Attributes:
        counters: numbers (from 1) of the credentials that have the limits; 0: no limit.
        metrics: numbers of the metrics that the limits bound.
        limits: the soft limits and the hard limits; inf: no limit.
    """

    def __init__(self) -> None:
        self.counters: list[Ints] = []
        self.metrics: list[Ints] = []
        #: (soft, hard)
        self.limits: tuple[list[Floats], list[Floats]] = ([], [])

    def add(self, code: int, entries: Sequence[Entry]) -> None:
        """Add combination ``code`` of credentials, with the limits on its jobs.

        Args:
            entries: (number of the limited credential, metric, soft limit, hard limit) of each limit.
        """
        every: tuple[list[Any], ...] = (self.counters, self.metrics, *self.limits)
        for place, (lines, empty) in enumerate(zip(every, (0, 0, inf, inf), strict=True)):
            lines += [np.full(code, empty) for _ in range(len(lines), len(entries))]
            lines[:] = [longer(line, code + 1, empty) for line in lines]
            for line, entry in zip(lines, entries, strict=False):
                line[code] = entry[place]


class AllowedRows:
    """The queued jobs that the limits on running jobs, units and nodes allow to start.

    Args:
        units_per_node: a job of n units has n / units_per_node nodes, rounded up.
        two_levels: whether soft and hard limits differ.
    """

    def __init__(self, units_per_node: int, *, two_levels: bool) -> None:
        self._units_per_node = units_per_node
        self._levels = (0, 1) if two_levels else (1,)
        self._slots = Slots()
        self._by_counter = RowsByCounter()
        #: usage by counter, a column per metric
        self._usage: Floats = np.zeros((1, 3))
        #: most units of a job by combination; -1 allows no job
        self._largest: list[Floats] = [np.zeros(0)] * 2
        self._allowed: list[Bools] = [np.zeros(0, dtype=np.bool_)] * 2
        self._dirty: set[int] = set()

    def add_code(self, code: int, entries: Sequence[Entry]) -> None:
        """Add combination ``code`` of credentials, with the limits on its jobs.

        Each entry is (number of the limited credential, from 1; metric; soft limit; hard limit).
        """
        self._slots.add(code, entries)
        counters = tuple(dict.fromkeys(counter for counter, *_ in entries))
        self._by_counter.add_code(counters)
        self._usage = longer(self._usage, max(counters, default=0) + 1)
        self._largest = [longer(line, code + 1) for line in self._largest]
        self._refresh_codes(np.array([code]))

    def set_usage(self, counter: int, usage: Sequence[int]) -> None:
        """Store the numbers of running jobs, units and nodes of a limited credential.

        ``counter`` is the number of the credential.
        """
        if counter in self._by_counter.codes:  # other counters have no limits here
            self._usage[counter] = usage
            self._dirty.add(counter)

    def follow(self, queue: MauiQueue) -> None:
        """Apply all changes of the queue and of running jobs since the last call."""
        fresh = self._by_counter.follow(queue)
        if len(fresh):
            self._allowed = [longer(line, queue.rows) for line in self._allowed]
        if self._dirty:
            dirty = sorted(self._dirty)
            self._dirty.clear()
            self._refresh_codes(_joined(self._by_counter.codes, dirty))
            self._refresh_rows(queue, _joined(self._by_counter.rows, dirty))
        self._refresh_rows(queue, fresh)

    def _refresh_codes(self, codes: Ints) -> None:
        for level in self._levels:
            found = np.full(len(codes), _UNLIMITED)
            for line, counters in enumerate(self._slots.counters):
                metrics = self._slots.metrics[line][codes]
                room = self._slots.limits[level][line][codes] - self._usage[counters[codes], metrics]
                sizes = np.where(metrics == NODES, room * self._units_per_node, room)
                np.minimum(found, np.where(metrics == JOB, np.where(room >= 1, inf, -1.0), sizes), out=found)
            self._largest[level][codes] = np.floor(found)

    def _refresh_rows(self, queue: MauiQueue, rows: Ints) -> None:
        if not len(rows):
            return
        sizes, codes = queue.size[rows], queue.code[rows]
        for level in self._levels:
            self._allowed[level][rows] = sizes <= self._largest[level][codes]

    def allowed(self, queue: MauiQueue, *, hard: bool) -> Bools:
        """Return for each row of the queue whether the limits allow its job to start.

        With ``hard``, the hard limits apply, else the soft ones. The values of empty rows have no meaning. The caller
        must not write to the array.
        """
        self.follow(queue)
        return self._allowed[self._levels[-1] if hard else self._levels[0]][: queue.rows]


def _joined(lists: Mapping[int, GrowingInts], counters: Sequence[int]) -> Ints:
    arrays = [lists[counter].array() for counter in counters]
    return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]


class OutstandingRooms:
    """The outstanding work (MAXPS) and time (MAXWC) that the limits still allow.

    Outstanding is what running jobs may still use until their latest ends. It shrinks as they run, so the allowances
    grow.
    """

    def __init__(self) -> None:
        #: limits of work (0) and of time (1)
        self._slots = (Slots(), Slots())
        self._codes = 0
        #: {limited counter: {number of a running job: (units, end in s)}}
        self._running: dict[int, dict[int, tuple[int, float]]] = {}
        #: results of `rooms` since the last change: {(time, level): rooms}
        self._rooms: dict[tuple[float, int], tuple[Floats, Floats]] = {}

    def add_code(self, code: int, entries: Sequence[Entry]) -> None:
        """Add combination ``code`` of credentials, with the limits on its jobs.

        Args:
            entries: (number of the limited credential, from 1; 0 for work or 1 for time; soft limit; hard limit).
        """
        for metric, slots in enumerate(self._slots):
            mine = [entry for entry in entries if entry[1] == metric]
            if mine or slots.counters:
                slots.add(code, mine)
        for counter, *_ in entries:
            self._running.setdefault(counter, {})
        self._codes = code + 1
        self._rooms.clear()

    def started(self, counter: int, number: int, units: int, end: float) -> None:
        """Add a running job to the outstanding work and time of a limited credential.

        Args:
            counter: the number of the limited credential.
            number: the job's number.
            end: the job's latest end, s.
        """
        if counter in self._running:
            self._running[counter][number] = (units, end)
            self._rooms.clear()

    def ended(self, counter: int, number: int) -> None:
        """Remove a job from the outstanding work and time of a limited credential.

        ``counter`` is the number of the limited credential, ``number`` the job's number.
        """
        if counter in self._running:
            self._running[counter].pop(number, None)
            self._rooms.clear()

    def of(self, counter: int, metric: int, now: float) -> float:
        """Return the outstanding work or time of the running jobs of a limited credential.

        ``metric`` 0 gives the work in units x s, ``metric`` 1 the time in s. ``counter`` is the number of the
        credential.
        """
        left = [(units, max(end - now, 0.0)) for units, end in self._running.get(counter, {}).values()]
        return fsum(time if metric else units * time for units, time in left)

    def _usage(self, now: float) -> tuple[Floats, Floats]:
        """Return the outstanding work (units x s) and time (s) of each limited credential.

        The arrays are indexed by the number of the limited credential.
        """
        every = [(at, *job) for at, jobs in self._running.items() for job in jobs.values()]
        counters, units, ends = np.array(every, dtype=np.float64).reshape(-1, 3).T
        left, size = np.maximum(ends - now, 0.0), max(self._running, default=0) + 1
        work, time = (np.bincount(counters.astype(np.int64), of, size) for of in (units * left, left))
        return work.astype(np.float64), time.astype(np.float64)

    def rooms(self, now: float, level: int) -> tuple[Floats, Floats]:
        """Return the outstanding work and time that limits let a new job add.

        Args:
            level: 0 for soft limits, 1 for hard limits.

        Returns:
            The work (units x s) and the time (s), by combination of credentials.
        """
        found = self._rooms.get((now, level))
        if found is None:
            found = (np.full(self._codes, inf), np.full(self._codes, inf))
            for usage, slots, least in zip(self._usage(now), self._slots, found, strict=True):
                for limit, counters in zip(slots.limits[level], slots.counters, strict=True):
                    room = limit[: self._codes] - usage[counters[: self._codes]]
                    np.minimum(least, room, out=least)
            self._rooms = {key: rooms for key, rooms in self._rooms.items() if key[0] == now}
            self._rooms[now, level] = found
        return found

    def allowed(self, size: Ints, walltime: Floats, code: Ints, now: float, level: int) -> Bools:
        """Return for each job whether MAXPS and MAXWC allow it to start.

        ``level`` is 0 for soft limits and 1 for hard limits. The arrays have one entry per job.
        """
        work, time = self.rooms(now, level)
        may: Bools = np.ones(len(size), dtype=np.bool_)
        if self._slots[0].counters:
            may &= size * walltime <= work[code]
        if self._slots[1].counters:
            may &= walltime <= time[code]
        return may

    def next_room(self, size: Ints, walltime: Floats, code: Ints, now: float) -> float:
        """Return when (s) the hard limits on outstanding work first let a job start.

        The arrays describe jobs that these limits block now. Return inf if the time is unknown.
        """
        late = np.flatnonzero(~self.allowed(size, walltime, code, now, 1))
        if not len(late):
            return inf
        size, walltime, code = size[late], walltime[late], code[late]
        usages = self._usage(now)
        rates = (np.zeros(len(usages[0])), np.zeros(len(usages[0])))
        for at, jobs in self._running.items():
            rates[0][at], rates[1][at] = sum(units for units, _ in jobs.values()), len(jobs)
        later: Floats = np.zeros(len(size))
        for usage, rate, slots, need in zip(usages, rates, self._slots, (size * walltime, walltime), strict=True):
            for limit, counter in zip(slots.limits[1], slots.counters, strict=True):
                mine = counter[code]
                excess = usage[mine] + need - limit[code]
                with np.errstate(divide="ignore", invalid="ignore"):
                    wait = np.where(excess > 0.0, excess / rate[mine], 0.0)
                np.maximum(later, wait, out=later)
        later = later[later > 0.0]
        return now + float(later.min()) if len(later) else inf
