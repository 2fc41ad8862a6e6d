"""Choose cores, memory and GPUs of shared nodes, as select/cons_tres does."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import array_of, mask_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, Chosen, NodesAsked
from pipistrelle.schedulers.slurm.nodes.gpu_weights import Counts, GpuWeights
from pipistrelle.schedulers.slurm.nodes.rows import CoreRows
from pipistrelle.schedulers.slurm.nodes.runs import (
    Able,
    EqualRuns,
    NodeRun,
    Runs,
    WeightedRuns,
    largest,
    make_runs,
    whole_tasks,
)
from pipistrelle.schedulers.slurm.nodes.shares import Empty, Free, take_gres
from pipistrelle.schedulers.slurm.nodes.timeline import Timeline
from pipistrelle.schedulers.slurm.nodes.tree import Tree
from pipistrelle.schedulers.slurm.nodes.tree_shares import below_top_switch, within

Indices = NDArray[np.intp]
#: most requests on sets of nodes of which test results are kept, and most changes of nodes meanwhile
_MOST_FITS: Final = 20_000


class ConsTres:
    """Chooses parts of nodes by best fit.

    The best fit is sought among runs of consecutive nodes of equal weight.

    Args:
        parameters: ``SelectTypeParameters``.
        shared: {partition: CPUs that its sharing jobs hold on each node}, updated by the controller.
        margin: time from a job's limit to its expected end (``KillWait`` plus ``OverTimeLimit``), s.
        tree: the switches; None without topology/tree.
        busy_nodes: whether expected starts prefer nodes that are in use (``bf_busy_nodes``).
    """

    def __init__(
        self,
        machine: SlurmMachine,
        parameters: frozenset[str],
        rows: CoreRows | None,
        margin: float,
        *,
        tree: Tree | None = None,
        busy_nodes: bool = False,
    ) -> None:
        self.machine = machine
        self.rows = rows
        self.margin = margin
        self.tree = tree
        self.busy_nodes = busy_nodes
        names = {name.lower() for name in parameters}
        self.memory_counts = any("memory" in name for name in names)
        self.by_core = any("core" in name or "socket" in name for name in names)
        self.lln = "cr_lln" in names
        #: {(request, nodes, GPUs counted on them): what `_fits_of` returns}
        self._fits: dict[tuple[NodesAsked, int, Counts], _Fits] = {}
        #: the sets of nodes on which jobs started or ended since `_fits` was last empty
        self._changes: list[int] = []
        self.gpus = GpuWeights(machine)
        #: {request: what `ever` returns}
        self._ever: WeakKeyDictionary[NodesAsked, Alloc | None] = WeakKeyDictionary()
        #: {request: the same request without sharing}
        self._alone: WeakKeyDictionary[NodesAsked, NodesAsked] = WeakKeyDictionary()
        #: the running jobs that `expected` was last called with
        self._timeline = Timeline(machine, ())

    def now(self, asked: NodesAsked, usable: int) -> Alloc | None:
        """Return the allocation of a job that starts now.

        Return None if the job does not fit. A job that may share CPUs tries free CPUs first.
        """
        usable &= asked.nodes
        return within(asked, self._now(self._fits_of(asked, usable), asked, usable))

    def _now(self, known: "_Fits", asked: NodesAsked, usable: int) -> Alloc | None:
        if known.now is None:
            enough = known.free >= asked.cpus
            free = Free(self.machine, self.rows)
            known.counts_now = self.count(asked, known.at, free)
            known.now = (self.fit(asked, usable, free, at=known.at) if enough else None,)
        else:
            self.gpus.count(known.counts_now)
        return known.now[0]

    def count(self, asked: NodesAsked, at: Indices, free: Free) -> Counts:
        """Record the number of GPUs that a request would use on each node, and return it.

        The numbers affect the order in which later tests try the nodes.

        Args:
            at: the nodes to test.
            free: the amounts that the job may use on them.
        """
        if not asked.gres:
            return ()
        counts = self.gpus.counts_of(asked, at, free, memory_counts=self.memory_counts)
        self.gpus.count(counts)
        return counts

    def without(self, asked: NodesAsked, usable: int, gone: Sequence[SlurmJob]) -> Alloc | None:
        """Return the allocation that a job would get if the jobs in ``gone`` had ended.

        Return None if the job does not fit even then.
        """
        free = Free(self.machine, self.rows, copy=True)
        free.take_away(gone)
        return within(asked, self._test(asked, usable & asked.nodes, free))

    def ever(self, asked: NodesAsked) -> Alloc | None:
        """Return the allocation of a job on the empty cluster; None if it does not fit."""
        if not asked.gres and asked in self._ever:
            return self._ever[asked]
        empty = Empty(self.machine)
        if asked.gres:  # Slurm first tests the nodes that it could use now
            machine = self.machine
            usable = asked.nodes & (machine.idle if asked.whole else ~(machine.whole | machine.down))
            found = self._test(asked, usable & ~machine.completing, empty)
            if found is not None:
                return found
        found = self._ever[asked] = self._test(asked, asked.nodes, empty)
        return found

    def _test(self, asked: NodesAsked, usable: int, free: Free) -> Alloc | None:
        if usable.bit_count() < asked.min_nodes:
            return None
        at = array_of(usable)
        self.count(asked, at, free)
        return self.fit(asked, usable, free, at=at)

    def may_fit(self, asked: NodesAsked, usable: int) -> bool:
        """Return whether a job might fit now on some of the nodes.

        It might if enough nodes have free CPUs and memory, and if the CPUs are enough on at most as many nodes as the
        job may use.
        """
        usable &= asked.nodes
        known = self._fits_of(asked, usable)
        if known.may is None:
            known.may = known.free >= asked.cpus
            if known.may and self.rows is None:
                free = Free(self.machine, self.rows)
                able = free.usable(asked, known.at, memory_counts=self.memory_counts, by_core=self.by_core)
                most = len(able.at) if asked.required or asked.counts else asked.max_nodes
                known.may = len(able.at) >= asked.min_nodes and largest(able.cpus, most) >= asked.cpus
        return known.may

    def is_plain(self, asked: NodesAsked) -> bool:
        """Return whether a failed test of a job would change only its expected start.

        This is so if the job always gets as many CPUs as it requests.
        """
        return not (asked.gres or asked.whole or asked.counts or asked.cpus_per_task > 1 or self.machine.any_threads)

    def left(self, nodes: int) -> Hashable:
        """Return the GPU counts that tests left on these nodes."""
        return self.gpus.of(nodes) if self.gpus.counted else ()

    def leave(self, nodes: int, left: Any) -> None:
        """Replace the GPU counts of these nodes by those that `left` returned."""
        self.gpus.forget(nodes)
        self.gpus.count(left)

    def begin_test(self, asked: Iterable[NodesAsked], usable: int) -> None:
        """Forget the GPU counts that earlier tests left on the nodes of the requests."""
        for way in asked if self.gpus.counted else ():
            self.gpus.forget(way.nodes & usable)

    def test_ever(self, asked: Iterable[NodesAsked], usable: int) -> None:
        """Record the GPU counts of a test in which all GPUs of the usable nodes are free."""
        for way in asked:
            if way.gres:
                self.count(way, array_of(way.nodes & usable), Empty(self.machine))

    def state(self) -> Any:
        """Return the GPU counts that earlier tests left on the nodes.

        Everything else follows from the running jobs.
        """
        return self.gpus.state()

    def restore(self, state: Any) -> None:
        """Restore the values that the method `state` returned."""
        self.gpus.restore(state)

    def _fits_of(self, asked: NodesAsked, usable: int) -> "_Fits":
        """Return the cached test results of a request on the ``usable`` nodes.

        A result is valid until a job starts or ends on any of these nodes.
        """
        changed, self.machine.changed = self.machine.changed, 0
        changes = self._changes
        if changed:
            changes.append(changed)
            # the rows of a partition change with jobs on any node
            if self.rows or len(changes) >= _MOST_FITS:
                self._fits.clear()
                changes.clear()
        counts = () if asked.gres or not self.gpus.counted else self.gpus.of(usable)
        known = self._fits.get((asked, usable, counts))
        if known is None or (known.seen < len(changes) and any(one & usable for one in changes[known.seen :])):
            if len(self._fits) >= _MOST_FITS:
                self._fits.clear()
                changes.clear()
            at = array_of(usable)
            free = asked.cpus if self.rows else int(np.add.reduce(np.maximum(self.machine.free_cpus[at], 0)))
            known = self._fits[asked, usable, counts] = _Fits(at, free, {}, len(changes))
        known.seen = len(changes)
        return known

    def expected(
        self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob], now: int, gone: Sequence[SlurmJob] = ()
    ) -> tuple[int, Chosen] | None:
        """Return the expected start of a job and its allocation.

        The function removes running jobs from a copy of the cluster, in groups of jobs that end within one period, and
        tests after each group whether the job fits. The period is 30 s at first and doubles before each test. So the
        start found may be later than necessary, as in Slurm. Return None if the job never fits.
        """
        usable &= asked.nodes
        if usable.bit_count() < asked.min_nodes:
            return None
        if self.rows and asked.share and self.machine.partitions[asked.part].settings.over_subscribe == "YES":
            # Slurm first searches as if the job did not share CPUs.
            alone = self._alone.get(asked)
            if alone is None:
                alone = self._alone[asked] = replace(asked, share=0)
            first = self.expected(alone, usable, running, now, gone)
            if first is not None and first[0] <= now:
                return first
        known = self._fits_of(asked, usable)
        found = self._now(known, asked, usable)
        if found is not None:
            return now, Chosen.of(found)
        if known.running is running and not gone:
            result = known.expected
            self.gpus.count(known.counts)
        else:
            result, counts = self._expected(known, asked, usable, running, gone)
            self.gpus.count(counts)
            if not gone:
                known.running, known.expected, known.counts = running, result, counts
        return None if result is None else (self._end_of(result[0], now), result[1])

    def _expected(
        self, known: "_Fits", asked: NodesAsked, usable: int, running: Sequence[SlurmJob], gone: Sequence[SlurmJob]
    ) -> tuple[tuple[SlurmJob, Chosen] | None, Counts]:
        """Return (running job, allocation) and GPU counts for a request's expected start.

        The request fits when that job has ended, and then gets the allocation. The pair is None if the request never
        fits. The GPU counts are those of the last test.
        """
        fits = {} if gone else known.fits
        times = self._times(running)
        plain = not (gone or self.rows)
        first = self._first(asked, usable, known.at, times) if plain else 0
        ahead: _Ahead | None = None
        for place, last in times.stops(usable, first) if first is not None else ():
            if last.serial not in fits:
                if plain:
                    then = times.free_after(place)
                    counts = self.count(asked, known.at, then)
                    alloc = self.fit(asked, usable, then, at=known.at, prefer_busy=self.busy_nodes)
                else:
                    ahead = ahead or _Ahead(self, asked, usable, known.at, gone)
                    alloc = ahead.fit(running, place)
                    counts = ahead.counts
                fits[last.serial] = None if alloc is None else (Chosen.of(alloc), counts)
            fitting = fits[last.serial]
            if fitting is not None:
                return (last, fitting[0]), fitting[1]
        return None, self.count(asked, known.at, Empty(self.machine))

    def _times(self, running: Sequence[SlurmJob]) -> Timeline:
        if self._timeline.running is not running:
            self._timeline = Timeline(self.machine, running)
        return self._timeline

    def starts_later(self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob], time: int) -> bool:
        """Return whether the nodes have too few CPUs at the last test of an expected start until ``time`` (s).

        Running jobs are assumed to end at their limits.
        """
        if self.rows or asked.gres or asked.counts:
            return False
        times = self._times(running)
        usable &= asked.nodes
        count = self._first(asked, usable, None, times)
        if count is None or times.end_after(count) > time:
            return True
        if not count:
            return False
        stop = next(times.stops(usable, count), None)
        return stop is None or stop[1].limit_end > time

    def soonest(self, asked: NodesAsked, usable: int, running: Sequence[SlurmJob]) -> float:
        """Return when (s) the nodes have enough CPUs, if running jobs end at their limits."""
        if self.rows or asked.gres or asked.counts:
            return -inf
        times = self._times(running)
        count = self._first(asked, usable & asked.nodes, None, times)
        return inf if count is None else times.end_after(count)

    def _first(self, asked: NodesAsked, usable: int, at: Indices | None, times: Timeline) -> int | None:
        """Return after how many ended jobs a request may fit on ``usable`` nodes; None: never.

        Args:
            at: the usable nodes as an array, if it is known.
        """
        if asked.counts:
            return 0
        opening = times.opening(
            asked, memory_counts=self.memory_counts, by_core=self.by_core, tree=self.tree is not None
        )

        def enough(free: Free) -> bool:
            return self._enough(asked, array_of(usable) if at is None else at, free)

        return times.first(asked, usable, opening, enough)

    def _enough(self, asked: NodesAsked, at: Indices, free: Free) -> bool:
        able = free.usable(asked, at, memory_counts=self.memory_counts, by_core=self.by_core)
        return len(able.at) >= asked.min_nodes and self._most_cpus(asked, able) >= asked.cpus

    def _most_cpus(self, asked: NodesAsked, nodes: Able) -> int:
        """Return the most CPUs on as many of the nodes as the job may use.

        With switches, an expected start may use more nodes.
        """
        return largest(nodes.cpus, len(nodes.at) if asked.required or self.tree is not None else asked.max_nodes)

    def _end_of(self, job: SlurmJob, now: int) -> int:
        if job.limit_end > now:
            return job.limit_end
        return max(int(job.limit_end + self.margin), now + 1)

    def fit(
        self, asked: NodesAsked, usable: int, free: Free, *, at: Indices | None = None, prefer_busy: bool = False
    ) -> Alloc | None:
        """Return the allocation of a job on some of the ``usable`` nodes.

        ``free`` has the amounts that the job may use on these nodes. Return None if the job does not fit.

        Args:
            at: the usable nodes as an array, if it is known.
        """
        if usable.bit_count() < asked.min_nodes:
            return None
        if at is None:
            at = array_of(usable)
        if free.rows is not None:
            for nodes, cpus in free.rows.steps(asked.part, usable, shares=asked.share > 0):
                found = self.fit(asked, nodes, free.with_cpus(cpus), prefer_busy=prefer_busy)
                if found is not None:
                    return found
            return None
        if asked.required & ~usable or asked.required.bit_count() > asked.max_nodes:
            return None
        able = free.usable(asked, at, memory_counts=self.memory_counts, by_core=self.by_core)
        if len(able.at) < asked.min_nodes or int(np.add.reduce(able.cpus)) < asked.cpus:
            return None
        if asked.required and asked.required & ~mask_of(able.at.tolist()):
            return None
        got = self._choose(asked, able, free, prefer_busy=prefer_busy)
        placed = whole_tasks(asked, got, able) if got else None
        if got and placed is None:  # Slurm would give the job fewer CPUs than its tasks need
            able = Able(able.at, able.cpus - able.cpus % asked.cpus_per_task)
            got = self._choose(asked, able, free, prefer_busy=prefer_busy)
            placed = whole_tasks(asked, got, able) if got else None
        return self._alloc(asked, placed, free) if placed else None

    def _choose(
        self, asked: NodesAsked, nodes: Able, free: Free, *, prefer_busy: bool = False
    ) -> dict[int, int] | None:
        """Return {node: CPUs} for a job; None if it does not fit.

        If the job does not fit, try again without the nodes with the fewest CPUs, and so on; but always keep as many
        nodes as the job needs at least. Return {} if the job fits only below too many leaf switches.
        """
        if asked.counts:
            return self._with_counts(asked, nodes, free, prefer_busy)
        if self._most_cpus(asked, nodes) < asked.cpus:
            return None
        if self.tree is not None and not (prefer_busy or self.lln or asked.lln):
            return below_top_switch(self.tree, asked, nodes, self.gpus.weights)
        got = self._once(asked, nodes, free, prefer_busy)
        if got is not None:
            return got
        for cut in np.unique(nodes.cpus)[:-1]:
            kept = nodes.cpus > cut
            kept[np.flatnonzero(~kept)[len(nodes.at) - asked.min_nodes :]] = True
            nodes = nodes.where(kept)
            if kept.all() or int(np.add.reduce(nodes.cpus)) < asked.cpus:
                return None
            got = self._once(asked, nodes, free, prefer_busy)
            if got is not None:
                return got
        return None

    def _with_counts(self, asked: NodesAsked, nodes: Able, free: Free, prefer_busy: bool) -> dict[int, int] | None:
        """Return {node: CPUs} for a job that needs some nodes of each of several features.

        The nodes of each feature are chosen as for a job with one CPU per node. The job then requires all of them.
        """
        required = asked.required
        for among, count in asked.counts:
            able = nodes.where(np.array([bool(among >> at & 1) for at in nodes.at.tolist()], np.bool_))
            one = replace(asked, min_nodes=count, want_nodes=count, cpus=count, required=0, counts=())
            got = self._choose(one, able, free, prefer_busy=prefer_busy) if len(able.at) >= count else None
            if not got:
                return None
            required |= mask_of(got)
        most = max(asked.max_nodes, required.bit_count())
        asked = replace(asked, required=required, max_nodes=most, counts=())
        return self._choose(asked, nodes, free, prefer_busy=prefer_busy)

    def _once(self, asked: NodesAsked, nodes: Able, free: Free, prefer_busy: bool) -> dict[int, int] | None:
        idle = self.machine.idle
        if prefer_busy:  # nodes that are in use now
            return self._one_by_one(asked, nodes, lambda at: idle >> at & 1)
        if self.lln or asked.lln:  # most free CPUs first, even if the job has not enough memory to use them all
            return self._one_by_one(asked, nodes, lambda at: -int(free.cpus[at]))
        weights = self.gpus.weights
        wanted = [asked.want_nodes] if asked.want_nodes > asked.min_nodes else []
        for count in (*wanted, asked.min_nodes):
            if asked.required:
                runs = Runs(make_runs(nodes, weights, asked.required))
            elif self.machine.equal_weights and not self.gpus.counted:
                runs = EqualRuns(nodes)
            else:
                runs = WeightedRuns(nodes, weights)
            got = fill(runs, asked, count, int(nodes.cpus.max()))
            if got is not None:
                return got
        return None

    def _one_by_one(self, asked: NodesAsked, nodes: Able, rank: Callable[[int], int]) -> dict[int, int] | None:
        """Return {node: CPUs} for a job that takes nodes one after the other until they suffice.

        Required nodes come first, then nodes with a lower weight, then nodes with a lower ``rank``.
        """
        got: dict[int, int] = {}
        left, need, most = asked.min_nodes, asked.cpus, asked.max_nodes
        weights = self.machine.all_weights

        def place(one: tuple[int, int]) -> tuple[bool, int, int, int]:
            return not asked.required >> one[0] & 1, int(weights[one[0]]), rank(one[0]), one[0]

        for at, cpus in sorted(nodes.pairs(), key=place):
            if most == 0 or (left <= 0 and need <= 0):
                break
            if most == 1 and cpus < need:
                continue
            use = cpus if asked.whole else min(cpus, max(1, need - max(left - 1, 0)))
            got[at] = use
            need -= use
            left -= 1
            most -= 1
        return got if left <= 0 and need <= 0 else None

    def _alloc(self, asked: NodesAsked, got: dict[int, int], free: Free) -> Alloc:
        """Return the amounts that a job takes of each chosen node, given its CPUs there.

        The amounts are the CPUs of whole cores or nodes where required, memory, and gres.
        """
        machine = self.machine
        if not (asked.whole or asked.gres or machine.any_threads) and asked.mem_kind in ("", "cpu"):
            each = asked.mem if asked.mem_kind else 0
            return {at: (got[at], each * got[at], {}) for at in sorted(got)}
        alloc: Alloc = {}
        for at in sorted(got):
            cpus = got[at]
            if asked.whole:
                cpus = machine.cpus[at]
            elif self.by_core and machine.threads[at] > 1:
                cpus = -(-cpus // machine.threads[at]) * machine.threads[at]
            gres = machine.gres[at] if asked.whole else take_gres(asked.gres, free.gres[at]) if asked.gres else {}
            memory = 0
            if asked.mem_kind == "cpu":
                memory = asked.mem * cpus
            elif asked.mem_kind == "node":
                memory = asked.mem
            elif asked.mem_kind == "all":
                memory = machine.memory[at]
            elif asked.mem_kind == "gpu":
                memory = asked.mem * sum(count for name, count in gres.items() if name.startswith("gpu"))
            alloc[at] = (cpus, memory, gres)
        return alloc


class _Fits(Struct):
    """Where a request fits on some nodes, now and after the first running jobs end.

    Attributes:
        at: the nodes as an array.
        free: number of free CPUs on the nodes. The job cannot use more than these and those of the ended jobs.
        seen: number of changes of the cluster that the results take into account.
        may: whether the free CPUs and memory of the nodes together suffice; None if not tested yet.
        now: a tuple with the allocation if the job starts now, or with None if it does not fit. None itself means that
            this has not been tested yet.
        counts_now: the GPUs that the test for ``now`` counts.
        fits: {serial number of a running job: allocation or None, and GPUs counted, if this job and all jobs that end
            before it had ended}, for each job on the nodes tested so far.
        running: the running jobs from which ``expected`` follows.
        expected: the running job after whose end the job fits, and the allocation then; None if the job never fits.
        counts: the GPUs that the tests for ``expected`` count.
    """

    at: Indices
    free: int
    fits: dict[int, tuple[Chosen, Counts] | None]
    seen: int
    may: bool | None = None
    now: tuple[Alloc | None] | None = None
    counts_now: Counts = ()
    running: Sequence[SlurmJob] | None = None
    expected: tuple[SlurmJob, Chosen] | None = None
    counts: Counts = ()


class _Ahead:
    """A copy of the cluster from which running jobs are removed to find a start.

    Args:
        asked: the request of the job that starts.
        usable, at: the nodes that the job may use, as a bit mask and as an array.
        gone: running jobs that are removed before all others.
    """

    def __init__(
        self, selector: "ConsTres", asked: NodesAsked, usable: int, at: Indices, gone: Sequence[SlurmJob]
    ) -> None:
        self.selector = selector
        self.asked = asked
        self.usable = usable
        self.at = at
        self.free = Free(selector.machine, selector.rows, copy=True)
        self.free.take_away(gone)
        #: the GPUs that the last test counted
        self.counts: Counts = ()
        self._place = 0

    def fit(self, running: Sequence[SlurmJob], place: int) -> Alloc | None:
        """Return the job's allocation if the first ``place`` running jobs had ended.

        Return None if it does not fit even then.
        """
        usable, selector = self.usable, self.selector
        self.free.take_away(job for job in running[self._place : place] if job.nodes & usable)
        self._place = place
        self.counts = selector.count(self.asked, self.at, self.free)
        return selector.fit(self.asked, usable, self.free, at=self.at, prefer_busy=selector.busy_nodes)


def fill(runs: Runs, asked: NodesAsked, nodes: int, largest: int) -> dict[int, int] | None:
    """Return {node: CPUs} for a job from the best runs of nodes.

    Return None if the runs do not suffice. Nodes are filled one after the other, but at least one CPU of the request is
    left for each later node. The last node is the one with the fewest CPUs that still suffices.

    Args:
        nodes: least number of nodes.
        largest: most CPUs of any node.
    """
    filling = _Filling(asked, nodes)
    for run in runs.all if asked.required else ():
        for at, cpus in run.nodes.pairs():
            if asked.required >> at & 1:
                filling.take(at, cpus)
    while not filling.done and filling.most > 0:
        if filling.need > filling.most * largest:
            return None
        chosen = runs.take_best(filling.nodes, filling.need)
        if chosen is None:
            return None
        if asked.contiguous and (chosen.cpus < filling.need or chosen.size < filling.nodes):
            continue
        filling.take_from(chosen)
    return filling.got if filling.done else None


class _Filling:
    """Assigns CPUs of nodes to a job until its request is met.

    Attributes:
        nodes, need: nodes and CPUs that the request still lacks.
        most: number of nodes that may still be added.
    """

    def __init__(self, asked: NodesAsked, nodes: int) -> None:
        self.whole = asked.whole
        self.got: dict[int, int] = {}
        self.nodes, self.most = nodes, asked.max_nodes
        self.need = asked.cpus

    @property
    def done(self) -> bool:
        return self.nodes <= 0 and self.need <= 0

    def take(self, at: int, cpus: int) -> None:
        """Take CPUs of node ``at``, of which ``cpus`` are usable, to meet the request.

        One needed CPU is left for each later node. Requests for whole nodes take all ``cpus``.
        """
        use = cpus if self.whole else min(cpus, max(self.need - max(self.nodes - 1, 0), 1))
        self.got[at] = use
        self.need -= use
        self.nodes -= 1
        self.most -= 1

    def take_from(self, run: NodeRun) -> None:
        """Take CPUs of a run's nodes, in ascending order, until the request is met.

        If the request needs only one more node and single nodes suffice, take the one with the fewest usable CPUs.
        """
        nodes = run.nodes
        new = self.got.keys().isdisjoint(nodes.at.tolist())
        if self.nodes <= 1:
            fitting = nodes.cpus >= self.need
            if not new:
                fitting &= ~np.isin(nodes.at, list(self.got))
            if fitting.any():
                nodes = nodes.where(fitting)
                best = int(nodes.cpus.argmin())
                self.take(int(nodes.at[best]), int(nodes.cpus[best]))
                return
            if new and not self.whole and self._take_all(nodes):
                return
        begin = self._take_first(nodes) if new else 0
        for at, cpus in nodes.pairs()[begin:]:
            if self.most == 0 or self.done:
                break
            if at not in self.got and not (self.most == 1 and cpus < self.need):
                self.take(at, cpus)

    def _take_first(self, nodes: Able) -> int:
        """Take all usable CPUs of the first nodes, as long as more are needed.

        Return the number of these nodes. The caller ensures that none of the nodes is taken yet.
        """
        count = min(len(nodes.at), self.nodes - 1, self.most - 1)
        if self.whole or count <= 1:
            return 0
        cpus = nodes.cpus[:count]
        # One CPU of the request is left for each later node.
        enough = cpus.cumsum() > self.need - self.nodes + np.arange(1, count + 1)
        if enough.any():
            count = int(enough.argmax())
        used = cpus[:count].tolist()
        self.got.update(zip(nodes.at[:count].tolist(), used, strict=True))
        self.need -= sum(used)
        self.nodes -= count
        self.most -= count
        return count

    def _take_all(self, nodes: Able) -> bool:
        """Take all usable CPUs of the nodes in turn, until the request is met.

        Return False, and take nothing, if this needs more nodes than the request allows. The caller ensures that none
        of the nodes is taken yet, and that none suffices alone.
        """
        total = nodes.cpus.cumsum()
        count = min(int(total.searchsorted(self.need)) + 1, len(total))
        if count > self.most or (count == self.most and total[count - 1] < self.need):
            return False
        cpus = nodes.cpus[:count].tolist()
        cpus[-1] -= max(0, int(total[count - 1]) - self.need)
        self.got.update(zip(nodes.at[:count].tolist(), cpus, strict=True))
        self.need -= sum(cpus)
        self.nodes -= count
        self.most -= count
        return True
