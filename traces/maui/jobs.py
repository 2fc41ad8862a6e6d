"""Maui's workload traces: 44 fields a line, separated by blanks.

The format: Maui Administrator's Guide, section 16.3.1, "Workload Trace Format" (trace version 310).
"""

import io
import re
from typing import Final

from pipistrelle.traces.errors import TraceError, shown
from pipistrelle.traces.files import PathText
from pipistrelle.traces.logs.job_table import (
    CANCELLED,
    COMPLETED,
    FAILED,
    UNKNOWN,
    LogOptions,
    Names,
    Record,
    assemble,
    fault,
    numbered_lines,
    whole_number,
)
from pipistrelle.traces.logs.signs import is_remark
from pipistrelle.traces.workload import Workload

FORMAT: Final = "Maui workload trace"
#: number of fields of a line
WIDTH: Final = 44
#: what stands for nothing
NONE: Final = "[NONE]"
#: {the word of field 7: SWF's number}; all others are failures
STATES: Final = {"Completed": COMPLETED, "Removed": CANCELLED, "NotRun": FAILED}

#: {field: its name in messages}, counted from 1, for those that are read
FIELDS: Final = {
    1: "JobID",
    2: "Nodes Requested",
    3: "Tasks Requested",
    4: "User Name",
    5: "Group Name",
    6: "Wallclock Limit",
    7: "Job Completion State",
    8: "Required Class",
    9: "Submission Time",
    10: "Dispatch Time",
    11: "Start Time",
    12: "Completion Time",
    22: "Tasks Allocated",
    23: "Required Tasks Per Node",
    24: "QOS",
    26: "Account Name",
    32: "Dedicated Processors per Task",
}
#: a class in the list of those that a job asks for: ``[batch:1]``
CLASS: Final = re.compile(r"\[([^\]:]*)(?::[^\]]*)?\]")


def parse_maui(stream: io.BufferedReader, path: PathText, options: LogOptions | None = None) -> Workload:
    """Return the jobs of a workload trace, by submit time; `path` serves for the name and for messages.

    Times are Unix times, so no time zone is needed. The run time is Completion Time - Start Time; a job that was not
    run has none. The class is the queue. A Wallclock Limit of -1 is no limit.

    Parameters
    ----------
    options
        units: nodes are Nodes Requested, or as many as the tasks need; processors are the tasks times Dedicated
        Processors per Task. timezone: of the machine, for those who look at hours of the day.

    Raises
    ------
    TraceError
        if a line has not 44 fields, a field cannot be read, an id occurs twice, or there is no job.
    """
    options = options or LogOptions()
    options.zone()
    where = str(path)
    names = Names()
    records = []
    for place, text in numbered_lines(stream, where):
        if is_remark(text):
            continue
        fields = text.split()
        if len(fields) != WIDTH:
            raise TraceError(
                "too few fields" if len(fields) < WIDTH else "too many fields",
                where=place,
                expected=f"{WIDTH} fields of a Maui workload trace",
                found=f"{len(fields)}, from {shown(fields[0])} to {shown(fields[-1])}",
                hint="Check that the file is complete.",
            )
        records.append(_record(fields, options, place, names))
    return assemble(records, path, format=FORMAT, timezone=options.timezone)


def _record(fields: list[str], options: LogOptions, place: str, names: Names) -> Record:
    def number(index: int) -> int:
        """Return a whole number; what is missing or negative is -1."""
        text = fields[index - 1]
        if text == NONE or text.startswith("-"):
            return -1
        return whole_number(text, place, f"{index} ({FIELDS[index]})")

    submit, start, end = number(9), number(11), number(12)
    if submit < 0:
        raise fault(place, f"9 ({FIELDS[9]})", "is no time", "seconds since 1970", fields[8])
    ran = start > 0 and end > 0 and fields[6] != "NotRun"
    if ran and end < start:
        raise fault(place, f"12 ({FIELDS[12]})", "is before the start", f"at least {start}", fields[11])
    limit = number(6)
    labels = {
        "name": _text(fields[26]),
        "user": _text(fields[3]),
        "group": _text(fields[4]),
        "account": _text(fields[25]),
        "queue": ",".join(CLASS.findall(_text(fields[7]))) or _text(fields[7]),
        "qos": _qos(fields[23]),
        "state": fields[6],
    }
    return Record(
        place=place,
        id=fields[0],
        submit=float(submit),
        size=_size(number(2), number(3), number(23), number(32), options),
        walltime=float("inf") if limit < 0 else float(limit),
        runtime=float(end - start) if ran else -1.0,
        wait=float(max(start - submit, 0)) if ran else -1.0,
        allocated=_size(-1, number(22), number(23), number(32), options) if ran and number(22) > 0 else -1,
        status=STATES.get(fields[6], FAILED) if fields[6] != NONE else UNKNOWN,
        labels={label: names(text) for label, text in labels.items() if text},
    )


def _size(nodes: int, tasks: int, tasks_per_node: int, processors: int, options: LogOptions) -> int:
    if options.units == "processors":
        return max(tasks, nodes, 1) * max(processors, 1)
    if nodes > 0:
        return nodes
    return -(-max(tasks, 1) // tasks_per_node) if tasks_per_node > 0 else max(tasks, 1)


def _qos(text: str) -> str:
    """Return what was delivered of ``requested:delivered``, else what was requested."""
    requested, _, delivered = text.partition(":")
    return _text(delivered) or _text(requested)


def _text(text: str) -> str:
    return "" if text in (NONE, "-", "NONE") else text
