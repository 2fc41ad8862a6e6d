"""The set of free units, by position in the order in which jobs get units.

It serves placements that take units from either end of this order.
"""

from typing import Final

import numpy as np

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.indices import numbers, set_of, set_of_ordered
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.lines import Line

#: most sets of units whose positions are remembered; running jobs rarely have more
_MOST: Final = 4096


class FreeInLine(FreeUnits):
    """A mutable set of free units, stored by number or by position in a `Line`.

    A line is the order in which jobs get units. A set can have few runs of adjacent positions but many runs of adjacent
    numbers. Each switch between positions and numbers converts the whole set.

    Args:
        units: the initial units.
    """

    __slots__ = ("_at", "_held", "_in_line", "_in_numbers", "_short", "line")

    def __init__(self, line: Line, units: NodeSet = NodeSet.EMPTY) -> None:
        super().__init__(units)
        self.line = line
        # Shorter integers sort faster.
        self._short = line.units.astype(np.min_scalar_type(len(line.units)))
        self._at = FreeUnits()
        #: {units taken from the line, as text: their positions}
        self._held: dict[str, NodeSet] = {}
        self._in_numbers, self._in_line = True, False

    def take_first(self, k: int) -> NodeSet:
        """Remove and return the first `k` free units in the order of the line.

        Raise ValueError if there are too few.
        """
        self._to_line()
        return self._taken(self._at.take_lowest(k))

    def take_last(self, k: int) -> NodeSet:
        """Remove and return the last `k` free units in the order of the line.

        Raise ValueError if there are too few.
        """
        self._to_line()
        return self._taken(self._at.take_highest(k))

    def take_lowest(self, k: int) -> NodeSet:
        """Remove and return the `k` lowest units.

        Raise ValueError if there are too few.
        """
        self._to_numbers()
        self._in_line = False
        return super().take_lowest(k)

    def take_highest(self, k: int) -> NodeSet:
        """Remove and return the `k` highest units.

        Raise ValueError if there are too few.
        """
        self._to_numbers()
        self._in_line = False
        return super().take_highest(k)

    def remove(self, units: NodeSet) -> None:
        """Remove `units` from the set of free units.

        Raise ValueError if some of them are not in the set.
        """
        self._to_numbers()
        super().remove(units)
        self._in_line = False

    def add(self, units: NodeSet) -> None:
        """Add `units` to the set of free units.

        Raise ValueError if some of them are already in the set.
        """
        at = None if self._in_numbers else self._held.pop(str(units), None)
        if at is None:
            self._to_numbers()
            super().add(units)
            self._in_line = False
            return
        try:
            self._at.add(at)
        except ValueError:
            raise ValueError(f"units in the set already: {units & self.snapshot()}") from None
        self.count = self._at.count

    def has(self, unit: int) -> bool:
        """Return whether the unit is free, that is, in the set."""
        return super().has(unit) if self._in_numbers else self._at.has(int(self.line.position[unit]))

    def missing(self, units: NodeSet) -> NodeSet:
        """Return the units among `units` that are not in the set."""
        self._to_numbers()
        return super().missing(units)

    def snapshot(self) -> NodeSet:
        """Return the free units as an immutable set."""
        self._to_numbers()
        return super().snapshot()

    def state(self) -> list[str]:
        """Return the free units as plain values, in the form that `FreeUnits` uses."""
        return ["FreeUnits", str(self.snapshot())]

    def check_invariants(self) -> None:
        """Check the invariants of `FreeUnits`.

        Also check that unit numbers and positions in the line stand for the same units, if this object has both.
        """
        both = self._in_line and self._in_numbers
        self._to_numbers()
        super().check_invariants()
        if both and self._numbers_of(self._at.snapshot()) != super().snapshot():
            raise AssertionError("the positions in the line are not those of the units")

    def _taken(self, at: NodeSet) -> NodeSet:
        """Return the units at the positions ``at``, which were just removed from the set.

        The positions are remembered, so that the units can be added again quickly.
        """
        self.count = self._at.count
        self._in_numbers = False
        units = self._numbers_of(at)
        if len(self._held) >= _MOST:
            self._held.clear()
        self._held[str(units)] = at
        return units

    def _numbers_of(self, at: NodeSet) -> NodeSet:
        units = self._short
        intervals = at.intervals
        if len(intervals) == 1:
            ordered = units[intervals[0][0] : intervals[0][1] + 1].copy()
        else:
            ordered = np.concatenate([units[low : high + 1] for low, high in intervals] or [units[:0]])
        ordered.sort(kind="stable")  # a radix sort for short integers
        return set_of_ordered(ordered)

    def _to_line(self) -> None:
        if not self._in_line:
            self._at = FreeUnits(set_of(self.line.position[numbers(super().snapshot())]))
            self._in_line = True

    def _to_numbers(self) -> None:
        if not self._in_numbers:
            super().__init__(self._numbers_of(self._at.snapshot()))
            self._in_numbers = True
