"""Units out of service, and why; a unit returns when its last reason is removed."""

from collections.abc import Iterator

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet


class OutOfService:
    """The units out of service, with the reasons.

    A unit may have several reasons at once. The cost of a change depends on the number of changed intervals of units
    and the largest number of reasons of a unit, never on the size of the machine.
    """

    __slots__ = ("_layers", "_reasons", "_units", "all")

    def __init__(self) -> None:
        self._reasons: dict[str, FreeUnits] = {}
        #: layer k holds the units with more than k reasons
        self._layers = [FreeUnits()]
        #: all units out of service, always current; read-only
        self.all = self._layers[0]
        self._units: NodeSet | None = NodeSet.EMPTY

    @property
    def units(self) -> NodeSet:
        """All units that are out of service."""
        if self._units is None:
            self._units = self._layers[0].snapshot()
        return self._units

    def __contains__(self, reason: str) -> bool:
        return reason in self._reasons

    def __iter__(self) -> Iterator[tuple[str, NodeSet]]:
        """Iterate over (reason, units out of service for it), oldest reason first."""
        return ((reason, units.snapshot()) for reason, units in self._reasons.items())

    def state(self) -> dict[str, str]:
        """Return {reason: units out of service for it}, oldest reason first."""
        return {reason: str(units) for reason, units in self}

    def restore(self, state: dict[str, str], *made: object) -> None:
        """Restore the reasons that the method `state` returned."""
        for reason, units in state.items():
            self.add(NodeSet.parse(units), reason)

    def up(self, units: NodeSet) -> NodeSet:
        """Return which of ``units`` are in service."""
        return self._layers[0].missing(units)

    def add(self, units: NodeSet, reason: str) -> NodeSet:
        """Take units out of service for a reason; return those that were in service."""
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
        """Remove a reason why units are out of service.

        Return the units that are back in service.
        """
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
