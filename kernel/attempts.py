"""Attempts of jobs whose nodes can fail: how each begins, what became of it, and how the job comes back.

The arithmetic is that of `pipistrelle.platforms.failures.checkpointing`, compiled unchanged, in the same order.
"""

from math import inf

from pipistrelle.kernel.compiled import within, woven_in
from pipistrelle.kernel.sets import WORD, Ints, heap_push, insert_sorted
from pipistrelle.kernel.state import (
    ASKED,
    AT_WALLTIME,
    BY_SUBMIT,
    BY_WALLTIME,
    CAME,
    COMPLETED,
    DUMPING,
    DUMPS,
    EASY,
    END,
    GIVEN_UP,
    HOPES,
    JOB,
    LOOKED_AT,
    LOST,
    NUMBER,
    READING,
    RETRIED,
    ROWS,
    RUN,
    RUNNING,
    SAVED,
    SAVED_BEFORE,
    START,
    STARTED,
    STATE,
    UNSAVED,
    USEFUL,
    WAITING,
    Jobs,
    KernelClock,
    KernelLives,
    KernelSlots,
    Log,
    Nodes,
    Rules,
)
from pipistrelle.platforms.failures import checkpointing

dumps_until_done = within(checkpointing.dumps_until_done)
done_at = within(checkpointing.done_at)
phase_at = within(checkpointing.phase_at)

#: a new attempt's walltime (s) is never less, even if all its work is saved
_SHORTEST = 1.0


@within
def extended(rules: Rules, walltime: float, saved: float, interval: float) -> float:
    """Return how long (s) so much work takes with its dumps, and a read if some is saved."""
    if walltime == inf:
        return inf
    read = rules.read if saved > 0 else 0.0
    work = max((walltime + saved) - saved, 0.0)
    if not rules.dumps:
        return done_at(0.0, 0.0, work, 0, 0.0)
    return done_at(0.0, read, work, dumps_until_done(work, interval), rules.dump)


@within
def count_nodes(nodes: Nodes, held: Ints, base: int, low: int, high: int) -> int:
    """Return how many nodes have at least one of the positions in words; those of a node stand together."""
    found, last = 0, -1
    for word in range(low, high):
        bits = held[base + word]
        for at in range(WORD):
            if (bits >> at) & 1:
                node = nodes.node[word * WORD + at]
                if node != last:
                    found += 1
                    last = node
    return found


@woven_in
def set_off(
    rules: Rules, jobs: Jobs, nodes: Nodes, lives: KernelLives, slots: KernelSlots, slot: int, now: float
) -> float:
    """Let the job of a slot begin to work now, and return when it will have ended if nothing happens (s)."""
    job = slots.job[slot]
    runtime, walltime = jobs.runtime[job], lives.walltime[job]
    if not rules.dumps:
        slots.in_time[slot] = 1 if runtime <= walltime else 0
        return float(now + min(runtime, walltime))
    size = jobs.size[job]
    count = size
    if nodes.node.size > nodes.units.size:
        base = slot * nodes.free.size
        count = count_nodes(nodes, slots.held, base, slots.low[slot], slots.high[slot])
    slots.nodes[slot] = count
    saved = lives.saved[job]
    work = max(runtime - saved, 0.0)
    dumps = dumps_until_done(work, nodes.interval[count])
    slots.dumps[slot] = dumps
    finish = done_at(now, rules.read if saved > 0 else 0.0, work, dumps, rules.dump)
    slots.finish[slot] = finish
    limit = now + walltime
    slots.in_time[slot] = 1 if finish <= limit else 0
    return float(finish if finish <= limit else limit)


@woven_in
def begin_work(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    clock: KernelClock,
    slot: int,
    job: int,
    now: float,
) -> None:
    """Let a job begin now in the next spare slot, which has its units already."""
    ints = clock.ints
    runs = ints[RUN]
    slots.job[slot] = job
    walltime = lives.walltime[job]
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
        insert_sorted(slots.planned_time, slots.planned_units, slots.planned_slot, runs, until, jobs.size[job], slot)
    ints[RUN] = runs + 1


