"""Simulate a run in the kernel and return its job table.

The table is the same as the reference engine's.
"""

from math import fsum, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.kernel import state
from pipistrelle.kernel.kernel import KernelRun, simulate
from pipistrelle.kernel.sets import Floats, Ints
from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.failures.outage import Outages
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.job_table import STATES, JobTable
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.server.attempts.attempt import Spending
from pipistrelle.server.outputs.node_book import seconds_by_state
from pipistrelle.server.outputs.reliability_book import ReliabilitySummary, SizeClass
from pipistrelle.server.setup.setup import Setup

_STATES: Final = {
    state.WAITING: "SUBMITTED",
    state.RUNNING: "RUNNING",
    state.COMPLETED: "COMPLETED_SUCCESSFULLY",
    state.AT_WALLTIME: "COMPLETED_WALLTIME_REACHED",
    state.GIVEN_UP: "COMPLETED_FAILED",
}
#: how units can spend their time in the kernel; other kinds are always zero
_KINDS: Final = frozenset(("useful", "unsaved", "lost", "dumping", "reading"))


def run_kernel(
    setup: Setup,
    spec: RunSpec,
    outages: Outages | None = None,
    *,
    policy: Policy | None = None,
    with_nodes: bool = False,
    with_ids: bool = False,
    with_node_seconds: bool = False,
) -> JobTable:
    """Simulate a run in the kernel and return its job table; see `simulate`.

    Args:
        with_nodes: record the units of each job's last attempt.
        with_ids: record the ids of jobs.
        with_node_seconds: record how long nodes were busy, idle and down.
    """
    ((prefix, workload),) = setup.workloads.items()
    failing = setup.reliability is not None
    # without failures, the busy time of units is known only if the units of jobs are recorded
    keeping = with_nodes or (with_node_seconds and not failing)
    made = simulate(setup, spec, outages, policy=policy, keeping=keeping)
    lives = made.lives
    there = lives.state != state.COMING
    running = np.flatnonzero(lives.state == state.RUNNING)
    ended = lives.state >= state.COMPLETED
    if failing:
        holder, begun, until = made.attempts.job, made.attempts.start, made.attempts.end
        attempts = np.bincount(holder, minlength=lives.state.size)
        wait, execution = lives.waited, lives.ran
    else:
        holder = np.flatnonzero(ended)
        begun, until = lives.start[holder], lives.end[holder]
        attempts = ended.astype(np.int64)
        wait = np.where(ended, lives.start - workload.submit, 0.0)
        execution = np.where(ended, lives.end - lives.start, 0.0)
    attempts[running] += 1
    holder = np.concatenate((holder, running))
    numbers = np.array([STATES.index(_STATES.get(one, "SUBMITTED")) for one in range(state.GIVEN_UP + 1)], np.int8)
    return JobTable(
        submit=workload.submit[there],
        start=lives.start[there],
        end=lives.end[there],
        size=workload.size[there],
        walltime=workload.walltime[there],
        runtime=workload.runtime[there],
        state=numbers[lives.state[there]],
        attempts=attempts[there],
        wait=wait[there],
        execution=execution[there],
        holder=holder,
        held_from=np.concatenate((begun, lives.start[running])),
        held_until=np.concatenate((until, np.full(running.size, nan))),
        held_units=workload.size[holder],
        units=setup.platform.units,
        reason=made.reason,
        ended=made.end,
        dropped=sum(setup.dropped.values()),
        reliability=_figures(made, setup.platform, workload.size) if failing else None,
        nodes=_nodes(made, failing=failing, there=there) if with_nodes else None,
        ids=tuple(f"{prefix}!{workload.ids[row]}" for row in np.flatnonzero(there).tolist()) if with_ids else None,
        node_seconds=_node_seconds(made, setup.platform, placed=not failing) if with_node_seconds else None,
    )


