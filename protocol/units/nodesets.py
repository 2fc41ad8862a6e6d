"""The immutable set of units, stored as intervals: cheap with 100,000 units.

Its text form is used on the wire: intervals ``lo`` or ``lo-hi``, both ends included, separated by single spaces, as in
``"0-3 8-19"``; the empty text is the empty set. `pipistrelle.protocol.units.free.FreeUnits` is the mutable set.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from pipistrelle.protocol.base.state import register
from pipistrelle.protocol.units.text import (
    LARGEST_UNIT,
    NodeSetError,
    match_interval,
    match_set,
    overlap_error,
    piece_error,
)

_new: Final = object.__new__


#: {text: set} of recently written sets, so that reading such a text in the same process returns the same set
_written: Final[dict[str, "NodeSet"]] = {}
_MOST_WRITTEN: Final = 4096


class NodeSet:
    """An immutable set of units, held as disjoint, ascending, non-adjacent intervals.

    Sets with the same units are equal and have the same hash. The time of operations depends on the number of
    intervals, not of units; only iteration visits each unit.

    Args:
        intervals: pairs (lo, hi) of unit numbers, both included, in any order; neighbours are merged.

    Raises:
        NodeSetError: if lo > hi, a number is negative or beyond `LARGEST_UNIT`, or two intervals overlap.
    """

    __slots__ = ("_bounds", "_count", "_intervals", "_text", "_units")

    _intervals: tuple[tuple[int, int], ...]
    _count: int
    #: the canonical text, once it was requested
    _text: str | None
    #: begins and ends of the intervals, until the tuple of intervals is made
    _bounds: tuple[list[int], list[int]]
    #: the array of unit numbers, if `pipistrelle.protocol.units.indices` keeps it
    _units: Any

    #: the set without units
    EMPTY: ClassVar["NodeSet"]

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        pairs = list(intervals)
        for lo, hi in pairs:
            if not 0 <= lo <= hi <= LARGEST_UNIT:
                raise NodeSetError(
                    "an interval of units is not valid",
                    expected=f"0 <= lo <= hi <= {LARGEST_UNIT}",
                    found=f"lo = {lo}, hi = {hi}",
                )
        self._intervals, self._count = _merged(pairs)
        self._text = self._units = None

    @classmethod
    def _make(cls, intervals: tuple[tuple[int, int], ...], count: int) -> Self:
        """Return the set of canonical intervals, without checks.

        It has `count` units in total.
        """
        made = _new(cls)
        made._intervals = intervals
        made._count = count
        made._text = made._units = None
        return made

    @classmethod
    def _of_bounds(cls, lows: list[int], highs: list[int], count: int) -> Self:
        """Return the set of canonical intervals with these begins and ends, unchecked.

        The tuple and the text are made only on request, because many fragmented sets are never read.
        """
        made = _new(cls)
        made._bounds = lows, highs
        made._count = count
        made._units = None
        return made

    def __getattr__(self, name: str) -> Any:
        # Python calls this method only for a slot without a value.
        if name == "_intervals":
            self._intervals = tuple(zip(*self._bounds, strict=True))
            return self._intervals
        if name == "_text":
            self._text = None
            return self._written_as(zip(*self._bounds, strict=True))
        raise AttributeError(name)

    @classmethod
    def parse(cls, text: str) -> "NodeSet":
        """Return the set of a text such as ``"0-3 8-19"``; intervals may be in any order.

        Raises:
            NodeSetError: if an interval is empty, is not in decimal digits, has a leading zero, runs backwards, exceeds
                `LARGEST_UNIT` or repeats a unit. The error names the interval by its number and its character position,
                both from 1.
        """
        known = _written.get(text)
        if known is not None:
            return known
        found = match_interval(text)
        if found is not None:  # the text is one interval, as in most allocations
            first, second = found.groups()
            lo = int(first)
            hi = lo if second is None else int(second)
            if lo < hi or second is None:
                made = cls._make(((lo, hi),), hi - lo + 1)
                made._text = text
                return made
        if not text:
            return cls.EMPTY
        # Nearly every other text is also canonical: well-formed, ascending, neighbours merged.
        if match_set(text) is not None:
            intervals = []
            high = -2
            count = 0
            for piece in text.split(" "):
                first, dash, second = piece.partition("-")
                lo = int(first)
                if dash:
                    hi = int(second)
                    if not high + 1 < lo < hi:
                        break
                    count += hi - lo + 1
                else:
                    hi = lo
                    if high + 1 >= lo:
                        break
                    count += 1
                intervals.append((lo, hi))
                high = hi
            else:
                made = cls._make(tuple(intervals), count)
                made._text = text
                return made
        pairs = []
        position = 1
        for number, piece in enumerate(text.split(" "), 1):
            found = match_interval(piece)
            lo, hi = (int(found[1]), int(found[2] or found[1])) if found is not None else (1, 0)
            if lo > hi:
                raise piece_error(piece, number, position)
            pairs.append((lo, hi))
            position += len(piece) + 1
        try:
            return cls._make(*_merged(pairs))
        except NodeSetError:
            raise overlap_error(text, pairs) from None

    @classmethod
    def of(cls, units: Iterable[int]) -> "NodeSet":
        """Return the set of `units`, given in any order, repeats allowed.

        Raises:
            NodeSetError: if a unit is negative or beyond `LARGEST_UNIT`.
        """
        intervals = []
        ordered = sorted(set(units))
        if ordered and not 0 <= ordered[0] <= ordered[-1] <= LARGEST_UNIT:
            raise NodeSetError(
                "a unit is out of range",
                expected=f"0 to {LARGEST_UNIT}",
                found=str(ordered[0] if ordered[0] < 0 else ordered[-1]),
            )
        lo = hi = -2
        for unit in ordered:
            if unit == hi + 1:
                hi = unit
                continue
            if lo >= 0:
                intervals.append((lo, hi))
            lo = hi = unit
        if lo >= 0:
            intervals.append((lo, hi))
        return cls._make(tuple(intervals), len(ordered))

    @classmethod
    def interval(cls, lo: int, hi: int) -> "NodeSet":
        """Return the set of units `lo` to `hi`; NodeSetError unless lo <= hi and in range."""
        if 0 <= lo <= hi <= LARGEST_UNIT:
            return cls._make(((lo, hi),), hi - lo + 1)
        return cls(((lo, hi),))

    if TYPE_CHECKING:

        @property
        def intervals(self) -> tuple[tuple[int, int], ...]:
            """The intervals (lo, hi), both ends included: disjoint, ascending, never adjacent."""

        @property
        def count(self) -> int:
            """The number of units."""

        @property
        def numbered(self) -> Any:
            """The array of unit numbers if the set keeps one, else None."""

        @property
        def written(self) -> str | None:
            """The canonical text if it has been made, else None."""

    else:  # this code runs at every step of a job, so it avoids a Python call
        intervals = property(
            attrgetter("_intervals"), doc="The intervals (lo, hi): disjoint, ascending, never adjacent."
        )
        count = property(attrgetter("_count"), doc="The number of units.")
        written = property(attrgetter("_text"), doc="The canonical text if it has been made, else None.")
        numbered = property(attrgetter("_units"), doc="The array of unit numbers if the set keeps one, else None.")

    @property
    def first(self) -> int:
        """The lowest unit; ValueError if the set is empty."""
        if not self._intervals:
            raise ValueError("the empty set has no first unit")
        return self._intervals[0][0]

    @property
    def last(self) -> int:
        """The highest unit; ValueError if the set is empty."""
        if not self._intervals:
            raise ValueError("the empty set has no last unit")
        return self._intervals[-1][1]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(range(lo, hi + 1) for lo, hi in self._intervals)

    def __contains__(self, unit: object) -> bool:
        if not isinstance(unit, int):
            return False
        at = _after(self._intervals, unit) - 1
        return at >= 0 and unit <= self._intervals[at][1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeSet):
            return NotImplemented
        return self._intervals == other._intervals

    def __hash__(self) -> int:
        return hash(self._intervals)

    def __le__(self, other: "NodeSet") -> bool:
        if not isinstance(other, NodeSet):
            return NotImplemented
        theirs = other._intervals
        at = 0
        for lo, hi in self._intervals:
            at = _after(theirs, lo, at)
            if at == 0 or theirs[at - 1][1] < hi:
                return False
        return True

    def isdisjoint(self, other: "NodeSet") -> bool:
        """Return whether the two sets have no unit in common."""
        few, many = _by_length(self._intervals, other._intervals)
        at = 0
        for lo, hi in few:
            at = _after(many, hi, at)
            if at > 0 and many[at - 1][1] >= lo:
                return False
        return True

    def __or__(self, other: "NodeSet") -> "NodeSet":
        if not isinstance(other, NodeSet):
            return NotImplemented
        few, many = (self, other) if len(self._intervals) <= len(other._intervals) else (other, self)
        if not few._intervals:
            return self if few is other else other
        # Visit only the stretch of `many` that `few` spans, with neighbours.
        at = max(_after(many._intervals, few._intervals[0][0]) - 1, 0)
        past = _after(many._intervals, few._intervals[-1][1] + 1)
        stretch = many._intervals[at:past]
        count = many._count - sum([hi - lo + 1 for lo, hi in stretch])
        merged: list[tuple[int, int]] = []
        ordered = sorted(few._intervals + stretch)
        low, high = ordered[0]
        for lo, hi in ordered:
            if lo > high + 1:
                merged.append((low, high))
                count += high - low + 1
                low, high = lo, hi
            elif hi > high:
                high = hi
        merged.append((low, high))
        count += high - low + 1
        return self._make((*many._intervals[:at], *merged, *many._intervals[past:]), count)

    def __and__(self, other: "NodeSet") -> "NodeSet":
        if not isinstance(other, NodeSet):
            return NotImplemented
        few, many = _by_length(self._intervals, other._intervals)
        common: list[tuple[int, int]] = []
        count = 0
        for lo, hi in few:
            at = _after(many, lo)
            if at > 0 and many[at - 1][1] >= lo:
                at -= 1
            while at < len(many) and many[at][0] <= hi:
                low, high = max(lo, many[at][0]), min(hi, many[at][1])
                common.append((low, high))
                count += high - low + 1
                at += 1
        return self._make(tuple(common), count)

    def __sub__(self, other: "NodeSet") -> "NodeSet":
        if not isinstance(other, NodeSet):
            return NotImplemented
        ours, theirs = self._intervals, other._intervals
        if not ours or not theirs:
            return self
        if len(ours) < len(theirs):
            return self._without(theirs)
        rest: list[tuple[int, int]] = []
        count = self._count
        done = 0  # ours[:done] is handled, except low..high, which is left of the last of them
        low, high = 0, -1
        for lo, hi in theirs[max(_after(theirs, ours[0][0]) - 1, 0) : _after(theirs, ours[-1][1])]:
            if lo > high:
                if low <= high:
                    rest.append((low, high))
                at = max(_after(ours, lo, done) - 1, done)
                rest.extend(ours[done:at])
                low, high = ours[at] if at < len(ours) else (0, -1)
                done = at + 1
            while True:
                if low <= hi and lo <= high:
                    if low < lo:
                        rest.append((low, lo - 1))
                    count -= min(hi, high) - max(lo, low) + 1
                    low = min(hi, high) + 1
                if hi <= high or done >= len(ours) or ours[done][0] > hi:
                    break
                if low <= high:
                    rest.append((low, high))
                low, high = ours[done]
                done += 1
        if low <= high:
            rest.append((low, high))
        rest.extend(ours[done:])
        return self if count == self._count else self._make(tuple(rest), count)

    def _without(self, theirs: tuple[tuple[int, int], ...]) -> "NodeSet":
        """Return this set's units that are not in ``theirs``.

        ``theirs`` has more intervals than this set.
        """
        rest: list[tuple[int, int]] = []
        count = 0
        for lo, high in self._intervals:
            at = _after(theirs, lo)
            low = max(lo, theirs[at - 1][1] + 1) if at else lo
            while at < len(theirs) and theirs[at][0] <= high:
                rest.append((low, theirs[at][0] - 1))
                count += theirs[at][0] - low
                low = theirs[at][1] + 1
                at += 1
            if low <= high:
                rest.append((low, high))
                count += high - low + 1
        return self if count == self._count else self._make(tuple(rest), count)

    def __str__(self) -> str:
        text = self._text
        return self._written_as(self._intervals) if text is None else text

    def _written_as(self, intervals: Iterable[tuple[int, int]]) -> str:
        text = self._text = " ".join([f"{lo}-{hi}" if lo != hi else str(lo) for lo, hi in intervals])
        if len(_written) >= _MOST_WRITTEN:
            _written.clear()
        _written[text] = self
        return text

    def __repr__(self) -> str:
        return f"NodeSet.parse({str(self)!r})"


def _after(intervals: tuple[tuple[int, int], ...], unit: int, start: int = 0) -> int:
    """Return the index of the first interval that begins after `unit`.

    The search begins at index `start`.
    """
    # (unit + 1, 0) sorts before every interval that begins at unit + 1 and after all earlier ones.
    return bisect_left(intervals, (unit + 1, 0), start)


def _by_length(
    one: tuple[tuple[int, int], ...], two: tuple[tuple[int, int], ...]
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Return the intervals of both sets, the shorter tuple first.

    Callers loop over the first.
    """
    return (one, two) if len(one) <= len(two) else (two, one)


def _merged(pairs: list[tuple[int, int]]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the canonical intervals of disjoint `pairs`, and the number of units."""
    merged: list[tuple[int, int]] = []
    count = 0
    high = -2
    for lo, hi in sorted(pairs):
        if lo <= high:
            raise NodeSetError("two intervals of units overlap", found=f"{lo}-{hi} after an interval up to {high}")
        if lo == high + 1:
            merged[-1] = (merged[-1][0], hi)
        else:
            merged.append((lo, hi))
        high = hi
        count += hi - lo + 1
    return tuple(merged), count


NodeSet.EMPTY = NodeSet()


register(NodeSet, lambda units: [str(units)], lambda state: NodeSet.parse(state[0]))
