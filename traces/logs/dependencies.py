"""Parse and rename job dependencies such as ``afterok:123:124,afterany:7``."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from pipistrelle.traces.workload import Ints, Workload, is_number

_TERM: Final = re.compile(r"(after(?:ok|any|notok)?|afterburstbuffer|aftercorr):(.+)", re.IGNORECASE)
_MARK: Final = re.compile(r"(\+\d+)?(\([a-z_]+\))?$")  # Slurm's delay and status: 7+30(unfulfilled)


def parse_dependency(text: str) -> list[tuple[str, list[str]]]:
    """Return (kind in lower case, ids) of each dependency; ``singleton`` has no ids."""
    parts: list[tuple[str, list[str]]] = []
    for part in filter(None, (piece.strip() for piece in re.split("[,?]", text))):
        found = _TERM.fullmatch(part)
        if found is None:
            parts.append((part.lower(), []))
        else:
            parts.append((found[1].lower(), [_MARK.sub("", job) for job in found[2].split(":") if job]))
    return parts


def rename_dependency(text: str, names: Mapping[str, str]) -> str:
    """Return the dependency text with new job ids; ids not in `names` stay."""
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
    """Return the workload with new unique ids, also in its dependencies.

    The id of a preceding job becomes -1 if that job is not in the workload, or if its new id is not a whole number.
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
    """Return the workload with ids 1, 2, ... in job order, also in its dependencies."""
    return rename_jobs(workload, list(map(str, range(1, len(workload) + 1))))


def preceding_jobs(workload: Workload) -> Ints | None:
    """Return, for each job, the id of one job for which it waits, shape (n,).

    The id is -1 if there is no such job. If a job waits for several jobs, the last one in the dependency's text counts.
    Only ids in the workload count; an id that is no number gives -1. ``aftercorr`` dependencies, which concern single
    array tasks, are ignored. The result is None if it would be -1 for all jobs.
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
