"""Draw random jobs from classes.

The classes give Poisson arrivals, service times and accounts.
"""

import math
from dataclasses import replace
from typing import Final

import numpy as np

from pipistrelle.models.workloads.classes import HOUR, ClassesError, ServiceClass, WorkloadClasses
from pipistrelle.models.workloads.options import set_walltimes
from pipistrelle.platforms.failures.durations import Exponential
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.traces.errors import out_of_range
from pipistrelle.traces.generator import seeded
from pipistrelle.traces.workload import Floats, Workload, decimal_text

#: random generators per class: adding a class changes no other class's jobs
_ARRIVALS, _JOBS, _WALLTIMES = range(3)
_MOST: Final = 10_000_000


def generate_jobs(
    classes: WorkloadClasses, seed: int, *, load: float | None = None, duration: str | None = None
) -> Workload:
    """Return random jobs drawn from classes.

    Submit and run times are whole seconds, run times at least 1. Equal arguments give equal bytes on any machine.

    Args:
        load: scale all rates to this offered load; None: keep the rates.
        duration: how long jobs are submitted, such as "7d"; None: as in the classes.
    """
    if not 0 <= seed < 2**64:
        raise out_of_range("value", "seed of the workload to generate", "a whole number from 0", str(seed))
    seconds = classes.seconds if duration is None else parse_seconds(duration, "duration")
    factor = 1.0 if load is None else load / classes.offered_load
    stretch = seconds / classes.seconds
    expected = math.fsum(classes.rate(one) for one in classes.classes) * factor * seconds / HOUR
    if expected > _MOST:
        raise ClassesError("there would be too many jobs", expected=f"about {_MOST:,} at most", found=f"{expected:.2g}")
    parts = []
    for index, one in enumerate(classes.classes):
        if one.jobs is not None:
            count = math.floor(one.jobs * factor * stretch + 0.5)
            submit = np.sort(seeded(seed, index, _ARRIVALS).random(count)) * seconds
        else:
            submit = _poisson(seeded(seed, index, _ARRIVALS), classes.rate(one) * factor / HOUR, seconds)
        parts.append(_jobs(classes, one, np.floor(submit), seed, index))
    if not any(map(len, parts)):
        raise ClassesError("there is no job in so short a time", where=classes.name, found=f"{seconds:g} s")
    note = [f"synthetic, by pipistrelle: classes {classes.name}, seed {seed}, {decimal_text(seconds)} s"]
    if load is not None:
        note.append(f"load {decimal_text(load)}")
    if without := [account.name for account in classes.accounts if not account.gpu]:
        note.append(f"accounts without GPU: {','.join(without)}")
    return _joined(classes, parts, note)


def _poisson(rng: np.random.Generator, rate: float, seconds: float) -> Floats:
    """Return the event times (s) of a Poisson process of this rate, up to `seconds`."""
    law, found, last = Exponential(1.0 / rate), [np.zeros(0)], 0.0
    while last < seconds:
        block = max(16, int((seconds - last) * rate * 1.1))
        found.append(last + np.cumsum(law.draw(1.0 - rng.random((block, 1)))))
        last = float(found[-1][-1])
    times = np.concatenate(found)
    return times[times < seconds]


def _jobs(classes: WorkloadClasses, one: ServiceClass, submit: Floats, seed: int, index: int) -> Workload:
    """Return the jobs of one class with the given submit times."""
    count = len(submit)
    draws = seeded(seed, index, _JOBS).random((count, 5))
    draws[:, 1:3] = 1.0 - draws[:, 1:3]  # never 0, which has no logarithm
    least, greatest = one.sizes
    runtime = np.maximum(np.ceil(np.minimum(one.distribution.draw(draws[:, 1:3]), one.limit)), 1.0)
    labels = {"queue": [one.label] * count}
    accounts = classes.of(one)
    if accounts:
        edges = np.cumsum([account.share for account in accounts])
        place = np.searchsorted(edges, draws[:, 3] * edges[-1], side="right").clip(max=len(accounts) - 1)
        labels["account"] = labels["group"] = [accounts[at].name for at in place.tolist()]
        labels["user"] = [
            f"{accounts[at].name}-{1 + int(draw * accounts[at].users)}"
            for at, draw in zip(place.tolist(), draws[:, 4].tolist(), strict=True)
        ]
    jobs = Workload(
        name=classes.name,
        source="generator",
        ids=[""] * count,
        submit=submit,
        size=least + np.floor(draws[:, 0] * (greatest - least + 1)).astype(np.int64),
        walltime=np.full(count, np.ceil(one.limit), dtype=np.float64),
        runtime=runtime,
        columns={"status": np.ones(count, dtype=np.int64)},
        labels=labels,
    )
    if one.walltime is None:
        return jobs
    try:
        asked = set_walltimes(jobs, one.walltime, seeded(seed, index, _WALLTIMES))
    except PipistrelleError as error:
        raise error.at(f"class {one.label}: walltime", ClassesError) from None
    return replace(asked, walltime=np.minimum(asked.walltime, jobs.walltime))  # requested times do not exceed the limit


def _joined(classes: WorkloadClasses, parts: list[Workload], note: list[str]) -> Workload:
    """Merge the jobs of all classes by submit time; ties follow the order of classes.

    The lines of ``note`` go into the workload's header.
    """
    submit = np.concatenate([part.submit for part in parts])
    order = np.argsort(submit, kind="stable")
    size = np.concatenate([part.size for part in parts])[order]
    labels = {
        name: [texts[at] for at in order.tolist()]
        for name in parts[0].labels | parts[-1].labels
        if (texts := [text for part in parts for text in part.labels.get(name, [""] * len(part))])
    }
    header = {
        "Version": "2.2",
        "Computer": "none: a synthetic workload",
        "MaxJobs": str(len(size)),
        "MaxRecords": str(len(size)),
        "MaxProcs": str(classes.machine_size),
        "Note": "\n".join(note),
    }
    if classes.epoch is not None:
        header["UnixStartTime"] = decimal_text(classes.epoch)
    if classes.timezone is not None:
        header["TimeZoneString"] = classes.timezone
    return replace(
        parts[0],
        ids=list(map(str, range(1, len(size) + 1))),
        submit=submit[order],
        size=size,
        walltime=np.concatenate([part.walltime for part in parts])[order],
        runtime=np.concatenate([part.runtime for part in parts])[order],
        columns={"allocated": size.copy(), "status": np.ones(len(size), dtype=np.int64)},
        labels=labels,
        machine_size=classes.machine_size,
        epoch=classes.epoch,
        timezone=classes.timezone,
        header=header,
    )
