"""Sum the free GPU capacity that typical requests can use.

There are two forms: with numpy, and as a loop for numba.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def usable(cores: Ints, gpus: Ints, model_of: Ints, *tables: NDArray[Any]) -> Ints:
    """Return each node's free GPU capacity that typical requests can use.

    The unit is 1/1000 GPU; the result is the sum over all requests. Requests of one class need the same GPUs and differ
    only in cores. For a class, the sum grows by the free thousandths that it can use, times the number of its requests
    whose cores fit.

    Args:
        tables: the arguments from `accepts` to `weights`.
        cores, gpus, model_of: free cores, free thousandths of each GPU, and model of some nodes.
        accepts: shape (classes, 1 + models), whether a class accepts a model; the last column is for no model.
        counts, shares: how many GPUs the requests of a class need, and how many thousandths of each.
        begins: shape (1 + classes,), where each class begins in ``steps`` and ``weights``.
        steps: the cores that requests of a class need, ascending in each class.
        weights: the number of requests of the class that need at most the cores in ``steps``.
    """
    accepts, counts, shares, begins, steps, weights = tables
    total = np.zeros(len(cores), dtype=np.int64)
    for kind in range(len(counts)):
        large = gpus >= shares[kind]
        fits = accepts[kind, model_of] & (large.sum(axis=1) >= counts[kind])
        begin, end = begins[kind], begins[kind + 1]
        place = np.searchsorted(steps[begin:end], cores, side="right")
        number = np.where(place > 0, weights[begin + place - 1], 0)
        total += np.where(fits, number * np.where(large, gpus, 0).sum(axis=1), 0)
    return total


def usable_loop(
    cores: Ints,
    gpus: Ints,
    model_of: Ints,
    accepts: Flags,
    counts: Ints,
    shares: Ints,
    begins: Ints,
    steps: Ints,
    weights: Ints,
) -> Ints:
    """Return the same as `usable`, computed by a loop that numba compiles."""
    total = np.zeros(len(cores), dtype=np.int64)
    for row in range(len(cores)):
        for kind in range(len(counts)):
            begin, end = begins[kind], begins[kind + 1]
            if steps[begin] > cores[row] or not accepts[kind, model_of[row]]:
                continue
            large = 0
            free = 0
            for gpu in range(gpus.shape[1]):
                if gpus[row, gpu] >= shares[kind]:
                    large += 1
                    free += gpus[row, gpu]
            if large < counts[kind]:
                continue
            last = begin
            while last + 1 < end and steps[last + 1] <= cores[row]:
                last += 1
            total[row] += weights[last] * free
    return total
