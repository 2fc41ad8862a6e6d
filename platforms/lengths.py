"""Lengths of time as users write them: ``24h``, ``90 s``, ``1.5e3``."""

import math
import re
from typing import Final

from pipistrelle.platforms.errors import OutageError, shown

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


def parse_seconds(text: str, what: str = "length of time") -> float:
    """Return a length of time in seconds: a number and one of `UNITS`, seconds if there is none.

    Raises
    ------
    OutageError
        if it is none, or not above 0.
    """
    found = QUANTITY.fullmatch(text.strip())
    if found is None:
        raise OutageError(f"a {what} cannot be read", expected="a number and a unit, as 24h", found=shown(text))
    number, unit = found.groups()
    if unit and unit not in UNITS:
        known = list(UNITS)
        raise OutageError(f"a {what} has an unknown unit", expected=f"one of {', '.join(known)}", found=shown(unit))
    seconds = float(number) * UNITS[unit or "s"]
    if not seconds > 0 or not math.isfinite(seconds):
        raise OutageError(f"a {what} is not above zero", expected="a finite time above 0", found=shown(text))
    return seconds
