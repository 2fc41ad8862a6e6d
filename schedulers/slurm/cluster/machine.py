"""The nodes and partitions of a cluster in Slurm's order.

The free amounts on each node are recorded, too.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pipistrelle.schedulers.slurm.cluster.bits import indices_of, mask_of
from pipistrelle.schedulers.slurm.config.machine import NodeSettings, PartitionSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig

#: what a job holds of one node: CPUs, memory (MiB), {gres: count}
Amounts = tuple[int, int, dict[str, int]]


class SlurmPartition:
    """A partition, with its nodes as a bit set."""

    __slots__ = ("exclusive", "index", "mask", "name", "settings", "size")

    def __init__(self, index: int, settings: PartitionSettings, mask: int) -> None:
        self.index = index
        self.name = settings.name
        self.settings = settings
        self.mask = mask
        self.size = mask.bit_count()
        self.exclusive = settings.over_subscribe == "EXCLUSIVE"

    @property
    def runs_jobs(self) -> bool:
        """Whether queued jobs of the partition may start.

        They may not if the partition's state is DOWN or INACTIVE.
        """
        return self.settings.state in ("UP", "DRAIN")


class SlurmMachine:
    """All nodes of a cluster: their CPUs, memory and gres, and which of them are free.

    Attributes:
        names: names of the nodes, sorted as Slurm sorts them; a node's index is its bit in all sets.
        cpus, memory: CPUs and memory (MiB) of each node.
        threads: CPUs per core of each node.
        free_cpus, free_memory, free_gres: amounts that no job holds, per node.
        busy: nodes on which a job holds anything.
        whole: nodes that one job holds as a whole.
        down: nodes that cannot be used.
        completing: nodes on which a killed job has not ended yet.
        changed: nodes on which a job started or ended since the selector last cleared this set.
    """

    def __init__(self, config: SlurmConfig) -> None:
        nodes = sorted(config.nodes, key=lambda node: node.name)
        self.nodes: list[NodeSettings] = nodes
        self.names = [node.name for node in nodes]
        self.index = {name: at for at, name in enumerate(self.names)}
        self.count = len(nodes)
        self.all = (1 << self.count) - 1
        self.threads = [max(1, node.cpus // max(1, node.cores)) for node in nodes]
        self.any_threads = any(one > 1 for one in self.threads)
        self.cpus = [
            node.cpus - node.core_spec_count * threads for node, threads in zip(nodes, self.threads, strict=True)
        ]
        self.memory = [node.real_memory - node.mem_spec_limit for node in nodes]
        self.weight = [node.weight for node in nodes]
        self.gres = [dict(node.gres) for node in nodes]
        self.has_gres = np.array([bool(one) for one in self.gres], np.bool_)
        self.any_gres = any(self.gres)
        #: {feature: nodes}
        self.features: dict[str, int] = {}
        for at, node in enumerate(nodes):
            for feature in node.features:
                self.features[feature] = self.features.get(feature, 0) | 1 << at
        #: free CPUs, free memory and number of jobs of each node, shape (nodes, 3)
        self.free = np.array([self.cpus, self.memory, [0] * self.count], np.int64).T.copy()
        self.free_cpus, self.free_memory, self.jobs_on = self.free.T
        #: the same as `cpus`, `memory`, `threads` and `weight`, as arrays
        self.all_cpus, self.all_memory = self.free_cpus.copy(), self.free_memory.copy()
        self.all_threads = np.array(self.threads, np.int64)
        self.all_weights = np.array(self.weight, np.int64)
        self.free_gres = [dict(gres) for gres in self.gres]
        self.busy = 0
        self.whole = 0
        self.completing = 0
        self.changed = 0
        self.down = mask_of(at for at, node in enumerate(nodes) if node.state.split("+")[0] in _DOWN)
        self.total_cpus = sum(self.cpus)
        self.total_memory = sum(self.memory)
        self.equal_weights = len(set(self.weight)) <= 1
        #: [(weight, nodes)] from the lightest
        self.by_weight = [
            (weight, mask_of(at for at in range(self.count) if self.weight[at] == weight))
            for weight in sorted(set(self.weight))
        ]
        lines: dict[tuple[int, int], list[int]] = {}
        for at, node in enumerate(nodes):
            lines.setdefault((node.weight, node.line), []).append(at)
        #: the nodes of each ``NodeName`` line, in the order of weights
        self.by_line = [mask_of(lines[one]) for one in sorted(lines)]
        self.partitions = [
            SlurmPartition(at, one, mask_of(self.index[name] for name in one.nodes if name in self.index))
            for at, one in enumerate(config.partitions)
        ]
        self.partition_index = {one.name: one.index for one in self.partitions}
        default = [one.index for one in self.partitions if one.settings.default]
        self.default_partition = default[-1] if default else 0

    @property
    def idle(self) -> int:
        """The bit mask of the nodes that are up and on which no job holds anything."""
        return self.all & ~(self.busy | self.down)

    def take(self, alloc: dict[int, Amounts], *, whole: bool) -> None:
        """Record that a job now holds these amounts, {node: amounts}."""
        self._add(alloc, -1)
        mask = mask_of(alloc)
        self.busy |= mask
        self.changed |= mask
        if whole:
            self.whole |= mask

    def give(self, alloc: dict[int, Amounts]) -> None:
        """Record that a job has released these amounts, {node: amounts}."""
        self._add(alloc, 1)
        mask = mask_of(alloc)
        self.busy &= ~mask_of(at for at in alloc if not self.jobs_on[at])
        self.whole &= ~mask
        self.changed |= mask

    def _add(self, alloc: dict[int, Amounts], sign: int) -> None:
        self.free[list(alloc)] += [(sign * cpus, sign * memory, -sign) for cpus, memory, _ in alloc.values()]
        for at, (_, _, gres) in alloc.items():
            for name, count in gres.items():
                self.free_gres[at][name] += sign * count

    def mask_of_names(self, names: Iterable[str]) -> int:
        """Return the bit mask of the named nodes; unknown names are left out."""
        return mask_of(self.index[name] for name in names if name in self.index)

    def names_of(self, mask: int) -> list[str]:
        """Return the names of the nodes in a bit mask."""
        return [self.names[at] for at in indices_of(mask)]

    def state(self) -> dict[str, Any]:
        """Return which nodes are down or completing.

        All else follows from the running jobs.
        """
        return {"down": hex(self.down), "completing": hex(self.completing)}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what the method `state` returned.

        The caller must then call `take` for each running job.
        """
        self.down = int(state["down"], 16)
        self.completing = int(state["completing"], 16)


_DOWN = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "FUTURE"}
