"""The kernel's loop: instants one after the other, each as reference engine and scheduler go through it.

Within an instant jobs end, then nodes fail, then are repaired; jobs that lost their nodes queue again before others
join; then the scheduler starts what may start.
"""

from math import inf
from typing import Final

from pipistrelle.studies.kernel.attempts import close, extended, rank, set_off
from pipistrelle.studies.kernel.compiled import compiled, inlined
from pipistrelle.studies.kernel.sets import (
    WORD,
    add_where,
    drop_sorted,
    heap_drop,
    heap_push,
    insert_sorted,
    reserve,
    take_lowest,
)
from pipistrelle.studies.kernel.state import (
    EASY,
    EXTRA,
    FIRST,
    FIRST_FIT,
    FREE,
    HOPES,
    IDLE_NOTICES,
    IDLE_OUTAGES,
    MOVED,
    NEXT_JOB,
    NEXT_OUTAGE,
    NO_BACKFILL,
    NOW,
    REPAIRS,
    ROWS,
    RUN,
    RUNNING,
    SHADOW,
    STARTED,
    STRUCK,
    SUBMITTED,
    WAITING,
    Jobs,
    KernelClock,
    KernelLives,
    KernelSlots,
    Log,
    Nodes,
    Outs,
    Rules,
)
from pipistrelle.studies.kernel.waiting import BLOCK, Queue, drop_first, join, pass_over
from pipistrelle.studies.kernel.waiting import WAITING as IN_QUEUE

#: why the loop has stopped: all is done; the horizon; it needs to know of later outages; the log has no room for an
#: instant's attempts; there are jobs to be looked at; and the ways of a run that will never end
DONE: Final = 0
AT_HORIZON: Final = 1
NEEDS_OUTAGES: Final = 2
NEEDS_ROOM: Final = 3
LOOK: Final = 4
NOTHING_TO_COME: Final = 5
ONLY_OUTAGES: Final = 6
ONLY_NOTICES: Final = 7
NEVER_DONE: Final = 8

#: as of the reference engine: outages, or notices, that lead to nothing, and attempts that save nothing
MOST: Final = 10_000


@compiled
def _holder(slots: KernelSlots, runs: int, words: int, position: int) -> int:
    """Return the slot of the job that has a position, -1 if none has it."""
    word, bit = position // WORD, position % WORD
    for at in range(runs):
        slot = slots.end_slot[at]
        if slots.low[slot] <= word < slots.high[slot] and (slots.held[slot * words + word] >> bit) & 1:
            return int(slot)
    return -1


@compiled
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


