"""Select jobs of workloads.

Everything that depends on the jobs is updated. The functions are pure.
"""

import re
from collections.abc import Set
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.traces.batsim.text import with_members
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.dependencies import parse_dependency
from pipistrelle.traces.workload import LARGEST, Floats, Ints, Workload, decimal_text

#: {column: its member in a job's JSON object}
_JSON_NAMES: Final = {"submit": "subtime", "walltime": "walltime", "size": "res", "profiles": "profile"}
#: header directives that count jobs, and the dates of the first and last log entry
_COUNTS: Final = ("MaxJobs", "MaxRecords")
_BOUNDS: Final = ("StartTime", "EndTime")


def changed(workload: Workload, **columns: Any) -> Workload:
    """Return the workload with new columns, also in the jobs' JSON objects.

    Raises:
        TraceError: a submit time would be negative, or a number would be above 2^53.
    """
    for name in ("submit", "walltime", "runtime", "size"):
        if name in columns:
            _check_range(workload, name, columns[name])
    result = replace(workload, **columns)
    members = [name for name in _JSON_NAMES if name in columns]
    if result.job_json is None or not members:
        return result
    values = [result.profiles if name == "profiles" else getattr(result, name).tolist() for name in members]
    names = [_JSON_NAMES[name] for name in members]
    rows = zip(result.job_json, zip(*values, strict=True), strict=True)
    texts = [with_members(raw, **dict(zip(names, row, strict=True))) for raw, row in rows]
    return replace(result, job_json=texts)


def keep(workload: Workload, which: NDArray[np.bool_] | Ints) -> Workload:
    """Return the selected jobs, unchanged but without dependencies on removed jobs."""
    kept = workload.select(which)
    if not len(kept):
        days = workload.submit / 86400
        span = f", submitted on days {days.min():,.0f} to {days.max():,.0f} of the log" if len(days) else ""
        late = days.min(initial=1) >= 1
        rebase = "; an earlier filter step with 'rebase' counts times from the first job" if late else ""
        raise TraceError(
            "no job is left",
            where=workload.name,
            expected=f"at least one of its {len(workload):,} jobs{span}",
            hint=f"Relax the conditions{rebase}. 'pipistrelle workload describe' shows what the workload has.",
        )
    return recounted(forget_jobs(kept, set(workload.ids).difference(kept.ids)))


def sample(workload: Workload, count: int, rng: np.random.Generator) -> Workload:
    """Return `count` random jobs in their order, or all jobs if there are fewer."""
    order = np.argsort(rng.random(len(workload)), kind="stable")
    return keep(workload, np.sort(order[:count]).astype(np.int64))


def from_zero(workload: Workload) -> Workload:
    """Return the workload with time 0 at the first submission; dates do not change."""
    first = float(workload.submit.min())
    epoch = None if workload.epoch is None else workload.epoch + first
    return changed(workload, submit=workload.submit - first, epoch=epoch)


def resubmitted(workload: Workload, submit: Floats) -> Workload:
    """Return the workload with new submit times (s), shape (n,).

    Its jobs are sorted by them.
    """
    moved = changed(workload, submit=submit)
    return recounted(moved.select(np.argsort(submit, kind="stable")), moved=True)


def recounted(workload: Workload, *, moved: bool = False) -> Workload:
    """Return the workload with the job counts in its header updated.

    The dates of the first and last job are removed if the count changed or if submit times have `moved`.
    """
    header = dict(workload.header)
    count = str(len(workload))
    if not moved and all(header.get(name, count) == count for name in _COUNTS):
        return workload
    for name in _COUNTS:
        if name in header:
            header[name] = count
    for name in _BOUNDS:
        header.pop(name, None)
    return replace(workload, header=header)


def _check_range(workload: Workload, name: str, values: Floats | Ints) -> None:
    # inf is a job without a limit, NaN a run time that is not known
    known = values[np.isfinite(values)] if name == "walltime" else values[~np.isnan(values)]
    what = {"submit": "a submit time", "walltime": "a requested time", "runtime": "a run time", "size": "a size"}[name]
    if known.size and float(known.max()) > LARGEST:
        raise TraceError(
            f"{what} would be too large",
            where=workload.name,
            expected=f"at most {decimal_text(LARGEST)}",
            found=f"{float(known.max()):.6g}",
        )
    if name == "submit" and known.size and float(known.min()) < 0:
        raise TraceError(
            "a job would be submitted before time 0",
            where=workload.name,
            expected="a submit time of at least 0",
            found=f"{float(known.min()):.6g}",
            hint="Move it by less.",
        )


def forget_jobs(workload: Workload, gone: Set[str]) -> Workload:
    """Return the workload without dependencies on the jobs in `gone`.

    If such a dependency stayed, it would refer to any new job with the same id. A preceding job in `gone` becomes -1.
    """
    if not gone:
        return workload
    columns, labels = dict(workload.columns), dict(workload.labels)
    if "preceding" in columns:
        lost = [str(job) in gone for job in columns["preceding"].tolist()]
        columns["preceding"] = np.where(np.array(lost, dtype=np.bool_), -1, columns["preceding"]).astype(np.int64)
    if "dependency" in labels:
        labels["dependency"] = [forget_in(text, gone) if text else text for text in labels["dependency"]]
    return replace(workload, columns=columns, labels=labels)


def forget_in(text: str, gone: Set[str]) -> str:
    """Return a dependency text without the jobs in `gone`.

    For example, ``afterok:3:4,afterany:7`` without 4 and 7 is ``afterok:3``. Parts that name no jobs stay.
    """
    first, *others = re.split("([,?])", text)
    parts = [("", first), *zip(others[::2], others[1::2], strict=True)]
    kept = [(mark, left) for mark, part in parts if (left := _left(part, gone)) is not None]
    return "".join(part if at == 0 else mark + part for at, (mark, part) in enumerate(kept))


def _left(part: str, gone: Set[str]) -> str | None:
    """Return one part of a dependency text without the jobs in `gone`.

    Return None if no job is left in it.
    """
    kind, colon, listed = part.partition(":")
    jobs = listed.split(":")
    plain = [names[0] if names else None for job in jobs for _, names in parse_dependency(f"{kind}:{job}")]
    if not colon or len(plain) != len(jobs) or None in plain:
        return part
    left = [job for job, name in zip(jobs, plain, strict=True) if name not in gone]
    return f"{kind}:{':'.join(left)}" if left else None
