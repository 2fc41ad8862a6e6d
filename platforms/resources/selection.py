"""Choose the nodes of a job.

The caller says how many of its tasks and GPUs fit on each node.
"""

from typing import Final

import numpy as np

from pipistrelle.platforms.resources.shared_nodes import Amounts

#: fewer than any number of tasks
_IMPOSSIBLE: Final = -1


def places_for(
    tasks_on: Amounts, low: int, high: int, tasks: int | None, gpus_on: Amounts, gpus: int
) -> Amounts | None:
    """Return the indices of the candidates on which to place a job.

    Return None if it does not fit on them.

    Args:
        tasks_on: how many of the tasks fit on each candidate, at least one, shape (candidates,). Candidates are sorted
            by preference, the best first.
        low, high: the least and the greatest number of nodes.
        tasks: the number of tasks of the job; None: the job has a fixed number of tasks on each node.
        gpus_on: how many of the job's GPUs fit on each candidate, shape (candidates,); ignored without ``gpus``.
        gpus: the number of GPUs on all nodes together; 0: GPUs do not matter.
    """
    if len(tasks_on) < low:
        return None
    if tasks is None:
        found: Amounts | None = np.arange(low)
    else:
        found = _by_tasks(tasks_on, low, high, tasks)
    if not gpus or found is None or int(gpus_on[found].sum()) >= gpus:
        return found
    return _by_both(tasks_on, low, high, tasks or 0, gpus_on, gpus)


def _by_tasks(able: Amounts, low: int, high: int, tasks: int) -> Amounts | None:
    """Return the indices of ``low`` to ``high`` nodes that hold all ``tasks``.

    Return None if there are none. ``able`` is how many tasks fit on each node. If ``low`` equals ``high``, the first
    nodes that hold an equal share of the tasks are chosen; otherwise the first nodes, if all tasks fit on them. If that
    is impossible, the nodes that hold the most tasks are chosen.
    """
    if low == high:
        equal = np.flatnonzero(able >= -(-tasks // low))
        if len(equal) >= low:
            return equal[:low]
    else:
        enough = int(np.searchsorted(np.cumsum(able[:high]), tasks)) + 1
        if enough <= min(high, len(able)):
            return np.arange(max(enough, low))
    largest = np.argsort(-able, kind="stable")[:high]
    enough = int(np.searchsorted(np.cumsum(able[largest]), tasks)) + 1
    return None if enough > len(largest) else largest[: max(enough, low)]


def _by_both(tasks_on: Amounts, low: int, high: int, tasks: int, gpus_on: Amounts, gpus: int) -> Amounts | None:
    """Return the indices of ``low`` to ``high`` nodes for all tasks and GPUs.

    Return None if there are none. The first nodes are chosen if all tasks and GPUs fit on them. Otherwise dynamic
    programming over the candidate nodes finds the most tasks for each number of nodes and of GPUs.
    """
    high = min(high, len(tasks_on))
    if any(int(np.sort(able)[-high:].sum()) < asked for able, asked in ((tasks_on, tasks), (gpus_on, gpus))):
        return None
    enough = (np.cumsum(tasks_on[:high]) >= tasks) & (np.cumsum(gpus_on[:high]) >= gpus)
    if enough[-1]:
        return np.arange(max(int(enough.argmax()) + 1, low))
    some = _not_alike(np.minimum(tasks_on, tasks), np.minimum(gpus_on, gpus), high)
    #: the most tasks, by number of nodes and by least number of GPUs, shape (1 + high, 1 + gpus)
    best = np.full((high + 1, gpus + 1), _IMPOSSIBLE, dtype=np.int64)
    best[0, 0] = 0
    used = np.zeros((len(some), *best.shape), dtype=np.bool_)
    missing = np.arange(gpus + 1)
    for row, place in enumerate(some.tolist()):
        before = best[:-1, np.maximum(missing - gpus_on[place], 0)]
        beside = np.where(before >= 0, before + tasks_on[place], _IMPOSSIBLE)
        used[row, 1:] = beside > best[1:]
        best[1:] = np.maximum(best[1:], beside)
    count = next((count for count in range(low, high + 1) if best[count, gpus] >= tasks), 0)
    chosen = []
    for row in range(len(some) - 1, -1, -1):
        if used[row, count, gpus]:
            chosen.append(int(some[row]))
            count, gpus = count - 1, max(gpus - int(gpus_on[some[row]]), 0)
    return np.array(chosen[::-1], dtype=np.int64) if chosen else None


def _not_alike(tasks_on: Amounts, gpus_on: Amounts, high: int) -> Amounts:
    """Return the indices of nodes that suffice as candidates for one job.

    A search for the nodes of the job may be limited to them. Of the nodes with equal numbers of tasks and of GPUs, only
    the first ``high`` are kept, because a job gets no more.
    """
    seen: dict[tuple[int, int], int] = {}
    found = []
    for place, alike in enumerate(zip(tasks_on.tolist(), gpus_on.tolist(), strict=True)):
        seen[alike] = seen.get(alike, 0) + 1
        if seen[alike] <= high:
            found.append(place)
    return np.array(found, dtype=np.int64)
