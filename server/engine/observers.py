"""Hooks on the engine: recorders, metrics and progress hang here, and the loop stays readable."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.jobs import Job

#: what stands for a power state while units are on their way to it, as in Batsim's files
SWITCHING_ON: Final = -1
SWITCHING_OFF: Final = -2
#: with more than so many things noted, what comes without a word to the scheduler is not put off any more
_MANY: Final = 65536


#: {node: (why it is down, when it is to be up again (s))}; something else may keep it down for longer
Reasons = Mapping[int, tuple[str, float]]


class Observer:
    """Every hook does nothing; derive and override. Times are seconds of simulated time.

    The engine calls only the hooks that an observer listens to, in the order in which things happen.
    """

    def listens(self, hook: str) -> bool:
        """Tell whether the observer wants to be told of this hook; it does if its class overrides it."""
        return getattr(type(self), hook) is not getattr(Observer, hook)

    def begins(self, now: float, units: int) -> None:
        """Take note that the run begins on a machine of ``units`` free units."""

    def submitted(self, now: float, job: Job) -> None:
        """Take note of a job that joined the queue."""

    def started(self, now: float, job: Job) -> None:
        """Take note of a job that was given its units."""

    def ended(self, now: float, job: Job) -> None:
        """Take note of a job that reached a final state: completed, killed or rejected."""

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Take note of a decision that was carried out, or of why it was not."""

    def settled(self, now: float, idle: int, down: int) -> None:
        """Take note that ``idle`` units are free after all that happens at ``now``, before time goes on.

        Of the others ``down`` are out of service without a job that holds them. An instant that leaves as many free as
        the one before may be left out.
        """

    def switched(self, now: float, units: NodeSet, pstate: int) -> None:
        """Take note that units, all that were asked together, are in a power state now.

        When they are asked, before anything has changed, this tells of `SWITCHING_ON` (to a state that computes) or
        `SWITCHING_OFF` (to one that sleeps) in place of a power state.
        """

    def departed(self, now: float, units: NodeSet, on: bool) -> None:
        """Take note that units begin to be switched on, or off; `switched` tells next of all that were asked."""

    def arrived(self, now: float, units: NodeSet, complete: bool) -> None:
        """Take note that units have been switched on or off; ``complete`` if all are there that were asked together."""

    def availability(self, now: float, units: NodeSet, available: bool) -> None:
        """Take note that no more jobs can start on units, or that they can again; jobs that run there are not hurt."""

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Take note that nodes, with all their units, went down together: by failure, or as planned."""

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Take note that nodes, with all their units, are up again."""

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Take note that the run is over; called once, whatever ended it."""


class Hooks:
    """One tuple of bound methods for each hook of `Observer`, for the observers that listen to it."""

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
    """Notes what happens and tells other observers when `flush` is called, in the same order.

    A job may have gone on by then: its ``state`` can be a later one than the step that a hook speaks of, while what
    that step set (``start`` and ``alloc`` in `started`) stands.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._hooks = Hooks(observers)
        #: (hooks to call, time in seconds, what else they take)
        self._journal: deque[tuple[tuple[Callable[..., None], ...], float, tuple[Any, ...]]] = deque()
        for name, hooks in vars(self._hooks).items():
            if name not in ("begins", "went_down", "ends"):
                setattr(self, name, self._noting(hooks))

    def listens(self, hook: str) -> bool:
        """Tell whether one of the observers behind wants to be told."""
        return bool(getattr(self._hooks, hook))

    def flush(self) -> None:
        """Tell the observers all that was noted; what one of them raises comes out of here."""
        journal = self._journal
        while journal:
            hooks, now, subjects = journal.popleft()
            for hook in hooks:
                hook(now, *subjects)

    def _noting(self, hooks: tuple[Callable[..., None], ...]) -> Callable[..., None]:
        """Return a hook that notes what it is told, for these."""
        note = self._journal.append

        def noted(now: float, *subjects: Any) -> None:
            note((hooks, now, subjects))

        return noted

    def begins(self, now: float, units: int) -> None:
        """Pass on at once: an output that cannot be opened must end the run before it has begun."""
        for hook in self._hooks.begins:
            hook(now, units)

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
        """Note it."""
        self._journal.append((self._hooks.went_down, now, (nodes, units, planned, why)))
        # A scheduler that is not told of nodes may not be asked for years of them.
        if len(self._journal) > _MANY:
            self.flush()

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Tell all that is left and pass on, to every observer even if one of them fails."""
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
