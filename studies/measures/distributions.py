"""Distributions of the waits, run times and other quantities of a trial's jobs, kept as quantiles."""

from collections.abc import Iterable
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from pipistrelle.runs.execution.job_table import Floats, JobTable
from pipistrelle.server.outputs.metrics import TAU

#: a quantity of jobs whose distribution can be kept
Distribution = Literal["wait", "turnaround", "slowdown", "bounded_slowdown", "execution"]
#: suffix of the column with the quantiles
QUANTILES: Final = "_quantiles"
#: number of steps between the quantiles of 0 and 1
STEPS: Final = 400


def quantiles_of(table: JobTable, done: NDArray[np.bool_], names: Iterable[Distribution]) -> dict[str, list[float]]:
    """Return 401 quantiles of each named quantity of jobs, such as their waits.

    The quantiles are for the shares 0, 1/400, ..., 1; without jobs the list is empty. Each quantile is the value of a
    job. At least the given share of jobs have this value or less, and no smaller value has this property. So the
    share of jobs below any value is known to within 1/400.

    Args:
        done: which jobs count, shape (jobs,).
    """
    wait, run = table.wait[done], table.execution[done]
    return {name: _quantiles(_values(name, wait, run)) for name in names}


def _values(name: Distribution, wait: Floats, run: Floats) -> Floats:
    if name == "wait":
        return wait
    if name == "execution":
        return run
    turnaround = wait + run
    if name == "turnaround":
        return turnaround
    if name == "slowdown":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(run > 0, turnaround / run, 1.0)
    return np.maximum(1.0, turnaround / np.maximum(run, TAU))


def _quantiles(values: Floats) -> list[float]:
    if not values.size:
        return []
    ordered = np.sort(values)
    places = np.maximum(-(-np.arange(STEPS + 1) * ordered.size // STEPS) - 1, 0)
    found: list[float] = ordered[places].tolist()
    return found
