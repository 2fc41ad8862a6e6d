"""The record of units: which are free, held or blocked.

Only this module changes it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.indices import drop_numbers, kept_numbers
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.errors import Illegal
from pipistrelle.traces.profiles import Composed, ParallelHomogeneousTotal, Profile

_NONE: Final = NodeSet.EMPTY
#: with more intervals than this, one array operation is faster than one call per interval
_FEW: Final = 6
#: except if the intervals have more units than this on average
_WIDE: Final = 64


@mypyc_attr(allow_interpreted_subclasses=True)
class Ledger:
    """The record of which units are free, held by one job, or blocked.

    Units have the numbers 0 to ``units`` - 1. Each unit has one byte, which is 1 if no job can get the unit. Testing
    or setting an interval is one call, whatever its length.
    """

    __slots__ = ("_at", "_held", "_held_blocked", "blocked", "changed", "idle", "units")

    #: whether jobs take parts of nodes, see `pipistrelle.server.hosts.node_ledger`
    shares_nodes: ClassVar[bool] = False
    #: one byte per unit
    _held: bytearray
    #: the same bytes as an array, shape (units,)
    _at: NDArray[np.uint8]

    def __init__(self, units: int) -> None:
        self.units = units
        self.idle = units
        #: whether the free part of any unit has changed, even if ``idle`` has not; the engine resets it
        self.changed = False
        #: units on which no job can start; running jobs continue there
        self.blocked = _NONE
        self._hold_nothing()
        self._held_blocked = _NONE

    def _hold_nothing(self) -> None:
        self._held = bytearray(self.units)
        self._at = np.frombuffer(self._held, np.uint8)

    def take(self, job: Job, text: str, takes: Sequence[NodeTake] = ()) -> NodeSet:
        """Allocate the units written in ``text`` to a job and return them.

        ``takes`` must be empty: only nodes with resources can be shared.

        Raises:
            Illegal: the text is not a set of units, its size differs from the job's (see `may_have`), or it names
                units that do not exist, are taken or blocked. The ledger is then unchanged.
        """
        if takes:
            raise Illegal("wrong_resources", f"{job.id} has 'takes', but this machine's nodes have no resources")
        try:
            alloc = NodeSet.parse(text)
        except NodeSetError as error:
            raise Illegal("bad_allocation", f"'alloc' of {job.id} is no set of units: {error}") from None
        size = alloc.count
        if size != job.size and not may_have(job, size):
            needs = f"{job.size} to {job.most}" if job.most > job.size else str(job.size)
            raise Illegal("wrong_size", f"{job.id} needs {needs} units, 'alloc' has {size}: '{text}'")
        places = alloc.numbered  # a numbered set may have no intervals yet
        last = alloc.intervals[-1][1] if places is None else places[-1]
        if last >= self.units:
            raise Illegal("unknown_unit", f"'alloc' of {job.id} names unit {last}; the machine has 0-{self.units - 1}")
        if places is None and (len(intervals := alloc.intervals) <= _FEW or size > _WIDE * len(intervals)):
            held = self._held
            for low, high in intervals:
                if held.find(1, low, high + 1) >= 0:
                    raise self._busy(job, alloc)
            for low, high in intervals:
                held[low : high + 1] = b"\1" * (high + 1 - low)
        else:
            places = kept_numbers(alloc)
            if self._at[places].any():
                raise self._busy(job, alloc)
            self._at[places] = 1
        self.idle -= size
        return alloc

    def give_back(self, job: Job) -> None:
        """Free the units of a job that has ended, except blocked units."""
        alloc = job.alloc
        if self.blocked is not _NONE:
            self._held_blocked -= alloc
            alloc -= self.blocked
        places = alloc.numbered
        if places is None and (len(alloc.intervals) <= _FEW or alloc.count > _WIDE * len(alloc.intervals)):
            held = self._held
            for low, high in alloc.intervals:
                held[low : high + 1] = bytes(high + 1 - low)
        else:
            self._at[kept_numbers(alloc)] = 0
            drop_numbers(alloc)
        if alloc is not job.alloc:
            drop_numbers(job.alloc)
        self.idle += alloc.count

    def idle_in(self, units: NodeSet) -> int:
        """Return how many of these units are free."""
        held = self._held
        return sum(held.count(0, low, high + 1) for low, high in units.intervals)

    def resources_of(self, job: JobDescription, allowed: NodeSet | None) -> Request | None:
        """Return the request of a registered job on nodes with resources.

        The result is None on other machines.

        Args:
            allowed: the nodes that the job may use; None: all.

        Raises:
            Illegal: the job never fits, or it has a request on a machine whose nodes have no resources.
        """
        if job.request is not None:
            raise Illegal("wrong_resources", f"{job.id} has a 'request', but this machine's nodes have no resources")
        return None

    def told_takes(self, job: Job) -> tuple[NodeTake, ...]:
        """Return a job's tasks and GPUs per node, as in EXECUTE_JOB.

        The result is empty if jobs get whole units.
        """
        return ()

    def is_used(self, units: NodeSet) -> bool:
        """Return whether a job runs on one of these units."""
        if not self._held_blocked.isdisjoint(units):
            return True
        return any(self._held.find(1, low, high + 1) >= 0 for low, high in (units - self.blocked).intervals)

    def block(self, units: NodeSet) -> None:
        """Prevent jobs from starting on these units until they are unblocked."""
        new = units - self.blocked
        held = self._held
        busy: list[int] = []
        for low, high in new.intervals:
            busy += [unit for unit in range(low, high + 1) if held[unit]]
            held[low : high + 1] = b"\1" * (high + 1 - low)
        self.blocked |= new
        self._held_blocked |= NodeSet.of(busy)
        self.idle -= len(new) - len(busy)

    def unblock(self, units: NodeSet) -> None:
        """Allow jobs to start on these units again.

        Units that jobs still hold become free later.
        """
        old = units & self.blocked
        free = old - self._held_blocked
        for low, high in free.intervals:
            self._held[low : high + 1] = bytes(high + 1 - low)
        self.blocked = self.blocked - old or _NONE
        self._held_blocked -= old
        self.idle += len(free)

    def state(self) -> dict[str, Any]:
        """Return the ledger's state as JSON values, for a snapshot."""
        marked = NodeSet.of(np.flatnonzero(self._at).tolist())
        blocked, held_blocked = str(self.blocked), str(self._held_blocked)
        return {"idle": self.idle, "marked": str(marked), "blocked": blocked, "held_blocked": held_blocked}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the ledger from a snapshot."""
        self.idle = state["idle"]
        self._hold_nothing()
        for low, high in NodeSet.parse(state["marked"]).intervals:
            self._held[low : high + 1] = b"\1" * (high + 1 - low)
        self.blocked = NodeSet.parse(state["blocked"]) or _NONE
        self._held_blocked = NodeSet.parse(state["held_blocked"])

    def _busy(self, job: Job, alloc: NodeSet) -> Illegal:
        blocked = alloc & self.blocked
        if blocked:
            text = f"'alloc' of {job.id} names units that are down, switched off, switching or unavailable: {blocked}"
        else:
            text = f"'alloc' of {job.id} names units that are taken: {alloc - self._free()}"
        return Illegal("busy_unit", text)

    def _free(self) -> NodeSet:
        return NodeSet.of(np.flatnonzero(self._at == 0).tolist())

    def check_invariants(self, running: Iterable[Job]) -> None:
        """Assert that each unit is free, blocked or held by at most one job."""
        total = self._free()
        assert len(total) == self.idle, f"{len(total)} units are free, {self.idle} are counted"
        assert total.isdisjoint(self.blocked), f"units are free and blocked: {total & self.blocked}"
        held = _NONE
        for job in running:
            assert may_have(job, len(job.alloc)), f"{job.id} holds {job.alloc}, its size is {job.size}"
            assert total.isdisjoint(job.alloc), f"{job.id} holds units that are free or another's: {job.alloc}"
            assert held.isdisjoint(job.alloc), f"{job.id} holds units that are free or another's: {job.alloc}"
            held |= job.alloc
        assert held & self.blocked == self._held_blocked, f"of the blocked units, jobs hold {held & self.blocked}"
        total |= held
        total |= self.blocked - held
        assert total == NodeSet.interval(0, self.units - 1), f"units are missing or too many: {total}"


def may_have(job: Job, size: int) -> bool:
    """Return whether a job may get this number of units.

    A job whose submission names a range (``sbatch -N 2-3``) may get any number of it. As in Batsim, any number is
    allowed if the decision maps the job's executors to hosts. It is also allowed if the job's work is a total amount
    that is spread over all its units, or a sequence of such amounts.
    """
    if not size or job.admits(size):
        return size > 0
    work = job.work
    parts: tuple[Profile | None, ...] = work.seq if isinstance(work, Composed) else (work,)
    return job.mapping is not None or all(isinstance(part, ParallelHomogeneousTotal) for part in parts)
