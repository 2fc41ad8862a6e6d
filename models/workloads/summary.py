"""Summarise a workload in numbers.

The numbers are distributions, requests, users, arrivals and sizes.
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.samples.estimates import spread_of
from pipistrelle.models.workloads import FIELDS
from pipistrelle.protocol.base.lengths import date_text
from pipistrelle.traces.clean import clean, count_overruns
from pipistrelle.traces.describe import offered_load
from pipistrelle.traces.logs.labels import dependency_column, named_column
from pipistrelle.traces.requests import asks, count_requests
from pipistrelle.traces.workload import Floats, Ints, Workload

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
#: (upper bound in s, label) of the classes of run times
RUNTIMES: Final = (
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (4 * 3600.0, "4 h"),
    (12 * 3600.0, "12 h"),
    (24 * 3600.0, "24 h"),
    (math.inf, "more"),
)
#: upper bounds of the classes of run time / requested time
_ACCURACY: Final = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, math.inf)
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOP: Final = 10
_HOUR: Final = 3600
#: step (s) at which time zone offsets are looked up; they change at quarters of an hour
_QUARTER: Final = 900


class Grid(NamedTuple):
    """A table of numbers of jobs by two properties.

    Its rows and columns have labels.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    counts: Ints


def summarise(workload: Workload, zone: tzinfo) -> dict[str, Any]:
    """Return statistics of a workload as JSON values; None is unknown.

    ``jobs``, ``dropped``, ``dependent`` and ``requests`` are about all jobs. Other statistics cover the jobs that can
    run on the trace's machine (see `clean`). ``requests`` is absent if no job requests nodes. Dates are in `zone`.
    """
    units = workload.machine_size
    jobs, dropped = clean(workload, units)
    work = jobs.size * jobs.runtime
    figures: dict[str, Any] = {
        "name": workload.name,
        "source": workload.source,
        "jobs": len(workload),
        "runnable": len(jobs),
        "dropped": dropped,
        "dependent": sum(map(bool, dependency_column(workload) or [])),
        "machine": units,
        "timezone": workload.timezone,
        "zone": str(zone),
        "span": None,
        "unit_seconds": _finite(float(work.sum())),
        "load": _finite(offered_load(jobs, units)) if units is not None else None,
        "size": _spread(jobs.size),
        "runtime": _spread(jobs.runtime),
        "walltime": _spread(jobs.walltime) | {"without": int(np.isinf(jobs.walltime).sum())},
        "accuracy": _accuracy(jobs),
        "busiest": {name: top for name in FIELDS if (top := _busiest(jobs, name, work)) is not None},
        "arrivals": None,
        "by_size_and_runtime": None,
    }
    if asks(workload):
        figures["requests"] = count_requests(workload)
    if not len(jobs):
        return figures
    first, last = float(jobs.submit.min()), float(jobs.submit.max())
    figures["span"] = {
        "seconds": last - first,
        "first": first,
        "last": last,
        "first_date": None if workload.epoch is None else date_text(workload.epoch + first, zone),
        "last_date": None if workload.epoch is None else date_text(workload.epoch + last, zone),
    }
    arrivals = arrivals_grid(jobs, zone)
    if arrivals is not None:
        figures["arrivals"] = {"weekdays": list(arrivals.rows), "counts": arrivals.counts.tolist()}
    sizes = size_grid(jobs)
    figures["by_size_and_runtime"] = {
        "sizes": list(sizes.rows),
        "runtimes_below": list(sizes.columns),
        "counts": sizes.counts.tolist(),
    }
    return figures


