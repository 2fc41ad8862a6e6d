"""Map names of credentials, and combinations of them, to integers.

Credentials are users, groups, accounts, classes and QOS.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.maui.config.settings import KINDS, Names
from pipistrelle.schedulers.maui.priority.waiting import longer


class Credentials:
    """Numbers for names of credentials and for their combinations.

    Numbers are given in the order of first appearance.

    Attributes:
        names: the names of each kind of credential (user, group, ...).
        combinations: the combinations of names, one name or None per kind.
        parts: for each combination the numbers of its names by kind, -1 for none.
    """

    def __init__(self) -> None:
        self.names: list[list[str]] = [[] for _ in KINDS]
        self.combinations: list[Names] = []
        self.parts: list[tuple[int, ...]] = []
        self._table: NDArray[np.int64] = np.zeros((0, len(KINDS)), dtype=np.int64)
        self._numbers: list[dict[str, int]] = [{} for _ in KINDS]
        self._codes: dict[Names, int] = {}

    def code(self, names: Names) -> int:
        """Return the number of a combination of credentials, adding it if it is new."""
        code = self._codes.get(names)
        if code is None:
            code = self._codes[names] = len(self.combinations)
            self.combinations.append(names)
            self.parts.append(tuple(self._number(kind, name) for kind, name in enumerate(names)))
            self._table = longer(self._table, code + 1)
            self._table[code] = self.parts[code]
        return code

    def state(self) -> list[list[str | None]]:
        """Return the combinations of credentials in the order of appearance."""
        return [list(names) for names in self.combinations]

    def restore(self, state: Sequence[Sequence[str | None]]) -> None:
        """Restore the combinations of credentials that the method `state` returned."""
        for names in state:
            self.code(Names(*names))

    @property
    def table(self) -> NDArray[np.int64]:
        """Return the numbers of the credentials in each combination.

        The shape is (combinations, kinds of credentials).
        """
        return self._table[: len(self.parts)]

    def _number(self, kind: int, name: str | None) -> int:
        if name is None:
            return -1
        number = self._numbers[kind].setdefault(name, len(self.names[kind]))
        if number == len(self.names[kind]):
            self.names[kind].append(name)
        return number
