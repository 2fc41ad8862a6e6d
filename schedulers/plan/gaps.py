"""Free units over time, stored as arrays, and the reservations of queued jobs.

A gap is a run of units that are all free for some time. The plan's owner is `Reservations`. numba can compile these
functions without changes (`pipistrelle.schedulers.plan.compiled`). Only scans over all gaps or jobs have two forms with
equal results. One form has operations on whole arrays. The other form (``..._loop``) is a loop, several times faster
when compiled. Times are indices into `Book.times`.
"""

from math import inf
from typing import Final

import numpy as np

from pipistrelle.schedulers.plan.book import (
    BEGIN,
    COUNT,
    DONE,
    EARLY,
    EMPTY,
    END,
    FRESH,
    GAPS,
    HIGH,
    HOLES,
    JOBS,
    LOOKS,
    LOW,
    MANY_GAPS,
    MANY_TIMES,
    MARKED,
    NEVER,
    RUNS,
    SIZE,
    TIMES,
    TURN,
    UNTIDY,
    USED,
    Book,
    Ints,
)
from pipistrelle.schedulers.policy.ends_and_shadow import end_of, ends_of

#: at most this many doubtful jobs are marked without further filtering
_FEW: Final = 1
# A sort key is a gap's lowest unit and, in its last bits, the gap's column.
_BITS: Final = 32
_COLUMN: Final = 2**32 - 1


# The scans: each first as operations on whole arrays, then as a loop


def covering(book: Book, begin: int, end: int) -> Ints:
    """Return the gaps that last from ``begin`` to ``end``, lowest units first.

    A gap is a run of units that are free for some time. The result has the column of each gap in the book. Times are
    indices into ``book.times``.
    """
    gaps = book.gaps[:, : book.counts[GAPS]]
    found = ((gaps[BEGIN] <= begin) & (gaps[END] >= end)).nonzero()[0]
    result: Ints = found[gaps[LOW][found].argsort()]
    return result


def covering_loop(book: Book, begin: int, end: int) -> Ints:
    """Return the same as `covering`, by a loop that numba compiles."""
    gaps, keys = book.gaps, book.scratch[0]
    found = 0
    for gap in range(book.counts[GAPS]):
        if gaps[BEGIN, gap] <= begin and gaps[END, gap] >= end:
            keys[found] = (gaps[LOW, gap] << _BITS) | gap
            found += 1
    keys[:found].sort()
    result: Ints = keys[:found] & _COLUMN
    return result


def lowest_free(book: Book, begin: int, end: int) -> int:
    """Return the lowest unit that is free from ``begin`` to ``end``.

    Return `NEVER` if there is none. Both times are indices into ``book.times``.
    """
    gaps = book.gaps[:, : book.counts[GAPS]]
    return int(np.where((gaps[BEGIN] <= begin) & (gaps[END] >= end), gaps[LOW], NEVER).min())


def lowest_free_loop(book: Book, begin: int, end: int) -> int:
    """Return the same as `lowest_free`, by a loop that numba compiles."""
    begins, ends, low = book.gaps[BEGIN], book.gaps[END], book.gaps[LOW]
    lowest = NEVER
    for gap in range(book.counts[GAPS]):
        if begins[gap] <= begin and ends[gap] >= end:
            lowest = min(lowest, low[gap])
    return int(lowest)


def bordering(book: Book, line: int, time: int, first: int, last: int) -> Ints:
    """Return the gaps that begin or end (``line``) at ``time``, lowest units first.

    A gap is a run of units that are free for some time; its column is returned. ``time`` is an index into
    ``book.times``.

    Args:
        line: `BEGIN` or `END`.
        first, last: ignore gaps below or above all runs of units in columns ``first`` to ``last`` - 1 of ``book.runs``.
    """
    gaps, runs = book.gaps[:, : book.counts[GAPS]], book.runs
    found = (gaps[line] == time).nonzero()[0]
    found = found[(gaps[LOW][found] <= runs[1, last - 1]) & (gaps[HIGH][found] >= runs[0, first])]
    result: Ints = found[gaps[LOW][found].argsort()]
    return result


