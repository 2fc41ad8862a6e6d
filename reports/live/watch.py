"""Looks at a run now and then, as often as that costs little, and shows it to whoever wants to see it."""

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

#: how many decisions are shown
_DECISIONS: Final = 16
#: decisions that change nothing on the machine; they are shown if they were refused
_QUIET: Final = (CallMeLater, CancelCall, SetJobMetadata)
#: seconds that speeds are taken over
_OF_LATE_S: Final = 4.0
#: a look that took so long is followed by so many times that without one
_REST: Final = 30.0


class LiveView(Protocol):
    """Something that shows how a run stands."""

    @property
    def every(self) -> float:
        """So many seconds should pass before it is shown the next state."""

    def show(self, state: LiveState) -> None:
        """Show a state; what is wrong with showing it is no matter of the run's, so nothing is raised."""

    def over(self, state: LiveState) -> None:
        """Show the last state."""


class LiveWatch(Observer):
    """Shows a run while it goes on; called with it, between two steps, it returns when it wants to be called again (s).

    However large the machine and however slow what shows it, looking takes a small share of the time: the next look
    waits for 30 times as long as the last one took.

    Parameters
    ----------
    setup
        of the run.
    views
        who shows it.
    clock
        seconds of a monotonic wall clock.
    """

    def __init__(self, setup: Setup, views: Sequence[LiveView], clock: Callable[[], float] = time.monotonic) -> None:
        self._onlooker = Onlooker(setup)
        self._views = tuple(views)
        self._clock = clock
        self._due = [-inf] * len(self._views)
        self._decided: deque[Decided] = deque(maxlen=_DECISIONS)
        self._simulation: Simulation | None = None
        self._began = 0.0
        #: (wall clock (s), simulated time (s), notices) of late
        self._past: deque[tuple[float, float, int]] = deque()

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Remember the decision for a while."""
        if rejected is not None or not isinstance(decision, _QUIET):
            self._decided.append((now, decision, rejected))

    def __call__(self, simulation: Simulation) -> float:
        """Show the run to those for whom it is time."""
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
        """Show how the run has ended."""
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
