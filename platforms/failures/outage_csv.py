"""Outages as CSV text: equal outages give equal bytes."""

import math
from collections.abc import Iterator
from typing import Final

from pipistrelle.platforms.failures.outage import Outages

#: the columns; the last is there only if an outage is announced
COLUMNS: Final = ("node", "down", "up", "cause", "announced")
_BLOCK: Final = 4096


def csv_chunks(outages: Outages) -> Iterator[bytes]:
    """Yield the file's bytes: a header, then a row an outage, in order; times in seconds after time 0.

    A double is written in the fewest digits that read as the same double, a whole one without a point. The file reads
    as the same outages.
    """
    announced = any(row.announced is not None for row in outages)
    lines = [",".join(COLUMNS if announced else COLUMNS[:-1])]
    for row in outages:
        cells = [str(row.node), seconds_text(row.down), seconds_text(row.up), _quoted(row.cause)]
        if announced:
            cells.append("" if row.announced is None else seconds_text(row.announced))
        lines.append(",".join(cells))
        if len(lines) == _BLOCK:
            yield "".join(f"{line}\n" for line in lines).encode()
            lines = []
    yield "".join(f"{line}\n" for line in lines).encode()


def seconds_text(seconds: float) -> str:
    """Return a time as the shortest text that reads as the same double; "inf" for never."""
    if math.isfinite(seconds) and seconds == int(seconds) and abs(seconds) < 1e15:
        return str(int(seconds))
    return repr(seconds)


def _quoted(text: str) -> str:
    """Return a cell; a cause has no line breaks, so that only commas and quotes need care."""
    if "," not in text and '"' not in text:
        return text
    return '"' + text.replace('"', '""') + '"'
