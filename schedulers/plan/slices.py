"""Free units over time, as a list of time slices.

Rules that reserve single units use it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Literal, NamedTuple, Self

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
    """The free units over time, as consecutive slices of time.

    Times are in seconds, sets of units are bit masks. In a slice the same units are free all the time. A slice begins
    where the previous slice ends; the last slice never ends. Adjacent slices with the same free units may remain
    separate. This changes no result: a job that does not fit from the start of a slice fits from no later time within
    it. Taking units that are already taken, or freeing free units, has no effect.

    Each slice stores the number of its free units, and the units that differ from the slice before it. So most changes
    write the masks of two slices only. A search for units that stay free compares only the few slices that start when
    units are taken.

    Args:
        now: start of the first slice.
        free: the units that are free in the first slice.
        ends: (time later than now, units that become free then).
    """

    __slots__ = ("_begins", "_counts", "_gains", "_losses")

    def __init__(self, now: float, free: int, ends: Iterable[tuple[float, int]] = ()) -> None:
        # Parallel lists, not a SortedDict: a scan by index takes 22 ns per step instead of 255 ns (52 ns by `irange`).
        self._begins = [now]
        #: units that are free in a slice, but not in the one before; all free units of the first slice
        self._gains = [free]
        #: units that are free in the slice before, but not in this one
        self._losses = [0]
        self._counts = [free.bit_count()]
        for end, units in sorted(ends):
            if end == inf:
                break
            fresh = units ^ (units & free)
            free |= fresh
            at = self._cut(end)
            self._gains[at] |= fresh
            self._counts[at] += fresh.bit_count()

    def __len__(self) -> int:
        return len(self._begins)

    def copy(self) -> Self:
        """Return an independent copy of these time slices."""
        made = object.__new__(type(self))
        made._begins, made._counts = self._begins.copy(), self._counts.copy()
        made._gains, made._losses = self._gains.copy(), self._losses.copy()
        return made

    @property
    def now(self) -> float:
        """The start of the first slice (s), which is the present."""
        return self._begins[0]

    @property
    def free_now(self) -> int:
        """The units free in the first slice, as a bit mask."""
        return self._gains[0]

    def advance(self, now: float) -> None:
        """Move the start of the first slice to ``now``, and drop earlier slices."""
        past = bisect_right(self._begins, now) - 1
        if past > 0:
            self._gains[past], self._losses[past] = self._free(past), 0
            del self._begins[:past], self._gains[:past], self._losses[:past], self._counts[:past]
        self._begins[0] = now

    def take(self, units: int, begin: float, end: float, width: int | None = None, *, sure: bool = False) -> None:
        """Mark ``units`` (a bit mask) as taken from ``begin`` until ``end`` (s).

        Past times are ignored.

        Args:
            width: the number of units, if known; counting them may take longer than the rest.
            sure: whether all of the units are known to be free until ``end``; then ``width`` is needed.
        """
        begin = max(begin, self._begins[0])
        if end > begin and units:
            first, after = self._cut(begin), self._cut(end)
            turned = units if sure else self._free(first) & units
            self._turn(units, turned, width, sure, (first, after), self._losses, self._gains, -1)

    def give_back(self, units: int, begin: float, end: float, width: int | None = None, *, sure: bool = False) -> None:
        """Mark ``units`` (a bit mask) as free from ``begin`` until ``end`` (s).

        Past times are ignored.

        Args:
            width: the number of units, if known.
            sure: whether all of the units are known to be taken until ``end``; then ``width`` is needed.
        """
        begin = max(begin, self._begins[0])
        if end > begin and units:
            first, after = self._cut(begin), self._cut(end)
            turned = units if sure else units ^ (self._free(first) & units)
            self._turn(units, turned, width, sure, (first, after), self._gains, self._losses, 1)
            self._join(after)
            self._join(first)

    def _turn(
        self,
        units: int,
        turned: int,
        width: int | None,
        sure: bool,
        slices: tuple[int, int],
        turns: list[int],
        returns: list[int],
        sign: Literal[1, -1],
    ) -> None:
        """Take or free ``units`` in some slices.

        Args:
            turned: those of the units whose state changes in the first slice.
            width: the number of units, if known.
            sure: whether all of the units change in all the slices.
            slices: the first slice, and the slice after the last one.
            turns: for each slice, the units that change to the wanted state at its start: those that become free if
                ``sign`` is 1, those that are taken if it is -1.
            returns: for each slice, the units that change to the other state at its start.
            sign: 1 to free units, -1 to take them.
        """
        first, after = slices
        counts = self._counts
        if first:
            undone = returns[first] & turned
            returns[first] ^= undone
            turns[first] |= turned ^ undone
        else:
            self._gains[0] ^= turned
        whole = sure or turned == units
        count = sign * (width if whole and width is not None else turned.bit_count())
        counts[first] += count
        for at in range(first + 1, after):
            if not sure and (turns[at] or not whole):
                common, others = turns[at] & turned, 0 if whole else returns[at] & units
                if common or others:
                    turns[at] ^= common
                    returns[at] ^= others
                    turned = (turned ^ common) | others
                    whole = turned == units
                    count = sign * turned.bit_count()
            counts[at] += count
        if after < len(counts):
            undone = turns[after] & turned
            turns[after] ^= undone
            returns[after] |= turned ^ undone

    def _free(self, at: int) -> int:
        """Return the units that are free in slice ``at``, as a bit mask."""
        gains, losses = self._gains, self._losses
        free = gains[0]
        for following in range(1, at + 1):
            if losses[following]:
                free ^= losses[following]
            if gains[following]:
                free |= gains[following]
        return free

    def steps(self, begin: float, among: tuple[int, int] | None = None) -> list[FreeStep]:
        """Return the units that are free from ``begin`` (s) on, and until when.

        The step with the most units is first. ``begin`` is now or the start of a slice.

        Args:
            among: (bit mask, number of its units): only these units count, and all must be free at ``begin``. None: all
                free units.
        """
        at = bisect_right(self._begins, begin) - 1
        units, width = (self._free(at), self._counts[at]) if among is None else among
        found = []
        losses = self._losses
        for following in range(at + 1, len(losses)):
            if losses[following]:
                lost = units & losses[following]
                if lost:
                    found.append(FreeStep(self._begins[following], units, width))
                    units ^= lost
                    if not units:
                        return found
                    width -= lost.bit_count()
        if units:
            found.append(FreeStep(inf, units, width))
        return found

    def now_for(self, size: int, walltime: float, closures: Sequence[Closure] = ()) -> int:
        """Return the units free from now on for ``walltime`` (s), as a bit mask.

        Return 0 if there are fewer than ``size``. ``closures`` exclude units for this job only.
        """
        return self._through(0, self._gains[0], size, walltime, 0, len(self._begins), closures)[0]

    def earliest(
        self,
        size: int,
        walltime: float,
        choose: Callable[[float, int, int], int] | None = None,
        *,
        own: int = 0,
        own_begin: float = inf,
        closures: Sequence[Closure] = (),
    ) -> Fit | None:
        """Return the first time at which ``size`` units are free for ``walltime`` (s).

        The result has the time and the units. Return None if there is no such time.

        Args:
            choose: chooses the job's units. It gets a possible start (s), the units free from then on for the whole
                walltime, and their number. If it returns 0, the search continues.
            own: units of the job's current reservation, which begins at ``own_begin`` (now or later). From then on they
                count as free, and later starts are not tried.
            closures: exclude units for this job only, even its own.
        """
        begins, counts, gains, losses = self._begins, self._counts, self._gains, self._losses
        for closure in closures:  # a job may fit from the end of a closure on
            if closure.end > begins[0]:
                self._cut(closure.end)
        # No slice may begin there yet, if another job's place on the same units borders on it.
        mine = self._cut(own_begin)
        last = min(mine, len(begins) - 1)
        at = seen = 0
        free = gains[0]
        while at <= last:
            if counts[at] < size and at < mine:
                at += 1
                continue
            while seen < at:
                seen += 1
                if losses[seen]:
                    free ^= losses[seen]
                if gains[seen]:
                    free |= gains[seen]
            units, after = self._through(at, free, size, walltime, own, mine, closures)
            if units:
                units = choose(begins[at], units, after) if choose is not None else units
                if units:
                    return Fit(begins[at], units)
                after = at + 1
            at = after
        return None

    def _through(
        self, at: int, free: int, size: int, walltime: float, own: int, mine: int, closures: Sequence[Closure]
    ) -> tuple[int, int]:
        """Return the units free for ``walltime`` (s) from slice ``at`` on.

        The result has the units as a bit mask, and their number. If they are fewer than ``size``, it has 0 and the next
        slice to try.

        Args:
            free: the free units of slice ``at``.
            own: units that count as free from slice ``mine`` on.
            closures: exclude units for this job only.
        """
        begins, counts = self._begins, self._counts
        end = begins[at] + walltime
        units = free | own if at >= mine else free
        for closure in closures:
            if closure.begin < end_of(begins[at], walltime) and closure.end > begins[at]:
                units ^= units & closure.units
        width = counts[at] if units is free else units.bit_count()
        if width < size:
            return 0, at + 1
        losses = self._losses
        for following in range(at + 1, len(begins)):
            if begins[following] >= end:
                break
            lost = losses[following]
            if not lost:
                continue
            if following < mine and counts[following] < size:
                return 0, following + 1
            lost &= units
            if following >= mine:
                lost ^= lost & own
            if lost:
                units ^= lost
                width -= lost.bit_count()
                if width < size:
                    return 0, at + 1
        return units, width

    def _cut(self, time: float) -> int:
        """Return the index of the slice that begins at ``time`` (s).

        If there is none, split a slice there. For inf, return the number of slices.
        """
        if time == inf:
            return len(self._begins)
        at = bisect_left(self._begins, time)
        if at == len(self._begins) or self._begins[at] != time:
            self._begins.insert(at, time)
            self._gains.insert(at, 0)
            self._losses.insert(at, 0)
            self._counts.insert(at, self._counts[at - 1])
        return at

    def _join(self, at: int) -> None:
        """Merge slice ``at`` with the one before it if the same units are free."""
        if 0 < at < len(self._begins) and not self._gains[at] and not self._losses[at]:
            del self._begins[at], self._gains[at], self._losses[at], self._counts[at]
