"""Start jobs around announced maintenance.

A job that would still run when a maintenance begins must not use nodes of that maintenance: these nodes are closed to
it. The rule is that of the schedulers' `OpenUnits`, computed with bit sets of units.

Which units are closed to a job depends only on its latest end. The kernel therefore divides the possible latest ends
into ranges, called levels, within which the same units are closed. Level 0 is for jobs that end before all maintenance.
Each start of maintenance that closes more units starts the next level.
"""

from pipistrelle.kernel.attempts import begin_work
from pipistrelle.kernel.compiled import (
    Closed,
    Releases,
    cut_short,
    end_of,
    held_until,
    is_late,
    opening,
    spares,
    within,
    woven_in,
)
from pipistrelle.kernel.sets import WORD, Ints, bits_in
from pipistrelle.kernel.state import EASY, NO_BACKFILL, KernelSlots, Nodes, Plans, State
from pipistrelle.kernel.waiting import BLOCK, cut, drop_first, first_of, join, keep, leave


@within
def _find_levels(plans: Plans, words: int) -> None:
    """Compute the levels (see the module) and the units that maintenance closes to the jobs of each.

    Args:
        words: the length of a bit set of all units, in words.
    """
    level = 0
    plans.level_closed[:words] = 0
    for at in range(plans.counts.windows):
        window, new, more = plans.windows[at], level + 1, False
        for word in range(words):
            before = plans.level_closed[level * words + word]
            closed = before | plans.sets[window.which * words + word]
            more = more or closed != before
            plans.level_closed[new * words + word] = closed
        if more:
            level = new
            plans.levels[level].begin = window.begin
    plans.counts.levels = level


@within
def _level_of(plans: Plans, end: float) -> int:
    """Return the level (see the module) of a job that ends at ``end`` (s) at the latest."""
    level = 0
    while level < plans.counts.levels and plans.levels[level + 1].begin < end:
        level += 1
    return level


@within
def _forget_counts(plans: Plans) -> None:
    """Discard the cached numbers of free units, because units were taken or freed."""
    for level in range(plans.counts.levels + 1):
        plans.levels[level].open = -1
        plans.levels[level].beside = -1


@within
def _count_open(nodes: Nodes, plans: Plans, level: int) -> int:
    row = plans.levels[level]
    if row.open < 0:
        base, found = level * nodes.free.size, 0
        for word in range(nodes.free.size):
            found += bits_in(nodes.free[word] & ~plans.level_closed[base + word])
        row.open = found
    return int(row.open)


@within
def _count_beside(nodes: Nodes, plans: Plans, level: int) -> int:
    row = plans.levels[level]
    if row.beside < 0:
        base, found = level * nodes.free.size, 0
        for word in range(nodes.free.size):
            found += bits_in(nodes.free[word] & ~plans.level_closed[base + word] & ~plans.reserved[word])
        row.beside = found
    return int(row.beside)


@within
def _take_first(units: Ints, count: int, taken: Ints) -> None:
    """Take the lowest ``count`` units of the bit set ``units``.

    They are added to the bit set ``taken``.
    """
    for word in range(units.size):
        bits = units[word]
        held = bits_in(bits)
        if held > count:
            rest = bits
            for _ in range(count):
                rest &= rest - 1
            taken[word] |= bits ^ rest
            return
        taken[word] |= bits
        count -= held


