"""The figures of a trial: those of a run's summary, over all jobs or those of a window, and by size."""

from collections.abc import Sequence
from math import fsum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.runs.execution.job_table import CANCELLED, REJECTED, RUNNING, STATES, WAITING, Floats, JobTable
from pipistrelle.server.attempts.attempt import Spending
from pipistrelle.server.outputs.fragmentation_book import Fragmentation
from pipistrelle.server.outputs.metrics import TAU, quantile
from pipistrelle.server.outputs.reliability_book import ReliabilitySummary
from pipistrelle.studies.trials.window import NOTHING, Leave, WindowOfRun, last_end

#: what a metric can be: None where there is nothing to tell, as the mean of no jobs
Metric = float | int | None


def metrics(
    table: JobTable, *, warm_up: Leave = NOTHING, drain: Leave = NOTHING, sizes: Sequence[int] = ()
) -> dict[str, Metric]:
    """Return the figures of a run by name; of a whole run those of its summary have the same values here.

    Jobs count by when they were submitted, so that the same jobs count under every policy. What is left out at the
    beginning are the jobs submitted in the first ``warm_up.seconds`` after time 0, or the first ``warm_up.jobs``; at
    the end those submitted in the last ``drain.seconds`` before the horizon (before the last submission if there is
    none), or the last ``drain.jobs``. `utilisation` and `computing` are of the time between: from the end of the warm
    up, or the submission of the first job that counts, to the begin of the drain or the submission of the first job
    that it leaves out; without a drain to the horizon, or the last end. Figures of nodes are of the whole run.

    Jobs that count and had not ended are in no mean: they are ``running_at_end`` and ``waiting_at_end``.

    Parameters
    ----------
    table
        the run's jobs.
    warm_up, drain
        what is left out.
    sizes
        lower bounds of classes of sizes in units, ascending: ``jobs_1``, ``mean_wait_2_15``, ``..._16_up`` and others
        are told of each.

    Raises
    ------
    WindowError
        when the two leave no time between them.
    """
    window = WindowOfRun.of(table, warm_up, drain)
    counts = window.counts(table)
    state = table.state[counts]
    done = counts & ~np.isin(table.state, (WAITING, RUNNING, REJECTED, CANCELLED))
    numbers = np.bincount(state, minlength=len(STATES)).tolist()
    by_state = dict(zip(STATES, numbers, strict=True))
    horizon = table.ended if table.reason == "horizon" else None
    computing = window.held(table)
    span = window.end - window.begin
    any_held = bool(done.any()) or (horizon is not None and bool((table.state == RUNNING).any()))
    figures: dict[str, Metric] = {
        "jobs": int(counts.sum()),
        "completed": by_state["COMPLETED_SUCCESSFULLY"] + by_state["COMPLETED_FAILED"],
        "killed_at_walltime": by_state["COMPLETED_WALLTIME_REACHED"],
        "killed": by_state["COMPLETED_KILLED"],
        "rejected": by_state["REJECTED"],
        **({"cancelled": by_state["CANCELLED"]} if by_state["CANCELLED"] else {}),
        "unfinished": by_state["SUBMITTED"] + by_state["RUNNING"],
        "running_at_end": by_state["RUNNING"],
        "waiting_at_end": by_state["SUBMITTED"],
        "dropped": table.dropped,
        "horizon": horizon,
        "counted_from": window.begin,
        "counted_to": window.end,
        "makespan": last_end(table),
        "utilisation": computing / (table.units * span) if any_held and span > 0 else None,
        "units": table.units,
        "computing": computing,
        **_times(table, done),
        "mean_attempts": fsum(table.attempts[done]) / int(done.sum()) if done.any() else None,
    }
    for name, inside in _classes(table.size, sizes):
        these = done & inside
        waits = table.wait[these].tolist()
        some = len(waits)
        turnarounds = (table.wait + table.execution)[these]
        figures[f"jobs_{name}"] = int((counts & inside).sum())
        figures[f"mean_wait_{name}"] = fsum(waits) / some if some else None
        figures[f"mean_turnaround_{name}"] = fsum(turnarounds.tolist()) / some if some else None
        figures[f"mean_bounded_slowdown_{name}"] = (
            fsum(_bounded(turnarounds, table.execution[these])) / some if some else None
        )
    for group in (table.reliability, table.fragmentation):
        if group is not None:
            for name, value in msgspec.to_builtins(group).items():
                if isinstance(value, dict):
                    figures |= {f"{name}_{part}": one for part, one in value.items()}
                elif not isinstance(value, list | tuple):
                    figures[name] = value
    return figures


