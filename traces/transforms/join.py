"""Merge several workloads, and copy the jobs of a workload. Pure functions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError, out_of_range
from pipistrelle.traces.logs.dependencies import rename_jobs
from pipistrelle.traces.logs.labels import DIRECTIVES, named_column
from pipistrelle.traces.transforms.arrivals import Gaps
from pipistrelle.traces.transforms.cut import changed, from_zero, recounted, resubmitted
from pipistrelle.traces.transforms.profiles import united_profiles
from pipistrelle.traces.workload import LARGEST, Floats, Workload, is_plain_number, label_column

Align = Literal["date", "zero", "first"]
Draw = Literal["job", "copy", "once"]

#: columns whose numbers mean something else in another log
_LOCAL: Final = frozenset(("user", "group", "application", "queue", "partition"))
#: more jobs than this do not fit into memory
_MOST_JOBS: Final = 10_000_000
_LOCAL_LABELS: Final = frozenset(("user", "group", "account", "queue", "qos", "partition"))


def merge(workloads: Sequence[Workload], align: Align = "zero", *, apart: bool = False) -> Workload:
    """Merge the jobs of several workloads into one workload, by submit time.

    Jobs with equal times are in the order of `workloads`. If an id occurs twice, all jobs are renumbered 1, 2, ... in
    the new order, also in dependencies. If headers give numbers different names, as in ``Queue: 1 batch``, the names
    replace the numbers. The machine is the largest one. Time zone and header lines stay if all workloads agree.

    Args:
        workloads: at least one.
        align: how to match the clocks of the workloads. ``date`` matches their dates; time 0 is the earliest epoch.
            ``zero`` matches their times 0; the epoch stays if all have the same. ``first`` lets each workload's first
            job be submitted at time 0; the result has no epoch.
        apart: whether to keep users, groups, accounts, queues and so on of different workloads apart: from the second
            workload on, their numbers continue after the highest before, and names get ``@2``, ``@3``, ...
    """
    first = workloads[0]
    zones = {workload.timezone for workload in workloads}
    parts, epoch = _aligned(list(workloads), align)
    parts = _named(parts, apart)
    if apart:
        parts = _apart(parts)
    if any(part.profiles is not None for part in parts):
        parts = united_profiles(parts)
    rows = sum(map(len, parts))
    if len({job for part in parts for job in part.ids}) < rows:
        parts = _numbered(parts)
    joined = _joined(parts)
    header = {key: text for key, text in parts[0].header.items() if all(p.header.get(key) == text for p in parts)}
    sizes = [workload.machine_size for workload in workloads if workload.machine_size is not None]
    joined = changed(
        joined,
        name="+".join(workload.name for workload in workloads),
        source=" ".join(workload.source for workload in workloads),
        machine_size=max(sizes, default=None),
        epoch=epoch,
        timezone=first.timezone if len(zones) == 1 else None,
        header=header,
        left_out=dict(sum((Counter(workload.left_out) for workload in workloads), Counter())),
        faults=tuple(fault for workload in workloads for fault in workload.faults),
        format=first.format if all(workload.format == first.format for workload in workloads) else "",
    )
    return recounted(joined, moved=True)


def copies(
    workload: Workload,
    count: int,
    rng: np.random.Generator,
    *,
    every: float = 0.0,
    shift: tuple[float, float] = (0.0, 0.0),
    draw: Draw = "job",
    gaps: Gaps | None = None,
) -> Workload:
    """Return the workload with each job several times, by submit time.

    At equal times the originals come first, then the first copies, and so on. `copy_ids` gives the ids. If a job
    depends on others, its copies depend on the copies of these. Otherwise a copy equals its original.

    Args:
        count: number of jobs that each original job becomes, itself included; at least 1.
        every: a delay (s): the k-th copy is submitted k times this delay after the original.
        shift: least and greatest time (s) added to the copies' submit times, uniform in steps of 1 ms.
        draw: whether the shift is drawn for each ``job`` of each copy, for each ``copy``, or ``once``.
        gaps: distribution of new times between the jobs of each copy. The first job of a copy then has the submit time
            of the first original, before ``every`` and ``shift`` are added. None: copies keep the times of the
            originals.
    """
    if count < 1:
        raise out_of_range("value", "copies", "at least 1", str(count))
    if (most := max(map(abs, (every, *shift)))) > LARGEST:
        raise out_of_range("value", "shift of copies", "at most 2^53 s", f"{most:g}")
    if count * len(workload) > _MOST_JOBS:
        raise TraceError(
            "there would be too many jobs",
            where=workload.name,
            expected=f"at most {_MOST_JOBS:,}",
            found=f"{count * len(workload):,}",
        )
    parts = [workload]
    order = np.argsort(workload.submit, kind="stable")
    once = rng.random() if draw == "once" else 0.0
    for number in range(1, count):
        submit = workload.submit
        if gaps is not None:
            submit = np.empty_like(submit)
            submit[order] = gaps.times(float(workload.submit.min()), len(workload), rng)
        uniform: Floats | float = once
        if draw != "once" and shift[0] < shift[1]:
            uniform = rng.random(len(workload)) if draw == "job" else rng.random()
        moved = submit + number * every + (shift[0] + np.round(uniform * (shift[1] - shift[0]) * 1000) / 1000)
        parts.append(changed(rename_jobs(workload, copy_ids(workload.ids, number)), submit=moved))
    ids = [job for part in parts for job in part.ids]
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        again = next(job for job in ids if job in seen or seen.add(job))  # type: ignore[func-returns-value]
        raise TraceError(
            "two jobs would have the same id",
            where=workload.name,
            expected="no id that equals another id plus '.' and a number",
            found=quoted(again),
            hint="Number the jobs first.",
        )
    return recounted(_joined(parts), moved=count > 1)


def copy_ids(ids: list[str], number: int) -> list[str]:
    """Return the ids of the `number`-th copies, from 1.

    If all ids are whole numbers, `number` times the smallest power of ten above the largest id is added: the first
    copies of 11 and 28490 are 100011 and 128490. Otherwise the number is appended: ``a.1``.
    """
    if not all(is_plain_number(job, 16) for job in ids):
        return [f"{job}.{number}" for job in ids]
    numbers = list(map(int, ids))
    offset = number * 10 ** len(str(max(numbers)))
    if max(numbers) + offset > LARGEST:
        raise TraceError(
            "the ids are too large for copies",
            expected="ids that leave room for more digits",
            found=quoted(max(ids, key=int)),
            hint="Number the jobs first.",
        )
    return [str(job + offset) for job in numbers]


def _aligned(workloads: list[Workload], align: Align) -> tuple[list[Workload], float | None]:
    """Return the workloads on one common clock, and the epoch of this clock."""
    if align == "first":
        return [from_zero(workload) for workload in workloads], None
    epochs = [workload.epoch for workload in workloads]
    if align == "zero":
        return workloads, epochs[0] if len(set(epochs)) == 1 else None
    known = [epoch for epoch in epochs if epoch is not None]
    if len(known) < len(workloads):
        without = next(workload for workload in workloads if workload.epoch is None)
        raise TraceError(
            "the workload has no dates",
            where=without.name,
            expected="the date of its time 0 (UnixStartTime in SWF)",
            hint="Align the workloads by 'zero' or 'first'.",
        )
    earliest = min(known)
    moved = [
        changed(workload, submit=workload.submit + (epoch - earliest))
        for workload, epoch in zip(workloads, known, strict=True)
    ]
    return moved, earliest


def _named(workloads: list[Workload], apart: bool) -> list[Workload]:
    """Replace numbers by names if workloads explain the numbers differently.

    Headers of workloads explain the numbers.
    """
    result = workloads
    for name, directive in DIRECTIVES.items():
        lines = {workload.header.get(directive) for workload in workloads}
        explained = any(named_column(one, name) != label_column(one, name) for one in workloads)
        if explained and (apart or len(lines) > 1):
            result = [_with_names(workload, name, directive) for workload in result]
    return result


def _with_names(workload: Workload, name: str, directive: str) -> Workload:
    texts = named_column(workload, name)
    if texts is None:
        return workload
    columns = {key: column for key, column in workload.columns.items() if key != name}
    header = {key: text for key, text in workload.header.items() if key != directive}
    return replace(workload, columns=columns, labels={**workload.labels, name: texts}, header=header)


def _apart(workloads: list[Workload]) -> list[Workload]:
    highest = dict.fromkeys(_LOCAL, 0)
    result = []
    for number, workload in enumerate(workloads, start=1):
        columns, labels = dict(workload.columns), dict(workload.labels)
        for name in columns.keys() & _LOCAL:
            old = columns[name]
            columns[name] = np.where(old >= 0, old + highest[name], old)
            highest[name] = max(highest[name], int(columns[name].max(initial=0)))
        for name in labels.keys() & _LOCAL_LABELS if number > 1 else ():
            labels[name] = [f"{text}@{number}" if text else "" for text in labels[name]]
        result.append(changed(workload, columns=columns, labels=labels))
    return result


def _numbered(parts: list[Workload]) -> list[Workload]:
    """Return the workloads with ids 1, 2, ... in the order of the joined jobs."""
    rank = np.empty(sum(map(len, parts)), dtype=np.int64)
    rank[_order(parts)] = np.arange(1, rank.size + 1)
    ids = list(map(str, rank.tolist()))
    result = []
    begin = 0
    for part in parts:
        result.append(rename_jobs(part, ids[begin : begin + len(part)]))
        begin += len(part)
    return result


def _order(parts: list[Workload]) -> NDArray[np.int64]:
    """Return the indices that sort the jobs of all workloads together by submit time.

    Jobs with equal times keep their order.
    """
    order: NDArray[np.int64] = np.argsort(np.concatenate([part.submit for part in parts]), kind="stable")
    return order


def _joined(parts: list[Workload]) -> Workload:
    """Return one workload with all jobs by submit time.

    Its other attributes are those of the first workload.
    """
    if len(parts) == 1:
        return resubmitted(parts[0], parts[0].submit)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("submit", "size", "walltime", "runtime")
    }
    for name in ("ids", "profiles", "job_json"):
        lists = [getattr(part, name) for part in parts]
        columns[name] = None if None in lists else list(chain.from_iterable(lists))
    for table, dtype in (("columns", np.int64), ("measures", np.float64)):
        columns[table] = {
            name: np.concatenate([getattr(part, table).get(name, np.full(len(part), -1, dtype)) for part in parts])
            for name in dict.fromkeys(name for part in parts for name in getattr(part, table))
        }
    if any(part.requests is not None for part in parts):
        columns["requests"] = [one for part in parts for one in part.requests or [None] * len(part)]
    columns["labels"] = {
        name: [text for part in parts for text in part.labels.get(name, [""] * len(part))]
        for name in dict.fromkeys(name for part in parts for name in part.labels)
    }
    return replace(parts[0], **columns).select(_order(parts))
