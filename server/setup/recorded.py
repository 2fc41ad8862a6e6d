"""Recorded starts and nodes of jobs, and how closely a run follows them."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from heapq import heappop, heappush
from math import fsum, isnan, nan
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.resources.shared_nodes import shared_nodes_of
from pipistrelle.platforms.topology.nodes import numbers_by_name
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.resources.amounts import CORES, MILLI
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job, LogRecord
from pipistrelle.server.engine.observers import Observer
from pipistrelle.traces.clean import were_cancelled
from pipistrelle.traces.workload import CANCELLED_AFTER, NODE_LIST, Floats, Ints, Workload

#: number of load steps that a search examines first; each further part is twice as long
_STEPS: Final = 1024


def starts_of(workload: Workload) -> Floats:
    """Return each job's recorded start (s), shape (jobs,); NaN if unknown."""
    wait = workload.measures.get("wait")
    if wait is None:
        return np.full(len(workload), nan)
    return np.where((wait >= 0) & ~were_cancelled(workload), workload.submit + wait, nan)


def records_of(workload: Workload, platform: Platform) -> list[LogRecord]:
    """Return each job's recorded start and nodes.

    The nodes are None if the machine lacks one of them. A job that did not fit at its recorded start, or has none, also
    gets the first time at which it fits.
    """
    starts = starts_of(workload)
    cancelled = workload.measures.get(CANCELLED_AFTER)
    if cancelled is not None:  # a cancelled job does not start; its time is when it leaves the queue
        jobs = np.flatnonzero(cancelled < 0)
        told = iter(records_of(_without(workload, jobs), platform))
        gone = (workload.submit + cancelled).tolist()
        return [next(told) if after < 0 else LogRecord(room=gone[row]) for row, after in enumerate(cancelled.tolist())]
    lengths = np.minimum(workload.runtime, workload.walltime)
    sizes, units = _sizes(workload, platform)
    room = {} if np.isnan(lengths).any() else rooms(starts, workload.submit, sizes, lengths, units)
    return [
        LogRecord(None if isnan(start) else start, nodes or None, room.get(row))
        for row, (start, nodes) in enumerate(zip(starts.tolist(), _nodes(workload, platform), strict=True))
    ]


def _sizes(workload: Workload, platform: Platform) -> tuple[Ints, int]:
    """Return each job's size, shape (jobs,), and the machine's size.

    Sizes are in units. If jobs share nodes, sizes are in thousandths of a core.
    """
    nodes = shared_nodes_of(platform.info)
    if nodes is None or workload.requests is None:
        return workload.size, platform.units
    column = nodes.column(CORES)
    assert column is not None
    cores = nodes.amounts[:, column]
    whole = int(cores.min())
    known = {
        one: max(one.cores * MILLI, one.least_nodes * whole if one.exclusive else 0)
        for one in workload.requests
        if one is not None
    }
    sizes = [0 if one is None else known[one] for one in workload.requests]
    return np.array(sizes, dtype=np.int64), int(cores.sum())


def _without(workload: Workload, jobs: NDArray[np.intp]) -> Workload:
    kept = workload.select(jobs)
    return replace(kept, measures={name: column for name, column in kept.measures.items() if name != CANCELLED_AFTER})


def _nodes(workload: Workload, platform: Platform) -> list[str]:
    """Return each job's recorded node numbers, such as ``0-3 8``.

    The text is empty if any node is unknown.
    """
    texts = workload.labels.get(NODE_LIST)
    numbers = {} if texts is None else numbers_by_name(platform)
    if texts is None or not numbers:
        return [""] * len(workload)

    @cache
    def numbered(text: str) -> str:
        names = NodeNames.read(text) if text else None
        found = [] if names is None else [numbers.get(name, -1) for name in names]
        return "" if -1 in found else str(NodeSet.of(found))

    return list(map(numbered, texts))


def rooms(starts: Floats, submits: Floats, sizes: Ints, lengths: Floats, units: int) -> dict[int, float]:
    """Return when (s) jobs that miss their recorded start fit on the machine.

    The result is {row of the job in the workload: time}. It has the jobs that do not fit at their recorded start, or
    have none. Jobs that fit at their recorded start are placed first, ordered by start, then row. Every other job then
    gets the first time at which it fits for its whole length beside all jobs placed before. That time is not before the
    job's recorded start, or its submission if the start is unknown.

    Args:
        starts, submits: recorded starts and submit times (s), shape (jobs,); starts are NaN if unknown.
        sizes, units: units of each job, shape (jobs,), and units of the machine.
        lengths: time that each job holds its units (s), shape (jobs,).
    """
    others = np.flatnonzero(np.isnan(starts)).tolist()
    kept: list[int] = []
    ends: list[tuple[float, int]] = []
    free = units
    known = np.flatnonzero(~np.isnan(starts))
    for row in known[np.argsort(starts[known], kind="stable")].tolist():
        start, size = float(starts[row]), int(sizes[row])
        while ends and ends[0][0] <= start:
            free += heappop(ends)[1]
        if size > free:
            others.append(row)
            continue
        free -= size
        kept.append(row)
        heappush(ends, (start + float(lengths[row]), size))
    if not others:
        return {}
    load = _Load(starts[kept], lengths[kept], sizes[kept])
    since = np.where(np.isnan(starts), submits, starts)
    found: dict[int, float] = {}
    for row in sorted(others, key=lambda row: (float(since[row]), row)):
        size, length = int(sizes[row]), float(lengths[row])
        found[row] = load.first_room(float(since[row]), length, units - size)
        load.add(found[row], length, size)
    return found


