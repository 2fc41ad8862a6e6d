"""Take nodes down and up for failures and maintenance, and interrupt their jobs."""

from math import inf
from typing import Final

from pipistrelle.kernel.attempts import close
from pipistrelle.kernel.compiled import within, woven_in
from pipistrelle.kernel.sets import WORD, Ints, add_where, drop_sorted, heap_drop, heap_push, insert_sorted
from pipistrelle.kernel.state import EASY, WAITING, KernelClock, KernelSlots, Log, Nodes, Plans, State
from pipistrelle.server.engine.stalls import MAX_FRUITLESS

#: kinds of maintenance steps
_BEGINS: Final = 0
_ENDS: Final = 1


@within
def _holder(slots: KernelSlots, running: int, words: int, position: int) -> int:
    word, bit = position // WORD, position % WORD
    for at in range(running):
        slot = slots.end_slot[at]
        row = slots.rows[slot]
        if row.low <= word < row.high and (slots.held[slot * words + word] >> bit) & 1:
            return int(slot)
    return -1


@within
def _find_struck(nodes: Nodes, slots: KernelSlots, clock: KernelClock, struck: Ints, node: int) -> None:
    """Add the running jobs on a node to the list of jobs to interrupt, in the order of their starts.

    Args:
        struck: the list of their slots (see `KernelSlots`).
    """
    row = nodes.rows[node]
    for position in range(row.first, row.first + row.units):
        slot = _holder(slots, clock.running, nodes.free.size, position)
        at = clock.struck
        while at > 0 and slots.rows[struck[at - 1]].serial > slots.rows[slot].serial:
            at -= 1
        if slot < 0 or (at > 0 and struck[at - 1] == slot):
            continue
        for to in range(clock.struck, at, -1):
            struck[to] = struck[to - 1]
        struck[at] = slot
        clock.struck += 1


@woven_in
def release(run: State, slot: int, now: float) -> None:
    """Free the units of a job that has ended, and its slot.

    The caller has already removed the job from the heap of end times.

    Args:
        slot: the job's index in `KernelSlots`.
        now: the time (s).
    """
    nodes, slots, clock = run.nodes, run.slots, run.clock
    row = slots.rows[slot]
    if run.rules.placing:
        base = slot * nodes.free.size
        for word in range(row.low, row.high):
            nodes.free[word] |= slots.held[base + word]
        if run.rules.failing:
            add_where(nodes.busy, slots.held, base, row.low, row.high, now - row.start)
    if run.rules.backfill == EASY:
        drop_sorted(slots.planned_time, slots.planned_units, slots.planned_slot, clock.running, slots.until[slot], slot)
    slots.spare[slots.spare.size - clock.running] = slot
    clock.running -= 1
    clock.free += run.jobs.size[slots.job[slot]]


@within
def keep_words(nodes: Nodes, slots: KernelSlots, log: Log, slot: int, row: int) -> None:
    """Copy the units of a running job to the log, as a bit set.

    Args:
        slot: the job's index in `KernelSlots`.
        row: the row of the log.
    """
    base = slot * nodes.free.size
    for word in range(slots.rows[slot].low, slots.rows[slot].high):
        log.words[row, word] = slots.held[base + word]


@woven_in
def end(run: State, slot: int, place: int, now: float) -> None:
    """End the attempt of a running job: log it and free the units.

    Args:
        slot: the job's index in `KernelSlots`.
        place: index of its end time in the heap of end times.
        now: the time (s).
    """
    heap_drop(run.slots.end_time, run.slots.end_slot, run.clock.running, place)
    if run.rules.keeping:
        row = run.clock.rows if run.rules.failing else run.slots.job[slot]
        keep_words(run.nodes, run.slots, run.log, slot, row)
    if run.rules.failing:
        close(run, slot, now)
    release(run, slot, now)


