"""Lengths of time as users write them: ``24h``, ``90 s``, ``1.5e3``; dates as they read them."""

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
#: a number, and what may be a unit
QUANTITY: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)")
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_THREE_DIGITS: Final = {unit: f"{{:.3g}} {unit}" for unit in ("y", "d", "h", "min", "s")}
_CLOCK: Final = re.compile(r"([0-9]{1,9}):([0-5][0-9])(?::([0-5][0-9]))?")


def date_text(seconds: float, zone: tzinfo = UTC) -> str | None:
    """Return a Unix time as a date to the minute, as ``1996-09-23 14:00``; None if no calendar has it."""
    try:
        return (_UNIX + timedelta(seconds=seconds)).astimezone(zone).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):  # before the year 1, beyond 9999, or no number
        return None


def length_text(seconds: float, forms: Mapping[str, str] = _THREE_DIGITS) -> str:
    """Return a length of time in the largest unit that it reaches, to three digits, as ``3.2 d``.

    ``forms`` are the units, from the largest, and how a number of each is printed; the last one takes what is shorter.
    """
    unit = next((unit for unit in forms if seconds >= UNITS[unit]), [*forms][-1])
    return forms[unit].format(seconds / UNITS[unit])


def two_units_text(seconds: float) -> str:
    """Return a length of time in its two largest units, as ``3 h 12 min``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    units = ("d", "h", "min", "s")
    unit, lesser = next(pair for pair in pairwise(units) if whole >= UNITS[pair[0]])
    count, rest = divmod(whole, round(UNITS[unit]))
    part = rest // round(UNITS[lesser])
    return f"{count} {unit} {part} {lesser}" if part else f"{count} {unit}"


class LengthError(PipistrelleError):
    """A text is no length of time."""


def parse_seconds(text: str, what: str = "length of time", *, or_zero: bool = False) -> float:
    """Return a length of time in seconds: a number and one of `UNITS`, seconds if there is none.

    ``or_zero`` lets 0 pass, in any unit.

    Raises
    ------
    LengthError
        if it is none, or not above 0; with `zero`, if it is below 0.
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
    """Return a length of time in seconds: a number of them, ``168h``, ``15d``, or hours as PBS has them, ``168:00:00``.

    ``what`` is what the length is called in messages.

    Raises
    ------
    ValueError
        when a text is none.
    """
    if not isinstance(span, str):
        return float(span)
    clock = _CLOCK.fullmatch(span.strip())
    if clock is not None:
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    try:
        return parse_seconds(span, or_zero=True)  # a decay-time of 0h stands for none
    except LengthError as error:
        wanted = error.expected if what is None else f"{error.expected}, for '{what}'"
        raise ValueError(f"expected {wanted}, found {error.found}") from None
