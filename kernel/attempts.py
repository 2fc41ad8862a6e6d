"""Start, end and log the attempts of jobs on nodes that can fail.

Interrupted jobs are requeued. The rules are those of the reference engine (`pipistrelle.server.attempts.accounting`),
compiled unchanged.
"""

from pipistrelle.kernel.compiled import shared, within, woven_in
from pipistrelle.kernel.sets import WORD, Ints, heap_push, insert_sorted
from pipistrelle.kernel.state import (
    AT_WALLTIME,
    BY_WALLTIME,
    COMPLETED,
    EASY,
    GIVEN_UP,
    RUNNING,
    WAITING,
    Nodes,
    State,
)
from pipistrelle.platforms.failures.checkpointing import done_at, dumps_until_done, phase_at
from pipistrelle.server.attempts.accounting import (
    CHECKED_AT,
    MOST_FRUITLESS,
    NO_LIMIT,
    extended_walltime,
    fruitless_after,
    may_try_again,
    next_walltime,
    node_time,
    read_first,
    split_work,
    time_to_save,
    work_kept,
    work_left,
    worked_until,
)

shared(done_at, dumps_until_done, phase_at)
shared(read_first, work_left, extended_walltime, next_walltime, may_try_again, fruitless_after, worked_until)
shared(node_time, work_kept, split_work, time_to_save)


@within
def extended(run: State, walltime: float, job: int, saved: float) -> float:
    """Return a job's walltime (s), extended by the time for its checkpoints.

    It is extended only in a run with ``--checkpoint-walltime extended``. The extension is the time to read a
    checkpoint, if ``saved`` (s of work) is above 0, and to write checkpoints.
    """
    rules, nodes = run.rules, run.nodes
    if not rules.extended:
        return walltime
    interval = nodes.interval[nodes.together[run.jobs.size[job]]]
    return extended_walltime(walltime, saved, 1.0, rules.read, interval, rules.dump)


@within
def count_nodes(nodes: Nodes, held: Ints, base: int, low: int, high: int) -> int:
    """Return the number of nodes that have at least one of a job's units.

    Args:
        held: words of bit sets of positions (see `Nodes`), one set after the other.
        base: index in ``held`` at which the job's set begins.
        low, high: the first word of this set with a unit of the job, and the word after the last one.
    """
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
    """Begin the work of a running job.

    Return the time (s) at which the attempt ends unless it is interrupted.

    Args:
        slot: the job's index in `KernelSlots`; the job already has its units.
    """
    rules, nodes, row = run.rules, run.nodes, run.slots.rows[slot]
    job = run.slots.job[slot]
    runtime, walltime = run.jobs.runtime[job], run.lives.walltime[job]
    if not rules.dumps:
        row.in_time = 1 if runtime <= walltime else 0
        return float(now + min(runtime, walltime))
    count = run.jobs.size[job]
    if nodes.node.size > nodes.rows.size:
        count = count_nodes(nodes, run.slots.held, slot * nodes.free.size, row.low, row.high)
    row.nodes = count
    saved = run.lives.saved[job]
    work = work_left(runtime, saved)
    row.dumped = dumps_until_done(work, nodes.interval[count])
    row.finish = done_at(now, read_first(saved, rules.read), work, row.dumped, rules.dump)
    limit = now + walltime
    row.in_time = 1 if row.finish <= limit else 0
    return float(min(row.finish, limit))


@woven_in
def begin_work(run: State, slot: int, job: int, now: float) -> None:
    """Store a job that starts now among the running jobs, and begin its work.

    Args:
        slot: the index in `KernelSlots` to use; the caller has stored the job's units there.
        job: the job's row in the workload.
        now: the time (s).
    """
    rules, slots, clock = run.rules, run.slots, run.clock
    row = slots.rows[slot]
    slots.job[slot] = job
    walltime = run.lives.walltime[job]
    if rules.failing:
        row.serial = clock.started
        clock.started += 1
        row.start = now
        ends = set_off(run, slot, now)
        row.ends = ends
        run.lives.state[job] = RUNNING
    else:  # its start determines the rest
        run.lives.start[job] = now
        ends = now + min(run.jobs.runtime[job], walltime)
    heap_push(slots.end_time, slots.end_slot, clock.running, ends, slot)
    if rules.backfill == EASY:
        until = now + walltime
        slots.until[slot] = until
        size = run.jobs.size[job]
        insert_sorted(slots.planned_time, slots.planned_units, slots.planned_slot, clock.running, until, size, slot)
    clock.running += 1