def bordering_loop(book: Book, line: int, time: int, first: int, last: int) -> Ints:
    """Return the same as `bordering`, by a loop that numba compiles."""
    gaps, runs, keys = book.gaps, book.runs, book.scratch[0]
    lowest, highest = runs[0, first], runs[1, last - 1]
    found = 0
    for gap in range(book.counts[GAPS]):
        if gaps[line, gap] == time and gaps[LOW, gap] <= highest and gaps[HIGH, gap] >= lowest:
            keys[found] = (gaps[LOW, gap] << _BITS) | gap
            found += 1
    keys[:found].sort()
    result: Ints = keys[:found] & _COLUMN
    return result


def most_free(book: Book, length: float, first: int, before: int) -> Ints:
    """Return how many units are free for ``length`` s, for each latest start allowed.

    The result has shape (before + 1,). Entry k is the largest number for starts from ``first`` to k - 1; it is 0 if
    k <= first. Times are indices into ``book.times``.
    """
    gaps = book.gaps[:, : book.counts[GAPS]]
    # A gap that ends at a time can hold jobs that begin before the index noted here.
    closed = ends_of(book.times[:before], length).searchsorted(book.times[: book.counts[TIMES]], "right")
    until = closed[gaps[END]]
    used = (gaps[BEGIN] < until).nonzero()[0]
    units = gaps[HIGH][used] - gaps[LOW][used] + 1
    free = np.bincount(gaps[BEGIN][used], units, before + 1) - np.bincount(until[used], units, before + 1)
    most = np.zeros(before + 1, dtype=np.int64)
    most[first + 1 :] = np.maximum.accumulate(free.cumsum()[first:before])
    return most


def changes_loop(book: Book, length: float, before: int) -> Ints:
    """Return how the number of units free for ``length`` s changes from start to start.

    Starts are indices into ``book.times``, up to ``before``.
    """
    times, counts = book.times, book.counts
    closed: Ints = book.scratch[0]
    changes: Ints = book.scratch[1]
    # A gap that ends at a time can hold jobs that begin before the index noted here.
    at = 0
    needed = end_of(times[0], length)
    closed[0] = 0
    for end in range(1, counts[TIMES]):
        while at < before and needed <= times[end]:
            at += 1
            needed = end_of(times[at], length)
        closed[end] = at
    changes[: before + 1] = 0
    begins, ends, low, high = book.gaps[BEGIN], book.gaps[END], book.gaps[LOW], book.gaps[HIGH]
    for gap in range(counts[GAPS]):
        begin, until = begins[gap], closed[ends[gap]]
        if begin < until:
            units = high[gap] - low[gap] + 1
            changes[begin] += units
            changes[until] -= units
    return changes


def most_free_loop(book: Book, length: float, first: int, before: int) -> Ints:
    """Return the same as `most_free`, by a loop that numba compiles."""
    most = changes_loop(book, length, before)
    units, highest = 0, 0
    for at in range(before):
        units += most[at]
        most[at] = highest
        if at >= first:
            highest = max(highest, units)
    most[before] = highest
    return most


def earliest(book: Book, size: int, length: float, before: int) -> int:
    """Return the first time at which ``size`` units are free for ``length`` s.

    The time, at most ``before``, is an index into ``book.times``.
    """
    return max(int(most_free(book, length, 0, before).searchsorted(size)) - 1, 0)


def earliest_loop(book: Book, size: int, length: float, before: int) -> int:
    """Return the same as `earliest`, by a loop that numba compiles."""
    changes = changes_loop(book, length, before)
    units = 0
    for begin in range(before):
        units += changes[begin]
        if units >= size:
            return begin
    return before


def free_before(book: Book, begin: int, first: int, last: int) -> int:
    """Return how many units of some runs are free just before the time ``begin``.

    The runs are in columns ``first`` to ``last`` - 1; the time is an index into ``book.times``.
    """
    near, (low, high) = bordering(book, END, begin, first, last), book.runs[:, first:last]
    lows, highs = book.gaps[LOW][near, None], book.gaps[HIGH][near, None]
    return int((np.minimum(highs, high) - np.maximum(lows, low) + 1).clip(0).sum())


