"""Free units over time, as a list of time slices.

Rules that reserve single units use it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import NamedTuple, Self

from pipistrelle.protocol.base.state import register
from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.policy.windows import Closure


class Place(NamedTuple):
    """The units that a running or planned job holds from ``begin`` to ``end`` (s).

    The units are a bit mask.
    """

    begin: float
    end: float
    units: int

    def is_closed(self, closures: Sequence[Closure]) -> bool:
        """Return whether any closure closes one of these units during this time."""
        return any(begin < self.end and end > self.begin and units & self.units for begin, end, units in closures)


# As a number, a mask is too long for JSON parsers.
register(
    Place,
    lambda place: [place.begin, place.end, str(units_of(place.units))],
    lambda state: Place(state[0], state[1], mask_of(NodeSet.parse(state[2]))),
)


class Fit(NamedTuple):
    """The time (s) from which ``units`` (a bit mask) are free long enough for a job."""

    begin: float
    units: int


class FreeStep(NamedTuple):
    """Units that are free from now until ``end`` (s).

    The units are a bit mask; ``width`` is their number. The next step has fewer units and a later end.
    """

    end: float
    units: int
    width: int


class TimeSlices:
    """The free units from now on; times in seconds, sets of units as masks.

    A slice begins where the previous slice ends; the last slice never ends. Adjacent slices with the same free units
    may remain separate. This changes no result: a job that does not fit from the start of a slice fits from no later
    time within it. Taking units that are already taken, or freeing free units, has no effect.

    Running jobs only free units as time passes. So a search for units that stay free compares only the few slices at
    whose start units are taken.

    Args:
        now: start of the first slice.
        free: the units that are free in the first slice.
        ends: (time later than now, units that become free then).
    """

    __slots__ = ("_begins", "_counts", "_falls", "_free")

    def __init__(self, now: float, free: int, ends: Iterable[tuple[float, int]] = ()) -> None:
        # Parallel lists, not a SortedDict: a scan by index takes 22 ns per step instead of 255 ns (52 ns by `irange`).
        self._begins = [now]
        self._free = [free]
        for end, units in sorted(ends):
            free |= units
            if end == self._begins[-1]:
                self._free[-1] = free
            elif end < inf:
                self._begins.append(end)
                self._free.append(free)
        self._counts = [units.bit_count() for units in self._free]
        #: whether a slice may lack free units of the slice before it
        self._falls = [False] * len(self._begins)

    def __len__(self) -> int:
        return len(self._begins)

    def copy(self) -> Self:
        """Return an independent copy of these time slices."""
        made = object.__new__(type(self))
        made._begins, made._free, made._counts = self._begins.copy(), self._free.copy(), self._counts.copy()
        made._falls = self._falls.copy()
        return made

    @property
    def now(self) -> float:
        """The start of the first slice (s), which is the present."""
        return self._begins[0]

    @property
    def free_now(self) -> int:
        """The units free in the first slice, as a bit mask."""
        return self._free[0]

    def advance(self, now: float) -> None:
        """Move the start of the first slice to ``now``, and drop earlier slices."""
        past = bisect_right(self._begins, now) - 1
        if past > 0:
            del self._begins[:past], self._free[:past], self._counts[:past], self._falls[:past]
        self._begins[0] = now

    def take(self, units: int, begin: float, end: float) -> None:
        """Mark ``units`` (a bit mask) as taken from ``begin`` until ``end`` (s).

        Past times are ignored.
        """
        masks, counts, falls = self._free, self._counts, self._falls
        if end <= self._begins[0] or not units:
            return
        first, after = self._cut(max(begin, self._begins[0])), self._cut(end)
        if first == after:
            return
        taken = count = 0
        for at in range(first, after):
            mask = masks[at]
            if taken != units or falls[at]:  # else all units are still free, as in the slice before
                now_taken = mask & units
                if now_taken != taken:
                    taken, count = now_taken, now_taken.bit_count()
            if taken:
                masks[at] = mask ^ taken
                counts[at] -= count
        falls[first] = True

    def give_back(self, units: int, begin: float, end: float) -> None:
        """Mark ``units`` (a bit mask) as free from ``begin`` until ``end`` (s).

        Past times are ignored.
        """
        masks, counts = self._free, self._counts
        if end <= self._begins[0] or not units:
            return
        first, after = self._cut(max(begin, self._begins[0])), self._cut(end)
        freed = count = 0
        for at in range(first, after):
            mask = masks[at]
            now_freed = units ^ (units & mask)  # `units & ~mask` takes several times as long
            if now_freed != freed:
                freed, count = now_freed, now_freed.bit_count()
            if freed:
                masks[at] = mask ^ freed
                counts[at] += count
        if after < len(masks) and masks[after] & units != units:
            self._falls[after] = True
        self._join(after)
        self._join(first)

    def steps(self, begin: float, among: int = -1) -> list[FreeStep]:
        """Return the units that are free from ``begin`` (s) on, and until when.

        The step with the most units is first. ``begin`` is now or the start of a slice. Only the units in ``among`` (a
        bit mask; -1: all) count.
        """
        at = bisect_right(self._begins, begin) - 1
        units, width = self._free[at], self._counts[at]
        if among != -1:
            units &= among
            width = units.bit_count()
        found = []
        falls = self._falls
        for following in range(at + 1, len(falls)):
            if falls[following]:
                rest = units & self._free[following]
                if rest != units:
                    found.append(FreeStep(self._begins[following], units, width))
                    if not rest:
                        return found
                    units, width = rest, rest.bit_count()
        if units:
            found.append(FreeStep(inf, units, width))
        return found

    def now_for(self, size: int, walltime: float, closures: Sequence[Closure] = ()) -> int:
        """Return the units free from now on for ``walltime`` (s), as a bit mask.

        Return 0 if there are fewer than ``size``. ``closures`` exclude units for this job only.
        """
        return self._through(0, size, walltime, 0, len(self._begins), closures)[0]

    def earliest(
        self,
        size: int,
        walltime: float,
        choose: Callable[[float, int], int] | None = None,
        *,
        own: int = 0,
        own_begin: float = inf,
        closures: Sequence[Closure] = (),
    ) -> Fit | None:
        """Return the first time at which ``size`` units are free for ``walltime``.

        The result has the time and the units. Return None if there is no such time.

        Args:
            choose: returns the job's units, given a possible start (s) and the free units; 0 continues the search.
            own: units of the job's current reservation, which begins at ``own_begin`` (now or later). From then on they
                count as free, and later starts are not tried.
            closures: exclude units for this job only, even its own.
        """
        begins, counts = self._begins, self._counts
        for closure in closures:  # a job may fit from the end of a closure on
            if closure.end > begins[0]:
                self._cut(closure.end)
        # No slice may begin there yet, if another job's place on the same units borders on it.
        mine = self._cut(own_begin)
        last = min(mine, len(begins) - 1)
        at = 0
        while at <= last:
            if counts[at] < size and at < mine:
                at += 1
                continue
            units, after = self._through(at, size, walltime, own, mine, closures)
            if units:
                units = choose(begins[at], units) if choose is not None else units
                if units:
                    return Fit(begins[at], units)
                after = at + 1
            at = after
        return None

    def _through(
        self, at: int, size: int, walltime: float, own: int, mine: int, closures: Sequence[Closure]
    ) -> tuple[int, int]:
        """Return the units free for ``walltime`` (s) from slice ``at`` on, as a bit mask.

        If fewer than ``size`` units are free, return 0 and the next slice to try; otherwise the second value does not
        matter. From slice ``mine`` on, the units ``own`` count as free.
        """
        begins, free, counts = self._begins, self._free, self._counts
        end = begins[at] + walltime
        units = free[at] | own if at >= mine else free[at]
        for closure in closures:
            if closure.begin < end_of(begins[at], walltime) and closure.end > begins[at]:
                units ^= units & closure.units
        if (counts[at] if units is free[at] else units.bit_count()) < size:
            return 0, at + 1
        falls = self._falls
        for following in range(at + 1, len(begins)):
            if begins[following] >= end:
                break
            if not falls[following]:
                continue
            if following >= mine:
                rest = units & (free[following] | own)
            elif counts[following] < size:
                return 0, following + 1
            else:
                rest = units & free[following]
            if rest != units:
                units = rest
                if units.bit_count() < size:
                    return 0, at + 1
        return units, at

    def _cut(self, time: float) -> int:
        """Return the index of the slice that begins at ``time`` (s).

        If there is none, split a slice there. For inf, return the number of slices.
        """
        if time == inf:
            return len(self._begins)
        at = bisect_left(self._begins, time)
        if at == len(self._begins) or self._begins[at] != time:
            self._begins.insert(at, time)
            self._free.insert(at, self._free[at - 1])
            self._counts.insert(at, self._counts[at - 1])
            self._falls.insert(at, False)
        return at

    def _join(self, at: int) -> None:
        """Merge slice ``at`` with the one before it if the same units are free."""
        if 0 < at < len(self._begins) and self._free[at] == self._free[at - 1]:
            del self._begins[at], self._free[at], self._counts[at], self._falls[at]
