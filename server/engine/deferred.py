"""Observers that are told a little later: while the server waits for its scheduler anyway."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.hooks import Hooks
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer

#: with more than so many things noted, what comes without a word to the scheduler is not put off any more
_MANY: Final = 65536


class Deferred(Observer):
    """Notes what happens and tells other observers when `flush` is called, in the same order.

    A job may have gone on by then: its ``state`` can be a later one than the step that a hook speaks of, while what
    that step set (``start`` and ``alloc`` in `started`) stands.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._hooks = Hooks(observers)
        #: (hooks to call, time in seconds, what else they take)
        self._journal: deque[tuple[tuple[Callable[..., None], ...], float, tuple[Any, ...]]] = deque()

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

    def begins(self, now: float, units: int) -> None:
        """Pass on at once: an output that cannot be opened must end the run before it has begun."""
        for hook in self._hooks.begins:
            hook(now, units)

    def submitted(self, now: float, job: Job) -> None:
        """Note it."""
        self._journal.append((self._hooks.submitted, now, (job,)))

    def started(self, now: float, job: Job) -> None:
        """Note it."""
        self._journal.append((self._hooks.started, now, (job,)))

    def ended(self, now: float, job: Job) -> None:
        """Note it."""
        self._journal.append((self._hooks.ended, now, (job,)))

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Note it."""
        self._journal.append((self._hooks.decided, now, (decision, rejected)))

    def settled(self, now: float, idle: int, down: int) -> None:
        """Note it."""
        self._journal.append((self._hooks.settled, now, (idle, down)))

    def switched(self, now: float, units: NodeSet, pstate: int) -> None:
        """Note it."""
        self._journal.append((self._hooks.switched, now, (units, pstate)))

    def departed(self, now: float, units: NodeSet, on: bool) -> None:
        """Note it."""
        self._journal.append((self._hooks.departed, now, (units, on)))

    def arrived(self, now: float, units: NodeSet, complete: bool) -> None:
        """Note it."""
        self._journal.append((self._hooks.arrived, now, (units, complete)))

    def availability(self, now: float, units: NodeSet, available: bool) -> None:
        """Note it."""
        self._journal.append((self._hooks.availability, now, (units, available)))

    def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool) -> None:
        """Note it."""
        self._journal.append((self._hooks.went_down, now, (nodes, units, planned)))
        # A scheduler that is not told of nodes may not be asked for years of them.
        if len(self._journal) > _MANY:
            self.flush()

    def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
        """Note it."""
        self._journal.append((self._hooks.came_up, now, (nodes, units)))

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
