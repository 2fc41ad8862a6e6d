"""Multiply arrival rates, run times, requested times and sizes of workloads."""

from dataclasses import replace
from math import inf
from typing import Final

import msgspec
import numpy as np

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.protocol.base.lengths import length_text
from pipistrelle.traces.batsim.text import with_members
from pipistrelle.traces.clean import clean, lacks_requests
from pipistrelle.traces.describe import offered_load
from pipistrelle.traces.errors import TraceError, out_of_range
from pipistrelle.traces.profiles import Composed, Delay, Profile, ranks_of, runtime_of
from pipistrelle.traces.transforms.cut import changed, recounted
from pipistrelle.traces.workload import LARGEST, Floats, Ints, Workload, decimal_text

#: one job stretches a workload if all other jobs would need at most this share of the time
_STRETCHED: Final = 0.5
#: in a workload with fewer jobs, no job counts as stretching it
_LEAST_JOBS: Final = 10


def scale_arrivals(workload: Workload, factor: float) -> Workload:
    """Return the workload with the times between submissions multiplied by `factor`."""
    _require_factor(factor, "arrivals")
    first = float(workload.submit.min())
    submit = first + (workload.submit - first) * factor
    return recounted(changed(workload, submit=submit), moved=factor != 1)


def scale_to_load(workload: Workload, load: float, units: int | None = None) -> Workload:
    """Return the workload with arrivals scaled so that the offered load is `load`.

    The load counts only jobs that fit on `units` units; None: the size of the trace's machine.
    """
    _require_factor(load, "load")
    units = workload.machine_size if units is None else units
    if units is None:
        raise TraceError(
            "the machine's size is unknown, so the load cannot be computed",
            where=workload.name,
            hint="Give it with --machine-size.",
        )
    now = offered_load(clean(workload, units)[0], units)
    if not now > 0:
        raise TraceError(
            "the workload has no load to scale",
            where=workload.name,
            expected="jobs with run times and requested times, submitted at more than one time",
            hint="'scale --walltime 100%' takes run times as requests." if lacks_requests(workload) else None,
        )
    return scale_arrivals(workload, now / load)


def stretch_remark(workload: Workload, units: int | None = None) -> str | None:
    """Return a warning if one job makes the offered load of a workload meaningless.

    The load is work divided by the machine's capacity during the submissions. It says little if only one job is there
    for most of the time. Such a job is submitted long before or after all other jobs, or ends long after all of them
    could have ended. "Long" means at least half of the time that the workload covers. Only jobs that can be simulated
    count. A job is assumed to end at most its requested time after its submission.

    Args:
        units: size of the machine; None: the trace's machine.

    Returns:
        The warning; None if no single job does that, or if there are fewer than ten jobs.
    """
    units = workload.machine_size if units is None else units
    if units is None:
        return None
    kept = clean(workload, units)[0]
    if len(kept) < _LEAST_JOBS or np.isnan(kept.runtime).any():
        return None
    first, last = float(kept.submit[0]), float(kept.submit[-1])
    span = last - first
    gaps = {0: float(kept.submit[1]) - first, len(kept) - 1: last - float(kept.submit[-2])}
    row = max(gaps, key=lambda one: gaps[one])
    if gaps[row] > _STRETCHED * span > 0:
        alone = np.delete(np.arange(len(kept)), row)
        rest = offered_load(kept.select(alone), units)
        when, begin = ("after", "--end") if row else ("before", "--begin")
        others = "at once" if np.isnan(rest) else f"at a load of {rest:.3g}"
        return (
            f"job {quoted(kept.ids[row])} is submitted {length_text(gaps[row])} {when} all others, so these arrive "
            f"{others}. 'filter {begin}' removes it."
        )
    taken = np.minimum(kept.runtime, kept.walltime)
    ends = kept.submit + taken
    row = int(np.argmax(ends))
    others_end = max(float(np.delete(ends, row).max()), last)
    if others_end - first > _STRETCHED * (float(ends[row]) - first):
        return None
    work = float((kept.size * taken).sum()) / (units * (float(ends[row]) - first))
    return (
        f"job {quoted(kept.ids[row])} runs {length_text(float(taken[row]))}, but all others could end "
        f"{length_text(others_end - first)} after the first submission: a whole run has a utilisation of {work:.2%} at "
        "most. Remove the job with 'filter --runtime', or end the run before it with --until."
    )


def scale_runtimes(workload: Workload, factor: float) -> Workload:
    """Return the workload with run times multiplied by `factor`, not rounded.

    In Batsim's JSON the delays of profiles are multiplied, including delays in composed profiles.
    """
    _require_factor(factor, "run times")
    _require_runtimes(workload, "multiplied")
    if workload.profiles is None or workload.table is None:
        return changed(workload, runtime=np.where(workload.runtime > 0, workload.runtime * factor, workload.runtime))
    known: dict[int, Profile] = {}
    table = {name: _longer(profile, factor, known) for name, profile in workload.table.items()}
    texts = dict(workload.profile_json or {})
    for name, profile in table.items():
        if isinstance(profile, Delay) and name in texts:
            texts[name] = with_members(texts[name], delay=profile.delay)
    runtime = np.array([runtime_of(table[name]) for name in workload.profiles], dtype=np.float64)
    return changed(workload, runtime=runtime, table=table, profile_json=texts)


def scale_sizes(workload: Workload, factor: float) -> Workload:
    """Return the workload with sizes multiplied by `factor`, rounded, at least 1."""
    _require_factor(factor, "sizes")
    return _resized(workload, np.floor(workload.size * factor + 0.5))


