"""Planned maintenance: which nodes will be down from when until when, and from when on that is known.

A rule is one line of words between blanks (docs/failures.md has the same with examples)::

    rule       = begin length nodes {clause}
    begin      = time
    length     = "+" LENGTH | "to" time                  +8h, +20000s; to 2017-01-29 16:00
    time       = "@" LENGTH | date                       @3600, @2d: so long after time 0
    date       = YYYY-MM-DD [("T" | blank) HH:MM[:SS[.ffffff]] ["Z" | "+HH:MM" | "-HH:MM"]]
    nodes      = node {node}                             all; 0-3 8; gpu
    node       = "all" | NUMBER | FIRST "-" LAST | POOL | "pool" POOL | NAMES
    clause     = recurrence | "announced" (LENGTH ["ahead"] | time) | "named" NAME | "cause" TEXT
    recurrence = period ["until" time | NUMBER "times"]
    period     = "daily" | "weekly" | "every" [NUMBER] ("day" | "days" | "week" | "weeks")

Lengths are those of `pipistrelle.protocol.base.lengths.parse_seconds`. A date without an offset is one of the given
zone. Occurrences that recur from a date keep their time of the day, also where the zone sets its clock; from ``@`` on,
a day has 86400 s. A date alone is its midnight; behind ``until`` it is its last moment. Clauses come in any order, each
once; ``cause`` takes the rest of the line. A pool whose name is a word or number of this language needs "pool" before;
a node that is called as one of these, or as a pool, goes by its number.
"""

import heapq
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import count, islice, pairwise
from typing import Final, NoReturn
from zoneinfo import ZoneInfo

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.topology.node_names import NodeNames
from pipistrelle.platforms.topology.nodes import numbers_by_name
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, shown
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.fields import LONGEST
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError

_DAY: Final = 86400.0
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK: Final = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-5][0-9])?")
_CLOCK_BEGINS: Final = re.compile("[0-9]+:")
_NUMBER: Final = re.compile("[0-9.]+[A-Za-z]*")


class MomentError(PlatformError):
    """A text is no time, or none that this simulation can have."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as it was written: `seconds` after time 0, negative before it; `date` if it was written as one."""

    seconds: float
    text: str
    date: datetime | None = None

    def days_later(self, days: int) -> float:
        """Return when it is the same time of the day, so many days later, in seconds after time 0.

        By the date's clock; if it was no date, a day has 86400 s. A time that the clock skips is as much later as
        the clock is set forward; of one that it shows twice, the first counts. Beyond the calendar it is infinity.
        """
        if self.date is None:
            return self.seconds + days * _DAY
        try:
            later = (self.date.replace(tzinfo=None) + timedelta(days=days)).replace(tzinfo=self.date.tzinfo)
            return self.seconds + (later.astimezone(UTC) - self.date.astimezone(UTC)).total_seconds()
        except OverflowError:
            return math.inf


