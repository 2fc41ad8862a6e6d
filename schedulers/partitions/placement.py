"""The placement that keeps jobs in their partitions, and picks among their units as another one does."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import Partition, RankedClass, first_partition, level_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.interfaces import Placement, learn
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class PartitionOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """What there is to set of partitions by reliability.

    Parameters
    ----------
    classes
        of jobs; or ``auto``: powers of two, with the rates and times of the jobs that the scheduler has seen.
    blocking
        B: partitions have (1 - B) n lambda t units.
    admission
        ``queue``: jobs wait for their partition (type IV); ``block``: who cannot start at once is refused (type I).
    """

    classes: tuple[RankedClass, ...] | Literal["auto"] = "auto"
    blocking: Annotated[float, Meta(ge=0, le=1)] = 0.0
    admission: Literal["queue", "block"] = "queue"


class ByPartition:
    """A job's units are of one partition: its class's own, or the next above that has room, never one below.

    A class that has no partition begins at the lowest. Jobs that no partition from there upwards could ever hold take
    from the whole machine, the most reliable partitions first.

    Parameters
    ----------
    inner
        picks among the units of a partition.
    """

    fits_by_count = False
    takes_requests: Literal[True] = True

    def __init__(self, inner: Placement) -> None:
        self._inner = inner
        self._classes: tuple[RankedClass, ...] = ()
        #: the most reliable first
        self.parts: Sequence[Partition] = ()
        #: {job's number: place of the first partition, None: the whole machine}
        self._begins: dict[int, int | None] = {}

    def learn(self, machine: Machine) -> None:
        """Let the other placement take note of the machine; PipistrelleError if it has not what that asks for."""
        learn(self._inner, machine)

    def divide(self, classes: tuple[RankedClass, ...], parts: Sequence[Partition]) -> None:
        """Use these partitions from now on; none: the whole machine is one."""
        self._classes, self.parts, self._begins = classes, parts, {}

    def assign(self, job: SchedulerJob, units: NodeSet, machine: Machine) -> None:
        """Choose the partition that a job begins at; ``units`` are those that it may have at all."""
        self._begins[job.number] = self._begin(job, units, machine)

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return units of the first partition that has enough of them, None if none has."""
        if job.number not in self._begins:
            self.assign(job, machine.all_units, machine)
        place = self._begins[job.number]
        if place is None:
            return self._from_all(job, open_units, machine)
        for at in range(place, -1, -1):
            if (found := self._within(job, open_units & self.parts[at].units, machine)) is not None:
                return found
        return None

    def _within(self, job: SchedulerJob, units: NodeSet, machine: Machine) -> NodeSet | None:
        return picked(self._inner, job, units, machine) if len(units) >= job.size else None

    def _from_all(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return units of as few partitions as have enough, from the most reliable on; the extra ones come last."""
        units = NodeSet.EMPTY
        for part in self.parts:
            units |= open_units & part.units
            if (found := self._within(job, units, machine)) is not None:
                return found
        return self._within(job, open_units, machine)

    def _begin(self, job: SchedulerJob, units: NodeSet, machine: Machine) -> int | None:
        """Return the place of the partition that a job begins at, None if it takes from the whole machine.

        It takes from there, too, if the other placement finds no units for it in any partition that it may go to.
        """
        place: int | None = None
        target = target_of(job)
        if self.parts and target is not None:
            place = min(target, len(self.parts)) - 1
        elif self.parts:
            fitting = [(one.size, at) for at, one in enumerate(self._classes) if one.size >= job.size]
            place = first_partition(self.parts, min(fitting)[1], job.size) if fitting else None
        if place is None:
            return None
        allowed = (units & part.units for part in reversed(self.parts[: place + 1]))
        return place if any(self._within(job, some, machine) is not None for some in allowed) else None


def target_of(job: SchedulerJob) -> int | None:
    """Return the partition that a job itself names, 1 the most reliable, as Haizea's leases do; None if it does not."""
    return None if job.description is None else level_of(job.description.qos or "")
