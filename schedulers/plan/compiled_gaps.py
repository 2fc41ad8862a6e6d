"""When which units are free, and whom a change can move, as loops over arrays that numba compiles.

What `GapTable` and `Reservations` do by operations on whole arrays. Every function is plain Python as well and does the
same (``NUMBA_DISABLE_JIT=1``). Times are indices into `Book.times`.
"""

from collections.abc import Callable
from math import inf
from typing import Any, Final, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_F = TypeVar("_F", bound=Callable[..., Any])

# Lines of gaps and of jobs
BEGIN: Final = 0
END: Final = 1
LOW: Final = 2
HIGH: Final = 3
# Lines of gaps
FRESH: Final = 4
HOLES: Final = 5
GAP_LINES: Final = 6
# Lines of jobs
RUNS: Final = 4
COUNT: Final = 5
SIZE: Final = 6
MARKED: Final = 7
EARLY: Final = 8
JOB_LINES: Final = 9
SCRATCH_LINES: Final = 9
# What stands in counts
TIMES: Final = 0
GAPS: Final = 1
EMPTY: Final = 2
JOBS: Final = 3
USED: Final = 4
TURN: Final = 5
MANY_GAPS: Final = 6
MANY_TIMES: Final = 7
COUNTS: Final = 8
#: when a column without a gap begins
NEVER: Final = 2**40
#: what `place_all` returns when all have been placed, and when the book wants tidying or more room
DONE: Final = -1
UNTIDY: Final = -2
# A sort key is a gap's lowest unit and, in its last bits, the gap's column.
_BITS: Final = 32
_COLUMN: Final = 2**32 - 1


class Book(NamedTuple):
    """The arrays that all the functions share; they have columns to spare."""

    #: s, ascending, from now to inf; what began before begins now
    times: NDArray[np.float64]
    #: a column a gap: `BEGIN`, `END`, `LOW`, `HIGH`, and `FRESH`, 1 if units in it have become free; a column without a
    #: gap begins at `NEVER` and ends at 0, and the first `EMPTY` ones of line `HOLES` say which these are
    gaps: Ints
    #: a column a waiting job: of its place `BEGIN` (-1: it has none), `END`, `LOW`, `HIGH`, `RUNS`, the first column of
    #: its runs of units, and `COUNT`, how many they are; `SIZE` (0: no job), `MARKED`, 1 if a change may move it, and
    #: `EARLY`, how many of its units are free just before its begin, at most
    jobs: Ints
    #: how long each of these jobs lasts, s
    lengths: NDArray[np.float64]
    #: a column a run of units: its lowest and its highest
    runs: Ints
    #: means nothing between two calls; as many columns as there are times, gaps and jobs
    scratch: Ints
    #: how many `TIMES`, columns of `GAPS`, `EMPTY` ones of these, columns of `JOBS`, and columns of runs (`USED`) are
    #: in use; whose `TURN` it is in `place_all`; and with how many gaps (`MANY_GAPS`) or times the book is untidy
    counts: Ints


def _compiled(function: _F) -> _F:
    """Let numba compile a function when it is first called, or read what an earlier process has compiled."""
    try:
        made = numba.njit(cache=True)(function)
    except RuntimeError:  # there is no folder to keep it in
        made = numba.njit(function)
    return cast(_F, made)


@_compiled
def _later(time: float, length: float) -> float:
    """Return `end_of`: when (s) a job that begins then is planned to end."""
    end = time + length
    return end if end > time else float(np.nextafter(time, inf))


@_compiled
def slot(book: Book, time: float) -> int:
    """Return the index of a time (s) that is not past; if it is new, all later ones move on."""
    times, gaps, jobs, counts = book.times, book.gaps, book.jobs, book.counts
    at = int(np.searchsorted(times[: counts[TIMES]], time))
    if times[at] == time:
        return at
    for later in range(counts[TIMES], at, -1):
        times[later] = times[later - 1]
    times[at] = time
    counts[TIMES] += 1
    for line in range(END + 1):
        column = gaps[line]
        for gap in range(counts[GAPS]):
            column[gap] += column[gap] >= at
        column = jobs[line]
        for job in range(counts[JOBS]):
            column[job] += column[job] >= at
    return at


