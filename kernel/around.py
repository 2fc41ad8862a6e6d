"""Who starts while maintenance is known: jobs that would run into it get no units of its nodes.

The same as the schedulers' `OpenUnits`, by words of positions. Known maintenance closes its units from its begin on to
jobs that end later, so that what is closed to a job follows from its end alone: there are levels, each with more.
"""

from math import inf

import numpy as np

from pipistrelle.kernel.attempts import begin_work
from pipistrelle.kernel.compiled import within
from pipistrelle.kernel.sets import WORD, Ints, bits_in
from pipistrelle.kernel.state import (
    EASY,
    FREE,
    LEVELS,
    NO_BACKFILL,
    RESERVED,
    RUN,
    SHADOW,
    WINDOWS,
    Jobs,
    KernelClock,
    KernelLives,
    KernelSlots,
    Nodes,
    Plans,
    Rules,
)
from pipistrelle.kernel.waiting import BLOCK, LINE, Queue, drop_first, first_of, join, summarise, tidy
from pipistrelle.kernel.waiting import WAITING as IN_QUEUE


@within
def _end_of(begin: float, walltime: float) -> float:
    """As `pipistrelle.schedulers.plan.slices.end_of`."""
    return float(max(begin + walltime, np.nextafter(begin, inf)))


@within
def _find_levels(plans: Plans, words: int) -> None:
    """Work out what is closed to whom; the windows are ordered by their begins."""
    counts = plans.counts
    level = 0
    for word in range(words):
        plans.level_closed[word] = 0
    for at in range(counts[WINDOWS]):
        base, new = plans.window_set[at] * words, level + 1
        more = False
        for word in range(words):
            before = plans.level_closed[level * words + word]
            closed = before | plans.sets[base + word]
            more = more or closed != before
            plans.level_closed[new * words + word] = closed
        if more:
            level = new
            plans.level_begin[level] = plans.window_begin[at]
    counts[LEVELS] = level


@within
def _level_of(plans: Plans, end: float) -> int:
    """Return the level of a job that ends then (s) at the latest."""
    level = 0
    while level < plans.counts[LEVELS] and plans.level_begin[level + 1] < end:
        level += 1
    return level


@within
def _forget_counts(plans: Plans) -> None:
    """What is free has changed."""
    for level in range(plans.counts[LEVELS] + 1):
        plans.level_open[level] = -1
        plans.level_beside[level] = -1


@within
def _count_open(nodes: Nodes, plans: Plans, level: int) -> int:
    """Return how many free units are open at a level."""
    if plans.level_open[level] < 0:
        base, found = level * nodes.free.size, 0
        for word in range(nodes.free.size):
            found += bits_in(nodes.free[word] & ~plans.level_closed[base + word])
        plans.level_open[level] = found
    return int(plans.level_open[level])


@within
def _count_beside(nodes: Nodes, plans: Plans, level: int) -> int:
    """Return how many of them are not reserved."""
    if plans.level_beside[level] < 0:
        base, found = level * nodes.free.size, 0
        for word in range(nodes.free.size):
            found += bits_in(nodes.free[word] & ~plans.level_closed[base + word] & ~plans.reserved[word])
        plans.level_beside[level] = found
    return int(plans.level_beside[level])


