"""The worst-served jobs of a run: those that waited longest and those that were slowed down most, each with why."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from pipistrelle.protocol.base.errors import cut, printable
from pipistrelle.server.outputs.metrics import TAU
from pipistrelle.studies.explain.account import account
from pipistrelle.studies.explain.explanation import Explanation, explain
from pipistrelle.studies.explain.files import JobLine, MachineStates, RunFiles
from pipistrelle.studies.explain.index import kept_index, open_index
from pipistrelle.studies.explain.words import WORDS
from pipistrelle.studies.page.rows import REJECTED, RUNNING, AttemptRows, Decided
from pipistrelle.studies.report.tables import OutputTables, numbers

#: so many by each measure
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
    """Return the worst-served jobs and why they waited.

    What explains them is the index that `pipistrelle explain` has kept, else the outputs alone; with ``repeat`` the run
    is repeated where nothing is kept, as there, with ``trust`` also where Python code decides that the folder names.

    Raises
    ------
    PipistrelleError
        when the run is to be repeated and cannot be.
    """
    ended = rows.ended[rows.last]
    execution = rows.by_job(rows.end - rows.start)
    wait = np.where(ended, rows.by_job(rows.start - rows.submit), 0.0)
    bounded = (wait + execution) / np.maximum(execution, TAU)
    longest, slowest = (
        [rows.jobs[job] for job in np.argsort(-measure, kind="stable")[:WORST].tolist() if wait[job] > 0]
        for measure in (wait, np.where(wait > 0, bounded, 0.0))
    )
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
            RunFiles(folder, config, summary, {}, {}, dict(decided.rejected), {}, _states(tables), 0.0), rows, decided
        )
        answers = [outputs.explain(name) for name in names]
        found["how"] = "outputs"
        found["why_not"] = None if index is None else index.not_replayed
    place = {name: rows.jobs.index(name) for name in names}
    found["jobs"] = [{"place": place[one.job], **_told(one)} for one in answers]
    return found


def _told(one: Explanation) -> dict[str, Any]:
    """Return what the page shows of an explanation."""
    return {
        "job": one.job,
        "answer": cut(printable(one.answer), _LONGEST),
        "why": one.why,
        "limits": {WORDS[limit]: seconds for limit, seconds in one.limits.items()},
        "passed_by": len(one.passed_by),
        "delayed_by": sum(passing.may_delay for passing in one.passed_by),
        "holders": [[holder.job, holder.size, holder.held] for holder in one.holders[:_MOST_STRETCHES]],
        "remarks": [cut(printable(text), _LONGEST) for text in one.remarks],
    }


def _states(tables: OutputTables) -> MachineStates:
    table = tables.columns("machine_states", "time", "nb_idle")
    times = numbers(table["time"])
    down = numbers(table["nb_down"]) if "nb_down" in table else np.zeros(len(times))
    return MachineStates(times, numbers(table["nb_idle"]), down)


class _Outputs:
    """What was read, as `explain` has it: for each job only those that may have to do with its wait."""

    def __init__(self, files: RunFiles, rows: AttemptRows, decided: Decided) -> None:
        self._rows = rows
        self._place = {name: row for row, name in enumerate(rows.names)}
        self._counts = np.array([state != RUNNING for state in rows.state], dtype=np.bool_)
        self._started = {name: time for name, (time, _) in decided.started.items()}
        reliability = files.config.get("reliability")
        back = isinstance(reliability, dict) and reliability.get("requeue") == "original"
        first = np.searchsorted(rows.job, rows.job) if back else np.arange(len(rows.names))
        #: the submit time that counts in the queue
        self._queued = rows.submit[first]
        times = files.states.times
        self._files = replace(files, until=max(decided.until, float(times[-1]) if len(times) else 0.0))

    def explain(self, job: str) -> Explanation:
        """Return why a job waited, from the outputs alone."""
        rows, place = self._rows, self._place[job]
        begin, end = float(rows.submit[place]), float(rows.start[place])
        near = np.flatnonzero(self._counts & (rows.submit <= end) & (rows.end >= begin)).tolist()
        again: list[int] = []
        while (name := f"{job}#{len(again) + 1}") in self._place:
            again.append(self._place[name])
        lines = {rows.names[row]: self._line(row) for row in {*near, *again}}
        whys = {name: rows.why[self._place[name]] for name in lines if rows.why[self._place[name]]}
        return explain(replace(self._files, jobs=lines, starts=self._started, whys=whys), lines[job], None)

    def _line(self, row: int) -> JobLine:
        rows = self._rows
        name, submit, walltime = rows.names[row], float(rows.submit[row]), float(rows.walltime[row])
        start, end = self._started.get(name, float(rows.start[row])), float(rows.end[row])
        refused = rows.state[row] == REJECTED
        return JobLine(
            name,
            int(rows.size[row]),
            submit,
            float(self._queued[row]),
            walltime if walltime >= 0 else None,
            rows.state[row],
            None if refused else start,
            None if refused else end,
            rows.metadata[row],
        )
