"""The jobs of a run as columns, which every engine fills and all metrics use."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.resources.amounts import MILLI
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import NEVER_RAN, Job, State
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.fragmentation_book import Fragmentation
from pipistrelle.server.outputs.reliability_book import ReliabilitySummary
from pipistrelle.server.outputs.resource_book import ResourceFigures

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: names of the values of `JobTable.state`; SUBMITTED: queued, or to be requeued
STATES: Final[tuple[State, ...]] = (
    "SUBMITTED",
    "RUNNING",
    "REJECTED",
    "COMPLETED_SUCCESSFULLY",
    "COMPLETED_FAILED",
    "COMPLETED_WALLTIME_REACHED",
    "COMPLETED_KILLED",
    "CANCELLED",
)
_NUMBERS: Final = {name: number for number, name in enumerate(STATES)}
WAITING, RUNNING, REJECTED = _NUMBERS["SUBMITTED"], _NUMBERS["RUNNING"], _NUMBERS["REJECTED"]
CANCELLED: Final = _NUMBERS["CANCELLED"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobTable:
    """The jobs of a run in the order of first submission; times in simulated seconds.

    A job with several attempts is one row. The arrays ``holder`` and ``held_...`` have one element per attempt that
    held units, and the shape (attempts,).

    Attributes:
        submit: time of the first submission, shape (jobs,), as are the following arrays.
        start, end: when the last attempt started and ended. ``end`` of a running job is NaN, and both are NaN for a
            queued job.
        size: requested units.
        walltime: as requested, before any extension; inf: no limit.
        runtime: undisturbed run time; NaN if the job's hosts determine it.
        state: index in `STATES` at the end of the run.
        attempts: number of starts.
        wait, execution: time from submission to start, and from start to end, summed over ended attempts.
        holder: row of the job that held units.
        held_from, held_until: when the job got the units and when it freed them; ``held_until`` is NaN if they were
            still held at the end of the run.
        held_units: number of units held; on shared nodes, number of cores.
        units: size of the machine.
        reason: why the run ended; ``horizon`` means its time limit.
        ended: when the run ended.
        until: the run's time limit; inf: none.
        dropped: number of jobs left out before the run.
        reliability, fragmentation: metrics as in the reference engine's summary; None if not computed.
        resources: {resource of shared nodes: its metrics in the summary}; None on other machines.
        nodes: the set of units that each job's last attempt had; None if not requested.
        ids: id of each job's first attempt, such as ``w0!17``; None if not requested.
        node_seconds: node-seconds of the run: ``all``, ``busy``, ``idle``, ``down`` and ``maintenance``; None if not
            requested.
    """

    submit: Floats
    start: Floats
    end: Floats
    size: Integers
    walltime: Floats
    runtime: Floats
    state: NDArray[np.int8]
    attempts: Integers
    wait: Floats
    execution: Floats
    holder: Integers
    held_from: Floats
    held_until: Floats
    held_units: Integers | Floats
    units: int
    reason: EndReason
    ended: float
    until: float = inf
    dropped: int = 0
    reliability: ReliabilitySummary | None = None
    fragmentation: Fragmentation | None = None
    resources: Mapping[str, ResourceFigures] | None = None
    nodes: tuple[NodeSet, ...] | None = None
    ids: tuple[str, ...] | None = None
    node_seconds: Mapping[str, float] | None = None

    def __len__(self) -> int:
        return self.submit.size


class JobTableBook(Observer):
    """The observer that fills a `JobTable` while the reference engine runs.

    Args:
        with_nodes: record which units each job had.
        with_ids: record the ids of jobs.
    """

    def __init__(self, *, with_nodes: bool = False, with_ids: bool = False) -> None:
        self._with_nodes = with_nodes
        self._ids: list[str] | None = [] if with_ids else None
        self._units = 0
        self._reason: EndReason = "error"
        self._over = 0.0
        #: {id of a first attempt: row} of jobs that have not ended
        self._rows: dict[str, int] = {}
        #: {row: attempt that is queued or running}
        self._live: dict[int, Job] = {}
        self._submit, self._start, self._end = array("d"), array("d"), array("d")
        self._walltime, self._runtime = array("d"), array("d")
        self._wait, self._execution = array("d"), array("d")
        self._size, self._attempts, self._state = array("q"), array("q"), array("b")
        self._nodes: list[NodeSet] = []
        self._holder, self._held_units = array("q"), array("q")
        self._held_from, self._held_until = array("d"), array("d")
        #: whether the held units are thousandths of cores
        self._in_cores = False

    def begins(self, now: float, units: int) -> None:
        """Store the size of the machine."""
        self._units = units

    def submitted(self, now: float, job: Job) -> None:
        """Add a row for the job, unless this is a later attempt of a job in the table."""
        attempt = job.attempt
        if attempt is not None and attempt.number:
            self._live[self._rows[attempt.root]] = job
            return
        row = len(self._submit)
        self._rows[job.id], self._live[row] = row, job
        self._submit.append(job.submit)
        self._start.append(nan)
        self._end.append(nan)
        self._size.append(job.size)
        self._walltime.append(job.walltime if attempt is None else attempt.asked)
        self._runtime.append(job.runtime)
        self._state.append(WAITING)
        self._attempts.append(0)
        self._wait.append(0.0)
        self._execution.append(0.0)
        if self._with_nodes:
            self._nodes.append(NodeSet.EMPTY)
        if self._ids is not None:
            self._ids.append(job.id)

    def ended(self, now: float, job: Job) -> None:
        """Add the times of the ended attempt to the row of its job."""
        attempt = job.attempt
        root = job.id if attempt is None else attempt.root
        retried = attempt is not None and attempt.retried
        row = self._rows[root] if retried else self._rows.pop(root)
        del self._live[row]
        if job.state not in NEVER_RAN:
            self._hold(row, job, job.end)
            self._wait[row] += job.start - job.submit
            self._execution[row] += job.end - job.start
        if not retried:
            self._state[row] = _NUMBERS[job.state]
            self._start[row], self._end[row] = job.start, job.end

    def _hold(self, row: int, job: Job, until: float) -> None:
        self._attempts[row] += 1
        self._holder.append(row)
        self._held_units.append(len(job.alloc) if job.taken is None else job.taken.cores)
        self._in_cores |= job.taken is not None
        self._held_from.append(job.start)
        self._held_until.append(until)
        if self._with_nodes:
            self._nodes[row] = job.alloc

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Store when and why the run ended, and the units that running jobs still hold."""
        self._over, self._reason = now, reason
        for row, job in self._live.items():
            if job.state == "RUNNING":
                self._hold(row, job, nan)
                self._state[row], self._start[row] = RUNNING, job.start

    def table(
        self,
        *,
        until: float = inf,
        dropped: int = 0,
        reliability: ReliabilitySummary | None = None,
        fragmentation: Fragmentation | None = None,
        resources: Mapping[str, ResourceFigures] | None = None,
        node_seconds: Mapping[str, float] | None = None,
    ) -> JobTable:
        """Return the table of all jobs; call this after the run.

        The arguments are copied from the run's summary to the fields of the same names in `JobTable`.
        """
        held = np.array(self._held_units, dtype=np.int64)
        return JobTable(
            submit=np.array(self._submit),
            start=np.array(self._start),
            end=np.array(self._end),
            size=np.array(self._size, dtype=np.int64),
            walltime=np.array(self._walltime),
            runtime=np.array(self._runtime),
            state=np.array(self._state, dtype=np.int8),
            attempts=np.array(self._attempts, dtype=np.int64),
            wait=np.array(self._wait),
            execution=np.array(self._execution),
            holder=np.array(self._holder, dtype=np.int64),
            held_from=np.array(self._held_from),
            held_until=np.array(self._held_until),
            held_units=held / MILLI if self._in_cores else held,
            units=self._units,
            reason=self._reason,
            ended=self._over,
            until=until,
            dropped=dropped,
            reliability=reliability,
            fragmentation=fragmentation,
            resources=resources,
            nodes=tuple(self._nodes) if self._with_nodes else None,
            ids=None if self._ids is None else tuple(self._ids),
            node_seconds=node_seconds,
        )