@_compiled
def advance(book: Book, now: float) -> None:
    """Forget what is past."""
    times, gaps, jobs, counts = book.times, book.gaps, book.jobs, book.counts
    past = np.searchsorted(times[: counts[TIMES]], now, "right") - 1
    if past > 0:
        for at in range(past, counts[TIMES]):
            times[at - past] = times[at]
        counts[TIMES] -= past
        for gap in range(counts[GAPS]):
            if gaps[END, gap] > past:
                gaps[BEGIN, gap] = max(gaps[BEGIN, gap] - past, 0)
                gaps[END, gap] -= past
            elif gaps[END, gap] > 0:
                _drop(book, gap)
        for job in range(counts[JOBS]):
            if jobs[BEGIN, job] >= 0:
                jobs[BEGIN, job] = max(jobs[BEGIN, job] - past, 0)
                jobs[END, job] -= past
    times[0] = now


@_compiled
def first_begin(book: Book) -> float:
    """Return when (s) the first place of a waiting job begins, inf if there is none."""
    jobs = book.jobs
    first = book.counts[TIMES] - 1
    for job in range(book.counts[JOBS]):
        if 0 <= jobs[BEGIN, job] < first:
            first = jobs[BEGIN, job]
    return book.times[first]  # type: ignore[no-any-return]


@_compiled
def _drop(book: Book, gap: int) -> None:
    gaps, counts = book.gaps, book.counts
    gaps[BEGIN, gap] = NEVER
    gaps[END, gap] = 0
    gaps[FRESH, gap] = 0
    gaps[HOLES, counts[EMPTY]] = gap
    counts[EMPTY] += 1


@_compiled
def _put(book: Book, begin: int, end: int, low: int, high: int, fresh: int, beside: int) -> int:
    """Add a gap, to the one beside it if that has the same times; return its column, -1 if it takes no time."""
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
    return gap  # type: ignore[no-any-return]


@_compiled
def _count_changes(book: Book, length: float, before: int) -> Ints:
    """Return, for times up to ``before``, by how many more or fewer units are free so long from then on."""
    times, counts = book.times, book.counts
    closed: Ints = book.scratch[0]
    change: Ints = book.scratch[1]
    # A gap that ends then is of use to those who begin before the time that is noted.
    at = 0
    needed = _later(times[0], length)
    closed[0] = 0
    for end in range(1, counts[TIMES]):
        while at < before and needed <= times[end]:
            at += 1
            needed = _later(times[at], length)
        closed[end] = at
    change[: before + 1] = 0
    begins, ends, low, high = book.gaps[BEGIN], book.gaps[END], book.gaps[LOW], book.gaps[HIGH]
    for gap in range(counts[GAPS]):
        begin, until = begins[gap], closed[ends[gap]]
        if begin < until:
            units = high[gap] - low[gap] + 1
            change[begin] += units
            change[until] -= units
    return change


@_compiled
def _earliest(book: Book, size: int, length: float, before: int) -> int:
    """Return from when on so many units are free so long (s); ``before`` if they are not before that time."""
    change = _count_changes(book, length, before)
    units = 0
    for begin in range(before):
        units += change[begin]
        if units >= size:
            return begin
    return before


@_compiled
def _has_lower(book: Book, unit: int, begin: int, end: int) -> bool:
    """Tell whether a unit below this one is free from begin to end."""
    begins, ends, low = book.gaps[BEGIN], book.gaps[END], book.gaps[LOW]
    for gap in range(book.counts[GAPS]):  # noqa: SIM110 - numba knows no generators in `any`
        if begins[gap] <= begin and ends[gap] >= end and low[gap] < unit:
            return True
    return False


@_compiled
def _free_before(book: Book, begin: int, first: int, last: int) -> int:
    """Return how many units of the runs from ``first`` to before ``last`` are free just before a time."""
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
    return found


