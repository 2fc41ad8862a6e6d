"""The first waiting job's reservation on nodes that jobs share.

It decides which later jobs may start before the first.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.resources.shape import Takes
from pipistrelle.platforms.resources.shared_nodes import Amounts
from pipistrelle.schedulers.policy.ends_and_shadow import held_until
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.sharing.open_nodes import OpenNodes

#: a running job: expected end (s), number, and a third value that does not matter here
_Running = tuple[float, int, int]
#: number of running jobs to examine first, by expected end
_FIRST: Final = 64


class FirstReserved:
    """The reservation of the queue's first job on nodes that jobs share.

    Attributes:
        shadow: the earliest time (s) at which the job fits, if every running job takes its full walltime; inf: never.
        spare: upper bound of what the first job will leave free at that time on all nodes together, shape (resources +
            1,); the last number is for GPUs.
    """

    def __init__(self, nodes: OpenNodes, first: SchedulerJob) -> None:
        self._nodes = nodes
        self._view, self._shared = nodes.view, nodes.shared
        self._first, self._shape = first, nodes.shared.shape(first)
        #: the earliest time at which a running job can be expected to end (s)
        self._soonest = held_until(-inf, nodes.view.now)
        #: what is free at the shadow time beside the jobs that run or have passed, shape (nodes, columns)
        self._then: Amounts = self._shared.table()
        self.shadow = inf
        self._find()
        width = len(self._shared.nodes.resources)
        sums = self._then.sum(axis=0)
        self.spare: Amounts = np.append(sums[:width], sums[width:].sum()) - self._shape.total
        #: tasks of the first job that fit on each node then; None: to be computed
        self._most: Amounts | None = None
        self._rest: Amounts | None = None

    # -- when ----------------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        view, now = self._view, self._view.now
        if view.has_timed_windows:
            windows = view.windows
            held = ((windows.ends_at(job, now), job.number, 0) for job in view.running)
            running: Sequence[_Running] = sorted((one for one in held if one[0] < inf), key=itemgetter(0))
        else:
            by_end = view.running.by_end
            running = by_end[: bisect_left(by_end, (inf, -1, 0))]
        if view.has_timed_windows or self._shape.single is None or self._shape.request.licenses:
            self._search(running)
        else:
            self._walk(running)

    def _released(self, running: Sequence[_Running]) -> tuple[NDArray[np.float64], Amounts, Amounts]:
        """Return the times (s), nodes and amounts that running jobs release at their ends.

        Each array has a row per job and node.
        """
        rows = [self._shared.rows_of(number) for _, number, _ in running]
        if not rows:
            return np.zeros(0), np.zeros(0, dtype=np.int64), self._then[:0]
        counts = [len(nodes) for nodes, _ in rows]
        ends = np.maximum([end for end, _, _ in running], self._soonest)
        if len(counts) < sum(counts):
            ends = np.repeat(ends, counts)
        return ends, np.concatenate([nodes for nodes, _ in rows]), np.concatenate([some for _, some in rows])

    def _walk(self, running: Sequence[_Running]) -> None:
        """Find the shadow time of a first job that needs only one node.

        This is the first time at which some node has enough free.
        """
        shape, shared = self._shape, self._shared
        single = shape.single
        assert single is not None
        allowed = shared.open(self._view.shut(self._first, self._view.now))
        width = len(shared.nodes.resources)
        if shape.fitting(single, allowed, *shared.split(self._then)).any():
            self.shadow = self._view.now
            return
        at, count = 0, _FIRST
        while at < len(running):
            upto = min(at + count, len(running))
            while upto < len(running) and running[upto][0] <= max(running[upto - 1][0], self._soonest):
                upto += 1
            ends, nodes, taken = self._released(running[at:upto])
            # what each node has free after each of its releases
            order = np.argsort(nodes, kind="stable")
            of, level = nodes[order], np.cumsum(taken[order], axis=0)
            begins = np.flatnonzero(np.diff(of, prepend=-1))
            before = level[begins] - taken[order[begins]]
            level += np.repeat(self._then[of[begins]] - before, np.diff(begins, append=len(of)), axis=0)
            fits = allowed[of]
            for column, asked in enumerate(single.amounts):
                if asked:
                    fits = fits & (level[:, column] >= asked)
            if single.gpus:
                fits = fits & ((level[:, width:] >= single.share).sum(axis=1) >= single.gpus) & shape.able[of]
            if fits.any():
                self.shadow = float(ends[order[fits]].min())
                until = int(np.searchsorted(ends, self.shadow, side="right"))
                np.add.at(self._then, nodes[:until], taken[:until])
                return
            np.add.at(self._then, nodes, taken)
            at, count = upto, 2 * count

    def _search(self, running: Sequence[_Running]) -> None:
        """Find the shadow time of the first job, which may need several nodes.

        This is the first time of a release at which the job fits.
        """
        view, now, free = self._view, self._view.now, self._then
        timed = view.has_timed_windows
        ends, nodes, taken = self._released(running)
        times = sorted({now, *ends.tolist(), *(w.end for w in view.windows if now < w.end < inf)})

        def table_at(time: float) -> Amounts:
            until = int(np.searchsorted(ends, time, side="right"))
            table = free.copy()
            np.add.at(table, nodes[:until], taken[:until])
            return table

        self._then = table_at(inf)
        if timed:
            self.shadow = next((time for time in times if self._fits(table_at(time), time)), inf)
        elif self._fits(self._then, inf):  # without windows, more and more is free
            low, high = 0, len(times) - 1
            while low < high:
                middle = (low + high) // 2
                if self._fits(table_at(times[middle]), times[middle]):
                    high = middle
                else:
                    low = middle + 1
            self.shadow = times[low]
        if self.shadow < inf:
            self._then = table_at(self.shadow)

    def _fits(self, table: Amounts, time: float) -> bool:
        shape = self._shape
        if shape.request.licenses and self._short_of_licenses(shape.request.licenses, time):
            return False
        amounts, gpus = self._shared.split(table)
        most = np.where(self._allowed(time), shape.most_tasks(amounts, gpus), 0)
        return shape.can_choose(self._shared.by_weight, most, amounts, gpus)

    def _allowed(self, time: float) -> NDArray[np.bool_]:
        return self._shared.open(self._view.shut(self._first, time))

    def _short_of_licenses(self, wanted: Mapping[str, int], time: float) -> bool:
        """Return whether too few licences for the first job are free at ``time`` (s).

        The licences of all jobs that end by then count as free.
        """
        view, shared = self._view, self._shared
        free = dict(shared.free.licenses)
        for job in view.running:
            if held_until(view.windows.ends_at(job, view.now), view.now) <= time:
                for name, count in shared.shape(job).request.licenses.items():
                    free[name] += count
        return any(count > free.get(name, 0) for name, count in wanted.items())

    # -- who passes ----------------------------------------------------------------------------------------------------

    def beside(self, job: SchedulerJob, takes: Takes) -> Takes | None:
        """Return the tasks and GPUs of a job that may start and does not delay the first.

        Return None if the job must wait. This is for jobs that would end after the shadow time.

        Args:
            takes: the tasks and GPUs per node that ``job`` would get if there were no reservation.
        """
        if self._spares(job, takes):
            return takes
        rest = self._beside_first()
        if rest is None:
            return None
        found = self._nodes.pick(job, np.minimum(self._shared.table(), rest))
        return found if found is not None and self._spares(job, found) else None

    def passes(self, job: SchedulerJob, takes: Takes) -> None:
        """Record the start of a job that ends after the shadow time.

        Its tasks and GPUs per node, ``takes``, are then no longer free at the shadow time.
        """
        nodes, taken = self._shared.rows(job, takes)
        self._then[nodes] -= taken
        self.spare = self.spare - self._shared.shape(job).total
        self._most = self._rest = None

    def _fitting(self) -> Amounts:
        """Return how many tasks of the first job fit on each node at the shadow time.

        The result has shape (nodes,).
        """
        if self._most is None:
            amounts, gpus = self._shared.split(self._then)
            self._most = np.where(self._allowed(self.shadow), self._shape.most_tasks(amounts, gpus), 0)
        return self._most

    def _beside_first(self) -> Amounts | None:
        """Return the amounts that the first job leaves free at the shadow time.

        The result has shape (nodes, columns). Return None if the first job does not fit then.
        """
        if self._rest is None:
            kept = self._shape.choose(self._shared.by_weight, self._fitting(), *self._shared.split(self._then))
            if kept is None:
                return None
            nodes, taken = self._shared.rows(self._first, kept)
            self._rest = self._then.copy()
            self._rest[nodes] -= taken
        return self._rest

    def _spares(self, job: SchedulerJob, takes: Takes) -> bool:
        shared, shape = self._shared, self._shape
        wanted, first_wants = shared.shape(job).request.licenses, shape.request.licenses
        both = {name: wanted.get(name, 0) + count for name, count in first_wants.items()}
        if both and self._short_of_licenses(both, self.shadow):
            return False
        nodes, taken = shared.rows(job, takes)
        left = self._then[nodes] - taken
        if (left < 0).any():
            return False
        if first_wants and self._short_of_licenses(first_wants, self.shadow):
            return False
        most = self._fitting().copy()
        most[nodes] = np.where(most[nodes] > 0, shape.most_tasks(*shared.split(left), among=nodes), 0)
        table = self._then
        if shape.request.gpus:
            table = table.copy()
            table[nodes] = left
        return shape.can_choose(shared.by_weight, most, *shared.split(table))
