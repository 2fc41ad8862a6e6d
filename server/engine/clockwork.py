"""The state that all parts of a run share, and the rules that differ between dialects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.events import (
    DecisionRejected,
    Event,
    JobCancelled,
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
from pipistrelle.protocol.fields import Feature, WakeType
from pipistrelle.server.engine.agenda import REQUEUE, Agenda
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.jobs import Job


@dataclass(frozen=True, slots=True)
class DialectRules:
    """The differences between the protocol's dialects; the defaults are the native dialect.

    Attributes:
        news_apart: whether the event that a source is exhausted gets its own notice, after the source's last event.
        waits_for_calls: whether the run continues until the last wake-up call (CALL_ME_LATER) is delivered.
        waits_for_word: whether a scheduler that may register jobs must declare that it has registered its last job.
        tells_profiles: whether a job's progress includes its profile, and the progress of each part of the profile.
        strict_hint: hint shown with the error that ends a strict run after an illegal decision.
    """

    news_apart: bool = False
    waits_for_calls: bool = False
    waits_for_word: bool = False
    tells_profiles: bool = False
    strict_hint: str = "Without --strict it would be answered with DECISION_REJECTED."


NATIVE: Final = DialectRules()

#: events that always wake the scheduler, because it requested them or cannot foresee them
_ALWAYS: Final[frozenset[type[Event]]] = frozenset(
    (
        RequestedCall,
        DecisionRejected,
        JobCancelled,
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


class Clockwork(Kept):
    """State that the parts of an engine share: time, agenda, cluster and pending events."""

    _kept: ClassVar[tuple[str, ...]] = (
        *("now", "seq", "pending", "registering", "stopped", "must_wake", "outbox", "news", "wanted", "agenda"),
        "cluster",
    )

    def __init__(self, cluster: Cluster, rules: DialectRules = NATIVE, features: Sequence[Feature] = ()) -> None:
        self.cluster = cluster
        self.rules = rules
        self.features = frozenset(features)
        self.agenda = Agenda()
        #: simulated time in seconds
        self.now = 0.0
        self.seq = 0
        #: number of events that the end of the run waits for, besides queued and running jobs
        self.pending = 0
        self.registering = "dynamic_jobs" in self.features
        self.stopped: str | None = None
        #: events of the next notice, and whether one of them must wake the scheduler
        self.outbox: list[Event] = []
        self.must_wake = False
        #: events of the second-next notice
        self.news: list[Event] = []
        #: event types that wake the scheduler; None: all types
        self._wake: frozenset[type[Event]] | None = None
        self.wanted: tuple[WakeType, ...] | None = None
        self._filters: dict[tuple[WakeType, ...], frozenset[type[Event]]] = {}

    def tell(self, event: Event) -> None:
        """Add an event to the next notice to the scheduler."""
        self.outbox.append(event)
        if self._wake is None or type(event) in self._wake:
            self.must_wake = True

    def tell_apart(self, event: Event) -> None:
        """Report that a source of events is exhausted, in its own notice if the dialect says so."""
        if self.rules.news_apart and self.must_wake:
            self.news.append(event)
        else:
            self.tell(event)

    def wake_on(self, wanted: tuple[WakeType, ...] | None) -> None:
        """Wake the scheduler only for these event types; None means all types.

        Some events, such as rejections and failures of nodes, always wake it. A scheduler without the feature
        ``wake_filter`` is woken for every event.
        """
        self.wanted = wanted
        if wanted is None or "wake_filter" not in self.features:
            self._wake = None
            return
        made = self._filters.get(wanted)
        if made is None:
            made = self._filters[wanted] = _ALWAYS.union(_WAKE[name] for name in wanted)
        self._wake = made

    def queue_at(self, time: float, job: Job) -> None:
        """Schedule a held or requeued job to join the queue at ``time`` (s)."""
        self.cluster.coming[job.id] = job
        self.agenda.put(time, REQUEUE, job.id)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the shared state from a snapshot."""
        super().restore(state)
        self.wake_on(self.wanted)