def scale_machine(workload: Workload, units: int) -> Workload:
    """Return the workload for a machine of `units` units, with sizes in proportion.

    Sizes are rounded as in `scale_sizes`, so a job that fitted still fits.
    """
    if workload.machine_size is None:
        raise TraceError("the machine's size is unknown, so the jobs cannot be scaled to another", where=workload.name)
    # adding half of the divisor before an integer division rounds without doubles
    old = workload.machine_size
    sizes = [(2 * size * units + old) // (2 * old) for size in workload.size.tolist()]
    return replace(_resized(workload, np.array(sizes, dtype=np.float64)), machine_size=units)


def fix_walltimes(workload: Workload, seconds: float) -> Workload:
    """Return the workload with one requested time (s) for all jobs; inf: no limit."""
    if not (0 < seconds <= LARGEST or seconds == inf):
        raise _bad_factor("requested time", seconds)
    return changed(workload, walltime=np.full(len(workload), seconds, dtype=np.float64))


def scale_walltimes(workload: Workload, factor: float) -> Workload:
    """Return the workload with requested times multiplied by `factor`, not rounded."""
    _require_factor(factor, "requested times")
    return changed(workload, walltime=np.where(workload.walltime > 0, workload.walltime * factor, workload.walltime))


def draw_walltimes(workload: Workload, low: int, high: int, rng: np.random.Generator) -> Workload:
    """Return the workload with random requested times, whole seconds `low` to `high`."""
    _require_order(low, high, "requested time", 1)
    return changed(workload, walltime=_whole(low, high, len(workload), rng))


def walltimes_of_runtimes(workload: Workload, low: float, high: float, rng: np.random.Generator) -> Workload:
    """Return the workload with requested times as percentages of run times.

    If `low` and `high` differ, each job's percentage is a random whole number from `low` to `high`. Results are rounded
    up to whole seconds. Jobs without a run time keep their requested time.
    """
    _require_order(low, high, "percentage of the run time", 0)
    _require_runtimes(workload, "used for requested times")
    if low == high:
        percent: Floats = np.full(len(workload), low, dtype=np.float64)
    elif float(low).is_integer() and float(high).is_integer():
        percent = _whole(int(low), int(high), len(workload), rng)
    else:
        raise TraceError(
            "a random percentage is not a whole number", found=f"{decimal_text(low)} to {decimal_text(high)}"
        )
    # the product of whole numbers is exact, so a whole quotient is not rounded up
    limit = np.ceil(percent * workload.runtime / 100)
    return changed(workload, walltime=np.where(workload.runtime > 0, limit, workload.walltime))


def _whole(low: int, high: int, count: int, rng: np.random.Generator) -> Floats:
    """Return ``count`` random whole numbers from ``low`` to ``high``.

    Both bounds are included. The numbers come from uniform doubles.
    """
    return np.floor(rng.random(count) * (high - low + 1)) + low


def _longer(profile: Profile, factor: float, known: dict[int, Profile]) -> Profile:
    """Return the profile with its delays multiplied by ``factor``.

    ``known`` caches the results of parts.
    """
    if id(profile) not in known:
        if isinstance(profile, Delay):
            known[id(profile)] = msgspec.structs.replace(profile, delay=profile.delay * factor)
        elif isinstance(profile, Composed):
            parts = tuple(_longer(part, factor, known) for part in profile.seq)
            known[id(profile)] = msgspec.structs.replace(profile, seq=parts)
        else:
            known[id(profile)] = profile
    return known[id(profile)]


def _resized(workload: Workload, sizes: Floats) -> Workload:
    old = workload.size
    if float(sizes.max()) > LARGEST:
        raise TraceError("the size would be too large", where=workload.name, found=f"{float(sizes.max()):.6g}")
    new: Ints = np.where(old > 0, np.maximum(sizes, 1.0), old).astype(np.int64)
    if workload.requests is not None:
        for row in np.flatnonzero(new != old).tolist():
            if workload.requests[row] is not None:
                raise TraceError(
                    "the job's size cannot change: it requests cores, memory or GPUs of its nodes",
                    where=f"{workload.name}, job {quoted(workload.ids[row])}",
                    found=str(workload.requests[row]),
                    hint="Remove such jobs first, or their requests.",
                )
    if workload.table is not None and workload.profiles is not None:
        for row in np.flatnonzero(new != old).tolist():
            profile = workload.table.get(workload.profiles[row])
            if profile is not None and ranks_of(profile):
                raise TraceError(
                    "the job's size cannot change: its profile is made for a fixed number of resources",
                    where=f"{workload.name}, job {quoted(workload.ids[row])}, profile {quoted(profile.name)}",
                    hint="Remove such jobs first.",
                )
    return changed(workload, size=new)


def _require_runtimes(workload: Workload, what: str) -> None:
    for row in np.flatnonzero(np.isnan(workload.runtime)).tolist():
        raise TraceError(
            f"a run time that depends on the hosts cannot be {what}",
            where=f"{workload.name}, job {quoted(workload.ids[row])}",
            expected="a profile of delays",
            found=f"profile {quoted(workload.profile_of(row))}",
        )


def _require_factor(factor: float, what: str) -> None:
    # This bound keeps every product finite; `changed` checks the values.
    if not 0 < factor <= LARGEST:
        raise _bad_factor(what, factor)


def _bad_factor(what: str, value: float) -> TraceError:
    return out_of_range("value", what, "a number above 0, at most 2^53", repr(value))


def _require_order(low: float, high: float, what: str, least: int) -> None:
    if not (low > 0 and low >= least and low <= high <= LARGEST):
        raise TraceError(
            "the range is empty or reaches below its limit",
            where=what,
            expected=f"from {'above 0' if least == 0 else least} up",
            found=f"{low:g} to {high:g}",
        )