def free_before_loop(book: Book, begin: int, first: int, last: int) -> int:
    """Return the same as `free_before`, by a loop that numba compiles."""
    gaps, runs = book.gaps, book.runs
    lowest, highest = runs[0, first], runs[1, last - 1]
    found = 0
    for gap in range(book.counts[GAPS]):
        if gaps[END, gap] == begin and gaps[LOW, gap] <= highest and gaps[HIGH, gap] >= lowest:
            low, high = gaps[LOW, gap], gaps[HIGH, gap]
            run = first + np.searchsorted(runs[1, first:last], low)
            while run < last and runs[0, run] <= high:
                found += min(runs[1, run], high) - max(runs[0, run], low) + 1
                run += 1
    return int(found)


def doubtful(book: Book, count: int) -> Ints:
    """Mark jobs that can move to lower units; return others that might start sooner.

    Units were freed in ``count`` gaps (runs of free units). The result has columns of ``book.jobs``. Rows 2, 3 and 4 of
    ``book.scratch`` have the first time, last time and lowest unit of each gap. Rows 5, 6 and 7 have, for each time,
    the lowest unit, the highest unit and the number of units of the gaps that end then.
    """
    scratch = book.scratch
    least, most, units = scratch[5], scratch[6], scratch[7]
    jobs = book.jobs[:, : book.counts[JOBS]]
    begin, end, high, lengths = jobs[BEGIN], jobs[END], jobs[HIGH], book.lengths[: jobs.shape[1]]
    placed = begin >= 0
    sooner = placed & (least[begin] <= high) & (most[begin] >= jobs[LOW])
    near = sooner.nonzero()[0]
    jobs[EARLY, near] = np.minimum(jobs[EARLY, near] + units[begin[near]], jobs[SIZE, near])
    lower = np.zeros(len(begin), dtype=np.bool_)
    for since, until, lowest in scratch[2:5, :count].T.tolist():
        lower |= placed & (since <= begin) & (until >= end) & (lowest < high)
        sooner |= (~placed | (since < begin)) & (lengths + book.times[since] <= book.times[until])
    jobs[MARKED, lower] = 1
    result: Ints = (sooner & (jobs[SIZE] > 0) & (jobs[MARKED] == 0)).nonzero()[0]
    return result


def doubtful_loop(book: Book, count: int) -> Ints:
    """Do the same as `doubtful`, by a loop that numba compiles."""
    times, jobs, scratch = book.times, book.jobs, book.scratch
    least, most, units, unsure = scratch[5], scratch[6], scratch[7], scratch[8]
    doubts = 0
    for job in range(book.counts[JOBS]):
        if jobs[SIZE, job] == 0:
            continue
        begin, end, length = jobs[BEGIN, job], jobs[END, job], book.lengths[job]
        placed = begin >= 0
        lower, sooner = False, False
        if placed and least[begin] <= jobs[HIGH, job] and most[begin] >= jobs[LOW, job]:
            jobs[EARLY, job] = min(jobs[EARLY, job] + units[begin], jobs[SIZE, job])
            sooner = True
        if jobs[MARKED, job]:
            continue
        for at in range(count):
            since, until = scratch[2, at], scratch[3, at]
            if placed and since <= begin and until >= end and scratch[4, at] < jobs[HIGH, job]:
                lower = True
                break
            if not sooner and (not placed or since < begin):
                sooner = times[since] + length <= times[until]
        if lower:
            jobs[MARKED, job] = 1
        elif sooner:
            unsure[doubts] = job
            doubts += 1
    result: Ints = unsure[:doubts]
    return result


def longer_ones(book: Book, unsure: Ints, first: int, last: int) -> Ints:
    """Mark or return each of the ``unsure`` jobs that might start sooner.

    It might if enough units are free for the shortest duration of all these jobs. Jobs of this duration are marked.
    Longer ones are returned, because they need another test. Only starts from ``first`` to ``last`` - 1 count.
    """
    jobs, none = book.jobs, book.counts[TIMES] - 1
    lengths, begins = book.lengths[unsure], jobs[BEGIN, unsure]
    shortest = lengths.min()
    begins[begins < 0] = none
    before = min(begins.max(), last)
    most = most_free(book, shortest, first, before)
    movable = most[np.minimum(begins, before)] >= jobs[SIZE, unsure] - jobs[EARLY, unsure]
    jobs[MARKED, unsure[movable & (lengths == shortest)]] = 1
    result: Ints = unsure[movable & (lengths > shortest)]
    return result


