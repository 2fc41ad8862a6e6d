"""Advance the kernel from event to event, in the reference engine's order.

When several things happen at one time, jobs end first. Then nodes fail, and then nodes are repaired. Interrupted jobs
join the queue before new jobs do. The scheduler starts jobs last.
"""

from math import inf
from typing import Final

from pipistrelle.kernel.around import start_around
from pipistrelle.kernel.attempts import begin_work, extended, rank
from pipistrelle.kernel.compiled import compiled, is_late, reservation_of, woven_in
from pipistrelle.kernel.outages import end, fail, maintain, next_planned, repair
from pipistrelle.kernel.sets import take_lowest
from pipistrelle.kernel.state import EASY, FIRST_FIT, NO_BACKFILL, WAITING, State
from pipistrelle.kernel.waiting import drop_first, first_of, join, pass_over
from pipistrelle.server.engine.stalls import MAX_FRUITLESS

#: why the loop stopped: the run is complete; the time limit is reached; later outages are needed; the log is too small;
#: jobs must be checked; the run stalled (three kinds); later maintenances are needed
DONE: Final = 0
AT_HORIZON: Final = 1
NEEDS_OUTAGES: Final = 2
NEEDS_ROOM: Final = 3
LOOK: Final = 4
NOTHING_TO_COME: Final = 5
ONLY_OUTAGES: Final = 6
ONLY_NOTICES: Final = 7
NEEDS_PLANS: Final = 8


@woven_in
def _choose(run: State, fresh: int, now: float, step: int) -> int:
    """Remove the jobs that start now from the queue, and return their number.

    Args:
        fresh: number of jobs in ``run.lists.fresh`` that first join the queue, in step 0.
        step: 0 for the jobs at the front of the queue, as long as they fit; 1 for backfilling.
    """
    jobs, queue, clock = run.jobs, run.queue, run.clock
    chosen = run.lists.chosen
    free, found, first = clock.free, 0, clock.first
    if step == 0:
        alone = False
        if fresh == 1:
            job = run.lists.fresh[0]
            size = jobs.size[job]
            late = False
            if first >= 0:  # the new job is the only change
                alone = queue.rank[job] > queue.rank[first] or (
                    queue.rank[job] == queue.rank[first] and queue.number[job] > queue.number[first]
                )
                late = is_late(now, run.lives.walltime[job], clock.shadow)
            starts = queue.counts.waiting == 0 or (alone and (not late or size <= clock.extra))
            if starts and size <= free:
                chosen[0] = job
                clock.free = free - size
                if late:
                    clock.extra -= size
                return 1
        for at in range(fresh):
            job = run.lists.fresh[at]
            join(queue, job, jobs.size[job], run.lives.walltime[job])
        if alone:
            return 0
        if fresh > 0:
            clock.first = -1
        while queue.counts.waiting > 0:
            job = first_of(queue)
            if jobs.size[job] > free:
                break
            drop_first(queue)
            chosen[found] = job
            found += 1
            free -= jobs.size[job]
        clock.free = free
        if found > 0:
            clock.first = -1
        return found
    if first >= 0 or free == 0 or queue.counts.waiting == 0:
        return 0
    first = first_of(queue)
    shadow, extra = -inf, -1
    if run.rules.backfill == EASY:
        slots = run.slots
        count = clock.running
        ends = zip(slots.planned_time[:count], slots.planned_slot[:count], slots.planned_units[:count])  # noqa: B905
        shadow, extra = reservation_of(ends, jobs.size[first], free)
    elif run.rules.backfill == FIRST_FIT:
        shadow, extra = inf, 0
    if run.rules.backfill != NO_BACKFILL and queue.counts.waiting > 1:
        found, free, extra = pass_over(queue, chosen, free, extra, shadow, now)
    clock.free, clock.first = free, first
    clock.shadow, clock.extra = shadow, extra
    return found