def _nodes(made: KernelRun, *, failing: bool, there: NDArray[np.bool_]) -> tuple[NodeSet, ...]:
    """Return the units of each submitted job's last attempt.

    Jobs that never started have an empty set.

    Args:
        failing: whether nodes can fail; then the log has a row per attempt instead of one per job.
        there: whether each job of the workload was submitted, shape (jobs,).
    """
    found = [NodeSet.EMPTY] * int(there.sum())
    rows = made.attempts.job.tolist() if failing else range(len(made.attempts.words))
    for row, job in enumerate(rows):
        if job < len(found):
            found[job] = made.units_of(row)
    for job, words in made.running.items():
        found[job] = made.units_in(words)
    return tuple(found)


def _figures(made: KernelRun, platform: Platform, size: Ints) -> ReliabilitySummary:
    """Return the figures on failures and lost work of a run.

    The formulas are those of `ReliabilityBook` and `NodeBook`.
    """
    attempts = made.attempts
    sizes = size[attempts.job]
    lost = attempts.state == state.GIVEN_UP
    held = attempts.end - attempts.start
    down = made.down
    pools = NodeUnits.told(platform.info.pools).pools
    seconds = _node_seconds(made, platform)
    total = seconds["all"]
    by_node = down.sum(axis=0)
    unavailable = sum(float(by_node[first : first + count].sum()) * each for first, count, _, each in pools)
    return ReliabilitySummary(
        node_failures=int(made.failures.sum()),
        availability=1.0 - (seconds["down"] + seconds["maintenance"]) / total if total > 0 else None,
        node_seconds=seconds,
        attempts=len(sizes),
        interrupted_attempts=int(lost.sum()),
        survived_failures=0,
        given_up=int((lost & (attempts.retried == 0)).sum()),
        unavailable=unavailable,
        unit_seconds={
            kind: _exact_sum(getattr(attempts, kind)) if kind in _KINDS else 0.0 for kind in Spending.__struct_fields__
        },
        by_size=_by_size(sizes, held, lost),
    )


def _node_seconds(made: KernelRun, platform: Platform, *, placed: bool = False) -> dict[str, float]:
    """Return the node-seconds of a run by state, with the formulas of `NodeBook`.

    Args:
        placed: whether the run has no failures and its result has the units of every job.
    """
    pools = NodeUnits.told(platform.info.pools).pools
    units = _busy_units(made) if placed else made.busy
    parts = [units[unit : unit + count * each].reshape(count, each).mean(axis=1) for _, count, unit, each in pools]
    busy = float(np.concatenate(parts).sum())
    return seconds_by_state(made.end * platform.nodes, made.down.sum(axis=1), busy)


def _busy_units(made: KernelRun) -> Floats:
    """Return how long (s) jobs held each unit in a run without failures.

    The times are summed in the order in which jobs ended, which makes the result equal to the reference engine's.
    """
    lives = made.lives
    ended = np.flatnonzero(lives.state >= state.COMPLETED)
    busy = np.zeros_like(made.busy)
    for row in ended[np.argsort(lives.end[ended], kind="stable")].tolist():
        for low, high in made.units_of(row).intervals:
            busy[low : high + 1] += lives.end[row] - lives.start[row]
    busy += made.busy  # running jobs
    return busy


def _by_size(sizes: Ints, held: Floats, lost: NDArray[np.bool_]) -> tuple[SizeClass, ...]:
    if not sizes.size:
        return ()
    powers = np.frexp(sizes)[1] - 1
    order = np.argsort(powers.astype(np.int8), kind="stable")
    found, begins = np.unique(powers[order], return_index=True)
    groups = np.split(order, begins[1:])
    return tuple(
        _size_class(power, held[group], lost[group]) for power, group in zip(found.tolist(), groups, strict=True)
    )


def _size_class(power: int, held: Floats, lost: NDArray[np.bool_]) -> SizeClass:
    running, interruptions = _exact_sum(held), int(lost.sum())
    return SizeClass(
        smallest=1 << power,
        largest=(2 << power) - 1,
        attempts=held.size,
        running=running,
        interruptions=interruptions,
        mean_time_to_interruption=running / interruptions if interruptions else None,
    )


def _exact_sum(numbers: Floats) -> float:
    """Return the exact sum of numbers; zeros, which are frequent, are skipped."""
    return fsum(numbers[numbers != 0].tolist())
