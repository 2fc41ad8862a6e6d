"""What of a priority does not change while a job waits, worked out once a job."""

from typing import Final

import numpy as np

from pipistrelle.schedulers.maui.waiting import Floats

_ROOM: Final = 64


class FixedValues:
    """A component's values, row by row, that do not change while a job waits."""

    def __init__(self) -> None:
        self._generation: int | None = None
        self._rows = 0
        self._values: Floats = np.zeros(_ROOM)

    def follow(self, generation: int, rows: int) -> slice:
        """Return the rows whose values are not known, which will be `known` then."""
        if generation != self._generation or rows < self._rows:
            self._generation, self._rows = generation, 0
        if rows > len(self._values):
            more = np.zeros(2 * rows)
            more[: self._rows] = self._values[: self._rows]
            self._values = more
        return slice(self._rows, rows)

    def known(self, fresh: slice, values: Floats) -> None:
        """Keep the values of the rows that `follow` has returned."""
        self._values[fresh] = values
        self._rows = fresh.stop

    def values(self) -> Floats:
        """Return the values, one a row."""
        return self._values[: self._rows]