@within
def _take_beside(plans: Plans, size: int, beside: int, first: int, reserved: int) -> int:
    """Choose the units of a backfilled job that ends after the reserved start of the first queued job.

    The chosen units go into ``plans.taken``. Return how many of them are reserved for the first job.

    Args:
        size: number of units to choose; at least as many are open.
        beside: number of open units that are not reserved.
        first: number of reserved units that the first job needs.
        reserved: number of reserved units.
    """
    _take_first(plans.open, size, plans.taken)
    found = 0
    for word in range(plans.open.size):
        found += bits_in(plans.taken[word] & plans.reserved[word])
    if found <= reserved - first:
        return found
    missing = max(size - beside, 0)
    for word in range(plans.open.size):
        plans.taken[word] = plans.open[word] & plans.reserved[word]
        plans.open[word] &= ~plans.reserved[word]
    if missing == 0:
        for word in range(plans.taken.size):
            plans.taken[word] = 0
        _take_first(plans.open, size, plans.taken)
        return 0
    left = missing
    for position in plans.position:  # lowest unit numbers, whatever the node order
        bit = 1 << (position % WORD)
        if left > 0 and plans.taken[position // WORD] & bit:
            plans.open[position // WORD] |= bit
            left -= 1
    for word in range(plans.open.size):
        plans.taken[word] = plans.open[word]
    return missing


@within
def _sort_ends(plans: Plans, closed: Closed, slots: KernelSlots, running: int, words: int, now: float) -> None:
    """Sort the running jobs by their latest end.

    A job's latest end is the end of its walltime, or the start of maintenance on its nodes if that is earlier. The
    latest ends go into ``plans.end_time``, and the jobs' slots (see `KernelSlots`) into ``plans.end_slot``.
    """
    for at in range(running):
        slot = slots.planned_slot[at]
        row = slots.rows[slot]
        for word in range(words):  # some words may be left over from an earlier job
            if not row.low <= word < row.high:
                slots.held[slot * words + word] = 0
        end = held_until(cut_short(slots.planned_time[at], now, slots.held, slot * words, words, closed), now)
        place = at
        while place > 0 and plans.end_time[place - 1] > end:
            plans.end_time[place] = plans.end_time[place - 1]
            plans.end_slot[place] = plans.end_slot[place - 1]
            place -= 1
        plans.end_time[place] = end
        plans.end_slot[place] = slot


@within
def _reserve(run: State, size: int, walltime: float, now: float) -> tuple[float, int]:
    """Return the earliest time at which a job can start around maintenance, and the units open to it then.

    The result equals that of `pipistrelle.schedulers.plan.around_windows.reserve`.

    Returns:
        The time (s; inf if unknown), and the number of units that are free and not closed by maintenance at that time.
        These units go into ``plans.reserved``.
    """
    nodes, slots, plans = run.nodes, run.slots, run.plans
    words, running, units = nodes.free.size, run.clock.running, plans.open
    closed = Closed(plans.windows[: plans.counts.windows], plans.sets)
    _sort_ends(plans, closed, slots, running, words, now)
    for word in range(words):
        units[word] = nodes.free[word]
    for node in range(nodes.rows.size):  # nodes that are down only for maintenance return at its end
        row = nodes.rows[node]
        if row.reasons > 0 and row.broken == 0:
            for position in range(row.first, row.first + row.units):
                units[position // WORD] |= 1 << (position % WORD)
    releases = Releases(plans.end_time[:running], plans.end_slot[:running], slots.held)
    shadow, _, found = opening(now, size, walltime, units, plans.reserved, releases, closed)
    return shadow, found


@within
def _start_on_taken(run: State, job: int, now: float) -> None:
    nodes, slots = run.nodes, run.slots
    words = nodes.free.size
    slot = slots.spare[slots.spare.size - 1 - run.clock.running]
    low, high = words, 0
    for word in range(words):
        held = run.plans.taken[word]
        slots.held[slot * words + word] = held
        if held != 0:
            nodes.free[word] &= ~held
            low, high = min(low, word), word + 1
    slots.rows[slot].low, slots.rows[slot].high = low, high
    run.clock.free -= run.jobs.size[job]
    begin_work(run, slot, job, now)
    _forget_counts(run.plans)


@within
def _open_to(nodes: Nodes, plans: Plans, level: int) -> None:
    """Put the free units that are not closed to jobs of a level (see the module) into ``plans.open``.

    Also clear ``plans.taken``.
    """
    base = level * nodes.free.size
    for word in range(nodes.free.size):
        plans.open[word] = nodes.free[word] & ~plans.level_closed[base + word]
        plans.taken[word] = 0


@within
def _start_in_order(run: State, now: float) -> int:
    nodes, plans, queue = run.nodes, run.plans, run.queue
    started = 0
    while queue.counts.waiting > 0:
        job = first_of(queue)
        size = run.jobs.size[job]
        level = _level_of(plans, end_of(now, run.lives.walltime[job]))
        if size > _count_open(nodes, plans, level):
            break
        drop_first(queue)
        _open_to(nodes, plans, level)
        _take_first(plans.open, size, plans.taken)
        _start_on_taken(run, job, now)
        started += 1
    return started


@woven_in
def _passes(run: State, first: int, job: int, now: float) -> bool:
    """Start ``job`` if that does not delay ``first``, the first queued job.

    Return whether ``job`` was started.
    """
    nodes, plans, clock = run.nodes, run.plans, run.clock
    size, walltime, wanted = run.jobs.size[job], run.lives.walltime[job], run.jobs.size[first]
    if size > clock.free:
        return False
    level = _level_of(plans, end_of(now, walltime))
    if size > _count_open(nodes, plans, level):
        return False
    late = False
    if run.rules.backfill == EASY:
        if plans.counts.reserved < 0:  # computed only when needed
            clock.shadow, plans.counts.reserved = _reserve(run, wanted, run.lives.walltime[first], now)
        late = is_late(now, walltime, clock.shadow)
    if not late:
        _open_to(nodes, plans, level)
        _take_first(plans.open, size, plans.taken)
    else:
        beside, reserved = _count_beside(nodes, plans, level), plans.counts.reserved
        if not spares(size, beside, reserved, wanted):
            return False
        _open_to(nodes, plans, level)
        plans.counts.reserved -= _take_beside(plans, size, beside, wanted, reserved)
        for word in range(nodes.free.size):
            plans.reserved[word] &= ~plans.taken[word]
    _start_on_taken(run, job, now)
    return True


@within
def _pass_over(run: State, now: float) -> int:
    queue, plans = run.queue, run.plans
    first, found, classes = first_of(queue), 0, queue.size_class[-1] + 1
    plans.counts.reserved = -1
    for place in range(queue.counts.line):
        if run.clock.free == 0:
            break
        block = queue.line[place]
        begin, end = block * BLOCK + queue.first[block], block * BLOCK + queue.end[block]
        if place == 0:
            begin += 1
        else:  # the fewest units are closed to the job that ends soonest
            soonest = queue.least_time[block * classes + queue.size_class[run.clock.free]]
            if queue.least_size[block] > _count_open(run.nodes, plans, _level_of(plans, end_of(now, soonest))):
                continue
        kept = begin
        for at in range(begin, end):
            if _passes(run, first, queue.job[at], now):
                found += 1
                continue
            kept = keep(queue, at, kept)
        cut(queue, place, kept)
    leave(queue, found)
    return found


@within
def start_around(run: State, fresh: int, now: float) -> int:
    """Add new jobs to the queue, and start all jobs that may start now around announced maintenance.

    Args:
        fresh: the number of new jobs; they are the first in ``run.lists.fresh``.
        now: the time (s).

    Returns:
        The number of started jobs.
    """
    for at in range(fresh):
        job = run.lists.fresh[at]
        join(run.queue, job, run.jobs.size[job], run.lives.walltime[job])
    _find_levels(run.plans, run.nodes.free.size)
    _forget_counts(run.plans)
    started = _start_in_order(run, now)
    if run.rules.backfill != NO_BACKFILL and run.queue.counts.waiting > 1:
        started += _pass_over(run, now)
    return started
