"""Units that are out of service, and why: a unit is back when no reason is left."""

from collections.abc import Iterator

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet


class OutOfService:
    """Sets of units, each out of service for one or several reasons at once.

    A change costs time in the number of intervals that change, and in how many reasons the unit with the most has,
    never in the size of the machine.
    """

    __slots__ = ("_layers", "_reasons", "_units", "all")

    def __init__(self) -> None:
        self._reasons: dict[str, FreeUnits] = {}
        #: layer k holds the units with more than k reasons
        self._layers = [FreeUnits()]
        #: all units that are out of service, as they are at any time; read it, never write it
        self.all = self._layers[0]
        self._units: NodeSet | None = NodeSet.EMPTY

    @property
    def units(self) -> NodeSet:
        """All units that are out of service."""
        if self._units is None:
            self._units = self._layers[0].snapshot()
        return self._units

    def __contains__(self, reason: str) -> bool:
        """Tell whether a unit is out of service for this reason."""
        return reason in self._reasons

    def __iter__(self) -> Iterator[tuple[str, NodeSet]]:
        """Iterate over the reasons, in the order in which they came up, each with its units."""
        return ((reason, units.snapshot()) for reason, units in self._reasons.items())

    def state(self) -> dict[str, str]:
        """Return {reason: its units}, in the order in which the reasons came up."""
        return {reason: str(units) for reason, units in self}

    def restore(self, state: dict[str, str], *made: object) -> None:
        """Go on from a state."""
        for reason, units in state.items():
            self.add(NodeSet.parse(units), reason)

    def up(self, units: NodeSet) -> NodeSet:
        """Return those of ``units`` that are in service."""
        return self._layers[0].missing(units)

    def add(self, units: NodeSet, reason: str) -> NodeSet:
        """Take units out of service; return those that were in service. One that is out for this reason stays so."""
        own = self._reasons.setdefault(reason, FreeUnits())
        left = own.missing(units)
        own.add(left)
        news = self.up(left)
        for layer in self._layers:
            fresh = layer.missing(left)
            layer.add(fresh)
            left -= fresh
        if left:
            self._layers.append(FreeUnits(left))
        self._units = None
        return news

    def remove(self, units: NodeSet, reason: str) -> NodeSet:
        """Let a reason go; return those of ``units`` that were out of service for it alone, and are back."""
        own = self._reasons.get(reason)
        if own is None:
            return NodeSet.EMPTY
        left = units - own.missing(units)
        own.remove(left)
        if not own.count:
            del self._reasons[reason]
        back = NodeSet.EMPTY
        for layer in reversed(self._layers):
            back = left - layer.missing(left)
            layer.remove(back)
            left -= back
        self._layers = [self._layers[0], *(layer for layer in self._layers[1:] if layer.count)]
        self._units = None
        return back
