"""Compare runs of equal jobs: metrics, differences per job, and job classes."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.samples.estimates import LEVEL, StatisticsError, deviation_of, mean_of, t_quantile
from pipistrelle.protocol.base.log import logger
from pipistrelle.runs.folders.run_jobs import Floats, ReportError, RunJobs

#: metrics of each job; times in seconds
METRICS: Final[dict[str, Callable[[RunJobs], Floats]]] = {
    "wait": lambda run: run.wait,
    "turnaround": lambda run: run.turnaround,
    "bounded_slowdown": lambda run: run.bounded_slowdown,
}
#: classes that need no label of the log
SHAPES: Final = ("size", "runtime")
QUANTILES: Final = (0.5, 0.9, 0.95, 0.99, 1.0)
#: confidence intervals use the means of this many batches, because jobs of one run depend on each other
BATCHES: Final = 20
#: minimum number of jobs in a batch
_LEAST: Final = 10
#: number of names of a label that get a class each; all other names share one class
_NAMES: Final = 12
_RUNTIMES: Final = {"< 1 min": 60.0, "< 10 min": 600.0, "< 1 h": 3600.0, "< 6 h": 21_600.0, "< 1 d": 86_400.0}


@dataclass(frozen=True, eq=False)
class Together:
    """The jobs that several runs have in common.

    They ended in all of the runs, with equal submit time and size.

    Attributes:
        runs: two or more runs; all others are compared with the first.
        places: the jobs' indices in each run's columns, by submission: one array of shape (jobs,) per run.
        left_out: number of ended jobs per run that are not among these jobs.
    """

    runs: tuple[RunJobs, ...]
    places: tuple[NDArray[np.intp], ...]
    left_out: tuple[int, ...]

    @classmethod
    def of(cls, runs: Sequence[RunJobs]) -> "Together":
        """Match the jobs of several runs by their ids.

        Raises:
            ReportError: if the runs have no job in common.
        """
        first, *others = runs
        there = np.ones(len(first), dtype=np.bool_)
        found = [np.arange(len(first), dtype=np.intp)]
        for run in others:
            at = np.array([run.places.get(name, -1) for name in first.ids], dtype=np.intp)
            there[at < 0] = False
            same = (run.submit[at] == first.submit) & (run.size[at] == first.size) if len(run) else at >= 0
            there &= same
            found.append(at)
        if not there.any():
            raise ReportError(
                "the runs have no job in common",
                where=" and ".join(str(run.folder) for run in runs),
                expected="jobs of the same id, submit time and size that ended in each",
                hint="Were they runs of different workloads?",
            )
        arrays = tuple(at[there] for at in found)
        return cls(tuple(runs), arrays, tuple(len(run) - len(arrays[0]) for run in runs))

    def __len__(self) -> int:
        return len(self.places[0])

    def column(self, number: int, metric: str) -> Floats:
        """Return a metric of the common jobs in one of the runs, as a read-only array."""
        known = self._columns.get((number, metric))
        if known is None:
            known = self._columns[number, metric] = METRICS[metric](self.runs[number])[self.places[number]]
        return known

    @cached_property
    def _columns(self) -> dict[tuple[int, str], Floats]:
        """Return the cache of the metrics, which is empty at first.

        It is {(run, metric): values per job}.
        """
        return {}


def compare(runs: Sequence[RunJobs], by: Sequence[str] = ()) -> dict[str, Any]:
    """Compare two or more runs by their common jobs; return JSON values.

    Log a warning if there are no confidence intervals because scipy is missing.

    Args:
        by: classes of jobs: one of `SHAPES`, or a label of the log.

    Raises:
        ReportError: if the runs have no job in common, or the first run has no such label.
    """
    both = Together.of(runs)
    figures: list[dict[str, Any]] = [
        {
            "metric": metric,
            "runs": [_figures(both.column(number, metric)) for number in range(len(runs))],
            "against_first": [_paired(both, number, metric) for number in range(1, len(runs))],
        }
        for metric in METRICS
    ]
    if len(both) >= 2 * _LEAST and figures[0]["against_first"][0]["half_width"] is None:
        logger().warning("intervals need scipy: python -m pip install scipy")
    return {
        "runs": [_run(run, left) for run, left in zip(runs, both.left_out, strict=True)],
        "same_workload": len({tuple(run.workloads) for run in runs}) == 1,
        "jobs": len(both),
        "level": LEVEL,
        "figures": figures,
        "classes": {name: _classes(both, name) for name in by},
    }


def labels_of(runs: Sequence[RunJobs]) -> list[str]:
    """Return the kinds of labels in the log of the first run, such as ``user`` and ``queue``."""
    return list(runs[0].labels)


def _run(run: RunJobs, left_out: int) -> dict[str, Any]:
    summary = run.summary or {}
    return {
        "folder": str(run.folder),
        "scheduler": run.scheduler,
        "workloads": [prefix for prefix, _ in run.workloads],
        "reason": summary.get("reason"),
        "ended": len(run),
        "rejected": len(run.rejected),
        "not_in_common": left_out,
        "utilisation": summary.get("utilisation"),
        "makespan": summary.get("makespan"),
    }


def _figures(values: Floats) -> dict[str, Any]:
    quantiles = np.quantile(values, QUANTILES).tolist()
    return {"mean": mean_of(values), **{f"p{100 * share:g}": q for share, q in zip(QUANTILES, quantiles, strict=True)}}


def _paired(both: Together, number: int, metric: str, jobs: NDArray[np.intp] | None = None) -> dict[str, Any]:
    """Compare a metric of common jobs between run ``number`` and the first run.

    The jobs are all common jobs, or ``jobs``.
    """
    before, after = both.column(0, metric), both.column(number, metric)
    if jobs is not None:
        before, after = before[jobs], after[jobs]
    apart = after - before
    base, difference = mean_of(before), mean_of(apart)
    # Outputs have six decimals, so ignore smaller differences.
    better, worse = int((apart < -2e-6).sum()), int((apart > 2e-6).sum())
    return {
        "difference": difference,
        "half_width": half_width(apart),
        "ratio_of_means": mean_of(after) / base if base else None,
        "better": better,
        "worse": worse,
        "same": len(apart) - better - worse,
    }


def half_width(apart: Floats, level: float = LEVEL) -> float | None:
    """Return half the width of the confidence interval of a mean.

    Return None if there are too few jobs, or without scipy. Waits of jobs queued together depend on each other, so an
    interval over single jobs would be far too narrow. The interval is therefore computed from the means of batches of
    consecutive jobs (Law, Simulation Modeling and Analysis, 9.5.3).

    Args:
        apart: the difference between two runs for each job, in order of submission.
    """
    batches = min(BATCHES, len(apart) // _LEAST)
    if batches < 2:
        return None
    means = [mean_of(part) for part in np.array_split(apart, batches)]
    try:
        return t_quantile(batches, level) * deviation_of(means) / math.sqrt(batches)
    except StatisticsError:  # scipy is not installed
        return None


def _classes(both: Together, name: str) -> list[dict[str, Any]]:
    """Compare the waits of each class of common jobs.

    Every other run is compared with the first run.
    """
    names, chosen = sorted_into(both.runs[0], both.places[0], name)
    found = []
    for number, one in enumerate(names):
        jobs = np.flatnonzero(chosen == number)
        if not len(jobs):
            continue
        waits = [mean_of(both.column(run, "wait")[jobs]) for run in range(len(both.runs))]
        against = [_paired(both, run, "wait", jobs) for run in range(1, len(both.runs))]
        found.append({"class": one, "jobs": len(jobs), "mean_wait": waits, "against_first": against})
    return found


def sorted_into(first: RunJobs, places: NDArray[np.intp], name: str) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of job classes, and each job's class index, shape (jobs,).

    Args:
        places: the jobs' indices in the columns of the run ``first``.
        name: what divides jobs into classes: one of `SHAPES`, or a label of the log.

    Raises:
        ReportError: if the run has no such label.
    """
    if name == "size":
        power = np.ceil(np.log2(first.size[places]) / 2).astype(np.intp)  # the classes 1, 2 to 4, 5 to 16, ...
        bounds = [4**number for number in range(int(power.max()) + 1)]
        spans = zip([0, *bounds], bounds, strict=False)
        return [f"{low + 1}-{high}" if high > 1 else "1" for low, high in spans], power
    if name == "runtime":
        limits = np.array(list(_RUNTIMES.values()))
        return [*_RUNTIMES, "longer"], np.searchsorted(limits, first.execution[places], side="right")
    if name not in first.labels:
        known = ", ".join([*SHAPES, *first.labels])
        raise ReportError(
            f"the jobs have no {name}",
            where=str(first.folder),
            expected=f"one of {known}",
            hint="Its log does not tell.",
        )
    column = [first.labels[name][place] or "unknown" for place in places.tolist()]
    most = sorted(Counter(column).items(), key=lambda one: (-one[1], one[0]))
    known_names = [one for one, _ in most[:_NAMES]]
    numbers = {one: number for number, one in enumerate(known_names)}
    names = [*known_names, f"{len(most) - _NAMES} others"] if len(most) > _NAMES else known_names
    return names, np.array([numbers.get(one, _NAMES) for one in column], dtype=np.intp)