@inlined
def _release(
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


@compiled
def _keep_words(nodes: Nodes, slots: KernelSlots, log: Log, slot: int, row: int) -> None:
    """Write down which positions the job of a slot has."""
    base = slot * nodes.free.size
    for word in range(slots.low[slot], slots.high[slot]):
        log.words[row, word] = slots.held[base + word]


@inlined
def _end(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    log: Log,
    clock: KernelClock,
    now: float,
) -> None:
    """Let the job end that ends first."""
    slot = slots.end_slot[0]
    heap_drop(slots.end_time, slots.end_slot, clock.ints[RUN], 0)
    if rules.keeping:
        _keep_words(nodes, slots, log, slot, clock.ints[ROWS] if rules.failing else slots.job[slot])
    if rules.failing:
        close(rules, jobs, nodes, lives, slots, log, clock, slot, now)
    _release(rules, jobs, nodes, slots, clock, slot, now)


@compiled
def _lose(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    log: Log,
    clock: KernelClock,
    slot: int,
    now: float,
) -> bool:
    """End an attempt that has lost its nodes; tell whether the job comes back."""
    at = 0
    while slots.end_slot[at] != slot:
        at += 1
    heap_drop(slots.end_time, slots.end_slot, clock.ints[RUN], at)
    if rules.keeping:
        _keep_words(nodes, slots, log, slot, clock.ints[ROWS])
    close(rules, jobs, nodes, lives, slots, log, clock, slot, now)
    _release(rules, jobs, nodes, slots, clock, slot, now)
    return bool(lives.state[slots.job[slot]] == WAITING)


@compiled
def _fail(
    rules: Rules,
    jobs: Jobs,
    outages: Outs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    log: Log,
    clock: KernelClock,
    now: float,
) -> tuple[int, bool, bool]:
    """Let all nodes fail that fail now.

    Returns how many jobs are to queue again, at the begin of ``clock.fresh``; whether a node that was up went down; and
    whether a job has lost so much that it will never be done.
    """
    ints = clock.ints
    row = ints[NEXT_OUTAGE]
    ints[STRUCK] = 0
    news, hopeless = False, False
    begin = row
    while row < outages.down.size and outages.down[row] == now:
        node = outages.node[row]
        if outages.up[row] < inf:
            heap_push(slots.repair_time, slots.repair_node, ints[REPAIRS], outages.up[row], node)
            ints[REPAIRS] += 1
        nodes.reasons[node] += 1
        if nodes.reasons[node] == 1:
            nodes.failed[node] += 1
            nodes.since[node] = now
            news = True
            _find_struck(nodes, slots, clock, node)
        row += 1
    ints[NEXT_OUTAGE] = row
    fresh = 0
    for at in range(ints[STRUCK]):
        job = slots.job[clock.struck[at]]
        if _lose(rules, jobs, nodes, slots, lives, log, clock, clock.struck[at], now):
            clock.fresh[fresh] = job
            fresh += 1
            hopeless = hopeless or (not rules.limited and lives.fruitless[job] >= MOST)
    for at in range(begin, row):  # what jobs have just given back is among the units that go
        node = outages.node[at]
        if nodes.since[node] == now:
            for position in range(nodes.first[node], nodes.first[node] + nodes.units[node]):
                bit = 1 << (position % WORD)
                if nodes.free[position // WORD] & bit:
                    nodes.free[position // WORD] ^= bit
                    ints[FREE] -= 1
    return fresh, news, hopeless


@compiled
def _repair(nodes: Nodes, slots: KernelSlots, clock: KernelClock, now: float) -> bool:
    """Let all nodes come back whose repair is done now; tell whether there are any."""
    ints, news = clock.ints, False
    while ints[REPAIRS] > 0 and slots.repair_time[0] == now:
        node = slots.repair_node[0]
        heap_drop(slots.repair_time, slots.repair_node, ints[REPAIRS], 0)
        ints[REPAIRS] -= 1
        nodes.reasons[node] -= 1
        if nodes.reasons[node] == 0:
            nodes.down[node] += now - nodes.since[node]
            nodes.since[node] = -1.0
            news = True
            for position in range(nodes.first[node], nodes.first[node] + nodes.units[node]):
                nodes.free[position // WORD] |= 1 << (position % WORD)
            ints[FREE] += nodes.units[node]
    return news


@inlined
def _first(queue: Queue) -> int:
    block = queue.line[0]
    return int(queue.job[block * BLOCK + queue.first[block]])


@inlined
def _choose(
    rules: Rules,
    jobs: Jobs,
    queue: Queue,
    slots: KernelSlots,
    lives: KernelLives,
    clock: KernelClock,
    fresh: int,
    now: float,
    step: int,
) -> int:
    """Write down who starts now, in order, take them out of the queue, and return how many they are.

    In step 0 those that join do so, and the first in the queue start as long as they fit, in step 1 others pass the
    first.
    """
    ints, chosen = clock.ints, clock.chosen
    free, found, first = ints[FREE], 0, ints[FIRST]
    if step == 0:
        alone = False
        if fresh == 1:
            job = clock.fresh[0]
            size = jobs.size[job]
            late = False
            if first >= 0:  # nothing has changed but that it came
                alone = queue.rank[job] > queue.rank[first] or (
                    queue.rank[job] == queue.rank[first] and queue.number[job] > queue.number[first]
                )
                late = now + lives.walltime[job] > clock.floats[SHADOW]
            starts = queue.counts[IN_QUEUE] == 0 or (alone and (not late or size <= ints[EXTRA]))
            if starts and size <= free:
                chosen[0] = job
                ints[FREE] = free - size
                if late:
                    ints[EXTRA] -= size
                return 1
        for at in range(fresh):
            job = clock.fresh[at]
            join(queue, job, jobs.size[job], lives.walltime[job])
        if alone:
            return 0
        if fresh > 0:
            ints[FIRST] = -1
        while queue.counts[IN_QUEUE] > 0:
            job = _first(queue)
            if jobs.size[job] > free:
                break
            drop_first(queue)
            chosen[found] = job
            found += 1
            free -= jobs.size[job]
        ints[FREE] = free
        if found > 0:
            ints[FIRST] = -1
        return found
    if first >= 0 or free == 0 or queue.counts[IN_QUEUE] == 0:
        return 0
    first = _first(queue)
    shadow, extra = -inf, -1
    if rules.backfill == EASY:
        shadow, extra = reserve(slots.planned_time, slots.planned_units, ints[RUN], jobs.size[first], free)
    elif rules.backfill == FIRST_FIT:
        shadow, extra = inf, 0
    if rules.backfill != NO_BACKFILL and queue.counts[IN_QUEUE] > 1:
        found, free, extra = pass_over(queue, chosen, free, extra, shadow, now)
    ints[FREE], ints[FIRST], ints[EXTRA] = free, first, extra
    clock.floats[SHADOW] = shadow
    return found


@inlined
def _start(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    clock: KernelClock,
    job: int,
    now: float,
) -> None:
    """Let a job start now; its units are counted as taken already."""
    ints = clock.ints
    runs = ints[RUN]
    slot = slots.spare[slots.spare.size - 1 - runs]
    slots.job[slot] = job
    size, walltime = jobs.size[job], lives.walltime[job]
    if rules.placing:
        slots.low[slot], slots.high[slot] = take_lowest(nodes.free, slots.held, slot * nodes.free.size, size)
    if rules.failing:
        slots.serial[slot] = ints[STARTED]
        ints[STARTED] += 1
        slots.start[slot] = now
        ends = set_off(rules, jobs, nodes, lives, slots, slot, now)
        slots.ends[slot] = ends
        lives.state[job] = RUNNING
    else:  # the rest follows from its start
        lives.start[job] = now
        ends = now + min(jobs.runtime[job], walltime)
    heap_push(slots.end_time, slots.end_slot, runs, ends, slot)
    if rules.backfill == EASY:
        until = now + walltime
        slots.until[slot] = until
        insert_sorted(slots.planned_time, slots.planned_units, slots.planned_slot, runs, until, size, slot)
    ints[RUN] = runs + 1


@compiled
def advance(  # noqa: PLR0915 - a call with all that it needs takes long
    rules: Rules,
    jobs: Jobs,
    outages: Outs,
    nodes: Nodes,
    queue: Queue,
    slots: KernelSlots,
    lives: KernelLives,
    log: Log,
    clock: KernelClock,
) -> int:
    """Let time pass until all is done, or something is needed; return why it has stopped (`DONE` and others)."""
    ints, floats = clock.ints, clock.floats
    count = jobs.submit.size
    while True:
        coming = ints[NEXT_JOB]
        if coming == count and ints[RUN] == 0 and queue.counts[IN_QUEUE] == 0:
            return DONE
        time = jobs.submit[coming] if coming < count else inf
        if ints[RUN] > 0:
            time = min(time, slots.end_time[0])
        failing = False
        if rules.failing:
            if ints[ROWS] + nodes.node.size > log.ints.shape[1]:
                return NEEDS_ROOM
            if ints[REPAIRS] > 0:
                time = min(time, slots.repair_time[0])
            if ints[NEXT_OUTAGE] < outages.down.size:
                time = min(time, outages.down[ints[NEXT_OUTAGE]])
                failing = outages.down[ints[NEXT_OUTAGE]] == time
            elif time >= outages.known[0] and rules.until > outages.known[0] and outages.known[0] < inf:
                return NEEDS_OUTAGES
        if time >= rules.until:
            floats[NOW] = rules.until
            return AT_HORIZON
        if time == inf:
            return NOTHING_TO_COME
        now = time
        floats[NOW] = now
        released, told, hopeless, fresh = False, False, False, 0
        while ints[RUN] > 0 and slots.end_time[0] == now:
            _end(rules, jobs, nodes, slots, lives, log, clock, now)
            released = True
        if released:
            ints[MOVED] = 3
        if failing:
            if ints[MOVED] & 1 or coming < count:
                ints[IDLE_OUTAGES] = 0
                ints[MOVED] &= 2
            ints[IDLE_OUTAGES] += 1
            if ints[IDLE_OUTAGES] > MOST and ints[RUN] == 0:
                return ONLY_OUTAGES
            fresh, told, hopeless = _fail(rules, jobs, outages, nodes, slots, lives, log, clock, now)
            if hopeless:
                return NEVER_DONE
            released = released or told
        if ints[REPAIRS] > 0 and _repair(nodes, slots, clock, now):
            told = True
            released = True
        while coming < count and jobs.submit[coming] == now:
            if rules.failing:
                lives.state[coming] = WAITING
            if rules.extended:
                interval = nodes.interval[nodes.together[jobs.size[coming]]]
                lives.walltime[coming] = extended(rules, jobs.walltime[coming], 0.0, interval)
            clock.fresh[fresh] = coming
            fresh += 1
            coming += 1
        ints[NEXT_JOB] = coming
        for at in range(fresh):
            job = clock.fresh[at]
            queue.rank[job] = rank(rules, jobs, lives, job)
            queue.number[job] = ints[SUBMITTED]
            ints[SUBMITTED] += 1
        if fresh > 0:
            ints[MOVED] = 3
        if rules.failing and coming == count and ints[RUN] == 0 and (released or fresh > 0):
            if ints[MOVED] & 2:
                ints[IDLE_NOTICES] = 0
                ints[MOVED] &= 1
            ints[IDLE_NOTICES] += 1
            if ints[IDLE_NOTICES] > MOST:
                return ONLY_NOTICES
        if released:
            ints[FIRST] = -1
        for step in range(2):
            found = _choose(rules, jobs, queue, slots, lives, clock, fresh, now, step)
            for at in range(found):
                _start(rules, jobs, nodes, slots, lives, clock, clock.chosen[at], now)
            if found > 0:
                ints[MOVED] = 3
        if ints[HOPES] > 0:
            return LOOK
