"""Records of which attempts hold which units, one attempt per unit or several."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.units.indices import pieces
from pipistrelle.protocol.units.nodesets import NodeSet

_NOBODY: Final = -1
#: some units: a slice or an array of unit numbers
Part = slice | NDArray[np.intp]


class Holders:
    """The record of which attempt holds each unit, if no two attempts share a unit.

    ``serial`` is an attempt's serial number, and ``parts`` are units as slices or arrays.
    """

    def __init__(self, units: int) -> None:
        #: serial number of the attempt that holds each unit, shape (units,)
        self._holder = np.full(units, _NOBODY, dtype=np.int32)
        #: number of units that some attempt holds
        self.held = 0

    def hold(self, parts: Sequence[Part], serial: int, count: int) -> None:
        """Record that an attempt holds ``count`` more units, given as ``parts``."""
        for part in parts:
            self._holder[part] = serial
        self.held += count

    def release(self, parts: Sequence[Part], serial: int, count: int) -> None:
        """Record that an attempt no longer holds its ``count`` units."""
        for part in parts:
            self._holder[part] = _NOBODY
        self.held -= count

    def on(self, units: NodeSet) -> set[int]:
        """Return the serial numbers of the attempts on these units."""
        serials: set[int] = set()
        for part in pieces(units):
            serials.update(self._holder[part].tolist())
        serials.discard(_NOBODY)
        return serials

    def free_among(self, units: NodeSet) -> int:
        """Return how many of these units no attempt holds."""
        return sum(int(np.count_nonzero(self._holder[part] == _NOBODY)) for part in pieces(units))

    def check(self, attempts: Iterable[tuple[int, Sequence[Part]]]) -> None:
        """Assert that exactly these attempts hold units.

        Each attempt is given as (serial number, units).
        """
        holder = np.full_like(self._holder, _NOBODY)
        for serial, parts in attempts:
            for part in parts:
                holder[part] = serial
        assert bool((holder == self._holder).all()), "some units have the wrong holder"
        assert self.held == int(np.count_nonzero(holder != _NOBODY)), "the count of held units is wrong"


class ManyHolders(Holders):
    """The record of which attempts hold each unit; several attempts may share a unit."""

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self._numbers = np.arange(units)
        #: {unit: serial numbers of the attempts on it}
        self._on: dict[int, set[int]] = {}

    def hold(self, parts: Sequence[Part], serial: int, count: int) -> None:
        """Record that an attempt holds the units in ``parts``."""
        for part in parts:
            for unit in self._numbers[part].tolist():
                self._on.setdefault(unit, set()).add(serial)
        self.held = len(self._on)

    def release(self, parts: Sequence[Part], serial: int, count: int) -> None:
        """Record that an attempt no longer holds these units."""
        for part in parts:
            for unit in self._numbers[part].tolist():
                serials = self._on[unit]
                serials.remove(serial)
                if not serials:
                    del self._on[unit]
        self.held = len(self._on)

    def on(self, units: NodeSet) -> set[int]:
        """Return the serial numbers of the attempts on these units."""
        return set().union(*(self._on[unit] for unit in units if unit in self._on))

    def free_among(self, units: NodeSet) -> int:
        """Return how many of these units no attempt holds."""
        return sum(unit not in self._on for unit in units)

    def check(self, attempts: Iterable[tuple[int, Sequence[Part]]]) -> None:
        """Assert that exactly these attempts hold units.

        Each attempt is given as (serial number, units).
        """
        found: dict[int, set[int]] = {}
        for serial, parts in attempts:
            for part in parts:
                for unit in self._numbers[part].tolist():
                    found.setdefault(unit, set()).add(serial)
        assert found == self._on, "some units have the wrong holders"
        assert self.held == len(found), "the count of held units is wrong"
