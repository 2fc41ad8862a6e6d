"""Several workloads as one, and one workload several times. Pure functions."""

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
#: more copies than this fit into no memory
_MOST_JOBS: Final = 10_000_000
_LOCAL_LABELS: Final = frozenset(("user", "group", "account", "queue", "qos", "partition"))


def merge(workloads: Sequence[Workload], align: Align = "zero", *, apart: bool = False) -> Workload:
    """Return the jobs of several workloads as those of one, by submit time, equal ones in the order of `workloads`.

    If an id occurs in two of them, all jobs are numbered 1, 2, ... in their new order, and dependencies follow; else
    ids stay. Where headers explain numbers differently, as ``Queue: 1 batch``, names take the place of the numbers. The
    machine is as large as the largest. Time zone and header lines stay where all workloads have the same.

    Args:
        workloads: at least one.
        align: what is at the same time: ``date``, equal dates, and time 0 is that of the workload with the earliest
            epoch; ``zero``, the time 0 of each; ``first``, the first job of each, which becomes time 0. The epoch is
            that of ``date``, else the one that all have.
        apart: users, groups, applications, accounts, queues and so on of different workloads are different ones: from
            the second workload on their numbers are counted on from the highest before, and ``@2``, ``@3``, ... is put
            behind names.

    Raises:
        TraceError: if `align` is ``date`` and a workload has no epoch.
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
    """Return the workload with each job `count` times, the original counted, by submit time.

    At one time the originals come first, then the first copies, and so on. Ids: `copy_ids`. A copy waits for the copies
    of the jobs that the original waits for. Everything else of a copy is as the original's.

    Args:
        workload: the jobs.
        count: how many jobs there are for each one before, at least 1.
        rng: the only source of chance.
        every: s; the k-th copy is submitted k times this after the original.
        shift: s, least and greatest; a time that is added to the copies' submit times: the least, and if the greatest
            is another, whole milliseconds more, uniform up to it.
        draw: how often that time is drawn: for each ``job`` of each copy, for each ``copy``, or ``once``.
        gaps: the times between submissions of each copy, whose first job comes when the first original does; None:
            those of the original.

    Raises:
        TraceError: if the count is below 1, there would be too many jobs, ids get too large or meet others, or a copy
            would come before time 0.
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
            "a copy's id is taken",
            where=workload.name,
            expected="ids of which none is another one with a number behind it",
            found=quoted(again),
            hint="Number the jobs first.",
        )
    return recounted(_joined(parts), moved=count > 1)


def copy_ids(ids: list[str], number: int) -> list[str]:
    """Return the ids of the `number`-th copies, from 1.

    If all ids are whole numbers, `number` times the smallest power of ten above the largest is added to each: of 11 and
    28490 the first copies are 100011 and 128490. Else the number is put behind: ``a.1``.

    Raises:
        TraceError: if a number gets above 2^53.
    """
    if not all(is_plain_number(job, 16) for job in ids):
        return [f"{job}.{number}" for job in ids]
    numbers = list(map(int, ids))
    offset = number * 10 ** len(str(max(numbers)))
    if max(numbers) + offset > LARGEST:
        raise TraceError(
            "the ids are too large to be copied",
            expected="ids that leave room for more digits",
            found=quoted(max(ids, key=int)),
            hint="Number the jobs first.",
        )
    return [str(job + offset) for job in numbers]


def _aligned(workloads: list[Workload], align: Align) -> tuple[list[Workload], float | None]:
    """Return the workloads on one clock, and its epoch."""
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
            expected="the date of its time 0, which in SWF UnixStartTime says",
            hint="Align the workloads by 'zero' or 'first'.",
        )
    earliest = min(known)
    moved = [
        changed(workload, submit=workload.submit + (epoch - earliest))
        for workload, epoch in zip(workloads, known, strict=True)
    ]
    return moved, earliest


def _named(workloads: list[Workload], apart: bool) -> list[Workload]:
    """Return the workloads with names in place of the numbers that headers explain, where these differ in meaning.

    That is, where the headers explain them differently, or those of different workloads are to be kept `apart`.
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
    """Return the workloads with ids 1, 2, ... in the order that their jobs get when they are joined."""
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
    """Return the order of the jobs, one workload after the other, by submit time; equal ones stay in it."""
    order: NDArray[np.int64] = np.argsort(np.concatenate([part.submit for part in parts]), kind="stable")
    return order


def _joined(parts: list[Workload]) -> Workload:
    """Return the jobs of all by submit time; everything but the jobs is the first one's. What one lacks is missing."""
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
    columns["labels"] = {
        name: [text for part in parts for text in part.labels.get(name, [""] * len(part))]
        for name in dict.fromkeys(name for part in parts for name in part.labels)
    }
    return replace(parts[0], **columns).select(_order(parts))
