"""Maui's throttling policies: how much of the machine a user, group, account, class or QOS may have at once.

Source: admin manual of Maui, 6.2, and MPolicyCheckLimit of Maui 3.2: a credential has its own limit, or else that of
DEFAULT; all limits of all credentials of a job must hold. Running jobs never exceed a hard limit; a soft one only when
nothing else can run.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.jobs import SchedulerJob
from pipistrelle.schedulers.maui_credentials import Credentials
from pipistrelle.schedulers.maui_queue import Bools, Floats, Ints, MauiQueue
from pipistrelle.schedulers.maui_settings import KINDS, Credential, Limit, MauiSettings, Names

Rows = NDArray[np.intp]
#: which limited thing: kind of credential (or SYS), its name, and within it the kind and name that it is limited per
Counter = tuple[str, str, str | None, str | None]


class _Usage:
    """What the running jobs of one counter have."""

    __slots__ = ("jobs", "nodes", "number", "running", "units")

    def __init__(self, number: int) -> None:
        self.number = number
        self.jobs = 0
        self.units = 0
        self.nodes = 0
        #: {job number: (units, end in seconds)}, for the limits of what is outstanding
        self.running: dict[int, tuple[int, float]] = {}

    def of(self, metric: str, now: float) -> float:
        """Return the usage in a metric at an instant."""
        if metric == "JOB":
            return self.jobs
        if metric == "PROC":
            return self.units
        if metric == "NODE":
            return self.nodes
        left = [(units, max(end - now, 0.0)) for units, end in self.running.values()]
        return sum(units * time for units, time in left) if metric == "PS" else sum(time for _, time in left)


class _Entry(NamedTuple):
    """One limit that a combination of credentials is subject to."""

    counter: Counter
    metric: str
    soft: float
    hard: float

    def limit(self, hard: bool) -> float:
        return self.hard if hard else self.soft


class _Flat:
    """The limits of jobs, units and nodes of all combinations, one after the other, for array operations."""

    def __init__(self, entries: list[tuple[_Entry, ...]], usage: dict[Counter, _Usage]) -> None:
        every = [(code, entry) for code, mine in enumerate(entries) for entry in mine if entry.metric in _METRIC_ROWS]
        self.codes: Ints
        self.starts: Ints
        self.codes, self.starts = np.unique(np.array([code for code, _ in every], dtype=np.int64), return_index=True)
        self.counters: Ints = np.array([usage[entry.counter].number for _, entry in every], dtype=np.int64)
        self.metrics: Ints = np.array([_METRIC_ROWS[entry.metric] for _, entry in every], dtype=np.int64)
        self.limits = [np.array([entry.limit(hard) for _, entry in every]) for hard in (False, True)]
        self.count = len(entries)
        #: usage: a row a metric, a column a counter
        self.usage: Floats = (
            np.array([[found.jobs, found.units, found.nodes] for found in usage.values()], dtype=np.float64)
            .reshape(-1, 3)
            .T.copy()
        )

    def set_usage(self, usage: _Usage) -> None:
        """Take note of a counter's usage; one that the arrays do not have yet is read when they are made anew."""
        if usage.number < self.usage.shape[1]:
            self.usage[:, usage.number] = (usage.jobs, usage.units, usage.nodes)

    def largest(self, hard: bool, units_per_node: int) -> Ints:
        """Return, for each combination, how many units its largest job may have now; -1 for none at all."""
        room = self.limits[hard] - self.usage[self.metrics, self.counters]
        jobs, nodes = self.metrics == 0, self.metrics == 2
        sizes = np.where(jobs, np.where(room >= 1, inf, -1.0), np.where(nodes, room * units_per_node, room))
        found = np.full(self.count, _UNLIMITED, dtype=np.int64)
        if len(sizes):
            smallest = np.minimum.reduceat(np.minimum(sizes, _UNLIMITED), self.starts)
            found[self.codes] = np.floor(smallest).astype(np.int64)
        return found


#: more units than any job has, and fewer than an empty row
_UNLIMITED: Final = 2**53
_METRIC_ROWS: Final = {"JOB": 0, "PROC": 1, "NODE": 2}


class Blocked(NamedTuple):
    """The limit that keeps a job back, for messages."""

    counter: Counter
    metric: str
    limit: float
    usage: float

    def __str__(self) -> str:
        kind, name, per, who = self.counter
        of = f"{kind}CFG[{name}] MAX{self.metric}" if name else f"SYSCFG MAX{self.metric}"
        return f"{of}{f'[{per}:{who}]' if per else ''}={self.limit:g}, in use: {self.usage:g}"


