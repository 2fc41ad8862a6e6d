"""Names and times in a recording."""

import re
from typing import Final, NamedTuple

LOG: Final = "decisions.log.xz"
#: when a slurmctld with associations starts (s)
WITH_DATABASE: Final = 4.0
#: beginning of the names of files of associations and QOS
ACCOUNTING: Final = "accounting-"
#: the date of time 0 of a recording
ZERO: Final = "2026-01-05T00:00:00"
_TASK: Final = re.compile(r"(\d+)_(\d+)\(")
_NUMBER: Final = re.compile(r"\d+")


class JobStart(NamedTuple):
    """One start of a job or array task: its name, time (s) and nodes."""

    job: str
    time: float
    nodes: tuple[str, ...]


def label(text: str) -> str:
    """Shorten a job id of the log.

    ``34_0(38)`` becomes ``34_0``, ``34_*`` becomes ``34``, and ``34`` is unchanged.
    """
    if match := _TASK.match(text):
        return f"{match[1]}_{match[2]}"
    match = _NUMBER.match(text)
    return match[0] if match else text
