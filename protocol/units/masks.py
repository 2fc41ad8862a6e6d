"""Sets of units as whole numbers, bit by bit: what is free over many intervals is then one `&` each."""

from typing import Final

from pipistrelle.protocol.units.indices import packed, unpacked
from pipistrelle.protocol.units.nodesets import NodeSet

#: intervals that are looked for one by one; where there are more it is faster to look at all units at once
_FEW: Final = 8
#: with more intervals than this, in a longer mask than this, one by one is slower the other way, too
_MANY: Final = 64
_LONG: Final = 16384


def mask_of(units: NodeSet) -> int:
    """Return the number whose bit u is set for each unit u."""
    intervals = units.intervals
    if len(intervals) > _MANY and units.last > _LONG:
        return int.from_bytes(packed(units), "little")
    mask = 0
    for lo, hi in intervals:
        mask |= ((1 << (hi - lo + 1)) - 1) << lo
    return mask


def units_of(mask: int) -> NodeSet:
    """Return the units whose bits are set."""
    intervals: list[tuple[int, int]] = []
    at, count = 0, mask.bit_count()
    while mask and len(intervals) < _FEW:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        run = (~mask & (mask + 1)).bit_length() - 1
        mask >>= run
        at += gap + run
        intervals.append((at - run, at - 1))
    if mask:
        rest = unpacked(mask.to_bytes((mask.bit_length() + 7) // 8, "little"))
        intervals += [(low + at, high + at) for low, high in rest.intervals]
    return NodeSet._make(tuple(intervals), count)


def lowest(mask: int, count: int) -> int:
    """Return the ``count`` lowest set bits of ``mask``, which has at least as many."""
    low, high = count, mask.bit_length()
    if mask.bit_count() == count:
        return mask
    while low < high:  # the least number of low bits of `mask` among which `count` are set
        middle = (low + high) // 2
        if (mask & ((1 << middle) - 1)).bit_count() < count:
            low = middle + 1
        else:
            high = middle
    return mask & ((1 << low) - 1)