@_compiled
def _take(book: Book, begin: int, end: int, size: int) -> int:
    """Take the lowest ``size`` units that are free from begin to end, which are there; return how many runs they are.

    These stand behind the runs that are in use.
    """
    gaps, runs, keys = book.gaps, book.runs, book.scratch[0]
    found = 0
    for gap in range(book.counts[GAPS]):
        if gaps[BEGIN, gap] <= begin and gaps[END, gap] >= end:
            keys[found] = (gaps[LOW, gap] << _BITS) | gap
            found += 1
    keys[:found].sort()
    first = book.counts[USED]
    last = first - 1
    sooner, later = -1, -1  # the gap before and after that was made last
    for key in keys[:found]:
        gap = key & _COLUMN
        opens, closes, low, high, fresh = (
            gaps[BEGIN, gap],
            gaps[END, gap],
            gaps[LOW, gap],
            gaps[HIGH, gap],
            gaps[FRESH, gap],
        )
        _drop(book, gap)
        if high - low + 1 > size:
            _put(book, opens, closes, low + size, high, fresh, -1)
            high = low + size - 1
        size -= high - low + 1
        if last < first or runs[1, last] != low - 1:
            sooner, later = -1, -1
            last += 1
            runs[0, last] = low
        runs[1, last] = high
        sooner = _put(book, opens, begin, low, high, fresh, sooner)
        later = _put(book, end, closes, low, high, fresh, later)
        if size == 0:
            break
    return last + 1 - first  # type: ignore[no-any-return]


@_compiled
def claim(book: Book, begin: int, end: int, lowest: int, highest: int) -> None:
    """Take a run of units from begin to end, all of which are free then."""
    gaps, found = book.gaps, book.scratch[0]
    count = 0
    for gap in range(book.counts[GAPS]):
        covers = gaps[BEGIN, gap] <= begin and gaps[END, gap] >= end
        if covers and gaps[LOW, gap] <= highest and gaps[HIGH, gap] >= lowest:
            found[count] = gap
            count += 1
    for gap in found[:count]:
        opens, closes, low, high = gaps[BEGIN, gap], gaps[END, gap], gaps[LOW, gap], gaps[HIGH, gap]
        _drop(book, gap)
        if low < lowest:
            _put(book, opens, closes, low, lowest - 1, 0, -1)
        if high > highest:
            _put(book, opens, closes, highest + 1, high, 0, -1)
        low, high = max(low, lowest), min(high, highest)
        _put(book, opens, begin, low, high, 0, -1)
        _put(book, end, closes, low, high, 0, -1)


@_compiled
def _bordering(book: Book, line: int, time: int, first: int, last: int, into: int) -> int:
    """Take out the parts on these runs of the gaps that begin or end (which ``line``) at a time; return how many.

    They stand in three lines of the scratch, from ``into`` on: when they end or begin, their lowest and highest unit.
    """
    gaps, runs, scratch = book.gaps, book.runs, book.scratch
    keys, column = scratch[0], gaps[line]
    lowest, highest = runs[0, first], runs[1, last - 1]
    found = 0
    for gap in range(book.counts[GAPS]):
        if column[gap] == time and gaps[LOW, gap] <= highest and gaps[HIGH, gap] >= lowest:
            keys[found] = (gaps[LOW, gap] << _BITS) | gap
            found += 1
    keys[:found].sort()
    parts = 0
    run = first
    for key in keys[:found]:
        gap = key & _COLUMN
        begin, end, low, high, fresh = (
            gaps[BEGIN, gap],
            gaps[END, gap],
            gaps[LOW, gap],
            gaps[HIGH, gap],
            gaps[FRESH, gap],
        )
        while run < last and runs[1, run] < low:
            run += 1
        if run == last or runs[0, run] > high:
            continue
        _drop(book, gap)
        unit = low
        within = run
        while within < last and runs[0, within] <= high:
            if unit < runs[0, within]:
                _put(book, begin, end, unit, runs[0, within] - 1, fresh, -1)
            unit = runs[1, within] + 1
            scratch[into, parts] = end if line == BEGIN else begin
            scratch[into + 1, parts] = max(low, runs[0, within])
            scratch[into + 2, parts] = min(high, runs[1, within])
            parts += 1
            within += 1
        if unit <= high:
            _put(book, begin, end, unit, high, fresh, -1)
    return parts


