"""Parse dates in a local time zone, and durations as PBS and Slurm write them."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

_ISO: Final = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(?::(\d\d)(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_AMERICAN: Final = re.compile(r"(\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d\d)(?::(\d\d)(\.\d{1,9})?)?", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_LENGTH: Final = re.compile(r"(?:(\d{1,9})-)?(\d{1,9}(?::\d{1,9}){0,3})(\.\d{1,9})?", re.ASCII)
#: seconds per part of a duration, last part first
_PARTS: Final = (1, 60, 3600, 86400)


class Clock:
    """A converter from dates in one time zone to Unix times.

    When clocks are set back, some local times occur twice: they count as the first of the two. When clocks are set
    forward, some local times do not exist: they get the offset before the change.
    """

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        #: {(minute, offset): Unix time of its start}
        self._minutes: dict[tuple[str, str], float | None] = {}

    def iso(self, text: str) -> float | None:
        """Return the Unix time (s) of an ISO date; None for other texts.

        A number is returned as it is: seconds since 1970.
        """
        return float(text) if _NUMBER.fullmatch(text) else self.date(text)

    def date(self, text: str) -> float | None:
        """Return the Unix time (s) of a date such as ``2024-01-31 08:00``.

        Return None for other texts.
        """
        found = _ISO.fullmatch(text)
        return self._time(found, found[4] or "") if found else None

    def american(self, text: str) -> float | None:
        """Return the Unix time (s) of a date such as ``01/31/2024 08:00:00``, or None.

        None means that the text has another form.
        """
        found = _AMERICAN.fullmatch(text)
        return self._time(found, "") if found else None

    def _time(self, found: re.Match[str], offset: str) -> float | None:
        key = (found[1], offset)
        if key not in self._minutes:
            try:
                self._minutes[key] = _minute(found[1], _offset(offset) if offset else self._zone).timestamp()
            except (ValueError, OverflowError):
                self._minutes[key] = None
        begin = self._minutes[key]
        seconds = int(found[2] or 0)
        if begin is None or begin < 0 or seconds > 60:  # 60 is a leap second
            return None
        return begin + seconds + float(found[3] or 0)


def _minute(text: str, zone: tzinfo) -> datetime:
    if "/" not in text:
        return datetime.fromisoformat(text).replace(tzinfo=zone)
    month, day, year, hour, minute = map(int, re.split("[/ :]", text))
    return datetime(year, month, day, hour, minute, tzinfo=zone)


def _offset(text: str) -> tzinfo:
    if text == "Z":
        return UTC
    length = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-length if text[0] == "-" else length)


def length(text: str, one: float) -> float | None:
    """Parse a duration; return it in seconds, or None if the text is no duration.

    Forms: ``[[[D:]H:]M:]S`` and ``D-H[:M[:S]]``; the last part may have a fraction. A single number is multiplied by
    `one`, in seconds: 1 in PBS, 60 in Slurm.
    """
    found = _LENGTH.fullmatch(text)
    if found is None:
        return None
    parts = list(map(int, found[2].split(":")))
    fraction = float(found[3] or 0)
    if found[1] is not None:
        if len(parts) > 3 or (found[3] and len(parts) < 3):
            return None
        parts += [0] * (3 - len(parts))
        parts.insert(0, int(found[1]))
    elif len(parts) == 1:
        return (parts[0] + fraction) * one
    return sum(number * seconds for number, seconds in zip(reversed(parts), _PARTS, strict=False)) + fraction
