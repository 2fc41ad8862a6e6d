"""The names of a pool's nodes, by a rule: ``n[001-096]``, or several, as ``login,n[001-096]``."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import shown

_RULE: Final = re.compile(r"([A-Za-z0-9._-]*)\[([0-9]{1,9})-([0-9]{1,9})\]([A-Za-z0-9._-]*)")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
_NUMBERED: Final = re.compile(r"([A-Za-z0-9._-]*?)([0-9]{1,9})([A-Za-z._-]*)")


class _Run(NamedTuple):
    """``before``, a number from ``first`` on that is filled up with zeros to ``width`` digits, and ``after``.

    One node alone may have a name without a number: ``width`` is 0 then.
    """

    before: str
    first: int = 0
    many: int = 1
    width: int = 0
    after: str = ""

    @classmethod
    def parse(cls, rule: str) -> "_Run | None":
        if _PLAIN.fullmatch(rule):
            return cls(rule)
        found = _RULE.fullmatch(rule)
        if found is None:
            return None
        before, first, last, after = found.groups()
        many = int(last) - int(first) + 1
        return cls(before, int(first), many, len(first), after) if many > 0 else None

    def name(self, place: int) -> str:
        return f"{self.before}{self.first + place:0{self.width}}{self.after}" if self.width else self.before

    def __str__(self) -> str:
        if self.many == 1:
            return self.name(0)
        last = self.first + self.many - 1
        return f"{self.before}[{self.first:0{self.width}}-{last:0{self.width}}]{self.after}"


class NodeNames(Struct, frozen=True):
    """Names in the order of the nodes, as stretches of numbered ones."""

    runs: tuple[_Run, ...]

    @classmethod
    def parse(cls, rule: str, count: int, where: str) -> "NodeNames":
        """Return the names that a rule gives to `count` nodes; PlatformError, about `where`, if it does not."""
        found = cls.read(rule)
        if found is None or sum(run.many for run in found.runs) != count:
            raise PlatformError(
                "the names of a pool's nodes are not as many as these" if found else "names of nodes are not valid",
                where=where,
                expected=f"{count} names of ASCII letters, digits, '.', '_', '-', as n[1-{count}]",
                found=shown(rule),
            )
        return found

    @classmethod
    def read(cls, rule: str) -> "NodeNames | None":
        """Return the names of a rule, however many; None if it is none."""
        runs = [_Run.parse(part) for part in rule.split(",")]
        known = tuple(run for run in runs if run is not None)
        return cls(known) if len(known) == len(runs) else None

    @classmethod
    def of(cls, names: Sequence[str]) -> "NodeNames | None":
        """Return these names, as few stretches as their order has; None if one is no name that a rule can give."""
        runs: list[_Run] = []
        for name in names:
            if not _PLAIN.fullmatch(name):
                return None
            if runs and runs[-1].width and runs[-1].name(runs[-1].many) == name:
                runs[-1] = runs[-1]._replace(many=runs[-1].many + 1)
                continue
            found = _NUMBERED.fullmatch(name)
            runs.append(_Run(name) if found is None else _Run(found[1], int(found[2]), 1, len(found[2]), found[3]))
        return cls(tuple(runs))

    def __str__(self) -> str:
        return ",".join(map(str, self.runs))

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order of the nodes."""
        return chain.from_iterable(map(run.name, range(run.many)) for run in self.runs)