def size_grid(jobs: Workload) -> Grid:
    """Return the numbers of jobs by size (powers of two) and run time (`RUNTIMES`)."""
    power = np.frexp(jobs.size.astype(np.float64))[1] - 1
    bounds = np.array([bound for bound, _ in RUNTIMES[:-1]])
    column = np.searchsorted(bounds, jobs.runtime, side="right")
    rows = int(power.max(initial=0)) + 1
    counts = np.zeros((rows, len(RUNTIMES)), dtype=np.int64)
    known = ~np.isnan(jobs.runtime)
    np.add.at(counts, (power[known], column[known]), 1)
    names = [f"{2**low:,}" if low == 0 else f"{2**low:,}-{2 ** (low + 1) - 1:,}" for low in range(rows)]
    return Grid(names, [name for _, name in RUNTIMES], counts)


def arrivals_grid(jobs: Workload, zone: tzinfo) -> Grid | None:
    """Return numbers of submissions by weekday, from Monday, and hour.

    Return None if the workload has no dates.
    """
    if jobs.epoch is None or not len(jobs):
        return None
    seconds = np.floor(jobs.submit + jobs.epoch).astype(np.int64)
    quarters, where = np.unique(seconds // _QUARTER, return_inverse=True)
    counts = np.zeros((7, 24), dtype=np.int64)
    share = np.bincount(where, minlength=quarters.size)
    try:
        for quarter, count in zip(quarters.tolist(), share.tolist(), strict=True):
            date = (_UNIX + timedelta(seconds=quarter * _QUARTER)).astimezone(zone)
            counts[date.weekday(), date.hour] += count
    except OverflowError:  # beyond the year 9999
        return None
    return Grid(WEEKDAYS, [f"{hour:02}" for hour in range(24)], counts)


def _spread(values: Floats | Ints) -> dict[str, float | None]:
    known = values[np.isfinite(values)].astype(np.float64)
    if not known.size:
        return dict.fromkeys(("mean", "least", "p05", "p25", "median", "p75", "p95", "greatest"))
    ends = float(known.min()), float(known.max())
    return {"mean": float(known.mean()), "least": ends[0], **spread_of(known), "greatest": ends[1]}


def _accuracy(jobs: Workload) -> dict[str, Any] | None:
    """Return how well jobs estimate their run time; None if no job requests a time.

    The result has quantiles of the ratio of run time to requested time, and numbers of jobs by range of this ratio.
    """
    limited = np.isfinite(jobs.walltime) & np.isfinite(jobs.runtime)
    if not limited.any():
        return None
    ratio = jobs.runtime[limited] / jobs.walltime[limited]
    place = np.searchsorted(np.array(_ACCURACY[:-1]), ratio, side="left")
    counts = np.bincount(place, minlength=len(_ACCURACY)).tolist()
    return {
        "over": count_overruns(jobs),
        "ratio": _spread(ratio),
        "classes": [
            {"up_to": None if bound == math.inf else bound, "jobs": count}
            for bound, count in zip(_ACCURACY, counts, strict=True)
        ],
    }


def _busiest(jobs: Workload, name: str, work: Floats) -> dict[str, Any] | None:
    """Return the values of a field whose jobs use the most unit-seconds.

    The field is, for example, the user id. ``name`` is the field, and ``work`` the unit-seconds of each job. The result
    is None if no job has the field.
    """
    texts = named_column(jobs, name)
    if texts is None or not any(texts):
        return None
    values, place = np.unique(np.array(texts), return_inverse=True)
    count = np.bincount(place, minlength=values.size)
    weight = np.bincount(place, weights=np.nan_to_num(work), minlength=values.size)
    total = float(weight.sum())
    order = np.lexsort((values, -count, -weight))
    top = [
        {
            "value": str(values[at]),
            "jobs": int(count[at]),
            "share_of_work": float(weight[at]) / total if total > 0 else None,
        }
        for at in order.tolist()
        if values[at]
    ]
    return {"values": len(top), "top": top[:_TOP]}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def shares(counts: NDArray[np.int64]) -> Floats:
    """Return counts as percentages of their sum."""
    total = int(counts.sum())
    result: Floats = 100.0 * counts / max(total, 1)
    return result