def longer_ones_loop(book: Book, unsure: Ints, first: int, last: int) -> Ints:
    """Do the same as `longer_ones`, by a loop that numba compiles."""
    jobs, lengths = book.jobs, book.lengths
    none = book.counts[TIMES] - 1
    shortest, before = inf, 0
    for job in unsure:
        shortest = min(shortest, lengths[job])
        before = max(before, jobs[BEGIN, job] if jobs[BEGIN, job] >= 0 else none)
    before = min(before, last)
    most = most_free_loop(book, shortest, first, before)
    kept = 0
    for job in unsure:
        begin = min(before, jobs[BEGIN, job] if jobs[BEGIN, job] >= 0 else none)
        if most[begin] >= jobs[SIZE, job] - jobs[EARLY, job]:
            if lengths[job] > shortest:
                unsure[kept] = job
                kept += 1
            else:
                jobs[MARKED, job] = 1
    return unsure[:kept]


def next_marked(book: Book, order: Ints, turn: int) -> int:
    """Return the next position in ``order``, from ``turn`` on, of a marked job.

    Return the length of ``order`` if there is none. A marked job is one to plan again.
    """
    marked = book.jobs[MARKED][order[turn:]].nonzero()[0]
    return turn + int(marked[0]) if len(marked) else len(order)


def next_marked_loop(book: Book, order: Ints, turn: int) -> int:
    """Return the same as `next_marked`, by a loop that numba compiles."""
    marked = book.jobs[MARKED]
    while turn < len(order) and not marked[order[turn]]:
        turn += 1
    return turn


def count_up(times: Ints, columns: int, at: int) -> None:
    """Add 1 to the time indices in ``times`` that are at least ``at``.

    This is necessary when a time is inserted at index ``at``. ``columns`` is the number of columns in use.
    """
    times[:columns] += times[:columns] >= at


def count_up_loop(times: Ints, columns: int, at: int) -> None:
    """Do the same as `count_up`, by a loop that numba compiles."""
    for column in range(columns):
        times[column] += times[column] >= at


# The remaining functions have one form


def slot(book: Book, time: float) -> int:
    """Return the index in ``book.times`` of a time (s), which must not be in the past.

    Insert the time if it is new.
    """
    times, counts = book.times, book.counts
    count = counts[TIMES]
    at = int(np.searchsorted(times[:count], time))
    if times[at] != time:
        times[at + 1 : count + 1] = times[at:count].copy()
        times[at] = time
        counts[TIMES] += 1
        for table, columns in ((book.gaps, counts[GAPS]), (book.jobs, counts[JOBS])):
            for line in range(END + 1):
                count_up(table[line], columns, at)
    return at


def advance(book: Book, now: float) -> None:
    """Move the start of the plan to ``now`` (s), and drop all earlier times."""
    times, gaps, jobs, counts = book.times, book.gaps, book.jobs, book.counts
    count = counts[TIMES]
    past = np.searchsorted(times[:count], now, "right") - 1
    if past > 0:
        times[: count - past] = times[past:count].copy()
        counts[TIMES] -= past
        ends = gaps[END, : counts[GAPS]]
        for gap in np.flatnonzero((ends > 0) & (ends <= past)):
            drop(book, int(gap))
        for line in range(END + 1):
            column = gaps[line, : counts[GAPS]]
            column[:] = np.maximum(column - past, 0)
        placed = np.flatnonzero(jobs[BEGIN, : counts[JOBS]] >= 0)
        jobs[BEGIN][placed] = np.maximum(jobs[BEGIN][placed] - past, 0)
        jobs[END][placed] -= past
    times[0] = now


def first_begin(book: Book) -> float:
    """Return the earliest planned start (s) of a waiting job; inf if there is none."""
    begins = book.jobs[BEGIN, : book.counts[JOBS]]
    begins = begins[begins >= 0]
    return float(book.times[begins.min()]) if len(begins) else inf


