"""Times in maintenance rules: seconds after time 0, or dates."""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NoReturn
from zoneinfo import ZoneInfo

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.base.lengths import parse_seconds

_DAY: Final = 86400.0
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK: Final = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-5][0-9])?")
_CLOCK_BEGINS: Final = re.compile("[0-9]+:")
_NUMBER: Final = re.compile("[0-9.]+[A-Za-z]*")


class MomentError(PlatformError):
    """A word or a time in a maintenance rule is invalid."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in a maintenance rule: in seconds, as text, and perhaps as a date."""

    seconds: float
    text: str
    date: datetime | None = None

    def days_later(self, days: int) -> float:
        """Return the same time of day, ``days`` later, in seconds after time 0.

        A date follows the clock of its zone; without a date, a day has 86400 s. If clocks are set forward by an hour, a
        local time in the skipped hour becomes one hour later. If clocks are set back, a local time that occurs twice
        means its first occurrence. After the year 9999 the result is inf.
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
    """The start and the time zone of a run, which give dates their meaning.

    Args:
        epoch: Unix time of time 0 (s); None: unknown, so that dates cannot be used.
        timezone: the zone of dates without an offset, as ``Europe/Stockholm``; None: UTC.
    """

    epoch: float | None
    timezone: str | None

    def read(self, words: list[str], what: str, *, last: bool = False) -> tuple[Moment, int]:
        """Return the time at the beginning of ``words``.

        Also return the number of words that it consists of. A date without a time of day means the start of that day,
        or its end if `last` is true.

        Args:
            what: the name of the time in error messages, such as ``begin``.

        Raises:
            PlatformError: if there is no valid time: no such day, a time that the zone's clock skips, an unknown zone,
                or a date without an epoch.
        """
        word = words[0] if words else ""
        if word.startswith("@"):
            return Moment(parse_seconds(word[1:], f"{what} after '@'", or_zero=True), word), 1
        day, letter, clock = word.partition("T")
        if not _DATE.fullmatch(day):
            refuse(
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
            refuse(f"the {what} has no time of day", "as 2017-01-29T08:00", word)
        text = f"{day} {clock}".strip()
        if self.epoch is None:
            refuse(
                "dates cannot be used, because the date of time 0 is unknown",
                "'@' and a time after time 0, as '@3600'",
                text,
                "Or use a workload that states its begin (UnixStartTime).",
            )
        date = self._date(day, clock, what, last=last)
        return Moment((date - _UNIX).total_seconds() - self.epoch, text, date), used

    def zero(self) -> str:
        """Return time 0 as text for a message: as a date if the epoch is known."""
        if self.epoch is None:
            return "0 s"
        try:
            zero = _UNIX + timedelta(seconds=self.epoch)
            return zero.astimezone(self._zone()).strftime("%Y-%m-%d %H:%M:%S %Z")
        except (OverflowError, MomentError):
            return f"{self.epoch:g} s of Unix time"

    def _date(self, day: str, clock: str, what: str, *, last: bool) -> datetime:
        if clock and not _CLOCK.fullmatch(clock):
            refuse(f"the time of day of the {what} cannot be read", "as 08:00, 08:00:59.5 or 08:00Z", clock)
        text = f"{day} {clock}".strip()
        try:
            date = datetime.fromisoformat(f"{day} 23:59:59.999999" if last and not clock else text)
            date = date if date.tzinfo else date.replace(tzinfo=self._zone())
            skipped = date.astimezone(UTC).astimezone(date.tzinfo).replace(tzinfo=None) != date.replace(tzinfo=None)
        except (ValueError, OverflowError):
            rule = "as '2017-01-29 08:00', an offset below 24 h"
            refuse(f"the {what} is not a valid date", rule, text)
        if skipped:
            refuse(f"the clock skips the {what}", f"a time that clocks show, by {date.tzinfo}", text)
        return date

    def _zone(self) -> tzinfo:
        name = self.timezone
        if name is None or name == "UTC":
            return UTC
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # OSError for names such as "Europe"
            refuse(
                "the time zone of dates is unknown",
                "a name such as 'Europe/Stockholm'",
                name,
                "Write dates with an offset, as 2017-01-29T08:00Z or 2017-01-29T08:00+01:00.",
            )


def refuse(what: str, expected: str, found: str, hint: str | None = None) -> NoReturn:
    """Raise MomentError for a word or time in a maintenance rule.

    An empty `found` is shown as "nothing".
    """
    raise MomentError(what, expected=expected, found=shown(found) if found else "nothing", hint=hint)
