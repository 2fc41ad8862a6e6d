"""Several runs beside each other: figures of the jobs in common, which job is which, and where they part."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.reports.page.packing import ColumnPack
from pipistrelle.reports.report.comparison import SHAPES, Together, compare, labels_of
from pipistrelle.reports.report.differences import first_decision
from pipistrelle.runs.folders.run_jobs import ReportError, RunJobs

#: labels by which it is told who gains and who loses
_BY: Final = ("queue", "user", "group", "account", "qos")


def paired(runs: Sequence[RunJobs], places: Sequence[NDArray[np.intp]], pack: ColumnPack) -> dict[str, Any]:
    """Return what runs did with the jobs that all of them have, as `compare` tells it, and which jobs these are.

    Runs without a job in common are none the worse: ``jobs`` is 0 then.

    Parameters
    ----------
    runs
        two or more; the others are held against the first.
    places
        for each run, where each of its jobs is in the page's columns.
    """
    same = len({tuple(run.workloads) for run in runs}) == 1
    apart = [first_decision(runs[0].folder, run.folder) for run in runs[1:]] if same else None
    try:
        found = compare(runs, [*SHAPES, *(label for label in _BY if label in labels_of(runs))])
        both = Together.of(runs)
    except ReportError:
        return {"jobs": 0, "same_workload": same, "first_decisions": apart}
    found["first_decisions"] = apart
    found["places"] = [pack.numbers(mine[at], deltas=True) for mine, at in zip(places, both.places, strict=True)]
    return found
