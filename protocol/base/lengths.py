"""Read and write lengths of time (``24h``, ``1.5e3``), and write dates."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError, shown

#: {unit: seconds}; a year is 365.25 days
UNITS: Final = {
    "ms": 0.001,
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "y": 31557600.0,
}
#: a number and letters that may be a unit
QUANTITY: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)")
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_THREE_DIGITS: Final = {unit: f"{{:.3g}} {unit}" for unit in ("y", "d", "h", "min", "s")}
_CLOCK: Final = re.compile(r"([0-9]{1,9}):([0-5][0-9])(?::([0-5][0-9]))?")


def date_text(seconds: float, zone: tzinfo = UTC) -> str | None:
    """Return a Unix time as ``1996-09-23 14:00``, or None outside the years 1 to 9999."""
    try:
        return (_UNIX + timedelta(seconds=seconds)).astimezone(zone).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):  # before year 1, after 9999, or NaN
        return None


def length_text(seconds: float, forms: Mapping[str, str] = _THREE_DIGITS) -> str:
    """Return a length of time in the largest unit that it reaches, such as ``3.2 d``.

    Args:
        forms: {unit: number format}, largest unit first; the last unit also serves shorter times.
    """
    unit = next((unit for unit in forms if seconds >= UNITS[unit]), [*forms][-1])
    return forms[unit].format(seconds / UNITS[unit])


def two_units_text(seconds: float) -> str:
    """Return a length of time in its two largest units, such as ``3 h 12 min``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    units = ("d", "h", "min", "s")
    unit, lesser = next(pair for pair in pairwise(units) if whole >= UNITS[pair[0]])
    count, rest = divmod(whole, round(UNITS[unit]))
    part = rest // round(UNITS[lesser])
    return f"{count} {unit} {part} {lesser}" if part else f"{count} {unit}"


class LengthError(PipistrelleError):
    """A text that is not a length of time."""


def parse_seconds(text: str, what: str = "length of time", *, or_zero: bool = False) -> float:
    """Return the seconds of a text.

    The text is a number with one of `UNITS`, or a number of seconds.

    Raises:
        LengthError: if the text is not a length of time, is negative, or is 0 although ``or_zero`` is False.
    """
    found = QUANTITY.fullmatch(text.strip())
    if found is None:
        raise LengthError(f"a {what} cannot be read", expected="a number and a unit, as 24h", found=shown(text))
    number, unit = found.groups()
    if unit and unit not in UNITS:
        known = list(UNITS)
        raise LengthError(f"a {what} has an unknown unit", expected=f"one of {', '.join(known)}", found=shown(unit))
    seconds = float(number) * UNITS[unit or "s"]
    if seconds < 0 or not (seconds or or_zero) or not math.isfinite(seconds):
        fault, least = ("below zero", "of at least 0") if or_zero else ("not above zero", "above 0")
        raise LengthError(f"a {what} is {fault}", expected=f"a finite time {least}", found=shown(text))
    return seconds


def seconds_of(span: float | str, what: str | None = None) -> float:
    """Return the seconds of a number, or of a text such as ``168h`` or ``168:00:00``.

    Args:
        what: the name of the length in messages.

    Raises:
        ValueError: if the text is not a length of time.
    """
    if not isinstance(span, str):
        return float(span)
    clock = _CLOCK.fullmatch(span.strip())
    if clock is not None:
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    try:
        return parse_seconds(span, or_zero=True)  # a decay-time of 0h means none
    except LengthError as error:
        wanted = error.expected if what is None else f"{error.expected}, for '{what}'"
        raise ValueError(f"expected {wanted}, found {error.found}") from None
