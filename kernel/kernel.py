"""Simulate a run in the kernel.

The results are bit-identical to those of the reference engine.
"""

from math import inf
from typing import Final, Literal, NamedTuple, TypeVar, cast

import numpy as np

from pipistrelle.kernel import loop, state
from pipistrelle.kernel.sets import WORD, Floats, Ints, Rows, rows_of
from pipistrelle.kernel.state import (
    KernelLives,
    LevelRow,
    Log,
    Outs,
    PlannedRow,
    Plans,
    State,
    make_plans,
    make_state,
    words_with,
)
from pipistrelle.kernel.subset import KernelPlan, Outside, plan_of
from pipistrelle.platforms.failures.models import LONGEST_HORIZON
from pipistrelle.platforms.failures.outage import Outages
from pipistrelle.platforms.maintenance.plan import Maintenance
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.plan.machine_code import is_cached
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.server.attempts.accounting import CHECKED_AT, give_up_fruitless, give_up_hopeless
from pipistrelle.server.engine.stalls import MAX_FRUITLESS
from pipistrelle.server.errors import SetupError, Stalled
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup

#: how far (s) beyond the last submission the first outages reach
_AHEAD: Final = 1e6
#: number of maintenances read at first
_PLANS: Final = 32
_Column = TypeVar("_Column", Floats, Ints, Rows)
_STALLS: Final = {
    loop.NOTHING_TO_COME: (
        "the run stalled: jobs wait, nothing runs, and no event is left",
        "The nodes that they need are never repaired.",
    ),
    loop.ONLY_OUTAGES: (
        f"{MAX_FRUITLESS:,} outages passed, and no job made a step",
        "The jobs need more units than are ever up together.",
    ),
    loop.ONLY_NOTICES: (
        f"{MAX_FRUITLESS:,} notices had no effect while the machine is idle",
        "The jobs need more units than are ever up together.",
    ),
}


def is_compiled() -> bool:
    """Return whether the machine code of the kernel is in the cache.

    If not, a run first waits for about a minute until the kernel is compiled.
    """
    return is_cached(loop.advance)


class KernelRun(NamedTuple):
    """The results of a run in the kernel; times in seconds.

    Attributes:
        reason, end: why the run ended (all jobs ended, or the time limit was reached), and when it ended.
        lives: state and times of each job, by row of the workload.
        attempts: the ended attempts by end time, if nodes can fail; ``words``, their units, is empty unless requested.
        units: the unit at each position; positions number the units in the order of allocation.
        busy: how long ended jobs held each unit.
        failures: how often each node failed while it was up, shape (nodes,).
        down: how long each node was down for failures and for maintenance, shape (2, nodes).
        running: {row of a running job: its positions}; empty unless requested.
    """

    reason: Literal["completed", "horizon"]
    end: float
    lives: KernelLives
    attempts: Log
    units: Ints
    busy: Floats
    failures: Ints
    down: Floats
    running: dict[int, Ints]

    def units_of(self, row: int) -> NodeSet:
        """Return the units of an attempt, given its row in `attempts`."""
        return self.units_in(self.attempts.words[row])

    def units_in(self, words: Ints) -> NodeSet:
        """Return the units at the positions that the bit set ``words`` contains."""
        bits = (words[:, None] >> np.arange(WORD)) & 1
        return NodeSet.of(self.units[np.flatnonzero(bits.reshape(-1))].tolist())


def why_not(setup: Setup, spec: RunSpec, policy: Policy | None = None) -> str | None:
    """Return the first reason why the kernel cannot simulate a run; None if it can."""
    try:
        plan_of(setup, spec, policy, keeping=False)
    except Outside as outside:
        return str(outside)
    return None


def simulate(
    setup: Setup,
    spec: RunSpec,
    outages: Outages | None = None,
    *,
    policy: Policy | None = None,
    keeping: bool = False,
) -> KernelRun:
    """Simulate a run in the kernel.

    Args:
        outages: all outages; None draws them from the setup's failure models as needed.
        policy: replaces the scheduler of ``spec``.
        keeping: record which units each job had.

    Raises:
        SetupError: the kernel cannot simulate this run (`why_not`).
        Stalled: the run would never end.
    """
    try:
        plan = plan_of(setup, spec, policy, keeping=keeping)
    except Outside as outside:
        raise SetupError(f"the kernel cannot do this run: {outside}", hint="Use the reference engine.") from None
    reliability = setup.reliability or Reliability()
    return _carry_out(plan, reliability, _Feed(reliability if outages is None else Reliability(outages=outages)))


