"""Fit a workload model to a log, and adjust its jobs, load and serial share.

All numbers in a model are counts or rounded values, computed in the order of the log's jobs. So equal logs give equal
models.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.likeness.campaigns import ALIKE, Campaigns, alike, campaigns_of, hours_of_week
from pipistrelle.models.likeness.model import (
    MOST_JOBS,
    GapBand,
    ModelClass,
    ModelError,
    Piece,
    RequestBand,
    WorkloadModel,
    mean,
)
from pipistrelle.models.workloads.options import zone_of
from pipistrelle.models.workloads.summary import RUNTIMES, arrivals_grid
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.traces.clean import clean
from pipistrelle.traces.workload import Floats, Ints, Workload, decimal_text

#: smallest number of jobs in a log, and in a class of sizes
LEAST_JOBS: Final = 50
_CLASS_JOBS: Final = 20
#: jobs per range of equal probability, and the largest number of ranges of a distribution
_PER_PIECE, _MOST_PIECES = 8, 32
#: sum of the weights of classes, and of the pieces of a distribution
_WHOLE: Final = 1_000_000
#: a size or requested time with this share of the jobs is kept as a single value
_SIZE_SHARE, _ROUND_SHARE = 0.01, 0.005
#: weight of the prior, in jobs: for each day and hour, and for each hour of the week
_PRIOR: Final = 10.0
#: upper bounds of the bands of campaign lengths
_LENGTHS: Final = (4.0, 10.0, 30.0, 100.0, math.inf)
#: digits that keep any job size exact
_EXACT: Final = 9
#: logs shorter than this (weeks) do not determine days of the week
_LEAST_WEEKS: Final = 8
#: bounds of the exponent that adjusts a distribution
_LEAST_BEND, _MOST_BEND = -4.0, 4.0


def fit(log: Workload, machine_size: int | None = None) -> WorkloadModel:
    """Fit a model to the jobs of a log that can run.

    Args:
        machine_size: units of the machine; None: as in the log.
    """
    units = log.machine_size if machine_size is None else machine_size
    jobs, _ = clean(log, units)
    if units is None:
        raise ModelError("the machine's size is unknown", where=log.name, hint="Give it: --machine-size UNITS.")
    span = float(jobs.submit[-1] - jobs.submit[0]) if len(jobs) else 0.0
    if len(jobs) < LEAST_JOBS or not span > 0:
        expected = f"{LEAST_JOBS} jobs that can run, or more, not all at one time"
        raise ModelError(
            "there are too few jobs to fit a model", where=log.name, expected=expected, found=f"{len(jobs)}"
        )
    if np.isnan(jobs.runtime).any():
        raise ModelError("run times that depend on hosts cannot be fitted", where=log.name)
    campaigns = campaigns_of(jobs)
    place = _classes(jobs.size)
    classes = [_size_class(jobs, campaigns, place == number) for number in range(int(place.max()) + 1)]
    limited = np.isfinite(jobs.walltime)
    rounds, rounded = _rounds(jobs.walltime[limited])
    return WorkloadModel(
        name=log.name,
        description=f"like {log.name}",
        source=f"{len(jobs)} jobs of {log.source}",
        machine_size=units,
        jobs=len(jobs),
        duration=f"{decimal_text(float(math.ceil(span)))}s",
        hours=_hours(jobs.select(np.sort(campaigns.begins))),
        gaps=_gaps(jobs, campaigns),
        repeat=_repeat(jobs, campaigns, place),
        classes=tuple(classes),
        requests=_requests(jobs.runtime[limited], jobs.walltime[limited]),
        rounds=rounds,
        rounded=rounded,
        longest=float(jobs.walltime[limited].max()) if limited.any() else 0.0,
    )


def pieces(values: Floats | Ints, digits: int = 3) -> tuple[Piece, ...]:
    """Return the distribution of values as pieces, which are ranges with weights.

    The weights add up to about a million. Values are cut into ranges with equal counts. A range from a to b is cut
    again at its mean m. The part below m gets (b - m) / (b - a) of the weight, which preserves the mean. Bounds are
    rounded to `digits` digits.
    """
    ordered = np.sort(values.astype(np.float64))
    count = max(1, min(_MOST_PIECES, len(ordered) // _PER_PIECE))
    cuts = [len(ordered) * step // count for step in range(count + 1)]
    found: dict[tuple[float, float], int] = {}
    for begin, end in pairwise(cuts):
        part = ordered[begin:end]
        low, high = _round(float(part[0]), digits), _round(float(part[-1]), digits)
        middle = min(max(_round(math.fsum(part.tolist()) / len(part), digits), low), high)
        mass = (end - begin) * _WHOLE // len(ordered)
        below = mass if low == high else round(mass * (high - middle) / (high - low))
        for piece, weight in (((low, middle), below), ((middle, high), mass - below)):
            if weight:
                found[piece] = found.get(piece, 0) + weight
    return tuple((low, high, weight) for (low, high), weight in found.items())


def _round(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}") if value else 0.0


def _classes(size: Ints) -> Ints:
    """Return each job's size class.

    The classes are one unit, then powers of two. Small classes are merged.
    """
    octave = np.frexp(size.astype(np.float64))[1] - 1
    counts = np.bincount(octave)
    groups: list[list[int]] = [[0]] if counts[0] else []
    few: list[int] = []
    for power in range(1, len(counts)):
        few.append(power)
        if counts[few].sum() >= _CLASS_JOBS:
            groups.append(few)
            few = []
    if counts[few].sum():
        if groups and groups[-1] != [0]:
            groups[-1] += few
        else:
            groups.append(few)
    place = np.zeros(len(counts), dtype=np.int64)
    for number, powers in enumerate(groups):
        place[powers] = number
    found: Ints = place[octave]
    return found


def _size_class(jobs: Workload, campaigns: Campaigns, inside: NDArray[np.bool_]) -> ModelClass:
    """Fit a class of the model to the jobs that ``inside``, shape (jobs,), selects."""
    users: tuple[tuple[int, int], ...] = ()
    if campaigns.users:
        counts = np.bincount(campaigns.user[inside])
        users = tuple((number + 1, count) for number, count in enumerate(counts.tolist()) if count)
    return ModelClass(
        weight=int(np.count_nonzero(inside)),
        sizes=_sizes(jobs.size[inside]),
        campaigns=pieces(campaigns.lengths[inside[campaigns.begins]]),
        runtimes=pieces(jobs.runtime[inside]),
        users=users,
    )


def _sizes(size: Ints) -> tuple[Piece, ...]:
    """Return the distribution of job sizes as pieces.

    Each frequent size is a piece of its own.
    """
    values, counts = np.unique(size, return_counts=True)
    often = counts >= max(3, _SIZE_SHARE * len(size))
    alone = [
        (float(value), float(value), int(count)) for value, count in zip(values[often], counts[often], strict=True)
    ]
    rest = size[np.isin(size, values[~often])]
    if not len(rest):
        return tuple(alone)
    scale = len(rest) / _WHOLE
    others = [(low, high, max(1, round(weight * scale))) for low, high, weight in pieces(rest, _EXACT)]
    return (*alone, *others)


def _hours(begins: Workload) -> tuple[int, ...]:
    """Return a weight for each hour of the week: how often campaigns begin in it.

    The week begins on Monday 0:00, or at time 0 if the log has no dates.

    The weights of hours are smoothed towards the product of their day's and their hour's share. In a log of a few
    weeks, all days get equal weights, because one busy day would dominate.
    """
    grid = arrivals_grid(begins, zone_of(begins, None))
    counts = np.bincount(hours_of_week(begins.submit), minlength=168).reshape(7, 24) if grid is None else grid.counts
    if begins.submit[-1] - begins.submit[0] < _LEAST_WEEKS * 168 * 3600:
        counts = np.tile(counts.sum(axis=0) / 7, (7, 1))
    days, hours = counts.sum(axis=1) + _PRIOR, counts.sum(axis=0) + _PRIOR
    expected = np.outer(days / days.sum(), hours / hours.sum())
    weights = counts + _PRIOR * 168 * expected
    return tuple(np.round(weights / weights.sum() * _WHOLE).astype(np.int64).ravel().tolist())


def _repeat(jobs: Workload, campaigns: Campaigns, place: Ints) -> float:
    """Return the probability that a job repeats its predecessor's run time.

    The predecessor is the previous job of the same campaign. The share of successive jobs with `alike` run times is
    corrected for coincidences. The chance of a coincidence is the share of jobs in the size class that have an `alike`
    run time.

    Args:
        place: size class of each job, shape (jobs,).
    """
    before, after = campaigns.pairs()
    if not len(before):
        return 0.0
    chances = np.zeros(len(jobs))
    for number in range(int(place.max()) + 1):
        rows = np.flatnonzero(place == number)
        runtime = jobs.runtime[rows]
        ordered = np.sort(runtime)
        low = np.searchsorted(ordered, runtime * ALIKE, side="left")
        high = np.searchsorted(ordered, runtime / ALIKE, side="right")
        chances[rows] = (high - low) / len(rows)
    same = int(np.count_nonzero(alike(jobs.runtime[before], jobs.runtime[after]))) / len(before)
    chance = math.fsum(chances[after].tolist()) / len(after)
    return 0.0 if chance >= 1 else round(max(0.0, (same - chance) / (1 - chance)), 4)


def _gaps(jobs: Workload, campaigns: Campaigns) -> tuple[GapBand, ...]:
    """Return the times between successive jobs of a campaign.

    They are given by the campaign's number of jobs. Bands with few of these times are merged.
    """
    before, after = campaigns.pairs()
    gaps = jobs.submit[after] - jobs.submit[before]
    lengths = campaigns.lengths
    length = np.repeat(lengths, lengths - 1)
    found, least = [], 0.0
    for bound in _LENGTHS:
        inside = (length >= least) & (length < bound)
        rest = int(np.count_nonzero(length >= bound))
        if rest and min(int(np.count_nonzero(inside)), rest) < _CLASS_JOBS:
            continue
        if inside.any():
            found.append(GapBand(below=bound if rest else math.inf, seconds=pieces(gaps[inside])))
        least = bound
    return tuple(found) or (GapBand(below=math.inf, seconds=((0.0, 0.0, 1),)),)


def _requests(runtime: Floats, walltime: Floats) -> tuple[RequestBand, ...]:
    """Return the share of the requested time that jobs use, by bands of run time.

    Bands with few jobs are merged.
    """
    found, left = [], np.ones(len(runtime), dtype=np.bool_)
    for bound, _ in RUNTIMES:
        inside = left & (runtime < bound)
        rest = int(np.count_nonzero(left & ~inside))
        if rest and min(int(np.count_nonzero(inside)), rest) < _CLASS_JOBS:
            continue
        if inside.any():
            found.append(
                RequestBand(below=bound if rest else math.inf, used=pieces(runtime[inside] / walltime[inside], 4))
            )
            left &= ~inside
    return tuple(found)


def _rounds(walltime: Floats) -> tuple[tuple[float, ...], float]:
    """Return the most common requested times (s).

    Also return the share of jobs that request one of them. Only whole minutes count.
    """
    values, counts = np.unique(walltime, return_counts=True)
    often = (counts >= max(5, _ROUND_SHARE * len(walltime))) & (values % 60 == 0)
    if not often.any():
        return (), 0.0
    return tuple(values[often].tolist()), round(int(counts[often].sum()) / len(walltime), 4)


def planned(
    model: WorkloadModel, *, jobs: int | None = None, duration: str | None = None, load: float | None = None
) -> WorkloadModel:
    """Return the model, adjusted to a number of jobs, a duration and an average load.

    Any two of these imply the third. If only the number of jobs or the duration is given, the model's rate of jobs is
    kept. If only the load is given, the model's duration is kept. If all three are given, the model's distributions
    change, see `with_area`.
    """
    seconds = None if duration is None else parse_seconds(duration, "duration")
    rate, work = model.jobs / model.seconds, None if load is None else load * model.machine_size
    if jobs is not None and seconds is not None and work is not None:
        model = with_area(model, work * seconds / jobs)
    elif work is not None and jobs is not None:
        seconds = float(math.ceil(jobs * model.area / work))
    elif work is not None:
        seconds = model.seconds if seconds is None else seconds
        jobs = round(work * seconds / model.area)
    elif jobs is None:
        jobs = model.jobs if seconds is None else round(rate * seconds)
    if seconds is None:
        seconds = model.seconds if jobs == model.jobs else jobs / rate
    if not 1 <= jobs <= MOST_JOBS:
        expected, found = f"from 1 to {MOST_JOBS:,} jobs", f"{jobs:,}"
        raise ModelError("there would be no jobs, or too many", where=model.name, expected=expected, found=found)
    return msgspec.structs.replace(model, jobs=jobs, duration=duration or f"{decimal_text(seconds)}s")


def with_serial(model: WorkloadModel, share: float) -> WorkloadModel:
    """Return the model, changed so that a fraction ``share`` of its jobs use one unit."""
    if not 0 < model.serial < 1:
        raise ModelError("the share of jobs of one unit cannot change", where=model.name, found=f"{model.serial:.0%}")
    groups = {flag: sum(one.weight for one in model.classes if one.serial is flag) for flag in (True, False)}
    aims = {True: share, False: 1 - share}
    return _weighted(model, lambda one: aims[one.serial] * one.weight / groups[one.serial])


def with_area(model: WorkloadModel, area: float) -> WorkloadModel:
    """Return the model, changed so that its jobs use ``area`` unit-seconds on average.

    The share of jobs of one unit stays. The probability of each size and run time is multiplied by (size x run time) to
    a power, which is the same for all. The results are scaled separately for jobs of one unit and others. Among
    distributions with the same mean of log(size x run time), the result is the nearest to the model (Kullback-Leibler).
    """
    serial = model.serial
    low, high = _LEAST_BEND, _MOST_BEND
    least, most = _bent(model, low, serial).area, _bent(model, high, serial).area
    if not least < area < most:
        expected = f"from {least:.4g} to {most:.4g} unit-seconds a job"
        hint = "Give two of --jobs, --duration and --load: the third follows."
        raise ModelError(
            "the model has no such jobs", where=model.name, expected=expected, found=f"{area:.4g}", hint=hint
        )
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _bent(model, middle, serial).area < area else (low, middle)
    return _bent(model, (low + high) / 2, serial)


def _bent(model: WorkloadModel, power: float, serial: float) -> WorkloadModel:
    """Return the model with each weight multiplied by a power of its area.

    The area is size x run time. ``power`` is the exponent. ``serial`` is the share of jobs of one unit in the result.
    """
    scale = model.area
    classes, masses = [], []
    for one in model.classes:
        size = mean(one.sizes)
        total = sum(weight for _, _, weight in one.runtimes)
        bent = [
            weight / total * (max(size * (low + high) / 2, 1.0) / scale) ** power for low, high, weight in one.runtimes
        ]
        mass = math.fsum(bent)
        masses.append(one.weight * mass)
        runtimes = tuple(
            (low, high, round(share / mass * _WHOLE)) for (low, high, _), share in zip(one.runtimes, bent, strict=True)
        )
        classes.append(msgspec.structs.replace(one, runtimes=runtimes))
    aims = {True: serial, False: 1 - serial}
    groups = {
        flag: math.fsum(mass for one, mass in zip(classes, masses, strict=True) if one.serial is flag)
        for flag in (True, False)
    }
    shares = {id(one): aims[one.serial] * mass / groups[one.serial] for one, mass in zip(classes, masses, strict=True)}
    return _weighted(msgspec.structs.replace(model, classes=tuple(classes)), lambda one: shares[id(one)])


def _weighted(model: WorkloadModel, share: Callable[[ModelClass], float]) -> WorkloadModel:
    """Return the model with new class weights.

    ``share`` returns the share of jobs that a class gets.
    """
    classes = tuple(msgspec.structs.replace(one, weight=round(share(one) * _WHOLE)) for one in model.classes)
    return msgspec.structs.replace(model, classes=classes)
