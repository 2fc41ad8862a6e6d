"""Read down nodes from Slurm's ``sacctmgr show event`` and ``scontrol show node``."""

import io
import re
from collections.abc import Iterator
from typing import Final

from pipistrelle.traces.clusters.csv_rows import Cells, require_columns, text_lines
from pipistrelle.traces.files import PathText, trace_name
from pipistrelle.traces.outages.log import OutageLog
from pipistrelle.traces.outages.rows import OUTAGE_HINT, Row, assemble, clean_cause, iso_time, malformed

#: the required columns, whose names sacctmgr may cut to the column width
_NEEDED: Final = ("NodeName", "TimeStart", "TimeEnd", "State")
_OPEN: Final = ("Unknown", "None", "")  # TimeEnd of an event that has not ended
#: states in which a node starts no jobs
_BAD: Final = re.compile(r"\b(DOWN|DRAIN|DRAINED|DRAINING|FAIL|FAILING|ERROR|NO_RESPOND|NOT_RESPONDING|MAINT)\b")
_SET: Final = re.compile(r"(.*?)\s*\[([^\[\]@]*)@([0-9T:-]+)\]")
_KEY: Final = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z_]*)=")


def parse_sacctmgr(stream: io.BufferedReader, path: PathText) -> OutageLog:
    """Parse the output of ``sacctmgr show event``, with or without ``-P`` or ``-p``.

    The columns NodeName, TimeStart, TimeEnd and State are required; Reason is the cause. Rows without a node concern
    the cluster and are left out. An event without an end never ends. Local times are taken as UTC.
    """
    where = str(path)
    lines = _numbered(stream)
    first, header = next(lines, (1, ""))
    if "|" in header:
        columns = [name.strip() for name in header.rstrip("|").split("|")]
        cells = ((line, [cell.strip() for cell in text.split("|")]) for line, text in lines)
    else:
        _, rule = next(lines, (first + 1, ""))
        spans = [found.span() for found in re.finditer("-+", rule)]
        if not spans or set(rule) - {"-", " "}:
            raise malformed(where, first + 1, "the table has no line of dashes", "sacctmgr's own table, or -P", rule)
        columns = [header[begin:end].strip() for begin, end in spans]
        cells = ((line, [text[begin:end].strip() for begin, end in spans]) for line, text in lines)
    expected = f"the columns {', '.join(_NEEDED)}, and perhaps Reason"
    require_columns(_NEEDED, columns, f"{where}, line {first}", expected, header)
    rows = []
    clusters = 0
    for line, values in cells:
        if len(values) not in (len(columns), len(columns) + 1):
            raise malformed(
                where, line, "the row has another number of cells than the header", f"{len(columns)}", str(len(values))
            )
        row = Cells(columns, values, where, line, OUTAGE_HINT)
        if not row["NodeName"]:
            clusters += 1
            continue
        rows.append(_event(row))
    notes = (f"{clusters:,} events of the cluster itself are left out",) if clusters else ()
    return assemble(rows, name=trace_name(path), source=where, format="Slurm", absolute=True, notes=notes)


def parse_scontrol(stream: io.BufferedReader, path: PathText) -> OutageLog:
    """Parse the nodes that are down in ``scontrol show node``, with or without ``-o``.

    A node is down if its State says so. The outage begins at the time in brackets in Reason and never ends.
    """
    where = str(path)
    records: list[tuple[int, dict[str, str]]] = []
    for line, text in _numbered(stream):
        found = list(_KEY.finditer(text))
        for at, key in enumerate(found):
            end = found[at + 1].start() if at + 1 < len(found) else len(text)
            if key[1] == "NodeName":
                records.append((line, {}))
            if not records:
                raise malformed(where, line, "there is a value before the first node", "NodeName=", text)
            records[-1][1].setdefault(key[1], text[key.end() : end].strip())
    rows = []
    for line, values in records:
        if not _BAD.search(values.get("State", "")):
            continue
        reason = values.get("Reason", "")
        said = _SET.fullmatch(reason)
        since = iso_time(said[3]) if said else None
        if said is None or since is None:
            expected = "Reason=... [user@YYYY-MM-DDTHH:MM:SS]"
            raise malformed(where, line, "the node is down without a start time", expected, reason)
        rows.append(Row(line, values["NodeName"], since, float("inf"), clean_cause(said[1] or values["State"])))
    known = [values["NodeName"] for _, values in records]
    return assemble(rows, name=trace_name(path), source=where, format="Slurm", absolute=True, known=known)


def _event(row: Cells) -> Row:
    down = iso_time(row["TimeStart"])
    up = float("inf") if row["TimeEnd"] in _OPEN else iso_time(row["TimeEnd"])
    for column, value in (("TimeStart", down), ("TimeEnd", up)):
        if value is None:
            raise row.fault(f"{column} cannot be read", "YYYY-MM-DDTHH:MM:SS", column)
    if down is None or up is None or up < down:
        raise row.fault("the event ends before it begins", "TimeEnd after TimeStart", "TimeEnd")
    state = clean_cause(row["State"])
    reason = clean_cause(row.get("Reason") or state)
    return Row(row.line, row["NodeName"], down, max(up, down + 1.0), reason)  # Slurm's times are whole seconds


def _numbered(stream: io.BufferedReader) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank.

    Each is given as (line number from 1, text without line end).
    """
    return ((number, text.rstrip("\r\n")) for number, text in text_lines(stream) if text.strip())
