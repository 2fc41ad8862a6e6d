"""Hooks on the engine for recorders, metrics and progress."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job

#: pseudo power states of units that are switching, as in Batsim's files
SWITCHING_ON: Final = -1
SWITCHING_OFF: Final = -2
#: longest journal: more deferred calls than this are delivered at once
_MANY: Final = 65536


#: {node: (why it is down, when it should be up again (s))}; another cause may keep it down for longer
Reasons = Mapping[int, tuple[str, float]]


class Observer:
    """Base of observers: every hook does nothing. Times are simulated seconds.

    The engine calls only overridden hooks, in the order of events.
    """

    def listens(self, hook: str) -> bool:
        """Return whether the engine must call this hook: yes if the class overrides it."""
        return getattr(type(self), hook) is not getattr(Observer, hook)

    def begins(self, now: float, units: int) -> None:
        """The run begins with ``units`` free units."""

    def submitted(self, now: float, job: Job) -> None:
        """A job joined the queue."""

    def started(self, now: float, job: Job) -> None:
        """A job got its units."""

    def ended(self, now: float, job: Job) -> None:
        """A job reached a final state: completed, killed or rejected."""

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """A decision was carried out, or rejected for the given reason."""

    def settled(self, now: float, idle: int, down: int) -> None:
        """``idle`` units are free after all events at ``now``.

        ``down`` others are out of service and not held. May be skipped if the number of free units did not change.
        """

    def switched(self, now: float, units: NodeSet, pstate: int) -> None:
        """All units of one request are in power state ``pstate`` now.

        At the request, ``pstate`` is `SWITCHING_ON` (to a computing state) or `SWITCHING_OFF` (to a sleeping one).
        """

    def departed(self, now: float, units: NodeSet, on: bool) -> None:
        """Units begin to switch on or off; `switched` follows for the whole request."""

    def arrived(self, now: float, units: NodeSet, complete: bool) -> None:
        """Units have been switched; ``complete`` if they are the last ones of their request."""

    def availability(self, now: float, units: NodeSet, available: bool) -> None:
        """Jobs can start on these units again, or no longer; running jobs continue."""

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Nodes with all their units went down together: failed, or as planned."""

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Nodes with all their units are up again."""

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """The run is over; called once, whatever ended it."""


class Hooks:
    """For each hook, the bound methods of the observers that listen to it."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.begins = tuple(o.begins for o in observers if o.listens("begins"))
        self.submitted = tuple(o.submitted for o in observers if o.listens("submitted"))
        self.started = tuple(o.started for o in observers if o.listens("started"))
        self.ended = tuple(o.ended for o in observers if o.listens("ended"))
        self.decided = tuple(o.decided for o in observers if o.listens("decided"))
        self.settled = tuple(o.settled for o in observers if o.listens("settled"))
        self.switched = tuple(o.switched for o in observers if o.listens("switched"))
        self.departed = tuple(o.departed for o in observers if o.listens("departed"))
        self.arrived = tuple(o.arrived for o in observers if o.listens("arrived"))
        self.availability = tuple(o.availability for o in observers if o.listens("availability"))
        self.went_down = tuple(o.went_down for o in observers if o.listens("went_down"))
        self.came_up = tuple(o.came_up for o in observers if o.listens("came_up"))
        self.ends = tuple(o.ends for o in observers if o.listens("ends"))


class Deferred(Observer):
    """Records calls and passes them on, in order, when `flush` is called.

    By then a job may be in a later ``state`` than at the hook's step; ``start`` and ``alloc`` are still valid.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._hooks = Hooks(observers)
        self._journal: deque[tuple[tuple[Callable[..., None], ...], float, tuple[Any, ...]]] = deque()
        for name, hooks in vars(self._hooks).items():
            if name not in ("begins", "went_down", "ends"):
                setattr(self, name, self._noting(hooks))

    def listens(self, hook: str) -> bool:
        """Return whether one of the observers behind listens."""
        return bool(getattr(self._hooks, hook))

    def flush(self) -> None:
        """Pass all recorded calls on; an observer's error is raised here."""
        journal = self._journal
        while journal:
            hooks, now, subjects = journal.popleft()
            for hook in hooks:
                hook(now, *subjects)

    def _noting(self, hooks: tuple[Callable[..., None], ...]) -> Callable[..., None]:
        note = self._journal.append

        def noted(now: float, *subjects: Any) -> None:
            note((hooks, now, subjects))

        return noted

    def begins(self, now: float, units: int) -> None:
        """Pass on at once, so that an output that cannot be opened ends the run."""
        for hook in self._hooks.begins:
            hook(now, units)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Record the call; pass all on if years of failures pass without a notice."""
        self._journal.append((self._hooks.went_down, now, (nodes, units, planned, why)))
        if len(self._journal) > _MANY:
            self.flush()

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Pass on all that is left, to every observer even if one fails."""
        failed: Exception | None = None
        while self._journal:
            try:
                self.flush()
            except Exception as error:
                failed = failed or error
        for hook in self._hooks.ends:
            try:
                hook(now, reason, message)
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
