"""Writing a workload as a Maui workload trace, as Maui's simulator reads it."""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from pipistrelle.traces.logs.labels import state_column, written_labels
from pipistrelle.traces.logs.signs import is_remark
from pipistrelle.traces.maui.jobs import CLASS, NONE, WIDTH
from pipistrelle.traces.runnable import require_ids, require_runtimes
from pipistrelle.traces.workload import Workload

_BLOCK: Final = 4096
_REMOVED: Final = frozenset(("CANCELLED", "REMOVED"))
_TOLD: Final = _REMOVED | {"COMPLETED"}
#: {label: the signs that divide its field}
_SIGNS: Final = {"queue": re.compile(r"[\[\]:]"), "qos": re.compile(":")}
_LEAST: Final = 1  # Unix time: 0 is Maui's word for no time


def maui_chunks(workload: Workload) -> Iterator[bytes]:
    """Return the workload as a trace of 44 fields a line, in pieces; errors come at once, before the first piece.

    Times are rounded to whole seconds. A job that was not run has the state NotRun; one whose wait is not known starts
    when it is submitted. A job without limit has the Wallclock Limit -1. Sizes are nodes, with one task each. Blanks in
    names become underscores, and so do colons in queues and QOS; the format has no place for dependencies.

    Raises
    ------
    TraceError
        if the workload has no jobs, only its hosts can tell how long a job takes, or an id has blanks in it.
    """
    require_runtimes(workload, "Maui's workload trace")
    require_ids(workload, "Maui's workload trace", _has_no_blank, "a word that does not begin with '#'")
    return _chunks(workload)


def loses_states(workload: Workload) -> bool:
    """Tell whether a job that ran ended otherwise than by completing or being removed."""
    texts = state_column(workload)
    if texts is None:
        return False
    ran = (workload.runtime >= 0).tolist()
    return any(did and text and text.upper() not in _TOLD for text, did in zip(texts, ran, strict=True))


def _chunks(workload: Workload) -> Iterator[bytes]:
    # A trace without an epoch begins at 1 s, so that no time of it is Maui's 0.
    epoch = workload.epoch if workload.epoch is not None and workload.epoch >= _LEAST else float(_LEAST)
    labels = written_labels(workload)
    names = {
        label: _texts(labels, label, len(workload)) for label in ("name", "user", "group", "account", "queue", "qos")
    }
    states = labels.get("state") or [""] * len(workload)
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
            fields[20:23] = [str(submit), str(size), "-1"]
            fields[23], fields[25], fields[26] = names["qos"][row], names["account"][row], names["name"][row]
            fields[28:30] = ["-1", str(size * max(end - start, 0))]
            fields[31:35] = ["1", "0", "0", "0"]
            fields[35:37] = ["0", "0"]
            lines.append(" ".join(fields) + "\n")
        yield "".join(lines).encode()


def _texts(labels: dict[str, list[str]], label: str, count: int) -> list[str]:
    """Return a label's texts as fields: one word each, which has none of the format's own signs where those divide."""
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
