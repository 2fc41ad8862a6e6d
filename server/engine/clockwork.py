"""The state that all parts of a run share, and the differences between dialects."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Final, NamedTuple

from pipistrelle.protocol.base.errors import RemoteProtocolError, quoted
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
from pipistrelle.protocol.messages import WakeAtEnd, WakeWhen
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.server.engine.agenda import READY, REQUEUE, Agenda, Entry
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.jobs import Job


@dataclass(frozen=True, slots=True)
class DialectRules:
    """The differences between the protocol's dialects.

    The defaults are those of the native dialect.

    Attributes:
        news_apart: whether the end of a source of events is reported in a notice of its own, after the last event.
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


#: maximum number of sets of units that are remembered
_MOST_SETS: Final = 100
#: subject of the agenda's entry for the time at which an event that is held back may wake
_ALARM: Final = 1


class _Held(NamedTuple):
    """A wake condition that its event did not meet.

    It is stored so that it can be checked again later. It is met when at least ``free`` of ``units`` (None: of the
    machine's units) are free, but not before ``time`` (s).
    """

    free: int
    units: NodeSet | None
    time: float


class Clockwork(Kept):
    """State that the parts of an engine share.

    This is the time, the agenda, the cluster and the events of the next notice.
    """

    _kept: ClassVar[tuple[str, ...]] = (
        *("now", "seq", "pending", "registering", "stopped", "must_wake", "outbox", "news", "wanted", "when", "agenda"),
        "cluster",
    )

    def __init__(self, cluster: Cluster, rules: DialectRules = NATIVE, features: Sequence[Feature] = ()) -> None:
        self.cluster = cluster
        self._ledger = cluster.ledger
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
        #: conditions on events of these types; None: no conditions
        self.when: WakeWhen | None = None
        self._conditions: WakeWhen | None = None
        #: the units that conditions name; {text: set}
        self._sets: dict[str, NodeSet] = {}
        #: with this many free units the end of a job wakes the scheduler; -1 if that depends on the job, units or time
        self._end_needs = 0.0
        #: with this many free units one of the events that were held back wakes the scheduler
        self._enough = inf
        #: other conditions of events that were held back
        self._held: list[_Held] = []
        self._alarm: Entry | None = None

    def tell(self, event: Event) -> None:
        """Add an event to the next notice to the scheduler."""
        self.outbox.append(event)
        if self.must_wake:
            return
        kind, conditions = type(event), self._conditions
        asked = self._wake is None or kind in self._wake
        if conditions is None:
            self.must_wake = asked
            return
        if asked:
            if kind is JobCompleted and self._end_needs >= 0:
                self._enough = min(self._enough, self._end_needs)
            elif self._meets(conditions, event):
                self.must_wake = True
                return
        # Now check the conditions that this event or an earlier one did not meet.
        if self._ledger.idle >= self._enough or (self._held and any(map(self._is_met, self._held))):
            self.must_wake = True

    def tell_apart(self, event: Event) -> None:
        """Report that a source of events, such as the workload, has no more events.

        If the dialect says so, the report gets a notice of its own.
        """
        if self.rules.news_apart and self.must_wake:
            self.news.append(event)
        else:
            self.tell(event)

    def wake_on(self, wanted: tuple[WakeType, ...] | None, when: WakeWhen | None = None) -> None:
        """Wake the scheduler only for these event types, and under these conditions.

        None means no restriction. Some events, such as rejections and failures of nodes, always wake it. A scheduler
        without the feature ``wake_filter`` is woken for every event; without ``wake_when``, conditions are ignored.

        Raises:
            RemoteProtocolError: a condition names units that do not exist.
        """
        if when is not None and when is self.when and wanted == self.wanted and not self._held:
            self._enough = inf  # a scheduler in this process repeats conditions; they are still in force
        else:
            self._restrict(wanted, when)

    def _restrict(self, wanted: tuple[WakeType, ...] | None, when: WakeWhen | None) -> None:
        self.wanted, self.when = wanted, when
        self._conditions = None
        if when is not None and "wake_when" in self.features:
            self._conditions = when
            self._end_needs = self._needs(when)
        self._enough = inf
        if self._held:
            self._held = []
        if self._alarm is not None:
            self.agenda.cancel(self._alarm)
            self._alarm = None
        if wanted is None or "wake_filter" not in self.features:
            self._wake = None
            return
        made = self._filters.get(wanted)
        if made is None:
            made = self._filters[wanted] = _ALWAYS.union(_WAKE[name] for name in wanted)
        self._wake = made

    def look_again(self) -> None:
        """Wake the scheduler if a stored wake condition is met now.

        Otherwise schedule the next check.
        """
        self._alarm = None
        if self._is_awaited():
            self.must_wake = True
        else:
            self._set_alarm()

    def _needs(self, when: WakeWhen) -> float:
        """Return the number of free units at which the end of any job wakes the scheduler.

        The result is -1 if that also depends on the job, on certain units or on the time; inf if no end of a job wakes
        the scheduler. Also parse the sets of units that the conditions ``when`` name.
        """
        if len(self._sets) > _MOST_SETS:
            self._sets.clear()
        for conditions in (when.submitted, when.completed):
            for condition in conditions or ():
                if condition.units is not None and condition.units not in self._sets:
                    self._sets[condition.units] = self._set_of(condition.units)
        if when.completed is None:
            return 0.0
        needs = inf
        for one in when.completed:
            if not (one.units is None and one.jobs is None and one.time is None):
                return -1.0
            needs = min(needs, one.free or 0)
        return needs

    def _set_of(self, text: str) -> NodeSet:
        try:
            units = NodeSet.parse(text)
        except NodeSetError as error:
            raise RemoteProtocolError(f"'units' of a wake condition is no set of units: {error}") from None
        most = self.cluster.ledger.units - 1
        if units and units.last > most:
            raise RemoteProtocolError(
                f"'units' of a wake condition names unit {units.last}",
                where="$.wake_when",
                expected=f"units of the machine, 0-{most}",
                found=quoted(text),
            )
        return units

    def _meets(self, when: WakeWhen, event: Event) -> bool:
        """Return whether an event wakes the scheduler under the wake conditions ``when``.

        If it does not, store the unmet conditions: they are checked again when units become free or time passes.
        """
        if type(event) is JobSubmitted:
            submissions = when.submitted
            if submissions is None:
                return True
            job = event.data.job
            if job.res > self.cluster.ledger.units or not (
                job.constraint is None and job.units_per_node is None and job.request is None
            ):
                return True
            ends = event.timestamp + (inf if job.walltime is None else job.walltime)
            for condition in submissions:
                if condition.ends_by is None or ends <= condition.ends_by:
                    free = condition.free or 0
                    if condition.spare is not None:
                        free = max(free, job.res + condition.spare)
                    if self._holds(condition, job.id, free):
                        return True
            return False  # each condition has recorded what it needs
        if type(event) is JobCompleted:
            return any(self._holds(one, event.data.job_id, one.free or 0) for one in when.completed or ())
        return True

    def _holds(self, condition: WakeAtEnd, job_id: str, free: int) -> bool:
        """Return whether a wake condition is met now.

        The condition is on the submission or the end of a job. At least ``free`` units must be free. If the condition
        can be met later, store it for a later check.
        """
        if condition.jobs is not None and job_id not in condition.jobs:
            return False
        if condition.units is None and condition.time is None:
            if self.cluster.ledger.idle >= free:
                return True
            self._enough = min(self._enough, free)
            return False
        units = None if condition.units is None else self._sets[condition.units]
        held = _Held(free, units, 0.0 if condition.time is None else condition.time)
        if self._is_met(held):
            return True
        self._held.append(held)
        self._set_alarm()
        return False

    def _is_met(self, held: _Held) -> bool:
        ledger = self.cluster.ledger
        have = ledger.idle if held.units is None else ledger.idle_in(held.units)
        return self.now >= held.time and have >= held.free

    def _is_awaited(self) -> bool:
        """Return whether a wake condition that an earlier event did not meet is met now."""
        if self.cluster.ledger.idle >= self._enough:
            return True
        return bool(self._held) and any(map(self._is_met, self._held))

    def _set_alarm(self) -> None:
        """Schedule the next check of the stored wake conditions.

        It is at the earliest future time that one of them names.
        """
        time = min((held.time for held in self._held if held.time > self.now), default=inf)
        if time < inf and (self._alarm is None or time < self._alarm[0]):
            if self._alarm is not None:
                self.agenda.cancel(self._alarm)
            self._alarm = self.agenda.put(time, READY, _ALARM)

    def queue_at(self, time: float, job: Job) -> None:
        """Let a job join the queue at ``time`` (s).

        The job was held because of its dependencies, or lost its nodes and is requeued.
        """
        self.cluster.coming[job.id] = job
        self.agenda.put(time, REQUEUE, job.id)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the shared state from a snapshot.

        The cluster's ledger must be restored with it.
        """
        super().restore(state)
        alarm = self.agenda.of(READY).get(_ALARM)
        self._restrict(self.wanted, self.when)
        self._alarm = alarm
        if self._conditions is not None and not self.must_wake:
            for event in self.outbox:
                if self._wake is not None and type(event) not in self._wake:
                    continue
                if type(event) is JobCompleted and self._end_needs >= 0:
                    self._enough = min(self._enough, self._end_needs)
                else:
                    self._meets(self._conditions, event)
