"""Data structures of the kernel.

They are bit sets, heaps, sorted lists and arrays of records. A word has 62 bits, so that no operation exceeds an int64,
neither in compiled code nor in plain Python.
"""

from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from pipistrelle.kernel.compiled import counts_bits_by, inlined

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: an array of records; a class declares their fields (`rows_of`)
Rows = np.recarray[Any, Any]
_Record = TypeVar("_Record")

#: bits per word
WORD: Final = 62
#: in words with at most this many set bits, each bit is searched for
_FEW: Final = 4
_ODD: Final = 0x1555555555555555
_PAIRS: Final = 0x3333333333333333
_FOURS: Final = 0x0F0F0F0F0F0F0F0F


def words_of(count: int) -> int:
    """Return the number of words of a bit set that holds ``count`` bits."""
    return -(-count // WORD)


def rows_of(kind: type, count: int) -> Rows:
    """Return ``count`` zeroed records.

    Each annotation of ``kind`` becomes an int64 or float64 field.
    """
    fields = [(name, np.int64 if hint is int else np.float64) for name, hint in kind.__annotations__.items()]
    return np.zeros(count, np.dtype(fields, align=True)).view(np.recarray)


def record_of(kind: type[_Record]) -> _Record:
    """Return one zeroed record with the fields that ``kind`` annotates."""
    return cast(_Record, rows_of(kind, 1)[0])


@inlined
def bits_in(word: int) -> int:
    """Return how many bits of a word are set."""
    word -= (word >> 1) & _ODD
    word = (word & _PAIRS) + ((word >> 2) & _PAIRS)
    word = (word + (word >> 4)) & _FOURS
    word += word >> 8
    word += word >> 16
    word += word >> 32
    return word & 127


counts_bits_by(bits_in)


@inlined
def take_lowest(free: Ints, held: Ints, base: int, count: int) -> tuple[int, int]:
    """Move the lowest ``count`` bits of the bit set ``free`` to another bit set.

    Args:
        free: the bit set, with at least ``count`` bits.
        held: words of several bit sets, one set after the other.
        base: index in ``held`` at which the other bit set begins.
        count: number of bits to move.

    Returns:
        The first word of the other set that has a moved bit, and the word after the last one. Words outside this range
        are not written, so they have no meaning.
    """
    at = 0
    while free[at] == 0:
        at += 1
    first = at
    left = count
    while left > 0:
        word = free[at]
        bits = bits_in(word)
        if bits <= left:
            held[base + at] = word
            free[at] = 0
            left -= bits
        else:
            rest = word
            for _ in range(left):
                rest &= rest - 1
            held[base + at] = word ^ rest
            free[at] = rest
            left = 0
        at += 1
    return first, at


@inlined
def add_where(sums: Floats, held: Ints, base: int, first: int, last: int, number: float) -> None:
    """Add ``number`` to the elements of an array that are in a bit set.

    Args:
        sums: the array; bit b of the set's word w stands for element 62 w + b.
        held: words of several bit sets, one set after the other.
        base: index in ``held`` at which the set begins.
        first, last: the first word of the set to read, and the word after the last one.
    """
    for at in range(first, last):
        word = held[base + at]
        begin = at * WORD
        if bits_in(word) <= _FEW:
            while word != 0:
                rest = word & (word - 1)
                sums[begin + bits_in((word ^ rest) - 1)] += number
                word = rest
        else:
            for bit in range(WORD):
                sums[begin + bit] += number if (word >> bit) & 1 else 0.0


@inlined
def heap_push(times: Floats, slots: Ints, count: int, time: float, slot: int) -> None:
    """Add a pair (time, number) to a binary heap, whose first pair has the earliest time.

    Args:
        times, slots: the two columns of the heap.
        count: number of pairs in the heap before.
        time, slot: the pair.
    """
    at = count
    while at > 0:
        above = (at - 1) >> 1
        if times[above] <= time:
            break
        times[at] = times[above]
        slots[at] = slots[above]
        at = above
    times[at] = time
    slots[at] = slot


@inlined
def heap_drop(times: Floats, slots: Ints, count: int, at: int) -> None:
    """Remove the pair at index ``at`` of a heap of ``count`` pairs."""
    last = count - 1
    time, slot = times[last], slots[last]
    while at > 0 and times[(at - 1) >> 1] > time:  # a pair that replaces an inner one may have to move up
        times[at] = times[(at - 1) >> 1]
        slots[at] = slots[(at - 1) >> 1]
        at = (at - 1) >> 1
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[at] = times[below]
        slots[at] = slots[below]
        at = below
    times[at] = time
    slots[at] = slot


@inlined
def rank_of(times: Floats, count: int, time: float) -> int:
    """Return how many of the first ``count`` times are at most ``time``.

    The times are ascending.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if times[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def insert_sorted(times: Floats, units: Ints, slots: Ints, count: int, time: float, size: int, slot: int) -> None:
    """Insert a running job into a list that is sorted by time.

    Args:
        times, units, slots: the columns of the list.
        count: number of jobs in the list before.
        time: when the job ends (s).
        size: its number of units.
        slot: its index in `KernelSlots`.
    """
    place = rank_of(times, count, time)
    for at in range(count, place, -1):
        times[at] = times[at - 1]
        units[at] = units[at - 1]
        slots[at] = slots[at - 1]
    times[place] = time
    units[place] = size
    slots[place] = slot


@inlined
def drop_sorted(times: Floats, units: Ints, slots: Ints, count: int, time: float, slot: int) -> None:
    """Remove a running job from a list that is sorted by time.

    Args:
        times, units, slots: the columns of the list.
        count: number of jobs in the list before.
        time: when the job ends (s).
        slot: its index in `KernelSlots`.
    """
    place = rank_of(times, count, time) - 1
    while slots[place] != slot:
        place -= 1
    for at in range(place, count - 1):
        times[at] = times[at + 1]
        units[at] = units[at + 1]
        slots[at] = slots[at + 1]
