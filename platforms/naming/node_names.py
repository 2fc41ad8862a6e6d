"""Patterns of node names: ``n[001-096]``, or several, as ``login,n[001-096]``.

A pattern with several ranges gives all combinations, and the last range varies fastest: ``c[0-1]s[0-7]`` gives c0s0 to
c0s7, then c1s0 to c1s7.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Final, NamedTuple

from msgspec import Struct

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.units.nodesets import NodeSet

_RANGE: Final = r"\[([0-9]{1,9})-([0-9]{1,9})\]"
_RULE: Final = re.compile(rf"[A-Za-z0-9._-]*(?:{_RANGE}[A-Za-z0-9._-]*)+")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
_NUMBERED: Final = re.compile(r"([A-Za-z0-9._-]*?)([0-9]{1,9})([A-Za-z._-]*)")


class _Numbers(NamedTuple):
    """A range of zero-padded numbers in a pattern, and the text that follows it.

    The range has ``many`` numbers from ``first`` on.
    """

    first: int
    many: int
    width: int
    after: str

    def text(self, place: int) -> str:
        return f"{self.first + place:0{self.width}}{self.after}"

    def __str__(self) -> str:
        if self.many == 1:
            return self.text(0)
        return f"[{self.first:0{self.width}}-{self.first + self.many - 1:0{self.width}}]{self.after}"


class _Run(NamedTuple):
    """One pattern of names.

    It has the text before its first range of numbers, and the ranges, if any.
    """

    before: str
    numbers: tuple[_Numbers, ...] = ()

    @classmethod
    def parse(cls, rule: str) -> "_Run | None":
        if _PLAIN.fullmatch(rule):
            return cls(rule)
        if _RULE.fullmatch(rule) is None:
            return None
        before, *parts = re.split(_RANGE, rule)
        numbers = tuple(
            _Numbers(int(first), int(last) - int(first) + 1, len(first), after)
            for first, last, after in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        )
        return cls(before, numbers) if min(one.many for one in numbers) > 0 else None

    @property
    def many(self) -> int:
        return prod(one.many for one in self.numbers)

    @property
    def names(self) -> Iterator[str]:
        """The names of the pattern, one by one.

        A long list of them might not fit into memory.
        """
        return _with_numbers(self.before, self.numbers)

    def __str__(self) -> str:
        return f"{self.before}{''.join(map(str, self.numbers))}"


def _with_numbers(before: str, numbers: tuple[_Numbers, ...]) -> Iterator[str]:
    if not numbers:
        yield before
        return
    first, *rest = numbers
    for place in range(first.many):
        yield from _with_numbers(f"{before}{first.text(place)}", tuple(rest))


class NodeNames(Struct, frozen=True):
    """The names of nodes, in the order of the nodes, stored as patterns."""

    runs: tuple[_Run, ...]

    @classmethod
    def parse(cls, rule: str, count: int, where: str) -> "NodeNames":
        """Parse a pattern that names `count` nodes; PlatformError if it is invalid."""
        found = cls.read(rule)
        if found is None or sum(run.many for run in found.runs) != count:
            raise PlatformError(
                "a pool has more or fewer names than nodes" if found else "names of nodes are not valid",
                where=where,
                expected=f"{count} names of ASCII letters, digits, '.', '_', '-', as n[1-{count}]",
                found=shown(rule),
            )
        return found

    @classmethod
    def read(cls, rule: str) -> "NodeNames | None":
        """Parse a pattern with any number of names; return None if it is invalid."""
        runs = [_Run.parse(part) for part in rule.split(",")]
        known = tuple(run for run in runs if run is not None)
        return cls(known) if len(known) == len(runs) else None

    @classmethod
    def of(cls, names: Sequence[str]) -> "NodeNames | None":
        """Store these names as patterns; return None if a name has an invalid character."""
        runs: list[_Run] = []
        for name in names:
            if not _PLAIN.fullmatch(name):
                return None
            last = runs[-1].numbers[0] if runs and runs[-1].numbers else None
            if last is not None and runs[-1].before + last.text(last.many) == name:
                runs[-1] = runs[-1]._replace(numbers=(last._replace(many=last.many + 1),))
                continue
            found = _NUMBERED.fullmatch(name)
            parts = () if found is None else (_Numbers(int(found[2]), 1, len(found[2]), found[3]),)
            runs.append(_Run(name if found is None else found[1], parts))
        return cls(tuple(runs))

    @property
    def may_repeat(self) -> bool:
        """Whether two nodes may get the same name; with a single range they never do."""
        return len(self.runs) > 1 or len(self.runs[0].numbers) > 1

    def __str__(self) -> str:
        return ",".join(map(str, self.runs))

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the nodes, in the order of the nodes."""
        return chain.from_iterable(run.names for run in self.runs)


def names_in_order(pools: Iterable[tuple[str, str, int]], places: Sequence[str]) -> tuple[str, ...]:
    """Return each node's name.

    It comes from the pattern of the node's pool. Without a pattern, it is the name of the node's position in the
    topology, or else the node's number.

    Args:
        pools: (name, pattern or "", number of nodes) of each pool.
        places: the name of each node's position in the topology; empty if positions have no names.

    Raises:
        PlatformError: if a pattern is invalid, or gives more or fewer names than the pool has nodes.
    """
    found: list[str] = []
    for pool, rule, count in pools:
        first, after = len(found), len(found) + count
        if rule:
            found += NodeNames.parse(rule, count, f"pool {pool}")
        else:
            found += places[first:after] or map(str, range(first, after))
    return tuple(found)


def numbers_called(text: str, numbers: Mapping[str, int], where: str, what: str = "node") -> NodeSet:
    """Return the numbers of the nodes that the patterns in ``text`` name.

    Raise PlatformError if a node does not exist.
    """
    names = NodeNames.read("".join(text.split()))
    if names is None:
        raise PlatformError(f"names of {what}s are not valid", where=where, found=shown(text))
    found = []
    for name in names:
        if name not in numbers:
            hint = did_you_mean(name, list(numbers))
            raise PlatformError(f"there is no {what} {shown(name)}", where=where, hint=hint)
        found.append(numbers[name])
    return NodeSet.of(found)
