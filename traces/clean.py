"""Which jobs of a trace can be simulated, with the count of each reason, and which a writer takes."""

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

#: Every reason for dropping a job, in the order in which they are tried: a job counts under its first.
REASONS = (BAD_RECORD, NO_SUBMIT, NO_RUNTIME, NO_WALLTIME, NO_SIZE, TOO_LARGE)

#: SWF's status of a cancelled job
_CANCELLED = 5
_MOST_FAULTS = 3  # of which the message is shown

_DIGITS = 18  # so many always fit an int64


def clean(
    workload: Workload, machine_size: int | None, *, ids_as_text: bool = False
) -> tuple[Workload, dict[str, int]]:
    """Return the jobs that can run on `machine_size` units, by (submit time, id), and how many were dropped, and why.

    Dropped are, each under the first reason that holds: jobs with a run time <= 0, with a requested time <= 0, with
    a size <= 0, and with a size above `machine_size` (None: no such limit). Jobs that the reader has left out already,
    as those without a submit time, are counted among them. The counts have the reasons of `REASONS`
    as keys, in that order; a reason without jobs is absent. Ids compare as numbers when all of them are numbers,
    else as text; with `ids_as_text` always as text, as Batsim compares them (``10`` comes before ``9``). A run time
    that only the hosts can tell, NaN, is no reason to drop a job.
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
    return replace(workload.select(kept[np.lexsort((ranks, workload.submit[kept]))]), left_out={}, faults=()), dropped


def were_cancelled(workload: Workload) -> NDArray[np.bool_]:
    """Tell of each job whether it was cancelled before it started, shape (n,): then its wait lasted until that.

    Its status is 5, SWF's for that, it has no run time, and the wait is known.
    """
    status, wait = workload.columns.get("status"), workload.measures.get("wait")
    if status is None or wait is None:
        return np.zeros(len(workload), dtype=np.bool_)
    found: NDArray[np.bool_] = (status == _CANCELLED) & (workload.runtime <= 0) & (wait >= 0)
    return found


def with_cancellations(workload: Workload) -> Workload:
    """Return the workload in which jobs that were cancelled while they waited can run until then, should they start.

    When that is says ``cancelled_after``, a measure; it is absent if there is no such job.
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
    runtime = np.where(which, wait + 1.0, workload.runtime)  # longer than it can run: its cancellation ends it
    return replace(workload, runtime=runtime, measures=measures)


#: what is said of a workload in which no job has a requested time, and what helps
NO_REQUEST = "no job has a requested time"
REQUEST_HINT = (
    "--transform 'scale --walltime 100%', or 'pipistrelle workload scale' with that option before, takes the run times"
)


def faults_text(workload: Workload) -> str | None:
    """Return what is to be said of records that cannot be read: how many, and the first with their lines."""
    if not workload.faults:
        return None
    shown = " ".join(workload.faults[:_MOST_FAULTS])
    more = len(workload.faults) - _MOST_FAULTS
    rest = f" And {more:,} more." if more > 0 else ""
    return f"{counted(len(workload.faults), 'record')} of {workload.source} left out: {shown}{rest}"


def lacks_requests(workload: Workload) -> bool:
    """Tell whether no job has a requested time, which in some logs was never kept."""
    return len(workload) > 0 and not np.any(workload.walltime > 0)


def count_overruns(workload: Workload) -> int:
    """Return how many jobs ran longer than they had asked for: they will be killed at the requested time."""
    return int(np.count_nonzero(workload.runtime > workload.walltime))


def _are_numbers(ids: list[str]) -> bool:
    """Tell whether there are ids, and all are numbers that an int64 holds."""
    digits = "".join(ids)
    return digits.isascii() and digits.isdigit() and all(ids) and max(map(len, ids)) <= _DIGITS


def _id_ranks(ids: list[str], as_text: bool) -> Ints:
    """Return numbers, shape (n,), that order the ids; distinct ids never tie."""
    if not as_text and _are_numbers(ids):
        numbers = list(map(int, ids))
        if len(set(numbers)) == len(ids):
            return np.array(numbers, dtype=np.int64)
        order = sorted(range(len(ids)), key=lambda row: (numbers[row], ids[row]))  # "7" and "007"
    else:
        order = sorted(range(len(ids)), key=ids.__getitem__)
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[order] = np.arange(len(ids), dtype=np.int64)
    return ranks


def require_runtimes(workload: Workload, format: str) -> None:
    """Raise TraceError if the workload has no jobs, or hosts decide how long one takes; `format` is for the message."""
    if not len(workload):
        raise TraceError("there are no jobs to write", where=workload.name, hint="A trace has at least one job.")
    unknown = np.flatnonzero(np.isnan(workload.runtime))
    if unknown.size:
        row = int(unknown[0])
        raise TraceError(
            f"{format} cannot keep a job that computes",
            where=f"{workload.name}, job {quoted(workload.ids[row])}",
            expected="a profile of delays",
            found=f"profile {quoted(workload.profile_of(row))}{and_more(unknown.size - 1)}",
            hint="Its hosts decide how long it takes: keep the workload in Batsim's JSON.",
        )


def and_more(count: int) -> str:
    """Return what a message about one job says of `count` others with the same fault; nothing if there are none."""
    return f" (and {counted(count, 'more such job')})" if count else ""


def require_ids(workload: Workload, format: str, fits: Callable[[str], bool], expected: str) -> None:
    """Raise TraceError for the first job whose id does not fit; `format` and `expected` are for the message."""
    for job in workload.ids:
        if not fits(job):
            raise TraceError(
                f"{format} cannot keep this job id",
                where=f"{workload.name}, job {quoted(job)}",
                expected=expected,
                hint="Keep the workload in Batsim's JSON, or number its jobs with 'convert --renumber'.",
            )
