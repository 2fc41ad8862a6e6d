"""Free units over time, for each set of reservations that may admit a job."""

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from sortedcontainers import SortedList

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.masks import mask_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.pickers import Picker
from pipistrelle.schedulers.plan.slices import FreeStep, Place, TimeSlices
from pipistrelle.schedulers.policy.ends_and_shadow import end_of, held_until
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Closure, Window


class Restriction(NamedTuple):
    """A period in which some units are closed to all jobs except some.

    Attributes:
        closure: the period and the units.
        open_to: access numbers of the jobs that may use the units. Jobs that the same reservations admit share an
            access number.
        counts: whether this counts as a reservation of the units. Windows that admit some jobs do not count.
    """

    closure: Closure
    open_to: frozenset[int]
    counts: bool = True


class Accesses(Kept):
    """Access numbers; jobs that the same reservations and windows admit share a number."""

    _kept = ("_changes", "_numbers")

    def __init__(self, view: View) -> None:
        self._view = view
        #: {whether each reservation and window admits a job: number}
        self._numbers: dict[tuple[bool, ...], int] = {}
        self._admitting: list[Window] = []
        self._changes = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the access numbers that the method `state` returned.

        The view may have new windows since then.
        """
        self.renew()
        super().restore(state)

    def renew(self) -> bool:
        """Read the view's windows again; return whether any has changed.

        Windows are maintenance and reservations. If one has changed, all numbers that this object returned before are
        invalid, and the caller must ask for new ones.
        """
        windows = self._view.windows
        if self._changes == windows.changes:
            return False
        self._changes = windows.changes
        self._admitting = [window for window in windows if window.admits is not None]
        self._numbers = {}
        return True

    def number(self, job: SchedulerJob, let_in: tuple[bool, ...] = ()) -> int:
        """Return the access number for the reservations and windows that admit a job.

        ``let_in`` says for each reservation whether it admits the job.
        """
        let_in += tuple(not window.closed_to(job) for window in self._admitting)
        return self._numbers.setdefault(let_in, len(self._numbers))

    def restrictions(
        self, now: float, reservations: Sequence[tuple[int, Closure]] = (), count: int = 0
    ) -> list[Restriction]:
        """Return all closures of units that are in force at ``now`` (s) or later.

        Args:
            reservations: reservations besides the windows, each with its position in the ``let_in`` of `number`.
            count: length of that ``let_in``.
        """
        found = [Restriction(closure, self._let_in_by(at)) for at, closure in reservations]
        admitting = count
        for window in self._view.windows:
            let_in: frozenset[int] = frozenset()
            if window.admits is not None:
                let_in = self._let_in_by(admitting)
                admitting += 1
            if window.end > now:
                found.append(Restriction(window.closure, let_in, counts=window.admits is None))
        return found

    def _let_in_by(self, at: int) -> frozenset[int]:
        """Return the access numbers of the jobs that a reservation or window admits.

        ``at`` is the position of the reservation or window in ``let_in``.
        """
        return frozenset(number for let_in, number in self._numbers.items() if let_in[at])


class AccessPlan(Kept):
    """Free units over time, for each access number.

    Jobs that the same reservations admit share an access number.

    The plan keeps running jobs from one decision to the next. Restrictions and reservations are added again at each
    decision.

    Args:
        units: number of units of the machine.
        now: the time, s.
        picker: picks the units of a job among the free ones.
        depth: how many reservations a unit may have at most.
        repeats: whether the picker always picks the same units if it is called again with the same arguments. If
            so, the plan remembers the places of jobs.
    """

    _kept = ("_now", "_out", "_running")

    def __init__(self, units: int, now: float, picker: Picker, depth: float = inf, *, repeats: bool = False) -> None:
        self._machine = (1 << units) - 1
        self._now = now
        self._picker = picker
        self._depth = depth
        self._repeats = repeats
        #: (job, access, walltime in s) of the last search for a place, and the place that was found; None: search again
        self._found: tuple[tuple[SchedulerJob, int, float], Place | None] | None = None
        self._in_service = self._machine
        self._out = NodeSet.EMPTY
        self._base = TimeSlices(now, self._machine)
        self._running: dict[int, Place] = {}
        #: {number of a running job: number of its units}, where known
        self._sizes: dict[int, int] = {}
        self._ends: SortedList[tuple[float, int]] = SortedList()
        self._restrictions: Sequence[Restriction] = ()
        self._tables: dict[int, TimeSlices] = {}
        self._steps: dict[int, list[FreeStep]] = {}
        #: places taken since `begin`, for tables made later, and the numbers of their units, where known
        self._taken: list[tuple[Place, int | None]] = []
        #: masks of the units with at least 1, 2, ... reservations; empty if no unit can exceed the depth
        self._loads: list[int] = []

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the running jobs that the method `state` returned."""
        super().restore(state)
        self._ends = SortedList((place.end, number) for number, place in self._running.items())
        self._rebuild()

    def _rebuild(self) -> None:
        self._found = None
        self._in_service = self._machine & ~mask_of(self._out)
        self._base = TimeSlices(self._now, self._in_service)
        for number, place in self._running.items():
            self._base.take(place.units, self._now, place.end, self._sizes.get(number))

    def end(self, number: int) -> float:
        """Return the latest end (s) of a running job, given its number."""
        return self._running[number].end

    def started(self, job: SchedulerJob, units: int, end: float) -> None:
        """Add a job that starts now on free units; ``end`` (s) is its latest end."""
        self._found = None
        place = Place(self._now, end, units)
        self._running[job.number], self._sizes[job.number] = place, job.size
        self._ends.add((end, job.number))
        self._base.take(units, place.begin, end, job.size)
        self._keep(place, job.size)

    def ended(self, number: int) -> None:
        """Remove a job that has ended; ``number`` is the job's number."""
        self._found = None
        place = self._running.pop(number)
        self._ends.remove((place.end, number))
        width = self._sizes.pop(number, None)
        units = place.units & self._in_service if self._out else place.units
        if width is None or units != place.units:
            self._base.give_back(units, self._now, place.end)
        else:
            self._base.give_back(units, self._now, place.end, width, sure=True)

    def is_end(self, time: float) -> bool:
        """Return whether ``time`` (s) is the latest end of a running job."""
        following = next(self._ends.irange((time, -1)), None)
        return following is not None and following[0] == time

    def follow(self, now: float, unavailable: NodeSet) -> None:
        """Advance the plan to ``now`` (s); ``unavailable`` units are out of service."""
        self._now = now
        self._base.advance(now)
        if unavailable == self._out:
            return
        lost, back = mask_of(unavailable - self._out), mask_of(self._out - unavailable)
        self._out = unavailable
        if any(place.units & (lost | back) for place in self._running.values()):
            self._rebuild()
        else:
            self._found = None
            self._in_service ^= lost | back
            self._base.take(lost, now, inf)
            self._base.give_back(back, now, inf)

    def begin(self, restrictions: Sequence[Restriction], reservations: int) -> None:
        """Begin a decision, in which units are closed to some jobs as in ``restrictions``.

        At most ``reservations`` reservations may be made before the next call.
        """
        self._restrictions = restrictions
        self._tables, self._steps, self._taken = {}, {}, []
        self._loads = []
        for end, number in self._ends:
            if end > self._now:
                break
            place = Place(self._now, held_until(end, self._now), self._running[number].units)
            self._taken.append((place, self._sizes.get(number)))
        counted = [restriction.closure.units for restriction in restrictions if restriction.counts]
        if 1 + len(counted) + reservations > self._depth:
            self._loads = [0] * int(self._depth)
            self._load(self._in_service & ~self._base.free_now)
            for units in counted:
                self._load(units)

    def _load(self, units: int) -> None:
        for level in range(len(self._loads) - 1, 0, -1):
            self._loads[level] |= self._loads[level - 1] & units
        if self._loads:
            self._loads[0] |= units

    def _usable(self) -> int:
        """Return the units for which one more reservation may be made, as a bit mask."""
        return self._machine & ~self._loads[-1] if self._loads else self._machine

    def _table(self, access: int) -> TimeSlices:
        table = self._tables.get(access)
        if table is None:
            table = self._tables[access] = self._laid(access, self._base.copy())
        return table

    def _laid(self, access: int, table: TimeSlices) -> TimeSlices:
        """Mark in ``table`` the units that jobs with this access number cannot use.

        These are the units closed to them, and the units of all reservations made since `begin`. Return ``table``.
        """
        for (begin, end, units), open_to, _ in self._restrictions:
            if access not in open_to:
                table.take(units, begin, end)
        for place, width in self._taken:
            table.take(place.units, place.begin, place.end, width)
        return table

    def units_without(self, access: int, job: SchedulerJob, walltime: float, gone: Sequence[int]) -> int:
        """Return the units on which a job could start if some running jobs had ended.

        Args:
            walltime: the job's walltime, s.
            gone: numbers of the running jobs that are treated as ended; they must have started before this instant.

        Returns:
            A bit mask of units; 0 if the job cannot start.
        """
        table = self._base.copy()
        for number in gone:
            place = self._running[number]
            table.give_back(place.units & self._in_service, self._now, place.end)
        return self._pick(job, self._laid(access, table).steps(self._now), end_of(self._now, walltime), 0)

    def steps(self, access: int) -> list[FreeStep]:
        """Return the units that are free now for jobs with this access number.

        Each step has the units that stay free from now until the step's end.
        """
        steps = self._steps.get(access)
        if steps is None:
            steps = self._table(access).steps(self._now)
            if self._loads:
                usable = self._usable()
                masks = ((step.end, step.units & usable) for step in steps)
                steps = [FreeStep(end, units, units.bit_count()) for end, units in masks if units]
            self._steps[access] = steps
        return steps

    def units_now(self, access: int, job: SchedulerJob, walltime: float) -> int:
        """Return the units (a bit mask) on which a job could start now; 0 if none suffice.

        ``walltime`` is in seconds.
        """
        return self._pick(job, self.steps(access), end_of(self._now, walltime), 0)

    def _pick(self, job: SchedulerJob, steps: list[FreeStep], end: float, last: int) -> int:
        lasting = [step for step in steps if step.end >= end]
        return self._picker(job, lasting, last) if lasting and lasting[0].width >= job.size else 0

    def reserve(self, access: int, job: SchedulerJob, walltime: float) -> Place | None:
        """Reserve units for a job for the earliest period in which it fits.

        Return the reservation, or None if the job fits nowhere.
        """
        place = self.find(access, job, walltime)
        if place is not None:
            self._keep(place, job.size, access)
        return place

    def find(self, access: int, job: SchedulerJob, walltime: float) -> Place | None:
        """Return the earliest period in which a job fits, and its units.

        Return None if the job never fits.
        """
        asked = job, access, walltime
        unchanged = self._repeats and not (self._restrictions or self._taken or self._loads)
        if unchanged and self._found is not None and self._found[0] == asked:
            place = self._found[1]
            if place is None or place.begin > self._now:
                return place
        place = self._search(access, job, walltime)
        self._found = (asked, place) if unchanged else None
        return place

    def _search(self, access: int, job: SchedulerJob, walltime: float) -> Place | None:
        table, usable = self._table(access), self._usable()

        def choose(begin: float, units: int, width: int) -> int:
            # Prefer units that are busy now, to leave the free ones to backfilling.
            return self._pick(job, table.steps(begin, (units, width)), end_of(begin, walltime), table.free_now)

        closures = () if usable == self._machine else (Closure(self._now, inf, ~usable),)
        fit = table.earliest(job.size, walltime, choose, closures=closures)
        return None if fit is None else Place(fit.begin, end_of(fit.begin, walltime), fit.units)

    def keep(self, place: Place) -> None:
        """Keep a reservation, ``place``, until `begin` is called again."""
        self._keep(place)

    def _keep(self, place: Place, width: int | None = None, free_to: int = -1) -> None:
        """Keep a reservation until the next `begin`, as `keep` does.

        Args:
            width: the number of units of ``place``, if known.
            free_to: access number of jobs for which these units are known to be free; -1: unknown.
        """
        self._taken.append((place, width))
        self._steps = {}
        for access, table in self._tables.items():
            table.take(place.units, place.begin, place.end, width, sure=access == free_to)
        self._load(place.units)

    def is_free(self, access: int, place: Place) -> bool:
        """Return whether all units of a reservation are free for its whole time."""
        lasting = next((step for step in self._table(access).steps(place.begin) if step.end >= place.end), None)
        return place.begin >= self._now and lasting is not None and not place.units & ~lasting.units
