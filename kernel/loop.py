"""The kernel's loop: instants one after the other, each as reference engine and scheduler go through it.

Within an instant jobs end, then nodes fail, then are repaired; jobs that lost their nodes queue again before others
join; then the scheduler starts what may start.
"""

from math import inf
from typing import Final

from pipistrelle.kernel.around import start_around
from pipistrelle.kernel.attempts import begin_work, close, extended, rank
from pipistrelle.kernel.compiled import compiled, woven_in
from pipistrelle.kernel.outages import (
    GOES_ON,
    IN_VAIN,
    MOST,
    fail,
    keep_words,
    maintain,
    next_planned,
    release,
    repair,
)
from pipistrelle.kernel.sets import heap_drop, reserve, take_lowest
from pipistrelle.kernel.state import (
    EASY,
    EXTRA,
    FIRST,
    FIRST_FIT,
    FREE,
    HOPES,
    IDLE_NOTICES,
    MOVED,
    NEXT_JOB,
    NEXT_OUTAGE,
    NEXT_PLAN,
    NO_BACKFILL,
    NOW,
    REPAIRS,
    ROWS,
    RUN,
    SHADOW,
    SUBMITTED,
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
from pipistrelle.kernel.waiting import WAITING as IN_QUEUE
from pipistrelle.kernel.waiting import Queue, drop_first, first_of, join, pass_over

#: why the loop has stopped: all is done; the horizon; it needs to know of later outages; the log has no room for an
#: instant's attempts; there are jobs to be looked at; the ways of a run that will never end; and it needs to know of
#: later maintenance
DONE: Final = 0
AT_HORIZON: Final = 1
NEEDS_OUTAGES: Final = 2
NEEDS_ROOM: Final = 3
LOOK: Final = 4
NOTHING_TO_COME: Final = 5
ONLY_OUTAGES: Final = 6
ONLY_NOTICES: Final = 7
NEVER_DONE: Final = 8
NEEDS_PLANS: Final = 9


@woven_in
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
        keep_words(nodes, slots, log, slot, clock.ints[ROWS] if rules.failing else slots.job[slot])
    if rules.failing:
        close(rules, jobs, nodes, lives, slots, log, clock, slot, now)
    release(rules, jobs, nodes, slots, clock, slot, now)


@woven_in
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
            job = first_of(queue)
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
    first = first_of(queue)
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


@woven_in
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
    slot = slots.spare[slots.spare.size - 1 - clock.ints[RUN]]
    if rules.placing:
        size = jobs.size[job]
        slots.low[slot], slots.high[slot] = take_lowest(nodes.free, slots.held, slot * nodes.free.size, size)
    begin_work(rules, jobs, nodes, slots, lives, clock, slot, job, now)


@compiled
def advance(  # noqa: PLR0915 - a call with all that it needs takes long
    rules: Rules,
    jobs: Jobs,
    outages: Outs,
    plans: Plans,
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
        if rules.failing:
            if ints[ROWS] + nodes.node.size > log.ints.shape[1]:
                return NEEDS_ROOM
            if ints[REPAIRS] > 0:
                time = min(time, slots.repair_time[0])
            if ints[NEXT_OUTAGE] < outages.down.size:
                time = min(time, outages.down[ints[NEXT_OUTAGE]])
            elif time >= outages.known[0] and rules.until > outages.known[0] and outages.known[0] < inf:
                return NEEDS_OUTAGES
            if rules.planned:
                if plans.counts[NEXT_PLAN] == plans.announced.size and plans.more[0] == 1:
                    return NEEDS_PLANS
                time = min(time, next_planned(plans))
        if time >= rules.until:
            floats[NOW] = rules.until
            return AT_HORIZON
        if time == inf:
            return NOTHING_TO_COME
        now = time
        floats[NOW] = now
        failing = rules.failing and ints[NEXT_OUTAGE] < outages.down.size and outages.down[ints[NEXT_OUTAGE]] == now
        released, told, fate, fresh = False, False, GOES_ON, 0
        while ints[RUN] > 0 and slots.end_time[0] == now:
            _end(rules, jobs, nodes, slots, lives, log, clock, now)
            released = True
        if released:
            ints[MOVED] = 3
        if failing:
            fresh, told, fate = fail(rules, jobs, outages, nodes, slots, lives, log, clock, coming < count, now)
            released = released or told
        if ints[REPAIRS] > 0 and repair(nodes, slots, clock, now):
            released = True
        if rules.planned and fate == GOES_ON and next_planned(plans) == now:
            fresh, fate = maintain(rules, jobs, plans, nodes, slots, lives, log, clock, fresh, coming < count, now)
            released = True
        if fate != GOES_ON:
            return ONLY_OUTAGES if fate == IN_VAIN else NEVER_DONE
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
        if rules.planned and plans.counts[WINDOWS] > 0:
            if start_around(rules, jobs, nodes, queue, slots, lives, plans, clock, fresh, now) > 0:
                ints[MOVED] = 3
            ints[FIRST] = -1
            if ints[HOPES] > 0:
                return LOOK
            continue
        for step in range(2):
            found = _choose(rules, jobs, queue, slots, lives, clock, fresh, now, step)
            for at in range(found):
                _start(rules, jobs, nodes, slots, lives, clock, clock.chosen[at], now)
            if found > 0:
                ints[MOVED] = 3
        if ints[HOPES] > 0:
            return LOOK