def metric_names(sizes: Sequence[int]) -> set[str]:
    """Return the names of all metrics that trials can have; ``sizes`` as of `metrics`."""
    none, integers = np.zeros(0), np.zeros(0, dtype=np.int64)
    table = JobTable(
        submit=none,
        start=none,
        end=none,
        size=integers,
        walltime=none,
        runtime=none,
        state=np.zeros(0, dtype=np.int8),
        attempts=integers,
        wait=none,
        execution=none,
        holder=integers,
        held_from=none,
        held_until=none,
        held_units=integers,
        units=1,
        reason="completed",
        ended=0.0,
    )
    parts = {"node_seconds": ("all", "down", "maintenance", "busy", "idle"), "unit_seconds": Spending.__struct_fields__}
    own = {name for kind in (ReliabilitySummary, Fragmentation) for name in kind.__struct_fields__}
    tables = {*parts, "by_size", "pools"}
    return {*metrics(table, sizes=sizes), *(own - tables)} | {f"{k}_{v}" for k, names in parts.items() for v in names}


def _times(table: JobTable, done: NDArray[np.bool_]) -> dict[str, Metric]:
    """Return the figures of waits, turnarounds and slowdowns over the jobs that are done."""
    waits, runs = table.wait[done], table.execution[done]
    count = waits.size
    if not count:
        return dict.fromkeys(_TIMES)
    ordered = np.sort(waits).tolist()
    turnarounds = waits + runs
    with np.errstate(divide="ignore", invalid="ignore"):
        slowdowns = np.where(runs > 0, turnarounds / runs, 1.0)
    bounded = _bounded(turnarounds, runs)
    total, run = fsum(turnarounds.tolist()), fsum(runs.tolist())
    found: tuple[Metric, ...] = (
        fsum(ordered) / count,
        quantile(ordered, 0.5),
        quantile(ordered, 0.95),
        ordered[-1],
        total / count,
        float(turnarounds.max()),
        run / count,
        fsum(slowdowns.tolist()) / count,
        float(slowdowns.max()),
        fsum(bounded) / count,
        max(bounded),
        total / run if run > 0 else None,
    )
    return dict(zip(_TIMES, found, strict=True))


#: `mean_slowdown` is a mean of ratios, `slowdown_of_means` the ratio of means: of turnarounds and execution times
_TIMES: Final = (
    *("mean_wait", "median_wait", "p95_wait", "max_wait", "mean_turnaround", "max_turnaround", "mean_execution"),
    *("mean_slowdown", "max_slowdown", "mean_bounded_slowdown", "max_bounded_slowdown", "slowdown_of_means"),
)


def _bounded(turnarounds: Floats, runs: Floats) -> list[float]:
    found: list[float] = np.maximum(1.0, turnarounds / np.maximum(runs, TAU)).tolist()
    return found


def _classes(size: NDArray[np.int64], bounds: Sequence[int]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return each class of sizes: its name and which jobs are of it, shape (jobs,)."""
    found = []
    for number, low in enumerate(bounds):
        if number + 1 == len(bounds):
            found.append((f"{low}_up", size >= low))
            continue
        high = bounds[number + 1] - 1
        found.append((f"{low}" if high == low else f"{low}_{high}", (size >= low) & (size <= high)))
    return found
