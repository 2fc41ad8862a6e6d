"""Which units are free, which are taken: the only place where that changes."""

from collections.abc import Iterable

from pipistrelle.protocol.fields import RejectionCode
from pipistrelle.protocol.intervals import FreeUnits
from pipistrelle.protocol.nodesets import NodeSet, NodeSetError
from pipistrelle.server.jobs import Job


class IllegalAllocation(Exception):
    """An allocation that cannot be made: a code of the protocol and a text."""

    def __init__(self, code: RejectionCode, message: str) -> None:
        self.code: RejectionCode = code
        super().__init__(message)


class Ledger:
    """The machine's units, numbered 0 to ``units`` - 1, each free or held by one job."""

    __slots__ = ("_free", "units")

    def __init__(self, units: int) -> None:
        self.units = units
        self._free = FreeUnits(NodeSet.interval(0, units - 1))

    @property
    def idle(self) -> int:
        """Number of free units."""
        return self._free.count

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
        if len(alloc) != job.size:
            raise IllegalAllocation(
                "wrong_size", f"{job.id} needs {job.size} units, 'alloc' has {len(alloc)}: '{text}'"
            )
        if alloc.last >= self.units:
            raise IllegalAllocation(
                "unknown_unit", f"'alloc' of {job.id} names unit {alloc.last}; the machine has 0-{self.units - 1}"
            )
        try:
            self._free.remove(alloc)
        except ValueError:
            busy = self._free.missing(alloc)
            raise IllegalAllocation("busy_unit", f"'alloc' of {job.id} names units that are taken: {busy}") from None
        return alloc

    def give_back(self, job: Job) -> None:
        """Free the units of a job that has ended."""
        self._free.add(job.alloc)

    def check_invariants(self, running: Iterable[Job]) -> None:
        """Assert that free units and the running jobs' units together are the machine, each unit once."""
        self._free.check_invariants()
        total = self._free.snapshot()
        for job in running:
            assert len(job.alloc) == job.size, f"{job.id} holds {job.alloc}, its size is {job.size}"
            assert total.isdisjoint(job.alloc), f"{job.id} holds units that are free or another's: {job.alloc}"
            total |= job.alloc
        assert total == NodeSet.interval(0, self.units - 1), f"units are missing or too many: {total}"
