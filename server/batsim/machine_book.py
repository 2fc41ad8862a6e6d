"""What each unit of a machine does, and how long it has done what: counts and sums as Batsim keeps them."""

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
#: the states' names in Batsim's column names, by number
STATES: Final = ("sleeping", "switching_on", "switching_off", "idle", "computing", "unavailable")


class MachineBook(Kept):
    """The state of each unit; times in seconds of simulated time, never decreasing.

    As in Batsim, all units are idle at first, even those that sleep, and a unit's time is added up when its state is
    set, so that what comes after the last change counts nowhere.
    """

    _kept = ("_state", "_since", "_jobs", "_spent", "_counts")

    def __init__(self, units: int) -> None:
        self._state = np.full(units, IDLE, dtype=np.int8)
        self._since = np.zeros(units)
        self._jobs = np.zeros(units, dtype=np.int32)
        # One sum for each state and unit: short sums round little.
        self._spent = np.zeros((len(STATES), units))
        self._counts = [0] * len(STATES)
        self._counts[IDLE] = units

    @property
    def counts(self) -> tuple[int, ...]:
        """How many units are in each state, in the order of `STATES`."""
        return tuple(self._counts)

    def unit_seconds(self, state: int) -> float:
        """Return how long units have been in a state, all units' times together, in seconds."""
        return fsum(self._spent[state])

    def job_begins(self, now: float, units: NodeSet) -> None:
        """Note that a job starts on units, perhaps beside others."""
        places = numbers(units)
        self._jobs[places] += 1
        self._set(now, places, COMPUTING)

    def job_ends(self, now: float, units: NodeSet) -> None:
        """Note that one of the jobs on units is over; a unit without jobs is idle unless it is unavailable."""
        places = numbers(units)
        self._jobs[places] -= 1
        self._set(now, places[(self._jobs[places] == 0) & (self._state[places] != UNAVAILABLE)], IDLE)

    def switch_begins(self, now: float, units: NodeSet, *, on: bool) -> None:
        """Note that units begin to be switched on, or off."""
        self._set(now, numbers(units), SWITCHING_ON if on else SWITCHING_OFF)

    def switch_ends(self, now: float, units: NodeSet) -> None:
        """Note that units have reached the state they were being switched to, those that are not unavailable."""
        places = numbers(units)
        states = self._state[places]
        on, off = places[states == SWITCHING_ON], places[states == SWITCHING_OFF]
        self._set(now, on, IDLE)
        self._set(now, off, SLEEPING)

    def leave(self, now: float, units: NodeSet) -> None:
        """Note that units are unavailable from now on."""
        self._set(now, numbers(units), UNAVAILABLE)

    def come_back(self, now: float, units: NodeSet) -> None:
        """Note that unavailable units are available again: computing if jobs still run there, else idle."""
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
