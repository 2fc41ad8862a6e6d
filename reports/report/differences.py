"""Find the first difference between two runs: in decisions, jobs and waits."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pipistrelle.protocol.base.errors import legible
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.runs.folders.files import output_rows
from pipistrelle.runs.folders.run_jobs import RunJobs

#: columns of a decision that are compared: all except its reason
_COUNTS: Final = ("time", "decision", "job_id", "alloc", "verdict")
#: maximum characters kept of a reason
_LONGEST: Final = 300
#: maximum number of metrics that the text shows
_MOST_FIGURES: Final = 5


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A row of out_decisions.csv; the time (s) is kept as text, as in the file."""

    time: str
    decision: str
    job: str
    alloc: str
    verdict: str
    why: str

    def __str__(self) -> str:
        text = f"{self.time} s: {self.decision} {self.job}"
        text += f" on {self.alloc}" if self.alloc else ""
        text += "" if self.verdict == "carried_out" else f", {self.verdict}"
        return f"{text} ({self.why})" if self.why else text


def _first_decision(first: Path, second: Path) -> tuple[int | None, DecisionRow | None, DecisionRow | None]:
    rows = (output_rows(folder, "decisions.csv", *_COUNTS, "why") for folder in (first, second))
    for number, (one, other) in enumerate(itertools.zip_longest(*rows), 1):
        if one is None or other is None or not _same(one, other):
            return number, _decision(one) if one else None, _decision(other) if other else None
    return None, None, None


def _same(one: dict[str, str], other: dict[str, str]) -> bool:
    return all(one[name] == other[name] for name in _COUNTS) or _key(one) == _key(other)


def _key(row: dict[str, str]) -> tuple[str, ...]:
    """Return the columns of a decision that are compared between runs.

    Equal sets of units give equal texts.
    """
    alloc = row["alloc"]
    with suppress(NodeSetError):
        alloc = str(NodeSet.parse(alloc))
    return tuple(alloc if name == "alloc" else row[name] for name in _COUNTS)


def decision_keys(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the compared columns of a run's decisions.

    Raise errors as `decision_rows`.
    """
    yield from map(_key, output_rows(folder, "decisions.csv", *_COUNTS))


def decision_rows(folder: Path) -> Iterator[DecisionRow]:
    """Yield a run's decisions with long texts cut; raise errors as `output_rows`."""
    yield from map(_decision, output_rows(folder, "decisions.csv", *_COUNTS, "why"))


def _decision(row: dict[str, str]) -> DecisionRow:
    return DecisionRow(*(legible(row[name], _LONGEST) for name in (*_COUNTS, "why")))


def changed_waits(first: RunJobs, second: RunJobs) -> list[tuple[str, float, float]]:
    """Return (job, first wait, second wait) in s of waits that differ.

    The largest change comes first.
    """
    pairs = ((name, place, second.places.get(name)) for name, place in first.places.items())
    waits = [(name, float(first.wait[a]), float(second.wait[b])) for name, a, b in pairs if b is not None]
    return sorted((one for one in waits if one[1] != one[2]), key=lambda one: -abs(one[2] - one[1]))


def first_difference(first: RunJobs, second: RunJobs) -> dict[str, Any] | None:
    """Return where two runs first differ, as JSON values; None if the runs are equal.

    ``decision`` is the first decision that differs: its number, counted from 1, and each run's decision, or None after
    a run's last decision. A job differs if its start, end, units or state differ, or if it ended in only one run.
    ``job`` is the job that differs at the earliest time, ``jobs`` the number of jobs that differ.
    """
    decision = first_decision(first.folder, second.folder)
    fates = _jobs(first, second)
    if decision is None and not fates:
        return None
    return {
        "decision": decision,
        "job": min(fates, key=lambda fate: fate["at"]) if fates else None,
        "jobs": len(fates),
    }


def first_decision(first: Path, second: Path) -> dict[str, Any] | None:
    """Return the first decision that differs between two output folders.

    Return None if all are equal.
    """
    number, *rows = _first_decision(first, second)
    if number is None:
        return None
    decided = (None if row is None else {**asdict(row), "text": str(row)} for row in rows)
    return dict(zip(("number", "first", "second"), (number, *decided), strict=True))


def _jobs(first: RunJobs, second: RunJobs) -> list[dict[str, Any]]:
    found = []
    for name, place in first.places.items():
        other = second.places.get(name)
        mine, theirs = fate_of(first, place), None if other is None else fate_of(second, other)
        if mine != theirs:
            times = [one["start"] for one in (mine, theirs) if one is not None]
            if theirs is not None and mine["start"] == theirs["start"]:
                times = [mine["end"], theirs["end"]]
            found.append({"id": name, "at": min(times), "first": mine, "second": theirs})
    for name, place in second.places.items():
        if name not in first.places:
            theirs = fate_of(second, place)
            found.append({"id": name, "at": theirs["start"], "first": None, "second": theirs})
    return found


def fate_of(run: RunJobs, place: int) -> dict[str, Any]:
    """Return how the job at index ``place`` started and ended.

    The result has JSON values; times are in seconds.
    """
    return {
        "submit": float(run.submit[place]),
        "size": int(run.size[place]),
        "start": float(run.start[place]),
        "end": float(run.end[place]),
        "wait": float(run.wait[place]),
        "state": run.state[place],
        "units": run.alloc[place],
    }


def difference_lines(difference: dict[str, Any], first: str, second: str) -> list[str]:
    """Describe in words where two runs, named ``first`` and ``second``, differ.

    ``difference`` comes from `first_difference`, and may also have ``inputs``, ``figures`` and ``outputs``.
    """
    lines = []
    if difference.get("inputs"):
        lines.append(f"the inputs are not the same: {', '.join(difference['inputs'])}")
    decision, job = difference["decision"], difference["job"]
    if decision is not None:
        lines.append(f"decision {decision['number']:,}")
        for run, one in ((first, decision["first"]), (second, decision["second"])):
            lines.append(f"  {run}: {'none, all is decided' if one is None else one['text']}")
    if job is not None:
        count = difference["jobs"]
        lines.append(f"{count:,} job{'s differ' if count > 1 else ' differs'}, first {job['id']}")
        lines += [f"  {run}: {_fate_text(one)}" for run, one in ((first, job["first"]), (second, job["second"]))]
    elif difference["jobs"]:
        lines.append(f"{difference['jobs']:,} jobs of {first} do not end")
    figures = [one for one in difference.get("figures", ()) if not isinstance(one["first"], list)]
    for one in figures[:_MOST_FIGURES]:
        lines.append(f"{one['name']}: {first} {one['first']}, {second} {one['second']}")
    if len(figures) > _MOST_FIGURES:
        lines.append(f"and {len(figures) - _MOST_FIGURES} other figures")
    if difference.get("outputs"):
        lines.append(f"the same decisions and jobs, but another {', '.join(difference['outputs'])}")
    return lines


def _fate_text(fate: dict[str, Any] | None) -> str:
    if fate is None:
        return "does not end"
    if "text" in fate:
        return str(fate["text"])
    return (
        f"starts at {fate['start']:.10g} s, after {fate['wait']:.10g} s, on {fate['units'] or 'none'}; "
        f"{fate['state']} at {fate['end']:.10g} s"
    )
