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
from pipistrelle.schedulers.slurm.nodes.shares import Free, holding

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


class Timeline:
    """Running jobs, sorted by the end of their time limits.

    Attributes:
        running: the jobs; the caller never changes the list.
    """

    def __init__(self, machine: SlurmMachine, running: Sequence[SlurmJob]) -> None:
        self.machine = machine
        self.running = running
        self._ends = [job.limit_end for job in running]
        self._flat: _Held | None = None
        #: {n: what is free after the first n jobs}
        self._free: dict[int, Free] = {}
        #: {(request, nodes): what `soonest` returns}
        self._soonest: dict[tuple[NodesAsked, int], float] = {}

    def free_at(self, time: float) -> Free:
        """Return what is free at ``time`` (s) if all running jobs end at their limits."""
        return self.free_after(bisect_right(self._ends, time))

    def free_after(self, count: int) -> Free:
        """Return what is free after the first ``count`` jobs have ended.

        The caller must not change the result.

        Call it only if nodes have no gres and no jobs share CPUs.
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
        return found

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

    def soonest(self, asked: NodesAsked, usable: int, enough: Callable[[Free], bool]) -> float:
        """Return the first time (s) at which the free resources pass the test ``enough``.

        Running jobs are assumed to end at their limits.

        Return -inf if they pass it now, and inf if they never do. Once they pass it, they must do so at all later
        times.

        Args:
            asked, usable: a request and the set of nodes on which ``enough`` depends.
        """
        found = self._soonest.get((asked, usable))
        if found is None:
            count = bisect_left(range(len(self.running)), 1, key=lambda one: int(enough(self.free_after(one))))
            if count < len(self.running) or enough(self.free_after(count)):
                found = self._ends[count - 1] if count else -inf
            else:
                found = inf
            self._soonest[asked, usable] = found
        return found

    def stops(self, usable: int, need: int = 0) -> Iterator[tuple[int, int, SlurmJob]]:
        """Yield the points at which an expected start is tested.

        Each point is (number of ended jobs that held any of the ``usable`` nodes, number of all ended jobs, last ended
        job). Each test follows a group of jobs that end within one period. The period is 30 s at first and doubles
        before each test. Points at which fewer than ``need`` CPUs have become free are left out.
        """
        running, ends = self.running, self._ends
        if not running:
            return
        held = self._held()
        flags = flags_of(usable, self.machine.count)[held.nodes]
        on = np.flatnonzero(np.logical_or.reduceat(flags, held.begins))
        if not len(on):
            return
        freed = np.add.reduceat(held.amounts[:, 0] * flags, held.begins)[on].cumsum().tolist()
        places = on.tolist()
        window = 30
        end = ends[places[0]] + window - ends[places[0]] % window
        gone = 0
        while gone < len(places):
            # A test waits for the last job that ends within the period, whatever its nodes.
            at = bisect_left(places, bisect_right(ends, end + window) - 1, gone)
            if at == len(places):
                break
            gone = at + 1
            place = places[at] + 1
            window *= 2
            while place < len(ends) and ends[place] > end + window:
                window *= 2
            if freed[at] >= need:
                yield gone, place, running[place - 1]
        # After every _MOST_AWAY + 1 jobs, Slurm skips a test.
        if (len(places) - gone) % (_MOST_AWAY + 1) and freed[-1] >= need:
            yield len(places), len(running), running[places[-1]]
