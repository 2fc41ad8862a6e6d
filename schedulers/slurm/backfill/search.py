"""Search for a job's earliest start between running jobs and reservations."""

from collections.abc import Hashable
from functools import reduce
from math import inf
from operator import or_
from typing import Final

from pipistrelle.schedulers.slurm.backfill.memory import Found, Memory
from pipistrelle.schedulers.slurm.backfill.space import Space
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.nodes.asked import Chosen, NodesAsked
from pipistrelle.schedulers.slurm.passes.controller import Controller

#: how long Slurm assumes that a limit holds a job if no nodes open before (s)
_HELD: Final = 500
#: the requests of a job, its time limit (s) and its excluded nodes
Shape = tuple[object, ...]


class Search:
    """Searches for starts in one pass; equal searches are made once.

    Args:
        usable: set of the nodes that are not down.
        memory: results of this pass and of earlier ones.
    """

    def __init__(self, controller: Controller, now: int, space: Space, usable: int, memory: Memory) -> None:
        self.controller = controller
        self.now = now
        self.space = space
        self.usable = usable
        self.memory = memory
        #: requests that can no longer start in this pass
        self._closed: set[Shape] = set()

    def may_start(self, job: SlurmJob, part: int, limit: int) -> bool:
        """Return whether a job might start in this pass.

        False means that the job certainly cannot start.

        Args:
            limit: the job's time limit (s) in this partition.
        """
        controller = self.controller
        one = controller.machine.partitions[part]
        asked = controller.requests.asked(job, one, self.now)
        shape = (*asked, limit, job.excluded)
        if shape in self._closed:
            return False
        known = self.memory.recall(shape)
        if known is None:
            known = self._may_start(job, one.mask, limit, asked, shape)
        if not known:
            self._closed.add(shape)
        return bool(known)

    def _may_start(self, job: SlurmJob, mask: int, limit: int, asked: list[NodesAsked], shape: Shape) -> bool:
        selector = self.controller.selector
        self.space.until = inf
        result = False
        if any(selector.may_fit(way, self.usable) for way in asked):
            start, nodes, fewer = self._open_now(job, mask, limit)
            if start <= self.now and nodes.bit_count() >= job.min_nodes:
                result = any(selector.may_fit(way, nodes) for way in asked)
                if result:
                    self.space.until = min(self.space.until, fewer)
        self.memory.keep(result, self.space.until, shape)
        return result

    def find(self, job: SlurmJob, part: int, limit: int, now_only: bool) -> Found:
        """Return a job's earliest start in a partition.

        Args:
            limit: the job's time limit (s) in this partition.
            now_only: whether to search only for a start now. If there is none, the result may be a later start.
        """
        controller = self.controller
        one = controller.machine.partitions[part]
        asked = controller.requests.asked(job, one, self.now)
        preempts = controller.preemption.may_preempt(job, part, controller.running_jobs())
        if preempts:
            self.memory.leave_out()
            return self._find(job, part, limit, asked, now_only, preempts=preempts)
        nodes = reduce(or_, [way.nodes for way in asked])
        before = controller.selector.left(nodes)
        shape = (*asked, limit, job.excluded, now_only, before)
        known: tuple[Found, Hashable] | None = self.memory.recall(shape)
        if known is None:
            self.space.until = inf
            found = self._find(job, part, limit, asked, now_only)
            until = self.space.until if found.start is None else min(self.space.until, found.start)
            self.memory.keep((found, controller.selector.left(nodes)), until, shape)
            return found
        found, left = known
        if left != before:
            controller.selector.leave(nodes, left)
        return found

    def _find(
        self,
        job: SlurmJob,
        part: int,
        limit: int,
        asked: list[NodesAsked],
        now_only: bool,
        *,
        every: bool = False,
        preempts: bool = False,
        begin: int = 0,
    ) -> Found:
        """Search for a start, at every time at which nodes open or only where it matters.

        Args:
            every: try every time at which nodes open, even if the job certainly cannot start then.
            preempts: whether the job may preempt others.
            begin: the first time to try (s), if it is after now.
        """
        now, space = self.now, self.space
        mask = self.controller.machine.partitions[part].mask
        selector, running = self.controller.selector, self.controller.running_jobs()
        # With preemption, a start may come before the ends of the running jobs.
        skips = not (now_only or preempts or every)
        later, tested, delayed = max(now, begin), False, False
        first = -inf
        if skips and not self.controller.reservations.all:
            nodes = mask & self.usable & ~job.excluded
            first = min(selector.soonest(way, nodes, running) for way in asked)
        skipped = passed = False
        chosen: Chosen | None = None
        while True:
            if later < first:
                at = space.skip(later, limit, nodes, first)
                skipped, later = skipped or at != later, at
            start_at, open_nodes, later = self._open(job, mask, later, limit)
            found = None
            if open_nodes.bit_count() >= job.min_nodes and not job.required & ~open_nodes:
                tested = True
                if skips and later and all(selector.starts_later(way, open_nodes, running, later) for way in asked):
                    passed = True
                    continue
                found = self._when(job, part, asked, open_nodes, now_only, preempts)
            if found is None:
                if later and not now_only:
                    continue
                # Perhaps it was tested at one of the skipped times, or the CPUs of the last test matter.
                if (skipped and not tested) or ((skipped or passed) and not all(map(selector.is_plain, asked))):
                    return self._find(job, part, limit, asked, now_only, every=True)
                return Found(tested, delayed, chosen)
            start, chosen = found
            if start_at > start:
                start, delayed = start_at, True
            if start <= now and chosen.nodes & self.controller.machine.completing:
                start, later = now + 1, 0
                space.until = now
            if start <= now or now_only:
                return Found(tested, delayed, chosen, start, open_nodes)
            if later and start > later:
                continue
            if start > now + space.window:
                space.until = min(space.until, start - space.window)
                return Found(tested, delayed, chosen, start)
            if not space.overlaps(space.rounded(start), space.rounded(start + limit), chosen.nodes):
                return Found(tested, delayed, chosen, start)
            later = start

    def find_held(self, job: SlurmJob, part: int, limit: int, chosen: Chosen) -> Found:
        """Return the start of a job that fits now but that a limit holds, with ``assoc_limit_stop``.

        Slurm assumes that the job starts when more nodes open, or else in 500 s, and searches from then on if its nodes
        are reserved then.
        """
        space = self.space
        _, _, later = self._open(job, self.controller.machine.partitions[part].mask, self.now, limit)
        start = later or self.now + _HELD
        rounded = space.rounded(start), space.rounded(start + limit)
        if start > self.now + space.window or not space.overlaps(*rounded, chosen.nodes):
            return Found(True, True, chosen, start)
        asked = self.controller.requests.asked(job, self.controller.machine.partitions[part], self.now)
        return self._find(job, part, limit, asked, False, every=True, begin=start)

    def _open_now(self, job: SlurmJob, nodes: int, limit: int) -> tuple[int, int, float]:
        """Return when a job could start, on which nodes, and until when this holds.

        The nodes are free for the job's time limit from the start on. After the third value, fewer nodes may be free.
        Times are in s.
        """
        open_nodes, _, when = self.controller.reservations.open_nodes(job, self.now, limit)
        nodes &= open_nodes & self.usable & ~job.excluded
        return when, *self.space.open_now(limit, nodes)

    def _open(self, job: SlurmJob, nodes: int, when: int, limit: int) -> tuple[int, int, int]:
        """Return when to test a job, which nodes it may use then, and when to try next.

        Returns (start to test (s), bit mask of the nodes free from then on for the job's time limit, next start to
        test (s)).
        """
        reservations = self.controller.reservations
        open_nodes, overlap, when = reservations.open_nodes(job, when, limit)
        nodes &= open_nodes & self.usable & ~job.excluded
        nodes, later = self.space.open_between(when, limit, nodes)
        if overlap:
            end = reservations.next_end(when)
            if end and end + 1 < self.now + self.space.window and (not later or end + 1 < later):
                later = end + 1
        return when, nodes, later

    def _when(
        self, job: SlurmJob, part: int, asked: list[NodesAsked], nodes: int, now_only: bool, preempts: bool
    ) -> tuple[int, Chosen] | None:
        """Return a job's earliest start (s) and its allocation; None if it never fits.

        The start is now if the job fits after preempting other jobs. With ``now_only``, later starts are not tried.
        """
        controller, now = self.controller, self.now
        selector = controller.selector
        best: tuple[int, Chosen] | None = None
        for way in asked if now_only or preempts else ():  # else `expected` tests it, too
            alloc = selector.now(way, nodes)
            if alloc is not None:
                return now, Chosen.of(alloc)
        running = controller.running_jobs()
        candidates = controller.preemption.candidates(job, part, running, now) if preempts else []
        if candidates:
            for way in asked:
                alloc = selector.without(way, nodes, candidates)
                if alloc is not None:
                    return now, Chosen.of(alloc)
            gone = {one.serial for one in candidates}
            running = [one for one in running if one.serial not in gone]
        if now_only:
            return None
        for way in asked:
            found = selector.expected(way, nodes, running, now, candidates)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        return best
