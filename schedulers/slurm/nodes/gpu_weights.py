"""Order nodes of equal weight by the GPUs that tests counted on them.

The order is that of select/cons_tres.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import array_of, mask_of
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.nodes.asked import NodesAsked
from pipistrelle.schedulers.slurm.nodes.shares import Free

#: GPUs counted on nodes: ((GPUs, set of nodes), ...)
Counts = tuple[tuple[int, int], ...]
#: most GPUs that are counted on a node
_MOST: Final = 255


class GpuWeights:
    """The weights of nodes, and the GPUs counted on them.

    A test of a job with GPUs counts, on each node with enough free GPUs and memory, the GPUs that the job would use.
    Among nodes of equal weight, those with more GPUs counted come first. slurmctld keeps the counts after the test, so
    they also order nodes for jobs without GPUs, in backfill's tests of later starts. Submissions, tests of the main
    loop and starts by backfill forget the counts of the nodes that match the job.

    Attributes:
        counted: {number of GPUs: nodes on which the last test counted this number}; nodes without a count are in no
            set.
    """

    def __init__(self, machine: SlurmMachine) -> None:
        self.machine = machine
        self.counted: dict[int, int] = {}
        self._plain = machine.all_weights * (_MOST + 1)
        self._weights: NDArray[np.int64] | None = None

    @property
    def weights(self) -> NDArray[np.int64]:
        """The weight of each node, adjusted by its GPU count; the lowest comes first."""
        if not self.counted:
            return self._plain
        if self._weights is None:
            self._weights = self._plain.copy()
            for gpus, nodes in self.counted.items():
                self._weights[array_of(nodes)] -= gpus
        return self._weights

    def of(self, nodes: int) -> Counts:
        """Return the GPU counts of the nodes in the bit mask ``nodes``."""
        return tuple(sorted([(gpus, some & nodes) for gpus, some in self.counted.items() if some & nodes]))

    def forget(self, nodes: int) -> None:
        """Forget the GPU counts of the nodes in the bit mask ``nodes``."""
        if any(some & nodes for some in self.counted.values()):
            self.counted = {gpus: some & ~nodes for gpus, some in self.counted.items() if some & ~nodes}
            self._weights = None

    def count(self, counts: Counts) -> None:
        """Replace the GPU counts of the nodes in ``counts``; keep all others."""
        for gpus, nodes in counts:
            if self.counted.get(gpus, 0) & nodes != nodes:
                self.forget(nodes)
                if gpus:
                    self.counted[gpus] = self.counted.get(gpus, 0) | nodes
                    self._weights = None

    def counts_of(self, asked: NodesAsked, nodes: NDArray[np.intp], free: Free, *, memory_counts: bool) -> Counts:
        """Return the GPU counts that a test of a request sets on some nodes.

        ``free`` has the free amounts of all nodes.
        """
        fitting = [int(at) for at in free.with_gres(asked, nodes, memory_counts=memory_counts)]
        if len(fitting) < asked.min_nodes:
            return ()
        if not asked.whole:
            return ((min(gpus_of(asked.gres), _MOST), mask_of(fitting)),)
        found: dict[int, int] = {}
        for at in fitting:
            gpus = min(gpus_of(free.gres[at]), _MOST)
            found[gpus] = found.get(gpus, 0) | 1 << at
        return tuple(found.items())

    def state(self) -> Any:
        """Return the counts as values that JSON can hold."""
        return [[gpus, format(nodes, "x")] for gpus, nodes in sorted(self.counted.items())]

    def restore(self, state: Any) -> None:
        """Restore what the method `state` returned."""
        self.counted = {gpus: int(nodes, 16) for gpus, nodes in state}
        self._weights = None


def gpus_of(gres: Mapping[str, int]) -> int:
    """Return the number of GPUs of all types in ``gres`` ({gres: count})."""
    return sum(count for name, count in gres.items() if name.split(":", maxsplit=1)[0] == "gpu")