def _carry_out(plan: KernelPlan, reliability: Reliability, feed: "_Feed") -> KernelRun:
    rules, submit = plan.rules, plan.jobs.submit
    run = make_state(rules, plan.jobs, plan.node_of, plan.interval)
    if rules.failing:
        run = _with_outages(run, feed.until(float(submit[-1]) + _AHEAD if submit.size else 0.0))
    run.plans.counts.more = rules.planned
    planned = _Planned(reliability, plan) if rules.planned else None
    while True:
        why = loop.advance(run)
        if why == loop.NEEDS_PLANS and planned is not None:
            run = run._replace(plans=planned.more(run.plans))
        elif why == loop.NEEDS_OUTAGES:
            run = _with_outages(run, feed.until(run.outages.known * 1.5))
        elif why == loop.NEEDS_ROOM:
            run = run._replace(log=Log._make(np.concatenate((column, np.zeros_like(column))) for column in run.log))
        elif why == loop.LOOK:
            _check_hope(reliability, run, plan)
        elif why in _STALLS:
            raise _stalled(why, run)
        else:
            return _result(plan, run, at_horizon=why == loop.AT_HORIZON)


def _with_outages(run: State, outages: Outs) -> State:
    """Return the run's state with these upcoming outages.

    The state also has space for their repairs.
    """
    slots, room, repairs = run.slots, np.zeros(outages.node.size + 1), run.clock.repairs
    slots = slots._replace(
        repair_time=np.concatenate((slots.repair_time[:repairs], room)),
        repair_node=np.concatenate((slots.repair_node[:repairs], room.astype(np.int64))),
    )
    run.clock.next_outage = 0
    return run._replace(slots=slots, outages=outages)


def _result(plan: KernelPlan, run: State, *, at_horizon: bool) -> KernelRun:
    """Return the results of a run that ended.

    With ``at_horizon`` the run ended at its time limit, so some jobs may have no end.
    """
    clock, lives, nodes = run.clock, run.lives, run.nodes
    end = float(clock.now)
    slots = run.slots.end_slot[: clock.running]
    rows, jobs = cast(Rows, run.slots.rows[slots]), run.slots.job[slots]
    if plan.rules.failing:
        lives.start[jobs] = rows.start
    else:
        _complete(plan, lives, clock.next_job, jobs)
    for column in (lives.start, lives.end):
        column[lives.state == state.WAITING] = np.nan
    lives.end[jobs] = np.nan
    out_of_service = np.flatnonzero(nodes.rows.reasons)
    down = nodes.down.copy()
    down[nodes.rows.planned[out_of_service], out_of_service] += end - nodes.rows.since[out_of_service]
    busy, held = np.zeros(plan.units.size), {}
    if plan.rules.placing:
        for slot, job, row in zip(slots.tolist(), jobs.tolist(), rows, strict=True):
            words = run.slots.held.reshape(-1, nodes.free.size)[slot].copy()
            words[: row.low] = words[row.high :] = 0
            held[job] = words
            bits = (words[:, None] >> np.arange(WORD)) & 1
            nodes.busy[np.flatnonzero(bits.reshape(-1))] += end - lives.start[job]
    busy[plan.units] = nodes.busy[: plan.units.size]
    return KernelRun(
        "horizon" if at_horizon else "completed",
        end,
        lives,
        Log._make(column[: clock.rows if plan.rules.failing else lives.state.size] for column in run.log),
        plan.units,
        busy,
        nodes.rows.failed,
        down,
        held if plan.rules.keeping else {},
    )


def _complete(plan: KernelPlan, lives: KernelLives, submitted: int, running: Ints) -> None:
    """Compute the ends and states of jobs from their starts.

    This is only for runs without failures.
    """
    jobs = plan.jobs
    lives.end[:] = lives.start + np.minimum(jobs.runtime, jobs.walltime)
    lives.state[:submitted] = np.where(jobs.runtime <= jobs.walltime, state.COMPLETED, state.AT_WALLTIME)[:submitted]
    lives.state[:submitted][np.isnan(lives.start[:submitted])] = state.WAITING
    lives.state[running] = state.RUNNING


