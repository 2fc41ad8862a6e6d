"""The names of a pool's nodes, by a rule: ``n[001-096]``."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import shown

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
    def parse(cls, rule: str, count: int, where: str) -> "NodeNames":
        """Return the names that a rule gives to `count` nodes; PlatformError, about `where`, if it does not."""
        found = _RULE.fullmatch(rule)
        names = cls(rule, 0, 1, 0, "") if _PLAIN.fullmatch(rule) else None
        if found is not None:
            before, first, last, after = found.groups()
            many = int(last) - int(first) + 1
            names = cls(before, int(first), many, len(first), after) if many > 0 else None
        if names is None or names.count != count:
            raise PlatformError(
                "the names of a pool's nodes are not as many as these" if names else "names of nodes are not valid",
                where=where,
                expected=f"{count} names of ASCII letters, digits, '.', '_', '-', as n[1-{count}]",
                found=shown(rule),
            )
        return names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order of the nodes."""
        if not self.width:
            return iter((self.before,))
        numbers = range(self.first, self.first + self.count)
        return (f"{self.before}{number:0{self.width}}{self.after}" for number in numbers)
