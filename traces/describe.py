"""Describe a workload in text: format, span, sizes, times and load."""

import numpy as np

from pipistrelle.protocol.base.lengths import date_text
from pipistrelle.traces.clean import NO_REQUEST, REQUEST_HINT, clean, count_overruns, faults_text, lacks_requests
from pipistrelle.traces.logs.labels import dependency_column
from pipistrelle.traces.requests import asks, count_requests
from pipistrelle.traces.workload import Floats, Ints, Workload, decimal_text, label_column

#: {label: heading}; distinct values are counted if the log has the label as text
_FURTHER = {"group": "groups", "account": "accounts", "queue": "queues", "qos": "QOS"}


def describe(workload: Workload) -> list[tuple[str, str]]:
    """Return the facts of 'workload describe' as (heading, text) pairs.

    The order is fixed. Unknown facts are "unknown". Sizes, times and load cover only the jobs that can be simulated on
    the log's machine.
    """
    kept, dropped = clean(workload, workload.machine_size)
    total = sum(dropped.values())
    reasons = ", ".join(f"{reason}: {count:,}" for reason, count in dropped.items())
    facts = [
        ("name", workload.name),
        ("format", workload.format or ("SWF" if workload.profiles is None else "Batsim JSON")),
        ("jobs", f"{len(workload):,}"),
        ("machine", "unknown" if workload.machine_size is None else f"{workload.machine_size:,} units"),
        ("time zone", workload.timezone or "unknown"),
        ("dropped", f"{total:,} ({reasons})" if total else "none"),
        *([("left out", said)] if (said := faults_text(workload)) is not None else []),
        *(("ignored", said) for said in workload.remarks),
    ]
    if not len(kept):
        advice = f": {NO_REQUEST}. {REQUEST_HINT}." if lacks_requests(workload) else ""
        return [*facts, ("simulated", f"no job is left{advice}")]
    facts += [
        ("simulated", f"{len(kept):,} jobs"),
        ("span", _span_text(kept)),
        ("size", f"{_spread(kept.size)} units"),
        ("run time", _runtime_text(kept.runtime)),
        ("requested time", _walltime_text(kept.walltime)),
        ("over requested time", f"{count_overruns(kept):,} (will be killed at the requested time)"),
        ("offered load", _load_text(kept)),
        ("users", _count_text(label_column(kept, "user"))),
    ]
    for label, heading in _FURTHER.items():
        texts = kept.labels.get(label)
        if texts is not None:
            facts.append((heading, _count_text(texts)))
    if asks(kept):
        counts = ", ".join(f"{name} {count:,}" for name, count in count_requests(kept).items() if count)
        facts.append(("asking for nodes", counts))
    dependent = sum(map(bool, dependency_column(kept) or ()))
    if not dependent:
        return facts
    return [*facts, ("dependent", f"{dependent:,} jobs wait for others" if dependent > 1 else "1 job waits for others")]


def _count_text(texts: list[str] | None) -> str:
    """Return the number of distinct non-empty texts, as text.

    It is "unknown" if ``texts`` is None.
    """
    return "unknown" if texts is None else f"{len(set(texts) - {''}):,}"


def offered_load(workload: Workload, units: int) -> float:
    """Return the offered load: the work of all jobs divided by the machine's capacity.

    It is sum(size x run time) / (units x submission span). Run times count in full, even beyond the requested time. The
    result is NaN if there are no jobs, if the span is 0, or if a run time depends on the hosts.
    """
    if not len(workload):
        return float("nan")
    span = float(workload.submit.max() - workload.submit.min())
    if span <= 0:
        return float("nan")
    return float((workload.size.astype(np.float64) * workload.runtime).sum()) / (units * span)


def _span_text(workload: Workload) -> str:
    first, last = float(workload.submit.min()), float(workload.submit.max())
    span = last - first
    text = f"{span / 86400:.1f} days" if span >= 86400 else f"{decimal_text(span)} s"
    dates = None if workload.epoch is None else [date_text(workload.epoch + time) for time in (first, last)]
    if dates is None or None in dates:
        return f"{text}, from {decimal_text(first)} s to {decimal_text(last)} s"
    return f"{text}, from {dates[0]} to {dates[1]} UTC"


def _spread(values: Floats | Ints) -> str:
    low, middle, high = (float(value) for value in (values.min(), np.median(values), values.max()))
    return f"{decimal_text(low)} to {decimal_text(high)}, median {decimal_text(middle)}"


def _runtime_text(runtime: Floats) -> str:
    known = runtime[~np.isnan(runtime)]
    if not known.size:
        return "depends on the hosts"
    without = runtime.size - known.size
    return f"{_spread(known)} s" + (f"; for {without:,} jobs it depends on the hosts" if without else "")


def _walltime_text(walltime: Floats) -> str:
    limited = walltime[np.isfinite(walltime)]
    if not limited.size:
        return "none"
    without = walltime.size - limited.size
    return f"{_spread(limited)} s" + (f"; {without:,} jobs have no limit" if without else "")


def _load_text(workload: Workload) -> str:
    if workload.machine_size is None:
        return "unknown, because the machine's size is"
    if np.isnan(workload.runtime).any():
        return "unknown, because run times depend on the hosts"
    load = offered_load(workload, workload.machine_size)
    return "undefined: all jobs are submitted at once" if np.isnan(load) else f"{load:.3f} of the machine"
