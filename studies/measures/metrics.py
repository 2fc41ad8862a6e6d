"""Metrics of a trial, for all its jobs and for classes of jobs.

A trial is one simulation of a study.
"""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.resources.amounts import CORES
from pipistrelle.runs.execution.job_table import (
    CANCELLED,
    REJECTED,
    RUNNING,
    STATES,
    WAITING,
    Floats,
    JobTable,
    JobTableBook,
)
from pipistrelle.server.attempts.attempt import Spending
from pipistrelle.server.outputs.fragmentation_book import Fragmentation
from pipistrelle.server.outputs.metrics import TAU, quantile
from pipistrelle.server.outputs.reliability_book import ReliabilitySummary
from pipistrelle.server.outputs.resource_book import ResourceFigures
from pipistrelle.studies.measures.window import NOTHING, Leave, WindowOfRun, last_end

#: figures of a resource in the summary that are metrics, besides its stranded amounts
_RESOURCE_FIGURES: Final = ("utilisation", "used", "unavailable", "idle", "fragmented")
#: a metric's value; None if it is undefined, such as the mean of no jobs
Metric = float | int | None


def metrics(
    table: JobTable,
    *,
    warm_up: Leave = NOTHING,
    drain: Leave = NOTHING,
    sizes: Sequence[int] = (),
    classes: Mapping[str, NDArray[np.bool_]] | None = None,
) -> dict[str, Metric]:
    """Return the metrics of a run by name.

    Without warm-up and drain they equal the run's summary. Jobs are selected by submit time, so that the same jobs
    count under every policy. The warm-up leaves out the jobs submitted in the first ``warm_up.seconds`` after time 0,
    or the first ``warm_up.jobs``. The drain leaves out the jobs submitted in the last ``drain.seconds`` before the time
    limit (without one, before the last submission), or the last ``drain.jobs``.

    `utilisation` and `computing` cover the time between warm-up and drain. This time begins at the end of the warm-up,
    or at the submission of the first job that counts. It ends at the start of the drain, or at the submission of the
    first job that the drain leaves out. Without a drain it ends at the time limit or at the last end. Metrics of nodes
    cover the whole run.

    Means leave out unfinished jobs, whose numbers are ``running_at_end`` and ``waiting_at_end``.

    Args:
        sizes: lower bounds of size classes in units, ascending. They add the metrics ``jobs_1``, ``mean_wait_2_15``,
            ``..._16_up`` etc.
        classes: {name: which jobs of the table, shape (jobs,)}, which add the same metrics, such as
            ``mean_wait_queue_batch``.

    Raises:
        WindowError: warm-up and drain leave no time in between.
    """
    window = WindowOfRun.of(table, warm_up, drain)
    counts = window.counts(table)
    state = table.state[counts]
    done = ended_jobs(table, window)
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
        "utilisation": computing / (_size(table) * span) if any_held and span > 0 else None,
        "units": table.units,
        "computing": computing,
        **_times(table, done),
        "mean_attempts": fsum(table.attempts[done]) / int(done.sum()) if done.any() else None,
    }
    for name, inside in [*_classes(table.size, sizes), *(classes or {}).items()]:
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
    return figures | _of_resources(table.resources or {})


def _size(table: JobTable) -> float:
    """Return the number of units of a trial's machine.

    If nodes are shared, return the number of cores.
    """
    return table.units if table.resources is None else table.resources[CORES].total


def _of_resources(resources: Mapping[str, ResourceFigures]) -> dict[str, Metric]:
    """Return the metrics of the resources of shared nodes.

    They cover the whole run. An example is ``utilisation_gpu``.
    """
    found: dict[str, Metric] = {}
    for name, one in resources.items():
        found |= {f"{figure}_{name}": getattr(one, figure) for figure in _RESOURCE_FIGURES}
        found |= {f"stranded_{name}_{other}": amount for other, amount in one.stranded.items()}
    return found


def resource_metrics(names: Sequence[str]) -> set[str]:
    """Return the names of the metrics of the shared nodes' resources ``names``."""
    nothing = {
        name: ResourceFigures(
            **dict.fromkeys(("total", *_RESOURCE_FIGURES), 0.0), stranded=dict.fromkeys(set(names) - {name}, 0.0)
        )
        for name in names
    }
    return set(_of_resources(nothing))


def ended_jobs(table: JobTable, window: WindowOfRun) -> NDArray[np.bool_]:
    """Return whether each job is in the window and has ended, shape (jobs,).

    A job that has ended without starting does not count.
    """
    found: NDArray[np.bool_] = window.counts(table) & ~np.isin(table.state, (WAITING, RUNNING, REJECTED, CANCELLED))
    return found


def metric_names(sizes: Sequence[int], classes: Sequence[str] = ()) -> set[str]:
    """Return the names of all metrics that trials can have; see `metrics`."""
    table = JobTableBook().table()
    nothing = dict.fromkeys(classes, np.zeros(0, dtype=np.bool_))
    parts = {"node_seconds": ("all", "down", "maintenance", "busy", "idle"), "unit_seconds": Spending.__struct_fields__}
    own = {name for kind in (ReliabilitySummary, Fragmentation) for name in kind.__struct_fields__}
    tables = {*parts, "by_size", "pools"}
    inside = {f"{kind}_{part}" for kind, names in parts.items() for part in names}
    return {*metrics(table, sizes=sizes, classes=nothing), *(own - tables), *inside}


def _times(table: JobTable, done: NDArray[np.bool_]) -> dict[str, Metric]:
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


#: `mean_slowdown` is a mean of ratios, `slowdown_of_means` the ratio of mean turnaround to mean execution time
_TIMES: Final = (
    *("mean_wait", "median_wait", "p95_wait", "max_wait", "mean_turnaround", "max_turnaround", "mean_execution"),
    *("mean_slowdown", "max_slowdown", "mean_bounded_slowdown", "max_bounded_slowdown", "slowdown_of_means"),
)


def _bounded(turnarounds: Floats, runs: Floats) -> list[float]:
    found: list[float] = np.maximum(1.0, turnarounds / np.maximum(runs, TAU)).tolist()
    return found


def _classes(size: NDArray[np.int64], bounds: Sequence[int]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return the name of each size class, and which jobs it has, shape (jobs,)."""
    found = []
    for number, low in enumerate(bounds):
        if number + 1 == len(bounds):
            found.append((f"{low}_up", size >= low))
            continue
        high = bounds[number + 1] - 1
        found.append((f"{low}" if high == low else f"{low}_{high}", (size >= low) & (size <= high)))
    return found
