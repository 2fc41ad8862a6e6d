"""A run's attempts as columns: those that ended, those that were refused, those that still ran at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import cut, printable
from pipistrelle.server.engine.jobs import LABEL_NAMES, NEVER_RAN
from pipistrelle.studies.page.packing import ColumnPack, Ints, intervals
from pipistrelle.studies.report.run_jobs import AGAIN, RunJobs
from pipistrelle.studies.report.tables import Columns, OutputTables, numbers

Floats = NDArray[np.float64]
RUNNING: Final = "RUNNING"
REJECTED: Final = "REJECTED"
JOB_COLUMNS: Final = (
    *("job_id", "workload_name", "submission_time", "requested_number_of_resources", "requested_time"),
    *("final_state", "starting_time", "finish_time", "allocated_resources", "metadata"),
)
#: characters of a reason or of a job's metadata that are kept
_LONGEST: Final = 300


@dataclass(frozen=True, eq=False)
class Decided:
    """What the decisions that were carried out tell.

    Parameters
    ----------
    started
        {attempt: (when, s; its units)}, in the order of the starts.
    rejected
        {attempt: when, s}.
    why
        {attempt: the reason of the scheduler for the one or the other}, where it gave one.
    until
        when the last decision was taken (s), 0 without any.
    """

    started: Mapping[str, tuple[float, str]]
    rejected: Mapping[str, float]
    why: Mapping[str, str]
    until: float


@dataclass(frozen=True, eq=False)
class AttemptRows:
    """Attempts by their job's first submission, then by its id, then by their number; times in seconds.

    Parameters
    ----------
    names
        ids of the attempts, ``w0!17#1``.
    jobs
        ids of the jobs, without the number of the attempt, in the same order.
    job
        the job of each attempt, by its place in ``jobs``, shape (attempts,).
    submit, start, end
        shape (attempts,). Of one that was rejected the last two are when that was; of one that still ran, the last is
        the end of the outputs, and nothing tells when it was submitted: its start stands there.
    size
        units that it asked for; of one that still ran those that it had, shape (attempts,).
    walltime
        s, -1 without one.
    state
        final states, `REJECTED` or `RUNNING`.
    alloc, metadata, why
        its units; what the scheduler wrote to it; the reason for its start or rejection.
    """

    names: Sequence[str]
    jobs: Sequence[str]
    job: Ints
    submit: Floats
    start: Floats
    end: Floats
    size: Ints
    walltime: Floats
    state: Sequence[str]
    alloc: Sequence[str]
    metadata: Sequence[str]
    why: Sequence[str]

    @property
    def identical(self) -> bool:
        """Whether each job has one attempt."""
        return len(self.jobs) == len(self.names)

    def by_job(self, values: Floats) -> Floats:
        """Return the sums over each job's attempts, shape (jobs,)."""
        if self.identical:
            return values
        return np.bincount(self.job, weights=values, minlength=len(self.jobs)).astype(np.float64)

    @cached_property
    def ended(self) -> NDArray[np.bool_]:
        """Which attempts ended: were neither refused nor still ran, shape (attempts,)."""
        return np.array([state not in NEVER_RAN and state != RUNNING for state in self.state], dtype=np.bool_)

    @cached_property
    def last(self) -> NDArray[np.intp]:
        """Each job's last attempt, shape (jobs,)."""
        return np.searchsorted(self.job, np.arange(len(self.jobs)), side="right") - 1

    @property
    def ended_jobs(self) -> NDArray[np.intp]:
        """The jobs that ended, by their places in ``jobs``, ascending."""
        return np.flatnonzero(self.ended[self.last])

    def run_jobs(
        self,
        folder: Path,
        config: Mapping[str, Any],
        summary: Mapping[str, Any] | None,
        labels: Mapping[str, list[str]],
    ) -> RunJobs:
        """Return the jobs as runs are compared by them; ``labels`` as `packed` has them."""
        jobs = self.ended_jobs
        chosen = self.last[jobs]
        first = np.searchsorted(self.job, jobs)
        rows = chosen.tolist()
        return RunJobs(
            folder=folder,
            config=config,
            summary=summary,
            ids=[self.jobs[job] for job in jobs.tolist()],
            size=self.size[first],
            submit=self.submit[first],
            start=self.start[first],
            end=self.end[chosen],
            wait=self.by_job(self.start - self.submit)[jobs],
            execution=self.by_job(self.end - self.start)[jobs],
            state=[self.state[row] for row in rows],
            alloc=[self.alloc[row] for row in rows],
            labels={label: [names[row] for row in rows] for label, names in labels.items()},
            rejected=frozenset(self.jobs[job] for job in self.job[self._refused].tolist()),
        )

    @property
    def _refused(self) -> NDArray[np.intp]:
        return np.array([row for row, state in enumerate(self.state) if state == REJECTED], dtype=np.intp)

    def packed(self, pack: ColumnPack, labels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return where all of it is in a pack; ``labels`` are names of the jobs, one for each attempt."""
        counts, first, last = intervals(self.alloc)
        behind = np.cumsum(counts)
        begins = np.zeros(len(first), dtype=np.bool_)
        begins[(behind - counts)[counts > 0]] = True
        closing = np.zeros(len(first), dtype=np.bool_)
        closing[behind[counts > 0] - 1] = True
        held = np.diff(np.concatenate([[0], np.cumsum(last - first + 1)])[np.concatenate([[0], behind])])
        as_asked = bool((held[counts > 0] == self.size[counts > 0]).all())
        gaps = first.copy()
        gaps[1:] -= last[:-1] + 2
        lengths = last - first
        found = {
            "rows": len(self.names),
            "jobs": pack.texts(self.jobs),
            "submit": pack.numbers(self.submit, deltas=True),
            "wait": pack.numbers(_apart(self.start, self.submit)),
            "execution": pack.numbers(_apart(self.end, self.start)),
            "size": pack.numbers(self.size),
            "walltime": pack.numbers(self.walltime),
            "state": pack.names(self.state),
            "why": pack.texts(self.why),
            "metadata": pack.texts(self.metadata),
            "labels": {label: pack.names(column) for label, column in labels.items()},
            "intervals": pack.numbers(counts),
            "first": pack.numbers(first[begins]),
            "gap": pack.numbers(gaps[~begins]),
            # The last interval's length follows from the size, where a job has as many units as it asks for.
            "length": pack.numbers(lengths[~closing] if as_asked else lengths),
            "as_asked": as_asked,
        }
        if not self.identical:
            found["job"] = pack.numbers(self.job, deltas=True)
        return found


def _apart(later: Floats, earlier: Floats) -> Floats:
    """Return differences as the outputs' six decimals have them: of doubles they would have noise below."""
    found: Floats = np.rint((later - earlier) * 1e6) / 1e6
    return found


def read_decided(tables: OutputTables) -> Decided:
    """Read what was decided; ExplainError when it cannot be read."""
    table = tables.columns("decisions", "time", "decision", "job_id", "alloc", "verdict", "why")
    times = numbers(table["time"])
    started: dict[str, tuple[float, str]] = {}
    rejected: dict[str, float] = {}
    whys: dict[str, str] = {}
    columns = (table[name] for name in ("decision", "job_id", "alloc", "verdict", "why"))
    for time, decision, job, alloc, verdict, why in zip(times.tolist(), *columns, strict=True):
        if verdict != "carried_out":
            continue
        if decision == "EXECUTE_JOB":
            started[job] = (time, alloc)
        elif decision == "REJECT_JOB":
            rejected[job] = time
        else:
            continue
        if why:
            whys[job] = why
    return Decided(started, rejected, whys, float(times[-1]) if len(times) else 0.0)


def read_rows(tables: OutputTables, decided: Decided, until: float) -> AttemptRows:
    """Read the attempts of a run whose outputs end at ``until`` (s); ExplainError when they cannot be read."""
    table = tables.columns("jobs", *JOB_COLUMNS)
    names = [f"{prefix}!{job}" for prefix, job in zip(table["workload_name"], table["job_id"], strict=True)]
    ended = set(names)
    running = [name for name in decided.started if name not in ended]
    begun = np.array([decided.started[name][0] for name in running]).reshape(len(running))
    their_alloc = [decided.started[name][1] for name in running]
    counts, first, last = intervals(their_alloc)
    had = np.diff(np.concatenate([[0], np.cumsum(last - first + 1)])[np.concatenate([[0], np.cumsum(counts)])])
    submit = numbers(table["submission_time"])
    refused = np.array([not cell for cell in table["starting_time"]], dtype=np.bool_)
    start, end = numbers(table["starting_time"]), numbers(table["finish_time"])
    when = [max(decided.rejected.get(names[row], submit[row]), submit[row]) for row in np.flatnonzero(refused).tolist()]
    start[refused] = end[refused] = when
    names += running
    submit, start = np.concatenate([submit, begun]), np.concatenate([start, begun])
    end = np.concatenate([end, np.full(len(running), until)])
    size = np.concatenate([numbers(table["requested_number_of_resources"]).astype(np.int64), had])
    walltime = np.concatenate([numbers(table["requested_time"]), np.full(len(running), -1.0)])
    state = [*table["final_state"], *([RUNNING] * len(running))]
    alloc, metadata = [*table["allocated_resources"], *their_alloc], [*table["metadata"], *([""] * len(running))]
    jobs, job, order = _by_job(names, submit)
    why = [decided.why.get(name, "") for name in names]
    return AttemptRows(
        [names[row] for row in order],
        jobs,
        job,
        submit[order],
        start[order],
        end[order],
        size[order],
        walltime[order],
        [state[row] for row in order],
        [alloc[row] for row in order],
        _shown([metadata[row] for row in order]),
        _shown([why[row] for row in order]),
    )


def _by_job(names: Sequence[str], submit: Floats) -> tuple[list[str], Ints, list[int]]:
    """Return the jobs in their order, the job of each attempt in that order, and which attempt comes where."""
    roots, numbered = list(names), [0] * len(names)
    for row, name in enumerate(names):
        if AGAIN in name:
            roots[row], _, digits = name.partition(AGAIN)
            numbered[row] = int(digits) if digits.isdecimal() else 0
    places: dict[str, int] = {}
    at = np.array([places.setdefault(root, len(places)) for root in roots], dtype=np.int64).reshape(len(roots))
    distinct = list(places)
    first = np.full(len(distinct), np.inf)
    np.minimum.at(first, at, submit)
    tails = [name.rpartition("!")[2] for name in distinct]
    if all(tail.isdecimal() and len(tail) < 16 for tail in tails):
        rank = np.array([int(tail) for tail in tails], dtype=np.int64)
    else:
        rank = np.argsort(np.argsort(np.array(tails, dtype=object), kind="stable"), kind="stable")
    by_job = np.lexsort((rank, first))
    place = np.empty(len(distinct), dtype=np.int64)
    place[by_job] = np.arange(len(distinct))
    order = np.lexsort((np.array(numbered, dtype=np.int64), place[at]))
    return [distinct[one] for one in by_job.tolist()], place[at][order], order.tolist()


def _shown(texts: Sequence[str]) -> list[str]:
    """Return texts of a log or a scheduler as they may be shown; many of them are alike."""
    known = {text: cut(printable(text), _LONGEST) for text in set(texts)}
    return [known[text] for text in texts]


def labels_of(tables: OutputTables, rows: AttemptRows) -> dict[str, list[str]]:
    """Return {``user``, ``queue``, ...: a name for each attempt, "" where nobody knows}, of what the log tells."""
    table: Columns = tables.perhaps("labels", "job_id", "workload_name", *LABEL_NAMES) or {}
    if not table or not table["job_id"]:
        return {}
    ids = (f"{prefix}!{job}" for prefix, job in zip(table["workload_name"], table["job_id"], strict=True))
    line_of = {name: line for line, name in enumerate(ids)}
    lines = [line_of.get(name, -1) for name in rows.jobs]
    found = {}
    for label in LABEL_NAMES:
        cells = table[label]
        shown = {cell: cut(printable(cell), _LONGEST) for cell in set(cells)}
        if any(shown):
            of_jobs = [shown[cells[line]] if line >= 0 else "" for line in lines]
            found[label] = [of_jobs[job] for job in rows.job.tolist()] if not rows.identical else of_jobs
    return found
