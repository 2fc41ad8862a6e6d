"""Read outages in CSV: ``node,down,up,cause`` and optionally ``announced``."""

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.traces.clusters.csv_rows import Cells, CsvLines, require_columns
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import PathText, trace_name
from pipistrelle.traces.outages.log import OutageLog
from pipistrelle.traces.outages.rows import OUTAGE_HINT, Row, assemble, iso_time, names_of, seconds

COLUMNS: Final = ("node", "down", "up", "cause", "announced")
#: further columns in a run's own file of outages
_OF_RUNS: Final = ("planned", "ended")
_NEEDED: Final = ("node", "down", "up")
_MOST_NODES: Final = 10_000_000
_WATCH: Final = re.compile(rb"# nodes: ([0-9]{1,8}), end: ([0-9.e+]{1,30}) s\s*")
_NEVER: Final = ("", "inf", "never")


def parse_outage_csv(stream: io.BufferedReader, path: PathText) -> OutageLog:
    """Parse the outages of a CSV file with a header.

    A node is a number or a name. Several nodes, such as ``0-3 8`` or ``n[001-016],login``, have one outage each. Times
    are seconds after time 0, or all of them are dates such as ``2017-01-29 08:00``. If `up` is empty, the outage never
    ends. Lines with ``#`` before the header are comments. The reader ignores them, except for the one that `watch_line`
    writes.
    """
    reader = _Reader(str(path))
    rows = list(reader.rows(stream))
    name = trace_name(path).removesuffix(".csv")
    log = assemble(rows, name=name, source=str(path), format="CSV", absolute=bool(reader.dates))
    return replace(log, told=reader.told)


def watch_line(nodes: int, end: float) -> bytes:
    """Return a CSV comment with the number of nodes and the end of the watch (s)."""
    return f"# nodes: {nodes}, end: {end!r} s\n".encode()


class _Reader:
    def __init__(self, where: str) -> None:
        self._where = where
        #: whether times are dates; None until a time has been read
        self.dates: bool | None = None
        #: see `OutageLog.told`
        self.told: tuple[int, float] | None = None

    def _table(self, stream: io.BufferedReader) -> Iterator[bytes]:
        """Yield the file's lines, with comments before the header replaced by empty lines."""
        begun = False
        for line in stream:
            begun = begun or (bool(line.strip()) and not line.startswith(b"#"))
            if (found := None if begun else _WATCH.fullmatch(line)) is not None:
                with suppress(ValueError):
                    self.told = int(found[1]), float(found[2])
            yield line if begun else b"\n"

    def rows(self, stream: io.BufferedReader) -> Iterator[Row]:
        lines = CsvLines(self._table(stream), self._where, hint=OUTAGE_HINT)
        self._check_header(lines.columns)
        for cells in lines:
            down = self._time(cells, "down")
            up = float("inf") if cells["up"].lower() in _NEVER else self._time(cells, "up")
            if not up > down:
                raise cells.fault("the outage ends no later than it begins", "up later than down", "up")
            announced = self._time(cells, "announced") if cells.get("announced") else float("nan")
            if announced > down:
                raise cells.fault("the outage is announced after it begins", "announced up to down", "announced")
            for node in _nodes(cells):
                yield Row(cells.line, node, down, up, _cause(cells), announced)

    def _check_header(self, columns: list[str]) -> None:
        for column in columns:
            if column not in (*COLUMNS, *_OF_RUNS):
                raise TraceError(
                    f"unknown column {quoted(column)}",
                    where=f"{self._where}, line 1",
                    hint=did_you_mean(column, list(COLUMNS)),
                )
        place, form = f"{self._where}, line 1", "the header node,down,up,cause, perhaps with announced"
        header = ",".join(columns)
        require_columns(_NEEDED, columns, place, form, header)
        if len(set(columns)) < len(columns):
            raise TraceError("a column occurs twice", where=place, expected=form, found=quoted(header))

    def _time(self, cells: Cells, column: str) -> float:
        date = iso_time(cells[column])
        value = seconds(cells[column]) if date is None else date
        if value is None:
            expected = "seconds of at least 0, or a date such as 2017-01-29 08:00"
            raise cells.fault(f"the time '{column}' cannot be read", expected, column)
        if self.dates is None:
            self.dates = date is not None
        if self.dates != (date is not None):
            raise cells.fault("times are mixed", "seconds in all rows, or dates in all rows", column)
        return value


def _nodes(cells: Cells) -> list[str]:
    text = cells["node"]
    if not text:
        raise cells.fault("the row has no node", "a number or a name, or several, such as 0-3 8 or n[001-016]", "node")
    if not text.isprintable():
        raise cells.fault("the node's name is not printable", "a number or a name", "node")
    if "[" in text or "," in text:
        names = names_of(text, _MOST_NODES)
        if names is None:
            expected = f"names such as n[001-016],login, each range from low to high, at most {_MOST_NODES:,} nodes"
            raise cells.fault("the names of nodes cannot be read", expected, "node")
        return names
    if not all(c.isdigit() or c in "- " for c in text):
        return [text]
    try:
        nodes = NodeSet.parse(text)
    except NodeSetError as error:
        raise cells.fault("the nodes cannot be read", "numbers such as 0-3 8", error.what) from None
    if len(nodes) > _MOST_NODES:
        raise cells.fault("there are too many nodes", f"at most {_MOST_NODES:,}", "node")
    return [str(node) for node in nodes]


def _cause(cells: Cells) -> str:
    text = cells.get("cause", "")
    if len(text) > 200 or not text.isprintable():
        raise cells.fault("the cause is not valid", "at most 200 printable characters", "cause")
    return text or "failure"
