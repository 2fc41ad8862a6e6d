"""The request of a job as node selectors see it, and the interface of selectors."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from pipistrelle.schedulers.slurm.cluster.bits import mask_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import Amounts

#: {node: what the job takes there}
Alloc = dict[int, Amounts]


class NodesAsked(Struct, eq=False, weakref=True):
    """A job's request in one partition, for one way to satisfy its constraint.

    The object is never changed. Two requests are equal only if they are the same object. `Requests.asked` returns one
    object for all jobs that request the same.

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
        share: most jobs per resource if the job may share, else 0.
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
    share: int = 0
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
        """Return the allocation of a job that starts now on some of the ``usable`` nodes.

        Return None if the job does not fit.
        """

    def without(self, asked: NodesAsked, usable: int, gone: Sequence[SlurmJob]) -> Alloc | None:
        """Return the allocation that a job would get if the jobs in ``gone`` had ended.

        Return None if the job does not fit even then.
        """

    def expected(
        self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob], now: int, gone: Sequence[SlurmJob] = ()
    ) -> tuple[int, Chosen] | None:
        """Return the expected start of a job and its allocation.

        Running jobs are assumed to end at their limits. Return None if the job never fits.

        Args:
            running: all running jobs except ``gone``, ordered by the end of their limits. The caller never changes the
                list.
            gone: further running jobs that are assumed to have ended.
        """

    def starts_later(self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob], time: int) -> bool:
        """Return whether a job certainly cannot start at ``time`` (s) or earlier.

        Only the ``usable`` nodes count.

        Args:
            running: all running jobs, ordered by the end of their limits.
        """

    def soonest(self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob]) -> float:
        """Return a time (s) before which a job certainly does not start.

        Only the ``usable`` nodes count. If the job may start now, the time is -inf. For times before the returned one,
        `starts_later` returns True.
        """

    def ever(self, asked: NodesAsked) -> Alloc | None:
        """Return the allocation that a job would get on the empty cluster.

        Return None if it does not fit.
        """

    def may_fit(self, asked: NodesAsked, usable: int) -> bool:
        """Return whether a job might start now on some of the ``usable`` nodes.

        False means that the job certainly cannot start.
        """

    def is_plain(self, asked: NodesAsked) -> bool:
        """Return whether a failed test of a job would change only its expected start."""

    def left(self, nodes: int) -> Hashable:
        """Return what earlier tests left on these nodes, as far as it affects later tests."""

    def leave(self, nodes: int, left: Any) -> None:
        """Leave on these nodes what `left` returned, instead of what is left there now."""

    def begin_test(self, asked: Iterable[NodesAsked], usable: int) -> None:
        """Record that the scheduler begins to test whether a job can start.

        The test may come from a submission, from the main loop, or from a start by backfill.

        Args:
            asked: the job's requests.
            usable: nodes that the test may use.
        """

    def test_ever(self, asked: Iterable[NodesAsked], usable: int) -> None:
        """Record that a job cannot start now, so that Slurm tests whether it ever could.

        ``usable`` has the nodes that this second test may use.
        """

    def state(self) -> Any:
        """Return the part of the state that does not follow from the running jobs.

        It consists of values that JSON can hold.
        """

    def restore(self, state: Any) -> None:
        """Restore the values that the method `state` returned."""
