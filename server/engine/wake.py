"""Which events wake the scheduler, as its replies want it."""

from typing import Final

from pipistrelle.protocol.events import (
    DecisionRejected,
    Event,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    MaintenanceAnnounced,
    MaintenanceBegins,
    MaintenanceEnds,
    NodesFailed,
    NodesRepaired,
    NoMoreJobs,
    RequestedCall,
)
from pipistrelle.protocol.fields import WakeType

#: these wake the scheduler whatever its wake filter says: it asked for them, or must know of what it could not foresee
_ALWAYS: Final[frozenset[type[Event]]] = frozenset(
    (
        RequestedCall,
        DecisionRejected,
        NodesFailed,
        NodesRepaired,
        MaintenanceAnnounced,
        MaintenanceBegins,
        MaintenanceEnds,
    )
)
_WAKE: Final[dict[str, type[Event]]] = {
    "JOB_SUBMITTED": JobSubmitted,
    "JOB_COMPLETED": JobCompleted,
    "JOB_KILLED": JobKilled,
    "NO_MORE_JOBS": NoMoreJobs,
}


class WakeFilters:
    """The filters that replies have had: few, so that each is made once."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[tuple[WakeType, ...], frozenset[type[Event]]] = {}

    def types(self, wake: tuple[WakeType, ...]) -> frozenset[type[Event]]:
        """Return the types of events that wake the scheduler if its reply has this filter."""
        made = self._made.get(wake)
        if made is None:
            made = self._made[wake] = _ALWAYS.union(_WAKE[name] for name in wake)
        return made