class _Load:
    """The number of units that jobs hold, as a function of time."""

    def __init__(self, starts: Floats, lengths: Floats, sizes: Ints) -> None:
        times = np.concatenate([starts, starts + lengths])
        changes = np.concatenate([sizes, -sizes])
        self._times, places = np.unique(times, return_inverse=True)
        self._held = np.cumsum(np.bincount(places, weights=changes, minlength=len(self._times)))

    def first_room(self, since: float, length: float, most: int) -> float:
        """Return the first time (s) from which a job fits for ``length`` s.

        This time is not before ``since``. It fits if all other jobs together hold at most ``most`` units during this
        time.
        """
        time = since
        at = max(int(np.searchsorted(self._times, since, "right")) - 1, 0)
        steps = _STEPS
        while at < len(self._times):
            full = np.flatnonzero(self._held[at : at + steps] > most) + at
            ends = np.append(self._times, np.inf)[full + 1]
            for begin, end in zip(self._times[full].tolist(), ends.tolist(), strict=True):
                if begin >= time + length:
                    return time
                time = max(time, end)
            at, steps = at + steps, 2 * steps
            if at < len(self._times) and self._times[at] >= time + length:
                return time
        return time

    def add(self, start: float, length: float, size: int) -> None:
        """Add a job that holds ``size`` units for ``length`` s."""
        for time in (start, start + length):
            place = int(np.searchsorted(self._times, time))
            if place == len(self._times) or self._times[place] != time:
                before = self._held[place - 1] if place else 0.0
                self._times = np.insert(self._times, place, time)
                self._held = np.insert(self._held, place, before)
        low, high = np.searchsorted(self._times, (start, start + length)).tolist()
        self._held[low:high] += size


class RecordedFigures(Struct, frozen=True, kw_only=True):
    """How closely a run's starts follow the log; only first attempts count.

    Jobs with a recorded start were ``on_time``, ``late`` or ``not_started``; ``unrecorded`` jobs have none. ``no_room``
    counts late jobs whose recorded start would overfill the machine. ``mean_delay`` and ``max_delay`` (s) cover late
    jobs; both are None if no job was late. Of the started jobs with recorded nodes, ``own_nodes`` got exactly these
    nodes and ``other_nodes`` did not. ``unknown_nodes`` counts jobs recorded on nodes that do not exist.
    """

    on_time: int
    late: int
    no_room: int
    not_started: int
    unrecorded: int
    mean_delay: float | None
    max_delay: float | None
    own_nodes: int
    other_nodes: int
    unknown_nodes: int


class RecordedBook(Kept, Observer):
    """The observer that compares the starts and nodes of jobs with the log."""

    _kept = ("_recorded", "_unrecorded", "_on_time", "_delays", "_no_room", "_own", "_other")

    def __init__(self, platform: Platform, workloads: Iterable[Workload]) -> None:
        self._nodes = NodeUnits.told(platform.info.pools)
        self._recorded = self._unrecorded = self._on_time = self._no_room = self._own = self._other = 0
        self._delays = array("d")
        self._unknown = 0
        for workload in workloads:
            known: Sequence[str] = _nodes(workload, platform)
            texts = workload.labels.get(NODE_LIST, ())
            self._unknown += sum(bool(text) for text in texts) - sum(bool(text) for text in known)

    def submitted(self, now: float, job: Job) -> None:
        """Count a submitted job by whether it has a recorded start."""
        if job.attempt is None or not job.attempt.number:
            known = job.recorded is not None and job.recorded.start is not None
            self._recorded += known
            self._unrecorded += not known and isnan(job.cancelled_at)

    def started(self, now: float, job: Job) -> None:
        """Compare a job's start and nodes with the log."""
        told = job.recorded
        if told is None or told.start is None or (job.attempt is not None and job.attempt.number):
            return
        if now == told.start:
            self._on_time += 1
        else:
            self._delays.append(now - told.start)
            self._no_room += told.room is not None
        if told.nodes is not None:
            own = str(self._nodes.nodes_of(job.alloc)) == told.nodes
            self._own += own
            self._other += not own

    def summary(self) -> RecordedFigures:
        """Return how closely the run has followed the log so far."""
        delays = self._delays
        return RecordedFigures(
            on_time=self._on_time,
            late=len(delays),
            no_room=self._no_room,
            not_started=self._recorded - self._on_time - len(delays),
            unrecorded=self._unrecorded,
            mean_delay=fsum(delays) / len(delays) if delays else None,
            max_delay=max(delays, default=None),
            own_nodes=self._own,
            other_nodes=self._other,
            unknown_nodes=self._unknown,
        )