def _check_hope(reliability: Reliability, run: State, plan: KernelPlan) -> None:
    """Raise Stalled if an interrupted job is almost certain never to finish.

    The job was interrupted just now.
    """
    clock, lists, most = run.clock, run.lists, reliability.expected_attempts
    now, each = float(clock.now), int(run.nodes.rows.units.max())
    for job, time in zip(lists.hopes[: clock.hopes].tolist(), lists.needed.tolist(), strict=False):
        name, fruitless = f"{plan.prefix}!{plan.ids[job]}", int(run.lives.fruitless[job])
        give_up_fruitless(name, fruitless, now)
        if fruitless == CHECKED_AT and most and reliability.failures is not None:
            hazard = reliability.failures.hazard(run.nodes.rows.size, -(-int(run.jobs.size[job]) // each), time)
            give_up_hopeless(name, fruitless, now, time, hazard, most)
    clock.hopes = 0


def _stalled(why: int, run: State) -> Stalled:
    what, hint = _STALLS[why]
    return Stalled(
        what,
        where=f"simulated time {float(run.clock.now)!r}",
        found=f"{int((run.lives.state == state.WAITING).sum())} waiting, {int(run.clock.free)} units free",
        hint=hint,
    )


class _Planned:
    """Generates maintenance windows as far ahead as the run needs them.

    A maintenance rule may recur forever, so its windows cannot all be generated at the start.
    """

    def __init__(self, reliability: Reliability, plan: KernelPlan) -> None:
        assert reliability.maintenance is not None, "there is no maintenance"
        self._coming = reliability.planned()
        self._next = next(self._coming, None)
        self._count = _PLANS
        nodes = dict.fromkeys(rule.nodes for rule in reliability.maintenance.rules)
        self._sets = {one: at for at, one in enumerate(nodes)}
        self._words = np.concatenate([words_with(np.isin(plan.node_of, list(one))) for one in nodes])
        self._position = np.argsort(plan.units)
        self._nodes = int(plan.interval.size) - 1

    def more(self, plans: Plans) -> Plans:
        """Return the plans with the next maintenance windows added.

        Windows that are already announced are kept. Windows with the same announcement time are always added together.
        """
        found: list[Maintenance] = []
        while self._next is not None and (len(found) < self._count or self._next.announced == found[-1].announced):
            found.append(self._next)
            self._next = next(self._coming, None)
        self._count *= 2
        counts = plans.counts
        counts.next, counts.more = 0, self._next is not None
        windows = int(counts.windows) + len(found)
        levels = rows_of(LevelRow, min(windows, self._nodes) + 2)
        made = make_plans(self._position.size, self._words.size // len(self._sets))
        coming = rows_of(PlannedRow, len(found))
        for row, one in zip(coming, found, strict=True):
            row.announced, row.begin, row.end, row.which = one.announced, one.begin, one.end, self._sets[one.nodes]
        return made._replace(
            coming=coming,
            sets=self._words,
            position=self._position,
            levels=levels,
            level_closed=np.zeros(levels.size * made.open.size, dtype=np.int64),
            step_time=_grown(plans.step_time, 2 * windows),
            step_set=_grown(plans.step_set, 2 * windows),
            step_kind=_grown(plans.step_kind, 2 * windows),
            windows=_grown(plans.windows, windows),
            counts=counts,
        )


def _grown(column: _Column, size: int) -> _Column:
    grown = np.concatenate((column, np.zeros(max(size - column.size, 0), dtype=column.dtype)))
    return cast(_Column, grown.view(type(column)))


class _Feed:
    def __init__(self, reliability: Reliability) -> None:
        self._streams = reliability.streams()
        self._endless = reliability.failures is not None

    def until(self, horizon: float) -> Outs:
        """Return the next outages that begin before ``horizon`` (s).

        Outages that earlier calls returned are left out.
        """
        if not self._endless or horizon >= LONGEST_HORIZON:
            horizon = LONGEST_HORIZON
        made = [stream.extend(horizon) for stream in self._streams]
        node, down, up = (
            np.concatenate([[], *(getattr(part, name) for part in made)]) for name in ("node", "down", "up")
        )
        order = np.argsort(down, kind="stable")
        known = inf if horizon == LONGEST_HORIZON else horizon
        return Outs(node[order].astype(np.int64), down[order], up[order], known)
