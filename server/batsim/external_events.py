"""What happens to a machine from outside, by an events file."""

from collections.abc import Sequence

from pipistrelle.protocol.batsim.messages import Notify
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import OUTSIDE, Handlers, Part
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.hosts.switching import Switchboard
from pipistrelle.traces.batsim.events import ExternalEvent


class ExternalEvents(Part):
    """Lets events of a file happen and tells the scheduler of them; the run does not end before the last of them.

    Parameters
    ----------
    clockwork
        the run's, on whose agenda they are put.
    switchboard
        makes units unavailable, and available again.
    events
        the events, by time.
    forward_unknown
        whether the scheduler is told of events of unknown types; they do nothing else.
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
        """Return what is done with which class of what stands on the agenda."""
        return {OUTSIDE: self.happen}

    def happen(self, number: int) -> None:
        """Do what the event of this number says: what stood on the agenda has come up."""
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
