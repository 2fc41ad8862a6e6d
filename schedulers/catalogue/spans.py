"""Lengths of time as the files of schedulers have them."""

import re
from typing import Final

from pipistrelle.platforms.lengths import QUANTITY, UNITS, parse_seconds
from pipistrelle.protocol.base.errors import PipistrelleError

_CLOCK: Final = re.compile(r"([0-9]{1,9}):([0-5][0-9])(?::([0-5][0-9]))?")


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
    zero = QUANTITY.fullmatch(span.strip())  # no length, but what stands for none of it, as a decay-time of 0h
    if zero is not None and float(zero[1]) == 0.0 and (not zero[2] or zero[2] in UNITS):
        return 0.0
    try:
        return parse_seconds(span)
    except PipistrelleError as error:
        wanted = error.expected if what is None else f"{error.expected}, for '{what}'"
        raise ValueError(f"expected {wanted}, found {error.found}") from None
