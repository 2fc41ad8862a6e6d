"""Sample the state of a run at intervals, at little cost, for live views."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Protocol

from pipistrelle.protocol.decisions import CallMeLater, CancelCall, Decision, SetJobMetadata
from pipistrelle.protocol.events import DecisionRejectedData
from pipistrelle.protocol.fields import EndReason
from pipistrelle.reports.live.state import Decided, LiveState, Onlooker
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Simulation

#: number of latest decisions shown
_DECISIONS: Final = 16
#: decisions that do not change the machine; shown only if they were rejected
_QUIET: Final = (CallMeLater, CancelCall, SetJobMetadata)
#: seconds over which speeds are averaged
_OF_LATE_S: Final = 4.0
#: the next sample waits this many times as long as the last sample took
_REST: Final = 30.0


class LiveView(Protocol):
    """A display of a run's state, such as the terminal view or the page."""

    @property
    def every(self) -> float:
        """Return the number of seconds after which the view should get the next state."""

    def show(self, state: LiveState) -> None:
        """Show a state of the run; never raise, so that the run is not disturbed."""

    def over(self, state: LiveState) -> None:
        """Show the last state of the run."""


class LiveWatch(Observer):
    """An observer that shows a run in live views while it is in progress.

    Call it between two steps; it returns the seconds until the next call. After each sample, the watch waits 30 times
    as long as the sample took, so sampling takes a small share of the time on any machine.

    Args:
        clock: a monotonic wall clock (s).
    """

    def __init__(self, setup: Setup, views: Sequence[LiveView], clock: Callable[[], float] = time.monotonic) -> None:
        self._onlooker = Onlooker(setup)
        self._views = tuple(views)
        self._clock = clock
        self._due = [-inf] * len(self._views)
        self._decided: deque[Decided] = deque(maxlen=_DECISIONS)
        self._simulation: Simulation | None = None
        self._began = 0.0
        #: (wall clock (s), simulated time (s), notices) of the last seconds
        self._past: deque[tuple[float, float, int]] = deque()

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Add a decision to the latest ones, which the views show."""
        if rejected is not None or not isinstance(decision, _QUIET):
            self._decided.append((now, decision, rejected))

    def __call__(self, simulation: Simulation) -> float:
        """Show the run in the views that are due; return the seconds until the next call."""
        begun = self._clock()
        if self._simulation is None:
            self._simulation, self._began = simulation, begun
        wanted = [place for place, due in enumerate(self._due) if begun >= due]
        state = self._look(simulation, begun)
        for place in wanted:
            self._views[place].show(state)
        ended = self._clock()
        for place in wanted:
            self._due[place] = ended + self._views[place].every
        return max(min(self._due) - ended, _REST * (ended - begun))

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Show in all views how the run ended."""
        if self._simulation is not None:
            state = self._look(self._simulation, self._clock(), (reason, message))
            for view in self._views:
                view.over(state)

    def _look(self, simulation: Simulation, clock: float, end: tuple[EndReason, str] | None = None) -> LiveState:
        now, notices = simulation.engine.now, simulation.engine.clockwork.seq
        past = self._past
        past.append((clock, now, notices))
        while len(past) > 2 and past[1][0] <= clock - _OF_LATE_S:
            past.popleft()
        before, then, fewer = past[0]
        span = clock - before
        return self._onlooker.look(
            simulation,
            tuple(reversed(self._decided)),
            wall=clock - self._began,
            speed=(now - then) / span if span > 0 else 0.0,
            notice_rate=(notices - fewer) / span if span > 0 else 0.0,
            end=end,
        )
