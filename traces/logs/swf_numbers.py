"""Replace names by numbers for SWF, and explain the numbers in the header."""

from dataclasses import replace
from typing import Final

import numpy as np

from pipistrelle.traces.logs.dependencies import parse_dependency, preceding_jobs
from pipistrelle.traces.logs.job_table import GOING_ON, Status
from pipistrelle.traces.logs.labels import DIRECTIVES, named_column
from pipistrelle.traces.workload import Ints, Workload, is_plain_number

#: {state: SWF's status}; all other states of ended jobs are failures
_STATUS: Final = {
    "COMPLETED": Status.COMPLETED,
    "CANCELLED": Status.CANCELLED,
    "REMOVED": Status.CANCELLED,
    "": Status.UNKNOWN,
}


def numbered(workload: Workload) -> Workload:
    """Return the workload with numbers for all labels that SWF can hold.

    Labels that are all whole numbers keep these numbers. Other labels are numbered from 1 in order of appearance, and a
    header directive explains the numbers, such as ``Queue: 1 qprod``. A missing label is -1. Only one preceding job of
    each job's dependencies is kept. States become SWF's statuses.
    """
    if not workload.labels:
        return workload
    columns, header = dict(workload.columns), dict(workload.header)
    for label, directive in DIRECTIVES.items():
        texts = named_column(workload, label)
        if texts is None or label not in workload.labels:
            continue
        columns[label], names = _numbers(texts)
        header.pop(directive, None)
        if names:
            header[directive] = "\n".join(f"{number} {name}" for number, name in enumerate(names, start=1))
    preceding = preceding_jobs(workload)
    if preceding is not None:
        old = columns.get("preceding")
        columns["preceding"] = preceding if old is None else np.where(preceding == -1, old, preceding)
    if "state" in workload.labels and "status" not in columns:
        columns["status"] = np.array([_status(text) for text in workload.labels["state"]], dtype=np.int64)
    if workload.source and workload.format and "Note" not in header:
        header["Note"] = f"made by pipistrelle from {workload.format}: {workload.source}"
    return replace(workload, columns=columns, header=header)


def loses_dependencies(workload: Workload) -> bool:
    """Return whether SWF would lose some job's dependencies.

    In SWF a job can only wait for the end of one other job.
    """
    known = set(workload.ids)
    for text in workload.labels.get("dependency", ()):
        parts = parse_dependency(text) if text else []
        jobs = [job for _, some in parts for job in some]
        if parts and ([kind for kind, _ in parts] != ["afterany"] or len(jobs) != 1 or jobs[0] not in known):
            return True
    return False


def loses_states(workload: Workload) -> bool:
    """Return whether a job ended in a state for which SWF has no status."""
    texts = {text.upper() for text in workload.labels.get("state", ())}
    return any(text not in _STATUS and text not in GOING_ON and text != "FAILED" for text in texts)


def _numbers(texts: list[str]) -> tuple[Ints, list[str]]:
    """Return a number for each text, shape (n,).

    Also return the names that the numbers stand for. The names belong to the numbers 1, 2, ...; the list is empty if
    the texts are numbers themselves.
    """
    if all(not text or is_plain_number(text) for text in texts):
        return np.array([int(text) if text else -1 for text in texts], dtype=np.int64), []
    known: dict[str, int] = {}
    numbers = [known.setdefault(text, len(known) + 1) if text else -1 for text in texts]
    return np.array(numbers, dtype=np.int64), list(known)


def _status(text: str) -> int:
    word = text.upper()
    return Status.UNKNOWN if word in GOING_ON else _STATUS.get(word, Status.FAILED)
