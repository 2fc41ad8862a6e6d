"""The worst-served jobs of a run: those that waited longest and those that were slowed down most, each with why."""

from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from pipistrelle.protocol.base.errors import cut, printable
from pipistrelle.studies.explain.account import account
from pipistrelle.studies.explain.explanation import Explanation, explain
from pipistrelle.studies.explain.files import JobLine, MachineStates, RunFiles
from pipistrelle.studies.explain.index import kept_index, open_index
from pipistrelle.studies.explain.words import WORDS
from pipistrelle.studies.page.rows import REJECTED, RUNNING, AttemptRows, Decided
from pipistrelle.studies.report.run_jobs import RunJobs
from pipistrelle.studies.report.tables import OutputTables, numbers

#: so many by each measure
WORST: Final = 10
_LONGEST: Final = 600
_MOST_STRETCHES: Final = 8


def worst_served(
    run: RunJobs, rows: AttemptRows, decided: Decided, tables: OutputTables, *, repeat: bool, trust: bool
) -> dict[str, Any]:
    """Return the worst-served jobs and why they waited.

    What explains them is the index that `pipistrelle explain` has kept, else the outputs alone; with ``repeat`` the run
    is repeated where nothing is kept, as there, with ``trust`` also where Python code decides that the folder names.

    Raises
    ------
    PipistrelleError
        when the run is to be repeated and cannot be.
    """
    longest = np.argsort(-run.wait, kind="stable")[:WORST]
    slowest = np.argsort(-run.bounded_slowdown, kind="stable")[:WORST]
    chosen = [one for one in dict.fromkeys([*longest.tolist(), *slowest.tolist()]) if run.wait[one] > 0]
    found: dict[str, Any] = {"by_wait": [], "by_slowdown": [], "how": None, "jobs": []}
    if not chosen:
        return found
    names = [run.ids[one] for one in chosen]
    index = kept_index(run.folder)
    if index is None and repeat:
        index = open_index(run.folder, repeat=True, wanted=lambda name, _: name in names, trust=trust)
    if index is not None and index.not_replayed is None:
        answers = [account(index, name, None)[0] for name in names]
        found["how"] = "repeated"
    else:
        outputs = _Outputs(run, rows, decided, tables)
        answers = [outputs.explain(name) for name in names]
        found["how"] = "outputs"
        found["why_not"] = None if index is None else index.not_replayed
    found["by_wait"] = [run.ids[one] for one in longest.tolist() if run.wait[one] > 0]
    found["by_slowdown"] = [run.ids[one] for one in slowest.tolist() if run.wait[one] > 0]
    found["jobs"] = [_told(one) for one in answers]
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


class _Outputs:
    """What was read, as `explain` has it: for each job only those that may have to do with its wait."""

    def __init__(self, run: RunJobs, rows: AttemptRows, decided: Decided, tables: OutputTables) -> None:
        self._rows = rows
        self._place = {name: row for row, name in enumerate(rows.names)}
        reliability = run.config.get("reliability")
        back = isinstance(reliability, dict) and reliability.get("requeue") == "original"
        first = np.unique(rows.job, return_index=True)[1][rows.job] if back else np.arange(len(rows.names))
        #: the submit time that counts in the queue
        self._queued = rows.submit[first]
        self._counts = np.array([state != RUNNING for state in rows.state], dtype=np.bool_)
        self._started = {name: time for name, (time, _) in decided.started.items()}
        states = tables.columns("machine_states", "time", "nb_idle")
        times, idle = numbers(states["time"]), numbers(states["nb_idle"])
        down = numbers(states["nb_down"]) if "nb_down" in states else np.zeros(len(times))
        self._whole = RunFiles(
            run.folder,
            dict(run.config),
            None if run.summary is None else dict(run.summary),
            {},
            {},
            dict(decided.rejected),
            {},
            MachineStates(times, idle, down),
            max(decided.until, float(times[-1]) if len(times) else 0.0),
        )

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
        return explain(replace(self._whole, jobs=lines, starts=self._started, whys=whys), lines[job], None)

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
