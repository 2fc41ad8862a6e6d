"""Find and explain the worst-served jobs: longest waits and largest slowdowns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import legible
from pipistrelle.reports.explain.explanation import Explanation, account, explain
from pipistrelle.reports.explain.index import kept_index, open_index
from pipistrelle.reports.explain.words import WORDS
from pipistrelle.reports.page.rows import REJECTED, RUNNING, AttemptRows, Decided
from pipistrelle.runs.folders.files import JobLine, MachineStates, RunFiles
from pipistrelle.runs.folders.tables import OutputTables, numbers
from pipistrelle.server.outputs.metrics import TAU

#: number of jobs shown for each measure (wait, slowdown)
WORST: Final = 10
_LONGEST: Final = 600
_MOST_STRETCHES: Final = 8


def worst_served(
    folder: Path,
    config: dict[str, Any],
    summary: dict[str, Any] | None,
    rows: AttemptRows,
    decided: Decided,
    tables: OutputTables,
    *,
    repeat: bool,
    trust: bool,
) -> dict[str, Any]:
    """Explain the jobs with the longest waits and those with the largest slowdowns.

    The explanations come from the index that `pipistrelle explain` has saved. If there is none, they come from the
    outputs alone, or from a repetition of the run.

    Args:
        repeat: whether the run may be repeated.
        trust: whether Python code that the folder names as the scheduler may run.

    Returns:
        The jobs and their explanations, as JSON values for the page.

    Raises:
        PipistrelleError: the run cannot be repeated.
    """
    ended = rows.ended[rows.last]
    execution = rows.by_job(rows.end - rows.start)
    wait = np.where(ended, rows.by_job(rows.start - rows.submit), 0.0)
    bounded = (wait + execution) / np.maximum(execution, TAU)
    places: dict[str, int] = {}
    chosen = []
    for measure in (wait, np.where(wait > 0, bounded, 0.0)):
        some = [job for job in np.argsort(-measure, kind="stable")[:WORST].tolist() if wait[job] > 0]
        chosen.append([rows.jobs[job] for job in some])
        places |= dict(zip(chosen[-1], some, strict=True))
    longest, slowest = chosen
    names = list(dict.fromkeys([*longest, *slowest]))
    found: dict[str, Any] = {"by_wait": longest, "by_slowdown": slowest, "how": None, "jobs": []}
    if not names:
        return found
    index = kept_index(folder)
    if index is None and repeat:
        index = open_index(folder, repeat=True, wanted=lambda name, _: name in names, trust=trust)
    if index is not None and index.not_replayed is None:
        answers = [account(index, name, None)[0] for name in names]
        found["how"] = "repeated"
    else:
        outputs = _Outputs(
            RunFiles(folder, config, summary, {}, {}, decided.rejections(), {}, _states(tables), 0.0),
            rows,
            decided,
        )
        answers = [outputs.explain(places[name]) for name in names]
        found["how"] = "outputs"
        found["why_not"] = None if index is None else index.not_replayed
    found["jobs"] = [{"place": places[one.job], **_told(one)} for one in answers]
    return found


def _told(one: Explanation) -> dict[str, Any]:
    """Return the parts of an explanation of a job's wait that the page shows.

    They are JSON values.
    """
    return {
        "job": one.job,
        "answer": legible(one.answer, _LONGEST),
        "why": one.why,
        "limits": {WORDS[limit]: seconds for limit, seconds in one.limits.items()},
        "passed_by": len(one.passed_by),
        "delayed_by": sum(passing.may_delay for passing in one.passed_by),
        "holders": [[holder.job, holder.size, holder.held] for holder in one.holders[:_MOST_STRETCHES]],
        "remarks": [legible(text, _LONGEST) for text in one.remarks],
    }


def _states(tables: OutputTables) -> MachineStates:
    table = tables.columns("machine_states", "time", "nb_idle")
    times = numbers(table["time"])
    down = numbers(table["nb_down"]) if "nb_down" in table else np.zeros(len(times))
    return MachineStates(times, numbers(table["nb_idle"]), down)


class _Outputs:
    """The outputs of a run.

    `explain` derives from them why a job waited, without repeating the run.
    """

    def __init__(self, files: RunFiles, rows: AttemptRows, decided: Decided) -> None:
        self._rows = rows
        self._counts = ~rows.state.equal(RUNNING)
        #: {row: attempt read so far}, because jobs with long waits share many attempts
        self._known: dict[int, JobLine] = {}
        reliability = files.config.get("reliability")
        back = isinstance(reliability, dict) and reliability.get("requeue") == "original"
        first = np.searchsorted(rows.job, rows.job) if back else np.arange(len(rows.names))
        #: the submit time that counts in the queue, per attempt
        self._queued = rows.submit[first]
        times = files.states.times
        self._files = replace(files, until=max(decided.until, float(times[-1]) if len(times) else 0.0))

    def explain(self, job: int) -> Explanation:
        """Explain a job's wait from the outputs alone.

        ``job`` is the job's index in the run.
        """
        rows = self._rows
        place = int(np.searchsorted(rows.job, job))
        begin, end = float(rows.submit[place]), float(rows.start[place])
        near = np.flatnonzero(self._counts & (rows.submit <= end) & (rows.end >= begin)).tolist()
        # Attempts of a job are adjacent and sorted by number.
        again = [place] if rows.identical else np.flatnonzero(rows.job == job).tolist()
        wanted = np.array(sorted({*near, *again}), dtype=np.int64)
        fresh = [row for row in wanted.tolist() if row not in self._known]
        self._known.update(zip(fresh, self._lines(np.array(fresh, dtype=np.int64)), strict=True))
        lines = {(line := self._known[row]).id: line for row in wanted.tolist()}
        whys = {name: why for name, why in zip(lines, rows.why.take(wanted), strict=True) if why}
        return explain(replace(self._files, jobs=lines, whys=whys), self._known[place], None)

    def _lines(self, wanted: NDArray[np.int64]) -> Iterator[JobLine]:
        """Yield the attempts at the indices ``wanted`` in the form that `explain` needs."""
        rows = self._rows
        numbers = (rows.size, rows.submit, self._queued, rows.walltime, rows.began, rows.end)
        texts = (rows.names, rows.state, rows.metadata)
        columns = [*(column.take(wanted) for column in texts), *(column[wanted].tolist() for column in numbers)]
        for name, state, metadata, size, submit, queued, walltime, start, end in zip(*columns, strict=True):
            refused = state == REJECTED
            yield JobLine(
                name,
                size,
                submit,
                queued,
                walltime if walltime >= 0 else None,
                state,
                None if refused else start,
                None if refused else end,
                metadata,
            )
