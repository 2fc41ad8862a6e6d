"""The free units as a line has them: who gets what stands first in it need not look at their numbers."""

from typing import Final

import numpy as np

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.indices import numbers, set_of, set_of_ordered
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.lines import Line

#: so many sets of units are remembered with their positions; those of jobs that run hardly ever are more
_MOST: Final = 4096


class FreeInLine(FreeUnits):
    """A mutable set of units that is held by their positions in a line, or by their numbers: as it was asked for last.

    Runs of free positions are few where those of numbers are many. Whoever alternates between both pays for the whole
    set each time.

    Parameters
    ----------
    line
        the line.
    units
        the units in the set at first.
    """

    __slots__ = ("_at", "_held", "_in_line", "_in_numbers", "_short", "line")

    def __init__(self, line: Line, units: NodeSet = NodeSet.EMPTY) -> None:
        super().__init__(units)
        self.line = line
        # Short numbers are sorted sooner.
        self._short = line.units.astype(np.min_scalar_type(len(line.units)))
        self._at = FreeUnits()
        #: {units that were taken from the line, as text: their positions}
        self._held: dict[str, NodeSet] = {}
        self._in_numbers, self._in_line = True, False

    def take_first(self, k: int) -> NodeSet:
        """Remove the `k` units that stand first in the line and return them; ValueError if there are fewer."""
        self._to_line()
        return self._taken(self._at.take_lowest(k))

    def take_last(self, k: int) -> NodeSet:
        """Remove the `k` units that stand last in the line and return them; ValueError if there are fewer."""
        self._to_line()
        return self._taken(self._at.take_highest(k))

    def take_lowest(self, k: int) -> NodeSet:
        """Remove the `k` lowest units and return them; ValueError if there are fewer."""
        self._to_numbers()
        self._in_line = False
        return super().take_lowest(k)

    def take_highest(self, k: int) -> NodeSet:
        """Remove the `k` highest units and return them; ValueError if there are fewer."""
        self._to_numbers()
        self._in_line = False
        return super().take_highest(k)

    def remove(self, units: NodeSet) -> None:
        """Remove `units`; ValueError if some of them are not in the set."""
        self._to_numbers()
        super().remove(units)
        self._in_line = False

    def add(self, units: NodeSet) -> None:
        """Put `units` in; ValueError if some of them are in the set already."""
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

    def missing(self, units: NodeSet) -> NodeSet:
        """Return those of `units` that are not in the set."""
        self._to_numbers()
        return super().missing(units)

    def snapshot(self) -> NodeSet:
        """Return the set as it is now."""
        self._to_numbers()
        return super().snapshot()

    def state(self) -> list[str]:
        """Return what `pipistrelle.protocol.base.state.plain` makes of a plain set of these units."""
        return ["FreeUnits", str(self.snapshot())]

    def check_invariants(self) -> None:
        """Check what `FreeUnits` does, and that numbers and positions agree where both are held."""
        both = self._in_line and self._in_numbers
        self._to_numbers()
        super().check_invariants()
        if both and self._numbers_of(self._at.snapshot()) != super().snapshot():
            raise AssertionError("the positions in the line are not those of the units")

    def _taken(self, at: NodeSet) -> NodeSet:
        """Return the units at positions that were taken, and remember these."""
        self.count = self._at.count
        self._in_numbers = False
        units = self._numbers_of(at)
        if len(self._held) >= _MOST:
            self._held.clear()
        self._held[str(units)] = at
        return units

    def _numbers_of(self, at: NodeSet) -> NodeSet:
        """Return the units at some positions."""
        units = self._short
        intervals = at.intervals
        if len(intervals) == 1:
            ordered = units[intervals[0][0] : intervals[0][1] + 1].copy()
        else:
            ordered = np.concatenate([units[low : high + 1] for low, high in intervals] or [units[:0]])
        ordered.sort(kind="stable")  # a radix sort, for short numbers
        return set_of_ordered(ordered)

    def _to_line(self) -> None:
        if not self._in_line:
            self._at = FreeUnits(set_of(self.line.position[numbers(super().snapshot())]))
            self._in_line = True

    def _to_numbers(self) -> None:
        if not self._in_numbers:
            super().__init__(self._numbers_of(self._at.snapshot()))
            self._in_numbers = True
