"""Loops over the free resources of time slices, with numpy.

`compiled` has the same functions for numba. A table has shape (rows, nodes, columns). Each row is one slice of time and
holds what is free on each node during it. The columns are the resources, then the GPUs of a node by number. ``order``
has the row of each slice, the earliest slice first.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.ends_and_shadow import end_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Need(NamedTuple):
    """The amounts that must be free on each node that a job uses.

    Attributes:
        least: amounts of the resources, shape (resources,).
        gpus: number of GPUs.
        share: thousandths of each GPU.
        idle: whether no other job may be on the node.
        low: least number of nodes.
        length: how long all of this must be free, s.
        tasks: number of tasks on all nodes together; 0 if it does not matter.
        most: the most tasks on one node.
        base: what the job takes of a node besides its tasks, shape (resources,).
        each: what each task takes, shape (resources,).
    """

    least: Ints
    gpus: int
    share: int
    idle: bool
    low: int
    length: float
    tasks: int
    most: int
    base: Ints
    each: Ints


class Shut(NamedTuple):
    """Periods in which a job may not use some nodes, or cannot run at all.

    Attributes:
        nodes: shape (periods, nodes).
        first, after: the first slice of each period, and the first after it, shape (periods,).
        never: for each slice, whether the job cannot run during it, shape (slices,); empty: it always can.
    """

    nodes: Bools
    first: Ints
    after: Ints
    never: Bools


def suffices(free: Ints, has: Ints, need: Need) -> Bools:
    """Return for each node whether it has free what a job needs on each of its nodes.

    The result has shape (nodes,).

    Args:
        free: free amounts, shape (nodes, columns).
        has: all amounts of the nodes, same shape.
    """
    width = len(need.least)
    found: Bools = np.all(free[:, :width] >= need.least, axis=1)
    if need.gpus:
        found &= np.greater_equal(np.count_nonzero(free[:, width:] >= need.share, axis=1), need.gpus)
    if need.idle:
        found &= np.all(free == has, axis=1)
    return found


def room(free: Ints, good: Bools, need: Need) -> int:
    """Return how many tasks of a job fit on the nodes ``good`` together.

    GPUs are ignored.

    Args:
        free: free amounts, shape (nodes, columns).
    """
    found = np.where(good, need.most, 0)
    for column in np.flatnonzero(need.each).tolist():
        found = np.minimum(found, np.maximum(free[:, column] - need.base[column], 0) // need.each[column])
    return int(found.sum())


def first_begin(
    table: Ints, order: Ints, begins: Floats, has: Ints, need: Need, among: Ints, shut: Shut, at: int, last: int
) -> tuple[int, Bools]:
    """Return the first time slice in which a job may start, and the nodes it may use.

    Each of these nodes has enough free resources in every slice until the job ends. The caller must check two more
    things: that a node has the same GPUs free in all slices, and that all the tasks fit.

    Args:
        has: all amounts of the nodes, shape (nodes, columns).
        among: the nodes that may be used.
        at, last: the first and the last slice to try.

    Returns:
        The slice, -1 if there is none; and for each node of ``among`` whether the job may use it.
    """
    count, upto = len(order), at
    bad: Ints = np.full(len(among), -1, dtype=np.int64)
    own = has[among]
    while at <= last:
        end = end_of(float(begins[at]), need.length)
        while upto < count and begins[upto] < end:
            free = table[order[upto]][among]
            good = suffices(free, own, need)
            for period in range(len(shut.first)):
                if shut.first[period] <= upto < shut.after[period]:
                    good &= ~shut.nodes[period, among]
            if len(shut.never) and shut.never[upto]:
                good[:] = False
            bad[~good] = upto
            upto += 1
            if int(good.sum()) < need.low or (need.tasks and room(free, good, need) < need.tasks):
                at = upto
                break
        else:
            fits: Bools = bad < at
            if int(fits.sum()) >= need.low:
                return at, fits
            at += 1
    return -1, np.zeros(len(among), dtype=np.bool_)


def extreme_free(table: Ints, order: Ints, first: int, after: int, nodes: Ints, most: bool) -> Ints:
    """Return the least that is free on each node in some time slices.

    With ``most``, return the most. The slices are ``first`` to ``after`` - 1. The result has shape (nodes, columns).
    """
    found: Ints = table[order[first]][nodes]
    for at in range(first + 1, after):
        (np.maximum if most else np.minimum)(found, table[order[at]][nodes], out=found)
    return found


def change(table: Ints, order: Ints, first: int, after: int, nodes: Ints, taken: Ints) -> None:
    """Add ``taken`` to the free amounts in time slices ``first`` to ``after`` - 1.

    Args:
        nodes: the nodes, none of them twice.
        taken: amounts, shape (nodes, columns).
    """
    table[order[first:after, None], nodes] += taken


def same(table: Ints, one: int, other: int) -> bool:
    """Return whether two rows of a table hold equal free amounts on all nodes."""
    return bool((table[one] == table[other]).all())
