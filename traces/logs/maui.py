"""Read and write Maui's workload traces: 44 fields per line, separated by blanks.

The format: Maui Administrator's Guide, section 16.3.1, "Workload Trace Format" (trace version 310).
"""

import io
import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.clean import require_ids, require_runtimes
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.job_table import JobLog, LogOptions, Record, Status, fault, numbered_lines, whole_number
from pipistrelle.traces.logs.kinds import is_remark
from pipistrelle.traces.logs.labels import state_column, written_labels
from pipistrelle.traces.workload import CONSTRAINT, Workload

#: fields per line
WIDTH: Final = 44
#: an empty field
NONE: Final = "[NONE]"
#: {completion state in field 7: SWF's status}; all other states are failures
STATES: Final = {"Completed": Status.COMPLETED, "Removed": Status.CANCELLED, "NotRun": Status.FAILED}

#: {number of a field that is read, from 1: its name in messages}
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
    20: "Required Node Features",
    22: "Tasks Allocated",
    23: "Required Tasks Per Node",
    24: "QOS",
    26: "Account Name",
    32: "Dedicated Processors per Task",
}
#: matches a class in the list of requested classes: ``[batch:1]``
CLASS: Final = re.compile(r"\[([^\]:]*)(?::[^\]]*)?\]")


