"""Nodes go and come back, for failures and for maintenance, and jobs lose them."""

from math import inf
from typing import Final

from pipistrelle.kernel.attempts import close
from pipistrelle.kernel.compiled import within, woven_in
from pipistrelle.kernel.sets import WORD, Ints, add_where, drop_sorted, heap_drop, heap_push, insert_sorted
from pipistrelle.kernel.state import (
    EASY,
    FREE,
    IDLE_OUTAGES,
    MOVED,
    NEXT_OUTAGE,
    NEXT_PLAN,
    REPAIRS,
    ROWS,
    RUN,
    STEPS,
    STRUCK,
    WAITING,
    WINDOWS,
    Jobs,
    KernelClock,
    KernelLives,
    KernelSlots,
    Log,
    Nodes,
    Outs,
    Plans,
    Rules,
)

#: as of the reference engine: outages, or notices, that lead to nothing, and attempts that save nothing
MOST: Final = 10_000
#: what becomes of a run when nodes go: it goes on; so many outages passed in vain; a job will never be done
GOES_ON: Final = 0
IN_VAIN: Final = 1
HOPELESS: Final = 2
#: the steps of what is planned
_BEGINS: Final = 0
_ENDS: Final = 1


@within
def _holder(slots: KernelSlots, runs: int, words: int, position: int) -> int:
    """Return the slot of the job that has a position, -1 if none has it."""
    word, bit = position // WORD, position % WORD
    for at in range(runs):
        slot = slots.end_slot[at]
        if slots.low[slot] <= word < slots.high[slot] and (slots.held[slot * words + word] >> bit) & 1:
            return int(slot)
    return -1


@within
def _find_struck(nodes: Nodes, slots: KernelSlots, clock: KernelClock, node: int) -> None:
    """Add the slots that hold units of a node to those that are struck, in the order of their starts."""
    struck, found = clock.struck, clock.ints[STRUCK]
    for position in range(nodes.first[node], nodes.first[node] + nodes.units[node]):
        slot = _holder(slots, clock.ints[RUN], nodes.free.size, position)
        at = found
        while at > 0 and slots.serial[struck[at - 1]] > slots.serial[slot]:
            at -= 1
        if slot < 0 or (at > 0 and struck[at - 1] == slot):
            continue
        for to in range(found, at, -1):
            struck[to] = struck[to - 1]
        struck[at] = slot
        found += 1
    clock.ints[STRUCK] = found


@woven_in
def release(
    rules: Rules, jobs: Jobs, nodes: Nodes, slots: KernelSlots, clock: KernelClock, slot: int, now: float
) -> None:
    """Free the units of a job that ends; its end is not on the heap any more."""
    if rules.placing:
        base = slot * nodes.free.size
        for word in range(slots.low[slot], slots.high[slot]):
            nodes.free[word] |= slots.held[base + word]
        if rules.failing:
            add_where(nodes.busy, slots.held, base, slots.low[slot], slots.high[slot], now - slots.start[slot])
    runs = clock.ints[RUN]
    if rules.backfill == EASY:
        drop_sorted(slots.planned_time, slots.planned_units, slots.planned_slot, runs, slots.until[slot], slot)
    clock.ints[RUN] = runs - 1
    clock.ints[FREE] += jobs.size[slots.job[slot]]
    slots.spare[slots.spare.size - runs] = slot


@within
def keep_words(nodes: Nodes, slots: KernelSlots, log: Log, slot: int, row: int) -> None:
    """Write down which positions the job of a slot has."""
    base = slot * nodes.free.size
    for word in range(slots.low[slot], slots.high[slot]):
        log.words[row, word] = slots.held[base + word]


@within
def _lose(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    log: Log,
    clock: KernelClock,
    fresh: int,
    now: float,
) -> tuple[int, bool]:
    """End the attempts that are struck; those that come back are put into ``clock.fresh``, after ``fresh`` others.

    Returns how many there are then; and whether one has lost so much that it will never be done.
    """
    hopeless = False
    for at in range(clock.ints[STRUCK]):
        slot = clock.struck[at]
        job = slots.job[slot]
        place = 0
        while slots.end_slot[place] != slot:
            place += 1
        heap_drop(slots.end_time, slots.end_slot, clock.ints[RUN], place)
        if rules.keeping:
            keep_words(nodes, slots, log, slot, clock.ints[ROWS])
        close(rules, jobs, nodes, lives, slots, log, clock, slot, now)
        release(rules, jobs, nodes, slots, clock, slot, now)
        if lives.state[job] == WAITING:
            clock.fresh[fresh] = job
            fresh += 1
            hopeless = hopeless or (not rules.limited and lives.fruitless[job] >= MOST)
    if clock.ints[STRUCK] > 0:
        clock.ints[MOVED] = 3
    clock.ints[STRUCK] = 0
    return fresh, hopeless


