"""What a placement sees of the machine."""

from msgspec import Struct

from pipistrelle.protocol.units.nodesets import NodeSet


class Machine(Struct, frozen=True, eq=False):
    """A machine of ``units`` units, numbered from 0."""

    units: int

    @property
    def all_units(self) -> NodeSet:
        """Every unit there is."""
        return NodeSet.interval(0, self.units - 1)
