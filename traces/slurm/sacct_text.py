"""Write workloads as a table of Slurm's ``sacct --parsable2``."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.traces.clean import require_ids, require_runtimes
from pipistrelle.traces.logs.job_table import GOING_ON
from pipistrelle.traces.logs.labels import written_labels
from pipistrelle.traces.slurm.requests import tres_text
from pipistrelle.traces.slurm.sacct import LABEL_COLUMNS
from pipistrelle.traces.workload import Floats, Workload, decimal_text, decimal_texts

_BLOCK: Final = 4096
#: Slurm's states of ended jobs
_ENDED: Final = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
    )
)
_WORDS: Final = {"REMOVED": "CANCELLED"}


def sacct_chunks(workload: Workload) -> Iterator[bytes]:
    """Yield sacct's table in pieces; errors are raised before the first piece.

    Submit, Start and End are Unix times, as with SLURM_TIME_FORMAT=%s. Users, groups and queues of an SWF log are
    written as numbers, or as names if its header has them. Dependencies are written to a column Dependency, which sacct
    itself does not have. Bars in names become commas.
    """
    require_runtimes(workload, "Slurm's sacct")
    require_ids(workload, "Slurm's sacct", _is_job, "a text without points, bars and blanks")
    return _chunks(workload)


def _is_job(job: str) -> bool:
    return not any(sign in job for sign in ".| ") and job not in ("JobID", "JobIDRaw")


def _chunks(workload: Workload) -> Iterator[bytes]:
    labels = written_labels(workload)
    columns = {column: labels[label] for label, column in LABEL_COLUMNS.items() if label != "state" and label in labels}
    told = [] if workload.requests is None else ["ReqTRES", "SubmitLine"]
    header = ["JobID", *columns, "State", "Submit", "Start", "End", "ElapsedRaw", "Timelimit", "NNodes", *told]
    yield ("|".join(header) + "\n").encode()
    states = labels.get("state") or [""] * len(workload)
    epoch = workload.epoch or 0.0
    wait = workload.measures.get("wait")
    for begin in range(0, len(workload), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        runtime = workload.runtime[rows]
        started = (wait[rows] >= 0) & (runtime >= 0) if wait is not None else np.zeros(len(runtime), dtype=np.bool_)
        submit = epoch + workload.submit[rows]
        start = submit + (wait[rows] if wait is not None else 0.0)
        cells = [
            workload.ids[rows],
            *([text.replace("|", ",") for text in texts[rows]] for texts in columns.values()),
            [_state(text, seconds >= 0) for text, seconds in zip(states[rows], runtime.tolist(), strict=True)],
            decimal_texts(submit),
            _times(start, started),
            _times(start + runtime, started),
            ["" if seconds < 0 else decimal_text(seconds) for seconds in runtime.tolist()],
            [_limit(seconds) for seconds in workload.walltime[rows].tolist()],
            list(map(str, np.maximum(workload.size[rows], 0).tolist())),
        ]
        if workload.requests is not None:
            asked = [("", "") if one is None else tres_text(one) for one in workload.requests[rows]]
            cells += [[tres for tres, _ in asked], [line for _, line in asked]]
        yield "".join("|".join(row) + "\n" for row in zip(*cells, strict=True)).encode()


def _state(text: str, ran: bool) -> str:
    """Return a job's state as Slurm names it.

    A state that contradicts ``ran``, whether the job ran, is replaced.
    """
    word = _WORDS.get(text.upper(), text.upper())
    if word in _ENDED or (word in GOING_ON and not ran):
        return word
    if not ran:
        return "PENDING"
    return "FAILED" if text and word not in GOING_ON else "COMPLETED"


def _times(times: Floats, known: NDArray[np.bool_]) -> list[str]:
    return [
        text if is_known else "Unknown" for text, is_known in zip(decimal_texts(times), known.tolist(), strict=True)
    ]


def _limit(seconds: float) -> str:
    if seconds == float("inf"):
        return "UNLIMITED"
    if seconds < 0:
        return "00:00:00"
    whole = int(seconds)
    rest = decimal_text(round(seconds - whole, 9)).removeprefix("0") if seconds != whole else ""
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    return f"{f'{days}-' if days else ''}{hours:02}:{minutes:02}:{whole % 60:02}{rest}"
