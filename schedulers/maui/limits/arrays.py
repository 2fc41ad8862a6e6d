"""Which waiting jobs the limits of Maui allow, kept up to date job by job, so that a deep queue costs little.

Of the limits of jobs, units and nodes only a start or an end changes anything, and only for the jobs that share a
limited credential with that job: they alone are looked at again.
"""

from collections.abc import Sequence
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.maui.waiting import Bools, Floats, Ints, MauiQueue

Rows = NDArray[np.intp]
_ROOM: Final = 16
#: more units than any job has, and fewer than an empty row
_UNLIMITED: Final = 2.0**53
JOB, UNITS, NODES = range(3)


class GrowingInts:
    """Whole numbers that are appended one by one, as an array."""

    __slots__ = ("_count", "_room")

    def __init__(self) -> None:
        self._room: Ints = np.empty(_ROOM, dtype=np.int64)
        self._count = 0

    def append(self, number: int) -> None:
        """Append one."""
        if self._count == len(self._room):
            self._room = np.concatenate([self._room, self._room])
        self._room[self._count] = number
        self._count += 1

    def clear(self) -> None:
        """Forget all."""
        self._count = 0

    def array(self) -> Ints:
        """Return them; good until the next change."""
        return self._room[: self._count]


class Slots:
    """Numbers of the counters that each combination of credentials is subject to, with a limit each.

    A table: a line a limit, as many as the combination with the most has, a column a combination. Counter 0 is that of
    nobody, with endless room.
    """

    def __init__(self) -> None:
        self.counters: list[Ints] = []
        self.metrics: list[Ints] = []
        #: soft and hard
        self.limits: tuple[list[Floats], list[Floats]] = ([], [])
        self._codes = 0

    def add(self, code: int, entries: Sequence[tuple[int, int, float, float]]) -> None:
        """Add a combination: (counter, metric, soft, hard) of each of its limits."""
        if code >= self._codes:
            more = max(code + 1 - self._codes, self._codes, _ROOM)
            self._codes += more
            for lines in (self.counters, self.metrics):
                lines[:] = [np.concatenate([line, np.zeros(more, dtype=np.int64)]) for line in lines]
            for levels in self.limits:
                levels[:] = [np.concatenate([line, np.full(more, inf)]) for line in levels]
        while len(self.counters) < len(entries):
            self.counters.append(np.zeros(self._codes, dtype=np.int64))
            self.metrics.append(np.zeros(self._codes, dtype=np.int64))
            for levels in self.limits:
                levels.append(np.full(self._codes, inf))
        for line, (counter, metric, soft, hard) in enumerate(entries):
            self.counters[line][code], self.metrics[line][code] = counter, metric
            self.limits[0][line][code], self.limits[1][line][code] = soft, hard


