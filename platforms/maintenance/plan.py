"""Planned maintenance as rules, and what occurs by them."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.maintenance.dates import Moment
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.fields import LONGEST
from pipistrelle.protocol.units.nodesets import NodeSet

#: the cause of maintenance whose rule does not tell one
MAINTENANCE: Final = "maintenance"


class MaintenanceError(PlatformError):
    """Planned maintenance makes no sense."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Nodes are down from `begin` to `end`, which is known from `announced` on; seconds after time 0.

    `id` is unique in a plan: the rule's name, for one of several occurrences with a number from 1, as ``weekly.3``.
    """

    id: str
    announced: float
    begin: float
    end: float
    nodes: NodeSet
    cause: str


@dataclass(frozen=True, slots=True)
class MaintenanceRule:
    """What one line says: maintenance that occurs once, several times, or for ever.

    Parameters
    ----------
    text
        the line.
    nodes
        numbers of the nodes, at least one.
    first
        when it begins first, at time 0 or later; recurrences keep to its clock if it is a date.
    length
        how long it lasts, in seconds, above 0.
    name
        what it is called; None: the plan names it.
    cause
        why.
    lead
        how long ahead it is announced, in seconds; None: from the beginning of the run on, or, if it recurs for ever,
        each occurrence as the one before begins.
    days
        it recurs so many days later; 0: it occurs once.
    count
        how often it occurs; None: no limit.
    until
        when it begins last at the latest, in seconds after time 0; None: no limit.
    """

    text: str
    nodes: NodeSet
    first: Moment
    length: float
    name: str | None = None
    cause: str = MAINTENANCE
    lead: float | None = None
    days: int = 0
    count: int | None = None
    until: float | None = None

    @property
    def endless(self) -> bool:
        """Whether it recurs for ever."""
        return bool(self.days) and self.count is None and self.until is None

    def begins(self) -> Iterator[float]:
        """Yield when it begins, in seconds after time 0; to the end of the calendar if it recurs for ever."""
        for number in count() if self.days else range(1):
            begin = self.first.days_later(number * self.days)
            if number == self.count or begin > (LONGEST if self.until is None else self.until):
                return
            yield begin

    def occurrences(self, name: str) -> Iterator[Maintenance]:
        """Yield the occurrences in order, by begin and by announcement alike; `name` is what the plan calls it."""
        before = 0.0
        for number, begin in enumerate(self.begins(), start=1):
            known = max(0.0, begin - self.lead) if self.lead is not None else before if self.endless else 0.0
            before = begin
            which = f"{name}.{number}" if self.days else name
            yield Maintenance(which, known, begin, begin + self.length, self.nodes, self.cause)


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """All rules of a run; a rule without a name is called by its number, ``m1``, ``m2``, ...

    Raises
    ------
    MaintenanceError
        if two rules have one name.
    """

    rules: tuple[MaintenanceRule, ...]

    def __post_init__(self) -> None:
        seen: dict[str, MaintenanceRule] = {}
        for rule, name in zip(self.rules, self._names(), strict=True):
            if name in seen:
                raise MaintenanceError(
                    f"two maintenances are called '{name}'",
                    expected="a name of its own for each",
                    found=f"{shown(seen[name].text)} and {shown(rule.text)}",
                )
            seen[name] = rule

    def _names(self) -> list[str]:
        return [rule.name or f"m{number}" for number, rule in enumerate(self.rules, start=1)]

    def occurrences(self) -> Iterator[Maintenance]:
        """Yield all occurrences by (announced, begin, place of the rule), made only as they are asked for."""
        streams = [rule.occurrences(name) for rule, name in zip(self.rules, self._names(), strict=True)]
        return heapq.merge(*streams, key=lambda maintenance: (maintenance.announced, maintenance.begin))
