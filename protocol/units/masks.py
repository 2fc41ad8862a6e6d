"""Sets of units as integers, one bit per unit: one `&` intersects two sets."""

from functools import cache
from typing import Final

from pipistrelle.protocol.units.indices import packed, set_bits
from pipistrelle.protocol.units.nodesets import NodeSet

#: up to this number of intervals, finding them one by one is faster than examining all units at once
_FEW: Final = 8
#: above this number of intervals, packing all units at once is faster, for masks of more than _LONG bits
_MANY: Final = 64
_LONG: Final = 16384


def mask_of(units: NodeSet) -> int:
    """Return the integer whose bit u is set for each unit u."""
    intervals = units.intervals
    if len(intervals) > _MANY and units.last > _LONG:
        return int.from_bytes(packed(units), "little")
    mask = 0
    for lo, hi in intervals:
        mask |= ((1 << (hi - lo + 1)) - 1) << lo
    return mask


def units_of(mask: int) -> NodeSet:
    """Return the set of units that the set bits represent."""
    edges = mask ^ (mask << 1)  # the first bit of each interval, and the bit after it
    bounds: list[int] = []
    rest = edges
    while rest:
        if len(bounds) == 2 * _FEW:
            bounds = set_bits(edges)[::-1]
            break
        bounds.append(rest.bit_length() - 1)
        rest ^= 1 << bounds[-1]
    bounds.reverse()
    intervals = [(bounds[at], bounds[at + 1] - 1) for at in range(0, len(bounds), 2)]
    return NodeSet._make(tuple(intervals), sum(bounds[1::2]) - sum(bounds[::2]))


def lowest(mask: int, count: int) -> int:
    """Return the ``count`` lowest set bits of ``mask``, which has at least that many."""
    if not count:
        return 0
    rest, low, level = mask, 0, (mask.bit_length() - 1).bit_length()
    while level:  # find the smallest number of low bits that contains `count` set ones, in ever shorter parts
        level -= 1
        part = rest & _ones(level)
        found = part.bit_count()
        if found >= count:
            rest = part
            if found == count:
                level = 0
                low += part.bit_length() - 1
        else:
            count -= found
            rest >>= 1 << level
            low += 1 << level
    return mask & ((2 << low) - 1)


@cache
def _ones(level: int) -> int:
    """Return the integer whose 2 ** ``level`` lowest bits are set."""
    return (1 << (1 << level)) - 1
