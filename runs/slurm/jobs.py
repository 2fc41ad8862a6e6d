"""A workload fitted to the machine of a slurm.conf.

Partitions, node counts and memory are fitted.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from msgspec.structs import replace as changed

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.slurm.machine import counts_memory, default_partition, is_linear
from pipistrelle.protocol.resources.request import Request
from pipistrelle.runs.slurm.files import SlurmFiles
from pipistrelle.traces.slurm.options import options_of
from pipistrelle.traces.workload import Workload

_QUEUE: Final = "queue"
_PARTITION: Final = "partition"
#: most characters of the name of a class
_LONGEST_CLASS: Final = 64
_CPUS: Final = "cpus"


def fitted(trace: Workload, files: SlurmFiles, platform: Platform) -> Workload:
    """Return the jobs of a log as the cluster of a slurm.conf would accept them.

    A job without a partition gets the default partition. With ``select/linear``, the size of a job becomes the least
    number of whole nodes of its partition that holds its tasks. If the cluster does not allocate memory to jobs, the
    requests contain no memory.
    """
    conf = files.conf
    default = default_partition(conf)
    labels = dict(trace.labels)
    if default and _QUEUE not in trace.columns:
        labels[_QUEUE] = [name or default for name in labels.get(_QUEUE) or [""] * len(trace)]
    made = replace(trace, labels=labels)
    if trace.requests is None:
        return made
    if not is_linear(conf):
        return made if counts_memory(conf) else replace(made, requests=list(map(_without_memory, trace.requests)))
    cpus = _cpus_by_partition(platform)
    most = max(cpus.values(), default=1)
    size = np.array(
        [
            least if request is None else whole_nodes(request, cpus.get(queue, most))
            for request, queue, least in zip(
                trace.requests, labels.get(_QUEUE) or [""] * len(trace), trace.size.tolist(), strict=True
            )
        ],
        dtype=np.int64,
    )
    return replace(made, size=size, requests=None)


def joint_classes(trace: Workload, platform: Platform) -> tuple[Workload, Platform]:
    """Add job classes for combinations of partitions to the machine.

    There is one class for each combination that a job requests. A job that requests several partitions may use the
    nodes of all of them. Its label becomes the comma-separated list of these partitions, as squeue shows it.

    Returns:
        The jobs with these labels, and the machine with the new classes.
    """
    options = options_of(trace)
    queues = trace.labels.get(_QUEUE)
    known = {one.name: one for one in platform.classes}
    if options is None or queues is None or not known:
        return trace, platform
    labels, found = list(queues), dict[str, JobClass]()
    for row, told in enumerate(options):
        names = [name for name in (told or {}).get(_PARTITION, "").split(",") if name in known]
        if len(names) < 2:
            continue
        name = ",".join(names)
        labels[row] = name if len(name) <= _LONGEST_CLASS else ""  # without a class, all nodes are open to it
        if labels[row] and name not in found:
            found[name] = _joint(name, [known[one] for one in names])
    made = replace(trace, labels={**trace.labels, _QUEUE: labels})
    return made, changed(platform, classes=(*platform.classes, *found.values()))


def _joint(name: str, some: list[JobClass]) -> JobClass:
    """Return a class with the pools of several, and the most generous of their limits."""
    every = any(not one.pools for one in some)
    pools = () if every else tuple(dict.fromkeys(pool for one in some for pool in one.pools))
    times, sizes = [one.max_walltime for one in some], [one.max_nodes_per_job for one in some]
    return JobClass(
        name=name,
        pools=pools,
        priority=max(one.priority for one in some),
        max_walltime=None if None in times else max(time for time in times if time is not None),
        max_nodes_per_job=None if None in sizes else max(size for size in sizes if size is not None),
    )


def whole_nodes(request: Request, cpus: int) -> int:
    """Return the least number of whole nodes on which Slurm would run a request.

    Each node has ``cpus`` CPUs. Slurm counts the CPUs of all nodes together, even if no task could use some of them.
    """
    nodes = max(request.least_nodes, -(-request.cores // cpus))
    return nodes if request.most_nodes is None else max(request.least_nodes, min(nodes, request.most_nodes))


def _cpus_by_partition(platform: Platform) -> dict[str, int]:
    """Return {partition: CPUs of its largest node}."""
    pools = {pool.name: _cpus(pool) for pool in platform.pools}
    return {one.name: max(pools[name] for name in one.pools or pools) for one in platform.classes}


def _cpus(pool: Pool) -> int:
    value = pool.properties.get(_CPUS, 1)
    return value if isinstance(value, int) else 1


def _without_memory(request: Request | None) -> Request | None:
    if request is None:
        return None
    return changed(request, memory_per_node=None, memory_per_core=None, memory_per_gpu=None)
