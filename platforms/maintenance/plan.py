"""Planned maintenance: the rules of a run, and the occurrences of each rule."""

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

#: the default cause of maintenance
MAINTENANCE: Final = "maintenance"


class MaintenanceError(PlatformError):
    """Planned maintenance is invalid."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """One occurrence of maintenance: nodes are down from `begin` to `end`.

    Schedulers know of the maintenance from `announced` on. All times are in seconds. `id` is unique in a plan: the
    rule's name, and for a recurring rule a number from 1, as ``weekly.3``.
    """

    id: str
    announced: float
    begin: float
    end: float
    nodes: NodeSet
    cause: str


@dataclass(frozen=True, slots=True)
class MaintenanceRule:
    """One line of a plan: maintenance that occurs once, several times, or forever.

    Args:
        text: the line as written.
        nodes: the nodes that are down, at least one.
        first: the first begin, at time 0 or later. Occurrences that recur from a date follow the clock of its zone.
        length: seconds, above 0.
        name: the rule's name; None: the plan assigns one.
        lead: how long ahead each occurrence is announced (s). If None, a rule with an end announces all occurrences at
            the start of the run, and an endless rule announces each one when the previous one begins.
        days: days between occurrences; 0: it occurs once.
        count: the number of occurrences; None: no limit.
        until: the latest begin, in seconds after time 0; None: no limit.
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
        """Whether the maintenance recurs forever."""
        return bool(self.days) and self.count is None and self.until is None

    def begins(self) -> Iterator[float]:
        """Yield the begin of each occurrence of the maintenance, in seconds after time 0."""
        for number in count() if self.days else range(1):
            begin = self.first.days_later(number * self.days)
            if number == self.count or begin > (LONGEST if self.until is None else self.until):
                return
            yield begin

    def occurrences(self, name: str) -> Iterator[Maintenance]:
        """Yield the rule's occurrences in order of time; their ids begin with `name`."""
        before = 0.0
        for number, begin in enumerate(self.begins(), start=1):
            known = max(0.0, begin - self.lead) if self.lead is not None else before if self.endless else 0.0
            before = begin
            which = f"{name}.{number}" if self.days else name
            yield Maintenance(which, known, begin, begin + self.length, self.nodes, self.cause)


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The maintenance rules of a run; rule 2 is called ``m2`` if it has no name.

    Raises:
        MaintenanceError: if two rules have the same name.
    """

    rules: tuple[MaintenanceRule, ...]

    def __post_init__(self) -> None:
        seen: dict[str, MaintenanceRule] = {}
        for rule, name in zip(self.rules, self._names(), strict=True):
            if name in seen:
                raise MaintenanceError(
                    f"two maintenances are called '{name}'",
                    expected="a different name for each",
                    found=f"{shown(seen[name].text)} and {shown(rule.text)}",
                )
            seen[name] = rule

    def _names(self) -> list[str]:
        return [rule.name or f"m{number}" for number, rule in enumerate(self.rules, start=1)]

    def occurrences(self) -> Iterator[Maintenance]:
        """Yield all occurrences of maintenance.

        They are ordered by announcement, begin and number of the rule.
        """
        streams = [rule.occurrences(name) for rule, name in zip(self.rules, self._names(), strict=True)]
        return heapq.merge(*streams, key=lambda maintenance: (maintenance.announced, maintenance.begin))
