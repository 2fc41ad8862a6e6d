"""Loops for numba, equal to the functions of the module sharing.plan.loops."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pipistrelle.schedulers.plan.machine_code import as_python, compiled_by_numba, has_compiler, replaced
from pipistrelle.schedulers.policy import ends_and_shadow
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.sharing.plan import loops
from pipistrelle.schedulers.sharing.plan.loops import Bools, Floats, Ints, Need, Shut


def enough_loop(table: Ints, row: int, node: int, has: Ints, need: Need) -> bool:
    """Return whether a node has free, in one time slice, what a job needs there."""
    width = len(need.least)
    for column in range(width):
        if table[row, node, column] < need.least[column]:
            return False
    if need.gpus:
        count = 0
        for column in range(width, table.shape[2]):
            if table[row, node, column] >= need.share:
                count += 1
        if count < need.gpus:
            return False
    if need.idle:
        for column in range(table.shape[2]):
            if table[row, node, column] != has[node, column]:
                return False
    return True


def room_loop(table: Ints, row: int, node: int, need: Need) -> int:
    """Return how many tasks fit on a node in one time slice; GPUs are ignored."""
    found = need.most
    for column in range(len(need.each)):
        if need.each[column]:
            found = min(found, max(table[row, node, column] - need.base[column], 0) // need.each[column])
    return found


def first_begin_loop(
    table: Ints, order: Ints, begins: Floats, has: Ints, need: Need, among: Ints, shut: Shut, at: int, last: int
) -> tuple[int, Bools]:
    """Return the same as `loops.first_begin`."""
    count, upto, number = len(order), at, len(among)
    bad = np.full(number, -1, dtype=np.int64)
    fits = np.zeros(number, dtype=np.bool_)
    while at <= last:
        end = end_of(begins[at], need.length)
        dead = False
        while upto < count and begins[upto] < end:
            good = tasks = 0
            never = len(shut.never) > 0 and shut.never[upto]
            for place in range(number):
                free = not never and enough_loop(table, order[upto], among[place], has, need)
                if free:
                    for period in range(len(shut.first)):
                        if shut.first[period] <= upto < shut.after[period] and shut.nodes[period, among[place]]:
                            free = False
                            break
                if free:
                    good += 1
                    if need.tasks:
                        tasks += room_loop(table, order[upto], among[place], need)
                else:
                    bad[place] = upto
            upto += 1
            if good < need.low or tasks < need.tasks:
                at = upto
                dead = True
                break
        if dead:
            continue
        found = 0
        for place in range(number):
            fits[place] = bad[place] < at
            found += fits[place]
        if found >= need.low:
            return at, fits
        at += 1
    fits[:] = False
    return -1, fits


def extreme_free_loop(table: Ints, order: Ints, first: int, after: int, nodes: Ints, most: bool) -> Ints:
    """Return the same as `loops.extreme_free`."""
    columns = table.shape[2]
    found = np.empty((len(nodes), columns), dtype=np.int64)
    for at in range(first, after):
        for place in range(len(nodes)):
            for column in range(columns):
                free = table[order[at], nodes[place], column]
                if at == first or (free > found[place, column] if most else free < found[place, column]):
                    found[place, column] = free
    return found


def change_loop(table: Ints, order: Ints, first: int, after: int, nodes: Ints, taken: Ints) -> None:
    """Change the table in the same way as `loops.change`."""
    for at in range(first, after):
        for place in range(len(nodes)):
            for column in range(table.shape[2]):
                table[order[at], nodes[place], column] += taken[place, column]


def same_loop(table: Ints, one: int, other: int) -> bool:
    """Return the same as `loops.same`."""
    for node in range(table.shape[1]):
        for column in range(table.shape[2]):
            if table[one, node, column] != table[other, node, column]:
                return False
    return True


@cache
def fast_loops() -> Any:
    """Return the functions of `loops`, compiled if numba is installed."""
    if not has_compiler():
        return loops
    files = (Path(__file__), Path(loops.__file__), Path(str(as_python(ends_and_shadow).__file__)))
    replaced(end_of, as_python(ends_and_shadow).end_of)
    replaced(enough_loop, enough_loop)
    replaced(room_loop, room_loop)
    names = ("first_begin", "extreme_free", "change", "same")
    return SimpleNamespace(**{name: compiled_by_numba(globals()[f"{name}_loop"], files) for name in names})