class AllowedRows:
    """Which rows of a queue may start by the limits of jobs, units and nodes that run, for soft and for hard limits.

    Parameters
    ----------
    units_per_node
        a job of n units has n / units_per_node nodes, rounded up.
    two_levels
        whether soft and hard limits differ.
    """

    def __init__(self, units_per_node: int, *, two_levels: bool) -> None:
        self._units_per_node = units_per_node
        self._levels = (0, 1) if two_levels else (1,)
        self._slots = Slots()
        #: of each counter its combinations, and its rows of the queue
        self._codes_of: list[GrowingInts] = [GrowingInts()]
        self._rows_of: list[GrowingInts] = [GrowingInts()]
        self._with_rows: set[int] = set()
        self._counters_of: list[tuple[int, ...]] = []
        self._usage: Floats = np.zeros((3, _ROOM))
        #: how many units the largest job may have now, for each combination; -1 for none at all
        self._largest = [np.full(_ROOM, _UNLIMITED), np.full(_ROOM, _UNLIMITED)]
        self._allowed: list[Bools] = [np.zeros(0, dtype=np.bool_)] * 2
        self._generation = -1
        self._rows = 0
        self._dirty: set[int] = set()

    def add_code(self, code: int, entries: Sequence[tuple[int, int, float, float]]) -> None:
        """Add a combination, the next: (counter from 1, metric, soft, hard) of each of its limits."""
        self._slots.add(code, entries)
        counters = tuple(dict.fromkeys(counter for counter, *_ in entries))
        for counter in counters:
            while counter >= len(self._codes_of):
                self._codes_of.append(GrowingInts())
                self._rows_of.append(GrowingInts())
            self._codes_of[counter].append(code)
        if len(self._codes_of) > self._usage.shape[1]:
            self._usage = np.pad(self._usage, ((0, 0), (0, len(self._codes_of))))
        if code >= len(self._largest[0]):
            self._largest = [np.concatenate([line, np.full(code, _UNLIMITED)]) for line in self._largest]
        self._counters_of.append(counters)
        self._refresh_codes(np.array([code]))

    def set_usage(self, counter: int, jobs: int, units: int, nodes: int) -> None:
        """Take note of what the running jobs of a counter have."""
        if counter < len(self._codes_of):  # others limit nothing that is looked at here
            self._usage[:, counter] = (jobs, units, nodes)
            self._dirty.add(counter)

    def follow(self, queue: MauiQueue) -> None:
        """Bring everything up to date."""
        fresh = slice(self._rows, queue.rows)
        if queue.generation != self._generation:
            self._generation, fresh = queue.generation, slice(0, queue.rows)
            for counter in self._with_rows:
                self._rows_of[counter].clear()
            self._with_rows.clear()
            self._rows = 0
        if queue.rows > len(self._allowed[0]):
            made = [np.zeros(2 * queue.rows, dtype=np.bool_) for _ in range(2)]
            for new, old in zip(made, self._allowed, strict=True):
                new[: self._rows] = old[: self._rows]
            self._allowed = made
        if fresh.start < fresh.stop:
            for row, code in enumerate(queue.code[fresh].tolist(), fresh.start):
                for counter in self._counters_of[code]:
                    self._rows_of[counter].append(row)
                    self._with_rows.add(counter)
            self._rows = queue.rows
        if self._dirty:
            self._refresh_dirty(queue)
        if fresh.start < fresh.stop:
            self._refresh_rows(queue, np.arange(fresh.start, fresh.stop))

    def _refresh_dirty(self, queue: MauiQueue) -> None:
        dirty = sorted(self._dirty)
        self._dirty.clear()
        for lists in (self._codes_of, self._rows_of):
            arrays = [lists[counter].array() for counter in dirty]
            changed = np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
            if lists is self._codes_of:
                self._refresh_codes(changed)
            elif len(changed):
                self._refresh_rows(queue, changed)

    def _refresh_codes(self, codes: Ints) -> None:
        for level in self._levels:
            found = np.full(len(codes), _UNLIMITED)
            for line, counters in enumerate(self._slots.counters):
                metrics = self._slots.metrics[line][codes]
                room = self._slots.limits[level][line][codes] - self._usage[metrics, counters[codes]]
                sizes = np.where(metrics == NODES, room * self._units_per_node, room)
                np.minimum(found, np.where(metrics == JOB, np.where(room >= 1, inf, -1.0), sizes), out=found)
            self._largest[level][codes] = np.floor(found)

    def _refresh_rows(self, queue: MauiQueue, rows: Ints) -> None:
        sizes, codes = queue.size[rows], queue.code[rows]
        for level in self._levels:
            self._allowed[level][rows] = sizes <= self._largest[level][codes]

    def allowed(self, queue: MauiQueue, *, hard: bool) -> Bools:
        """Return which rows may start, one value a row, any value in an empty row; not to be changed."""
        self.follow(queue)
        return self._allowed[self._levels[-1] if hard else self._levels[0]][: queue.rows]


