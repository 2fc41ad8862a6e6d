"""Placements: which of the free units a job gets."""

from typing import Protocol

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet


class Placement(Protocol):
    """Picks units for a job."""

    def take(self, free: FreeUnits, size: int) -> NodeSet:
        """Remove ``size`` units from ``free``, which holds at least as many, and return them."""


class LowestIds:
    """The free units with the lowest numbers."""

    def take(self, free: FreeUnits, size: int) -> NodeSet:
        """Remove and return the ``size`` lowest free units."""
        return free.take_lowest(size)


PLACEMENTS: dict[str, type[Placement]] = {"lowest": LowestIds}
