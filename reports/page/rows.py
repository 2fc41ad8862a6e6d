"""All attempts of a run as columns: ended, rejected, and running at the end."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import legible
from pipistrelle.reports.page.packing import ColumnPack, Ints, intervals
from pipistrelle.runs.folders.cells import TextColumn
from pipistrelle.runs.folders.run_jobs import AGAIN, RunJobs
from pipistrelle.runs.folders.tables import Columns, OutputTables, numbers
from pipistrelle.server.engine.jobs import LABEL_NAMES, NEVER_RAN

Floats = NDArray[np.float64]
RUNNING: Final = "RUNNING"
REJECTED: Final = "REJECTED"
JOB_COLUMNS: Final = (
    *("job_id", "workload_name", "submission_time", "requested_number_of_resources", "requested_time"),
    *("final_state", "starting_time", "finish_time", "allocated_resources", "metadata"),
)
#: maximum characters of a reason or of a job's metadata
_LONGEST: Final = 300


@dataclass(frozen=True, eq=False)
class Decided:
    """The decisions that the server carried out; columns have the shape (decisions,).

    Attributes:
        names: attempts that were started or rejected, in order of decision.
        times: time of each decision (s).
        starts: whether each decision is a start.
        why: the scheduler's reason, "" if it gave no reason.
        until: time of the last decision of any kind (s), 0 without decisions.
    """

    names: TextColumn
    times: Floats
    starts: NDArray[np.bool_]
    alloc: TextColumn
    why: TextColumn
    until: float

    def rejections(self) -> dict[str, float]:
        """Return {attempt: time of its rejection (s)}, in order of time."""
        rows = np.flatnonzero(~self.starts)
        return dict(zip(self.names.take(rows), self.times[rows].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class AttemptRows:
    """Attempts sorted by first submission of the job, job id and number; times in s.

    Shapes are (attempts,), except that ``jobs`` has the shape (jobs,).

    Attributes:
        names: ids of attempts, such as ``w0!17#1``.
        jobs: ids of jobs, without the attempt's number, in the same order.
        job: index of each attempt's job in ``jobs``.
        submit: submit time. The outputs lack the submit time of a running attempt; its start time is used instead.
        start, end: both are the time of rejection if the attempt was rejected. A running attempt ends with the outputs.
        began: start times at full precision, from the decisions; all other times have six decimals.
        size: requested units, or the units held if the attempt still runs.
        walltime: -1 without walltime.
        state: final state, `REJECTED` or `RUNNING`.
        metadata: text that the scheduler attached to the job.
        why: the reason for the start or the rejection.
    """

    names: TextColumn
    jobs: TextColumn
    job: Ints
    submit: Floats
    start: Floats
    end: Floats
    began: Floats
    size: Ints
    walltime: Floats
    state: TextColumn
    alloc: TextColumn
    metadata: TextColumn
    why: TextColumn

    @property
    def identical(self) -> bool:
        """Return whether each job has exactly one attempt."""
        return len(self.jobs) == len(self.names)

    def by_job(self, values: Floats) -> Floats:
        """Return the sum of ``values`` over the attempts of each job, shape (jobs,)."""
        if self.identical:
            return values
        return np.bincount(self.job, weights=values, minlength=len(self.jobs)).astype(np.float64)

    @cached_property
    def ended(self) -> NDArray[np.bool_]:
        """Return whether each attempt ended (not rejected or running), shape (attempts,)."""
        names, codes = self.state.codes()
        return np.array([name not in NEVER_RAN and name != RUNNING for name in names], dtype=np.bool_)[codes]

    @cached_property
    def last(self) -> NDArray[np.intp]:
        """Return the index of each job's last attempt, shape (jobs,)."""
        return np.searchsorted(self.job, np.arange(len(self.jobs)), side="right") - 1

    @property
    def ended_jobs(self) -> NDArray[np.intp]:
        """Return the indices in ``jobs`` of the jobs that ended, in ascending order."""
        return np.flatnonzero(self.ended[self.last])

    def run_jobs(
        self,
        folder: Path,
        config: Mapping[str, Any],
        summary: Mapping[str, Any] | None,
        labels: Mapping[str, TextColumn],
    ) -> RunJobs:
        """Return the jobs of the run for a comparison with other runs.

        ``labels`` is {label: a name per attempt}.
        """
        jobs = self.ended_jobs
        chosen = self.last[jobs]
        first = np.searchsorted(self.job, jobs)
        return RunJobs(
            folder=folder,
            config=config,
            summary=summary,
            ids=list(self.jobs.take(jobs)),
            size=self.size[first],
            submit=self.submit[first],
            start=self.start[first],
            end=self.end[chosen],
            wait=self.by_job(self.start - self.submit)[jobs],
            execution=self.by_job(self.end - self.start)[jobs],
            state=list(self.state.take(chosen)),
            alloc=list(self.alloc.take(chosen)),
            labels={label: list(names.take(chosen)) for label, names in labels.items()},
            rejected=frozenset(self.jobs.take(self.job[self.state.equal(REJECTED)])),
        )

    def packed(self, pack: ColumnPack, labels: Mapping[str, TextColumn]) -> dict[str, Any]:
        """Pack all columns of the attempts; ``labels`` is {label: a name per attempt}."""
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
            # If jobs have as many units as requested, the job's size gives the length of the last interval.
            "length": pack.numbers(lengths[~closing] if as_asked else lengths),
            "as_asked": as_asked,
        }
        if not self.identical:
            found["job"] = pack.numbers(self.job, deltas=True)
        return found


