"""Warnings about failures or maintenance that will keep jobs from finishing."""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.workload import Workload

if TYPE_CHECKING:  # most runs have no failures
    from pipistrelle.platforms.failures.outage import Outages
    from pipistrelle.platforms.failures.plan import FailurePlan
    from pipistrelle.platforms.maintenance.plan import MaintenancePlan

_DAY: Final = 86400.0
#: a clock change can lengthen the time between two dates by this much (s)
_CLOCK_CHANGE: Final = 3600.0
#: more expected attempts per job than this count as endless
_MANY: Final = 1000
#: values this many standard deviations above the mean practically never occur
_NEVER: Final = 4.0


def remarks_on(reliability: Reliability, platform: Platform, workload: Workload) -> list[str]:
    """Return warnings about failures, outages and maintenance.

    They are shown before the run.
    """
    return [
        *(() if reliability.failures is None else _failures(reliability.failures, platform, workload)),
        *(() if reliability.failures is None else _endless(reliability, reliability.failures, platform, workload)),
        *(() if reliability.outages is None else _losses(reliability.outages, platform, workload)),
        *(() if reliability.maintenance is None else _squeezes(reliability.maintenance, platform, workload)),
    ]


def have_own_ways(workload: Workload) -> bool:
    """Return whether any job has its own resilience options, such as checkpoints."""
    return any(b'"resilience"' in raw for raw in workload.job_json or ())


def _failures(plan: "FailurePlan", platform: Platform, workload: Workload) -> list[str]:
    """Return warnings about long repairs.

    There are also warnings about jobs that rarely find enough units in service.
    """
    if not len(workload):
        return []
    remarks = []
    span = float(workload.submit.max() - workload.submit.min() + np.nanmax(workload.runtime, initial=0.0))
    repair = max(source.model.repair.mean for source in plan.sources)
    if repair > span:
        remarks.append(
            f"a repair takes {repair:,.6g} s on average, longer than all jobs of {workload.name} take to be submitted "
            f"and run ({span:,.6g} s): a failed node will hardly be repaired by then"
        )
    up, spread = plan.units_up(platform)
    largest = workload.size <= platform.units
    row = int(np.argmax(np.where(largest, workload.size, 0)))
    size = int(workload.size[row])
    if largest[row] and size > up + _NEVER * spread:
        remarks.append(
            f"{up:,.6g} of {platform.units:,} units are up on average: job {workload.ids[row]} of {size:,} units "
            "will hardly ever find enough"
        )
    return remarks


def _endless(reliability: Reliability, plan: "FailurePlan", platform: Platform, workload: Workload) -> list[str]:
    """Return warnings about jobs that fail too often to finish or to save work.

    If its nodes fail at a total rate L, a job that runs for a time t needs e^(L t) attempts on average. The estimate
    ignores failure domains and jobs that can continue on fewer nodes.
    """
    way = reliability.resilience
    limited = reliability.requeue == "never" or reliability.max_attempts is not None or have_own_ways(workload)
    if limited or isinstance(way.interval, str) or way.kind not in ("none", "checkpoint"):
        return []
    if any(source.domains for source in plan.sources):
        return []
    needed = np.minimum(workload.runtime, workload.walltime)
    if way.interval is not None:
        needed = np.minimum(needed, way.interval + way.dump + way.read)
    nodes = np.ceil(workload.size / max(pool.units_per_node for pool in platform.pools))
    rate = float(plan.rates(platform.nodes).mean())
    rows = np.flatnonzero((nodes * rate * needed > np.log(_MANY)) & (workload.size <= platform.units))
    if not rows.size:
        return []
    return [f"{_named(rows, workload)} will hardly ever finish: more than {_MANY:,} attempts are expected"]


def _losses(outages: "Outages", platform: Platform, workload: Workload) -> list[str]:
    """Return warnings about jobs for which permanent failures leave too few nodes.

    Only failures before a job's submission count.
    """
    gone = np.isinf(outages.up)
    if not gone.any():
        return []
    each = np.repeat([pool.units_per_node for pool in platform.pools], [pool.nodes for pool in platform.pools])
    order = np.argsort(outages.down[gone], kind="stable")
    times = outages.down[gone][order]
    left = platform.units - np.concatenate([[0], np.cumsum(each[outages.node[gone][order]])])
    rows = np.flatnonzero(
        (workload.size > left[np.searchsorted(times, workload.submit, side="right")])
        & (workload.size <= platform.units)
    )
    if not rows.size:
        return []
    return [f"{_named(rows, workload)} can never start, because nodes are never repaired"]


def _squeezes(plan: "MaintenancePlan", platform: Platform, workload: Workload) -> list[str]:
    """Return warnings about jobs longer than the time between recurring maintenance."""
    remarks = []
    each = np.repeat([pool.units_per_node for pool in platform.pools], [pool.nodes for pool in platform.pools])
    for rule in plan.rules:
        if not rule.endless:
            continue
        gap = rule.days * _DAY - rule.length + (0.0 if rule.first.date is None else _CLOCK_CHANGE)
        beside = platform.units - int(sum(each[low : high + 1].sum() for low, high in rule.nodes.intervals))
        rows = np.flatnonzero(
            (workload.size > beside)
            & (workload.size <= platform.units)
            & (workload.walltime > gap)
            & (workload.submit + workload.walltime > rule.first.seconds)
        )
        if rows.size:
            remarks.append(f"{_named(rows, workload)} can hardly finish between two occurrences of '{rule.text}'")
    return remarks


def _named(rows: NDArray[np.intp], workload: Workload) -> str:
    names = ", ".join(workload.ids[row] for row in rows[:3].tolist())
    if rows.size == 1:
        return f"job {names}"
    return f"{rows.size:,} jobs ({names}{' and others' if rows.size > 3 else ''})"
