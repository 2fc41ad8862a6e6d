"""Select jobs that can be simulated, and count the dropped jobs by reason."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError, counted
from pipistrelle.traces.workload import CANCELLED_AFTER, Ints, Workload

BAD_RECORD = "record that cannot be read"
NO_SUBMIT = "submit time missing"
NO_RUNTIME = "run time zero or missing"
NO_WALLTIME = "requested time zero or missing"
NO_SIZE = "no size"
TOO_LARGE = "larger than the machine"

#: reasons for dropping a job, in the order of the checks; only the first reason that applies is counted
REASONS = (BAD_RECORD, NO_SUBMIT, NO_RUNTIME, NO_WALLTIME, NO_SIZE, TOO_LARGE)

#: SWF's status of cancelled jobs
_CANCELLED = 5
_MOST_FAULTS = 3  # a message quotes at most this many faults

_DIGITS = 18  # always fit an int64
#: id of a job or of a task of a Slurm array
_TASK = re.compile(r"[0-9]{1,18}(?:_[0-9]{1,18})?")


def clean(
    workload: Workload, machine_size: int | None, *, ids_as_text: bool = False
) -> tuple[Workload, dict[str, int]]:
    """Return the jobs that can be simulated, and counts of the dropped jobs by reason.

    A job is dropped if its run time, requested time or size is <= 0, or if its size is above `machine_size` (None: no
    limit). A NaN run time, which depends on the hosts, is accepted. The counts have the order of `REASONS`, omit zeros,
    and include jobs that the reader left out.

    The jobs are sorted by submit time, then by id. Ids compare as numbers if all ids are numbers, or tasks of arrays
    such as ``34_0``, otherwise as text. With `ids_as_text` they always compare as text, as in Batsim (``10`` comes
    before ``9``).
    """
    keep = np.ones(len(workload), dtype=np.bool_)
    dropped = dict(workload.left_out)
    rules = [
        (NO_RUNTIME, workload.runtime <= 0),
        (NO_WALLTIME, workload.walltime <= 0),
        (NO_SIZE, workload.size <= 0),
    ]
    if machine_size is not None:
        rules.append((TOO_LARGE, workload.size > machine_size))
    for reason, bad in rules:
        count = int(np.count_nonzero(bad & keep))
        if count:
            dropped[reason] = count
        keep &= ~bad
    kept = np.flatnonzero(keep)
    ranks = _id_ranks([workload.ids[row] for row in kept.tolist()], ids_as_text)
    rows = kept[np.lexsort((ranks, workload.submit[kept]))]
    unchanged = len(rows) == len(workload) and bool((rows == np.arange(len(rows))).all())  # then share the columns
    return replace(workload if unchanged else workload.select(rows), left_out={}, faults=(), remarks=()), dropped


def were_cancelled(workload: Workload) -> NDArray[np.bool_]:
    """Return for each job whether it was cancelled before its start, shape (n,)."""
    status, wait = workload.columns.get("status"), workload.measures.get("wait")
    if status is None or wait is None:
        return np.zeros(len(workload), dtype=np.bool_)
    found: NDArray[np.bool_] = (status == _CANCELLED) & (workload.runtime <= 0) & (wait >= 0)
    return found


def with_cancellations(workload: Workload) -> Workload:
    """Make jobs that were cancelled in the queue usable in a simulation.

    The measure `CANCELLED_AFTER` has the seconds from submission to cancellation, -1 for all other jobs. A cancelled
    job gets a run time longer than that, so it cannot end before its cancellation.
    """
    which = were_cancelled(workload)
    if not which.any():
        return workload
    wait = workload.measures["wait"]
    measures = {
        **workload.measures,
        "wait": np.where(which, -1.0, wait),
        CANCELLED_AFTER: np.where(which, wait, -1.0),
    }
    runtime = np.where(which, wait + 1.0, workload.runtime)  # the job is cancelled before it can end
    return replace(workload, runtime=runtime, measures=measures)


#: message and hint for a workload without requested times
NO_REQUEST = "no job has a requested time"
REQUEST_HINT = (
    "Use the run times with --transform 'scale --walltime 100%', or with 'pipistrelle workload scale' beforehand"
)


def faults_text(workload: Workload) -> str | None:
    """Return a message that counts the unreadable records and quotes the first few.

    Return None if there are none.
    """
    if not workload.faults:
        return None
    shown = " ".join(workload.faults[:_MOST_FAULTS])
    more = len(workload.faults) - _MOST_FAULTS
    rest = f" And {more:,} more." if more > 0 else ""
    return f"{counted(len(workload.faults), 'record')} of {workload.source} left out: {shown}{rest}"


def lacks_requests(workload: Workload) -> bool:
    """Return whether no job has a requested time; some logs never record it."""
    return len(workload) > 0 and not np.any(workload.walltime > 0)


def count_overruns(workload: Workload) -> int:
    """Return how many jobs ran longer than requested; a simulation kills them."""
    return int(np.count_nonzero(workload.runtime > workload.walltime))


def _are_numbers(ids: list[str]) -> bool:
    """Return whether there are ids and all of them are numbers that fit an int64."""
    digits = "".join(ids)
    return digits.isascii() and digits.isdigit() and all(ids) and max(map(len, ids)) <= _DIGITS


def _id_ranks(ids: list[str], as_text: bool) -> Ints:
    """Return distinct numbers, shape (n,), that sort like the ids."""
    if not as_text and any("_" in name for name in ids) and all(map(_TASK.fullmatch, ids)):
        keys = [tuple(map(int, name.split("_"))) for name in ids]  # a job comes before the tasks of its array
        order = sorted(range(len(ids)), key=keys.__getitem__)
    elif not as_text and _are_numbers(ids):
        numbers = list(map(int, ids))
        if len(set(numbers)) == len(ids):
            return np.array(numbers, dtype=np.int64)
        order = sorted(range(len(ids)), key=lambda row: (numbers[row], ids[row]))  # such as "7" and "007"
    else:
        order = sorted(range(len(ids)), key=ids.__getitem__)
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[order] = np.arange(len(ids), dtype=np.int64)
    return ranks


def require_runtimes(workload: Workload, format: str) -> None:
    """Raise TraceError if there are no jobs, or if run times depend on the hosts."""
    if not len(workload):
        raise TraceError("there are no jobs to write", where=workload.name, hint="A trace has at least one job.")
    unknown = np.flatnonzero(np.isnan(workload.runtime))
    if unknown.size:
        row = int(unknown[0])
        raise TraceError(
            f"{format} cannot hold a job whose run time depends on its hosts",
            where=f"{workload.name}, job {quoted(workload.ids[row])}",
            expected="a profile of delays",
            found=f"profile {quoted(workload.profile_of(row))}{and_more(unknown.size - 1)}",
            hint="Keep the workload in Batsim's JSON.",
        )


def and_more(count: int) -> str:
    """Return the end of a message that says how many more jobs have the same fault."""
    return f" (and {counted(count, 'more such job')})" if count else ""


def require_ids(workload: Workload, format: str, fits: Callable[[str], bool], expected: str) -> None:
    """Raise TraceError for the first id that the file format cannot hold."""
    for job in workload.ids:
        if not fits(job):
            raise TraceError(
                f"{format} cannot hold this job id",
                where=f"{workload.name}, job {quoted(job)}",
                expected=expected,
                hint="Keep the workload in Batsim's JSON, or number its jobs with 'workload convert --renumber'.",
            )