def _apart(later: Floats, earlier: Floats) -> Floats:
    """Return the times ``later`` minus ``earlier`` (s).

    They are rounded to six decimals as in the output files.
    """
    found: Floats = np.rint((later - earlier) * 1e6) / 1e6
    return found


def read_decided(tables: OutputTables) -> Decided:
    """Read the decisions that were carried out, or raise ExplainError."""
    table = tables.columns("decisions", "time", "decision", "job_id", "alloc", "verdict", "why")
    times = numbers(table["time"])
    starts, rejections = (table["decision"].equal(text) for text in ("EXECUTE_JOB", "REJECT_JOB"))
    rows = np.flatnonzero(table["verdict"].equal("carried_out") & (starts | rejections))
    names, alloc, why = (table[name].take(rows) for name in ("job_id", "alloc", "why"))
    return Decided(names, times[rows], starts[rows], alloc, why, float(times[-1]) if len(times) else 0.0)


def read_rows(tables: OutputTables, decided: Decided, until: float) -> AttemptRows:
    """Read the attempts in outputs that end at ``until`` (s), or raise ExplainError."""
    table = tables.columns("jobs", *JOB_COLUMNS)
    names = table["workload_name"].joined(table["job_id"], "!")
    ended = decided.names.places_in(names)
    running = np.flatnonzero(decided.starts & (ended < 0))
    begun, their_alloc = decided.times[running], decided.alloc.take(running)
    counts, first, last = intervals(their_alloc)
    had = np.diff(np.concatenate([[0], np.cumsum(last - first + 1)])[np.concatenate([[0], np.cumsum(counts)])])
    submit = numbers(table["submission_time"])
    start, end = numbers(table["starting_time"]), numbers(table["finish_time"])
    refused = np.flatnonzero(table["starting_time"].lengths == 0)
    rejections = np.flatnonzero(~decided.starts)
    at = names.take(refused).places_in(decided.names.take(rejections))
    when = decided.times[rejections[at]] if len(rejections) else submit[refused]
    start[refused] = end[refused] = np.where(at < 0, submit[refused], np.maximum(when, submit[refused]))
    names = names.behind(decided.names.take(running))
    submit, start = np.concatenate([submit, begun]), np.concatenate([start, begun])
    end = np.concatenate([end, np.full(len(running), until)])
    size = np.concatenate([numbers(table["requested_number_of_resources"]).astype(np.int64), had])
    walltime = np.concatenate([numbers(table["requested_time"]), np.full(len(running), -1.0)])
    state = table["final_state"].behind(TextColumn.of([RUNNING] * len(running)))
    alloc = table["allocated_resources"].behind(their_alloc)
    metadata = table["metadata"].behind(TextColumn.of([""] * len(running)))
    jobs, job, order = _by_job(names, submit)
    names, start = names.take(order), start[order]
    if len(jobs) == len(names):  # names are unique: inverting the first search is cheaper than a second search
        line = np.full(len(names), -1, dtype=np.int64)
        line[ended[ended >= 0]] = np.flatnonzero(ended >= 0)
        line[len(names) - len(running) :] = running
        at = line[order]
    else:
        at = names.places_in(decided.names)
    exact = at >= 0
    exact[exact] = decided.starts[at[exact]]
    began = start.copy()
    began[exact] = decided.times[at[exact]]
    return AttemptRows(
        names,
        jobs,
        job,
        submit[order],
        start,
        end[order],
        began,
        size[order],
        walltime[order],
        state.take(order),
        alloc.take(order),
        _shown(metadata.take(order)),
        _shown(decided.why.take(at)),
    )


