"""Which units are free when, for the Maui policy: slices of time with a set of units each, sets as masks."""

from bisect import bisect_left, bisect_right
from math import inf, nextafter
from typing import NamedTuple, Self


class Step(NamedTuple):
    """``units`` (a mask), ``width`` of them, are free until ``end`` (s): the next step has fewer, and a later end."""

    end: float
    units: int
    width: int


def end_of(begin: float, walltime: float) -> float:
    """Return when a job that begins then (s) is planned to end; always later, however short its walltime (s)."""
    return max(begin + walltime, nextafter(begin, inf))


class Timetable:
    """Free units from now on for ever; a slice begins where the one before it ends, the last never ends.

    Taking units that are taken, or freeing free ones, changes nothing.
    """

    __slots__ = ("_begins", "_counts", "_free")

    def __init__(self, now: float, free: int) -> None:
        self._begins = [now]
        self._free = [free]
        self._counts = [free.bit_count()]

    def copy(self) -> Self:
        """Return one that can be changed without this one."""
        made = object.__new__(type(self))
        made._begins, made._free, made._counts = self._begins.copy(), self._free.copy(), self._counts.copy()
        return made

    def advance(self, now: float) -> None:
        """Forget what is past."""
        past = bisect_right(self._begins, now) - 1
        if past > 0:
            del self._begins[:past], self._free[:past], self._counts[:past]
        self._begins[0] = now

    def take(self, units: int, begin: float, end: float) -> None:
        """Let ``units`` not be free from ``begin`` until ``end``, as far as that lies ahead."""
        self._change(units, begin, end, free=False)

    def free(self, units: int, begin: float, end: float) -> None:
        """Let ``units`` be free from ``begin`` until ``end``, as far as that lies ahead."""
        self._change(units, begin, end, free=True)

    def _change(self, units: int, begin: float, end: float, *, free: bool) -> None:
        now = self._begins[0]
        if end <= now or not units:
            return
        first, after = self._cut(max(begin, now)), self._cut(end)
        masks = self._free
        for at in range(first, after):
            masks[at] = masks[at] | units if free else masks[at] & ~units
            self._counts[at] = masks[at].bit_count()
        self._join(after)
        self._join(first)

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
        if 0 < at < len(self._begins) and self._free[at] == self._free[at - 1]:
            del self._begins[at], self._free[at], self._counts[at]

    def free_now(self) -> int:
        """Return the units that are free now, a mask."""
        return self._free[0]

    def steps(self, begin: float) -> list[Step]:
        """Return how long which units are free from ``begin`` on, the most units first; none free: none.

        ``begin`` is now or begins a slice.
        """
        at = bisect_right(self._begins, begin) - 1
        masks, begins = self._free, self._begins
        units = masks[at]
        found = []
        for following in range(at + 1, len(begins)):
            rest = units & masks[following]
            if rest != units:
                found.append(Step(begins[following], units, units.bit_count()))
                units = rest
                if not units:
                    return found
        if units:
            found.append(Step(inf, units, units.bit_count()))
        return found

    def earliest(self, size: int, walltime: float, usable: int) -> tuple[float, int] | None:
        """Return the first time (s) from which ``size`` of the ``usable`` units are free for ``walltime``, and them."""
        begins, counts, masks = self._begins, self._counts, self._free
        at = 0
        while at < len(begins):
            if counts[at] < size:
                at += 1
                continue
            begin = begins[at]
            end = end_of(begin, walltime)
            units = masks[at] & usable
            following = at + 1
            while following < len(begins) and begins[following] < end and units.bit_count() >= size:
                if counts[following] < size:  # no time before that slice's end will do
                    at = following
                    units = 0
                else:
                    units &= masks[following]
                following += 1
            if units.bit_count() >= size:
                return begin, units
            at += 1
        return None
