"""Sets of nodes as integers.

Bit i stands for the node with index i. Nodes are sorted by name, as Slurm does.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: of sets with more than one node in so many, all bits are read; of others, bit by bit
_DENSE: Final = 8


def mask_of(indices: Iterable[int]) -> int:
    """Return the bit mask of the nodes with these indices."""
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask


def indices_of(mask: int) -> list[int]:
    """Return the indices of the nodes in a bit mask, in ascending order."""
    first = max(0, (mask & -mask).bit_length() - 1)
    mask >>= first
    if mask.bit_count() * _DENSE > mask.bit_length():
        return [at for at, bit in enumerate(bin(mask)[:1:-1], first) if bit == "1"]
    found = []
    while mask:
        low = mask & -mask
        found.append(first + low.bit_length() - 1)
        mask ^= low
    return found


def array_of(mask: int) -> NDArray[np.intp]:
    """Return the indices of the nodes in a bit mask as an array, in ascending order."""
    data = np.frombuffer(mask.to_bytes(-(-mask.bit_length() // 8), "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little"))


def mask_of_array(indices: NDArray[np.intp], count: int) -> int:
    """Return the bit mask of the nodes with these indices, all below ``count``."""
    flags = np.zeros(count, np.bool_)
    flags[indices] = True
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def flags_of(mask: int, count: int) -> NDArray[np.bool_]:
    """Return for each of ``count`` nodes whether it is in a bit mask, as an array."""
    data = np.frombuffer(mask.to_bytes(-(-count // 8), "little"), np.uint8)
    return np.unpackbits(data, count=count, bitorder="little").view(np.bool_)


def runs_of(mask: int) -> list[tuple[int, int]]:
    """Return the runs of consecutive nodes in a bit mask, in ascending order.

    Each run is (first index, length).
    """
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
    """Return the bit mask of ``length`` consecutive nodes from node ``first`` on."""
    return ((1 << length) - 1) << first


def lowest(mask: int, count: int) -> int:
    """Return the bit mask of the ``count`` nodes of ``mask`` with the lowest indices.

    ``mask`` must have at least that many nodes.
    """
    taken = 0
    for _ in range(count):
        low = mask & -mask
        taken |= low
        mask ^= low
    return taken
