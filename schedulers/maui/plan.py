"""What the Maui policy plans with at one instant: running jobs, closed units, reservations, and which units to take."""

from bisect import bisect_left, insort
from math import inf, nextafter
from typing import Final, NamedTuple

from pipistrelle.protocol.units.masks import lowest, mask_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.maui.timetable import Step, Timetable, end_of

#: policies that take units by their numbers: on equal nodes they are all alike
_BY_NUMBER: Final = frozenset({"FIRSTAVAILABLE", "MINRESOURCE", "CPULOAD", "MAXBALANCE", "FASTEST"})


class Place(NamedTuple):
    """Where a job runs or is planned to: from ``begin`` until ``end`` (s) on ``units`` (a mask)."""

    begin: float
    end: float
    units: int


class Closure(NamedTuple):
    """Units (a mask) that are closed from ``begin`` until ``end`` (s) to the accesses (numbers) not in ``open_to``."""

    begin: float
    end: float
    units: int
    open_to: frozenset[int]


class Plan:
    """Free units over time, separately for each access, that is, for jobs that the same reservations let in.

    The running jobs are followed from instant to instant; closures and reservations are laid over them anew at each.

    Parameters
    ----------
    units
        number of units of the machine.
    now
        the time (s).
    allocation
        NODEALLOCATIONPOLICY.
    depth
        RESDEPTH: how many reservations a unit may have.
    """

    def __init__(self, units: int, now: float, allocation: str, depth: int) -> None:
        self._machine = (1 << units) - 1
        self._now = now
        self._by_number = allocation in _BY_NUMBER
        self._depth = depth
        self._in_service = self._machine
        self._out = NodeSet.EMPTY
        self._base = Timetable(now, self._machine)
        self._running: dict[int, Place] = {}
        self._ends: list[tuple[float, int]] = []
        self._closures: list[Closure] = []
        self._tables: dict[int, Timetable] = {}
        self._steps: dict[int, list[Step]] = {}
        #: taken since the instant began, for tables made later
        self._taken: list[Place] = []
        #: masks of the units with at least 1, 2, ... reservations; empty if no unit can have too many
        self._loads: list[int] = []

    def started(self, number: int, units: int, end: float) -> None:
        """Take note of a job that starts now on units that are free; ``end`` (s) is when it ends at the latest."""
        place = Place(self._now, end, units)
        self._running[number] = place
        insort(self._ends, (end, number))
        self._base.take(units, place.begin, end)
        self.keep(place)

    def ended(self, number: int) -> None:
        """Take note of a job that has ended."""
        place = self._running.pop(number)
        del self._ends[bisect_left(self._ends, (place.end, number))]
        self._base.free(place.units & self._in_service, self._now, place.end)

    def is_end(self, time: float) -> bool:
        """Tell whether a running job ends then (s) at the latest."""
        at = bisect_left(self._ends, (time, -1))
        return at < len(self._ends) and self._ends[at][0] == time

    def follow(self, now: float, unavailable: NodeSet) -> None:
        """Go on to a later time; ``unavailable`` units are out of service."""
        self._now = now
        if unavailable != self._out:
            self._out = unavailable
            self._in_service = self._machine & ~mask_of(unavailable)
            self._base = Timetable(now, self._in_service)
            for place in self._running.values():
                self._base.take(place.units, now, place.end)
        else:
            self._base.advance(now)

    def begin(self, closures: list[Closure], reservations: int) -> None:
        """Begin an instant: lay closures over the running jobs; at most so many reservations will be made."""
        self._closures = closures
        self._tables, self._steps, self._taken = {}, {}, []
        self._loads = []
        for end, number in self._ends:  # may end any moment, but their units are not free yet
            if end > self._now:
                break
            self._taken.append(Place(self._now, nextafter(self._now, inf), self._running[number].units))
        if 1 + len(closures) + reservations > self._depth:
            self._loads = [0] * self._depth
            self._load(self._in_service & ~self._base.free_now())
            for closure in closures:
                self._load(closure.units)

    def _load(self, units: int) -> None:
        for level in range(len(self._loads) - 1, 0, -1):
            self._loads[level] |= self._loads[level - 1] & units
        if self._loads:
            self._loads[0] |= units

    def _usable(self) -> int:
        """Return the units that may have one more reservation."""
        return self._machine & ~self._loads[-1] if self._loads else self._machine

    def _table(self, access: int) -> Timetable:
        table = self._tables.get(access)
        if table is None:
            table = self._tables[access] = self._base.copy()
            for closure in self._closures:
                if access not in closure.open_to:
                    table.take(closure.units, closure.begin, closure.end)
            for place in self._taken:
                table.take(place.units, place.begin, place.end)
        return table

    def _lay(self, place: Place) -> None:
        self._taken.append(place)
        self._steps = {}
        for table in self._tables.values():
            table.take(place.units, place.begin, place.end)

    def steps(self, access: int) -> list[Step]:
        """Return how long which units are free from now on, for an access."""
        steps = self._steps.get(access)
        if steps is None:
            steps = self._table(access).steps(self._now)
            if self._loads:
                usable = self._usable()
                masks = ((step.end, step.units & usable) for step in steps)
                steps = [Step(end, units, units.bit_count()) for end, units in masks if units]
            self._steps[access] = steps
        return steps

    def units_now(self, access: int, size: int, walltime: float) -> int:
        """Return the units that a job takes if it starts now, 0 if it cannot."""
        return self._pick(self.steps(access), size, end_of(self._now, walltime), 0)

    def _pick(self, steps: list[Step], size: int, end: float, first: int) -> int:
        """Return ``size`` units that are free until ``end``; of equals those of ``first`` come first."""
        lasting = [step for step in steps if step.end >= end]
        if not lasting or lasting[0].width < size:
            return 0
        if self._by_number:
            return lowest(lasting[0].units, size)
        # LASTAVAILABLE: the units that are free the shortest beyond the job's end.
        picked, missing = 0, size
        for at, step in enumerate(lasting):
            longer = lasting[at + 1].units if at + 1 < len(lasting) else 0
            for group in (step.units & ~longer & first, step.units & ~longer & ~first):
                if missing and group:
                    more = lowest(group, min(missing, group.bit_count()))
                    picked |= more
                    missing -= more.bit_count()
        return picked

    def reserve(self, access: int, size: int, walltime: float) -> Place | None:
        """Return the earliest place for a job, and keep it free of others; None if there is none."""
        place = self.find(access, size, walltime)
        if place is not None:
            self.keep(place)
        return place

    def find(self, access: int, size: int, walltime: float) -> Place | None:
        """Return the earliest place for a job, None if there is none."""
        table = self._table(access)
        found = table.earliest(size, walltime, self._usable())
        if found is None:
            return None
        begin, units = found
        end = end_of(begin, walltime)
        steps = [Step(step.end, both, both.bit_count()) for step in table.steps(begin) if (both := step.units & units)]
        # What is busy now goes first, so that backfilling has the rest.
        return Place(begin, end, self._pick(steps, size, end, ~table.free_now()))

    def keep(self, place: Place) -> None:
        """Keep a place free of others, from now until the next `begin`."""
        self._lay(place)
        self._load(place.units)

    def is_free(self, access: int, place: Place) -> bool:
        """Tell whether a place is free."""
        lasting = next((step for step in self._table(access).steps(place.begin) if step.end >= place.end), None)
        return place.begin >= self._now and lasting is not None and not place.units & ~lasting.units
