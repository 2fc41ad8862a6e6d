"""Sets of units as whole numbers, bit by bit: what is free over many intervals is then one `&` each."""

from pipistrelle.protocol.units.nodesets import NodeSet


def mask_of(units: NodeSet) -> int:
    """Return the number whose bit u is set for each unit u."""
    mask = 0
    for lo, hi in units.intervals:
        mask |= ((1 << (hi - lo + 1)) - 1) << lo
    return mask


def units_of(mask: int) -> NodeSet:
    """Return the units whose bits are set."""
    intervals = []
    at = 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        run = (~mask & (mask + 1)).bit_length() - 1
        mask >>= run
        at += gap + run
        intervals.append((at - run, at - 1))
    return NodeSet(intervals)


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