class OutstandingRooms:
    """What the limits of outstanding work (MAXPS) and time (MAXWC) leave, which grows as time goes on."""

    def __init__(self) -> None:
        #: of work (0) and of time (1)
        self._slots = (Slots(), Slots())
        self._codes = 0
        #: {counter: {job number: (units, end in seconds)}} of what runs, of the counters that are limited
        self._running: dict[int, dict[int, tuple[int, float]]] = {}
        self._counters = 1
        self._limited: set[int] = set()
        self._changes = 0
        self._flat: tuple[Ints, Floats, Floats] | None = None
        self._rooms: dict[tuple[int, float, int], tuple[Floats, Floats]] = {}

    def add_code(self, code: int, entries: Sequence[tuple[int, int, float, float]]) -> None:
        """Add a combination, the next: (counter from 1, 0 for work or 1 for time, soft, hard) of each of its limits."""
        for metric, slots in enumerate(self._slots):
            mine = [entry for entry in entries if entry[1] == metric]
            if mine or slots.counters:
                slots.add(code, mine)
        self._limited.update(counter for counter, *_ in entries)
        self._counters = max([self._counters, *(counter + 1 for counter, *_ in entries)])
        self._codes = code + 1
        self._changes += 1

    def started(self, counter: int, number: int, units: int, end: float) -> None:
        """Count a job that will have ended by ``end`` (s)."""
        if counter in self._limited:
            self._running.setdefault(counter, {})[number] = (units, end)
            self._changes += 1
            self._flat = None

    def ended(self, counter: int, number: int) -> None:
        """Count a job no more."""
        if counter in self._limited:
            self._running[counter].pop(number, None)
            self._changes += 1
            self._flat = None

    def of(self, counter: int, metric: int, now: float) -> float:
        """Return what a counter has outstanding: units x s (0) or s (1)."""
        left = [(units, max(end - now, 0.0)) for units, end in self._running.get(counter, {}).values()]
        return sum(time if metric else units * time for units, time in left)

    def _usage(self, now: float) -> tuple[Floats, Floats]:
        """Return what each counter has outstanding: units x s, and s."""
        if self._flat is None:
            every = [(at, *job) for at, jobs in self._running.items() for job in jobs.values()]
            table = np.array(every, dtype=np.float64).reshape(-1, 3).T
            self._flat = (table[0].astype(np.int64), table[1], table[2])
        counters, units, ends = self._flat
        left = np.maximum(ends - now, 0.0)
        work: Floats = np.bincount(counters, units * left, minlength=self._counters).astype(np.float64)
        return work, np.bincount(counters, left, minlength=self._counters).astype(np.float64)

    def rooms(self, now: float, level: int) -> tuple[Floats, Floats]:
        """Return how much work (units x s) and time (s) each combination may begin at an instant."""
        key = (self._changes, now, level)
        found = self._rooms.get(key)
        if found is None:
            found = (np.full(self._codes, inf), np.full(self._codes, inf))
            for usage, slots, least in zip(self._usage(now), self._slots, found, strict=True):
                for limit, counters in zip(slots.limits[level], slots.counters, strict=True):
                    room = limit[: self._codes] - usage[counters[: self._codes]]
                    np.minimum(least, room, out=least)
            if any(old[:2] != key[:2] for old in self._rooms):
                self._rooms.clear()
            self._rooms[key] = found
        return found

    def allowed(self, size: Ints, walltime: Floats, code: Ints, now: float, level: int) -> Bools:
        """Return which jobs may start by these limits."""
        work, time = self.rooms(now, level)
        may: Bools = np.ones(len(size), dtype=np.bool_)
        if self._slots[0].counters:
            may &= size * walltime <= work[code]
        if self._slots[1].counters:
            may &= walltime <= time[code]
        return may

    def next_room(self, size: Ints, walltime: Floats, code: Ints, now: float) -> float:
        """Return when (s) the first of these jobs may start by the hard limits, if no job ends before; inf if unknown.

        Jobs that may start now do not count.
        """
        late = np.flatnonzero(~self.allowed(size, walltime, code, now, 1))
        if not len(late):
            return inf
        size, walltime, code = size[late], walltime[late], code[late]
        usages = self._usage(now)
        rates = (np.zeros(self._counters), np.zeros(self._counters))
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
