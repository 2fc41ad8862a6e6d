"""Times in outage logs: numbers of seconds, and dates in the forms that logs write."""

import math
import re
from datetime import UTC, datetime
from typing import Final

_ISO: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?")
_AMERICAN: Final = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d\d)(?::(\d\d)(\.\d{1,9})?)?")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_LATEST: Final = 1e18


def iso_time(text: str) -> float | None:
    """Return Unix time in seconds of "2017-01-29 08:00" or "2017-01-29T08:00:00.5", None if it is none; as UTC."""
    found = _ISO.fullmatch(text)
    return _checked(found, (1, 2, 3)) if found else None


def american_time(text: str) -> float | None:
    """Return Unix time in seconds of "1/29/2017 8:00" or "01/29/2017 08:00:00", None if it is none; as UTC."""
    found = _AMERICAN.fullmatch(text)
    return _checked(found, (3, 1, 2)) if found else None


def seconds(text: str) -> float | None:
    """Return a number of seconds of at least 0, None if the text is none."""
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) and value <= _LATEST else None


def unix_time(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> float:
    """Return the seconds after 1970-01-01 00:00 UTC; ValueError if there is no such time."""
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()


def _checked(found: re.Match[str], order: tuple[int, int, int]) -> float | None:
    year, month, day = (int(found[at]) for at in order)
    try:
        whole = unix_time(year, month, day, int(found[4]), int(found[5]), int(found[6] or 0))
    except (ValueError, OverflowError):
        return None
    return whole + float(found[7] or 0)
