"""The state of each unit, and how long it was in each state, by Batsim's rules."""

from math import fsum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.indices import numbers
from pipistrelle.protocol.units.nodesets import NodeSet

SLEEPING: Final = 0
SWITCHING_ON: Final = 1
SWITCHING_OFF: Final = 2
IDLE: Final = 3
COMPUTING: Final = 4
UNAVAILABLE: Final = 5
#: names of unit states in Batsim's output columns
STATES: Final = ("sleeping", "switching_on", "switching_off", "idle", "computing", "unavailable")


class MachineBook(Kept):
    """The state of each unit; times in simulated seconds, never decreasing.

    As in Batsim, all units begin as idle, even sleeping ones. A unit's time is added when its state changes, so the
    time after the last change does not count.
    """

    _kept = ("_state", "_since", "_jobs", "_spent", "_counts")

    def __init__(self, units: int) -> None:
        self._state = np.full(units, IDLE, dtype=np.int8)
        self._since = np.zeros(units)
        self._jobs = np.zeros(units, dtype=np.int32)
        # One sum per state and unit: short sums have small rounding errors.
        self._spent = np.zeros((len(STATES), units))
        self._counts = [0] * len(STATES)
        self._counts[IDLE] = units

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of units in each state, in the order of `STATES`."""
        return tuple(self._counts)

    def unit_seconds(self, state: int) -> float:
        """Return the time (s) in a state, summed over all units."""
        return fsum(self._spent[state])

    def job_begins(self, now: float, units: NodeSet) -> None:
        """Record that a job starts on units, which may have other jobs."""
        places = numbers(units)
        self._jobs[places] += 1
        self._set(now, places, COMPUTING)

    def job_ends(self, now: float, units: NodeSet) -> None:
        """Record that a job on ``units`` ends.

        Units without another job become idle, unless they are unavailable.
        """
        places = numbers(units)
        self._jobs[places] -= 1
        self._set(now, places[(self._jobs[places] == 0) & (self._state[places] != UNAVAILABLE)], IDLE)

    def switch_begins(self, now: float, units: NodeSet, *, on: bool) -> None:
        """Record that units begin to switch on or off."""
        self._set(now, numbers(units), SWITCHING_ON if on else SWITCHING_OFF)

    def switch_ends(self, now: float, units: NodeSet) -> None:
        """Record that units have finished switching on or off.

        Unavailable units keep their state.
        """
        places = numbers(units)
        states = self._state[places]
        on, off = places[states == SWITCHING_ON], places[states == SWITCHING_OFF]
        self._set(now, on, IDLE)
        self._set(now, off, SLEEPING)

    def leave(self, now: float, units: NodeSet) -> None:
        """Record that units become unavailable."""
        self._set(now, numbers(units), UNAVAILABLE)

    def come_back(self, now: float, units: NodeSet) -> None:
        """Record that units become available: computing if they have jobs, else idle."""
        places = numbers(units)
        places = places[self._state[places] == UNAVAILABLE]
        busy = self._jobs[places] > 0
        self._set(now, places[busy], COMPUTING)
        self._set(now, places[~busy], IDLE)

    def _set(self, now: float, places: NDArray[np.intp], state: int) -> None:
        if not len(places):
            return
        before: Any = self._state[places]
        self._spent[before, places] += now - self._since[places]
        self._since[places] = now
        self._state[places] = state
        counts = self._counts
        for old, count in enumerate(np.bincount(before, minlength=len(STATES)).tolist()):
            counts[old] -= count
        counts[state] += len(places)