@within
def _take_first(units: Ints, count: int, taken: Ints) -> None:
    """Put the first ``count`` positions of ``units``, of at least so many, into ``taken``."""
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
    """Put units for a job that stays beyond the shadow time into ``plans.taken``; it needs enough of the open ones.

    ``first`` of the ``reserved`` units must be left, ``beside`` of the open ones are not reserved. Returns how many
    reserved ones it takes.
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
    for position in plans.position:  # of the lowest numbers, whatever the order of the nodes
        bit = 1 << (position % WORD)
        if left > 0 and plans.taken[position // WORD] & bit:
            plans.open[position // WORD] |= bit
            left -= 1
    for word in range(plans.open.size):
        plans.taken[word] = plans.open[word]
    return missing


@within
def _running_ends(plans: Plans, slots: KernelSlots, runs: int, words: int, now: float) -> None:
    """Write down by when (s) running jobs end at the latest, by maintenance or walltime, ascending."""
    later = np.nextafter(now, inf)
    for at in range(runs):
        slot, end = slots.planned_slot[at], slots.planned_time[at]
        for window in range(plans.counts[WINDOWS]):
            begin = plans.window_begin[window]
            if begin >= end:
                break
            if begin > now:
                base, hit = plans.window_set[window] * words, False
                for word in range(slots.low[slot], slots.high[slot]):
                    hit = hit or slots.held[slot * words + word] & plans.sets[base + word] != 0
                if hit:
                    end = begin
                    break
        end = max(end, later)
        place = at
        while place > 0 and plans.end_time[place - 1] > end:
            plans.end_time[place] = plans.end_time[place - 1]
            plans.end_slot[place] = plans.end_slot[place - 1]
            place -= 1
        plans.end_time[place] = end
        plans.end_slot[place] = slot


@within
def _reserve(
    jobs: Jobs,
    nodes: Nodes,
    slots: KernelSlots,
    plans: Plans,
    clock: KernelClock,
    size: int,
    walltime: float,
    now: float,
) -> tuple[float, int]:
    """Return when (s) so many units will be open for so long, inf if no one can tell, and how many there are then.

    They are put into ``plans.reserved``. As `pipistrelle.schedulers.plan.around_windows.reserve`.
    """
    words, runs, windows = nodes.free.size, clock.ints[RUN], plans.counts[WINDOWS]
    _running_ends(plans, slots, runs, words, now)
    units = plans.open
    for word in range(words):
        units[word] = nodes.free[word]
    for node in range(nodes.first.size):  # under maintenance alone, hence back at its end
        if nodes.reasons[node] > 0 and nodes.broken[node] == 0:
            for position in range(nodes.first[node], nodes.first[node] + nodes.units[node]):
                units[position // WORD] |= 1 << (position % WORD)
    count = 0
    for word in range(words):
        count += bits_in(units[word])
    time, ended = now, 0
    while time < inf:
        while ended < runs and plans.end_time[ended] <= time:
            slot = plans.end_slot[ended]
            for word in range(slots.low[slot], slots.high[slot]):
                units[word] |= slots.held[slot * words + word]
            count += jobs.size[slots.job[slot]]
            ended += 1
        end = _end_of(time, walltime)
        following = plans.end_time[ended] if ended < runs else inf
        for word in range(words):
            plans.reserved[word] = units[word]
        for window in range(windows):
            if plans.window_end[window] > time:
                following = min(following, plans.window_end[window])
                if count >= size and plans.window_begin[window] < end:
                    base = plans.window_set[window] * words
                    for word in range(words):
                        plans.reserved[word] &= ~plans.sets[base + word]
        if count >= size:
            found = 0
            for word in range(words):
                found += bits_in(plans.reserved[word])
            if found >= size:
                return time, found
        time = following
    for word in range(words):
        plans.reserved[word] = 0
    return inf, 0


@within
def _start_on_taken(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    plans: Plans,
    clock: KernelClock,
    job: int,
    now: float,
) -> None:
    """Let a job start now on ``plans.taken``."""
    words = nodes.free.size
    slot = slots.spare[slots.spare.size - 1 - clock.ints[RUN]]
    low, high = words, 0
    for word in range(words):
        held = plans.taken[word]
        slots.held[slot * words + word] = held
        if held != 0:
            nodes.free[word] &= ~held
            low, high = min(low, word), word + 1
    slots.low[slot], slots.high[slot] = low, high
    clock.ints[FREE] -= jobs.size[job]
    begin_work(rules, jobs, nodes, slots, lives, clock, slot, job, now)
    _forget_counts(plans)


@within
def _open_to(nodes: Nodes, plans: Plans, level: int) -> None:
    """Put the free units that are open at a level into ``plans.open``, and none into ``plans.taken``."""
    base = level * nodes.free.size
    for word in range(nodes.free.size):
        plans.open[word] = nodes.free[word] & ~plans.level_closed[base + word]
        plans.taken[word] = 0


@within
def _start_in_order(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    queue: Queue,
    slots: KernelSlots,
    lives: KernelLives,
    plans: Plans,
    clock: KernelClock,
    now: float,
) -> int:
    """Start the first job again and again as long as it fits; return how many."""
    started = 0
    while queue.counts[IN_QUEUE] > 0:
        job = first_of(queue)
        level = _level_of(plans, _end_of(now, lives.walltime[job]))
        if jobs.size[job] > _count_open(nodes, plans, level):
            break
        drop_first(queue)
        _open_to(nodes, plans, level)
        _take_first(plans.open, jobs.size[job], plans.taken)
        _start_on_taken(rules, jobs, nodes, slots, lives, plans, clock, job, now)
        started += 1
    return started


@within
def _passes(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    slots: KernelSlots,
    lives: KernelLives,
    plans: Plans,
    clock: KernelClock,
    first: int,
    job: int,
    now: float,
) -> bool:
    """Start a job if it may pass the first; tell whether it does."""
    size, walltime, wanted = jobs.size[job], lives.walltime[job], jobs.size[first]
    if size > clock.ints[FREE]:
        return False
    level = _level_of(plans, _end_of(now, walltime))
    if size > _count_open(nodes, plans, level):
        return False
    late = False
    if rules.backfill == EASY:
        if plans.counts[RESERVED] < 0:  # not before somebody asks
            time, count = _reserve(jobs, nodes, slots, plans, clock, wanted, lives.walltime[first], now)
            clock.floats[SHADOW] = time
            plans.counts[RESERVED] = count
        late = now + walltime > clock.floats[SHADOW]
    if not late:
        _open_to(nodes, plans, level)
        _take_first(plans.open, size, plans.taken)
    else:
        beside, reserved = _count_beside(nodes, plans, level), plans.counts[RESERVED]
        if size - beside > reserved - wanted:
            return False
        _open_to(nodes, plans, level)
        plans.counts[RESERVED] -= _take_beside(plans, size, beside, wanted, reserved)
        for word in range(nodes.free.size):
            plans.reserved[word] &= ~plans.taken[word]
    _start_on_taken(rules, jobs, nodes, slots, lives, plans, clock, job, now)
    return True


@within
def _pass_over(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    queue: Queue,
    slots: KernelSlots,
    lives: KernelLives,
    plans: Plans,
    clock: KernelClock,
    now: float,
) -> int:
    """Start the jobs that may pass the first, in the order of the queue, and return how many they are."""
    first, found, classes = first_of(queue), 0, queue.size_class[-1] + 1
    plans.counts[RESERVED] = -1
    for place in range(queue.counts[LINE]):
        free = clock.ints[FREE]
        if free == 0:
            break
        block = queue.line[place]
        begin, end = block * BLOCK + queue.first[block], block * BLOCK + queue.end[block]
        if place == 0:
            begin += 1
        else:  # the job that ends soonest is kept from the fewest units
            soonest = queue.least_time[block * classes + queue.size_class[free]]
            if queue.least_size[block] > _count_open(nodes, plans, _level_of(plans, _end_of(now, soonest))):
                continue
        kept = begin
        for at in range(begin, end):
            if _passes(rules, jobs, nodes, slots, lives, plans, clock, first, queue.job[at], now):
                found += 1
                continue
            if kept < at:
                queue.job[kept] = queue.job[at]
                queue.size[kept] = queue.size[at]
                queue.occupies[kept] = queue.occupies[at]
            kept += 1
        if kept < end:
            queue.end[block] = kept - block * BLOCK
            if place > 0:
                summarise(queue, block)
    queue.counts[IN_QUEUE] -= found
    if found > 0 and queue.counts[LINE] > 1:
        tidy(queue)
    return found


@within
def start_around(
    rules: Rules,
    jobs: Jobs,
    nodes: Nodes,
    queue: Queue,
    slots: KernelSlots,
    lives: KernelLives,
    plans: Plans,
    clock: KernelClock,
    fresh: int,
    now: float,
) -> int:
    """Let those join that do, ``fresh`` of them, start who may start now, and return how many these are."""
    for at in range(fresh):
        job = clock.fresh[at]
        join(queue, job, jobs.size[job], lives.walltime[job])
    _find_levels(plans, nodes.free.size)
    _forget_counts(plans)
    started = _start_in_order(rules, jobs, nodes, queue, slots, lives, plans, clock, now)
    if rules.backfill != NO_BACKFILL and queue.counts[IN_QUEUE] > 1:
        started += _pass_over(rules, jobs, nodes, queue, slots, lives, plans, clock, now)
    return started
