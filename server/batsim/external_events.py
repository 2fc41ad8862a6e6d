"""External events of a run, such as unavailable machines, from an events file."""

from collections.abc import Sequence

from pipistrelle.protocol.batsim.messages import Notify
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import OUTSIDE, Handlers, Part
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.hosts.switching import Switchboard
from pipistrelle.traces.batsim.events import ExternalEvent


class ExternalEvents(Part):
    """The engine part that applies the events of an events file.

    It also reports them to the scheduler. A run does not end before the last event.

    Args:
        forward_unknown: whether the scheduler gets events of unknown types, which have no other effect.
    """

    _kept = ("_left",)

    def __init__(
        self, clockwork: Clockwork, switchboard: Switchboard, events: Sequence[ExternalEvent], *, forward_unknown: bool
    ) -> None:
        self._clockwork = clockwork
        self._events = events
        self._switchboard = switchboard
        self._forward_unknown = forward_unknown
        self._left = len(events)
        clockwork.pending += len(events)
        for number, event in enumerate(events):
            clockwork.agenda.put(event.timestamp, OUTSIDE, number)

    def handlers(self) -> Handlers:
        """Return {event class: function that handles its events}."""
        return {OUTSIDE: self.happen}

    def happen(self, number: int) -> None:
        """Apply the event with the index ``number`` in the events file."""
        clockwork, now, event = self._clockwork, self._clockwork.now, self._events[number]
        if event.type in ("machine_unavailable", "machine_available"):
            units = NodeSet.parse(event.resources)
            change = self._switchboard.give_back if event.type == "machine_available" else self._switchboard.withdraw
            news = change(now, units)
            if news:
                clockwork.tell(Notify(now, {"type": f"event_{event.type}", "resources": str(news)}))
        elif self._forward_unknown:
            clockwork.tell(Notify(now, dict(event.raw)))
        self._left -= 1
        clockwork.pending -= 1
        if not self._left:
            clockwork.tell_apart(Notify(now, {"type": "no_more_external_event_to_occur"}))