@woven_in
def _start(run: State, job: int, now: float) -> None:
    """Start a job now.

    The caller has already subtracted its units from the number of free units.
    """
    nodes, slots = run.nodes, run.slots
    slot = slots.spare[slots.spare.size - 1 - run.clock.running]
    if run.rules.placing:
        row = slots.rows[slot]
        row.low, row.high = take_lowest(nodes.free, slots.held, slot * nodes.free.size, run.jobs.size[job])
    begin_work(run, slot, job, now)


@compiled
def advance(run: State) -> int:  # noqa: PLR0915 - calls with this many arguments are slow
    """Simulate until the run ends, or until the caller must act.

    Return a constant of this module that says why: `DONE`, or what the caller must do.
    """
    rules, jobs, nodes = run.rules, run.jobs, run.nodes
    outages, plans, lives = run.outages, run.plans, run.lives
    queue, slots, clock = run.queue, run.slots, run.clock
    count, joining = jobs.submit.size, run.lists.fresh
    while True:
        coming = clock.next_job
        if coming == count and clock.running == 0 and queue.counts.waiting == 0:
            return DONE
        time = jobs.submit[coming] if coming < count else inf
        if clock.running > 0:
            time = min(time, slots.end_time[0])
        if rules.failing:
            if clock.rows + nodes.node.size > run.log.job.size:
                return NEEDS_ROOM
            if clock.repairs > 0:
                time = min(time, slots.repair_time[0])
            if clock.next_outage < outages.down.size:
                time = min(time, outages.down[clock.next_outage])
            elif time >= outages.known and rules.until > outages.known and outages.known < inf:
                return NEEDS_OUTAGES
            if rules.planned:
                if plans.counts.next == plans.coming.size and plans.counts.more == 1:
                    return NEEDS_PLANS
                time = min(time, next_planned(plans))
        if time >= rules.until:
            clock.now = rules.until
            return AT_HORIZON
        if time == inf:
            return NOTHING_TO_COME
        now = time
        clock.now = now
        failing = rules.failing and clock.next_outage < outages.down.size and outages.down[clock.next_outage] == now
        released, told, in_vain, fresh = False, False, False, 0
        while clock.running > 0 and slots.end_time[0] == now:
            end(run, slots.end_slot[0], 0, now)
            released = True
        if released:
            clock.moved = 3
        if failing:
            fresh, told, in_vain = fail(run, coming < count, now)
            released = released or told
        if clock.repairs > 0 and repair(nodes, slots, clock, now):
            released = True
        if rules.planned and not in_vain and next_planned(plans) == now:
            fresh, in_vain = maintain(run, fresh, coming < count, now)
            released = True
        if in_vain:
            return ONLY_OUTAGES
        while coming < count and jobs.submit[coming] == now:
            if rules.failing:
                lives.state[coming] = WAITING
            if rules.extended:
                lives.walltime[coming] = extended(run, jobs.walltime[coming], coming, 0.0)
            joining[fresh] = coming
            fresh += 1
            coming += 1
        clock.next_job = coming
        for at in range(fresh):
            job = joining[at]
            queue.rank[job] = rank(run, job)
            queue.number[job] = clock.submitted
            clock.submitted += 1
        if fresh > 0:
            clock.moved = 3
        if rules.failing and coming == count and clock.running == 0 and (released or fresh > 0):
            if clock.moved & 2:
                clock.idle_notices = 0
                clock.moved &= 1
            clock.idle_notices += 1
            if clock.idle_notices > MAX_FRUITLESS:
                return ONLY_NOTICES
        if released:
            clock.first = -1
        if rules.planned and plans.counts.windows > 0:
            if start_around(run, fresh, now) > 0:
                clock.moved = 3
            clock.first = -1
            if clock.hopes > 0:
                return LOOK
            continue
        for step in range(2):
            found = _choose(run, fresh, now, step)
            for at in range(found):
                _start(run, run.lists.chosen[at], now)
            if found > 0:
                clock.moved = 3
        if clock.hopes > 0:
            return LOOK
