"""The job queue, in blocks with an index that lets backfilling skip most jobs.

A block has up to `BLOCK` jobs. For each block, the index has the smallest job size. For each power of two, it also has
the least walltime of the block's jobs with fewer units. Backfilling in a queue of n jobs checks about n / 32 blocks in
the index, and opens each block in which a job may start. It also opens some blocks in which no job may start, because
the index knows walltimes for powers of two only. The first block is always opened and has no index. Two neighbouring
blocks are merged if together they have at most half a block of jobs.
"""

from typing import Final, NamedTuple

import numpy as np

from pipistrelle.kernel.compiled import compiled, inlined, is_late, within, woven_in
from pipistrelle.kernel.sets import Floats, Ints, record_of

#: largest number of jobs in a block
BLOCK: Final = 64
_HALF: Final = BLOCK // 2


class QueueCounts:
    """A record of the numbers of used blocks, unused blocks and jobs of the queue."""

    line: int
    spare: int
    waiting: int


class Queue(NamedTuple):
    """The queued jobs, in blocks: job i of block b is at index b * BLOCK + i.

    Attributes:
        job, size, occupies: each job's row of the workload, units and walltime (s).
        first, end: each block's first place with a job, and the place after the last.
        line: the blocks in queue order.
        spare: unused blocks.
        least_size: the smallest size in each block.
        least_time: at b * classes + c, the least walltime of block b's jobs with fewer than 2^(c+1) units.
        rank, number: sort keys of each row of the workload, which are its rank in the queue order and its submission
            number.
        size_class: floor(log2) of each size.
    """

    job: Ints
    size: Ints
    occupies: Floats
    first: Ints
    end: Ints
    line: Ints
    spare: Ints
    least_size: Ints
    least_time: Floats
    counts: QueueCounts
    rank: Floats
    number: Ints
    size_class: Ints


def make_queue(jobs: int, units: int) -> Queue:
    """Return an empty queue for ``jobs`` jobs of up to ``units`` units."""
    blocks = 4 * jobs // BLOCK + 4
    size_class = np.zeros(units + 1, dtype=np.int64)
    for power in range(1, units.bit_length()):
        size_class[1 << power :] = power
    places = blocks * BLOCK
    counts = record_of(QueueCounts)
    counts.line, counts.spare = 1, blocks - 1  # block 0 is first in the line, and empty
    return Queue(
        np.empty(places, dtype=np.int64),
        np.empty(places, dtype=np.int64),
        np.empty(places),
        np.zeros(blocks, dtype=np.int64),
        np.zeros(blocks, dtype=np.int64),
        np.zeros(blocks, dtype=np.int64),
        np.arange(blocks - 1, -1, -1, dtype=np.int64),
        np.zeros(blocks, dtype=np.int64),
        np.empty(blocks * (int(size_class[-1]) + 1)),
        counts,
        np.zeros(jobs),
        np.zeros(jobs, dtype=np.int64),
        size_class,
    )


@inlined
def _precedes(queue: Queue, job: int, other: int) -> bool:
    rank, others = queue.rank[job], queue.rank[other]
    return bool(rank < others or (rank == others and queue.number[job] < queue.number[other]))


@inlined
def _count_in(queue: Queue, block: int, size: int, time: float) -> None:
    queue.least_size[block] = min(queue.least_size[block], size)
    classes = queue.size_class[-1] + 1
    for at in range(block * classes + queue.size_class[size], (block + 1) * classes):
        queue.least_time[at] = min(queue.least_time[at], time)


@within
def summarise(queue: Queue, block: int) -> None:
    """Recompute what the index says about a block of the queue.

    This is the smallest job size and the least walltimes of the block.
    """
    classes = queue.size_class[-1] + 1
    begin = block * classes
    queue.least_time[begin : begin + classes] = np.inf
    least = queue.size_class.size  # larger than every size
    for at in range(block * BLOCK + queue.first[block], block * BLOCK + queue.end[block]):
        size = queue.size[at]
        least = min(least, size)
        place = begin + queue.size_class[size]
        queue.least_time[place] = min(queue.least_time[place], queue.occupies[at])
    queue.least_size[block] = least
    for at in range(begin + 1, begin + classes):
        queue.least_time[at] = min(queue.least_time[at], queue.least_time[at - 1])


