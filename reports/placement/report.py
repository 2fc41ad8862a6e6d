"""Measure the placement of a run: hops, stable nodes, node-hours, failures."""

from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from pipistrelle.reports.placement.run import Floats, Ints, PlacedRun, list_order

#: {size class: share of the machine's nodes, lower bound (exclusive) and upper bound (inclusive)}
SIZES: Final = {
    "all": (0.0, 1.0),
    "over 20 %": (0.2, 1.0),
    "over 40 %": (0.4, 1.0),
    "over 60 %": (0.6, 1.0),
    "20 to 40 %": (0.2, 0.4),
    "40 to 60 %": (0.4, 0.6),
}
#: a leadership job has more than this share of the nodes
LEADERSHIP: Final = 0.2
#: number of parts of the node list, each with its mean hours
_PARTS: Final = 20
_WEEK: Final = 7 * 24.0
_MONTH: Final = 30 * 86_400.0


def job_figures(run: PlacedRun) -> dict[str, Any]:
    """Return each job's placement metrics as columns of shape (jobs,).

    ``mean_hops`` is exact over all pairs of the job's nodes. ``stable_nodes`` is None if stability is unknown.
    """
    topology, stable = run.machine.topology, run.machine.nodes.stable
    struck = run.struck
    return {
        "job_id": run.ids,
        "nodes": run.sizes,
        "starting_time": run.start,
        "finish_time": run.end,
        "node_hours": run.sizes * run.hours,
        "mean_hops": np.array([topology.mean_hops(nodes) for nodes in run.nodes], dtype=np.float64),
        "stable_nodes": None
        if stable is None
        else np.array([np.count_nonzero(stable[nodes]) for nodes in run.nodes], dtype=np.intp),
        "failures": np.bincount(struck[struck >= 0], minlength=len(run.ids)),
    }


def report(run: PlacedRun, jobs: dict[str, Any], order: str, age_aware: bool) -> dict[str, Any]:
    """Return the placement metrics of a run as plain values.

    Args:
        jobs: columns from `job_figures`.
        order, age_aware: node order, and whether stable nodes come first in it. Hours are averaged over each of twenty
            parts of this order.

    Raises:
        PipistrelleError: as in `list_order`.
    """
    machine = run.machine
    stable = machine.nodes.stable
    nodes = list_order(machine, order, age_aware)
    weeks = float(run.end.max(initial=0.0) - run.start.min(initial=np.inf)) / 3600.0 / _WEEK if run.ids else 0.0
    return {
        "run": str(run.folder),
        "nodes": len(machine.nodes),
        "topology": machine.topology.kind,
        "node_order": order,
        "age_aware": age_aware,
        "jobs": len(run.ids),
        "node_hours": float(jobs["node_hours"].sum()),
        "weeks": weeks,
        "stable_nodes": None if stable is None else int(stable.sum()),
        "machine_mean_hops": machine.topology.mean_hops(np.arange(len(machine.nodes), dtype=np.intp)),
        "sizes": [_of_sizes(run, jobs, name, weeks) for name in SIZES],
        "positions": _positions(run, nodes),
        "months": months(run, run.struck),
    }


def leadership(run: PlacedRun) -> NDArray[np.bool_]:
    """Return which jobs are leadership jobs, shape (jobs,).

    They have over a fifth of the machine's nodes.
    """
    return run.sizes > LEADERSHIP * len(run.machine.nodes)


def months(run: PlacedRun, struck: Ints) -> list[dict[str, Any]]:
    """Return the failures per month.

    They are all failures, those that hit a job, and those that hit a large job. A large job is one for which
    `leadership` is true.

    If the date of time 0 is unknown, months have 30 days from time 0 on.

    Args:
        struck: index of the job that each failure strikes, -1 for no job, shape (failures,).
    """
    names = _month_names(run)
    large = leadership(run)
    rows = []
    for name in dict.fromkeys(sorted(names)):
        here = struck[np.array([one == name for one in names], dtype=bool)]
        hit = here[here >= 0]
        of_large = int(large[hit].sum())
        rows.append(
            {
                "month": name,
                "failures": len(here),
                "of_jobs": len(hit),
                "of_leadership_jobs": of_large,
                "leadership_share": of_large / len(hit) if len(hit) else None,
            }
        )
    return rows


