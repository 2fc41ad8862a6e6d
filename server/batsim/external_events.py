"""What happens to a machine from outside, by an events file."""

from collections.abc import Sequence

from pipistrelle.protocol.batsim.messages import Notify
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import OUTSIDE
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.hosts.switching import Switchboard
from pipistrelle.traces.batsim.events import ExternalEvent


class Outside:
    """Lets events of a file happen and tells the scheduler of them; the run does not end before the last of them.

    Parameters
    ----------
    engine
        the engine, on whose agenda they are put.
    switchboard
        makes units unavailable, and available again.
    events
        the events, by time.
    forward_unknown
        whether the scheduler is told of events of unknown types; they do nothing else.
    """

    def __init__(
        self, engine: Engine, switchboard: Switchboard, events: Sequence[ExternalEvent], *, forward_unknown: bool
    ) -> None:
        self._engine = engine
        self._switchboard = switchboard
        self._forward_unknown = forward_unknown
        self._left = len(events)
        engine.pending += len(events)
        for event in events:
            engine.agenda.put(event.timestamp, OUTSIDE, event)

    def happen(self, event: ExternalEvent) -> None:
        """Do what an event says: what stood on the agenda has come up."""
        engine, now = self._engine, self._engine.now
        if event.type in ("machine_unavailable", "machine_available"):
            units = NodeSet.parse(event.resources)
            change = self._switchboard.restore if event.type == "machine_available" else self._switchboard.withdraw
            news = change(now, units)
            if news:
                engine.tell(Notify(now, {"type": f"event_{event.type}", "resources": str(news)}))
        elif self._forward_unknown:
            engine.tell(Notify(now, dict(event.raw)))
        self._left -= 1
        engine.pending -= 1
        if not self._left:
            engine.tell_apart(Notify(now, {"type": "no_more_external_event_to_occur"}))
