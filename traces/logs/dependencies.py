"""Dependencies between jobs as schedulers write them, such as ``afterok:123:124,afterany:7``; and jobs' new names."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from pipistrelle.traces.workload import Ints, Workload, is_number

_TERM: Final = re.compile(r"(after(?:ok|any|notok)?|afterburstbuffer|aftercorr):(.+)", re.IGNORECASE)
_MARK: Final = re.compile(r"(\+\d+)?(\([a-z_]+\))?$")  # Slurm's delay and whether it is fulfilled: 7+30(unfulfilled)


def parse_dependency(text: str) -> list[tuple[str, list[str]]]:
    """Return (kind in small letters, ids) of each part; parts of another form, such as ``singleton``, have no ids.

    Parts are separated by commas or question marks; both mean the same here.
    """
    parts: list[tuple[str, list[str]]] = []
    for part in filter(None, (piece.strip() for piece in re.split("[,?]", text))):
        found = _TERM.fullmatch(part)
        if found is None:
            parts.append((part.lower(), []))
        else:
            parts.append((found[1].lower(), [_MARK.sub("", job) for job in found[2].split(":") if job]))
    return parts


def rename_dependency(text: str, names: Mapping[str, str]) -> str:
    """Return the text with each id that `names` has replaced by its new one; all else stays as it is."""
    pieces = re.split("([,?])", text)
    for at, piece in enumerate(pieces):
        found = _TERM.fullmatch(piece.strip())
        if found is None:
            continue
        jobs = []
        for job in found[2].split(":"):
            plain = _MARK.sub("", job)
            jobs.append(names.get(plain, plain) + job[len(plain) :])
        pieces[at] = f"{found[1]}:{':'.join(jobs)}"
    return "".join(pieces)


def rename_jobs(workload: Workload, ids: list[str]) -> Workload:
    """Return the workload with new ids, unique, row by row; dependencies and the column ``preceding`` follow.

    A preceding job that is not in the workload becomes -1, as does one whose new id is no whole number.
    """
    names = dict(zip(workload.ids, ids, strict=True))
    labels = dict(workload.labels)
    if "dependency" in labels:
        labels["dependency"] = [rename_dependency(text, names) for text in labels["dependency"]]
    columns = dict(workload.columns)
    if "preceding" in columns:
        columns["preceding"] = np.array(
            [_number(names.get(str(job), "")) for job in columns["preceding"].tolist()], dtype=np.int64
        )
    return replace(workload, ids=ids, labels=labels, columns=columns)


def renumber(workload: Workload) -> Workload:
    """Return the workload with the ids 1, 2, ... in its order; dependencies follow."""
    return rename_jobs(workload, list(map(str, range(1, len(workload) + 1))))


def preceding_jobs(workload: Workload) -> Ints | None:
    """Return, shape (n,), the one job that each waits for, as SWF can have it; -1: none. None if no job waits.

    Of several the last is taken. A job that is not in the workload, or has no number, is none.
    """
    if "dependency" not in workload.labels:
        return None
    known = set(workload.ids)
    numbers = np.full(len(workload), -1, dtype=np.int64)
    for row, text in enumerate(workload.labels["dependency"]):
        for kind, jobs in parse_dependency(text) if text else []:
            numbers[row] = next(
                (_number(job) for job in reversed(jobs) if job in known and kind != "aftercorr"), numbers[row]
            )
    return numbers if np.any(numbers != -1) else None


def _number(text: str) -> int:
    return int(text) if is_number(text) else -1
