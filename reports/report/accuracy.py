"""Measure how close a run is to reality: errors in waits, utilisation and queue.

The measures are those of G. Zitzlsberger, B. Jansik and J. Martinovic, "Feasibility analysis of using the Maui
scheduler for job simulation of large-scale PBS based clusters" (2018), section 3.4.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.samples.estimates import deviation_of, mean_of
from pipistrelle.reports.report.comparison import sorted_into
from pipistrelle.reports.report.reality import SAME, Beside
from pipistrelle.runs.folders.files import number_in, output_rows
from pipistrelle.runs.folders.run_jobs import Floats, Ints, ReportError

WEEK: Final = 7 * 86400.0
#: waits (s) for which the cumulative distribution is given, as on the axis of the paper's figure 3
WAITS: Final = (0.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
_QUANTILES: Final = (0.05, 0.25, 0.75, 0.95)
#: columns of the table that `curves` returns
CURVES: Final = ("time", "real_utilisation", "simulated_utilisation", "real_queue", "simulated_queue")


def accuracy(
    both: Beside, *, warm_up: float = WEEK, until: float | None = None, by: Sequence[str] = (), step: float = 3600.0
) -> dict[str, Any]:
    """Return the differences between simulated and real waits, as JSON values.

    Args:
        both: the run, matched with its log.
        warm_up, until: count only jobs submitted in this interval, in s after the run's first job.
        by: classes of jobs: ``week``, ``size``, ``runtime``, or a label of the log.
        step: length of the intervals of the utilisation and queue curves (s).

    Raises:
        ReportError: if no job is left or the log has no such label.
    """
    chosen = counted_jobs(both, warm_up, until)
    first = float(both.submit[0])
    table = curves(both, step)
    last = float(both.submit[chosen].max())
    seen = (table[:, 0] >= first + warm_up - step) & (table[:, 0] <= last)
    return {
        "run": str(both.run.folder),
        "scheduler": both.run.scheduler,
        "reason": (both.run.summary or {}).get("reason"),
        "warm_up": warm_up,
        "jobs": len(both),
        "left_out": {
            "that the log has not": both.not_in_log,
            "that the run has not, or that did not end": both.not_in_run,
            "without a start in the log": both.unrecorded,
            "that ran before time 0": int((both.real < 0).sum()),
            "submitted in the warm-up, or too late": len(both) - len(chosen) - int((both.real < 0).sum()),
        },
        "all": measures(both.real[chosen], both.simulated[chosen]),
        "classes": {name: _classes(both, chosen, name, first) for name in by},
        "curves": {
            "step": step,
            "utilisation": _apart(table[seen, 1], table[seen, 2]),
            "queue": _apart(table[seen, 3], table[seen, 4]),
        },
    }


def counted_jobs(both: Beside, warm_up: float, until: float | None = None) -> NDArray[np.intp]:
    """Return the indices of the jobs submitted from ``warm_up`` to before ``until``.

    Both are in seconds after the first job. Jobs that ran before time 0 (negative real wait) are left out. Raise
    ReportError if no job is left.
    """
    since = both.submit - both.submit[0]
    chosen = np.flatnonzero((since >= warm_up) & (since < (np.inf if until is None else until)) & (both.real >= 0))
    if not len(chosen):
        raise ReportError(
            "no job is left to compare",
            where=str(both.run.folder),
            expected=f"jobs submitted from {warm_up:,.10g} s after the first on",
            found=f"{len(both):,} jobs, the last {float(since[-1]):,.10g} s after it",
            hint="Leave out less: --warm-up 0.",
        )
    return chosen


def measures(real: Floats, simulated: Floats) -> dict[str, Any]:
    """Return statistics of the errors (simulated - real) of waits (s).

    ``deviation`` is the sample standard deviation, None for one job. ``distance`` is the largest distance between the
    two distributions of waits (Kolmogorov-Smirnov).
    """
    error = simulated - real
    quantiles = np.quantile(error, _QUANTILES).tolist()
    return {
        "jobs": len(error),
        "mean": mean_of(error),
        "median": float(np.median(error)),
        "deviation": deviation_of(error) if len(error) > 1 else None,
        "mean_absolute": mean_of(np.abs(error)),
        **{f"p{100 * share:02.0f}": value for share, value in zip(_QUANTILES, quantiles, strict=True)},
        "shorter": int((error < -SAME).sum()),
        "same": int((np.abs(error) <= SAME).sum()),
        "longer": int((error > SAME).sum()),
        "distance": float(np.max(np.abs(np.diff(distributions(real, simulated)[:, 1:], axis=1)), initial=0.0)),
        "real": _waits(real),
        "simulated": _waits(simulated),
    }


def distributions(real: Floats, simulated: Floats) -> Floats:
    """Return the cumulative distributions of real and simulated waits.

    The result has shape (waits, 3). Each row has a wait (s), and the shares of real and of simulated waits that are at
    most as long.
    """
    waits = np.unique(np.concatenate([real, simulated]))
    shares = [np.searchsorted(np.sort(one), waits, "right") / len(one) for one in (real, simulated)]
    return np.column_stack([waits, *shares])


def curves(both: Beside, step: float = 3600.0) -> Floats:
    """Return utilisation and queue length per interval, in the columns `CURVES`.

    The real values use the jobs in both run and log, with the log's run times. ``time`` is the start of an interval.

    Raises:
        ReportError: if there would be over a million intervals.
    """
    end = max(float(both.end.max()), float(both.run.end.max()))
    begin = max(float(np.floor(both.submit[0] / step)) * step, 0.0)
    if not (end - begin) / step < 1e6:
        raise ReportError("the stretches of the curves are too short", expected=f"at least {(end - begin) / 1e6:.3g} s")
    edges: Floats = begin + step * np.arange(int(np.ceil((end - begin) / step)) + 1, dtype=np.float64)
    states = _states(both)
    units = float(states[0, 1:].sum())
    real_busy = _held(edges, both.start, both.end, both.size) / units
    busy = np.diff(_integral(edges, states[:, 0], np.diff(states[:, -1], prepend=0.0))) / (step * units)
    one = np.ones(len(both))
    started = np.maximum(both.start, both.submit)
    queued = _held(edges, both.submit, started, one)
    run = both.run
    waiting = _held(edges, run.submit, run.start, np.ones(len(run)))
    return np.column_stack([edges[:-1], real_busy, busy, queued, waiting])


def _states(both: Beside) -> Floats:
    """Return how many units were in each state from each time (s) on.

    States are busy, idle and so on. There is one row per time.
    """
    columns = ("nb_sleeping", "nb_switching_on", "nb_switching_off", "nb_idle", "nb_down", "nb_computing")
    rows = [
        [number_in(row["time"]), *(number_in(row.get(name, "0")) for name in columns)]
        for row in output_rows(both.run.folder, "machine_states.csv", "time", "nb_idle", "nb_computing")
    ]
    if not rows:
        raise ReportError("the run tells no states of the machine", where=str(both.run.folder))
    return np.array(rows)


def _held(edges: Floats, begin: Floats, end: Floats, weight: Floats | Ints) -> Floats:
    """Return the sum of the running jobs' ``weight``, averaged over time.

    It is given for each interval between two ``edges`` (s). A job runs from ``begin`` to ``end`` (s).
    """
    times = np.concatenate([begin, end])
    changes = np.concatenate([weight, -weight]).astype(np.float64)
    order = np.argsort(times, kind="stable")
    return np.diff(_integral(edges, times[order], changes[order])) / np.diff(edges)


def _integral(at: Floats, times: Floats, changes: Floats) -> Floats:
    """Return the integral of a step function up to each time in ``at``.

    The function changes by ``changes`` at ``times``.
    """
    level = np.cumsum(changes)
    past = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    place = np.searchsorted(times, at, "right") - 1
    inside = np.maximum(place, 0)
    found: Floats = np.where(place >= 0, past[inside] + level[inside] * (at - times[inside]), 0.0)
    return found


def _apart(real: Floats, simulated: Floats) -> dict[str, float | None]:
    """Return the means of a real and a simulated curve, and their difference.

    The difference is given as its mean and its greatest value.
    """
    if not len(real):
        return dict.fromkeys(("real", "simulated", "mean_absolute", "most"))
    far = np.abs(simulated - real)
    means = {"real": mean_of(real), "simulated": mean_of(simulated), "mean_absolute": mean_of(far)}
    return {**means, "most": float(far.max())}


def _waits(waits: Floats) -> dict[str, Any]:
    return {
        "mean": mean_of(waits),
        "median": float(np.median(waits)),
        "p95": float(np.quantile(waits, 0.95)),
        "most": float(waits.max()),
        "share_within": {f"{wait:g}": float((waits <= wait).mean()) for wait in WAITS},
    }


def _classes(both: Beside, chosen: NDArray[np.intp], name: str, first: float) -> list[dict[str, Any]]:
    """Return the statistics of the errors of waits for each class of jobs.

    The jobs are ``chosen``.
    """
    if name == "week":
        weeks = np.floor((both.submit[chosen] - first) / WEEK).astype(np.intp)
        names, numbers = [f"{number + 1}" for number in range(int(weeks.max()) + 1)], weeks
    else:
        names, numbers = sorted_into(both.run, both.places[chosen], name)
    found = []
    for number, one in enumerate(names):
        jobs = chosen[numbers == number]
        if len(jobs):
            found.append({"class": one, **measures(both.real[jobs], both.simulated[jobs])})
    return found