@within
def _goes_down(nodes: Nodes, slots: KernelSlots, clock: KernelClock, node: int, planned: int, now: float) -> None:
    """Count one more reason for which a node is down; with the first it goes, and strikes the jobs that hold it."""
    nodes.reasons[node] += 1
    if nodes.reasons[node] == 1:
        nodes.planned[node] = planned
        nodes.failed[node] += 1 - planned
        nodes.since[node] = now
        _find_struck(nodes, slots, clock, node)


@within
def _close_node(nodes: Nodes, clock: KernelClock, node: int, now: float) -> None:
    """Take the units out of service of a node that has gone now: what jobs have just given back is among them."""
    if nodes.since[node] == now:
        for position in range(nodes.first[node], nodes.first[node] + nodes.units[node]):
            bit = 1 << (position % WORD)
            if nodes.free[position // WORD] & bit:
                nodes.free[position // WORD] ^= bit
                clock.ints[FREE] -= 1


@within
def _comes_up(nodes: Nodes, clock: KernelClock, node: int, now: float) -> None:
    """Take away a reason for which a node is down; without any it is back."""
    nodes.reasons[node] -= 1
    if nodes.reasons[node] == 0:
        nodes.down[nodes.planned[node], node] += now - nodes.since[node]
        nodes.since[node] = -1.0
        for position in range(nodes.first[node], nodes.first[node] + nodes.units[node]):
            nodes.free[position // WORD] |= 1 << (position % WORD)
        clock.ints[FREE] += nodes.units[node]


@within
def _passes_in_vain(clock: KernelClock, arriving: bool) -> bool:
    """Count an instant at which nodes go, and tell whether too many of them have passed without a step of a job."""
    ints = clock.ints
    if ints[MOVED] & 1 or arriving:
        ints[IDLE_OUTAGES] = 0
        ints[MOVED] &= 2
    ints[IDLE_OUTAGES] += 1
    return bool(ints[IDLE_OUTAGES] > MOST and ints[RUN] == 0)


@within
def fail(
    rules: Rules,
    jobs: Jobs,
    outages: Outs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    log: Log,
    clock: KernelClock,
    arriving: bool,
    now: float,
) -> tuple[int, bool, int]:
    """Let all nodes fail that fail now; ``arriving``: jobs are still to come.

    Returns how many jobs are to queue again, at the begin of ``clock.fresh``; whether a node failed that had not; and
    what becomes of the run.
    """
    ints = clock.ints
    if _passes_in_vain(clock, arriving):
        return 0, False, IN_VAIN
    row = ints[NEXT_OUTAGE]
    ints[STRUCK] = 0
    news = False
    begin = row
    while row < outages.down.size and outages.down[row] == now:
        node = outages.node[row]
        if outages.up[row] < inf:
            heap_push(slots.repair_time, slots.repair_node, ints[REPAIRS], outages.up[row], node)
            ints[REPAIRS] += 1
        nodes.broken[node] += 1
        news = news or nodes.broken[node] == 1
        _goes_down(nodes, slots, clock, node, 0, now)
        row += 1
    ints[NEXT_OUTAGE] = row
    fresh, hopeless = _lose(rules, jobs, nodes, slots, lives, log, clock, 0, now)
    for at in range(begin, row):
        _close_node(nodes, clock, outages.node[at], now)
    return fresh, news, HOPELESS if hopeless else GOES_ON


@within
def repair(nodes: Nodes, slots: KernelSlots, clock: KernelClock, now: float) -> bool:
    """Let all nodes come back whose repair is done now; tell whether there are any."""
    ints, news = clock.ints, False
    while ints[REPAIRS] > 0 and slots.repair_time[0] == now:
        node = slots.repair_node[0]
        heap_drop(slots.repair_time, slots.repair_node, ints[REPAIRS], 0)
        ints[REPAIRS] -= 1
        nodes.broken[node] -= 1
        news = news or nodes.broken[node] == 0
        _comes_up(nodes, clock, node, now)
    return news


@within
def next_planned(plans: Plans) -> float:
    """Return when (s) the next step of what is planned comes."""
    counts = plans.counts
    time = inf
    if counts[STEPS] > 0:
        time = plans.step_time[0]
    if counts[NEXT_PLAN] < plans.announced.size:
        time = min(time, plans.announced[counts[NEXT_PLAN]])
    return time


@within
def _is_in(words: Ints, base: int, position: int) -> bool:
    return bool((words[base + position // WORD] >> (position % WORD)) & 1)


@within
def _announce(plans: Plans) -> None:
    """Let the next plan be known."""
    counts = plans.counts
    at = counts[NEXT_PLAN]
    begin, end, chosen = plans.begin[at], plans.end[at], plans.which[at]
    counts[NEXT_PLAN] += 1
    insert_sorted(plans.step_time, plans.step_set, plans.step_kind, counts[STEPS], begin, chosen, _BEGINS)
    insert_sorted(plans.step_time, plans.step_set, plans.step_kind, counts[STEPS] + 1, end, chosen, _ENDS)
    counts[STEPS] += 2
    place = counts[WINDOWS]
    while place > 0 and plans.window_begin[place - 1] > begin:
        plans.window_begin[place] = plans.window_begin[place - 1]
        plans.window_end[place] = plans.window_end[place - 1]
        plans.window_set[place] = plans.window_set[place - 1]
        place -= 1
    plans.window_begin[place] = begin
    plans.window_end[place] = end
    plans.window_set[place] = chosen
    counts[WINDOWS] += 1


@within
def _forget(plans: Plans, chosen: int, end: float) -> None:
    """Drop a window of a set of nodes that ends now; those that end together are dropped at one time."""
    counts, place = plans.counts, 0
    while plans.window_end[place] != end or plans.window_set[place] != chosen:
        place += 1
    counts[WINDOWS] -= 1
    for at in range(place, counts[WINDOWS]):
        plans.window_begin[at] = plans.window_begin[at + 1]
        plans.window_end[at] = plans.window_end[at + 1]
        plans.window_set[at] = plans.window_set[at + 1]


@within
def _next_step(plans: Plans) -> tuple[int, int]:
    """Take the first step; return the set of nodes that it is about, and its kind."""
    chosen, kind = plans.step_set[0], plans.step_kind[0]
    plans.counts[STEPS] -= 1
    for at in range(plans.counts[STEPS]):
        plans.step_time[at] = plans.step_time[at + 1]
        plans.step_set[at] = plans.step_set[at + 1]
        plans.step_kind[at] = plans.step_kind[at + 1]
    return chosen, kind


@within
def maintain(
    rules: Rules,
    jobs: Jobs,
    plans: Plans,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    log: Log,
    clock: KernelClock,
    fresh: int,
    arriving: bool,
    now: float,
) -> tuple[int, int]:
    """Do what is planned for now: announcements, begins and ends, in the order in which they came to be known.

    Returns how many jobs are to queue again, ``fresh`` of which did before; and what becomes of the run.
    """
    counts, words = plans.counts, nodes.free.size
    while next_planned(plans) == now:
        if counts[STEPS] == 0 or plans.step_time[0] > now:
            _announce(plans)
            continue
        chosen, kind = _next_step(plans)
        if kind == _BEGINS and _passes_in_vain(clock, arriving):
            return fresh, IN_VAIN
        for node in range(nodes.first.size):
            if _is_in(plans.sets, chosen * words, nodes.first[node]):
                if kind == _BEGINS:
                    _goes_down(nodes, slots, clock, node, 1, now)
                else:
                    _comes_up(nodes, clock, node, now)
        if kind == _ENDS:
            _forget(plans, chosen, now)
            continue
        fresh, hopeless = _lose(rules, jobs, nodes, slots, lives, log, clock, fresh, now)
        if hopeless:
            return fresh, HOPELESS
        for node in range(nodes.first.size):
            if _is_in(plans.sets, chosen * words, nodes.first[node]):
                _close_node(nodes, clock, node, now)
    return fresh, GOES_ON