def drop(book: Book, gap: int) -> None:
    """Remove a gap (a run of units that are free for some time) from the plan."""
    gaps, counts = book.gaps, book.counts
    gaps[BEGIN, gap] = NEVER
    gaps[END, gap] = 0
    gaps[FRESH, gap] = 0
    gaps[HOLES, counts[EMPTY]] = gap
    counts[EMPTY] += 1


def put(book: Book, begin: int, end: int, low: int, high: int, fresh: int, beside: int) -> int:
    """Add a gap, and return its column; -1 if the gap has no duration.

    The gap has the units ``low`` to ``high``, free from ``begin`` to ``end``. If the gap ``beside``, with the units
    just below, has the same times, it is extended instead.
    """
    gaps, counts = book.gaps, book.counts
    if begin >= end:
        return -1
    if beside >= 0 and gaps[BEGIN, beside] == begin and gaps[END, beside] == end:
        gaps[HIGH, beside] = high
        gaps[FRESH, beside] |= fresh
        return beside
    if counts[EMPTY] > 0:
        counts[EMPTY] -= 1
        gap = gaps[HOLES, counts[EMPTY]]
    else:
        gap = counts[GAPS]
        counts[GAPS] += 1
    gaps[BEGIN, gap] = begin
    gaps[END, gap] = end
    gaps[LOW, gap] = low
    gaps[HIGH, gap] = high
    gaps[FRESH, gap] = fresh
    return int(gap)


def take(book: Book, begin: int, end: int, size: int) -> tuple[int, int]:
    """Take the ``size`` lowest units that are free from ``begin`` to ``end``.

    Both times are indices into ``book.times``. The runs that these units form are stored in unused columns of
    ``book.runs``.

    Returns:
        the number of these runs, and how many of the units are also free just before ``begin``.
    """
    gaps, runs = book.gaps, book.runs
    first = book.counts[USED]
    last = first - 1
    early = 0
    sooner, later = -1, -1  # the latest gap made before and after
    for gap in covering(book, begin, end):
        opens, closes, fresh = gaps[BEGIN, gap], gaps[END, gap], gaps[FRESH, gap]
        low, high = gaps[LOW, gap], gaps[HIGH, gap]
        drop(book, gap)
        if high - low + 1 > size:
            put(book, opens, closes, low + size, high, fresh, -1)
            high = low + size - 1
        size -= high - low + 1
        if opens < begin:
            early += high - low + 1
        if last < first or runs[1, last] != low - 1:
            sooner, later = -1, -1
            last += 1
            runs[0, last] = low
        runs[1, last] = high
        sooner = put(book, opens, begin, low, high, fresh, sooner)
        later = put(book, end, closes, low, high, fresh, later)
        if size == 0:
            break
    return int(last + 1 - first), int(early)


def claim(book: Book, begin: int, end: int, lowest: int, highest: int) -> None:
    """Take a run of units, which must all be free, from ``begin`` to ``end``.

    Both times are indices into ``book.times``.
    """
    gaps = book.gaps
    for gap in covering(book, begin, end):
        opens, closes, low, high = gaps[BEGIN, gap], gaps[END, gap], gaps[LOW, gap], gaps[HIGH, gap]
        if low > highest or high < lowest:
            continue
        drop(book, gap)
        if low < lowest:
            put(book, opens, closes, low, lowest - 1, 0, -1)
        if high > highest:
            put(book, opens, closes, highest + 1, high, 0, -1)
        low, high = max(low, lowest), min(high, highest)
        put(book, opens, begin, low, high, 0, -1)
        put(book, end, closes, low, high, 0, -1)


