"""The free CPUs, memory and GPUs of nodes, now or after some jobs have ended."""

from collections.abc import Iterable, Mapping
from copy import copy as copy_of
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, NodesAsked
from pipistrelle.schedulers.slurm.nodes.rows import CoreRows
from pipistrelle.schedulers.slurm.nodes.runs import Able


class Free:
    """The free CPUs, memory and gres of all nodes.

    In a copy, the amounts of running jobs can be freed, to test what would fit after their end.
    """

    __slots__ = ("all", "cpus", "gres", "jobs_on", "machine", "memory", "rows")

    def __init__(self, machine: SlurmMachine, rows: CoreRows | None, *, copy: bool = False) -> None:
        self.machine = machine
        #: the cores of all jobs, if jobs may share them
        self.rows = rows
        #: CPUs, memory and number of jobs of each node, shape (nodes, 3)
        self.all = machine.free.copy() if copy else machine.free
        self.cpus, self.memory, self.jobs_on = self.all.T
        self.gres = list(machine.free_gres) if copy and machine.any_gres else machine.free_gres
        if copy and rows is not None:
            self.rows = rows.copy()

    def take_away(self, jobs: Iterable[SlurmJob]) -> None:
        """Count running jobs as ended: add the amounts that they hold to the free ones."""
        for job in jobs:
            mine = holding(job)
            self.all[mine.nodes] += mine.amounts
            if self.rows is not None:
                self.rows.remove(job)
            if self.machine.any_gres:
                self.take_gres_away(job)

    def take_gres_away(self, job: SlurmJob) -> None:
        """Add the gres that a running job holds to the free gres, as if it had ended."""
        for at, (_, _, gres) in job.alloc.items():
            if gres:
                free = self.gres[at]
                self.gres[at] = {name: count + gres.get(name, 0) for name, count in free.items()}

    def with_cpus(self, cpus: NDArray[np.int64]) -> "Free":
        """Return the same amounts with other free CPUs on each node."""
        other = copy_of(self)
        other.cpus, other.rows = cpus, None
        return other

    def usable(self, asked: NodesAsked, nodes: NDArray[np.intp], *, memory_counts: bool, by_core: bool) -> Able:
        """Return the nodes on which the job could use at least one CPU.

        The result has the number of usable CPUs of each.

        Args:
            nodes: indices of the nodes to test, ascending.
            memory_counts: whether memory is allocated (CR_Memory, CR_CPU_Memory, CR_Core_Memory).
            by_core: whether whole cores are allocated.
        """
        machine = self.machine
        if asked.whole:
            nodes = nodes[self.jobs_on[nodes] == 0]
            cpus = machine.all_cpus[nodes]
        else:
            cpus = self.cpus[nodes]
        memory = self.memory[nodes] if memory_counts and asked.mem_kind else None
        cpus, enough = usable_cpus(machine, asked, nodes, cpus, memory, by_core=by_core)
        nodes, cpus = nodes[enough], cpus[enough]
        if asked.gres:
            found = self._fit_gres(asked.gres, nodes)
            nodes, cpus = nodes[found], cpus[found]
            if asked.fixed_cpus and not asked.whole:
                cpus = np.minimum(cpus, asked.fixed_cpus)
        return Able(nodes, cpus)

    def with_gres(self, asked: NodesAsked, nodes: NDArray[np.intp], *, memory_counts: bool) -> NDArray[np.intp]:
        """Return the nodes with enough free gres, and enough free memory for one task."""
        if memory_counts and asked.mem_kind:
            memory, need = self.memory[nodes], asked.mem
            if asked.mem_kind == "cpu":
                need *= max(1, asked.cpus_per_task, asked.tasks_per_node)
            elif asked.mem_kind == "gpu":
                need *= sum(count for name, count in asked.gres.items() if name.startswith("gpu"))
            enough = memory >= (self.machine.all_memory[nodes] if asked.mem_kind == "all" else need)
            nodes = nodes[enough]
        return np.asarray(nodes[self._fit_gres(asked.gres, nodes)], np.intp)

    def _fit_gres(self, wanted: Mapping[str, int], nodes: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return for each of the nodes whether the free gres cover ``wanted``."""
        found = self.machine.has_gres[nodes]
        if not any(count > 0 for count in wanted.values()):
            found[:] = True
        for place in np.flatnonzero(found).tolist():
            found[place] = fits_gres(wanted, self.gres[nodes[place]])
        return found


class Empty(Free):
    """The free CPUs, memory and gres of all nodes of an empty cluster."""

    def __init__(self, machine: SlurmMachine) -> None:
        super().__init__(machine, None)
        self.cpus = machine.all_cpus
        self.memory = machine.all_memory
        self.gres = machine.gres
        self.jobs_on = np.zeros(machine.count, np.int64)


def usable_cpus(
    machine: SlurmMachine,
    asked: NodesAsked,
    nodes: NDArray[np.intp],
    cpus: NDArray[np.int64],
    memory: NDArray[np.int64] | None,
    *,
    by_core: bool,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the CPUs that a job could use on nodes, and on which of them it could use at least one.

    GPUs are not tested.

    Args:
        nodes: index of each node. An index may occur several times, with different free amounts.
        cpus, memory: free CPUs and memory (MiB) of each node; ``memory`` is None if the job needs none.
        by_core: whether whole cores are allocated.
    """
    if by_core and machine.any_threads and not asked.whole:
        cpus = cpus - cpus % machine.all_threads[nodes]
    fits: NDArray[np.bool_] | None = None
    if memory is not None:
        if asked.mem_kind == "cpu":
            if asked.mem:
                cpus = np.minimum(cpus, memory // asked.mem)
            if asked.cpus_per_task > 1 and not asked.whole:  # only with memory per CPU
                cpus = cpus - cpus % asked.cpus_per_task
        elif asked.mem_kind == "node":
            fits = memory >= asked.mem
        elif asked.mem_kind == "all":
            fits = memory >= machine.all_memory[nodes]
        else:
            gpus = sum(count for name, count in asked.gres.items() if name.startswith("gpu"))
            fits = memory >= asked.mem * gpus
    if asked.max_cpus_per_node:
        cpus = np.minimum(cpus, asked.max_cpus_per_node)
    if asked.tasks_per_node and not asked.whole:
        cpus = np.minimum(cpus, asked.tasks_per_node * asked.cpus_per_task)
    enough = cpus >= max(1, asked.cpus_per_task)
    if fits is not None:
        enough &= fits
    return cpus, enough


class Holding(NamedTuple):
    """The amounts that a running job holds on its nodes, as arrays.

    Attributes:
        alloc: the job's allocation, from which the rest follows.
        nodes: the job's nodes, as an array or, if they are consecutive, as a slice.
        at: the job's nodes, as an array.
        amounts: changes on each node when the job ends, shape (n, 3): CPUs and memory that become free, and -1 for the
            number of jobs.
        cpus, most: CPUs on all nodes together, and the most on any node.
    """

    alloc: Alloc
    nodes: NDArray[np.intp] | slice
    at: NDArray[np.intp]
    amounts: NDArray[np.int64]
    cpus: int
    most: int


def holding(job: SlurmJob) -> Holding:
    """Return the amounts that a running job holds on its nodes, as arrays."""
    found: Holding | None = job.holding
    if found is None or found.alloc is not job.alloc:
        nodes = sorted(job.alloc)
        amounts = np.array([(*job.alloc[at][:2], -1) for at in nodes], np.int64).reshape(-1, 3)
        together = nodes and nodes[-1] - nodes[0] == len(nodes) - 1
        at = np.array(nodes, np.intp)
        where = slice(nodes[0], nodes[-1] + 1) if together else at
        found = job.holding = Holding(
            job.alloc, where, at, amounts, int(amounts[:, 0].sum()), int(amounts[:, 0].max(initial=0))
        )
    return found


def fits_gres(wanted: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Return whether the gres free on a node cover ``wanted``.

    In ``wanted``, the name ``gpu`` means GPUs of any type.
    """
    for name, count in wanted.items():
        if count > (
            free[name] if name in free else sum(some for key, some in free.items() if key.split(":")[0] == name)
        ):
            return False
    return True


def take_gres(wanted: Mapping[str, int], free: Mapping[str, int]) -> dict[str, int]:
    """Return {gres: count} that a job with the request ``wanted`` gets from one node.

    If the request names no GPU type, types are used in the node's order.
    """
    taken: dict[str, int] = {}
    for name, count in wanted.items():
        if name in free:
            taken[name] = taken.get(name, 0) + count
            continue
        left = count
        for key, some in free.items():
            if key.split(":")[0] == name and left > 0:
                use = min(left, some - taken.get(key, 0))
                if use > 0:
                    taken[key] = taken.get(key, 0) + use
                    left -= use
    return {name: count for name, count in taken.items() if count}
