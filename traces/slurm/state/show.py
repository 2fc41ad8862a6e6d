"""Split the output of ``scontrol show`` into records.

They are jobs, nodes or reservations. A record is KEY=VALUE pairs on one line (``-o``), or on several lines that end
with a blank line.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pipistrelle.traces.slurm.state.tables import LiveRow

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
#: keys that follow free text in the form of one line
_AFTER_TEXT: Final = re.compile(r"\s(?:WorkDir|StdErr|StdIn|StdOut|Power|TresPer\w+|MailUser|AdminComment)=")
_DETAIL: Final = re.compile(r"Nodes=\S+ CPU_IDs=\S* Mem=\S*(?: GRES=\S*)?")
#: key of a job's line about some of its nodes (``scontrol -d``); its lines are kept under ``Nodes[]``
_NODES: Final = "Nodes"


def is_record(line: str) -> bool:
    """Return whether a line begins a record."""
    return _FIRST.match(line) is not None


def records_of(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, LiveRow]]:
    """Yield (kind, record) of each record; lines before the first record are ignored."""
    kind = place = ""
    cells: dict[str, str] = {}
    for where, line in lines:
        found = _FIRST.match(line)
        if found is not None:
            if kind:
                yield kind, LiveRow(place, cells)
            kind, place, cells = FIRST_KEYS[found[1]], where, {}
        if kind:
            _add(cells, line, kind)
    if kind:
        yield kind, LiveRow(place, cells)


def _add(cells: dict[str, str], line: str, kind: str) -> None:
    """Add the pairs of a line to ``cells``.

    If a key is repeated, its first value counts.
    """
    text = line.strip()
    single = kind == "job" and " JobState=" in text
    at = 0
    while (found := _KEY.search(text, at)) is not None:
        key, begin = found[1], found.end()
        detail = _DETAIL.match(text, found.start(1)) if kind == "job" and key == _NODES else None
        if detail is not None:
            cells[f"{_NODES}[]"] = f"{cells.get(f'{_NODES}[]', '')}{detail[0]}\n"
            at = detail.end()
            continue
        if key == "JobName":
            end = text.find(_AFTER_NAME, begin)
        elif key in _FREE and not (kind == "job" and key == "Reason"):
            following = _AFTER_TEXT.search(text, begin) if single else None
            end = -1 if following is None else following.start()
        else:
            following = _KEY.search(text, begin)
            end = -1 if following is None else following.start()
        end = len(text) if end < 0 else end
        cells.setdefault(key, text[begin:end].strip())
        at = end
