"""Start in the middle of a log, with or without the jobs that run at that time."""

from typing import Any, Final

import numpy as np

from pipistrelle.traces.clean import were_cancelled
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.transforms.cut import changed, keep
from pipistrelle.traces.workload import Floats, Workload

#: submit time (s) of jobs that waited at the start, so that running jobs start first; a power of two keeps sums exact
AFTERWARDS: Final = 2.0**-10


def begun_at(workload: Workload, time: float, *, warm: bool) -> Workload:
    """Return the workload from a time on, which becomes its time 0.

    Dates do not change.

    Args:
        time: the time (s).
        warm: what to do with jobs submitted earlier. If False, they are dropped. If True, jobs that were running at
            ``time`` are submitted at time 0 with their remaining run and requested times. Jobs that were waiting are
            submitted at `AFTERWARDS`, in their order. Earlier jobs without a start in the log are dropped.
    """
    if not warm:
        kept = keep(workload, workload.submit >= time)
        return _from(kept, kept.submit - time, time)
    wait = workload.measures.get("wait")
    if wait is None or not np.any(wait >= 0):
        raise TraceError(
            "the log has no start times, so the running jobs are unknown",
            where=workload.source,
            expected="wait times (SWF's field 3), or start dates (sacct, PBS, Maui)",
            hint="Leave out --warm.",
        )
    start = np.where(wait >= 0, workload.submit + wait, -np.inf)
    before = workload.submit < time
    spent = np.maximum(time - start, 0.0)
    runs = before & (wait >= 0) & (start < time) & (workload.runtime > spent) & (workload.walltime > spent)
    runs &= ~were_cancelled(workload)
    waits = before & (start >= time)
    order = np.concatenate(
        [
            np.flatnonzero(runs)[np.argsort(start[runs], kind="stable")],
            np.flatnonzero(waits)[np.argsort(workload.submit[waits], kind="stable")],
            np.flatnonzero(~before),
        ]
    )
    kept = keep(workload, order)
    runs, waits, spent, start = runs[order], waits[order], spent[order], start[order]
    submit = np.where(runs, 0.0, np.where(waits, AFTERWARDS, kept.submit - time))
    late = ~(runs | waits) & (submit < AFTERWARDS)
    submit = np.where(late, AFTERWARDS, submit)  # jobs submitted at that time queue behind those already waiting
    left = {
        "runtime": np.where(runs, kept.runtime - spent, kept.runtime),
        "walltime": np.where(runs, kept.walltime - spent, kept.walltime),
    }
    known = kept.measures["wait"] >= 0
    moved = np.where(known, np.maximum(start - time - submit, 0.0), -1.0)
    return _from(kept, submit, time, measures={**kept.measures, "wait": moved}, **left)


def _from(workload: Workload, submit: Floats, time: float, **columns: Any) -> Workload:
    epoch = None if workload.epoch is None else workload.epoch + time
    header = {name: text for name, text in workload.header.items() if name not in ("StartTime", "EndTime")}
    return changed(workload, submit=submit, epoch=epoch, header=header, **columns)
