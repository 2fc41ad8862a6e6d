"""Code that all outage readers share: parse times, and build a log from rows."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from pipistrelle.traces.errors import TraceError, line_fault
from pipistrelle.traces.logs.times import Clock
from pipistrelle.traces.outages.log import Lives, OutageLog
from pipistrelle.traces.workload import is_number

_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_LATEST: Final = 1e18
_RANGE: Final = re.compile("([0-9]{1,15})(?:-([0-9]{1,15}))?")

#: what to do about a row that cannot be read
OUTAGE_HINT: Final = "Correct or remove the line; 'pipistrelle help outages' has the formats."


def iso_time(text: str) -> float | None:
    """Return the Unix time (s) of a UTC date such as "2017-01-29 08:00", or None.

    None means that the text has another form.
    """
    return Clock(UTC).date(text)


def american_time(text: str) -> float | None:
    """Return the Unix time (s) of a UTC date such as "1/29/2017 8:00", or None.

    None means that the text has another form.
    """
    return Clock(UTC).american(text)


def seconds(text: str) -> float | None:
    """Parse a number of seconds of at least 0; return None if the text is not one."""
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) and value <= _LATEST else None


def unix_time(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> float:
    """Return the Unix time of a UTC date; ValueError if there is no such date."""
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()


@dataclass(slots=True)
class Row:
    """An outage in a file.

    `group` is its class of nodes; None means the class of the outage's node.
    """

    line: int
    node: str
    down: float
    up: float
    cause: str
    announced: float = float("nan")
    group: str | None = None


def assemble(
    rows: list[Row],
    *,
    name: str,
    source: str,
    format: str,
    absolute: bool,
    known: Iterable[str] = (),
    span: tuple[float, float] | None = None,
    class_of: Callable[[str], str] | None = None,
    spans: Mapping[str, tuple[float, float]] | None = None,
    watch_known: bool = False,
    lives: Lives | None = None,
    classes: tuple[str, ...] | None = None,
    notes: Iterable[str] = (),
) -> OutageLog:
    """Build the log of outages from its rows.

    Args:
        known: names of further nodes, which need not have outages.
        span: start and end of the watch of all nodes (s).
        spans: {node: start and end of its watch (s)}. Without `span` and `spans`, the watch is from time 0, or from
            the first outage if `absolute`, to the last time in the rows.
        class_of: a function that returns the class of a node; None: all are of one class.
        classes: all classes in order; None: those of the nodes, in natural order.
    """
    names = sorted({*known, *(row.node for row in rows)}, key=natural)
    index = {node: at for at, node in enumerate(names)}
    groups = [class_of(node) if class_of else "all" for node in names]
    ordered = classes or tuple(sorted(set(groups), key=natural)) or ("all",)
    number = {group: at for at, group in enumerate(ordered)}
    down = np.array([row.down for row in rows], dtype=np.float64)
    up = np.array([row.up for row in rows], dtype=np.float64)
    if span is None:
        last = max(float(down.max(initial=0.0)), float(up[np.isfinite(up)].max(initial=0.0)))
        span = (float(down.min(initial=last)) if absolute else 0.0, last)
    watch = np.array([(spans or {}).get(node, span) for node in names], dtype=np.float64).reshape(-1, 2)
    return OutageLog(
        name=name,
        source=source,
        format=format,
        nodes=tuple(names),
        classes=ordered,
        node_group=np.array([number.get(group, -1) for group in groups], dtype=np.int64),
        begin=watch[:, 0].copy(),
        end=watch[:, 1].copy(),
        node=np.array([index[row.node] for row in rows], dtype=np.int64),
        group=np.array([number[row.group or groups[index[row.node]]] for row in rows], dtype=np.int64),
        down=down,
        up=up,
        cause=tuple(row.cause for row in rows),
        announced=np.array([row.announced for row in rows], dtype=np.float64),
        line=np.array([row.line for row in rows], dtype=np.int64),
        absolute=absolute,
        watch_known=watch_known,
        lives=lives,
        notes=tuple(notes),
    )


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts "n2" before "n10"."""
    return tuple(
        (0, int(part), part) if is_number(part) else (1, 0, part) for part in re.split("([0-9]+)", text) if part
    )


def names_of(text: str, most: int) -> list[str] | None:
    """Return the names that a pattern such as "n[001-016,20],login" stands for.

    The last range varies fastest. The result is None for an invalid pattern, or one of more than ``most`` names.
    """
    names: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text):
        begun = [""]
        for place, piece in enumerate(re.split(r"\[([^\[\]]*)\]", part)):
            ends = _numbered(piece, most) if place % 2 else [piece]
            if not ends or len(begun) * len(ends) + len(names) > most or ("[" in piece or "]" in piece):
                return None
            begun = [first + then for first in begun for then in ends]
        if not begun[0].strip():
            return None
        names += [name.strip() for name in begun]
    return names


def _numbered(text: str, most: int) -> list[str]:
    """Return the numbers that a text such as "001-016,20" stands for.

    Leading zeros are kept. Return [] if the text is invalid or one of its ranges has more than ``most`` numbers.
    """
    numbers: list[str] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            return []
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first or last - first >= most:
            return []
        numbers += [f"{number:0{len(found[1])}}" for number in range(first, last + 1)]
    return numbers


def clean_cause(text: str) -> str:
    """Return the first 200 printable characters of a cause; "failure" if it has none."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words[:200].strip() or "failure"


def malformed(source: str, line: int, what: str, expected: str, found: object) -> TraceError:
    """Return the error for a row of an outage log that cannot be read."""
    return line_fault(f"{source}, line {line}", what, expected, found, OUTAGE_HINT)