@within
def _new_block(queue: Queue, place: int) -> int:
    counts = queue.counts
    counts.spare -= 1
    block = queue.spare[counts.spare]
    for at in range(counts.line, place, -1):
        queue.line[at] = queue.line[at - 1]
    queue.line[place] = block
    counts.line += 1
    queue.first[block] = 0
    queue.end[block] = 0
    summarise(queue, block)
    return int(block)


@woven_in
def copy_job(queue: Queue, source: int, target: int) -> None:
    """Copy a job of the queue from index ``source`` to index ``target``."""
    queue.job[target] = queue.job[source]
    queue.size[target] = queue.size[source]
    queue.occupies[target] = queue.occupies[source]


@within
def _move(queue: Queue, source: int, target: int, count: int) -> None:
    """Copy ``count`` jobs within the queue's arrays.

    They are copied from index ``source`` to index ``target``. The ranges may overlap if ``target`` is lower than
    ``source``.
    """
    for at in range(count):
        copy_job(queue, source + at, target + at)


@within
def _close_up(queue: Queue, block: int) -> int:
    """Move the jobs of a block of the queue to its first positions.

    Return the number of these jobs.
    """
    gone = queue.first[block]
    count = queue.end[block] - gone
    _move(queue, block * BLOCK + gone, block * BLOCK, count)
    queue.first[block] = 0
    queue.end[block] = count
    return int(count)


@within
def _place_of(queue: Queue, job: int) -> tuple[int, int]:
    """Return where a job must be inserted into the queue.

    The result is an index into ``queue.line``, which gives the block of the queue, and a position in this block. The
    job must precede at least one queued job.
    """
    low, high = 0, queue.counts.line - 1  # find the first block whose last job follows the new one
    while low < high:
        middle = (low + high) >> 1
        block = queue.line[middle]
        if _precedes(queue, queue.job[block * BLOCK + queue.end[block] - 1], job):
            low = middle + 1
        else:
            high = middle
    block = queue.line[low]
    begin, end = queue.first[block], queue.end[block]
    while begin < end:
        middle = (begin + end) >> 1
        if _precedes(queue, queue.job[block * BLOCK + middle], job):
            begin = middle + 1
        else:
            end = middle
    return low, begin


@inlined
def join(queue: Queue, job: int, size: int, time: float) -> None:
    """Insert a job into the queue, by its rank.

    The job has ``size`` units and a walltime of ``time`` (s).
    """
    counts = queue.counts
    counts.waiting += 1
    at = counts.line - 1
    block = queue.line[at]
    place = queue.end[block]
    if counts.waiting == 1 or _precedes(queue, queue.job[block * BLOCK + place - 1], job):
        if place == BLOCK and queue.first[block] >= _HALF:
            place = _close_up(queue, block)
        elif place == BLOCK:
            at += 1
            block = _new_block(queue, at)
            place = queue.end[block]
    else:
        at, place = _place_of(queue, job)
        block = queue.line[at]
        if queue.end[block] == BLOCK and queue.first[block] > 0:
            place -= queue.first[block]
            _close_up(queue, block)
        elif queue.end[block] == BLOCK:
            upper = _new_block(queue, at + 1)
            _move(queue, block * BLOCK + _HALF, upper * BLOCK, queue.end[block] - _HALF)
            queue.end[upper] = _HALF
            queue.end[block] = _HALF
            summarise(queue, block)
            summarise(queue, upper)
            if place > _HALF:
                at, block, place = at + 1, upper, place - _HALF
        for to in range(block * BLOCK + queue.end[block], block * BLOCK + place, -1):
            copy_job(queue, to - 1, to)
    queue.job[block * BLOCK + place] = job
    queue.size[block * BLOCK + place] = size
    queue.occupies[block * BLOCK + place] = time
    queue.end[block] += 1
    if at > 0:
        _count_in(queue, block, size, time)


