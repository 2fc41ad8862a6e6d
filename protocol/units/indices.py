"""Sets of units as indices of arrays: a few slices, or one array of numbers where a set is in many pieces."""

from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.units.nodesets import NodeSet

#: with more intervals than this one array of all units is faster than a slice for each (measured: break-even at 10 to
#: 20, the more units an interval has the later)
_MANY: Final = 16


def pieces(units: NodeSet) -> list[slice] | list[NDArray[np.intp]]:
    """Return indices that select all units of an array between them, each unit once."""
    if len(units.intervals) > _MANY:
        return [numbers(units)]
    return [slice(low, high + 1) for low, high in units.intervals]


def numbers(units: NodeSet) -> NDArray[np.intp]:
    """Return the numbers of the units, ascending, shape (units,)."""
    intervals = units.intervals
    if len(intervals) == 1:
        return np.arange(intervals[0][0], intervals[0][1] + 1, dtype=np.intp)
    bounds = np.fromiter(chain.from_iterable(intervals), np.intp, 2 * len(intervals)).reshape(-1, 2)
    sizes = bounds[:, 1] - bounds[:, 0] + 1
    # Where an interval begins among all units, its numbers run ahead of their positions by so much.
    ahead = bounds[:, 0] - (np.cumsum(sizes) - sizes)
    found: NDArray[np.intp] = np.arange(len(units), dtype=np.intp) + np.repeat(ahead, sizes)
    return found
