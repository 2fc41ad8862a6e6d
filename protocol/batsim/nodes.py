"""Nodes that fail, are repaired and are maintained, in Batsim's words: machines become unavailable and available.

Batsim tells neither why nor that maintenance is planned. MAINTENANCE_ANNOUNCED is therefore not sent; a notice of
nothing else is a message without events, which Batsim has for "nothing happened".
"""

from collections.abc import Callable
from typing import Any, Final

from pipistrelle.protocol.batsim.messages import Notify
from pipistrelle.protocol.events import (
    MaintenanceAnnounced,
    MaintenanceBegins,
    MaintenanceEnds,
    NodesFailed,
    NodesRepaired,
)


def _unavailable(event: NodesFailed | MaintenanceBegins) -> Notify:
    return Notify(event.timestamp, {"type": "event_machine_unavailable", "resources": event.data.units})


def _available(event: NodesRepaired | MaintenanceEnds) -> Notify:
    return Notify(event.timestamp, {"type": "event_machine_available", "resources": event.data.units})


def _untold(event: MaintenanceAnnounced) -> None:
    return None


#: {type of a native event: what makes Batsim's of it, or None if there is none}
NODE_WRITERS: Final[dict[type[Any], Callable[[Any], Notify | None]]] = {
    **dict.fromkeys((NodesFailed, MaintenanceBegins), _unavailable),
    **dict.fromkeys((NodesRepaired, MaintenanceEnds), _available),
    MaintenanceAnnounced: _untold,
}