def _by_job(names: TextColumn, submit: Floats) -> tuple[TextColumn, Ints, NDArray[np.intp]]:
    """Sort attempts by job.

    Returns:
        The ids of the jobs by submission; and for each sorted attempt the index of its job and its old index.
    """
    if not names.counted(AGAIN).any():
        roots, numbered = names, np.zeros(len(names), dtype=np.int64)
    else:
        parts = [name.partition(AGAIN) for name in names]
        roots = TextColumn.of([root for root, _, _ in parts])
        numbered = np.array(
            [int(digits) if digits.isdecimal() and len(digits) < 16 else 0 for _, _, digits in parts], dtype=np.int64
        )
    last = roots.places_in(roots)
    distinct = at = np.arange(len(last))
    first = submit
    if (last != at).any():
        distinct, at = np.unique(last, return_inverse=True)
        at = at.reshape(-1)
        first = np.full(len(distinct), np.inf)
        np.minimum.at(first, at, submit)
    by_job = np.lexsort((_ranks(roots.take(distinct)), first))
    place = np.empty(len(distinct), dtype=np.int64)
    place[by_job] = np.arange(len(distinct))
    order = np.lexsort((numbered, place[at]))
    return roots.take(distinct[by_job]), place[at][order], order


def _ranks(names: TextColumn) -> Ints:
    """Return a sort key for each job with equal submit times.

    It is the job's id as a number, or its rank as a text.
    """
    flat, begins = names.flat()
    marks = np.flatnonzero(flat == ord("!"))
    if len(marks) == len(names) and (names.counted("!") == 1).all():
        ends = begins + names.lengths
        tails = TextColumn(flat, marks + 1, ends - marks - 1)
        digits = np.concatenate([[0], np.cumsum((flat >= ord("0")) & (flat <= ord("9")))])
        if (digits[ends] - digits[marks + 1] == tails.lengths).all() and (tails.lengths > 0).all():
            read = tails.numbers()
            if read is not None:
                return read[0].astype(np.int64)
    texts = [name.rpartition("!")[2] for name in names]
    if all(text.isdecimal() and len(text) < 16 for text in texts):
        return np.array([int(text) for text in texts], dtype=np.int64)
    return np.argsort(np.argsort(np.array(texts, dtype=object), kind="stable"), kind="stable").astype(np.int64)


def _shown(texts: TextColumn) -> TextColumn:
    """Return texts of a log or scheduler for the page.

    They are cut to a limit, with unprintable characters replaced.
    """
    return texts if texts.plain(_LONGEST) else texts.mapped(lambda text: legible(text, _LONGEST))


def labels_of(tables: OutputTables, rows: AttemptRows) -> dict[str, TextColumn]:
    """Return {label: its value for each attempt} for the labels in the log.

    Unknown values are "".
    """
    table: Columns = tables.perhaps("labels", "job_id", "workload_name", *LABEL_NAMES) or {}
    if not table or not len(table["job_id"]):
        return {}
    lines = rows.jobs.places_in(table["workload_name"].joined(table["job_id"], "!"))[rows.job]
    found = {}
    for label in LABEL_NAMES:
        cells = _shown(table[label])
        if cells.longest:
            found[label] = cells.take(lines)
    return found
