"""The placement that gives each job consecutive units."""

from typing import Literal

from msgspec import Struct

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.jobs import SchedulerJob


class ContiguousOptions(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What there is to set of the placement ``contiguous``: which of the runs of open units that are long enough.

    ``first`` is the one with the lowest numbers, ``best`` the shortest, of equals the one with the lowest numbers.
    """

    fit: Literal["first", "best"] = "first"


class Contiguous:
    """The lowest units of a run of open ones with consecutive numbers; a job waits until a run is long enough."""

    fits_by_count = False

    def __init__(self, options: ContiguousOptions | None = None) -> None:
        self._shortest = options is not None and options.fit == "best"

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return the beginning of a run, None if none is long enough."""
        size = job.size
        if self._shortest:
            runs = ((hi - lo + 1, lo) for lo, hi in open_units.intervals if hi - lo + 1 >= size)
            lowest = min(runs, default=(0, -1))[1]
        else:
            lowest = next((lo for lo, hi in open_units.intervals if hi - lo + 1 >= size), -1)
        return None if lowest < 0 else NodeSet.interval(lowest, lowest + size - 1)
