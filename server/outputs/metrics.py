"""Metrics of a run, computed from its jobs."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import fsum, inf
from typing import Any, Final, Protocol

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.resources.amounts import MILLI
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.fragmentation_book import Fragmentation
from pipistrelle.server.outputs.reliability_book import (
    PreemptionSummary,
    ReliabilitySummary,
)
from pipistrelle.server.outputs.resource_book import ResourceFigures
from pipistrelle.server.setup.recorded import RecordedFigures
from pipistrelle.traces.workload import Floats

#: threshold of the bounded slowdown (s); Feitelson et al., "Theory and practice in parallel job scheduling", 1997
TAU: Final = 10.0
_AT_ONCE: Final = 1 << 15


class Summary(Struct, frozen=True, kw_only=True):
    """Figures of a run; times in simulated seconds, means over jobs that ran.

    A job with several attempts counts once: its wait and execution time are sums over all attempts. ``makespan`` is the
    end of the last job. ``utilisation`` is the share of unit-seconds that jobs held, from the first submission to the
    last end. ``bounded_slowdown`` is max(1, (wait + execution time) / max(execution time, 10 s)). ``slowdown`` is (wait
    + execution time) / execution time, or 1 without execution time. A mean over no jobs is None.

    If the run ended at its ``horizon`` (s), unfinished jobs are ``running_at_end`` or ``waiting_at_end``.
    ``utilisation`` and ``computing`` then include running jobs up to the horizon.
    """

    reason: EndReason
    message: str
    jobs: int
    completed: int
    killed_at_walltime: int
    killed: int
    rejected: int
    unfinished: int
    dropped: dict[str, int]
    makespan: float
    utilisation: float | None
    mean_wait: float | None
    median_wait: float | None
    p95_wait: float | None
    max_wait: float | None
    mean_turnaround: float | None
    max_turnaround: float | None
    mean_slowdown: float | None
    max_slowdown: float | None
    mean_bounded_slowdown: float | None
    max_bounded_slowdown: float | None
    units: int
    #: unit-seconds that jobs held
    computing: float
    #: None unless nodes can fail
    reliability: ReliabilitySummary | None = None
    horizon: float | UnsetType = UNSET
    running_at_end: int | UnsetType = UNSET
    waiting_at_end: int | UnsetType = UNSET
    #: set if jobs request nodes of a machine with GPUs
    fragmentation: Fragmentation | UnsetType = UNSET
    #: jobs cancelled while queued; set if jobs can be cancelled
    cancelled: int | UnsetType = UNSET
    #: set if the scheduler asks for recorded starts
    recorded: RecordedFigures | UnsetType = UNSET
    #: set if the scheduler may preempt
    preemption: PreemptionSummary | UnsetType = UNSET
    #: set if the machine's nodes have resources; ``utilisation`` and ``computing`` are then of cores
    resources: dict[str, ResourceFigures] | UnsetType = UNSET


class FiguresBook(Protocol):
    """An object that collects the values for one field of `Summary` during a run."""

    def summary(self) -> Any:
        """Return the values collected so far."""


class Metrics(Kept, Observer):
    """The observer that collects each job's wait, execution time and unit-seconds.

    Args:
        jobs: expected number of jobs; memory for them is allocated at the start.
        shared: whether several jobs may share a unit; utilisation is then not computed.
        books: {field of `Summary`: object that gathers the field's figures}.
        cores: the machine's cores, if its nodes have resources; ``utilisation`` and ``computing`` are then of cores.
    """

    _kept = (
        *("submitted_jobs", "_states", "_units", "_first_submit", "_last_end", "_waits", "_runs", "_busy"),
        "_earlier",
    )

    def __init__(
        self,
        dropped: dict[str, int] | None = None,
        jobs: int = 0,
        *,
        shared: bool = False,
        cancels: bool = False,
        books: Mapping[str, FiguresBook] | None = None,
        cores: float | None = None,
    ) -> None:
        self._cores = cores
        self._dropped = dict(dropped or {})
        self._books = books or {}
        self._cancels = cancels
        self._shared = shared
        self._waits = _roomy(jobs)
        self._runs = _roomy(jobs)
        self._busy = _roomy(jobs)
        #: {id of the first attempt: (wait, execution time) so far (s)}, for requeued jobs
        self._earlier: dict[str, tuple[float, float]] = {}
        self.submitted_jobs = 0
        self._states: dict[str, int] = {}
        self._units = 0
        self._first_submit: float | None = None
        self._last_end = 0.0
        self._reason: EndReason = "error"
        self._message = ""
        self._end = 0.0

    @property
    def ended_jobs(self) -> int:
        """Number of jobs in a final state; a job with several attempts counts once."""
        return sum(self._states.values())

    def begins(self, now: float, units: int) -> None:
        """Store the machine's number of units."""
        self._units = units

    def submitted(self, now: float, job: Job) -> None:
        """Count a submitted job, and store the first submit time."""
        if job.attempt is not None and job.attempt.number:
            return
        self.submitted_jobs += 1
        if self._first_submit is None:
            self._first_submit = now

    def ended(self, now: float, job: Job) -> None:
        """Store the wait, execution time and unit-seconds of a job that has ended."""
        attempt, state, start = job.attempt, job.state, job.start
        if state in NEVER_RAN:
            self._states[state] = self._states.get(state, 0) + 1
            if attempt is not None:
                self._earlier.pop(attempt.root, None)
            return
        wait, execution = start - job.submit, job.end - start
        self._busy.append(execution * (job.alloc.count if job.taken is None else held_units(job)))
        self._last_end = job.end
        if attempt is not None and (attempt.number or attempt.retried):
            waited, executed = self._earlier.pop(attempt.root, (0.0, 0.0))
            wait, execution = waited + wait, executed + execution
            if attempt.retried:
                self._earlier[attempt.root] = (wait, execution)
                return
        self._states[state] = self._states.get(state, 0) + 1
        self._waits.append(wait)
        self._runs.append(execution)

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Store when and why the run ended."""
        self._end, self._reason, self._message = now, reason, message

    def summary(self, running: Iterable[Job] = ()) -> Summary:
        """Return the figures so far.

        Sums are exact (fsum), so the job order does not matter. ``running`` jobs count if the run ended at a horizon.
        """
        waits, runs = np.array(self._waits), np.frombuffer(self._runs)
        count = len(waits)
        turnarounds = _Figures(waits, runs, np.add)
        slowdowns = _Figures(waits, runs, _slowdowns)
        bounded = _Figures(waits, runs, _bounded_slowdowns)
        mean_wait = _Figures(waits, runs, lambda waits, _: waits).mean
        waits.sort()
        states = self._states
        ended = sum(states.values())
        cut = [(self._end - job.start) * held_units(job) for job in running] if self._reason == "horizon" else []
        computing = fsum(chain(self._busy, cut))
        unfinished = self.submitted_jobs - ended
        horizon = self._end if self._reason == "horizon" else UNSET
        span = (self._last_end if horizon is UNSET else horizon) - (self._first_submit or 0.0)
        whole = self._units if self._cores is None else self._cores
        return Summary(
            reason=self._reason,
            message=self._message,
            jobs=self.submitted_jobs,
            completed=states.get("COMPLETED_SUCCESSFULLY", 0) + states.get("COMPLETED_FAILED", 0),
            killed_at_walltime=states.get("COMPLETED_WALLTIME_REACHED", 0),
            killed=states.get("COMPLETED_KILLED", 0),
            rejected=states.get("REJECTED", 0),
            unfinished=unfinished,
            dropped=self._dropped,
            makespan=self._last_end,
            utilisation=computing / (whole * span) if (count or cut) and span > 0 and not self._shared else None,
            mean_wait=mean_wait,
            median_wait=quantile(waits, 0.5),
            p95_wait=quantile(waits, 0.95),
            max_wait=quantile(waits, 1.0),
            mean_turnaround=turnarounds.mean,
            max_turnaround=turnarounds.largest,
            mean_slowdown=slowdowns.mean,
            max_slowdown=slowdowns.largest,
            mean_bounded_slowdown=bounded.mean,
            max_bounded_slowdown=bounded.largest,
            units=self._units,
            computing=computing,
            cancelled=states.get("CANCELLED", 0) if self._cancels else UNSET,
            horizon=horizon,
            running_at_end=UNSET if horizon is UNSET else len(cut),
            waiting_at_end=UNSET if horizon is UNSET else unfinished - len(cut),
            **{name: book.summary() for name, book in self._books.items()},
        )


def held_units(job: Job) -> float:
    """Return how many units a started job holds.

    On nodes with resources, this is the number of its cores.
    """
    return job.alloc.count if job.taken is None else job.taken.cores / MILLI


class _Figures:
    """The mean and maximum of a function of waits and run times.

    They are computed batch by batch.
    """

    def __init__(self, waits: Floats, runs: Floats, of: Callable[[Floats, Floats], Floats]) -> None:
        self._largest = -inf
        total = fsum(chain.from_iterable(self._parts(waits, runs, of)))
        self.mean = total / len(waits) if len(waits) else None
        self.largest = self._largest if len(waits) else None

    def _parts(self, waits: Floats, runs: Floats, of: Callable[[Floats, Floats], Floats]) -> Iterator[list[float]]:
        for begin in range(0, len(waits), _AT_ONCE):
            with np.errstate(over="ignore"):  # an overflow gives inf without a warning, as with Python's floats
                some = of(waits[begin : begin + _AT_ONCE], runs[begin : begin + _AT_ONCE]).tolist()
            self._largest = max(self._largest, *some)
            yield some


def _slowdowns(waits: Floats, runs: Floats) -> Floats:
    return np.divide(waits + runs, runs, out=np.ones_like(runs), where=runs > 0)


def _bounded_slowdowns(waits: Floats, runs: Floats) -> Floats:
    bounded: Floats = np.maximum(1.0, (waits + runs) / np.maximum(runs, TAU))
    return bounded


def _roomy(size: int) -> "array[float]":
    """Return an empty array with memory allocated for ``size`` doubles."""
    room = array("d", bytes(8 * size))
    while room:  # deleting more at once would free the memory
        del room[-8:]
    return room


def quantile(ordered: Sequence[float] | Floats, share: float) -> float | None:
    """Return a quantile by linear interpolation (numpy's type 7); None if empty."""
    if not len(ordered):
        return None
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    first, second = float(ordered[low]), float(ordered[high])
    return first + (place - low) * (second - first)
