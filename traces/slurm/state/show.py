"""Split what ``scontrol show job``, ``show node`` and ``show reservation`` print into records.

A record is KEY=VALUE pairs on one line (``-o``), or on several up to a blank line.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pipistrelle.traces.slurm.state.tables import Row

_KEY: Final = re.compile(r"(?:^|\s)([A-Za-z][\w/:.]{0,40})=")
#: first key of each kind of record: the kind
FIRST_KEYS: Final = {
    "JobId": "job",
    "NodeName": "node",
    "ReservationName": "reservation",
    "PartitionName": "partition",
}
_FIRST: Final = re.compile(rf"\s*({'|'.join(FIRST_KEYS)})=")
#: keys whose value is free text and may contain blanks
_FREE: Final = frozenset(("JobName", "Comment", "Command", "WorkDir", "StdErr", "StdIn", "StdOut", "Reason", "OS"))
#: the key that follows the name of a job in the form of one line
_AFTER_NAME: Final = " UserId="
#: key of a job's line about some of its nodes (``scontrol -d``); its lines are kept under ``Nodes[]``
_NODES: Final = "Nodes"


def is_record(line: str) -> bool:
    """Return whether a line begins a record."""
    return _FIRST.match(line) is not None


def records_of(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Row]]:
    """Yield (kind, record) of each record; lines before the first one are ignored."""
    kind = place = ""
    cells: dict[str, str] = {}
    for where, line in lines:
        found = _FIRST.match(line)
        if found is not None:
            if kind:
                yield kind, Row(place, cells)
            kind, place, cells = FIRST_KEYS[found[1]], where, {}
        if kind:
            _add(cells, line, kind)
    if kind:
        yield kind, Row(place, cells)


def _add(cells: dict[str, str], line: str, kind: str) -> None:
    text = line.strip()
    if kind == "job" and text.startswith(f"{_NODES}="):
        cells[f"{_NODES}[]"] = f"{cells.get(f'{_NODES}[]', '')}{text}\n"
        return
    at = 0
    while (found := _KEY.search(text, at)) is not None:
        begin = found.end()
        if found[1] == "JobName":
            end = text.find(_AFTER_NAME, begin)
            end = len(text) if end < 0 else end
        elif found[1] in _FREE and not (kind == "job" and found[1] == "Reason"):
            end = len(text)
        else:
            following = _KEY.search(text, begin)
            end = len(text) if following is None else following.start()
        if found[1] == _NODES and kind == "job":
            cells[f"{_NODES}[]"] = f"{cells.get(f'{_NODES}[]', '')}{text[found.start() :].strip()}\n"
            return
        cells.setdefault(found[1], text[begin:end].strip())
        at = end
