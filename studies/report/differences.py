"""Where two runs part: the first decision that is another one, and the first job that fared otherwise."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from pipistrelle.protocol.base.errors import cut, printable
from pipistrelle.studies.explain.files import number_in, output_rows
from pipistrelle.studies.report.run_jobs import RunJobs

_COLUMNS: Final = ("time", "decision", "job_id", "alloc", "verdict", "why")
#: what a decision is; its reason is words
_COUNTS: Final = 5
_LONGEST: Final = 300


def first_difference(first: RunJobs, second: RunJobs) -> dict[str, Any] | None:
    """Return where two runs part, as JSON can have it; None if all decisions and all jobs are the same.

    ``decision`` is the first that differs: its number, counted from 1, and what each run decided there, None where one
    had decided all. ``job`` is the job that is concerned first: of those whose start, end, units or state differ, the
    one of the earliest start, or that ended in one run alone; with ``jobs``, how many there are.
    """
    decision = _decision(first.folder, second.folder)
    others = _jobs(first, second)
    if decision is None and not others:
        return None
    return {
        "decision": decision,
        "job": min(others, key=lambda one: one["at"]) if others else None,
        "jobs": len(others),
    }


def _decision(first: Path, second: Path) -> dict[str, Any] | None:
    for number, (one, other) in enumerate(zip_longest(_decisions(first), _decisions(second)), 1):
        if one is None or other is None or one[:_COUNTS] != other[:_COUNTS]:
            return {"number": number, "first": _told(one), "second": _told(other)}
    return None


def _decisions(folder: Path) -> Iterator[tuple[str, ...]]:
    for row in output_rows(folder, "decisions.csv", *_COLUMNS):
        yield tuple(row[column] for column in _COLUMNS)


def _told(row: tuple[str, ...] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    time, *words = row
    names = zip(_COLUMNS[1:], (cut(printable(word), _LONGEST) for word in words), strict=True)
    return {"time": number_in(time), **dict(names)}


def _jobs(first: RunJobs, second: RunJobs) -> list[dict[str, Any]]:
    found = []
    for name, place in first.places.items():
        other = second.places.get(name)
        mine, theirs = _of(first, place), None if other is None else _of(second, other)
        if mine != theirs:
            times = [one["start"] for one in (mine, theirs) if one is not None]
            if theirs is not None and mine["start"] == theirs["start"]:
                times = [mine["end"], theirs["end"]]
            found.append({"id": name, "at": min(times), "first": mine, "second": theirs})
    for name, place in second.places.items():
        if name not in first.places:
            theirs = _of(second, place)
            found.append({"id": name, "at": theirs["start"], "first": None, "second": theirs})
    return found


def _of(run: RunJobs, place: int) -> dict[str, Any]:
    return {
        "submit": float(run.submit[place]),
        "size": int(run.size[place]),
        "start": float(run.start[place]),
        "end": float(run.end[place]),
        "wait": float(run.wait[place]),
        "state": run.state[place],
        "units": run.alloc[place],
    }