@within
def _come_back(run: State, job: int, held: int, saved: float, now: float) -> None:
    """Prepare the next attempt of a job that was interrupted now: its number, walltime and saved work.

    If the job may never finish, add it to the list of jobs to check.

    Args:
        held: number of nodes of the interrupted attempt.
        saved: work (s) that checkpoints have saved, over all attempts.
    """
    rules, lives, clock = run.rules, run.lives, run.clock
    lives.fruitless[job] = fruitless_after(lives.fruitless[job], lives.saved[job], saved)
    lives.attempt[job] += 1
    lives.saved[job] = saved
    lives.came[job] = now
    lives.walltime[job] = extended(run, next_walltime(run.jobs.walltime[job], saved, rules.rest), job, saved)
    fruitless = lives.fruitless[job]
    if rules.most_attempts == NO_LIMIT and (fruitless == CHECKED_AT or fruitless >= MOST_FRUITLESS):
        rest, interval = run.jobs.runtime[job] - saved, run.nodes.interval[held]
        run.lists.hopes[clock.hopes] = job
        run.lists.needed[clock.hopes] = time_to_save(rest, lives.walltime[job], saved, rules.read, interval, rules.dump)
        clock.hopes += 1


@woven_in
def close(run: State, slot: int, now: float) -> None:
    """Log the attempt of a running job that ends or is interrupted now.

    Also update the job's totals, such as its waiting time.

    Args:
        slot: the job's index in `KernelSlots`.
        now: the time (s).
    """
    rules, lives, one = run.rules, run.lives, run.slots.rows[slot]
    job, start, ends = run.slots.job[slot], one.start, one.ends
    size, runtime, before = run.jobs.size[job], run.jobs.runtime[job], lives.saved[job]
    lost = now < ends
    state = COMPLETED if one.in_time == 1 else AT_WALLTIME
    if lost:
        state = GIVEN_UP
    retried = lost and rules.retries and may_try_again(lives.attempt[job], rules.most_attempts)
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
    stopped = worked_until(now, start, ends)
    if rules.dumps:
        held, read, work = one.nodes, read_first(before, rules.read), work_left(runtime, before)
        phase = phase_at(stopped, start, read, work, run.nodes.interval[held], one.dumped, rules.dump, one.finish)
        each, spent = size / held, node_time(phase, held)
        parts = split_work(each * spent.unsaved, False, lost)
        log.dumps[row] = phase.dumps
        log.useful[row] = each * spent.saved
        log.dumping[row] = each * spent.dumping
        log.reading[row] = each * spent.reading
        saved = work_kept(runtime, before, phase.saved, stopped >= one.finish)
    else:
        done = state == COMPLETED
        parts = split_work(size * (stopped - start), done, lost)
        log.dumps[row] = 0
        log.useful[row] = parts.useful
        log.dumping[row] = log.reading[row] = 0.0
        saved = work_kept(runtime, before, 0.0, done)
    log.unsaved[row] = parts.unsaved
    log.lost[row] = parts.lost
    log.saved[row] = saved
    if retried:
        _come_back(run, job, one.nodes, saved, now)
    else:
        lives.saved[job] = saved


@woven_in
def rank(run: State, job: int) -> float:
    """Return the sort key of a job that joins the queue.

    Jobs with lower keys come first.
    """
    if run.rules.order == BY_WALLTIME:
        return float(run.lives.walltime[job])
    submit = run.jobs.submit[job] if run.rules.original else run.lives.came[job]
    return float(submit - run.jobs.boost[job])