class MauiLog(JobLog):
    """Reader of a Maui workload trace.

    - Run time: Completion Time - Start Time; unknown for a job that did not run.
    - Requested time: Wallclock Limit; -1 means no limit.
    - Queue: the class. Constraint: the required node features.
    - Size, with the option ``units`` = ``nodes``: Nodes Requested, or as many nodes as the tasks need.
    - Size, with ``units`` = ``processors``: tasks x Dedicated Processors per Task.

    Times are Unix times. The option ``timezone`` only determines the hour of the day.
    """

    format = "Maui workload trace"

    def __init__(self, options: LogOptions | None = None) -> None:
        super().__init__(options)
        self._records: list[Record] = []

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read the lines of a file; raise TraceError if a line does not have 44 fields."""
        for place, text in numbered_lines(stream, where):
            if is_remark(text):
                continue
            fields = text.split()
            if len(fields) != WIDTH:
                raise TraceError(
                    "too few fields" if len(fields) < WIDTH else "too many fields",
                    where=place,
                    expected=f"{WIDTH} fields of a Maui workload trace",
                    found=f"{len(fields)}, from {quoted(fields[0])} to {quoted(fields[-1])}",
                    hint="Check that the file is complete.",
                )
            self._records.append(_record(fields, self.options, place, self.names))

    def records(self) -> list[Record]:
        """Return the job records of all files that were read."""
        return self._records


def _record(fields: list[str], options: LogOptions, place: str, names: Callable[[str], str]) -> Record:
    def number(index: int) -> int:
        """Return a whole number; -1 if it is missing or negative."""
        text = fields[index - 1]
        if text == NONE or text.startswith("-"):
            return -1
        return whole_number(text, place, f"{index} ({FIELDS[index]})")

    submit, start, end = number(9), number(11), number(12)
    if submit < 0:
        raise fault(place, f"9 ({FIELDS[9]})", "is not a time", "seconds since 1970", fields[8])
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
        CONSTRAINT: "&".join(dict.fromkeys(filter(None, CLASS.findall(_text(fields[19]))))),
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
        status=STATES.get(fields[6], Status.FAILED) if fields[6] != NONE else Status.UNKNOWN,
        labels={label: names(text) for label, text in labels.items() if text},
    )


def _size(nodes: int, tasks: int, tasks_per_node: int, processors: int, options: LogOptions) -> int:
    if options.units == "processors":
        return max(tasks, nodes, 1) * max(processors, 1)
    if nodes > 0:
        return nodes
    return -(-max(tasks, 1) // tasks_per_node) if tasks_per_node > 0 else max(tasks, 1)


def _qos(text: str) -> str:
    """Return the delivered QOS of ``requested:delivered``.

    If no QOS was delivered, return the requested one.
    """
    requested, _, delivered = text.partition(":")
    return _text(delivered) or _text(requested)


def _text(text: str) -> str:
    return "" if text in (NONE, "-", "NONE") else text


_BLOCK: Final = 4096
_REMOVED: Final = frozenset(("CANCELLED", "REMOVED"))
_TOLD: Final = _REMOVED | {"COMPLETED"}
#: matches a plain feature in a constraint
_FEATURE: Final = re.compile(r"[^\s&|()=,\[\]{}:*]+")
#: {label: characters that separate values within its field}
_SIGNS: Final = {"queue": re.compile(r"[\[\]:]"), "qos": re.compile(":")}
_LEAST: Final = 1  # Unix time; 0 means "no time" in Maui


def maui_chunks(workload: Workload) -> Iterator[bytes]:
    """Yield the workload as a Maui trace, in pieces.

    All errors are raised before the first piece. Times are rounded to whole seconds. A job of n units becomes a job of
    n nodes with one task each. A job that did not run gets the state NotRun; if its wait is unknown, it starts at
    submission. Blanks in names become underscores, as do colons in queues and QOS. Dependencies are lost.
    """
    require_runtimes(workload, "Maui's workload trace")
    require_ids(workload, "Maui's workload trace", _has_no_blank, "a word that does not begin with '#'")
    return _chunks(workload)


def loses_states(workload: Workload) -> bool:
    """Return whether a Maui trace would lose the state of a job.

    A trace has only two states of jobs that ran: completed and removed.
    """
    texts = state_column(workload)
    if texts is None:
        return False
    ran = (workload.runtime >= 0).tolist()
    return any(did and text and text.upper() not in _TOLD for text, did in zip(texts, ran, strict=True))


def loses_constraints(workload: Workload) -> bool:
    """Return whether a Maui trace would lose a constraint.

    A trace can only hold a constraint that is a list of required features.
    """
    return any(text and not _features(text) for text in set(workload.labels.get(CONSTRAINT, ())))


def _features(constraint: str) -> str:
    """Return a constraint as ``[a][b]``; "" if it is more than a list of features."""
    words = [word.strip() for word in constraint.split("&")]
    return "".join(f"[{word}]" for word in words) if all(map(_FEATURE.fullmatch, words)) else ""


def _chunks(workload: Workload) -> Iterator[bytes]:
    # without an epoch the trace begins at 1 s, because 0 means "no time" in Maui
    epoch = workload.epoch if workload.epoch is not None and workload.epoch >= _LEAST else float(_LEAST)
    labels = written_labels(workload)
    names = {
        label: _texts(labels, label, len(workload)) for label in ("name", "user", "group", "account", "queue", "qos")
    }
    states = labels.get("state") or [""] * len(workload)
    features = [_features(text) for text in labels.get(CONSTRAINT) or [""] * len(workload)]
    wait = workload.measures.get("wait", np.zeros(len(workload)))
    for begin in range(0, len(workload), _BLOCK):
        lines = []
        for row in range(begin, min(begin + _BLOCK, len(workload))):
            submit = round(epoch + float(workload.submit[row]))
            ran = float(workload.runtime[row]) >= 0
            start = submit + round(max(float(wait[row]), 0.0)) if ran else 0
            end = start + round(float(workload.runtime[row])) if ran else 0
            limit = float(workload.walltime[row])
            size = max(int(workload.size[row]), 0)
            fields = [NONE] * WIDTH
            fields[:12] = [
                workload.ids[row],
                str(size),
                str(size),
                names["user"][row],
                names["group"][row],
                "-1" if limit == float("inf") else str(max(round(limit), 0)),
                ("Removed" if states[row].upper() in _REMOVED else "Completed") if ran else "NotRun",
                NONE if names["queue"][row] == NONE else f"[{names['queue'][row]}:1]",
                str(submit),
                str(start),
                str(start),
                str(end),
            ]
            fields[15:19] = [">=", "0", ">=", "0"]
            fields[19] = features[row] or NONE
            fields[20:23] = [str(submit), str(size), "-1"]
            fields[23], fields[25], fields[26] = names["qos"][row], names["account"][row], names["name"][row]
            fields[28:30] = ["-1", str(size * max(end - start, 0))]
            fields[31:35] = ["1", "0", "0", "0"]
            fields[35:37] = ["0", "0"]
            lines.append(" ".join(fields) + "\n")
        yield "".join(lines).encode()


def _texts(labels: dict[str, list[str]], label: str, count: int) -> list[str]:
    """Return each job's text for a label as a field of a Maui trace.

    Such a field is one word without separators. ``count`` is the number of jobs.
    """
    if label not in labels:
        return [NONE] * count
    signs = _SIGNS.get(label)
    words: dict[str, str] = {}
    for text in set(labels[label]):
        plain = text
        if label == "queue":
            plain = ",".join(CLASS.findall(text)) or text
        if signs is not None:
            plain = signs.sub("_", plain)
        words[text] = "_".join(plain.split()) or NONE
    return [words[text] for text in labels[label]]


def _has_no_blank(job: str) -> bool:
    return bool(job) and len(job.split()) == 1 and not job.startswith("#") and not is_remark(f"{job} ")
