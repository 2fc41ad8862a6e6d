"""Sets of nodes as integers: bit i is node i in Slurm's order, which is by name."""

from collections.abc import Iterable, Iterator


def mask_of(indices: Iterable[int]) -> int:
    """Return the set of these nodes."""
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask


def indices_of(mask: int) -> Iterator[int]:
    """Iterate over the nodes of a set, from the lowest."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def runs_of(mask: int) -> list[tuple[int, int]]:
    """Return the runs of consecutive nodes as (first, length), from the lowest."""
    runs = []
    base = 0
    while mask:
        skip = (mask & -mask).bit_length() - 1
        mask >>= skip
        base += skip
        length = (~mask & (mask + 1)).bit_length() - 1  # trailing ones
        runs.append((base, length))
        mask >>= length
        base += length
    return runs


def span(first: int, length: int) -> int:
    """Return the set of ``length`` nodes from ``first`` on."""
    return ((1 << length) - 1) << first


def lowest(mask: int, count: int) -> int:
    """Return the lowest ``count`` nodes of a set that has as many."""
    taken = 0
    for _ in range(count):
        low = mask & -mask
        taken |= low
        mask ^= low
    return taken