@dataclass(frozen=True, slots=True)
class Calendar:
    """Knows what dates mean in a run.

    Parameters
    ----------
    epoch
        when time 0 is, in seconds of Unix time; None: not known, so that there can be no dates.
    timezone
        the name of the zone of dates without an offset, as ``Europe/Stockholm``; None: UTC.
    """

    epoch: float | None
    timezone: str | None

    def read(self, words: list[str], what: str, *, last: bool = False) -> tuple[Moment, int]:
        """Return the time that words begin with, and how many words it takes: 1, or 2 for "2017-01-29 08:00".

        `what` is what the time is called in messages. A date without a time of the day is its midnight, or its last
        moment if `last` is true.

        Raises
        ------
        PlatformError
            if there is none, or it cannot be: no such day, a time that the zone's clock skips, an unknown zone, a date
            although it is not known when time 0 is.
        """
        word = words[0] if words else ""
        if word.startswith("@"):
            return Moment(parse_seconds(word[1:], f"{what} after '@'", or_zero=True), word), 1
        day, letter, clock = word.partition("T")
        if not _DATE.fullmatch(day):
            _refuse(
                f"the {what} cannot be read",
                "a date, as '2017-01-29 08:00', or '@3600', seconds after time 0",
                word,
                f"Write '@{word}' for a time after time 0." if _NUMBER.fullmatch(word) else None,
            )
        used = 1
        if not letter and len(words) > 1 and _CLOCK_BEGINS.match(words[1]):
            clock = words[1]
            used = 2
        elif letter and not clock:
            _refuse(f"the {what} has no time of the day", "as 2017-01-29T08:00", word)
        text = f"{day} {clock}".strip()
        if self.epoch is None:
            _refuse(
                "a date means nothing here: it is not known when time 0 is",
                "'@' and a time after time 0, as '@3600'",
                text,
                "Or use a workload that tells when it begins (UnixStartTime).",
            )
        date = self._date(day, clock, what, last=last)
        return Moment((date - _UNIX).total_seconds() - self.epoch, text, date), used

    def zero(self) -> str:
        """Return time 0 for a message: as a date, if it has one."""
        if self.epoch is None:
            return "0 s"
        try:
            zero = _UNIX + timedelta(seconds=self.epoch)
            return zero.astimezone(self._zone()).strftime("%Y-%m-%d %H:%M:%S %Z")
        except (OverflowError, MomentError):
            return f"{self.epoch:g} s of Unix time"

    def _date(self, day: str, clock: str, what: str, *, last: bool) -> datetime:
        if clock and not _CLOCK.fullmatch(clock):
            _refuse(f"the time of the day of the {what} cannot be read", "as 08:00, 08:00:59.5 or 08:00Z", clock)
        text = f"{day} {clock}".strip()
        try:
            date = datetime.fromisoformat(f"{day} 23:59:59.999999" if last and not clock else text)
            date = date if date.tzinfo else date.replace(tzinfo=self._zone())
            skipped = date.astimezone(UTC).astimezone(date.tzinfo).replace(tzinfo=None) != date.replace(tzinfo=None)
        except (ValueError, OverflowError):
            rule = "as '2017-01-29 08:00', an offset below 24 h"
            _refuse(f"the {what} is no time of the calendar", rule, text)
        if skipped:
            _refuse(f"the clock skips the {what}", f"a time that clocks show, by {date.tzinfo}", text)
        return date

    def _zone(self) -> tzinfo:
        name = self.timezone
        if name is None or name == "UTC":
            return UTC
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # the last for names such as "Europe"
            _refuse(
                "the time zone of dates is not known",
                "a name such as 'Europe/Stockholm'",
                name,
                "Write dates with an offset, as 2017-01-29T08:00Z or 2017-01-29T08:00+01:00.",
            )


def _refuse(what: str, expected: str, found: str, hint: str | None = None) -> NoReturn:
    raise MomentError(what, expected=expected, found=shown(found) if found else "nothing", hint=hint)


#: the cause of maintenance whose rule does not tell one
MAINTENANCE: Final = "maintenance"
_MANUAL: Final = "'pipistrelle help failures' has the language."
_LONGEST_CAUSE: Final = 200
#: occurrences that are looked through for overlaps: enough for each setting of a clock to meet each kind of day
_LOOKED_AT: Final = 1500
_ANNOUNCED_AT_ONCE: Final = 10_000
_CLAUSES: Final = ("daily", "weekly", "every", "announced", "named", "cause")
_UNITS: Final = ("day", "days", "week", "weeks")
_DAYS: Final = {"daily": 1, "weekly": 7} | dict(zip(_UNITS, (1, 1, 7, 7), strict=True))
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NUMBERS: Final = re.compile("[0-9]+(?:-[0-9]+)?")
#: no name of a node, though perhaps no numbers either
_PLAIN_NUMBERS: Final = re.compile("[0-9,+-]+")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,5}")


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


def parse_maintenance(
    text: str,
    platform: Platform,
    *,
    where: str,
    epoch: float | None,
    timezone: str | None,
    names: Mapping[str, int] | None = None,
) -> MaintenanceRule:
    """Return the rule that a line says.

    Parameters
    ----------
    text
        the line, such as ``2017-01-29 08:00 +20000s all weekly announced 7d``.
    platform
        the machine, which has the nodes and pools.
    where
        what the line is called in messages.
    epoch
        when time 0 is, in seconds of Unix time; None: not known, so that there can be no dates.
    timezone
        the name of the zone of dates without an offset, as ``Europe/Stockholm``; None: UTC.
    names
        {name: number} of the nodes; None: by the names of the platform's pools.

    Raises
    ------
    MaintenanceError
        if the line cannot be read, or what it says cannot be: nodes that the machine has not, a begin before time 0,
        an announcement after the begin, occurrences that overlap.
    """
    try:
        return _Reader(text, platform, numbers_by_name(platform) if names is None else names, epoch, timezone).rule()
    except PipistrelleError as error:
        raise MaintenanceError(
            error.what, where=where, expected=error.expected, found=error.found, hint=error.hint or _MANUAL
        ) from None


