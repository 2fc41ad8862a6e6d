"""Allocations of running jobs of which only the nodes are known."""

from collections.abc import Sequence

from msgspec.structs import replace

from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.nodes.asked import Alloc
from pipistrelle.schedulers.slurm.passes.controller import Controller


def chosen_on(controller: Controller, job: SlurmJob, mask: int, cpus: int | None) -> Alloc:
    """Return the CPUs, memory and GPUs that a job would get on each node of ``mask``.

    Return {} if the selector would not use all of these nodes, or if the CPUs would not add up to ``cpus`` (None: any).
    """
    part = controller.machine.partitions[job.part]
    count = mask.bit_count()
    for way in controller.requests.asked(job, part):
        mine = replace(way, nodes=way.nodes & mask, min_nodes=count, want_nodes=count, max_nodes=count, max_switches=0)
        alloc = controller.selector.now(mine, mask)
        if alloc and len(alloc) == count and (not cpus or sum(one[0] for one in alloc.values()) == cpus):
            return alloc
    return {}


def even_on(job: SlurmJob, nodes: Sequence[int], cpus: int) -> Alloc:
    """Return an allocation that spreads ``cpus`` CPUs evenly over ``nodes``.

    Each node gets at least one CPU.
    """
    each, more = divmod(max(len(nodes), cpus), len(nodes))
    alloc: Alloc = {}
    for place, at in enumerate(nodes):
        count = each + (place < more)
        alloc[at] = (count, memory_on(job, count), dict(job.gres))
    return alloc


def memory_on(job: SlurmJob, cpus: int) -> int:
    """Return the memory (MiB) that a job takes of a node where it has ``cpus`` CPUs."""
    return job.mem * cpus if job.mem_kind == "cpu" else job.mem if job.mem_kind == "node" else 0