@_compiled
def give_back(book: Book, begin: int, end: int, first: int, last: int) -> None:
    """Let the units of the runs from ``first`` to before ``last``, taken from begin to end, be free then."""
    runs, scratch = book.runs, book.scratch
    leading = _bordering(book, END, begin, first, last, 1) if begin > 0 else 0
    following = _bordering(book, BEGIN, end, first, last, 4)
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
            made = _put(book, opens, closes, unit, stop, 1, made)
            unit = stop + 1


@_compiled
def mark(book: Book, begin: int, end: int) -> None:
    """Mark whom units that have become free may let move, as far as their gaps meet the time from begin to end.

    See `Reservations` for who that is.
    """
    times, gaps, jobs, counts = book.times, book.gaps, book.jobs, book.counts
    since, until, lowest = book.scratch[2], book.scratch[3], book.scratch[4]
    # of the units that are free until a time: the lowest, the highest, and how many they are
    least, most, units = book.scratch[5], book.scratch[6], book.scratch[7]
    least[: counts[TIMES]] = NEVER
    most[: counts[TIMES]] = -1
    units[: counts[TIMES]] = 0
    count = 0
    first, last = NEVER, 0
    for gap in range(counts[GAPS]):
        if gaps[FRESH, gap] == 0:
            continue
        gaps[FRESH, gap] = 0
        opens, closes, low, high = gaps[BEGIN, gap], gaps[END, gap], gaps[LOW, gap], gaps[HIGH, gap]
        if opens >= end or closes <= begin:
            continue
        first, last = min(first, opens), max(last, closes)
        least[closes], most[closes] = min(least[closes], low), max(most[closes], high)
        units[closes] += high - low + 1
        # A gap marks nobody else if another lasts as long and is as low.
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
    if count == 0:
        return
    unsure, doubts = book.scratch[8], 0
    for job in range(counts[JOBS]):
        if jobs[SIZE, job] == 0 or jobs[MARKED, job]:
            continue
        opens, closes, length = jobs[BEGIN, job], jobs[END, job], book.lengths[job]
        has_place = opens >= 0
        lower, sooner = False, False
        if has_place and least[opens] <= jobs[HIGH, job] and most[opens] >= jobs[LOW, job]:
            jobs[EARLY, job] = min(jobs[EARLY, job] + units[opens], jobs[SIZE, job])
            sooner = True
        for at in range(count):
            if has_place and since[at] <= opens and until[at] >= closes and lowest[at] < jobs[HIGH, job]:
                lower = True
                break
            if not sooner and (not has_place or since[at] < opens):
                sooner = times[since[at]] + length <= times[until[at]]
        if lower:
            jobs[MARKED, job] = 1
        elif sooner:
            unsure[doubts] = job
            doubts += 1
    _mark_movable(book, doubts, first, last)


@_compiled
def _mark_movable(book: Book, count: int, first: int, last: int) -> None:
    """Mark those of the jobs in the scratch who could begin sooner, not before ``first``, and before ``last``.

    Of a job who cannot, as too few units are free as long as it lasts, none that lasts longer and needs as many can.
    """
    jobs, lengths, unsure = book.jobs, book.lengths, book.scratch[8]
    none = book.counts[TIMES] - 1
    while count > 1:
        shortest, before = inf, 0
        for at in range(count):
            job = unsure[at]
            shortest = min(shortest, lengths[job])
            before = max(before, jobs[BEGIN, job] if jobs[BEGIN, job] >= 0 else none)
        before = min(before, last)
        most = _count_changes(book, shortest, before)
        units, highest = 0, -1
        for at in range(before):
            units += most[at]
            if at >= first:
                highest = max(highest, units)
            most[at] = highest
        kept = 0
        for at in range(count):
            job = unsure[at]
            begin = min(before, jobs[BEGIN, job] if jobs[BEGIN, job] >= 0 else none)
            needed = jobs[SIZE, job] - jobs[EARLY, job]
            if needed <= 0 or (begin > 0 and most[begin - 1] >= needed):
                if lengths[job] > shortest:
                    unsure[kept] = job
                    kept += 1
                else:
                    jobs[MARKED, job] = 1
        count = kept
    if count == 1:
        jobs[MARKED, unsure[0]] = 1