def rules_of_lines(lines: Iterable[str], read: Callable[..., MaintenanceRule], where: str) -> list[MaintenanceRule]:
    """Return the rules of a file's lines, without those that are blank or begin with ``#``.

    `read` is `parse_maintenance` with all but the line and `where`, the file's name; messages have a line's number,
    from 1, beside it.
    """
    return [
        read(line, where=f"{where}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


class _Reader:
    """Reads one line, word by word."""

    def __init__(
        self, text: str, platform: Platform, names: Mapping[str, int], epoch: float | None, timezone: str | None
    ) -> None:
        self._text = text.strip()
        self._words = text.split()
        self._at = 0
        self._everything = NodeSet.interval(0, platform.nodes - 1)
        self._pools = {pool.name: NodeSet.parse(pool.nodes) for pool in platform.info.pools}
        self._names = names
        self._clock = Calendar(epoch, timezone)
        #: when it is announced, if that was said as a time
        self._known: Moment | None = None

    def _peek(self) -> str:
        """Return the next word, an empty one at the end."""
        return self._words[self._at] if self._at < len(self._words) else ""

    def _take(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def rule(self) -> MaintenanceRule:
        """Return what the line says."""
        first = self._time("begin of maintenance")
        if first.seconds < 0:
            _refuse("maintenance lies in the past", f"time 0, {self._clock.zero()}, or later", first.text)
        rule = MaintenanceRule(self._text, first=first, length=self._length(first), nodes=self._nodes())
        if first.seconds + rule.length > LONGEST:
            _refuse("maintenance lies too far ahead", f"an end of at most {LONGEST:g} s", self._text)
        given = []
        while word := self._peek():
            self._take()
            read = _READERS.get(word)
            if read is None:
                _refuse("a word is not known here", "a clause or the end", word, did_you_mean(word, [*_CLAUSES]))
            if read in given:
                _refuse("something is said twice", "each clause once", word)
            given.append(read)
            rule = read(self, rule, word)
        if self._known is not None:
            rule = self._known_from(rule, self._known)
        _check_recurrence(rule)
        return rule

    def _time(self, what: str, *, last: bool = False) -> Moment:
        moment, words = self._clock.read(self._words[self._at :], what, last=last)
        self._at += words
        return moment

    def _length(self, begin: Moment) -> float:
        word = self._peek()
        if word == "to":
            self._take()
            end = self._time("end of maintenance")
            if end.seconds <= begin.seconds:
                _refuse("maintenance ends no later than it begins", f"an end after {begin.text}", end.text)
            return end.seconds - begin.seconds
        if not word.startswith("+"):
            _refuse("it is not said how long maintenance lasts", "'+8h', '+20000s' or 'to 2017-01-29 16:00'", word)
        return parse_seconds(self._take(), "length of maintenance")

    def _nodes(self) -> NodeSet:
        nodes = NodeSet.EMPTY
        numbers: list[str] = []
        while self._peek() and self._peek() not in _CLAUSES:
            word = self._take()
            if word == "all":
                nodes = self._everything
            elif word == "pool":
                nodes |= self._pool(self._take())
            elif word in self._pools and not _NUMBERS.fullmatch(word):
                nodes |= self._pool(word)
            elif self._names and not _PLAIN_NUMBERS.fullmatch(word):
                nodes |= self._called(word)
            else:
                numbers.append(word)
        try:
            named = NodeSet.parse(" ".join(numbers))
        except NodeSetError as error:
            self._unknown(next((word for word in numbers if not word[0].isdecimal()), None))
            _refuse(f"nodes cannot be read: {error.what}", error.expected or "as '0-3 8'", " ".join(numbers))
        strange = named - self._everything
        if strange:
            _refuse("there are no such nodes", f"nodes 0 to {self._everything.last}", str(strange))
        if not nodes | named:
            _refuse("it is not said which nodes are maintained", "'all', as '0-3 8', or a pool", self._peek())
        return nodes | named

    def _pool(self, name: str) -> NodeSet:
        if name not in self._pools:
            self._unknown(name)
        return self._pools[name]

    def _called(self, rule: str) -> NodeSet:
        """Return the nodes with these names: a name, or several by a rule."""
        numbers: list[int] = []
        names = NodeNames.read(rule)
        if names is None:
            _refuse("names of nodes are not valid", "as n007, or n[001-016],n020", rule)
        for name in names:
            if name not in self._names:
                self._unknown(name)
            numbers.append(self._names[name])
        return NodeSet.of(numbers)

    def _unknown(self, name: str | None) -> None:
        """Refuse what is no pool and no node's name."""
        if name is None:
            return
        if name in ("until", "times"):
            _refuse(f"'{name}' comes after a recurrence", "as 'weekly until 2017-12-31', 'daily 12 times'", name)
        hint = did_you_mean(name, list(dict.fromkeys([*self._pools, "all", *_CLAUSES, *self._names])))
        expected = "a pool, 'all', or numbers of nodes as '0-3 8'" + (", or nodes' names" if self._names else "")
        _refuse("there is no such pool" + (" or node" if self._names else ""), expected, name, hint)

    def _recurs(self, rule: MaintenanceRule, word: str) -> MaintenanceRule:
        number = 1
        if word == "every":
            number = int(self._take()) if _COUNT.fullmatch(self._peek()) else 1
            word = self._take()
            if word not in _UNITS:
                _refuse("it is not said how often maintenance recurs", "as 'every 14 days', 'every 2 weeks'", word)
        rule = replace(rule, days=number * _DAYS[word])
        if self._peek() == "until":
            self._take()
            until = self._time("last begin", last=True)
            if until.seconds < rule.first.seconds:
                _refuse("maintenance recurs until before it begins", "a time after its begin", until.text)
            return replace(rule, until=until.seconds)
        if self._words[self._at + 1 : self._at + 2] == ["times"]:
            times = self._take()
            if not _COUNT.fullmatch(times):
                _refuse("it is not said how often maintenance occurs", "a whole number from 1 to 999999", times)
            self._take()
            return replace(rule, count=int(times))
        return rule

    def _announced(self, rule: MaintenanceRule, word: str) -> MaintenanceRule:
        ahead = self._peek()
        if ahead.startswith("@") or ahead[4:5] == "-":
            self._known = self._time("announcement")
            return rule
        self._take()
        if ahead.startswith("-"):
            _refuse("maintenance is announced after its begin", "'announced 7d', ahead of its begin", ahead)
        lead = parse_seconds(ahead, "lead of an announcement", or_zero=True)
        if self._peek() == "ahead":
            self._take()
        return replace(rule, lead=lead)

    def _known_from(self, rule: MaintenanceRule, known: Moment) -> MaintenanceRule:
        if rule.days:
            _refuse("maintenance that recurs is announced a time ahead", "as 'announced 7d'", known.text)
        if known.seconds > rule.first.seconds:
            _refuse("maintenance is announced after its begin", "an announcement before its begin", known.text)
        return replace(rule, lead=rule.first.seconds - max(0.0, known.seconds))

    def _named(self, rule: MaintenanceRule, word: str) -> MaintenanceRule:
        name = self._take()
        if not _NAME.fullmatch(name):
            _refuse("the name of a maintenance is not valid", "up to 64 letters, digits, '_' and '-'", name)
        return replace(rule, name=name)

    def _caused(self, rule: MaintenanceRule, word: str) -> MaintenanceRule:
        cause = " ".join(self._words[self._at :])
        self._at = len(self._words)
        if not cause or len(cause) > _LONGEST_CAUSE or not cause.isprintable():
            _refuse("the cause of maintenance is not valid", f"1 to {_LONGEST_CAUSE} printable characters", cause)
        return replace(rule, cause=cause)


_READERS: Final[dict[str, Callable[[_Reader, MaintenanceRule, str], MaintenanceRule]]] = {
    "daily": _Reader._recurs,
    "weekly": _Reader._recurs,
    "every": _Reader._recurs,
    "announced": _Reader._announced,
    "named": _Reader._named,
    "cause": _Reader._caused,
}


def _check_recurrence(rule: MaintenanceRule) -> None:
    if rule.lead is None and not rule.endless and next(islice(rule.begins(), _ANNOUNCED_AT_ONCE, None), None):
        hint = "Say how long ahead each is announced, as 'announced 30d'."
        most = f"at most {_ANNOUNCED_AT_ONCE} times"
        _refuse("maintenance recurs too often to be announced all at once", most, rule.text, hint)
    for one, other in pairwise(islice(rule.begins(), _LOOKED_AT)):
        if one + rule.length > other:
            raise MaintenanceError(
                "maintenance lasts until after its next occurrence begins",
                expected=f"a length of at most {other - one:g} s",
                found=f"{rule.length:g} s",
                hint="Let it recur less often.",
            )
