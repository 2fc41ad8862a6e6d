"""The names of a pool's nodes, by a rule: ``n[001-096]``."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_RULE: Final = re.compile(r"([A-Za-z0-9._-]*)\[([0-9]{1,9})-([0-9]{1,9})\]([A-Za-z0-9._-]*)")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")


class NodeNames(Struct, frozen=True):
    """``before``, a number from ``first`` on that is filled up with zeros to ``width`` digits, and ``after``.

    One node alone may have a name without a number: ``width`` is 0 then.
    """

    before: str
    first: int
    count: int
    width: int
    after: str

    @classmethod
    def parse(cls, rule: str) -> "NodeNames | None":
        """Return the names of a rule, None if it is none."""
        found = _RULE.fullmatch(rule)
        if found is None:
            return cls(rule, 0, 1, 0, "") if _PLAIN.fullmatch(rule) else None
        before, first, last, after = found.groups()
        count = int(last) - int(first) + 1
        return cls(before, int(first), count, len(first), after) if count > 0 else None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order of the nodes."""
        if not self.width:
            return iter((self.before,))
        numbers = range(self.first, self.first + self.count)
        return (f"{self.before}{number:0{self.width}}{self.after}" for number in numbers)
