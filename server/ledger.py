"""Which units are free, which are taken: the only place where that changes."""

from collections.abc import Iterable

from pipistrelle.protocol.fields import RejectionCode
from pipistrelle.protocol.nodeset_text import NodeSetError
from pipistrelle.protocol.nodesets import NodeSet
from pipistrelle.server.jobs import Job


class IllegalAllocation(Exception):
    """An allocation that cannot be made: a code of the protocol and a text."""

    def __init__(self, code: RejectionCode, message: str) -> None:
        self.code: RejectionCode = code
        super().__init__(message)


class Ledger:
    """The machine's units, numbered 0 to ``units`` - 1, each free or held by one job.

    One byte a unit, 1 if it is held: looking at an interval and changing it are one call each, whatever its length.
    """

    __slots__ = ("_held", "idle", "units")

    def __init__(self, units: int) -> None:
        self.units = units
        #: number of free units
        self.idle = units
        self._held = bytearray(units)

    def take(self, job: Job, text: str) -> NodeSet:
        """Give the units written in ``text`` to a job and return them.

        Raises
        ------
        IllegalAllocation
            when the text is not a set of units, has another size than the job, or names units that do not exist or
            are taken; nothing is changed then.
        """
        try:
            alloc = NodeSet.parse(text)
        except NodeSetError as error:
            raise IllegalAllocation("bad_allocation", f"'alloc' of {job.id} is no set of units: {error}") from None
        size = len(alloc)
        if size != job.size:
            raise IllegalAllocation("wrong_size", f"{job.id} needs {job.size} units, 'alloc' has {size}: '{text}'")
        intervals = alloc.intervals
        if intervals[-1][1] >= self.units:
            raise IllegalAllocation(
                "unknown_unit", f"'alloc' of {job.id} names unit {alloc.last}; the machine has 0-{self.units - 1}"
            )
        held = self._held
        for low, high in intervals:
            if held.find(1, low, high + 1) >= 0:
                raise IllegalAllocation(
                    "busy_unit", f"'alloc' of {job.id} names units that are taken: {alloc - self._free()}"
                )
        for low, high in intervals:
            held[low : high + 1] = b"\1" * (high + 1 - low)
        self.idle -= size
        return alloc

    def give_back(self, job: Job) -> None:
        """Free the units of a job that has ended."""
        held = self._held
        for low, high in job.alloc.intervals:
            held[low : high + 1] = bytes(high + 1 - low)
        self.idle += len(job.alloc)

    def _free(self) -> NodeSet:
        return NodeSet.of(unit for unit, held in enumerate(self._held) if not held)

    def check_invariants(self, running: Iterable[Job]) -> None:
        """Assert that free units and the running jobs' units together are the machine, each unit once."""
        total = self._free()
        assert len(total) == self.idle, f"{len(total)} units are free, {self.idle} are counted"
        for job in running:
            assert len(job.alloc) == job.size, f"{job.id} holds {job.alloc}, its size is {job.size}"
            assert total.isdisjoint(job.alloc), f"{job.id} holds units that are free or another's: {job.alloc}"
            total |= job.alloc
        assert total == NodeSet.interval(0, self.units - 1), f"units are missing or too many: {total}"
