"""The loops over the free resources of time slices, for numpy; `compiled` has the same for numba.

A table has shape (rows, nodes, columns): what is free on each node during one slice. ``order`` has the row of each
slice, from the earliest.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.policy.ends_and_shadow import end_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Need(NamedTuple):
    """What each node of a job must have free at least.

    Attributes:
        least: amounts of the resources, shape (resources,).
        gpus: number of GPUs.
        share: thousandths of each GPU.
        idle: whether no other job may be there.
        low: number of nodes.
        length: how long, s.
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
        never: the slices during which the job cannot run, shape (slices,); or empty.
    """

    nodes: Bools
    first: Ints
    after: Ints
    never: Bools


def suffices(free: Ints, has: Ints, need: Need) -> Bools:
    """Return which nodes have enough free for one node's part of a job, shape (nodes,).

    Args:
        free: shape (nodes, columns).
        has: what the nodes have in all, same shape.
    """
    width = len(need.least)
    found: Bools = (free[:, :width] >= need.least).all(axis=1)
    if need.gpus:
        found &= (free[:, width:] >= need.share).sum(axis=1) >= need.gpus
    if need.idle:
        found &= (free == has).all(axis=1)
    return found


def room(free: Ints, good: Bools, need: Need) -> int:
    """Return how many tasks the good nodes have room for, GPUs not counted; ``free`` has shape (nodes, columns)."""
    found = np.where(good, need.most, 0)
    for column in np.flatnonzero(need.each).tolist():
        found = np.minimum(found, np.maximum(free[:, column] - need.base[column], 0) // need.each[column])
    return int(found.sum())


def first_begin(
    table: Ints, order: Ints, begins: Floats, has: Ints, need: Need, among: Ints, shut: Shut, at: int, last: int
) -> tuple[int, Bools]:
    """Return the first slice from ``at`` to ``last`` at which a job may fit, and the nodes that are good for it.

    Each of these nodes has enough free in each slice until the job ends. The slice is -1 if there is none. GPUs may be
    other ones in each slice, and nodes may have room for too few tasks in all: the caller must check.

    Args:
        has: what the nodes have in all, shape (nodes, columns).
        among: the nodes to use.
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


def least_free(table: Ints, order: Ints, first: int, after: int, nodes: Ints) -> Ints:
    """Return what is free during all slices from ``first`` to ``after``, shape (nodes, columns)."""
    found: Ints = table[order[first]][nodes]
    for at in range(first + 1, after):
        np.minimum(found, table[order[at]][nodes], out=found)
    return found


def most_free(table: Ints, order: Ints, first: int, after: int, nodes: Ints) -> Ints:
    """Return the most that is free during any slice from ``first`` to ``after``, shape (nodes, columns)."""
    found: Ints = table[order[first]][nodes]
    for at in range(first + 1, after):
        np.maximum(found, table[order[at]][nodes], out=found)
    return found


def change(table: Ints, order: Ints, first: int, after: int, nodes: Ints, taken: Ints) -> None:
    """Add amounts, shape (nodes, columns), to different nodes in the slices from ``first`` to ``after``."""
    table[order[first:after, None], nodes] += taken


def same(table: Ints, one: int, other: int) -> bool:
    """Return whether two rows of a table are equal."""
    return bool((table[one] == table[other]).all())
