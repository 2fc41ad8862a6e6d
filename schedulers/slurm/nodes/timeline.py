"""The running jobs by the end of their limits, and what is free after each end."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import flags_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.nodes.asked import NodesAsked
from pipistrelle.schedulers.slurm.nodes.shares import Free, fits_gres, holding, usable_cpus

#: most jobs taken away between two tests of an expected start
_MOST_AWAY = 200
#: most copies of the cluster to keep
_MOST_COPIES = 200


class _Held(NamedTuple):
    """The nodes of all running jobs in one array, job after job.

    Attributes:
        begins: for each job the position of its first node.
        nodes: indices of the nodes.
        amounts: changes on each node when its job ends, shape (n, 3), as in `Holding`.
    """

    begins: NDArray[np.intp]
    nodes: NDArray[np.intp]
    amounts: NDArray[np.int64]


class Opening(NamedTuple):
    """From when on each node offers enough to be one of a job's nodes, if running jobs end at their limits.

    Attributes:
        places: numbers of ended jobs, ascending; after each of them another node offers enough.
        masks: for each place the set of the nodes that offer enough from then on.
        least: number of such nodes that the job needs.
        exact: whether the job fits once it has so many; if not, it may need more.
    """

    places: list[int]
    masks: list[int]
    least: int
    exact: bool

    def first(self, usable: int) -> int | None:
        """Return after how many ended jobs enough of the ``usable`` nodes offer enough; None: never."""
        masks, least = self.masks, self.least
        if not masks or (masks[-1] & usable).bit_count() < least:
            return None
        low, high = 0, len(masks) - 1
        while low < high:
            half = (low + high) // 2
            if (masks[half] & usable).bit_count() >= least:
                high = half
            else:
                low = half + 1
        return self.places[low]


class Timeline:
    """Running jobs, sorted by the end of their time limits.

    Attributes:
        running: the jobs; the caller never changes the list.
    """

    def __init__(self, machine: SlurmMachine, running: Sequence[SlurmJob]) -> None:
        self.machine = machine
        self.running = running
        self._ends = [job.limit_end for job in running]
        self._nodes = [job.nodes for job in running]
        self._flat: _Held | None = None
        self._past: _Held | None = None
        #: (place, job) of the jobs that hold gres
        self._with_gres: list[tuple[int, SlurmJob]] | None = None
        #: {n: what is free after the first n jobs}
        self._free: dict[int, Free] = {}
        #: {request: its `Opening`}
        self._openings: dict[NodesAsked, Opening] = {}
        #: {(request, nodes): what `first` returns}
        self._first: dict[tuple[NodesAsked, int], int | None] = {}
        #: {nodes: what `stops` yields}
        self._stops: dict[int, list[tuple[int, SlurmJob]]] = {}

    def free_after(self, count: int) -> Free:
        """Return what is free after the first ``count`` jobs have ended.

        The caller must not change the result. Call it only if no jobs share CPUs.
        """
        found = self._free.get(count)
        if found is None:
            if len(self._free) >= _MOST_COPIES:
                self._free.clear()
            found = self._free[count] = Free(self.machine, None, copy=True)
            if count:
                held = self._held()
                end = int(held.begins[count]) if count < len(self.running) else len(held.nodes)
                for column in range(3):
                    freed = np.bincount(held.nodes[:end], held.amounts[:end, column], self.machine.count)
                    found.all[:, column] += freed.astype(np.int64)
                for place, job in self._holding_gres():
                    if place < count:
                        found.take_gres_away(job)
        return found

    def _holding_gres(self) -> list[tuple[int, SlurmJob]]:
        if self._with_gres is None:
            jobs = enumerate(self.running) if self.machine.any_gres else ()
            self._with_gres = [(place, job) for place, job in jobs if any(gres for _, _, gres in job.alloc.values())]
        return self._with_gres

    def _held(self) -> _Held:
        if self._flat is None:
            held = [holding(job) for job in self.running]
            lengths = [len(one.at) for one in held]
            self._flat = _Held(
                np.append(0, np.cumsum(lengths[:-1])).astype(np.intp),
                np.concatenate([one.at for one in held]),
                np.concatenate([one.amounts for one in held]),
            )
        return self._flat

    def _states(self) -> _Held:
        """Return what is free on each node now, and then on the nodes of each job after its end.

        ``begins`` has, for each of these, the number of ended jobs.
        """
        if self._past is None:
            machine = self.machine
            begins, nodes = np.zeros(machine.count, np.intp), np.arange(machine.count)
            states = machine.free
            if self.running:
                held = self._held()
                order = np.argsort(held.nodes, kind="stable")
                of_nodes = held.nodes[order]
                first = np.flatnonzero(np.append(True, of_nodes[1:] != of_nodes[:-1]))
                sums = held.amounts[order].cumsum(axis=0)
                before = np.zeros((len(first), 3), np.int64)
                before[1:] = sums[first[1:] - 1]
                lengths = np.diff(np.append(first, len(order)))
                after = np.empty_like(sums)
                after[order] = sums - np.repeat(before, lengths, axis=0) + machine.free[of_nodes]
                jobs = np.diff(np.append(held.begins, len(order)))
                begins = np.append(begins, np.repeat(np.arange(1, len(jobs) + 1), jobs))
                nodes, states = np.append(nodes, held.nodes), np.concatenate([states, after])
            self._past = _Held(begins, nodes, states)
        return self._past

    def opening(self, asked: NodesAsked, *, memory_counts: bool, by_core: bool, tree: bool) -> Opening | None:
        """Return from when on each node offers enough for a request; None if single nodes say too little.

        Args:
            memory_counts: whether memory is allocated.
            by_core: whether whole cores are allocated.
            tree: whether a job may be expected to start on more nodes than it asks for.
        """
        free_choice = bool(tree or asked.required or asked.max_nodes != asked.min_nodes)
        if free_choice and not (asked.whole or asked.gres or asked.mem_kind in ("node", "all")):
            return None
        found = self._openings.get(asked)
        if found is None:
            machine = self.machine
            places, nodes, states = self._states()
            most = max(1, int(machine.all_cpus.max()))
            each = 1 if free_choice else max(1, asked.cpus - (asked.min_nodes - 1) * most)
            kept = flags_of(asked.nodes, machine.count)[nodes]
            if asked.whole:
                kept &= states[:, 2] == 0
            places, nodes, states = places[kept], nodes[kept], states[kept]
            memory = states[:, 1] if memory_counts and asked.mem_kind else None
            all_cpus = machine.all_cpus[nodes] if asked.whole else states[:, 0]
            cpus, enough = usable_cpus(machine, asked, nodes, all_cpus, memory, by_core=by_core)
            enough &= cpus >= each
            least = max(asked.min_nodes, -(-asked.cpus // most))
            exact = not (free_choice or asked.gres) and (asked.min_nodes == 1 or each >= most)
            found = self._openings[asked] = self._opened(asked, nodes[enough], places[enough], least, exact=exact)
        return found

    def _opened(
        self, asked: NodesAsked, nodes: NDArray[np.intp], places: NDArray[np.intp], least: int, *, exact: bool
    ) -> Opening:
        """Return an `Opening`, given that each of the nodes offers enough CPUs and memory from its place on."""
        when = dict(zip(nodes[::-1].tolist(), places[::-1].tolist(), strict=True))
        if any(asked.gres.values()):
            gres = self._gres_from(asked)
            when = {node: max(place, gres[node]) for node, place in when.items() if node in gres}
        found: list[int] = []
        masks: list[int] = []
        mask = 0
        for place, node in sorted([(place, node) for node, place in when.items()]):
            mask |= 1 << node
            if found and found[-1] == place:
                masks[-1] = mask
            else:
                found.append(place)
                masks.append(mask)
        return Opening(found, masks, least, exact)

    def _gres_from(self, asked: NodesAsked) -> dict[int, int]:
        """Return {node: number of ended jobs} after which the node has enough free gres."""
        machine = self.machine
        free = {at: dict(machine.free_gres[at]) for at in np.flatnonzero(machine.has_gres).tolist()}
        found = {at: 0 for at, gres in free.items() if fits_gres(asked.gres, gres)}
        for place, job in self._holding_gres():
            for at, (_, _, gres) in job.alloc.items():
                if at in free and at not in found:
                    for name, count in gres.items():
                        free[at][name] += count
                    if fits_gres(asked.gres, free[at]):
                        found[at] = place + 1
        return found

    def first(
        self, asked: NodesAsked, usable: int, opening: Opening | None, enough: Callable[[Free], bool]
    ) -> int | None:
        """Return after how many ended jobs a request may fit on ``usable`` nodes; None: never.

        Before that, it certainly does not fit.

        Args:
            opening: the request's `Opening`, if it has one.
            enough: whether free resources may suffice. Once they do, they must do so at all later times.
        """
        key = (asked, usable)
        if key not in self._first:
            count = opening.first(usable) if opening is not None else 0
            exact = opening is not None and opening.exact
            if count is not None and not (exact or enough(self.free_after(count))):
                places = range(count + 1, len(self.running) + 1)
                more = bisect_left(places, 1, key=lambda one: int(enough(self.free_after(one))))
                count = places[more] if more < len(places) else None
            self._first[key] = count
        return self._first[key]

    def end_after(self, count: int) -> float:
        """Return the end of the limit (s) of the last of the first ``count`` jobs; -inf without any."""
        return self._ends[count - 1] if count else -inf

    def stops(self, usable: int, least: int = 0) -> Iterator[tuple[int, SlurmJob]]:
        """Yield the points at which an expected start is tested.

        Each point is (number of ended jobs, last ended job that held any of the ``usable`` nodes). Each test follows a
        group of jobs that end within one period. The period is 30 s at first and doubles before each test. Points with
        fewer than ``least`` ended jobs are left out.
        """
        found = self._stops.get(usable)
        if found is None:
            found = self._stops[usable] = list(self._all_stops(usable))
        for stop in found:
            if stop[0] >= least:
                yield stop

    def _all_stops(self, usable: int) -> Iterator[tuple[int, SlurmJob]]:
        ends, nodes = self._ends, self._nodes
        count = len(ends)
        at = 0
        while at < count and not nodes[at] & usable:
            at += 1
        if at == count:
            return
        window = 30
        end = ends[at] + window - ends[at] % window
        following = at
        while True:
            # A test waits for the last job that ends within the period, whatever its nodes.
            at = max(bisect_right(ends, end + window) - 1, following)
            while at < count and not nodes[at] & usable:
                at += 1
            if at == count:
                break
            following = at + 1
            window *= 2
            while following < count and ends[following] > end + window:
                window *= 2
            yield following, self.running[at]
        left = [at for at in range(following, count) if nodes[at] & usable]
        # After every _MOST_AWAY + 1 jobs, Slurm skips a test.
        if len(left) % (_MOST_AWAY + 1):
            yield count, self.running[left[-1]]
