"""The request of a job as node selectors see it, and the interface of selectors."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from pipistrelle.schedulers.slurm.cluster.bits import mask_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import Amounts

#: {node: what the job takes there}
Alloc = dict[int, Amounts]


class NodesAsked(Struct, eq=False, weakref=True):
    """A job's request in one partition, for one of the ways to satisfy its constraint; never changed.

    Two requests are equal only if they are the same object. `Requests.asked` returns one object for all jobs that
    request the same.

    Attributes:
        nodes: set of the nodes that the job may use.
        min_nodes, want_nodes, max_nodes: numbers of nodes from ``-N``; ``want_nodes`` is tried first.
        cpus: least number of CPUs on all nodes together.
        cpus_per_task: CPUs of one task, all on one node.
        tasks_per_node: most tasks per node; 0: no limit.
        mem, mem_kind: MiB per "cpu", "node" or "gpu"; "all": all memory of each node.
        gres: {gres: count per node}.
        whole: whether nodes are taken as a whole.
        fixed_cpus: CPUs used per node with gres; 0: any number.
        max_cpus_per_node: limit of the partition; 0: none.
        share: most jobs per resource if the job may share, else 1.
        part: the partition's index.
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


class Chosen(Struct, frozen=True):
    """An allocation, with the set of its nodes and the number of its CPUs."""

    alloc: Alloc
    nodes: int
    cpus: int

    @classmethod
    def of(cls, alloc: Alloc) -> "Chosen":
        """Return the nodes and CPUs of an allocation."""
        return cls(alloc, mask_of(alloc), sum([cpus for cpus, _, _ in alloc.values()]))


class Selector(Protocol):
    """The interface of node selectors."""

    def now(self, asked: NodesAsked, usable: int) -> Alloc | None:
        """Return the allocation of a job that starts now on some of the ``usable`` nodes; None if it does not fit."""

    def without(self, asked: NodesAsked, usable: int, gone: Sequence[SlurmJob]) -> Alloc | None:
        """Return the allocation of a job if the jobs in ``gone`` had ended; None if it does not fit."""

    def expected(
        self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob], now: int, gone: Sequence[SlurmJob] = ()
    ) -> tuple[int, Chosen] | None:
        """Return the expected start of a job and its allocation, assuming that running jobs end at their limits.

        Args:
            running: all running jobs except ``gone``, ordered by the end of their limits. The caller never changes the
                list.
            gone: further running jobs that are assumed to have ended.
        """

    def ever(self, asked: NodesAsked) -> Alloc | None:
        """Return the allocation of a job on the empty cluster; None if it does not fit."""

    def may_fit(self, asked: NodesAsked, usable: int) -> bool:
        """Return False only if a job certainly cannot start now on any of the ``usable`` nodes."""

    def is_plain(self, asked: NodesAsked) -> bool:
        """Return whether a test of a job that cannot start leaves nothing behind except the expected start."""

    def begin_test(self, asked: Iterable[NodesAsked], usable: int) -> None:
        """Note that a submission, the main loop or a start by backfill tests a job.

        Args:
            asked: the job's requests.
            usable: nodes that the test may use.
        """

    def test_ever(self, asked: Iterable[NodesAsked], usable: int) -> None:
        """Note that a job cannot start now, so that Slurm tests whether it could ever run on the usable nodes."""

    def state(self) -> Any:
        """Return the state that does not follow from the running jobs, as values that JSON can hold."""

    def restore(self, state: Any) -> None:
        """Restore what `state` returned."""