@within
def _come_back(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    lives: KernelLives,
    clock: KernelClock,
    job: int,
    held: int,
    saved: float,
    now: float,
) -> None:
    """Let a job that has just lost ``held`` nodes be as its next attempt finds it."""
    lives.fruitless[job] = lives.fruitless[job] + 1 if saved == lives.saved[job] else 0
    lives.attempt[job] += 1
    lives.saved[job] = saved
    lives.came[job] = now
    walltime = jobs.walltime[job]
    if rules.rest:
        walltime = max(walltime - saved, _SHORTEST)
    if rules.extended:
        walltime = extended(rules, walltime, saved, nodes.interval[nodes.together[jobs.size[job]]])
    lives.walltime[job] = walltime
    if rules.hope and lives.fruitless[job] == LOOKED_AT:
        left = jobs.runtime[job] - saved
        if rules.dumps:
            left = (rules.read if saved > 0 else 0.0) + min(left, nodes.interval[held] + rules.dump)
        clock.hopes[clock.ints[HOPES], 0] = jobs.size[job]
        clock.hopes[clock.ints[HOPES], 1] = min(left, walltime)
        clock.ints[HOPES] += 1


@woven_in
def close(  # noqa: PLR0915 - a row has many columns
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    lives: KernelLives,
    slots: KernelSlots,
    log: Log,
    clock: KernelClock,
    slot: int,
    now: float,
) -> None:
    """Write the row of an attempt that ends now, or is lost before its time, and note what becomes of its job."""
    job = slots.job[slot]
    start, ends, size = slots.start[slot], slots.ends[slot], jobs.size[job]
    lost = now < ends
    state = COMPLETED if slots.in_time[slot] == 1 else AT_WALLTIME
    if lost:
        state = GIVEN_UP
    retried = lost and rules.retries and lives.attempt[job] + 1 < rules.most_attempts
    lives.state[job] = WAITING if retried else state
    lives.start[job] = start
    lives.end[job] = now
    lives.waited[job] += start - lives.came[job]
    lives.ran[job] += now - start
    row = clock.ints[ROWS]
    clock.ints[ROWS] += 1
    counts, times = log.ints[:, row], log.floats[:, row]
    counts[JOB] = job
    counts[NUMBER] = lives.attempt[job]
    counts[STATE] = state
    counts[RETRIED] = 1 if retried else 0
    counts[DUMPS] = 0
    times[CAME] = lives.came[job]
    times[START] = start
    times[END] = now
    times[ASKED] = lives.walltime[job]
    times[USEFUL:] = 0.0
    before = lives.saved[job]
    times[SAVED_BEFORE] = before
    saved = before
    stopped = min(max(now, start), ends)
    if rules.dumps:
        held, work, finish = slots.nodes[slot], max(jobs.runtime[job] - before, 0.0), slots.finish[slot]
        phase = phase_at(
            stopped,
            start,
            rules.read if before > 0 else 0.0,
            work,
            nodes.interval[held],
            slots.dumps[slot],
            rules.dump,
            finish,
        )
        each = size / held
        rest = (phase.working - phase.saved) * held
        times[USEFUL] = each * (phase.saved * held)
        times[LOST if lost else UNSAVED] = each * rest
        times[DUMPING] = each * (phase.dumping * held)
        times[READING] = each * (phase.reading * held)
        counts[DUMPS] = phase.dumps
        saved = jobs.runtime[job] if stopped >= finish else before + phase.saved
    else:
        work = size * max(min(now, ends) - start, 0.0)
        done = not lost and slots.in_time[slot] == 1
        times[LOST if lost else USEFUL if done else UNSAVED] = work
        if done:
            saved = jobs.runtime[job]
    times[SAVED] = saved
    if retried:
        _come_back(rules, jobs, nodes, lives, clock, job, slots.nodes[slot], saved, now)
    else:
        lives.saved[job] = saved


@within
def rank(rules: Rules, jobs: Jobs, lives: KernelLives, job: int) -> float:
    """Return what a job that joins the queue is ordered by."""
    if rules.order == BY_WALLTIME:
        return float(lives.walltime[job])
    if rules.order == BY_SUBMIT:
        submit = jobs.submit[job] if rules.original else lives.came[job]
        return float(submit - jobs.boost[job])
    return float(jobs.boost[job])
