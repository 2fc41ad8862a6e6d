"""Choose whole nodes, as select/linear does."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate
from math import inf
from operator import or_
from typing import Any

import numpy as np
from msgspec.structs import replace

from pipistrelle.schedulers.slurm.cluster.bits import mask_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, Chosen, NodesAsked
from pipistrelle.schedulers.slurm.nodes.best_fit import best_nodes, most_cpus
from pipistrelle.schedulers.slurm.nodes.runs import pick_equal
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
        #: the nodes of the first line, of the first two lines, and so on; the lines are in order of weights
        self._offers = list(accumulate(machine.by_line, or_)) or [0]
        lines = sorted((machine.weight[line.bit_length() - 1], -at) for at, line in enumerate(machine.by_line))
        self._last_first = [machine.by_line[-at] for _, at in lines]

    def now(self, asked: NodesAsked, usable: int) -> Alloc | None:
        """Return the allocation of a job that starts now, with all CPUs of its nodes.

        Return None if too few nodes are idle.
        """
        return self._now(asked, usable, self.lightest)

    def _now(self, asked: NodesAsked, usable: int, pick: Callable[[NodesAsked, int], int]) -> Alloc | None:
        machine = self.machine
        nodes = pick(asked, usable & asked.nodes & ~machine.busy)
        if not nodes and asked.share > 1:
            nodes = pick(asked, usable & asked.nodes & ~machine.whole & self._shared(asked))
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
        """Return whether the job gets the same number of CPUs on any nodes.

        This is so if all nodes have equal CPUs and the job needs a fixed number of nodes.
        """
        return self.equal and asked.want_nodes == asked.min_nodes == asked.max_nodes

    def left(self, _: int) -> Hashable:
        """Return (): tests leave nothing on nodes."""
        return ()

    def leave(self, _: int, __: Any) -> None:
        """Do nothing: tests leave nothing on nodes."""

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
        """Return the allocation that a job would get if the jobs in ``gone`` had ended.

        Return None if the job does not fit even then.
        """
        nodes = self.lightest(asked, usable & asked.nodes & ~self._busy_without(gone))
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

        Running jobs are expected to end one by one at their limits. The weights of nodes do not count, as in Slurm's
        backfill. Return None if the job never fits.
        """
        found = self._now(asked, usable, self.pick)
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
        """Return whether too few nodes are idle for a job to start by ``time`` (s).

        Running jobs are assumed to end at their limits. Return False if this is unknown.
        """
        if asked.share > 1 or not self.is_plain(asked):
            return False
        idle = usable & asked.nodes & ~self.machine.busy
        for job in running:
            if job.limit_end > time or idle.bit_count() >= asked.min_nodes:
                break
            idle |= usable & asked.nodes & job.nodes
        return idle.bit_count() < asked.min_nodes

    def soonest(self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob]) -> float:
        """Return -inf: no time is known before which the job cannot start.

        The method `starts_later` is fast enough to be asked each time.
        """
        return -inf

    def ever(self, asked: NodesAsked) -> Alloc | None:
        """Return the allocation of a job if all nodes are idle; None if it does not fit."""
        nodes = self.lightest(asked, asked.nodes)
        return self._whole(asked, nodes) if nodes else None

    def lightest(self, asked: NodesAsked, idle: int) -> int:
        """Return the set of idle nodes that a job gets at its start; 0 if it does not fit.

        Nodes are offered by ``NodeName`` line, the line with the lowest weight first. The job is tested once the lines
        so far offer as many nodes as it wants. If it does not fit, the next line is added.
        """
        if asked.counts:
            found = asked.required
            for among, count in asked.counts:
                some = self._of_feature(idle & among, count)
                if not some:
                    return 0
                found |= some
            most = max(asked.max_nodes, found.bit_count())
            return self.lightest(replace(asked, required=found, max_nodes=most, counts=()), idle)
        if len(self._offers) == 1 or self.tree is not None:
            return self.pick(asked, idle)
        if asked.required & ~idle:
            return 0
        want = max(asked.min_nodes, asked.want_nodes)
        tested = 0
        for offered in self._offers:
            nodes = idle & offered | asked.required
            if nodes != tested and (nodes == idle or nodes.bit_count() >= want):
                found = self.pick(asked, nodes)
                if found or nodes == idle:
                    return found
                tested = nodes
        return 0

    def _of_feature(self, nodes: int, count: int) -> int:
        """Return ``count`` of the nodes with a feature; 0 if there are too few.

        The nodes are offered by ``NodeName`` line; of lines with equal weight, the last one is first.
        """
        offered = 0
        for lines in self._last_first:
            offered |= lines & nodes
            if offered.bit_count() >= count:
                return pick_equal(offered, count)
        return 0

    def pick(self, asked: NodesAsked, idle: int) -> int:
        """Return the set of idle nodes that a job gets; 0 if it does not fit.

        Without switches, the weights of nodes do not count.
        """
        if asked.counts:
            return self.lightest(asked, idle)
        if idle.bit_count() < asked.min_nodes:
            return 0
        if self.tree is not None:
            return self.tree.pick(asked, idle, self.machine.cpus)
        if self.equal and asked.want_nodes == asked.min_nodes and not (asked.required or asked.contiguous):
            count = max(asked.min_nodes, -(-asked.cpus // most_cpus(asked, self.per_node)))
            return pick_equal(idle, count) if count <= asked.max_nodes else 0
        if asked.required & ~idle:
            return 0
        return best_nodes(asked, idle, self.machine.all_cpus)

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