@within
def _lose(run: State, fresh: int, now: float) -> int:
    """End the attempts interrupted by a failure or maintenance.

    Requeued jobs are appended to ``lists.fresh``.

    Args:
        fresh: number of jobs in that list.

    Returns:
        The new number.
    """
    clock = run.clock
    for at in range(clock.struck):
        slot = run.lists.struck[at]
        job = run.slots.job[slot]
        place = 0
        while run.slots.end_slot[place] != slot:
            place += 1
        end(run, slot, place, now)
        if run.lives.state[job] == WAITING:
            run.lists.fresh[fresh] = job
            fresh += 1
    if clock.struck > 0:
        clock.moved = 3
    clock.struck = 0
    return fresh


@within
def _goes_down(run: State, node: int, planned: int, now: float) -> None:
    """Add a reason why a node is down: maintenance (``planned`` 1) or a failure (0).

    The first reason takes the node down and interrupts its jobs; further ones only keep it down.
    """
    row = run.nodes.rows[node]
    row.reasons += 1
    if row.reasons == 1:
        row.planned = planned
        row.failed += 1 - planned
        row.since = now
        _find_struck(run.nodes, run.slots, run.clock, run.lists.struck, node)


@within
def _close_node(nodes: Nodes, clock: KernelClock, node: int, now: float) -> None:
    """Remove the units of a node that went down now from the free units.

    Units that were just released are removed, too.
    """
    row = nodes.rows[node]
    if row.since == now:
        for position in range(row.first, row.first + row.units):
            bit = 1 << (position % WORD)
            if nodes.free[position // WORD] & bit:
                nodes.free[position // WORD] ^= bit
                clock.free -= 1


@within
def _comes_up(nodes: Nodes, clock: KernelClock, node: int, now: float) -> None:
    row = nodes.rows[node]
    row.reasons -= 1
    if row.reasons == 0:
        nodes.down[row.planned, node] += now - row.since
        row.since = -1.0
        for position in range(row.first, row.first + row.units):
            nodes.free[position // WORD] |= 1 << (position % WORD)
        clock.free += row.units


@within
def _passes_in_vain(clock: KernelClock, arriving: bool) -> bool:
    """Count an instant at which nodes go down.

    Return whether there were too many such instants in a row. The count starts again if a job was submitted, started or
    ended since the last such instant. It also does if the workload has more jobs to submit (``arriving``).
    """
    if clock.moved & 1 or arriving:
        clock.idle_outages = 0
        clock.moved &= 2
    clock.idle_outages += 1
    return bool(clock.idle_outages > MAX_FRUITLESS and clock.running == 0)


@within
def fail(run: State, arriving: bool, now: float) -> tuple[int, bool, bool]:
    """Take down all nodes that fail now, and interrupt their jobs.

    Args:
        arriving: whether the workload has more jobs to submit.
        now: the time (s).

    Returns:
        Three values: the number of requeued jobs, which are the first in ``run.lists.fresh``; whether a node failed
        that was not failed before; and whether too many outages passed without progress.
    """
    outages, slots, clock = run.outages, run.slots, run.clock
    if _passes_in_vain(clock, arriving):
        return 0, False, True
    row = clock.next_outage
    begin, news = row, False
    while row < outages.down.size and outages.down[row] == now:
        node = outages.node[row]
        if outages.up[row] < inf:
            heap_push(slots.repair_time, slots.repair_node, clock.repairs, outages.up[row], node)
            clock.repairs += 1
        run.nodes.rows[node].broken += 1
        news = news or run.nodes.rows[node].broken == 1
        _goes_down(run, node, 0, now)
        row += 1
    clock.next_outage = row
    fresh = _lose(run, 0, now)
    for at in range(begin, row):
        _close_node(run.nodes, clock, outages.node[at], now)
    return fresh, news, False


@within
def repair(nodes: Nodes, slots: KernelSlots, clock: KernelClock, now: float) -> bool:
    """Complete all repairs that are due now.

    Return whether all failures of some node are now repaired.
    """
    news = False
    while clock.repairs > 0 and slots.repair_time[0] == now:
        node = slots.repair_node[0]
        heap_drop(slots.repair_time, slots.repair_node, clock.repairs, 0)
        clock.repairs -= 1
        nodes.rows[node].broken -= 1
        news = news or nodes.rows[node].broken == 0
        _comes_up(nodes, clock, node, now)
    return news


@within
def next_planned(plans: Plans) -> float:
    """Return the time (s) of the next announcement, start or end of maintenance.

    Return inf if there is none.
    """
    counts, time = plans.counts, inf
    if counts.steps > 0:
        time = plans.step_time[0]
    if counts.next < plans.coming.size:
        time = min(time, plans.coming[counts.next].announced)
    return time


@within
def _is_in(words: Ints, base: int, position: int) -> bool:
    return bool((words[base + position // WORD] >> (position % WORD)) & 1)


@within
def _announce(plans: Plans) -> None:
    counts, times = plans.counts, plans.step_time
    plan = plans.coming[counts.next]
    counts.next += 1
    insert_sorted(times, plans.step_set, plans.step_kind, counts.steps, plan.begin, plan.which, _BEGINS)
    insert_sorted(times, plans.step_set, plans.step_kind, counts.steps + 1, plan.end, plan.which, _ENDS)
    counts.steps += 2
    place = counts.windows
    while place > 0 and plans.windows[place - 1].begin > plan.begin:
        plans.windows[place] = plans.windows[place - 1]
        place -= 1
    plans.windows[place] = plan
    counts.windows += 1


@within
def _forget(plans: Plans, chosen: int, end: float) -> None:
    """Remove the maintenance window that ends at ``end`` (s) from the plans.

    ``chosen`` is the number of its node set.
    """
    place = 0
    while plans.windows[place].end != end or plans.windows[place].which != chosen:
        place += 1
    plans.counts.windows -= 1
    for at in range(place, plans.counts.windows):
        plans.windows[at] = plans.windows[at + 1]


@within
def _next_step(plans: Plans) -> tuple[int, int]:
    """Remove the next start or end of maintenance from the list of steps.

    Return the number of its node set, and its kind.
    """
    chosen, kind = plans.step_set[0], plans.step_kind[0]
    plans.counts.steps -= 1
    for at in range(plans.counts.steps):
        plans.step_time[at] = plans.step_time[at + 1]
        plans.step_set[at] = plans.step_set[at + 1]
        plans.step_kind[at] = plans.step_kind[at + 1]
    return chosen, kind


@within
def maintain(run: State, fresh: int, arriving: bool, now: float) -> tuple[int, bool]:
    """Carry out the announcements, starts and ends of maintenance that are due now.

    Args:
        fresh: number of jobs requeued earlier at this time; they are the first in ``run.lists.fresh``.
        arriving: whether the workload has more jobs to submit.
        now: the time (s).

    Returns:
        The number of all jobs requeued at this time, and whether too many outages passed without progress.
    """
    plans, nodes, clock = run.plans, run.nodes, run.clock
    while next_planned(plans) == now:
        if plans.counts.steps == 0 or plans.step_time[0] > now:
            _announce(plans)
            continue
        chosen, kind = _next_step(plans)
        if kind == _BEGINS and _passes_in_vain(clock, arriving):
            return fresh, True
        base = chosen * nodes.free.size
        for node in range(nodes.rows.size):
            if _is_in(plans.sets, base, nodes.rows[node].first):
                if kind == _BEGINS:
                    _goes_down(run, node, 1, now)
                else:
                    _comes_up(nodes, clock, node, now)
        if kind == _ENDS:
            _forget(plans, chosen, now)
            continue
        fresh = _lose(run, fresh, now)
        for node in range(nodes.rows.size):
            if _is_in(plans.sets, base, nodes.rows[node].first):
                _close_node(nodes, clock, node, now)
    return fresh, False
