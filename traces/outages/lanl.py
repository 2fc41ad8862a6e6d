"""Read LANL's table of node failures, LA-UR-05-7318: 23 systems, 1995 to 2005.

The columns are explained in B. Schroeder and G. Gibson, "A Large-Scale Study of Failures in High-Performance Computing
Systems", 2006, which uses this table.
"""

import io
import re
from collections import Counter
from typing import Final

from pipistrelle.traces.clusters.csv_rows import Cells, CsvLines
from pipistrelle.traces.files import PathText, trace_name
from pipistrelle.traces.outages.log import OutageLog
from pipistrelle.traces.outages.rows import OUTAGE_HINT, Row, american_time, assemble, clean_cause, natural, unix_time

_CAUSES: Final = ("Facilities", "Hardware", "Human Error", "Network", "Undetermined", "Software")
_NEEDED: Final = ("System", "nodes", "nodenumz", "node prod", "node decom", "Prob Started", "Prob Fixed", *_CAUSES)
#: columns that identify this table
SIGNS: Final = ("System", "nodenumz", "Prob Started")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_YEAR_FIRST: Final = re.compile(rf"(\d{{1,2}})-({'|'.join(_MONTHS)})")  # "5-Apr" means April 2005
_YEAR_LAST: Final = re.compile(rf"({'|'.join(_MONTHS)})-(\d\d)")
_MOST_NODES: Final = 1_000_000
_MINUTE: Final = 60.0  # the resolution of the table


def parse_lanl(stream: io.BufferedReader, path: PathText) -> OutageLog:
    """Parse LANL's table of failures.

    A node is called SYSTEM/NUMBER, with the number in nodenumz, which counts from 0. A system without node numbers is
    one node. Each system is a class of nodes. If the column `nodes` gives more nodes than failed, the other nodes have
    no
    failures and get the lowest unused numbers. A node is watched from its production month, or its first failure if
    that is
    earlier, to the end of its decommissioning month. Without such a month it is watched to the last repair in the
    table. A
    failure fixed in the minute in which it begins lasts one minute. Local times are taken as UTC.
    """
    where = str(path)
    rows: list[Row] = []
    systems: dict[str, _System] = {}
    for cells in CsvLines(stream, where, _NEEDED, "the columns of LA-UR-05-7318", OUTAGE_HINT):
        row = _row(cells)
        rows.append(row)
        systems.setdefault(cells["System"], _System()).add(cells, row)
    last = max((row.up for row in rows), default=0.0)
    spans = {node: span for number, system in systems.items() for node, span in system.spans(number, last).items()}
    return assemble(
        rows,
        name=trace_name(path).removesuffix(".csv"),
        source=where,
        format="LANL",
        absolute=True,
        watch_known=True,
        known=spans,
        class_of=lambda node: node.partition("/")[0],
        spans=spans,
    )


class _System:
    """One system of LANL's table: when each of its nodes was watched."""

    def __init__(self) -> None:
        #: {node number: (first, last) time of its watch; None: the last repair in the table}
        self._watch: dict[str, tuple[float, float | None]] = {}
        self._sizes: Counter[int] = Counter()
        self._spans: Counter[tuple[float | None, float | None]] = Counter()

    def add(self, cells: Cells, row: Row) -> None:
        begin = _month(cells, "node prod", end=False)
        end = _month(cells, "node decom", end=True)
        self._spans[begin, end] += 1
        if cells["nodes"]:
            self._sizes[_whole(cells, "nodes")] += 1
        number = row.node.partition("/")[2]
        first, last = self._watch.get(number, (row.down, end))
        self._watch[number] = (
            min(first, row.down, row.down if begin is None else begin),
            None if end is None or last is None else max(end, last, row.up),
        )

    def spans(self, name: str, last: float) -> dict[str, tuple[float, float]]:
        """Return {node: (start, end) of its watch}, including nodes that never failed."""
        first = min(begin for begin, _ in self._watch.values())
        begin, end = self._spans.most_common(1)[0][0]
        rest = (first if begin is None else max(first, begin), end)
        size = self._sizes.most_common(1)[0][0] if self._sizes else len(self._watch)
        numbers = (str(number) for number in range(max(size, 1) + len(self._watch)))
        silent = [number for number in numbers if number not in self._watch][: max(0, size - len(self._watch))]
        watch = self._watch | dict.fromkeys(silent, rest)
        return {
            f"{name}/{number}": (start, last if stop is None else min(stop, last))
            for number, (start, stop) in sorted(watch.items(), key=lambda item: natural(item[0]))
        }


def _row(cells: Cells) -> Row:
    _whole(cells, "System")
    number = _whole(cells, "nodenumz") if cells["nodenumz"] else 0
    times = []
    for column in ("Prob Started", "Prob Fixed"):
        time = american_time(cells[column])
        if time is None:
            raise cells.fault(f"the time '{column}' cannot be read", "M/D/YYYY H:MM", column)
        times.append(time)
    down, up = times
    if up < down:
        raise cells.fault("the failure is fixed before it began", "Prob Fixed after Prob Started", "Prob Fixed")
    up = max(up, down + _MINUTE)
    said = [f"{kind}: {cells[kind]}" if cells[kind] != kind else kind for kind in _CAUSES if cells[kind]]
    return Row(cells.line, f"{cells['System']}/{number}", down, up, clean_cause("; ".join(said) or "not given"))


def _whole(cells: Cells, column: str) -> int:
    text = cells[column]
    if not (text.isascii() and text.isdigit()) or len(text) > 7 or int(text) > _MOST_NODES:
        raise cells.fault(f"'{column}' is no number", f"a whole number up to {_MOST_NODES:,}", column)
    return int(text)


def _month(cells: Cells, column: str, *, end: bool) -> float | None:
    """Return the start or the end of a month; None if the cell has no month."""
    text = cells[column]
    if text in ("", "current", "before tracking"):
        return None
    if found := _YEAR_FIRST.fullmatch(text):
        year, month = 2000 + int(found[1]), _MONTHS.index(found[2])
    elif found := _YEAR_LAST.fullmatch(text):
        short = int(found[2])
        year, month = (1900 if short >= 70 else 2000) + short, _MONTHS.index(found[1])
    else:
        raise cells.fault("a month cannot be read", "Nov-96, 5-Apr or 'current'", column)
    month += end
    return unix_time(year + month // 12, month % 12 + 1, 1)
