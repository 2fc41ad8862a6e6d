"""Time cut into slices, each with the units that are free during it: the plan of those who reserve single units."""

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
    """Where a job runs, or is planned to: from ``begin`` until ``end`` (seconds) on ``units`` (a mask)."""

    begin: float
    end: float
    units: int

    def is_closed(self, closures: Sequence[Closure]) -> bool:
        """Tell whether a closure takes one of the units away at some time in between."""
        return any(begin < self.end and end > self.begin and units & self.units for begin, end, units in closures)


# A mask is too long a number for JSON's readers.
register(
    Place,
    lambda place: [place.begin, place.end, str(units_of(place.units))],
    lambda state: Place(state[0], state[1], mask_of(NodeSet.parse(state[2]))),
)


class Fit(NamedTuple):
    """Where a job fits: from ``begin`` (seconds) on, on any of ``units`` (a mask), free as long as it lasts."""

    begin: float
    units: int


class FreeStep(NamedTuple):
    """``units`` (a mask), ``width`` of them, are free until ``end`` (s): the next step has fewer, and a later end."""

    end: float
    units: int
    width: int


class TimeSlices:
    """Which units are free when, from now on for ever; times in seconds, sets of units as masks.

    A slice begins where the one before it ends; the last never ends. Equal neighbours may remain two slices: a job
    that does not fit from a slice's begin on fits from no later time within it either, so that more slices than needed
    change no answer. Taking units that are taken, or freeing free ones, changes nothing.

    Parameters
    ----------
    now
        when the first slice begins.
    free
        the units that are free then.
    ends
        others, each with the time (later than now) from which on they are free, too.
    """

    __slots__ = ("_begins", "_counts", "_free")

    def __init__(self, now: float, free: int, ends: Iterable[tuple[float, int]] = ()) -> None:
        # Lists in step, not a SortedDict: scans go by index, in 22 ns a step instead of 255 ns (52 ns by `irange`).
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

    def __len__(self) -> int:
        return len(self._begins)

    def copy(self) -> Self:
        """Return slices that can be changed without these."""
        made = object.__new__(type(self))
        made._begins, made._free, made._counts = self._begins.copy(), self._free.copy(), self._counts.copy()
        return made

    @property
    def now(self) -> float:
        """When the first slice begins (s)."""
        return self._begins[0]

    @property
    def free_now(self) -> int:
        """The units that are free in the first slice."""
        return self._free[0]

    def advance(self, now: float) -> None:
        """Forget what is past."""
        past = bisect_right(self._begins, now) - 1
        if past > 0:
            del self._begins[:past], self._free[:past], self._counts[:past]
        self._begins[0] = now

    def take(self, units: int, begin: float, end: float) -> None:
        """Let ``units`` be taken from ``begin`` until ``end``, as far as that lies ahead."""
        masks, counts = self._free, self._counts
        if end <= self._begins[0] or not units:
            return
        first, after = self._cut(max(begin, self._begins[0])), self._cut(end)
        kept = ~units
        for at in range(first, after):
            masks[at] &= kept
            counts[at] = masks[at].bit_count()

    def give_back(self, units: int, begin: float, end: float) -> None:
        """Let ``units`` be free from ``begin`` until ``end``, as far as that lies ahead."""
        masks, counts = self._free, self._counts
        if end <= self._begins[0] or not units:
            return
        first, after = self._cut(max(begin, self._begins[0])), self._cut(end)
        for at in range(first, after):
            masks[at] |= units
            counts[at] = masks[at].bit_count()
        self._join(after)
        self._join(first)

    def steps(self, begin: float, among: int = -1) -> list[FreeStep]:
        """Return how long which units are free from ``begin`` on, the most units first; none free: none.

        ``begin`` is now or begins a slice; of the units only those ``among`` these (a mask; -1: all) count.
        """
        at = bisect_right(self._begins, begin) - 1
        units = self._free[at] & among
        found = []
        for following in range(at + 1, len(self._begins)):
            rest = units & self._free[following]
            if rest != units:
                found.append(FreeStep(self._begins[following], units, units.bit_count()))
                units = rest
                if not units:
                    return found
        if units:
            found.append(FreeStep(inf, units, units.bit_count()))
        return found

    def now_for(self, size: int, walltime: float, closures: Sequence[Closure] = ()) -> int:
        """Return the units that are free from now on for ``walltime``, 0 if they are fewer than ``size``.

        ``closures`` take units away from this job alone.
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
        """Return the first time from which on ``size`` units are free for ``walltime``, None if there is none.

        ``choose`` is told such a time (s) and the units, and returns which of them the job gets; 0: none, so that a
        later time is looked for. ``own`` are the job's units if it has a place in the slices already, from
        ``own_begin``, not before now: they count as free, and there is no need to look for later times. ``closures``
        take units away from this job alone, even if they are its own.
        """
        begins, counts = self._begins, self._counts
        for closure in closures:  # where one ends, a job may fit that did not before
            if closure.end > begins[0]:
                self._cut(closure.end)
        # Where another job's place borders on the own one, on the same units, there may be no slice that begins there.
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
        """Return the units that are free from slice ``at`` on for ``walltime``; 0 and the next slice to try if too few.

        From slice ``mine`` on the units ``own`` count as free.
        """
        begins, free, counts = self._begins, self._free, self._counts
        end = begins[at] + walltime
        units = free[at] | own if at >= mine else free[at]
        for closure in closures:
            if closure.begin < end_of(begins[at], walltime) and closure.end > begins[at]:
                units &= ~closure.units
        if units.bit_count() < size:
            return 0, at + 1
        for following in range(at + 1, len(begins)):
            if begins[following] >= end:
                break
            if following >= mine:
                units &= free[following] | own
            elif counts[following] < size:
                return 0, following + 1
            else:
                units &= free[following]
            if units.bit_count() < size:
                return 0, at + 1
        return units, at

    def _cut(self, time: float) -> int:
        """Return the slice that begins at ``time``, made if there is none; for inf, the number of slices."""
        if time == inf:
            return len(self._begins)
        at = bisect_left(self._begins, time)
        if at == len(self._begins) or self._begins[at] != time:
            self._begins.insert(at, time)
            self._free.insert(at, self._free[at - 1])
            self._counts.insert(at, self._counts[at - 1])
        return at

    def _join(self, at: int) -> None:
        """Make one slice of ``at`` and the one before it if the same units are free."""
        if 0 < at < len(self._begins) and self._free[at] == self._free[at - 1]:
            del self._begins[at], self._free[at], self._counts[at]