def node_hours(run: PlacedRun) -> Floats:
    """Return the hours of jobs on each node, shape (nodes,).

    Hours of jobs that share a node add up.
    """
    hours = np.zeros(len(run.machine.nodes))
    for nodes, time in zip(run.nodes, run.hours.tolist(), strict=True):
        hours[nodes] += time
    return hours


def _of_sizes(run: PlacedRun, jobs: dict[str, Any], name: str, weeks: float) -> dict[str, Any]:
    low, high = SIZES[name]
    share = run.sizes / len(run.machine.nodes)
    here = (share > low) & (share <= high)
    stable = jobs["stable_nodes"]
    told: dict[str, Any] = {
        "sizes": name,
        "jobs": int(here.sum()),
        "node_hours": float(jobs["node_hours"][here].sum()),
        "mean_hops": float(jobs["mean_hops"][here].mean()) if here.any() else None,
        "failures": int(jobs["failures"][here].sum()),
        "stable_nodes": None,
        "stable_node_hours": None,
        "stable_node_hours_per_week": None,
    }
    if stable is not None:
        some = stable[here]
        hours = float((some * run.hours[here]).sum())
        told["stable_node_hours"] = hours
        told["stable_node_hours_per_week"] = hours / weeks if weeks else None
        if some.size:
            told["stable_nodes"] = {"min": int(some.min()), "mean": float(some.mean()), "max": int(some.max())}
    return told


def _positions(run: PlacedRun, order: Ints) -> list[dict[str, Any]]:
    """Return the mean hours that jobs held a node.

    They are given for each of twenty parts of the node list.
    """
    hours, stable = node_hours(run), run.machine.nodes.stable
    rows, first = [], 0
    for part in np.array_split(order, min(_PARTS, len(order))):
        rows.append(
            {
                "from": first,
                "to": first + len(part) - 1,
                "hours_per_node": float(hours[part].mean()),
                "stable_share": None if stable is None else float(stable[part].mean()),
            }
        )
        first += len(part)
    return rows


def _month_names(run: PlacedRun) -> list[str]:
    if run.epoch is None:
        return [
            f"day {30 * int(time // _MONTH):04} to {30 * int(time // _MONTH) + 29:04}"
            for time in run.failed_at.tolist()
        ]
    zone: tzinfo = UTC
    if run.timezone:
        try:
            zone = ZoneInfo(run.timezone)
        except (LookupError, ValueError, OSError):
            zone = UTC  # this computer does not know the time zone
    epoch = run.epoch
    return [f"{datetime.fromtimestamp(epoch + time, zone):%Y-%m}" for time in run.failed_at.tolist()]


def whatif(run: PlacedRun, order: str, age_aware: bool, *, own: tuple[str, bool]) -> dict[str, Any]:
    """Estimate how many jobs per month failures would hit under another node order.

    The method is from Zimmer et al. (SC 2018), section IV-B. Let a failed node be at position p of the other node list.
    The failure is then assumed to strike the job that ran on the node at position p of the run's own list. All jobs
    keep their times.

    Args:
        order, age_aware: the node order to try, and whether stable nodes come first in it.
        own: the run's own node list.

    Raises:
        PipistrelleError: as in `list_order`.
    """
    here, other = list_order(run.machine, *own), list_order(run.machine, order, age_aware)
    position = np.empty(len(other), dtype=np.intp)
    position[other] = np.arange(len(other))
    struck = run.running_on(here[position[run.failed]], run.failed_at)
    return {
        "run": str(run.folder),
        "node_order": own[0],
        "age_aware": own[1],
        "other_node_order": order,
        "other_age_aware": age_aware,
        "failures": len(run.failed),
        "months": [
            {
                **now,
                "other_of_jobs": then["of_jobs"],
                "other_of_leadership_jobs": then["of_leadership_jobs"],
                "other_leadership_share": then["leadership_share"],
            }
            for now, then in zip(months(run, run.struck), months(run, struck), strict=True)
        ],
    }
