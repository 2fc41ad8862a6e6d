"""Attempts of jobs whose nodes can fail: how each begins, what became of it, and how the job comes back.

The arithmetic is that of `pipistrelle.platforms.failures.checkpointing`, compiled unchanged, in the same order.
"""

from math import inf

from pipistrelle.kernel.compiled import within, woven_in
from pipistrelle.kernel.sets import WORD, Ints, heap_push, insert_sorted
from pipistrelle.kernel.state import (
    AT_WALLTIME,
    BY_SUBMIT,
    BY_WALLTIME,
    COMPLETED,
    EASY,
    GIVEN_UP,
    LOOKED_AT,
    RUNNING,
    WAITING,
    Nodes,
    Rules,
    State,
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
def set_off(run: State, slot: int, now: float) -> float:
    """Let the job of a slot begin to work now, and return when it will have ended if nothing happens (s)."""
    rules, nodes, row = run.rules, run.nodes, run.slots.rows[slot]
    job = row.job
    runtime, walltime = run.jobs.runtime[job], run.lives.walltime[job]
    if not rules.dumps:
        row.in_time = 1 if runtime <= walltime else 0
        return float(now + min(runtime, walltime))
    count = run.jobs.size[job]
    if nodes.node.size > nodes.rows.size:
        count = count_nodes(nodes, run.slots.held, slot * nodes.free.size, row.low, row.high)
    row.nodes = count
    saved = run.lives.saved[job]
    work = max(runtime - saved, 0.0)
    row.dumped = dumps_until_done(work, nodes.interval[count])
    row.finish = done_at(now, rules.read if saved > 0 else 0.0, work, row.dumped, rules.dump)
    limit = now + walltime
    row.in_time = 1 if row.finish <= limit else 0
    return float(min(row.finish, limit))


@woven_in
def begin_work(run: State, slot: int, job: int, now: float) -> None:
    """Let a job begin now in the next spare slot, which has its units already."""
    rules, slots, clock = run.rules, run.slots, run.clock
    row = slots.rows[slot]
    row.job = job
    walltime = run.lives.walltime[job]
    if rules.failing:
        row.serial = clock.started
        clock.started += 1
        row.start = now
        ends = set_off(run, slot, now)
        row.ends = ends
        run.lives.state[job] = RUNNING
    else:  # the rest follows from its start
        run.lives.start[job] = now
        ends = now + min(run.jobs.runtime[job], walltime)
    heap_push(slots.end_time, slots.end_slot, clock.running, ends, slot)
    if rules.backfill == EASY:
        row.until = now + walltime
        size = run.jobs.size[job]
        insert_sorted(slots.planned_time, slots.planned_units, slots.planned_slot, clock.running, row.until, size, slot)
    clock.running += 1


@within
def _come_back(run: State, job: int, held: int, saved: float, now: float) -> None:
    """Let a job that has just lost ``held`` nodes be as its next attempt finds it."""
    rules, lives, nodes = run.rules, run.lives, run.nodes
    lives.fruitless[job] = lives.fruitless[job] + 1 if saved == lives.saved[job] else 0
    lives.attempt[job] += 1
    lives.saved[job] = saved
    lives.came[job] = now
    walltime = run.jobs.walltime[job]
    if rules.rest:
        walltime = max(walltime - saved, _SHORTEST)
    if rules.extended:
        walltime = extended(rules, walltime, saved, nodes.interval[nodes.together[run.jobs.size[job]]])
    lives.walltime[job] = walltime
    if rules.hope and lives.fruitless[job] == LOOKED_AT:
        left = run.jobs.runtime[job] - saved
        if rules.dumps:
            left = (rules.read if saved > 0 else 0.0) + min(left, nodes.interval[held] + rules.dump)
        run.lists.hopes[run.clock.hopes, 0] = run.jobs.size[job]
        run.lists.hopes[run.clock.hopes, 1] = min(left, walltime)
        run.clock.hopes += 1


@woven_in
def close(run: State, slot: int, now: float) -> None:  # noqa: PLR0915 - a row has many columns
    """Write the row of an attempt that ends now, or is lost before its time, and note what becomes of its job."""
    rules, lives, one = run.rules, run.lives, run.slots.rows[slot]
    job, start, ends = one.job, one.start, one.ends
    size, runtime, before = run.jobs.size[job], run.jobs.runtime[job], lives.saved[job]
    lost = now < ends
    state = COMPLETED if one.in_time == 1 else AT_WALLTIME
    if lost:
        state = GIVEN_UP
    retried = lost and rules.retries and lives.attempt[job] + 1 < rules.most_attempts
    lives.state[job] = WAITING if retried else state
    lives.start[job] = start
    lives.end[job] = now
    lives.waited[job] += start - lives.came[job]
    lives.ran[job] += now - start
    log, row = run.log, run.clock.rows
    run.clock.rows += 1
    log.job[row] = job
    log.number[row] = lives.attempt[job]
    log.state[row] = state
    log.retried[row] = 1 if retried else 0
    log.came[row] = lives.came[job]
    log.start[row] = start
    log.end[row] = now
    log.asked[row] = lives.walltime[job]
    log.saved_before[row] = before
    saved, dumps, useful, dumping, reading = before, 0, 0.0, 0.0, 0.0
    stopped = min(max(now, start), ends)
    if rules.dumps:
        held, work = one.nodes, max(runtime - before, 0.0)
        read = rules.read if before > 0 else 0.0
        phase = phase_at(stopped, start, read, work, run.nodes.interval[held], one.dumped, rules.dump, one.finish)
        each = size / held
        rest = each * ((phase.working - phase.saved) * held)
        useful = each * (phase.saved * held)
        dumping = each * (phase.dumping * held)
        reading = each * (phase.reading * held)
        dumps = phase.dumps
        saved = runtime if stopped >= one.finish else before + phase.saved
    else:
        rest = size * max(min(now, ends) - start, 0.0)
        if state == COMPLETED:
            useful, rest, saved = rest, 0.0, runtime
    log.dumps[row] = dumps
    log.saved[row] = saved
    log.useful[row] = useful
    log.unsaved[row] = 0.0 if lost else rest
    log.lost[row] = rest if lost else 0.0
    log.dumping[row] = dumping
    log.reading[row] = reading
    if retried:
        _come_back(run, job, one.nodes, saved, now)
    else:
        lives.saved[job] = saved


@woven_in
def rank(run: State, job: int) -> float:
    """Return what a job that joins the queue is ordered by."""
    if run.rules.order == BY_WALLTIME:
        return float(run.lives.walltime[job])
    if run.rules.order == BY_SUBMIT:
        submit = run.jobs.submit[job] if run.rules.original else run.lives.came[job]
        return float(submit - run.jobs.boost[job])
    return float(run.jobs.boost[job])