def cut_out(book: Book, line: int, time: int, first: int, last: int, into: int) -> int:
    """Remove runs of units from the gaps that begin or end (``line``) at ``time``.

    The runs are in columns ``first`` to ``last`` - 1. ``line`` is `BEGIN` or `END`.

    Returns:
        The number of removed parts. Rows ``into`` to ``into`` + 2 of ``book.scratch`` describe each part: its other
        time (the end if ``line`` is `BEGIN`), its lowest unit and its highest unit.
    """
    gaps, runs, scratch = book.gaps, book.runs, book.scratch
    parts = 0
    run = first
    for gap in bordering(book, line, time, first, last):
        begin, end, fresh = gaps[BEGIN, gap], gaps[END, gap], gaps[FRESH, gap]
        low, high = gaps[LOW, gap], gaps[HIGH, gap]
        while run < last and runs[1, run] < low:
            run += 1
        if run == last or runs[0, run] > high:
            continue
        drop(book, gap)
        unit = low
        within = run
        while within < last and runs[0, within] <= high:
            if unit < runs[0, within]:
                put(book, begin, end, unit, runs[0, within] - 1, fresh, -1)
            unit = runs[1, within] + 1
            scratch[into, parts] = end if line == BEGIN else begin
            scratch[into + 1, parts] = max(low, runs[0, within])
            scratch[into + 2, parts] = min(high, runs[1, within])
            parts += 1
            within += 1
        if unit <= high:
            put(book, begin, end, unit, high, fresh, -1)
    return parts


def give_back(book: Book, begin: int, end: int, first: int, last: int) -> None:
    """Free some runs of units that were taken from ``begin`` to ``end``.

    The runs are in columns ``first`` to ``last`` - 1. Both times are indices into ``book.times``.
    """
    runs, scratch = book.runs, book.scratch
    leading = cut_out(book, END, begin, first, last, 1) if begin > 0 else 0
    following = cut_out(book, BEGIN, end, first, last, 4)
    before, after = 0, 0
    for run in range(first, last):
        unit = runs[0, run]
        made = -1
        while unit <= runs[1, run]:
            opens, closes, stop = begin, end, runs[1, run]
            while before < leading and scratch[3, before] < unit:
                before += 1
            if before < leading and scratch[2, before] <= unit:
                opens = scratch[1, before]
                stop = min(stop, scratch[3, before])
            elif before < leading:
                stop = min(stop, scratch[2, before] - 1)
            while after < following and scratch[6, after] < unit:
                after += 1
            if after < following and scratch[5, after] <= unit:
                closes = scratch[4, after]
                stop = min(stop, scratch[6, after])
            elif after < following:
                stop = min(stop, scratch[5, after] - 1)
            made = put(book, opens, closes, unit, stop, 1, made)
            unit = stop + 1


def mark(book: Book, begin: int, end: int) -> None:
    """Mark the jobs that might move because units were freed.

    Marked jobs are planned again. The units were freed from ``begin`` to ``end``, both indices into ``book.times``.
    """
    gaps, counts = book.gaps, book.counts
    since, until, lowest = book.scratch[2], book.scratch[3], book.scratch[4]
    # for each time, of the units that are free until then: the lowest, the highest, and their number
    least, most, units = book.scratch[5], book.scratch[6], book.scratch[7]
    least[: counts[TIMES]] = NEVER
    most[: counts[TIMES]] = -1
    units[: counts[TIMES]] = 0
    count = 0
    first, last = NEVER, 0
    for gap in np.flatnonzero(gaps[FRESH, : counts[GAPS]]):
        gaps[FRESH, gap] = 0
        opens, closes, low, high = gaps[BEGIN, gap], gaps[END, gap], gaps[LOW, gap], gaps[HIGH, gap]
        if opens >= end or closes <= begin:
            continue
        first, last = min(first, opens), max(last, closes)
        least[closes], most[closes] = min(least[closes], low), max(most[closes], high)
        units[closes] += high - low + 1
        # A gap marks no further job if another gap lasts as long and is as low.
        needed = True
        for at in range(count):
            needed = needed and not (since[at] <= opens and until[at] >= closes and lowest[at] <= low)
        if needed:
            kept = 0
            for at in range(count):
                if since[at] < opens or until[at] > closes or lowest[at] < low:
                    since[kept], until[kept], lowest[kept] = since[at], until[at], lowest[at]
                    kept += 1
            since[kept], until[kept], lowest[kept] = opens, closes, low
            count = kept + 1
    if count > 0:
        mark_movable(book, doubtful(book, count), first, last)


