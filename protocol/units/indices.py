"""Convert sets of units to array indices (slices or an array) and boolean arrays."""

from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.state import register
from pipistrelle.protocol.units.nodesets import NodeSet

#: above this number of intervals, one index array is faster than slices (measured break-even: 10 to 20)
_MANY: Final = 16
#: from this mean number of units per interval on, slices are faster than an index array whatever their number
_WIDE: Final = 128
#: consecutive numbers, whose slices become intervals; the largest number of intervals for which this is faster
_ROW: Final = np.arange(1 << 17, dtype=np.intp)
_JOINED: Final = 24


def pieces(units: NodeSet) -> list[slice] | list[NDArray[np.intp]]:
    """Return indices that together select the element of each unit exactly once.

    They are slices or one array.
    """
    intervals = units.intervals
    if len(intervals) > _MANY and units.count < _WIDE * len(intervals):
        return [numbers(units)]
    return [slice(low, high + 1) for low, high in intervals]


def numbers(units: NodeSet) -> NDArray[np.intp]:
    """Return the unit numbers, ascending, shape (units,); do not write to the array."""
    known: NDArray[np.intp] | None = units._units
    if known is not None:
        return known
    intervals = units.intervals
    if len(intervals) == 1:
        return np.arange(intervals[0][0], intervals[0][1] + 1, dtype=np.intp)
    if 0 < len(intervals) <= _JOINED and intervals[-1][1] < len(_ROW):
        return np.concatenate([_ROW[low : high + 1] for low, high in intervals])
    bounds = np.fromiter(chain.from_iterable(intervals), np.intp, 2 * len(intervals)).reshape(-1, 2)
    sizes = bounds[:, 1] - bounds[:, 0] + 1
    # From the start of each interval, unit numbers exceed their positions in the result by this much.
    ahead = bounds[:, 0] - (np.cumsum(sizes) - sizes)
    found: NDArray[np.intp] = np.arange(len(units), dtype=np.intp) + np.repeat(ahead, sizes)
    return found


def flags(units: NodeSet, count: int) -> NDArray[np.bool_]:
    """Return whether each unit below ``count`` is in the set, shape (count,)."""
    intervals = units.intervals
    if len(intervals) <= _MANY:
        found = np.zeros(count, dtype=np.bool_)
        for low, high in intervals:
            found[low : high + 1] = True
        return found
    bounds = np.empty(2 * len(intervals) + 2, dtype=np.intp)
    bounds[0], bounds[-1] = 0, count
    bounds[1:-1] = np.fromiter(chain.from_iterable(intervals), np.intp, 2 * len(intervals))
    bounds[2:-1:2] += 1
    turns = np.zeros(len(bounds) - 1, dtype=np.bool_)
    turns[1::2] = True
    return np.repeat(turns, bounds[1:] - bounds[:-1])


def flagged(found: NDArray[np.bool_]) -> NodeSet:
    """Return the set of units whose flags in ``found``, shape (units,), are true."""
    edges = np.zeros(len(found) + 2, dtype=np.bool_)
    edges[1:-1] = found
    bounds = (edges[1:] != edges[:-1]).nonzero()[0]
    highs = bounds[1::2] - 1
    return NodeSet._make(tuple(zip(bounds[::2].tolist(), highs.tolist(), strict=True)), int(np.count_nonzero(found)))


def set_of(numbers: NDArray[np.intp]) -> NodeSet:
    """Return the set of the given units: distinct, in any order, shape (units,)."""
    return set_of_ordered(np.sort(numbers))


def set_of_ordered(units: NDArray[np.integer[Any]]) -> NodeSet:
    """Return the set of the given distinct ascending units; the set keeps the array."""
    count = len(units)
    if not count:
        return NodeSet.EMPTY
    after = units[1:]
    (last,) = (after - units[:-1] != 1).nonzero()
    lows, highs = [int(units[0])], units.take(last).tolist()
    lows += after.take(last).tolist()
    highs.append(int(units[-1]))
    made = NodeSet._of_bounds(lows, highs, count)
    made._units = units.astype(np.intp)
    return made


def kept_numbers(units: NodeSet) -> NDArray[np.intp]:
    """Return the set's unit numbers (see `numbers`), and keep the array in the set."""
    known: NDArray[np.intp] | None = units._units
    if known is None:
        known = units._units = numbers(units)
    return known


def drop_numbers(units: NodeSet) -> None:
    """Remove the array that `kept_numbers` has stored in the set."""
    units._units = None


def packed(units: NodeSet) -> bytes:
    """Return a non-empty set as bits: unit 0 is the lowest bit of byte 0."""
    return np.packbits(flags(units, units.last + 1), bitorder="little").tobytes()


def set_bits(mask: int) -> list[int]:
    """Return the numbers of the set bits of ``mask``, ascending; fast if few are set."""
    words = np.frombuffer(mask.to_bytes(8 * ((mask.bit_length() + 63) // 64), "little"), dtype="<u8")
    used = words.nonzero()[0]
    bits = np.unpackbits(words[used].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    word, bit = bits.nonzero()
    found: list[int] = (64 * used[word] + bit).tolist()
    return found


register(np.ndarray, lambda numbers: [numbers.dtype.name, numbers.tolist()], lambda state: np.array(state[1], state[0]))