class Limits:
    """Usage of the limited credentials, and which waiting jobs may start.

    Parameters
    ----------
    settings
        the configuration.
    credentials
        the numbers of the combinations of credentials.
    units_per_node
        a job of n units has n / units_per_node nodes, rounded up.
    """

    def __init__(self, settings: MauiSettings, credentials: Credentials, units_per_node: int = 1) -> None:
        self._settings = settings
        self._credentials = credentials
        self._units_per_node = units_per_node
        self._entries: list[tuple[_Entry, ...]] = []
        self._idle: list[tuple[_Entry, ...]] = []
        self._counters: list[tuple[Counter, ...]] = []
        self._most: list[tuple[float, float, float]] = []
        self._usage: dict[Counter, _Usage] = {}
        every = [settings.system, *(found for names in settings.credentials.values() for found in names.values())]
        limits = [limit for credential in every for limit in credential.limits]
        #: whether anything limits running jobs, and whether anything limits waiting ones
        self.active = any(limit.metric != "IJOB" for limit in limits)
        self.idle = any(limit.metric == "IJOB" for limit in limits)
        #: whether soft and hard limits differ
        self.two_levels = any(limit.soft != limit.hard for limit in limits)
        #: whether anything limits what is outstanding, which shrinks as time goes on
        self.outstanding = any(limit.metric in ("PS", "WC") for limit in limits)
        self._flat = _Flat([], {})
        #: whether there are combinations that the arrays do not have yet
        self._stale = False

    def _extend(self) -> None:
        if len(self._entries) == len(self._credentials.combinations):
            return
        for names in self._credentials.combinations[len(self._entries) :]:
            entries = tuple(self._find(names))
            self._entries.append(tuple(entry for entry in entries if entry.metric != "IJOB"))
            self._idle.append(tuple(entry for entry in entries if entry.metric == "IJOB"))
            counters = tuple(dict.fromkeys(entry.counter for entry in self._entries[-1]))
            self._counters.append(counters)
            for counter in counters:
                self._usage.setdefault(counter, _Usage(len(self._usage)))
            self._most.append(self._bounds(names, entries))
            self._stale = True

    def _bounds(self, names: Names, entries: tuple[_Entry, ...]) -> tuple[float, float, float]:
        """Return the most units, seconds and unit x s that a job may have at all; which limit it is, `never` finds."""
        units, seconds, work = (
            most if (most := self._settings.number(name)) >= 0 else inf
            for name in ("SYSTEMMAXPROCPERJOB", "SYSTEMMAXJOBWALLTIME", "SYSTEMMAXPROCSECONDPERJOB")
        )
        for _, _, own, default in self._objects(names):
            for credential in (own, default):
                if credential is not None:
                    nodes = credential.most_nodes_per_job * self._units_per_node
                    units = min(units, nodes, credential.most_units_per_job)
                    seconds = min(seconds, credential.longest_job)
        for entry in entries:
            if entry.metric == "PS":
                work = min(work, entry.hard)
            elif entry.metric == "WC":
                seconds = min(seconds, entry.hard)
            elif entry.metric in ("PROC", "NODE"):
                units = min(units, entry.hard * (self._units_per_node if entry.metric == "NODE" else 1))
        return units, seconds, work

    def _find(self, names: Names) -> Iterator[_Entry]:
        """Yield the limits that a combination of credentials is subject to."""
        who = dict(zip(KINDS, names, strict=True))
        for kind, name, own, default in self._objects(names):
            mine = () if own is None else own.limits
            limits = {(limit.metric, limit.per): limit for limit in (() if default is None else default.limits)}
            limits |= {(limit.metric, limit.per): limit for limit in mine}
            for limit in limits.values():
                if limit.hard != inf and (limit.per is None or who[limit.per] is not None):
                    per_name = None if limit.per is None else who[limit.per]
                    yield self._entry(limit, (kind, name, limit.per, per_name))

    @staticmethod
    def _entry(limit: Limit, counter: Counter) -> _Entry:
        return _Entry(counter, limit.metric, limit.soft, limit.hard)

    def _objects(self, names: Names) -> Iterator[tuple[str, str, Credential | None, Credential | None]]:
        yield "SYS", "", self._settings.system, None
        for kind, name in zip(KINDS, names, strict=True):
            if name is not None:
                yield kind, name, self._settings.own(kind, name), self._settings.default(kind)

    def started(self, job: SchedulerJob, code: int, end: float) -> None:
        """Count a job that starts; ``end`` (s) is when it will have ended at the latest."""
        self._extend()
        for counter in self._counters[code]:
            usage = self._usage[counter]
            usage.jobs += 1
            usage.units += job.size
            usage.nodes += self._nodes(job.size)
            self._flat.set_usage(usage)
            if self.outstanding:
                usage.running[job.number] = (job.size, end)

    def ended(self, job: SchedulerJob, code: int) -> None:
        """Count a job no more."""
        for counter in self._counters[code]:
            usage = self._usage[counter]
            usage.jobs -= 1
            usage.units -= job.size
            usage.nodes -= self._nodes(job.size)
            usage.running.pop(job.number, None)
            self._flat.set_usage(usage)

    def _nodes(self, units: int) -> int:
        return -(-units // self._units_per_node)

    def _need(self, metric: str, size: int, walltime: float) -> float:
        needs = {"JOB": 1, "PROC": size, "NODE": self._nodes(size), "PS": size * walltime, "WC": walltime}
        return needs[metric]

    def blocked(self, code: int, size: int, walltime: float, now: float, *, hard: bool) -> Blocked | None:
        """Return the first limit that a job of these credentials would exceed now, None if it may start."""
        self._extend()
        for entry in self._entries[code]:
            usage = self._usage[entry.counter].of(entry.metric, now)
            limit = entry.limit(hard)
            if usage + self._need(entry.metric, size, walltime) > limit:
                return Blocked(entry.counter, entry.metric, limit, usage)
        return None

    def never(self, names: Names, code: int, size: int, walltime: float) -> str | None:
        """Return why a job may never start, even on an empty machine, None if it may."""
        self._extend()
        most_units, most_seconds, most_work = self._most[code]
        if size <= most_units and walltime <= most_seconds and size * walltime <= most_work:
            return None
        for kind, name, own, default in self._objects(names):
            for attribute, need, what in (
                ("most_nodes_per_job", self._nodes(size), "MAXNODEPERJOB"),
                ("most_units_per_job", size, "MAXPROCPERJOB"),
                ("longest_job", walltime, "MAX.WCLIMIT"),
            ):
                most = inf if own is None else getattr(own, attribute)
                if most == inf and default is not None:
                    most = getattr(default, attribute)
                if need > most:
                    return f"{kind}CFG[{name}] {what}={most:g}, the job has {need:g}"
        for entry in self._entries[code]:
            need = self._need(entry.metric, size, walltime)
            if need > entry.hard:
                return f"{Blocked(entry.counter, entry.metric, entry.hard, 0)}, the job needs {need:g}"
        for what, need in (
            ("SYSTEMMAXPROCPERJOB", size),
            ("SYSTEMMAXPROCSECONDPERJOB", size * walltime),
            ("SYSTEMMAXJOBWALLTIME", walltime),
        ):
            if 0 <= self._settings.number(what) < need:
                return f"{what}={self._settings.number(what):g}, the job has {need:g}"
        return None

    def allowed(self, queue: MauiQueue, now: float, *, hard: bool, rows: Rows | None = None) -> Bools | None:
        """Return which jobs of the queue may start by the limits of running jobs; None if all may.

        One value a row of the queue, or one for each of ``rows``.
        """
        if not self.active:
            return None
        self._extend()
        if self._stale:
            self._flat, self._stale = _Flat(self._entries, self._usage), False
        largest = self._flat.largest(hard, self._units_per_node)
        size, code = (queue.size, queue.code) if rows is None else (queue.size[rows], queue.code[rows])
        may: Bools = size <= largest[code]
        if self.outstanding:
            walltime = queue.walltime if rows is None else queue.walltime[rows]
            units_seconds, seconds = (np.full(len(self._entries), inf) for _ in range(2))
            for combination, entries in enumerate(self._entries):
                for entry in entries:
                    if entry.metric in ("PS", "WC"):
                        room = entry.limit(hard) - self._usage[entry.counter].of(entry.metric, now)
                        rooms = units_seconds if entry.metric == "PS" else seconds
                        rooms[combination] = min(rooms[combination], room)
            may &= size * walltime <= units_seconds[code]
            may &= walltime <= seconds[code]
        return may

    def considered(self, queue: MauiQueue, eligible: Bools, ranks: Floats, *, hard: bool) -> Bools:
        """Return which of the eligible rows are looked at by MAXIJOB: of each credential the first by rank."""
        self._extend()
        limited = np.array([bool(entries) for entries in self._idle])
        rows = np.flatnonzero(eligible & limited[queue.code])
        if not len(rows):
            return eligible
        kept = eligible.copy()
        kept[rows] = False
        # Of each combination the rows in order; the heap has the next row of each combination that is not full yet.
        order = rows[np.lexsort((rows, -ranks[rows], queue.code[rows]))]
        codes, starts = np.unique(queue.code[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        heap = [
            (-float(ranks[order[at]]), int(order[at]), int(code), at, end)
            for code, at, end in zip(codes.tolist(), starts.tolist(), ends, strict=True)
        ]
        heapify(heap)
        idle: dict[Counter, int] = {}
        while heap:
            _, row, code, at, end = heappop(heap)
            entries = self._idle[code]
            if any(idle.get(entry.counter, 0) + 1 > entry.limit(hard) for entry in entries):
                continue
            for entry in entries:
                idle[entry.counter] = idle.get(entry.counter, 0) + 1
            kept[row] = True
            if at + 1 < end:
                following = int(order[at + 1])
                heappush(heap, (-float(ranks[following]), following, code, at + 1, end))
        return kept

    def next_room(self, code: int, size: int, walltime: float, now: float) -> float:
        """Return when (s) a job may start at the earliest by MAXPS and MAXWC, if no job ends before; inf if unknown.

        What is outstanding shrinks while jobs run, so that a limit may leave room without any event.
        """
        later = now
        for entry in self._entries[code]:
            if entry.metric not in ("PS", "WC"):
                continue
            usage = self._usage[entry.counter]
            rate = usage.units if entry.metric == "PS" else usage.jobs
            excess = usage.of(entry.metric, now) + self._need(entry.metric, size, walltime) - entry.hard
            if excess > 0.0:
                later = max(later, now + excess / rate) if rate else inf
        return later if later > now else inf
