"""Classes of a trial's jobs by a label, such as queues and users."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.runs.execution.job_table import JobTable
from pipistrelle.studies.errors import StudyError
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.workload import Workload

#: labels by which jobs can be classed
LABELS: Final = ("user", "group", "account", "queue", "qos", "partition")
#: every value of a label
ALL: Final = "all"
#: most values of a label that get their own metrics
_MOST: Final = 100

#: {label: ``all``, a number of values, a name or names}
By = Mapping[str, int | str | tuple[str | int, ...]]


def check_labels(by: By, where: str) -> None:
    """Raise StudyError if a label is unknown or has no values."""
    for label, told in by.items():
        if label not in LABELS:
            raise StudyError(
                f"jobs cannot be classed by '{printable(label)}'",
                where=where,
                expected=", ".join(LABELS),
                hint=did_you_mean(label, list(LABELS)),
            )
        if told in ((), ""):
            raise StudyError("there are no names", where=f"{where}.{label}", expected=f"'{ALL}', a number or names")


def class_names(by: By, workloads: Mapping[str, Workload], where: str) -> dict[str, list[str]]:
    """Return {label: the values in a run's workloads that get their own metrics}.

    Values that the study names but no job has are left out, and so are all values if the workloads lack the label. If
    the study gives a number of values instead, the values with the most jobs are taken. If two values have equally many
    jobs, the first in text order is taken.

    Raises:
        StudyError: the workloads have too many values of a label.
    """
    found = {}
    for label, told in by.items():
        counts = Counter(name for names in _labels(workloads, label).values() for name in names if name)
        ordered = sorted(counts, key=lambda name: (-counts[name], name))
        if isinstance(told, int):
            found[label] = ordered[:told]
        elif told == ALL:
            if len(ordered) > _MOST:
                raise StudyError(
                    f"the jobs have more than {_MOST} values of '{label}'",
                    where=f"{where}.{label}",
                    found=f"{len(ordered):,}",
                    hint=f"Name some, or write {label} = 20 for the 20 with the most jobs.",
                )
            found[label] = sorted(ordered)
        else:
            names = [told] if isinstance(told, str) else list(map(str, told))
            found[label] = [name for name in names if name in counts]
    return found


def job_classes(by: By, workloads: Mapping[str, Workload], table: JobTable) -> dict[str, NDArray[np.bool_]]:
    """Return {name of a class: whether each job is in the class}.

    The jobs are those of a table; the values have shape (jobs,). The name of a class is, for example, ``queue_batch``.

    Args:
        table: a table with ids.
    """
    found: dict[str, NDArray[np.bool_]] = {}
    ids = table.ids or ()
    for label, names in class_names(by, workloads, "metrics.by").items():
        known = {
            f"{prefix}!{name}": value
            for prefix, values in _labels(workloads, label).items()
            for name, value in zip(workloads[prefix].ids, values, strict=True)
        }
        of_job = np.array([known.get(name, "") for name in ids], dtype=object)
        found |= {f"{label}_{name}": np.asarray(of_job == name, dtype=np.bool_) for name in names}
    return found


def _labels(workloads: Mapping[str, Workload], label: str) -> dict[str, list[str]]:
    """Return {prefix of a workload: label of each of its jobs, "" if missing}.

    Workloads without this label are left out.
    """
    columns = ((prefix, named_column(workload, label)) for prefix, workload in workloads.items())
    return {prefix: column for prefix, column in columns if column is not None}
