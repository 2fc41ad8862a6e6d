"""What the writers of logs ask of a workload before they begin: jobs, run times that are numbers, ids that fit."""

from collections.abc import Callable

import numpy as np

from pipistrelle.traces.errors import TraceError, counted, shown
from pipistrelle.traces.workload import Workload


def require_runtimes(workload: Workload, format: str) -> None:
    """Raise TraceError if the workload has no jobs, or hosts decide how long one takes; `format` is for the message."""
    if not len(workload):
        raise TraceError("there are no jobs to write", where=workload.name, hint="A trace has at least one job.")
    unknown = np.flatnonzero(np.isnan(workload.runtime))
    if unknown.size:
        row = int(unknown[0])
        raise TraceError(
            f"{format} cannot keep a job that computes",
            where=f"{workload.name}, job {shown(workload.ids[row])}",
            expected="a profile of delays",
            found=f"profile {shown(workload.profile_of(row))}{and_more(unknown.size - 1)}",
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
                where=f"{workload.name}, job {shown(job)}",
                expected=expected,
                hint="Keep the workload in Batsim's JSON, or number its jobs with 'convert --renumber'.",
            )
