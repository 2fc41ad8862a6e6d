"""Choose whole nodes, as select/linear does."""

from collections.abc import Hashable, Iterable, Sequence
from math import inf
from typing import Any

import numpy as np

from pipistrelle.schedulers.slurm.cluster.bits import array_of, mask_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, Chosen, NodesAsked
from pipistrelle.schedulers.slurm.nodes.runs import Able, NodeRun, best_run, make_runs, pick_equal, with_counts
from pipistrelle.schedulers.slurm.nodes.tree import Tree


class Linear:
    """Chooses whole nodes: best fit among runs of consecutive idle nodes.

    A running job is expected to end at its time limit, or one second from now if the limit has passed, as in
    select/linear.

    Args:
        tree: the switches; None without topology/tree.
    """

    def __init__(self, machine: SlurmMachine, tree: Tree | None = None) -> None:
        self.machine = machine
        self.tree = tree
        cpus = set(machine.cpus)
        self.equal = len(cpus) <= 1
        self.per_node = next(iter(cpus), 1)

    def now(self, asked: NodesAsked, usable: int) -> Alloc | None:
        """Return the allocation of a job that starts now, with all CPUs of its nodes.

        Return None if too few nodes are idle.
        """
        machine = self.machine
        nodes = self.pick(asked, usable & asked.nodes & ~machine.busy)
        if not nodes and asked.share > 1:
            nodes = self.pick(asked, usable & asked.nodes & ~machine.whole & self._shared(asked))
        return self._whole(asked, nodes) if nodes else None

    def _shared(self, asked: NodesAsked) -> int:
        machine = self.machine
        return machine.all & ~mask_of(np.flatnonzero(machine.jobs_on >= asked.share).tolist())

    def may_fit(self, asked: NodesAsked, usable: int) -> bool:
        """Return whether enough of the nodes are idle.

        If the job may share nodes, nodes that no job holds as a whole are enough.
        """
        taken = self.machine.busy if asked.share <= 1 else self.machine.whole
        return (usable & asked.nodes & ~taken).bit_count() >= asked.min_nodes

    def is_plain(self, asked: NodesAsked) -> bool:
        """Return whether every test of a job finds the same number of CPUs.

        This is so if all nodes have equal CPUs and the job needs a fixed number of nodes.
        """
        return self.equal and asked.want_nodes == asked.min_nodes == asked.max_nodes

    def counts(self, asked: Iterable[NodesAsked]) -> Hashable:
        """Return a constant: earlier tests do not affect the choice of whole nodes."""
        return ()

    def begin_test(self, asked: Iterable[NodesAsked], usable: int) -> None:
        """Do nothing: earlier tests do not affect the choice of whole nodes."""

    def test_ever(self, asked: Iterable[NodesAsked], usable: int) -> None:
        """Do nothing: earlier tests do not affect the choice of whole nodes."""

    def state(self) -> Any:
        """Return an empty list: everything follows from the running jobs."""
        return []

    def restore(self, state: Any) -> None:
        """Do nothing, because there is no state."""

    def without(self, asked: NodesAsked, usable: int, gone: Sequence[SlurmJob]) -> Alloc | None:
        """Return the allocation that a job would get if the jobs in ``gone`` had ended."""
        nodes = self.pick(asked, usable & asked.nodes & ~self._busy_without(gone))
        return self._whole(asked, nodes) if nodes else None

    def _busy_without(self, gone: Sequence[SlurmJob]) -> int:
        machine = self.machine
        left: dict[int, int] = {}
        for job in gone:
            for at in job.alloc:
                left[at] = left.get(at, int(machine.jobs_on[at])) - 1
        busy = machine.busy
        for at, jobs in left.items():
            if jobs <= 0:
                busy &= ~(1 << at)
        return busy

    def expected(
        self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob], now: int, gone: Sequence[SlurmJob] = ()
    ) -> tuple[int, Chosen] | None:
        """Return the expected start of a job and its allocation.

        Running jobs are expected to end one by one at their limits.
        """
        found = self.now(asked, usable)
        if found is not None:
            return now, Chosen.of(found)
        machine = self.machine
        allowed = usable & asked.nodes
        idle = allowed & ~(self._busy_without(gone) if gone else machine.busy)
        need = asked.min_nodes
        shared = asked.share > 1 and bool((machine.jobs_on > 1).any())
        away: list[SlurmJob] = list(gone)
        for job in running:
            if not job.nodes & allowed:
                continue
            if shared:
                away.append(job)
                idle = allowed & ~self._busy_without(away)
            else:
                idle |= job.nodes & allowed
            if idle.bit_count() >= need:
                nodes = self.pick(asked, idle)
                if nodes:
                    return (job.limit_end if job.limit_end > now else now + 1), Chosen.of(self._whole(asked, nodes))
        return None

    def starts_later(self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob], time: int) -> bool:
        """Return whether too few nodes are idle even after all jobs whose limits end by ``time`` (s)."""
        if asked.share > 1 or not self.is_plain(asked):
            return False
        idle = usable & asked.nodes & ~self.machine.busy
        for job in running:
            if job.limit_end > time or idle.bit_count() >= asked.min_nodes:
                break
            idle |= usable & asked.nodes & job.nodes
        return idle.bit_count() < asked.min_nodes

    def soonest(self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob]) -> float:
        """Return -inf: `starts_later` is fast enough."""
        return -inf

    def ever(self, asked: NodesAsked) -> Alloc | None:
        """Return the allocation of a job if all nodes are idle."""
        nodes = self.pick(asked, asked.nodes)
        return self._whole(asked, nodes) if nodes else None

    def pick(self, asked: NodesAsked, idle: int) -> int:
        """Return the set of idle nodes that the job gets; 0 if too few are idle."""
        if idle.bit_count() < asked.min_nodes:
            return 0
        if self.tree is not None:
            return self.tree.pick(asked, idle, self.machine.cpus)
        if asked.required:
            return self._around(asked, idle)
        if self.equal:
            least = max(asked.min_nodes, -(-asked.cpus // self.per_node))
            want = max(asked.want_nodes, least)
            if want > asked.max_nodes >= least:
                want = asked.max_nodes
            while want >= least:
                if idle.bit_count() >= want:
                    nodes = self._equal(asked, idle, want)
                    if nodes:
                        return nodes
                want = min(want - 1, idle.bit_count())
            return 0
        return self._by_cpus(asked, idle)

    def _equal(self, asked: NodesAsked, idle: int, count: int) -> int:
        machine = self.machine

        def pick(nodes: int, number: int) -> int:
            return pick_equal(nodes, number, machine.by_weight, contiguous=asked.contiguous)

        return with_counts(asked.counts, count, idle, pick) if asked.counts else pick(idle, count)

    def _around(self, asked: NodesAsked, idle: int) -> int:
        """Return the bit mask of the nodes that the job requires by name, and of further ones.

        Further nodes are added if the request needs more. Return 0 if too few nodes are idle.
        """
        if asked.required & ~idle:
            return 0
        left = max(asked.min_nodes, -(-asked.cpus // self.per_node)) - asked.required.bit_count()
        if left <= 0:
            return asked.required
        more = pick_equal(idle & ~asked.required, left, self.machine.by_weight)
        return asked.required | more if more else 0

    def _by_cpus(self, asked: NodesAsked, idle: int) -> int:
        """Return the bit mask of idle nodes that together have the CPUs that the job needs.

        Nodes may differ in size. Return 0 if there are too few CPUs.
        """
        at = array_of(idle)
        runs: list[NodeRun | None] = list(make_runs(Able(at, self.machine.all_cpus[at]), self.machine.all_weights))
        nodes, left, most, need = 0, asked.want_nodes, asked.max_nodes, asked.cpus
        while most > 0:
            best = best_run(runs, left, need)
            if best is None:
                break
            run = runs[best]
            assert run is not None
            if asked.contiguous and (run.cpus < need or run.size < left):
                break
            for node, amount in run.nodes.pairs():
                if most == 0 or (left <= 0 and need <= 0):
                    break
                nodes |= 1 << node
                left -= 1
                most -= 1
                need -= amount
            if left <= 0 and need <= 0:
                return nodes
            runs[best] = None
        return nodes if need <= 0 and nodes.bit_count() >= asked.min_nodes else 0

    def _whole(self, asked: NodesAsked, nodes: int) -> Alloc:
        machine = self.machine
        alloc: Alloc = {}
        memory = asked.mem if asked.mem_kind == "node" else 0
        while nodes:
            low = nodes & -nodes
            at = low.bit_length() - 1
            nodes ^= low
            cpus = machine.cpus[at]
            used = asked.mem * cpus if asked.mem_kind == "cpu" else memory
            alloc[at] = (cpus, used, machine.gres[at] if machine.gres[at] else {})
        return alloc
