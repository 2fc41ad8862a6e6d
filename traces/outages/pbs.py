"""Read changes of node states from server logs of PBS Pro, OpenPBS and Torque."""

import io
import re
from typing import Final

from pipistrelle.traces.clusters.csv_rows import text_lines
from pipistrelle.traces.files import PathText, trace_name
from pipistrelle.traces.outages.log import OutageLog
from pipistrelle.traces.outages.rows import Row, american_time, assemble, clean_cause, malformed

_LINE: Final = re.compile(r"([0-9/]+ [0-9:.]+);([0-9A-Fa-f]+);([^;]*);([^;]*);([^;]*);(.*)")
_STATE: Final = re.compile(r"attributes set:\s*state\s*([-+=])\s*([\w,|+-]+)")
_WORD: Final = re.compile(r"\bnode (?:is )?(up|down)\b(?:[:,]?\s*(.*))?", re.IGNORECASE)
_BAD: Final = frozenset({"down", "offline", "unknown", "state-unknown", "stale", "maintenance", "unresolvable"})
#: beginning of a PBS server log
SIGN: Final = re.compile(rb"(?:\xef\xbb\xbf)?\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;[0-9A-Fa-f]+;")


def parse_pbs(stream: io.BufferedReader, path: PathText) -> OutageLog:
    """Parse the outages in a PBS server log.

    Records of kind ``node`` (upper or lower case) count if their text has ``attributes set: state = offline``, ``node
    down`` or ``node up``. Instead of ``=`` the text may have ``+`` or ``-``. Commas or bars separate several states. A
    node is down from its first bad state, which is the cause, until it has no bad state, or for ever. Local times are
    taken as UTC.
    """
    where = str(path)
    rows: list[Row] = []
    bad: dict[str, set[str]] = {}
    open_row: dict[str, Row] = {}
    first = last = 0.0
    for number, line in text_lines(stream):
        text = line.strip()
        if not text:
            continue
        found = _LINE.fullmatch(text)
        time = american_time(found[1]) if found else None
        if found is None or time is None:
            raise malformed(
                where, number, "the line is not a record", "MM/DD/YYYY HH:MM:SS;CODE;SERVER;KIND;NAME;TEXT", text
            )
        first, last = (first or time), max(last, time)
        if found[4].lower() != "node" or not found[5]:
            continue
        states = bad.setdefault(found[5], set())
        cause = _change(states, found[6])
        since = open_row.get(found[5])
        if since is not None and time < since.down:
            raise malformed(where, number, "the time is before that of an earlier line", "ascending times", found[1])
        if states and since is None:
            open_row[found[5]] = Row(number, found[5], time, float("inf"), clean_cause(cause))
        elif not states and since is not None:
            if time > since.down:
                since.up = time
                rows.append(since)
            del open_row[found[5]]
    rows += sorted(open_row.values(), key=lambda row: row.line)
    return assemble(
        rows,
        name=trace_name(path),
        source=where,
        format="PBS",
        absolute=True,
        watch_known=True,
        known=bad,
        span=(first, last),
    )


def _change(states: set[str], text: str) -> str:
    """Update a node's bad ``states`` from the text of a log record.

    Return the states that the text names.
    """
    if found := _STATE.search(text):
        named = {state for state in re.split(r"[,|+]", found[2]) if state in _BAD}
        if found[1] == "=":
            states.clear()
        if found[1] == "-":
            states -= named
        else:
            states |= named
        return found[2]
    if found := _WORD.search(text):
        if found[1].lower() == "up":
            states.discard("down")
            return "up"
        states.add("down")
        return found[2] or "down"
    return text
