"""A record of units, like `Ledger`, in which several jobs may share a unit."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.ledger import Ledger, may_have


class SharedLedger(Ledger):
    """Units that can each run several jobs.

    ``idle`` counts unblocked units without jobs.
    """

    __slots__ = ("_jobs",)

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self._jobs = np.zeros(units, np.int32)

    def take(self, job: Job, text: str, takes: Sequence[NodeTake] = ()) -> NodeSet:
        """Assign units to a job; like `Ledger.take`, but units may already have jobs."""
        alloc = super().take(job, text, takes)
        # In the base class's bytes, only blocked units stay marked.
        self.idle += len(alloc)
        for low, high in alloc.intervals:
            self._held[low : high + 1] = bytes(high + 1 - low)
        self._occupy(alloc)
        return alloc

    def _occupy(self, alloc: NodeSet) -> None:
        """Count one more job on each unit."""
        for low, high in alloc.intervals:
            jobs = self._jobs[low : high + 1]
            self.idle -= int(np.count_nonzero(jobs == 0))
            jobs += 1

    def give_back(self, job: Job) -> None:
        """Free an ended job's units."""
        for low, high in job.alloc.intervals:
            self._jobs[low : high + 1] -= 1
        available = job.alloc - self.blocked
        self.idle += len(available) - self._used(available)

    def idle_in(self, units: NodeSet) -> int:
        """Return how many of these units are in service and have no job."""
        available = units - self.blocked
        return len(available) - self._used(available)

    def is_used(self, units: NodeSet) -> bool:
        """Return whether jobs run on some of these units."""
        return self._used(units) > 0

    def block(self, units: NodeSet) -> None:
        """Allow no job to start on these units until `unblock`."""
        new = units - self.blocked
        super().block(new)
        self.idle += self._used(new)

    def unblock(self, units: NodeSet) -> None:
        """Allow jobs to start on these units again."""
        old = units & self.blocked
        super().unblock(old)
        self.idle -= self._used(old)

    def state(self) -> dict[str, Any]:
        """Return the state of the ledger as plain values, for a snapshot."""
        return {**super().state(), "jobs": self._jobs.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the ledger from a saved state."""
        super().restore(state)
        self._jobs = np.array(state["jobs"], np.int32)

    def _used(self, units: NodeSet) -> int:
        return sum(int(np.count_nonzero(self._jobs[low : high + 1])) for low, high in units.intervals)

    def check_invariants(self, running: Iterable[Job]) -> None:
        """Assert that each unit's number of jobs agrees with the running jobs."""
        jobs = np.zeros(self.units, np.int32)
        for job in running:
            assert may_have(job, len(job.alloc)), f"{job.id} holds {job.alloc}, its size is {job.size}"
            for unit in job.alloc:
                jobs[unit] += 1
        wrong = np.flatnonzero(jobs != self._jobs).tolist()
        assert not wrong, f"units have wrong counts of jobs: {NodeSet.of(wrong)}"
        free = NodeSet.of(np.flatnonzero(jobs == 0).tolist()) - self.blocked
        assert len(free) == self.idle, f"{len(free)} units are free, {self.idle} are counted"
        marked = NodeSet.of(unit for unit, held in enumerate(self._held) if held)
        assert marked == self.blocked, f"marked and blocked units differ: {marked}"
