"""Lengths of time as the files of schedulers have them."""

import re
from typing import Final

from pipistrelle.platforms.failure_text import parse_seconds
from pipistrelle.protocol.errors import PipistrelleError

_CLOCK: Final = re.compile(r"([0-9]{1,9}):([0-5][0-9])(?::([0-5][0-9]))?")


def seconds_of(span: float | str) -> float:
    """Return a length of time in seconds: a number of them, ``168h``, ``15d``, or hours as PBS has them, ``168:00:00``.

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
        return parse_seconds(span)
    except PipistrelleError as error:
        raise ValueError(f"expected {error.expected}, found {error.found}") from None
