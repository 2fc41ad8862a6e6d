"""Choose whole nodes by best fit among runs of consecutive nodes: select/linear.

The rule was found by asking slurmctld 22.05 for nodes: `tests/schedulers/slurm/test_slurm_linear.py` repeats that.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import array_of, mask_of, span
from pipistrelle.schedulers.slurm.nodes.asked import NodesAsked

Nodes = NDArray[np.intp]
Cpus = NDArray[np.int64]


class _Run(NamedTuple):
    """A run of consecutive nodes that a job may use.

    Nodes that the job requires by name are left out.

    Attributes:
        at, cpus: the nodes, in the order in which the job takes them, and their CPUs.
        all_cpus: the sum of ``cpus``.
        required: whether the run has a node that the job requires.
    """

    at: list[int]
    cpus: list[int]
    all_cpus: int
    required: bool


def most_cpus(asked: NodesAsked, cpus: int) -> int:
    """Return how many CPUs a job can use on a node with ``cpus`` CPUs.

    A job with a limit of tasks per node may not be able to use all.
    """
    return min(cpus, asked.tasks_per_node * asked.cpus_per_task) if asked.tasks_per_node else cpus


def best_nodes(asked: NodesAsked, idle: int, all_cpus: Cpus) -> int:
    """Return the idle nodes that a job gets, as a bit mask; 0 if the job does not fit.

    Two steps choose the nodes. The first step leaves out the nodes with the fewest CPUs, as long as the others have
    enough CPUs for the job. It is skipped if all nodes have as many CPUs, or if the wanted number of the smallest nodes
    would be enough. The second step takes runs of consecutive nodes.

    Args:
        idle: the idle nodes that the job may use, including all that it requires.
        all_cpus: CPUs of all nodes of the machine.
    """
    required = asked.required
    if asked.contiguous and required:  # all nodes between them, too
        first = (required & -required).bit_length() - 1
        required = span(first, required.bit_length() - first)
        if required & ~idle:
            return 0
    at = array_of(idle)
    cpus = all_cpus[at]
    if asked.tasks_per_node:
        cpus = np.minimum(cpus, most_cpus(asked, int(cpus.max())))
    if int(cpus.sum()) < asked.cpus or required.bit_count() > asked.max_nodes:
        return 0
    want = max(asked.min_nodes, asked.want_nodes)
    least = int(cpus.min())
    if asked.cpus > want * least and least < int(cpus.max()):
        kept = _without_smallest(asked, at, cpus, required, want)
        if asked.contiguous:  # whether the nodes are consecutive is not tested then
            found = mask_of(at[kept].tolist())
            return found if asked.min_nodes <= found.bit_count() <= asked.max_nodes else 0
        at, cpus = at[kept], cpus[kept]
    return _fill(asked, at, cpus, required, want)


def _without_smallest(asked: NodesAsked, at: Nodes, cpus: Cpus, required: int, want: int) -> NDArray[np.bool_]:
    """Return which nodes remain if as many as possible of the smallest are left out.

    The result has an entry per node in ``at``. No required node is left out. At least ``want`` nodes with enough CPUs
    remain.
    """
    order = np.argsort(cpus, kind="stable")
    if required:
        order = order[[not required >> one & 1 for one in at[order].tolist()]]
    spare = int(cpus.sum()) - asked.cpus
    count = min(len(at) - want, int(np.searchsorted(np.cumsum(cpus[order]), spare, side="right")))
    kept = np.ones(len(at), np.bool_)
    kept[order[: max(0, count)]] = False
    return kept


def _fill(asked: NodesAsked, at: Nodes, cpus: Cpus, required: int, want: int) -> int:
    """Return the nodes that a job takes from runs of consecutive nodes, run by run."""
    runs = _runs(at, cpus, required)
    taken, left, most = required, want - required.bit_count(), asked.max_nodes - required.bit_count()
    need = asked.cpus - sum([one for node, one in zip(at.tolist(), cpus.tolist(), strict=True) if required >> node & 1])
    if required and left <= 0 and need <= 0:
        return required
    while most > 0 and runs:
        best = _best(runs, left - want + asked.min_nodes, need)
        run = runs.pop(best)
        if asked.contiguous and (run.all_cpus < need or len(run.at) < left - want + asked.min_nodes):
            break
        for node, amount in zip(run.at, run.cpus, strict=True):
            if most <= 0 or (left <= 0 and need <= 0):
                break
            taken |= 1 << node
            left, most, need = left - 1, most - 1, need - amount
        if left <= 0 and need <= 0:
            return taken
        if asked.contiguous:  # one run only, even if its CPUs do not suffice
            return taken if taken.bit_count() >= asked.min_nodes else 0
    return taken if need <= 0 and taken.bit_count() >= asked.min_nodes else 0


def _runs(at: Nodes, cpus: Cpus, required: int) -> list[_Run]:
    """Return the runs of consecutive nodes; runs of required nodes only are left out.

    In a run with a required node, a job takes the nodes behind the first such node, and then those before it.
    """
    nodes, amounts = at.tolist(), cpus.tolist()
    first = [0, *(np.flatnonzero(np.diff(at) != 1) + 1).tolist(), len(nodes)]
    runs = []
    for begin, end in pairwise(first):
        places = list(range(begin, end))
        named = [one for one in places if required >> nodes[one] & 1] if required else []
        if named:
            places = [*range(named[0], end), *range(named[0] - 1, begin - 1, -1)]
            places = [one for one in places if not required >> nodes[one] & 1]
        if places:
            of_run = [amounts[one] for one in places]
            runs.append(_Run([nodes[one] for one in places], of_run, sum(of_run), bool(named)))
    return runs


def _best(runs: list[_Run], nodes: int, cpus: int) -> int:
    """Return the index of the run to use next, if a job needs more nodes and CPUs.

    Runs are compared one by one, as in slurmctld. A run is better than the best so far in three cases: only this run
    has required nodes; it suffices, and the best so far does not or is larger; it does not suffice, but has more CPUs.

    Args:
        nodes, cpus: what the job still needs.
    """
    best, best_enough = 0, False
    for at, run in enumerate(runs):
        enough = run.all_cpus >= cpus and len(run.at) >= nodes
        other = runs[best]
        if (
            at == 0
            or (run.required and not other.required)
            or (enough and (not best_enough or run.all_cpus < other.all_cpus))
            or (not enough and run.all_cpus > other.all_cpus)
        ):
            best, best_enough = at, enough
    return best
