"""A placement that restricts each job to a partition of nodes.

Another placement picks the units within the partition.
"""

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
    """Options of partitions by reliability.

    Attributes:
        classes: classes of jobs. ``auto`` makes one class per power of two of the job size, with the arrival rates and
            runtimes of the jobs seen so far.
        blocking: B, from 0 to 1. A partition has (1 - B) times the mean number of units that its class uses.
        admission: with ``queue``, jobs wait for their partition; with ``block``, jobs that cannot start at once are
            rejected. docs/explanation/papers.md calls these policies type IV and type I.
    """

    classes: tuple[RankedClass, ...] | Literal["auto"] = "auto"
    blocking: Annotated[float, Meta(ge=0, le=1)] = 0.0
    admission: Literal["queue", "block"] = "queue"


class ByPartition:
    """A placement that keeps each job within its own partition of nodes.

    If this partition is full, a more reliable one is used. Jobs of a class without a partition try the least reliable
    partition first. A job that fits no allowed partition uses the whole machine, most reliable partitions first.

    Args:
        inner: picks units within a partition.
    """

    fits_by_count = False
    takes_requests: Literal[True] = True

    def __init__(self, inner: Placement) -> None:
        self._inner = inner
        self._classes: tuple[RankedClass, ...] = ()
        #: the partitions, most reliable first
        self.parts: Sequence[Partition] = ()
        #: {job's number: index of its first partition; None: the whole machine}
        self._begins: dict[int, int | None] = {}

    def learn(self, machine: Machine) -> None:
        """Pass the machine to the inner placement.

        Raises:
            PipistrelleError: the machine does not suit the placement.
        """
        learn(self._inner, machine)

    def divide(self, classes: tuple[RankedClass, ...], parts: Sequence[Partition]) -> None:
        """Use these partitions from now on.

        If there are none, the whole machine is one partition.
        """
        self._classes, self.parts, self._begins = classes, parts, {}

    def assign(self, job: SchedulerJob, units: NodeSet, machine: Machine) -> None:
        """Choose the first partition to try for a job.

        ``units`` are all units that the job may use.
        """
        self._begins[job.number] = self._begin(job, units, machine)

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return units from the first allowed partition in which the job fits, or None."""
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
        """Return units for a job from any partitions; None if it does not fit now.

        The most reliable partitions come first, and as few partitions as suffice are used.
        """
        units = NodeSet.EMPTY
        for part in self.parts:
            units |= open_units & part.units
            if (found := self._within(job, units, machine)) is not None:
                return found
        return self._within(job, open_units, machine)

    def _begin(self, job: SchedulerJob, units: NodeSet, machine: Machine) -> int | None:
        """Return the index of the partition that a job should try first.

        Return None, for the whole machine, if the job has no partition. This is also the result if the inner placement
        finds no units for it in any allowed partition.
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
    """Return the number of the partition that a job's QOS names.

    Partition 1 is the most reliable. Return None if the QOS names no partition.
    """
    return None if job.description is None else level_of(job.description.qos or "")