@inlined
def first_of(queue: Queue) -> int:
    """Return the first queued job, as its row in the workload."""
    block = queue.line[0]
    return int(queue.job[block * BLOCK + queue.first[block]])


@inlined
def drop_first(queue: Queue) -> None:
    """Remove the first job of the queue."""
    counts = queue.counts
    counts.waiting -= 1
    block = queue.line[0]
    queue.first[block] += 1
    left = queue.end[block] - queue.first[block]
    if counts.line == 1:
        if left == 0:
            queue.first[block] = 0
            queue.end[block] = 0
        return
    after = queue.line[1]
    if left + queue.end[after] - queue.first[after] <= _HALF or left == 0:
        tidy(queue)


@compiled
def tidy(queue: Queue) -> None:
    """Remove empty blocks from the queue, and merge neighbouring blocks with few jobs."""
    counts = queue.counts
    kept = 0
    for place in range(counts.line):
        block = queue.line[place]
        count = queue.end[block] - queue.first[block]
        if kept > 0 and count > 0:
            before = queue.line[kept - 1]
            there = queue.end[before] - queue.first[before]
            if there + count <= _HALF:
                if queue.end[before] + count > BLOCK:
                    _close_up(queue, before)
                _move(queue, block * BLOCK + queue.first[block], before * BLOCK + queue.end[before], count)
                queue.end[before] += count
                count = 0
                if kept > 1:
                    summarise(queue, before)
        if count == 0:
            queue.spare[counts.spare] = block
            counts.spare += 1
        else:
            queue.line[kept] = block
            kept += 1
    counts.line = kept


@woven_in
def keep(queue: Queue, at: int, kept: int) -> int:
    """Keep a job in the queue: move it from index ``at`` down to index ``kept``, over jobs that have left.

    Return ``kept + 1``, the index for the next job that stays.
    """
    if kept < at:
        copy_job(queue, at, kept)
    return kept + 1


@woven_in
def cut(queue: Queue, place: int, end: int) -> None:
    """Remove the jobs from index ``end`` on in a block of the queue.

    The block is the one at index ``place`` of ``queue.line``.
    """
    block = queue.line[place]
    if end < block * BLOCK + queue.end[block]:
        queue.end[block] = end - block * BLOCK
        if place > 0:
            summarise(queue, block)


@woven_in
def leave(queue: Queue, count: int) -> None:
    """Subtract ``count``, the number of removed jobs, from the length of the queue.

    Then merge blocks with few jobs.
    """
    queue.counts.waiting -= count
    if count > 0 and queue.counts.line > 1:
        tidy(queue)


@inlined
def pass_over(queue: Queue, chosen: Ints, free: int, extra: int, shadow: float, now: float) -> tuple[int, int, int]:
    """Backfill: move the jobs that may pass the first job to ``chosen``.

    The jobs leave the queue; ``chosen`` gets their rows of the workload.

    A job may pass if it needs at most ``free`` units and does not delay the first job. It delays the first job if it
    needs more than ``extra`` units and its walltime ends after ``shadow`` (s) when it starts at ``now`` (s).

    Returns:
        The number of removed jobs, and what remains of ``free`` and ``extra``.
    """
    found = 0
    classes = queue.size_class[-1] + 1
    for place in range(queue.counts.line):
        if free == 0:
            break
        block = queue.line[place]
        begin, end = block * BLOCK + queue.first[block], block * BLOCK + queue.end[block]
        if place == 0:
            begin += 1
        else:
            least = queue.least_size[block]
            if least > free or (
                least > extra and is_late(now, queue.least_time[block * classes + queue.size_class[free]], shadow)
            ):
                continue
        kept = begin
        for at in range(begin, end):
            size = queue.size[at]
            if size <= free:
                late = is_late(now, queue.occupies[at], shadow)
                if not late or size <= extra:
                    chosen[found] = queue.job[at]
                    found += 1
                    free -= size
                    if late:
                        extra -= size
                    continue
            kept = keep(queue, at, kept)
        cut(queue, place, kept)
    leave(queue, found)
    return found, free, extra
