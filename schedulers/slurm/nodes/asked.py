"""What the choice of nodes needs to know of a job, and the interface of selectors."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from pipistrelle.schedulers.slurm.cluster.jobs import Job
from pipistrelle.schedulers.slurm.cluster.machine import Amounts

#: {node: what the job takes there}
Alloc = dict[int, Amounts]


class Asked(Struct):
    """A job's request, settled for one partition and one way to satisfy its constraint.

    Attributes:
        nodes: nodes it may use.
        min_nodes, want_nodes, max_nodes: of ``-N``; ``want_nodes`` is tried first.
        cpus: CPUs in all, at least.
        cpus_per_task: of one task, all on one node.
        tasks_per_node: most tasks per node; 0: no limit.
        mem, mem_kind: MiB per "cpu", "node" or "gpu"; "all": all memory of each node.
        gres: {gres: count per node}.
        whole: whether nodes are taken as a whole. ``fixed_cpus``: CPUs used per node with gres; 0: any number.
        max_cpus_per_node: limit of the partition; 0: none.
        share: jobs per resource if the job may share, else 1; ``part`` is the partition's index.
        counts: ((set of nodes, number needed), ...) of ``feature*N``.
    """

    nodes: int
    min_nodes: int
    want_nodes: int
    max_nodes: int
    cpus: int
    cpus_per_task: int = 1
    tasks_per_node: int = 0
    mem: int = 0
    mem_kind: str = ""
    gres: dict[str, int] = {}
    whole: bool = False
    fixed_cpus: int = 0
    max_cpus_per_node: int = 0
    required: int = 0
    contiguous: bool = False
    share: int = 1
    part: int = 0
    lln: bool = False
    counts: tuple[tuple[int, int], ...] = ()
    max_switches: int = 0


class Selector(Protocol):
    """Chooses nodes."""

    def now(self, asked: Asked, usable: int) -> Alloc | None:
        """Return what the job gets of the ``usable`` nodes at this moment; None if it does not fit."""

    def without(self, asked: Asked, usable: int, gone: Sequence[Job]) -> Alloc | None:
        """Return the same, as if the jobs ``gone`` had ended."""

    def expected(
        self, asked: Asked, usable: int, running: Sequence[Job], now: int, gone: Sequence[Job] = ()
    ) -> tuple[int, Alloc] | None:
        """Return when and on which nodes the job can start, if running jobs end at their limits.

        Args:
            running: the running jobs, ordered by the end of their limits.
            gone: running jobs, not among these, that are taken as ended.
        """

    def ever(self, asked: Asked) -> Alloc | None:
        """Return what the job would get of the empty cluster; None if it does not fit."""
