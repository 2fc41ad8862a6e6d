"""Parse planned maintenance from text, one rule per line.

A rule consists of words separated by blanks (docs/how-to/failures.md has examples)::

    rule       = begin length nodes {clause}
    begin      = time
    length     = "+" LENGTH | "to" time                  +8h, +20000s; to 2017-01-29 16:00
    time       = "@" LENGTH | date                       @3600, @2d: time after time 0
    date       = YYYY-MM-DD [("T" | blank) HH:MM[:SS[.ffffff]] ["Z" | "+HH:MM" | "-HH:MM"]]
    nodes      = node {node}                             all; 0-3 8; gpu
    node       = "all" | NUMBER | FIRST "-" LAST | POOL | "pool" POOL | NAMES
    clause     = recurrence | "announced" (LENGTH ["ahead"] | time) | "named" NAME | "cause" TEXT
    recurrence = period ["until" time | NUMBER "times"]
    period     = "daily" | "weekly" | "every" [NUMBER] ("day" | "days" | "week" | "weeks")

`pipistrelle.protocol.base.lengths.parse_seconds` reads each LENGTH. A date without an offset is in the given zone. If
maintenance recurs from a date, it keeps its time of day, even if the clock changes. If it recurs from ``@``, a day has
86400 s. A date without a time of day means the start of that day; after ``until`` it means the end of that day. Each
clause may occur once, in any order; ``cause`` takes the rest of the line. If the name of a pool is also a word or
number of this language, write "pool" before it. If the name of a node is such a word, or also a pool's name, write the
node's number.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.maintenance.dates import Calendar, Moment, refuse
from pipistrelle.platforms.maintenance.plan import MaintenanceError, MaintenanceRule
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.topology.nodes import numbers_by_name
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.fields import LONGEST
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError

_MANUAL: Final = "'pipistrelle help failures' describes the language."
_LONGEST_CAUSE: Final = 200
#: occurrences checked for overlaps; daily ones cover four years, so every change of the clock is among them
_LOOKED_AT: Final = 1500
_ANNOUNCED_AT_ONCE: Final = 10_000
_CLAUSES: Final = ("daily", "weekly", "every", "announced", "named", "cause")
_UNITS: Final = ("day", "days", "week", "weeks")
_DAYS: Final = {"daily": 1, "weekly": 7} | dict(zip(_UNITS, (1, 1, 7, 7), strict=True))
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NUMBERS: Final = re.compile("[0-9]+(?:-[0-9]+)?")
#: a list of node numbers, valid or not, which cannot be a node's name
_PLAIN_NUMBERS: Final = re.compile("[0-9,+-]+")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,5}")


def parse_maintenance(
    text: str,
    platform: Platform,
    *,
    where: str,
    epoch: float | None,
    timezone: str | None,
    names: Mapping[str, int] | None = None,
) -> MaintenanceRule:
    """Parse one rule of planned maintenance.

    Args:
        text: the line, such as ``2017-01-29 08:00 +20000s all weekly announced 7d``.
        where: the line's name in messages.
        epoch: Unix time of time 0 (s); None: unknown, so that dates cannot be used.
        timezone: the zone of dates without an offset, as ``Europe/Stockholm``; None: UTC.
        names: {name: number} of the nodes; None: the names in the platform's pools.

    Raises:
        MaintenanceError: if the line cannot be read, names nodes that the machine does not have, begins before time 0,
            is announced after its begin, or has overlapping occurrences.
    """
    try:
        return _Reader(text, platform, numbers_by_name(platform) if names is None else names, epoch, timezone).rule()
    except PipistrelleError as error:
        raise MaintenanceError(
            error.what, where=where, expected=error.expected, found=error.found, hint=error.hint or _MANUAL
        ) from None


def rules_of_lines(lines: Iterable[str], read: Callable[..., MaintenanceRule], where: str) -> list[MaintenanceRule]:
    """Parse the maintenance rules in a file's lines; skip blank lines and comments.

    `read` is `parse_maintenance` with all arguments bound except the line and `where`. Messages call the file `where`
    and give the line's number.
    """
    return [
        read(line, where=f"{where}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


class _Reader:
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
        #: the announcement, if given as a time
        self._known: Moment | None = None

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _take(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def rule(self) -> MaintenanceRule:
        first = self._time("begin of maintenance")
        if first.seconds < 0:
            refuse("maintenance begins before time 0", f"time 0, {self._clock.zero()}, or later", first.text)
        rule = MaintenanceRule(self._text, first=first, length=self._length(first), nodes=self._nodes())
        if first.seconds + rule.length > LONGEST:
            refuse("maintenance ends too late", f"an end of at most {LONGEST:g} s", self._text)
        given = []
        while word := self._peek():
            self._take()
            read = _READERS.get(word)
            if read is None:
                refuse("an unknown word", "a clause or the end", word, did_you_mean(word, [*_CLAUSES]))
            if read in given:
                refuse("a clause is repeated", "each clause once", word)
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
                refuse("maintenance ends no later than it begins", f"an end after {begin.text}", end.text)
            return end.seconds - begin.seconds
        if not word.startswith("+"):
            refuse("the length of maintenance is missing", "'+8h', '+20000s' or 'to 2017-01-29 16:00'", word)
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
            refuse(f"nodes cannot be read: {error.what}", error.expected or "as '0-3 8'", " ".join(numbers))
        strange = named - self._everything
        if strange:
            refuse("there are no such nodes", f"nodes 0 to {self._everything.last}", str(strange))
        if not nodes | named:
            refuse("the nodes of maintenance are missing", "'all', as '0-3 8', or a pool", self._peek())
        return nodes | named

    def _pool(self, name: str) -> NodeSet:
        if name not in self._pools:
            self._unknown(name)
        return self._pools[name]

    def _called(self, rule: str) -> NodeSet:
        numbers: list[int] = []
        names = NodeNames.read(rule)
        if names is None:
            refuse("names of nodes are not valid", "as n007, or n[001-016],n020", rule)
        for name in names:
            if name not in self._names:
                self._unknown(name)
            numbers.append(self._names[name])
        return NodeSet.of(numbers)

    def _unknown(self, name: str | None) -> None:
        """Raise an error: `name` is neither a pool nor a node's name.

        Do nothing if `name` is None.
        """
        if name is None:
            return
        if name in ("until", "times"):
            refuse(f"'{name}' comes after a recurrence", "as 'weekly until 2017-12-31', 'daily 12 times'", name)
        hint = did_you_mean(name, list(dict.fromkeys([*self._pools, "all", *_CLAUSES, *self._names])))
        expected = "a pool, 'all', or numbers of nodes as '0-3 8'" + (", or nodes' names" if self._names else "")
        refuse("there is no such pool" + (" or node" if self._names else ""), expected, name, hint)

    def _recurs(self, rule: MaintenanceRule, word: str) -> MaintenanceRule:
        number = 1
        if word == "every":
            number = int(self._take()) if _COUNT.fullmatch(self._peek()) else 1
            word = self._take()
            if word not in _UNITS:
                refuse("the period of maintenance is missing", "as 'every 14 days', 'every 2 weeks'", word)
        rule = replace(rule, days=number * _DAYS[word])
        if self._peek() == "until":
            self._take()
            until = self._time("last begin", last=True)
            if until.seconds < rule.first.seconds:
                refuse("maintenance recurs only until before its begin", "a time after its begin", until.text)
            return replace(rule, until=until.seconds)
        if self._words[self._at + 1 : self._at + 2] == ["times"]:
            times = self._take()
            if not _COUNT.fullmatch(times):
                refuse("the number of occurrences is not valid", "a whole number from 1 to 999999", times)
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
            refuse("maintenance is announced after its begin", "'announced 7d', ahead of its begin", ahead)
        lead = parse_seconds(ahead, "lead of an announcement", or_zero=True)
        if self._peek() == "ahead":
            self._take()
        return replace(rule, lead=lead)

    def _known_from(self, rule: MaintenanceRule, known: Moment) -> MaintenanceRule:
        if rule.days:
            refuse("recurring maintenance cannot be announced at a fixed time", "as 'announced 7d'", known.text)
        if known.seconds > rule.first.seconds:
            refuse("maintenance is announced after its begin", "an announcement before its begin", known.text)
        return replace(rule, lead=rule.first.seconds - max(0.0, known.seconds))

    def _named(self, rule: MaintenanceRule, word: str) -> MaintenanceRule:
        name = self._take()
        if not _NAME.fullmatch(name):
            refuse("the name of a maintenance is not valid", "up to 64 letters, digits, '_' and '-'", name)
        return replace(rule, name=name)

    def _caused(self, rule: MaintenanceRule, word: str) -> MaintenanceRule:
        cause = " ".join(self._words[self._at :])
        self._at = len(self._words)
        if not cause or len(cause) > _LONGEST_CAUSE or not cause.isprintable():
            refuse("the cause of maintenance is not valid", f"1 to {_LONGEST_CAUSE} printable characters", cause)
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
        hint = "Add how long ahead each is announced, as 'announced 30d'."
        most = f"at most {_ANNOUNCED_AT_ONCE} times"
        refuse("maintenance recurs too often to be announced all at once", most, rule.text, hint)
    for one, other in pairwise(islice(rule.begins(), _LOOKED_AT)):
        if one + rule.length > other:
            raise MaintenanceError(
                "maintenance overlaps its next occurrence",
                expected=f"a length of at most {other - one:g} s",
                found=f"{rule.length:g} s",
                hint="Let it recur less often.",
            )