@_compiled
def _place(book: Book, job: int) -> bool:
    """Give a job the earliest place there is; return whether it begins now."""
    gaps, jobs, runs, counts = book.gaps, book.jobs, book.runs, book.counts
    size, length, begin = jobs[SIZE, job], book.lengths[job], jobs[BEGIN, job]
    first = jobs[RUNS, job]
    last = first + jobs[COUNT, job]
    if begin < 0:
        none = counts[TIMES] - 1
        place = _earliest(book, size, length, none)
        if place == none:
            return False
    else:
        # With its own units that are free just before its begin it needs so many others to move forward.
        own = _free_before(book, begin, first, last) if begin > 0 else 0
        jobs[EARLY, job] = own
        place = _earliest(book, size - own, length, begin)
        if place == begin and not _has_lower(book, jobs[HIGH, job], begin, jobs[END, job]):
            return begin == 0  # type: ignore[no-any-return]
        give_back(book, begin, jobs[END, job], first, last)
        if own > 0 and place < begin:
            place = _earliest(book, size, length, begin)
    end = slot(book, _later(book.times[place], length))
    fresh = counts[USED]
    count = _take(book, place, end, size)
    begin, until = jobs[BEGIN, job], jobs[END, job]  # of the old place, as times are numbered now
    moved = place != begin or count != last - first
    for at in range(count):
        moved = moved or runs[0, first + at] != runs[0, fresh + at] or runs[1, first + at] != runs[1, fresh + at]
    if not moved:
        gaps[FRESH, : counts[GAPS]] = 0
        return place == 0
    counts[USED] += count
    jobs[BEGIN, job] = place
    jobs[END, job] = end
    jobs[LOW, job] = runs[0, fresh]
    jobs[HIGH, job] = runs[1, fresh + count - 1]
    jobs[RUNS, job] = fresh
    jobs[COUNT, job] = count
    jobs[EARLY, job] = _free_before(book, place, fresh, fresh + count) if place > 0 else 0
    if begin >= 0:
        mark(book, begin, until)
        jobs[MARKED, job] = 0  # it has had the choice
    return place == 0


@_compiled
def is_untidy(book: Book) -> bool:
    """Tell whether there are far more gaps or times than there need be, perhaps."""
    counts = book.counts
    return counts[GAPS] - counts[EMPTY] >= counts[MANY_GAPS] or counts[TIMES] >= counts[MANY_TIMES]  # type: ignore[no-any-return]


@_compiled
def has_room(book: Book, runs: int) -> bool:
    """Tell whether a change by so many runs of units cannot want for room."""
    held = book.counts[GAPS] - book.counts[EMPTY]
    # Giving back makes at most three gaps of each run and of each gap that borders on it; taking, two of each of these.
    most = 6 * (held + runs) + 16
    return (  # type: ignore[no-any-return]
        most < book.gaps.shape[1] <= book.scratch.shape[1]
        and book.jobs.shape[1] <= book.scratch.shape[1]
        and book.counts[TIMES] + 1 < len(book.times) <= book.scratch.shape[1]
        and book.counts[USED] + most < book.runs.shape[1]
    )


@_compiled
def place_all(book: Book, order: Ints) -> int:
    """Place those of these jobs who are marked, in this order, from the turn on.

    Return the first whose place begins now, the turn being the next one's; `DONE` when all have been placed; `UNTIDY`
    to be called again when the book is tidy and has room.
    """
    jobs, counts = book.jobs, book.counts
    for turn in range(counts[TURN], len(order)):
        job = order[turn]
        if jobs[MARKED, job]:
            if is_untidy(book) or not has_room(book, jobs[COUNT, job]):
                counts[TURN] = turn
                return UNTIDY
            jobs[MARKED, job] = 0
            if _place(book, job):
                counts[TURN] = turn + 1
                return job  # type: ignore[no-any-return]
    return DONE
