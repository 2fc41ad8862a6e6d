"""Observers of a run: the hooks that recorders, metrics and progress reports use."""

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
#: greatest number of deferred calls; beyond it, all are delivered at once
_MANY: Final = 65536


#: {down node: (reason, when that reason should be over (s))}; another reason may keep the node down for longer
Reasons = Mapping[int, tuple[str, float]]


class Observer:
    """Base class of observers, whose hooks do nothing; times are simulated seconds.

    The engine calls only overridden hooks, in the order of events.
    """

    def listens(self, hook: str) -> bool:
        """Return whether the engine must call the observer's method ``hook``.

        It must if the class overrides the method.
        """
        return getattr(type(self), hook) is not getattr(Observer, hook)

    def begins(self, now: float, units: int) -> None:
        """Handle the start of the run, with ``units`` free units."""

    def submitted(self, now: float, job: Job) -> None:
        """Handle a job that joins the queue."""

    def started(self, now: float, job: Job) -> None:
        """Handle a job that gets its units."""

    def ended(self, now: float, job: Job) -> None:
        """Handle a job that reaches a final state.

        It is completed, killed, rejected or cancelled.
        """

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Handle a decision that was carried out, or rejected for the given reason."""

    def settled(self, now: float, idle: int, down: int) -> None:
        """Handle the end of an instant, after all events at ``now``.

        ``idle`` is the number of free units. ``down`` is the number of units that are out of service and held by no
        job. The call may be skipped if ``idle`` did not change.
        """

    def switched(self, now: float, units: NodeSet, pstate: int) -> None:
        """Handle the start and the completion of a request to switch units.

        The engine calls this twice for each request. At the start, ``pstate`` is `SWITCHING_ON` or `SWITCHING_OFF`; at
        the end it is the power state reached.
        """

    def departed(self, now: float, units: NodeSet, on: bool) -> None:
        """Handle units that begin to switch on or off; `switched` reports whole requests."""

    def arrived(self, now: float, units: NodeSet, complete: bool) -> None:
        """Handle units that have switched.

        ``complete`` is True for the last units of a request.
        """

    def availability(self, now: float, units: NodeSet, available: bool) -> None:
        """Handle units that stop or resume accepting new jobs; running jobs continue."""

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Handle nodes that go down with all their units.

        The cause is failures, or maintenance if ``planned``.
        """

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Handle nodes that are up again with all their units."""

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Handle the end of the run, whatever ended it; called once."""


class Hooks:
    """The observers' methods that the engine calls, one tuple per hook."""

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
    """An observer that records calls and passes them on when `flush` is called.

    The calls are passed on in order. When a call is passed on, the job may already be in a later ``state``. Its
    ``start`` and ``alloc`` are still valid.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._hooks = Hooks(observers)
        self._journal: deque[tuple[tuple[Callable[..., None], ...], float, tuple[Any, ...]]] = deque()
        for name, hooks in vars(self._hooks).items():
            if name not in ("begins", "went_down", "ends"):
                setattr(self, name, self._noting(hooks))

    def listens(self, hook: str) -> bool:
        """Return whether any observer that gets the recorded calls overrides ``hook``."""
        return bool(getattr(self._hooks, hook))

    def flush(self) -> None:
        """Deliver all recorded calls; errors of observers are raised here."""
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
        """Call the observers now, so that an output that cannot be opened ends the run."""
        for hook in self._hooks.begins:
            hook(now, units)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Record the call; deliver all recorded calls if there are more than 65,536."""
        self._journal.append((self._hooks.went_down, now, (nodes, units, planned, why)))
        if len(self._journal) > _MANY:
            self.flush()

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Deliver all recorded calls and this one; an observer that fails does not keep the others from them."""
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
