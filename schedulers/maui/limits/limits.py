"""Maui's throttling policies: limits per user, group, account, class and QOS.

Source: admin manual of Maui, 6.2, and MPolicyCheckLimit of Maui 3.2: a credential has its own limit, or else DEFAULT's;
all limits of all credentials of a job must hold. Running jobs never exceed a hard limit. They exceed a soft limit only
if nothing else can run.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Final, NamedTuple

from msgspec import Struct

from pipistrelle.schedulers.maui.config.settings import DEFAULT, KINDS, Credential, MauiSettings, Names
from pipistrelle.schedulers.maui.limits.arrays import (
    JOB,
    NODES,
    UNITS,
    AllowedRows,
    Entry,
    OutstandingRooms,
    Rows,
)
from pipistrelle.schedulers.maui.limits.idle import IdleRows
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.waiting import Bools, MauiQueue
from pipistrelle.schedulers.policy.order import Floats

#: kind and name of a credential (SYS: all jobs); kind and name of a second one that the jobs must also have, or None
Counter = tuple[str, str, str | None, str | None]


class _Usage(Struct):
    """The numbers of running jobs, units and nodes that count toward one limit.

    ``number`` identifies the counter, from 1.
    """

    number: int
    running: tuple[int, int, int] = (0, 0, 0)


class _Limit(NamedTuple):
    """A limit that applies to the jobs of a combination of credentials.

    ``said`` is the limit's name in maui.cfg.
    """

    counter: Counter
    metric: str
    soft: float
    hard: float
    said: str

    def at(self, hard: bool) -> float:
        return self.hard if hard else self.soft


_RUNNING: Final = {"JOB": JOB, "PROC": UNITS, "NODE": NODES}
_OUTSTANDING: Final = {"PS": 0, "WC": 1}
#: counter of all jobs together
_SYSTEM: Final[Counter] = ("SYS", "", None, None)
#: limits per job: (field of a credential, metric, name in messages)
_PER_JOB: Final = (
    ("most_nodes_per_job", "NODE", "MAXNODEPERJOB"),
    ("most_units_per_job", "PROC", "MAXPROCPERJOB"),
    ("longest_job", "WC", "MAX.WCLIMIT"),
)
#: {parameter: metric}
_SYSTEM_PER_JOB: Final = {
    "SYSTEMMAXPROCPERJOB": "PROC",
    "SYSTEMMAXPROCSECONDPERJOB": "PS",
    "SYSTEMMAXJOBWALLTIME": "WC",
}


class Blocked(NamedTuple):
    """The limit that holds a job back, with the details that messages show."""

    said: str
    counter: Counter
    limit: float
    usage: float

    def __str__(self) -> str:
        kind, name, per, who = self.counter
        whom = [(kind, name)] if f"[{DEFAULT}]" in self.said else []
        return f"{self.said}={self.limit:g}{_for([*whom, (per, who)])}, in use: {self.usage:g}"


def _parameter(kind: str, name: str) -> str:
    return f"{kind}CFG[{name}]" if name else f"{kind}CFG"


def _for(credentials: Iterable[tuple[str | None, str | None]]) -> str:
    """Format credentials for a message, such as `` (user ann, group g)``.

    Each is (kind, name). A pair without a kind is left out; without any pair the text is empty.
    """
    words = ", ".join(f"{kind.lower()} {name}" for kind, name in credentials if kind is not None)
    return f" ({words})" if words else ""


class Limits:
    """The usage of limited credentials, and the queued jobs that limits let start.

    Args:
        credentials: the combinations of credentials and their numbers.
        units_per_node: a job of n units has n / units_per_node nodes, rounded up.
    """

    def __init__(self, settings: MauiSettings, credentials: Credentials, units_per_node: int = 1) -> None:
        self._settings = settings
        self._credentials = credentials
        self._units_per_node = units_per_node
        #: by combination: limits of running jobs, their counters, and (metric, most, text) of limits that hold even on
        #: an empty machine
        self._limits: list[tuple[_Limit, ...]] = []
        self._counters: list[tuple[Counter, ...]] = []
        self._ceilings: list[tuple[tuple[str, float, str], ...]] = []
        self._usage: dict[Counter, _Usage] = {}
        every = [settings.system, *(found for names in settings.credentials.values() for found in names.values())]
        limits = [limit for credential in every for limit in credential.limits]
        #: whether there are limits of running jobs, and of waiting ones
        self.active = any(limit.metric != "IJOB" for limit in limits)
        self.idle = any(limit.metric == "IJOB" for limit in limits)
        #: whether soft and hard limits differ
        self.two_levels = any(limit.soft != limit.hard for limit in limits)
        #: whether there are limits of outstanding work or time, which shrink as time passes
        self.outstanding = any(limit.metric in ("PS", "WC") for limit in limits)
        self._allowed = AllowedRows(units_per_node, two_levels=self.two_levels)
        self._outstanding = OutstandingRooms()
        self._system = [limit for limit in settings.system.limits if limit.metric in _RUNNING and not limit.per]
        self._idle_rows = IdleRows()

    def _extend(self) -> None:
        for code, names in enumerate(self._credentials.combinations[len(self._limits) :], len(self._limits)):
            every = tuple(self._find(names))
            limits = tuple(limit for limit in every if limit.metric != "IJOB")
            counters = tuple(dict.fromkeys(limit.counter for limit in limits))
            for counter in counters:
                self._usage.setdefault(counter, _Usage(len(self._usage) + 1))
            self._limits.append(limits)
            self._counters.append(counters)
            self._ceilings.append(tuple(self._find_ceilings(names, limits)))
            self._allowed.add_code(code, self._numbered(limits, _RUNNING))
            if self.outstanding:
                self._outstanding.add_code(code, self._numbered(limits, _OUTSTANDING))
            if self.idle:
                waiting = [(limit.counter, limit.soft, limit.hard) for limit in every if limit.metric == "IJOB"]
                self._idle_rows.add_code(waiting)

    def _numbered(self, limits: tuple[_Limit, ...], metrics: Mapping[str, int]) -> list[Entry]:
        """Return the limits on some metrics as (counter, metric, soft limit, hard limit).

        ``metrics`` maps the metrics to their numbers. Limits on all jobs together are left out, except those on
        outstanding work and time.
        """
        return [
            (self._usage[limit.counter].number, metrics[limit.metric], limit.soft, limit.hard)
            for limit in limits
            if limit.metric in metrics and (limit.counter != _SYSTEM or metrics is _OUTSTANDING)
        ]

    def _find_ceilings(self, names: Names, limits: tuple[_Limit, ...]) -> Iterator[tuple[str, float, str]]:
        for kind, name, own, default in self._objects(names):
            for field, metric, what in _PER_JOB:
                for holder, credential in ((name, own), (DEFAULT, default)):
                    most = inf if credential is None else getattr(credential, field)
                    if most < inf:
                        whom = _for([(kind, name)] if holder != name else [])
                        yield metric, most, f"{_parameter(kind, holder)} {what}={most:g}{whom}, the job has"
                        break
        for limit in limits:
            text = f"{Blocked(limit.said, limit.counter, limit.hard, 0)}, the job needs"
            yield limit.metric, limit.hard, text
        for what, metric in _SYSTEM_PER_JOB.items():
            if (most := self._settings.number(what)) >= 0:
                yield metric, most, f"{what}={most:g}, the job has"

    def _find(self, names: Names) -> Iterator[_Limit]:
        who = dict(zip(KINDS, names, strict=True))
        for kind, name, own, default in self._objects(names):
            limits = {
                (limit.metric, limit.per): (holder, limit)
                for holder, credential in ((DEFAULT, default), (name, own))
                if credential is not None
                for limit in credential.limits
            }
            for holder, limit in limits.values():
                if limit.hard != inf and (limit.per is None or who[limit.per] is not None):
                    counter = (kind, name, limit.per, None if limit.per is None else who[limit.per])
                    said = f"{_parameter(kind, holder)} MAX{limit.metric}{f'[{limit.per}]' if limit.per else ''}"
                    yield _Limit(counter, limit.metric, limit.soft, limit.hard, said)

    def _objects(self, names: Names) -> Iterator[tuple[str, str, Credential | None, Credential | None]]:
        yield "SYS", "", self._settings.system, None
        for kind, name in zip(KINDS, names, strict=True):
            if name is not None:
                yield kind, name, self._settings.own(kind, name), self._settings.default(kind)

    def started(self, job: int, size: int, code: int, end: float) -> None:
        """Count a job that starts.

        Args:
            job: the job's number.
            size: its number of processors.
            end: its latest end, s.
        """
        self._extend()
        for number in self._count(size, code, 1):
            self._outstanding.started(number, job, size, end)

    def ended(self, job: int, size: int, code: int) -> None:
        """Stop counting a job that has ended."""
        for number in self._count(size, code, -1):
            self._outstanding.ended(number, job)

    def _count(self, size: int, code: int, sign: int) -> list[int]:
        """Add a job to the counters of its limits (``sign`` 1), or remove it (-1).

        Return the numbers of these counters. Return [] if maui.cfg has no limit on outstanding work or time.
        """
        if not self._counters[code]:
            return []
        usages = {counter: self._usage[counter] for counter in self._counters[code]}
        nodes = self._nodes(size)
        for counter, usage in usages.items():
            jobs_before, units_before, nodes_before = usage.running
            usage.running = (jobs_before + sign, units_before + sign * size, nodes_before + sign * nodes)
            if counter != _SYSTEM:
                self._allowed.set_usage(usage.number, usage.running)
        return [usage.number for usage in usages.values()] if self.outstanding else []

    def _used(self, limit: _Limit, now: float) -> float:
        usage = self._usage[limit.counter]
        if limit.metric in _OUTSTANDING:
            return self._outstanding.of(usage.number, _OUTSTANDING[limit.metric], now)
        return usage.running[_RUNNING[limit.metric]]

    def _nodes(self, units: int) -> int:
        return -(-units // self._units_per_node)

    def _needs(self, size: int, walltime: float) -> dict[str, float]:
        return {"JOB": 1, "PROC": size, "NODE": self._nodes(size), "PS": size * walltime, "WC": walltime}

    def blocked(self, code: int, size: int, walltime: float, now: float, *, hard: bool) -> Blocked | None:
        """Return the first limit that a job with these credentials would exceed.

        Return None if it would exceed none.
        """
        self._extend()
        needs = self._needs(size, walltime)
        for limit in self._limits[code]:
            usage = self._used(limit, now)
            if usage + needs[limit.metric] > limit.at(hard):
                return Blocked(limit.said, limit.counter, limit.at(hard), usage)
        return None

    def never(self, code: int, size: int, walltime: float) -> str | None:
        """Return why a job can never start, even on an empty machine; None if it can."""
        self._extend()
        if not self._ceilings[code]:
            return None
        needs = self._needs(size, walltime)
        return next(
            (f"{text} {needs[metric]:g}" for metric, most, text in self._ceilings[code] if needs[metric] > most), None
        )

    def allowed(self, queue: MauiQueue, now: float, *, hard: bool, rows: Rows | None = None) -> Bools | None:
        """Return for each job whether the limits on running jobs allow it to start.

        Args:
            rows: the rows of the jobs in the queue; None: all rows.

        Returns:
            An array of shape (rows,). None means that all jobs may start.
        """
        if not self.active:
            return None
        self._extend()
        allowed = self._allowed.allowed(queue, hard=hard)
        size, code = queue.size, queue.code
        if rows is not None:
            allowed, size, code = allowed[rows], size[rows], code[rows]
        if self._system:
            allowed = allowed & (size <= self._system_room(hard))
        if self.outstanding:
            walltime = queue.walltime if rows is None else queue.walltime[rows]
            allowed = allowed & self._outstanding.allowed(size, walltime, code, now, int(hard))
        return allowed

    def _system_room(self, hard: bool) -> float:
        """Return the largest job size (units) that the limits on all jobs together allow.

        Return -1 if no job may start.
        """
        usage = self._usage.get(_SYSTEM, _Usage(0))
        room = inf
        for limit in self._system:
            left = (limit.hard if hard else limit.soft) - usage.running[_RUNNING[limit.metric]]
            most = {"JOB": inf if left >= 1 else -1.0, "PROC": left, "NODE": left * self._units_per_node}
            room = min(room, most[limit.metric])
        return min(room, 2.0**53)  # less than an empty row

    def considered(self, queue: MauiQueue, eligible: Bools, ranks: Floats, *, hard: bool, use: str = "") -> Bools:
        """Return for each row of the queue whether MAXIJOB admits its job.

        For each credential, the ``eligible`` rows that rank first are admitted. ``use`` names the caller's purpose. The
        last result is kept per purpose, which makes the next call faster.
        """
        self._extend()
        return self._idle_rows.considered(queue, eligible, ranks, int(hard), use)

    def next_room(self, queue: MauiQueue, rows: Rows, now: float) -> float:
        """Return the first time (s) at which MAXPS and MAXWC let a job of ``rows`` start.

        Outstanding work shrinks while jobs run, so a job may come to fit its limits although no job starts or ends.
        Jobs that may start now do not count. Return inf if the time is unknown.
        """
        self._extend()
        return self._outstanding.next_room(queue.size[rows], queue.walltime[rows], queue.code[rows], now)
