"""Return a workload's text fields, for formats that can hold text."""

import re
from typing import Final

from pipistrelle.traces.logs.job_table import Status
from pipistrelle.traces.workload import LABELS, Workload, either, label_column

#: {label that SWF stores as a number: header directive with its names}
DIRECTIVES: Final = {"user": "User", "group": "Group", "queue": "Queue", "partition": "Partition"}
#: {SWF's status: Slurm's state}
STATES: Final = {Status.FAILED: "FAILED", Status.COMPLETED: "COMPLETED", Status.CANCELLED: "CANCELLED"}

_EXPLAINED: Final = re.compile(r"\s*([0-9]{1,15})\s+(\S.*?)\s*", re.ASCII)


def named_column(workload: Workload, name: str) -> list[str] | None:
    """Return a text field of each job, with names from the header instead of numbers.

    For example, the SWF header line ``; Queue: 3 batch`` turns queue 3 into ``batch``. If two numbers share a name or
    one number has two names, all numbers stay. Otherwise the result is that of `label_column`.
    """
    texts = label_column(workload, name)
    if texts is None or name not in DIRECTIVES or name not in workload.columns:
        return texts
    lines = map(_EXPLAINED.fullmatch, workload.header.get(DIRECTIVES[name], "").split("\n"))
    pairs = [(found[1], found[2]) for found in lines if found]
    names = dict(pairs)
    if not names or len(names) != len(pairs) or len(set(names.values())) != len(names):
        return texts
    return either(workload.labels.get(name), [names.get(text, text) for text in texts])


def dependency_column(workload: Workload) -> list[str] | None:
    """Return each job's dependencies as text, one entry per job.

    The entry is the job's dependency label, such as ``afterok:3:4``. If the label is empty, SWF's preceding job 17
    gives ``afterany:17``. The result is None if the workload records no dependencies.
    """
    texts = workload.labels.get("dependency")
    column = workload.columns.get("preceding")
    if column is None:
        return texts
    return either(texts, [f"afterany:{number}" if number > 0 else "" for number in column.tolist()])


def state_column(workload: Workload) -> list[str] | None:
    """Return each job's final state as text, from its label or from SWF's status.

    The result is None if the workload records no states.
    """
    texts = workload.labels.get("state")
    column = workload.columns.get("status")
    if column is None:
        return texts
    return either(texts, [STATES.get(number, "") for number in column.tolist()])


def written_labels(workload: Workload) -> dict[str, list[str]]:
    """Return the text fields that any job has, in the order of `LABELS`."""
    columns = {name: named_column(workload, name) for name in LABELS}
    columns |= {"dependency": dependency_column(workload), "state": state_column(workload)}
    return {name: texts for name, texts in columns.items() if texts is not None and any(texts)}
