"""Measure the similarity of two workloads."""

import math
from typing import Any, Final

import numpy as np

from pipistrelle.models.likeness.campaigns import hours_of_week, repetition
from pipistrelle.models.likeness.model import ModelError
from pipistrelle.models.samples.estimates import mean_of, spread_of
from pipistrelle.models.workloads.options import zone_of
from pipistrelle.models.workloads.summary import arrivals_grid
from pipistrelle.traces.clean import clean
from pipistrelle.traces.describe import offered_load
from pipistrelle.traces.workload import Floats, Workload

#: {key: name of the compared quantity}
QUANTITIES: Final = {
    "size": "size, units",
    "runtime": "run time, s",
    "walltime": "requested time, s",
    "used": "run time over requested time",
    "gap": "time between submissions, s",
}
#: {key of a share or count: meaning}
REPETITION: Final = {
    "same_size": "jobs of the size of the one before, by user",
    "same_work": "jobs of its size, with its run time to within 10 %",
    "jobs_per_campaign": "jobs of one size in a row",
    "users": "users",
    "busiest": "jobs of the busiest user",
    "ten_busiest": "jobs of the ten busiest users",
}
#: lags (h) of the reported autocorrelations of hourly submissions
LAGS: Final = (1, 2, 6, 12, 24, 48, 168)
#: number of points of a distribution function in pictures
_POINTS: Final = 201
_LEAST_JOBS: Final = 2


def compare(first: Workload, second: Workload) -> dict[str, Any]:
    """Return the statistics of both workloads, and the `distance` of each quantity.

    A distance is from 0 (equal distributions) to 1; None if it is unknown.
    """
    values = [values_of(_runnable(workload)) for workload in (first, second)]
    return {
        "workloads": [figures_of(workload) for workload in (first, second)],
        "distances": {key: distance(values[0][key], values[1][key]) for key in QUANTITIES},
    }


def figures_of(workload: Workload) -> dict[str, Any]:
    """Return statistics of the jobs of a workload that can run on its machine.

    - ``serial``: share of jobs of one unit.
    - ``curves``: 201 quantiles of each quantity, in equal steps from the minimum to the maximum.
    - ``week``: shares of submissions by hour from Monday 0:00 on the log's clock, or from time 0 without dates.
    - ``autocorrelation``: autocorrelation of hourly submissions, at lags of 1 to 168 hours.
    - ``dispersion``: variance over mean of daily submissions, 1 for a steady Poisson process.
    """
    jobs = _runnable(workload)
    values = values_of(jobs)
    units = workload.machine_size
    load = offered_load(jobs, units) if units else math.nan
    hourly, daily = _counts(jobs, 3600.0), _counts(jobs, 86400.0)
    return {
        "name": workload.name,
        "jobs": len(jobs),
        "days": float(jobs.submit[-1] - jobs.submit[0]) / 86400.0,
        "machine": units,
        "load": load if math.isfinite(load) else None,
        "serial": int(np.count_nonzero(jobs.size == 1)) / len(jobs),
        "spread": {key: _spread(found) for key, found in values.items()},
        "curves": {key: _curve(found) for key, found in values.items()},
        "dated": workload.epoch is not None,
        "week": _week(jobs),
        "dispersion": float(daily.var() / daily.mean()),
        "autocorrelation": autocorrelation(hourly, max(LAGS)),
        "repetition": repetition(jobs),
    }


def values_of(jobs: Workload) -> dict[str, Floats]:
    """Return {quantity: its known values} for each of `QUANTITIES`."""
    limited = np.isfinite(jobs.walltime) & np.isfinite(jobs.runtime)
    return {
        "size": jobs.size.astype(np.float64),
        "runtime": jobs.runtime[np.isfinite(jobs.runtime)],
        "walltime": jobs.walltime[np.isfinite(jobs.walltime)],
        "used": jobs.runtime[limited] / jobs.walltime[limited],
        "gap": np.diff(jobs.submit),
    }


def distance(first: Floats, second: Floats) -> float | None:
    """Return the Kolmogorov-Smirnov distance of two samples.

    Return None if a sample is empty.
    """
    if not len(first) or not len(second):
        return None
    points = np.unique(np.concatenate((first, second)))
    shares = [np.searchsorted(np.sort(values), points, side="right") / len(values) for values in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def autocorrelation(counts: Floats, most: int) -> list[float | None]:
    """Return the autocorrelation of `counts` at lags 1 to `most`.

    At lag k it is sum((x[t] - m)(x[t + k] - m)) / sum((x[t] - m)^2), with the overall mean m. It is None if there are
    at most k counts, or if all counts are equal.
    """
    away = counts - counts.mean()
    whole = float(away @ away)
    return [
        float(away[:-lag] @ away[lag:]) / whole if lag < len(away) and whole else None for lag in range(1, most + 1)
    ]


def _runnable(workload: Workload) -> Workload:
    jobs, _ = clean(workload, workload.machine_size)
    if len(jobs) < _LEAST_JOBS:
        raise ModelError(
            "there is too little to compare", where=workload.name, expected="two jobs that can run, or more"
        )
    return jobs


def _counts(jobs: Workload, width: float) -> Floats:
    """Return how many jobs are submitted in each period of `width` s.

    The first period begins with the first job.
    """
    counts: Floats = np.bincount(((jobs.submit - jobs.submit[0]) // width).astype(np.int64)).astype(np.float64)
    return counts


def _week(jobs: Workload) -> list[float]:
    grid = arrivals_grid(jobs, zone_of(jobs))
    counts = np.bincount(hours_of_week(jobs.submit), minlength=168) if grid is None else grid.counts.ravel()
    shares: list[float] = (counts / counts.sum()).tolist()
    return shares


def _spread(values: Floats) -> dict[str, float] | None:
    if not len(values):
        return None
    return {"mean": mean_of(values), **spread_of(values), "greatest": float(values.max())}


def _curve(values: Floats) -> list[float] | None:
    if not len(values):
        return None
    curve: list[float] = np.quantile(values, np.linspace(0.0, 1.0, _POINTS), method="inverted_cdf").tolist()
    return curve
