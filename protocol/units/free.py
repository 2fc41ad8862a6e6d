"""A mutable set of units, which schedulers use for the free units."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.state import register
from pipistrelle.protocol.units.nodesets import NodeSet

#: above this number of intervals, rebuilding part of the lists is faster than inserting or deleting each interval
_LONG: Final = 2000


@mypyc_attr(allow_interpreted_subclasses=True)
class FreeUnits:
    """A mutable set of units, stored as intervals in ascending order.

    Each change bisects a list and moves its tail, which is fast for up to tens of thousands of intervals. A change that
    raises an error leaves the set unchanged.
    """

    __slots__ = ("_ends", "_starts", "count")

    #: the number of units in the set; read only
    count: int
    #: the lowest and the highest unit of each interval: disjoint, ascending, never adjacent
    _starts: list[int]
    _ends: list[int]

    def __init__(self, units: NodeSet = NodeSet.EMPTY) -> None:
        self._starts = [lo for lo, _ in units.intervals]
        self._ends = [hi for _, hi in units.intervals]
        self.count = units.count

    def take_lowest(self, k: int) -> NodeSet:
        """Remove and return the `k` lowest units; ValueError if `k` is out of range."""
        if not 0 < k <= self.count:
            if k == 0:
                return NodeSet.EMPTY
            raise ValueError(f"cannot take {k} units from {self.count}")
        starts, ends = self._starts, self._ends
        start = starts[0]
        self.count -= k
        if start + k <= ends[0]:
            starts[0] = start + k
            return NodeSet._make(((start, start + k - 1),), k)
        left = k
        whole = 0
        taken = []
        while left:
            start, end = starts[whole], ends[whole]
            if end - start >= left:
                taken.append((start, start + left - 1))
                starts[whole] = start + left
                break
            taken.append((start, end))
            left -= end - start + 1
            whole += 1
        del starts[:whole], ends[:whole]
        return NodeSet._make(tuple(taken), k)

    def take_highest(self, k: int) -> NodeSet:
        """Remove and return the `k` highest units; ValueError if `k` is out of range."""
        if not 0 <= k <= self.count:
            raise ValueError(f"cannot take {k} units from {self.count}")
        starts, ends = self._starts, self._ends
        self.count -= k
        left = k
        taken = []
        while left:
            start, end = starts[-1], ends[-1]
            if end - start >= left:
                taken.append((end - left + 1, end))
                ends[-1] = end - left
                break
            taken.append((start, end))
            left -= end - start + 1
            del starts[-1], ends[-1]
        return NodeSet._make(tuple(reversed(taken)), k)

    def remove(self, units: NodeSet) -> None:
        """Remove `units`; ValueError names the units that are not in the set."""
        starts, ends = self._starts, self._ends
        intervals = units.intervals
        found = []
        for lo, hi in intervals:
            at = bisect_right(starts, lo) - 1
            if at < 0 or ends[at] < hi:
                raise ValueError(f"units not in the set: {self.missing(units)}")
            found.append((lo, hi, at))
        self.count -= units.count
        if len(intervals) > 1 and len(starts) > _LONG and self._rebuilt(units, NodeSet.__sub__):
            return
        # Go from the last interval to the first, so that earlier positions stay valid.
        for lo, hi, at in reversed(found):
            if starts[at] == lo:
                if ends[at] == hi:
                    del starts[at], ends[at]
                else:
                    starts[at] = hi + 1
            elif ends[at] == hi:
                ends[at] = lo - 1
            else:
                starts.insert(at + 1, hi + 1)
                ends.insert(at, lo - 1)

    def add(self, units: NodeSet) -> None:
        """Add `units`; ValueError names the units that are in the set already."""
        starts, ends = self._starts, self._ends
        intervals = units.intervals
        found = []
        for lo, hi in intervals:
            at = bisect_right(starts, hi)
            if at and ends[at - 1] >= lo:
                raise ValueError(f"units in the set already: {units & self.snapshot()}")
            found.append((lo, hi, at))
        self.count += units.count
        if len(intervals) > 1 and len(starts) > _LONG and self._rebuilt(units, NodeSet.__or__):
            return
        for lo, hi, at in reversed(found):
            after = at < len(starts) and starts[at] == hi + 1
            if at and ends[at - 1] == lo - 1:
                if after:
                    del starts[at], ends[at - 1]
                else:
                    ends[at - 1] = hi
            elif after:
                starts[at] = lo
            else:
                starts.insert(at, lo)
                ends.insert(at, hi)

    def has(self, unit: int) -> bool:
        """Return whether the set contains a unit."""
        at = bisect_right(self._starts, unit) - 1
        return at >= 0 and unit <= self._ends[at]

    def missing(self, units: NodeSet) -> NodeSet:
        """Return the units of `units` that are not in the set."""
        starts, ends = self._starts, self._ends
        if len(starts) < len(units.intervals):
            return units - self.snapshot()
        gaps = []
        count = 0
        for lo, hi in units.intervals:
            low = lo
            for at in range(bisect_left(ends, lo), bisect_right(starts, hi)):
                if low < starts[at]:
                    gaps.append((low, starts[at] - 1))
                    count += starts[at] - low
                low = ends[at] + 1
            if low <= hi:
                gaps.append((low, hi))
                count += hi - low + 1
        return NodeSet._make(tuple(gaps), count)

    def snapshot(self) -> NodeSet:
        """Return the set as an immutable value."""
        return NodeSet._make(tuple(zip(self._starts, self._ends, strict=True)), self.count)

    def check_invariants(self) -> None:
        """Raise AssertionError unless the intervals are canonical and `count` is right."""
        if len(self._starts) != len(self._ends):
            raise AssertionError(f"{len(self._starts)} starts but {len(self._ends)} ends")
        before = -2
        count = 0
        for start, end in zip(self._starts, self._ends, strict=True):
            if not before + 1 < start <= end:
                raise AssertionError(f"interval {start}-{end} after one that ends at {before}")
            before = end
            count += end - start + 1
        if count != self.count:
            raise AssertionError(f"count is {self.count} but the intervals hold {count}")

    def _rebuilt(self, units: NodeSet, change: Callable[[NodeSet, NodeSet], NodeSet]) -> bool:
        """Apply a change to the intervals near `units` only, and return True.

        Return False, and change nothing, if more than four times as many intervals are near as `units` has.
        """
        at, past = bisect_left(self._ends, units.first - 1), bisect_right(self._starts, units.last + 1)
        if past - at > 4 * len(units.intervals):
            return False
        starts, ends = self._starts[at:past], self._ends[at:past]
        stretch = NodeSet._make(tuple(zip(starts, ends, strict=True)), sum(ends) - sum(starts) + len(starts))
        changed = change(stretch, units).intervals
        self._starts[at:past] = [lo for lo, _ in changed]
        self._ends[at:past] = [hi for _, hi in changed]
        return True

    def __repr__(self) -> str:
        return f"FreeUnits({self.snapshot()!r})"


register(FreeUnits, lambda units: [str(units.snapshot())], lambda state: FreeUnits(NodeSet.parse(state[0])))
