"""Best fit among runs of consecutive nodes, as both of Slurm's selectors apply it."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import runs_of, span
from pipistrelle.schedulers.slurm.nodes.asked import NodesAsked


class Able(NamedTuple):
    """Nodes on which a job could use at least one CPU, with the number of usable CPUs.

    The nodes are in ascending order.
    """

    at: NDArray[np.intp]
    cpus: NDArray[np.int64]

    def pairs(self) -> list[tuple[int, int]]:
        """Return (node index, usable CPUs) of each node."""
        return list(zip(self.at.tolist(), self.cpus.tolist(), strict=True))

    def where(self, chosen: NDArray[np.bool_]) -> "Able":
        """Return only the nodes for which ``chosen``, an array over these nodes, is true."""
        return Able(self.at[chosen], self.cpus[chosen])


def largest(cpus: NDArray[np.int64], most: int) -> int:
    """Return the sum of the ``most`` largest numbers of CPUs in ``cpus``.

    If ``most`` is 0 or less, return the sum of all.
    """
    if most == 1 and len(cpus):
        return int(np.maximum.reduce(cpus))
    if 0 < most < len(cpus):
        cpus = np.partition(cpus, -most)[-most:]
    return int(np.add.reduce(cpus))


def whole_tasks(asked: NodesAsked, got: dict[int, int], able: Able) -> dict[int, int] | None:
    """Divide a job's tasks among the nodes of ``got``; return {node: CPUs}.

    In order, each node gets as many whole tasks as fit, but at least one task is left for each later node. Return None
    if not all tasks fit.
    """
    per_task = asked.cpus_per_task
    if asked.whole or per_task <= 1 or len(got) < 2:
        return got
    usable = dict(able.pairs())
    left = asked.cpus // per_task
    placed: dict[int, int] = {}
    order = sorted(got)
    for at, node in enumerate(order):
        tasks = min(usable[node] // per_task, left - (len(order) - at - 1))
        placed[node] = max(tasks, 0) * per_task
        left -= tasks
    return placed if left <= 0 and all(placed.values()) else None


class NodeRun(NamedTuple):
    """A run of consecutive usable nodes of one weight.

    It has the number of nodes and the sum of their CPUs.
    """

    weight: int
    nodes: Able
    size: int
    cpus: int
    required: bool = False


def make_runs(usable: Able, weight: NDArray[np.int64], required: int = 0) -> list[NodeRun]:
    """Group usable nodes into runs of consecutive nodes of equal weight."""
    at, cpus = usable
    if not len(at):
        return []
    weights = weight[at]
    first = np.append(0, np.flatnonzero((at[1:] != at[:-1] + 1) | (weights[1:] != weights[:-1])) + 1)
    sums, weights_of = np.add.reduceat(cpus, first).tolist(), weights[first].tolist()
    begins = first.tolist()
    runs = []
    for begin, end, of_run, all_cpus in zip(begins, [*begins[1:], len(at)], weights_of, sums, strict=True):
        nodes = Able(at[begin:end], cpus[begin:end])
        named = bool(required and required & span(int(nodes.at[0]), end - begin))
        runs.append(NodeRun(of_run, nodes, end - begin, all_cpus, named))
    return runs


class Runs:
    """Runs of nodes; the best one is taken, then the best of the others, and so on."""

    def __init__(self, runs: Sequence[NodeRun]) -> None:
        self.all = runs
        self._left: list[NodeRun | None] = list(runs)

    def take_best(self, nodes: int, cpus: int) -> NodeRun | None:
        """Remove and return the run of nodes to use next; None if none is left.

        See `best_run` for the arguments.
        """
        best = best_run(self._left, nodes, cpus)
        if best is None:
            return None
        found, self._left[best] = self._left[best], None
        return found


class WeightedRuns(Runs):
    """Runs of consecutive nodes of equal weight, for a faster search of the best run.

    No job requires any of the nodes by name.
    """

    def __init__(self, nodes: Able, weights: NDArray[np.int64]) -> None:
        super().__init__(())
        of_nodes = weights[nodes.at]
        self._groups = [nodes.where(of_nodes == weight) for weight in np.unique(of_nodes)[::-1]]
        self._lightest = EqualRuns(self._groups.pop())

    def take_best(self, nodes: int, cpus: int) -> NodeRun | None:
        """Remove and return the run of nodes to use next; None if none is left."""
        found = self._lightest.take_best(nodes, cpus)
        while found is None and self._groups:
            self._lightest = EqualRuns(self._groups.pop())
            found = self._lightest.take_best(nodes, cpus)
        return found


class EqualRuns(Runs):
    """Runs of consecutive nodes, all of one weight."""

    def __init__(self, nodes: Able) -> None:
        super().__init__(())
        at, cpus = nodes
        self._nodes = nodes
        first = np.append(0, np.flatnonzero(at[1:] != at[:-1] + 1) + 1)
        sums = -np.add.reduceat(cpus, first)
        order = np.argsort(sums, kind="stable")
        self._begins: list[int] = [*first.tolist(), len(at)]
        #: the runs from the largest to the smallest, and their CPUs, negated
        self._order: list[int] = order.tolist()
        self._minus: list[int] = sums[order].tolist()

    def take_best(self, nodes: int, cpus: int) -> NodeRun | None:
        """Remove and return the run of nodes to use next; None if none is left."""
        order, minus = self._order, self._minus
        if not order:
            return None
        enough = bisect_right(minus, -cpus)
        if not enough:
            place = 0
        elif nodes <= 1:  # the smallest that suffices; of equal ones, the first
            place = bisect_left(minus, minus[enough - 1])
        else:  # no smaller run is better than one of these
            places = sorted(range(enough), key=order.__getitem__)
            place = places[best_run([self._run(at) for at in places], nodes, cpus) or 0]
        found = self._run(place)
        del order[place], minus[place]
        return found

    def _run(self, place: int) -> NodeRun:
        run = self._order[place]
        begin, end = self._begins[run], self._begins[run + 1]
        at, cpus = self._nodes
        return NodeRun(0, Able(at[begin:end], cpus[begin:end]), end - begin, -self._minus[place])


def best_run(runs: Sequence[NodeRun | None], nodes: int, cpus: int) -> int | None:
    """Return the index in ``runs`` of the run to use next; None if none is left.

    Runs are compared one by one. A run is better than the best so far if only this run has required nodes, or if its
    weight is lower. If both are equal in this, the smallest run that suffices is better, or else the largest.
    """
    best: int | None = None
    best_cpus = best_weight = 0
    best_enough = best_required = False
    for at, run in enumerate(runs):
        if run is None:
            continue
        enough = run.cpus >= cpus and run.size >= nodes
        if (
            best is None
            or (run.required and not best_required)
            or run.weight < best_weight
            or (
                run.weight == best_weight
                and run.required == best_required
                and (
                    (enough and not best_enough)
                    or (enough and run.cpus < best_cpus)
                    or (not enough and run.cpus > best_cpus)
                )
            )
        ):
            best, best_cpus, best_enough, best_weight, best_required = at, run.cpus, enough, run.weight, run.required
    return best


def pick_equal(open_nodes: int, count: int) -> int:
    """Return a bit mask of ``count`` open nodes; all open nodes must have equal CPUs.

    Return 0 if too few nodes are open. The smallest run that is large enough is used, or else the largest.
    """
    if open_nodes.bit_count() < count:
        return 0
    taken = 0
    runs = runs_of(open_nodes)
    while count > 0:
        best = -1
        best_length = 0
        enough = False
        for at, (_, length) in enumerate(runs):
            if length >= count:
                if not enough or length < best_length:
                    best, best_length, enough = at, length, True
            elif not enough and length > best_length:
                best, best_length = at, length
        first, length = runs.pop(best)
        use = min(length, count)
        taken |= span(first, use)
        count -= use
    return taken
