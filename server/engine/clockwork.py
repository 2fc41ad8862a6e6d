"""What all parts of a run share: time, agenda, machine, what is to be told, and the rules of the dialect."""

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
    """What a run goes by that is not the same in both dialects; the native one's rules are the defaults.

    Parameters
    ----------
    news_apart
        whether the news that a source is exhausted comes with a notice of its own, after that of its last event.
    waits_for_calls
        whether the run does not end before the last call that was asked for, nor before its scheduler can hear it.
    waits_for_word
        whether a scheduler that may register jobs must say that it registers no more.
    tells_profiles
        whether the progress of a job tells its profile, and the parts of that.
    strict_hint
        what is said of an illegal decision that ends a run.
    """

    news_apart: bool = False
    waits_for_calls: bool = False
    waits_for_word: bool = False
    tells_profiles: bool = False
    strict_hint: str = "Without --strict it would be answered with DECISION_REJECTED."


NATIVE: Final = DialectRules()

#: these wake the scheduler whatever its wake filter says: it asked for them, or must know of what it could not foresee
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
    """What the parts of an engine work on together.

    Parameters
    ----------
    cluster
        the machine with its jobs.
    rules
        what the dialect does otherwise.
    features
        the optional parts of the protocol that were agreed on.
    """

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
        #: number of the last notice
        self.seq = 0
        #: how many things other than jobs are under way that the end of the run waits for
        self.pending = 0
        #: whether the scheduler may still register jobs
        self.registering = "dynamic_jobs" in self.features
        #: set by a STOP decision: its reason
        self.stopped: str | None = None
        #: what the next notice tells, and whether one of that must wake the scheduler
        self.outbox: list[Event] = []
        self.must_wake = False
        #: what the notice after the next tells
        self.news: list[Event] = []
        #: what wakes the scheduler; None: everything does
        self._wake: frozenset[type[Event]] | None = None
        #: what the last reply asked to be woken by
        self.wanted: tuple[WakeType, ...] | None = None
        #: the filters that replies have had: few, so that each is made once
        self._filters: dict[tuple[WakeType, ...], frozenset[type[Event]]] = {}

    def tell(self, event: Event) -> None:
        """Put an event into the next notice."""
        self.outbox.append(event)
        if self._wake is None or type(event) in self._wake:
            self.must_wake = True

    def tell_apart(self, event: Event) -> None:
        """Tell that a source is exhausted: after the notice that its last event comes with, if that is the way."""
        if self.rules.news_apart and self.must_wake:
            self.news.append(event)
        else:
            self.tell(event)

    def wake_on(self, wanted: tuple[WakeType, ...] | None) -> None:
        """Let the scheduler be woken by these types of events from now on; None, or without the feature: by all."""
        self.wanted = wanted
        if wanted is None or "wake_filter" not in self.features:
            self._wake = None
            return
        made = self._filters.get(wanted)
        if made is None:
            made = self._filters[wanted] = _ALWAYS.union(_WAKE[name] for name in wanted)
        self._wake = made

    def queue_at(self, time: float, job: Job) -> None:
        """Let a job come into the queue at ``time`` (s): it was kept back, or it has lost its nodes."""
        self.cluster.coming[job.id] = job
        self.agenda.put(time, REQUEUE, job.id)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        super().restore(state)
        self.wake_on(self.wanted)