def mark_movable(book: Book, unsure: Ints, first: int, last: int) -> None:
    """Mark jobs to be planned again: the ``unsure`` jobs that might start sooner.

    Only start times from ``first`` to ``last`` - 1 count, as indices into ``book.times``.
    """
    while len(unsure) > _FEW:
        unsure = longer_ones(book, unsure, first, last)
    for job in unsure:
        book.jobs[MARKED, job] = 1


def place(book: Book, job: int) -> bool:
    """Reserve units for a job as early as possible.

    Return whether the reservation begins now. ``job`` is the column of the job.
    """
    gaps, jobs, runs, counts = book.gaps, book.jobs, book.runs, book.counts
    size, length, begin = jobs[SIZE, job], book.lengths[job], jobs[BEGIN, job]
    first = jobs[RUNS, job]
    last = first + jobs[COUNT, job]
    if begin < 0:
        none = counts[TIMES] - 1
        found = earliest(book, size, length, none)
        if found == none:
            return False
    else:
        # To move forward it needs ``size - own`` units besides its own ones that are free just before its begin.
        own = free_before(book, begin, first, last) if begin > 0 else 0
        jobs[EARLY, job] = own
        found = earliest(book, size - own, length, begin)
        if found == begin and lowest_free(book, begin, jobs[END, job]) >= jobs[HIGH, job]:
            return bool(begin == 0)
        give_back(book, begin, jobs[END, job], first, last)
        if own > 0 and found < begin:
            found = earliest(book, size, length, begin)
    end = slot(book, end_of(book.times[found], length))
    fresh = counts[USED]
    count, early = take(book, found, end, size)
    begin, until = jobs[BEGIN, job], jobs[END, job]  # of the old place, in the current numbering
    if found == begin and count == last - first and np.all(runs[:, first:last] == runs[:, fresh : fresh + count]):
        gaps[FRESH, : counts[GAPS]] = 0
        return found == 0
    counts[USED] += count
    jobs[BEGIN, job] = found
    jobs[END, job] = end
    jobs[LOW, job] = runs[0, fresh]
    jobs[HIGH, job] = runs[1, fresh + count - 1]
    jobs[RUNS, job] = fresh
    jobs[COUNT, job] = count
    jobs[EARLY, job] = early
    if begin >= 0:
        mark(book, begin, until)
        jobs[MARKED, job] = 0  # it was placed with these units free
    return found == 0


def is_untidy(book: Book) -> bool:
    """Return whether the plan may have far more gaps or times than necessary."""
    counts = book.counts
    return bool(counts[GAPS] - counts[EMPTY] >= counts[MANY_GAPS] or counts[TIMES] >= counts[MANY_TIMES])


def has_room(book: Book, runs: int) -> bool:
    """Return whether the arrays have spare columns to take or free ``runs`` runs."""
    held = book.counts[GAPS] - book.counts[EMPTY]
    # Freeing makes at most three gaps of each run and of each gap that borders on it; taking makes two of each.
    most = 6 * (held + runs) + 16
    return bool(
        most < book.gaps.shape[1] <= book.scratch.shape[1]
        and book.jobs.shape[1] <= book.scratch.shape[1]
        and book.counts[TIMES] + 1 < len(book.times) <= book.scratch.shape[1]
        and book.counts[USED] + most < book.runs.shape[1]
    )


def place_all(book: Book, order: Ints) -> int:
    """Reserve units for the marked jobs of ``order``, from position `TURN` on.

    Returns:
        The column of the first job whose reservation begins now (`TURN` is then the next position); `DONE` if none
        does; `UNTIDY` if the arrays must be tidied or enlarged before the next call.
    """
    jobs, counts = book.jobs, book.counts
    turn = next_marked(book, order, counts[TURN])
    while turn < len(order):
        job = order[turn]
        counts[TURN] = turn
        if is_untidy(book) or not has_room(book, jobs[COUNT, job]):
            return UNTIDY
        jobs[MARKED, job] = 0
        counts[LOOKS] += 1
        counts[TURN] += 1
        if place(book, job):
            return int(job)
        turn = next_marked(book, order, turn + 1)
    return DONE
