"""Draw jobs from a model: first campaigns, then their jobs.

As in `pipistrelle.traces.generator`, equal arguments give equal bytes on any machine, because drawing uses only
additions, multiplications, divisions and comparisons.
"""

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.likeness.fitting import planned, with_area, with_serial
from pipistrelle.models.likeness.model import MOST_JOBS, ModelError, Piece, WorkloadModel, mean
from pipistrelle.traces.errors import out_of_range
from pipistrelle.traces.generator import EPOCH, FIRST, seeded, synthetic_header, weekly_times
from pipistrelle.traces.workload import Floats, Ints, Workload, decimal_text

#: random generators; drawing more jobs leaves earlier jobs unchanged
_CAMPAIGNS, _STARTS, _JOBS = range(3)
_LEAST_LOAD, _MOST_LOAD = 0.01, 100.0
#: largest relative difference of a repeated run time
_NEAR: Final = 0.02
#: relative tolerance of the load, and number of attempts to reach it
_CLOSE, _TRIES = 0.005, 12


def generate_like(
    model: WorkloadModel,
    seed: int,
    *,
    jobs: int | None = None,
    duration: str | None = None,
    load: float | None = None,
    serial: float | None = None,
) -> Workload:
    """Return jobs drawn from a model.

    ``jobs``, ``duration`` and ``load`` combine as in `pipistrelle.models.likeness.fitting.planned`. The load is that of
    the drawn jobs, not the model's mean. It is met to within 1 %, or to within the work of one campaign.

    Args:
        duration: how long jobs are submitted, such as "1y".
        load: offered load in that time, from 0.01 to 100.
        serial: share of jobs of one unit, between 0 and 1; None: the model's share.
    """
    _check(seed, load, serial)
    if serial is not None:
        model = with_serial(model, serial)
    told = planned(model, jobs=jobs, duration=duration, load=load)
    work = None if load is None else load * model.machine_size
    if jobs is not None and duration is not None and work is not None:
        told = _bent_to(told, seed, work * told.seconds)
    if jobs is None and work is not None:
        drawn = _drawn_until(told, seed, work * told.seconds)
    else:
        drawn = _drawn(told, seed, told.jobs)
    seconds = told.seconds
    if jobs is not None and work is not None and duration is None:
        seconds = float(np.ceil((drawn.size * drawn.runtime).sum() / work))
    return _submitted(model, drawn, seed, seconds)


def _check(seed: int, load: float | None, serial: float | None) -> None:
    rules = (
        ("seed", seed, 0, 2**64 - 1),
        ("load", load, _LEAST_LOAD, _MOST_LOAD),
        ("share of jobs of one unit", serial, 1e-6, 1 - 1e-6),
    )
    for name, value, least, most in rules:
        if value is not None and not least <= value <= most:
            where = f"{name} of the workload to generate"
            raise out_of_range("value", where, f"a number from {least:g} to {most:g}", f"{value:g}")


class Draws:
    """Maps random numbers between 0 and 1 to values of a distribution.

    The distribution is given as pieces: ranges with weights.
    """

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        self._low = np.array([low for low, _, _ in pieces])
        self._high = np.array([high for _, high, _ in pieces])
        self._weight = np.array([weight for _, _, weight in pieces], dtype=np.float64)
        self._ends = np.cumsum(self._weight)

    def places(self, draw: Floats) -> Ints:
        """Return the index of the piece that each random number below 1 selects.

        A piece is a range of values with a weight.
        """
        found = np.searchsorted(self._ends, draw * self._ends[-1], side="right")
        places: Ints = np.minimum(found, int(np.flatnonzero(self._weight)[-1])).astype(np.int64)
        return places

    def within(self, place: Ints, draw: Floats) -> Floats:
        """Return one value from each of the pieces whose indices are ``place``.

        A piece is a range of values with a weight. A random number ``draw`` from 0 to 1 selects the position in the
        range.
        """
        found: Floats = self._low[place] + draw * (self._high[place] - self._low[place])
        return found

    def kept(self, place: Ints, value: Floats) -> Floats:
        """Return each value, limited to the bounds of the piece with the index ``place``.

        A piece is a range of values with a weight.
        """
        return np.clip(value, self._low[place], self._high[place])

    def values(self, draw: Floats) -> Floats:
        """Return values of the whole distribution, for random numbers below 1."""
        place = self.places(draw)
        before = self._ends[place] - self._weight[place]
        within = (draw * self._ends[-1] - before) / self._weight[place]
        return self.within(place, np.clip(within, 0.0, 1.0))


def _whole(values: Floats) -> Ints:
    """Round values to whole numbers, at least 1."""
    return np.maximum(np.floor(values + 0.5), 1.0).astype(np.int64)


def _bent_to(model: WorkloadModel, seed: int, area: float) -> WorkloadModel:
    """Return the model, adjusted so that drawn jobs use `area` unit-seconds.

    The jobs are drawn with this seed. The result is approximate.
    """
    aim, nearest, best = area / model.jobs, math.inf, model
    for _ in range(_TRIES):
        found = with_area(model, aim)
        drawn = _drawn(found, seed, model.jobs)
        ratio = area / float((drawn.size * drawn.runtime).sum())
        if abs(ratio - 1) < nearest:
            nearest, best = abs(ratio - 1), found
        if nearest <= _CLOSE:
            break
        aim *= math.sqrt(ratio)  # damped, because the adjusted model draws other campaigns
    return best


def _drawn_until(model: WorkloadModel, seed: int, area: float) -> Workload:
    """Draw jobs until their total is `area` unit-seconds, and return them."""
    count = max(16, round(1.1 * area / model.area))
    while True:
        if count > 4 * MOST_JOBS:
            raise ModelError("there would be too many jobs", where=model.name, expected=f"{MOST_JOBS:,} at most")
        drawn = _drawn(model, seed, count)
        ends = np.cumsum(drawn.size * drawn.runtime)
        if ends[-1] >= area:
            return drawn.select(range(max(1, int(np.searchsorted(ends, area)))))
        count *= 2


def _drawn(model: WorkloadModel, seed: int, jobs: int) -> Workload:
    """Return `jobs` random jobs.

    Each submit time counts from the start of the job's campaign.
    """
    kind, user, length = _campaigns(model, seed, jobs)
    campaign = np.repeat(np.arange(len(length)), length)[:jobs]
    begins = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(length)))[campaign]
    draws = seeded(seed, _JOBS, 0).random((jobs, 7))
    rows = np.arange(jobs)
    fresh = (rows == begins) | (draws[:, 0] >= model.repeat)
    like = np.maximum.accumulate(np.where(fresh, rows, 0))
    size = np.zeros(jobs, dtype=np.int64)
    runtime = np.zeros(jobs)
    for number, one in enumerate(model.classes):
        own = np.flatnonzero(kind[campaign] == number)
        size[own] = _whole(Draws(one.sizes).values(draws[begins[own], 1]))
        runtimes, first = Draws(one.runtimes), like[own]
        place = runtimes.places(draws[first, 2])
        near = np.where(fresh[own], 1.0, 1.0 + _NEAR * (2.0 * draws[own, 3] - 1.0))
        runtime[own] = _whole(runtimes.kept(place, near * runtimes.within(place, draws[first, 3])))
    offset = np.cumsum(np.where(rows == begins, 0.0, _gaps(model, length[campaign], draws[:, 4])))
    columns = {"allocated": size, "status": np.ones(jobs, dtype=np.int64), "campaign": campaign}
    if any(one.users for one in model.classes):
        columns["user"] = user[campaign]
    return Workload(
        name=f"like-{model.name}",
        source="generator",
        ids=[""] * jobs,
        submit=offset - offset[begins],
        size=size,
        walltime=_walltimes(model, runtime, like, draws[:, 5], draws[:, 6]),
        runtime=runtime,
        columns=columns,
        machine_size=model.machine_size,
    )


def _gaps(model: WorkloadModel, length: Ints, draw: Floats) -> Floats:
    """Return the time (s) from each job's predecessor to its submission.

    The predecessor is the previous job in the same campaign. ``length`` is the number of jobs in each job's campaign.
    """
    band = np.searchsorted([one.below for one in model.gaps], length, side="right").clip(max=len(model.gaps) - 1)
    gaps = np.zeros(len(length))
    for number, one in enumerate(model.gaps):
        own = np.flatnonzero(band == number)
        gaps[own] = np.floor(Draws(one.seconds).values(draw[own]) + 0.5)
    return gaps


def _campaigns(model: WorkloadModel, seed: int, jobs: int) -> tuple[Ints, Ints, Ints]:
    """Return the classes, users and lengths of campaigns with `jobs` jobs.

    User -1 is unknown.
    """
    chances = np.cumsum([one.weight / mean(one.campaigns) for one in model.classes])
    lengths = [Draws(one.campaigns) for one in model.classes]
    rng, parts, held = seeded(seed, _CAMPAIGNS, 0), [], 0
    while held < jobs:
        draws = rng.random((4096, 3))
        kind = np.searchsorted(chances, draws[:, 0] * chances[-1], side="right").clip(max=len(chances) - 1)
        user, length = np.full(len(kind), -1, dtype=np.int64), np.zeros(len(kind), dtype=np.int64)
        for number, one in enumerate(model.classes):
            own = np.flatnonzero(kind == number)
            length[own] = _whole(lengths[number].values(draws[own, 1]))
            if one.users:
                ends = np.cumsum([weight for _, weight in one.users], dtype=np.float64)
                place = np.searchsorted(ends, draws[own, 2] * ends[-1], side="right").clip(max=len(ends) - 1)
                user[own] = np.array([number for number, _ in one.users])[place]
        parts.append((kind, user, length))
        held += int(length.sum())
    kind, user, length = (np.concatenate(column) for column in zip(*parts, strict=True))
    needed = int(np.searchsorted(np.cumsum(length), jobs)) + 1
    return kind[:needed], user[:needed], length[:needed]


def _walltimes(model: WorkloadModel, runtime: Floats, like: Ints, draw: Floats, rounding: Floats) -> Floats:
    """Return requested times (s) for run times (s).

    A run time is divided by a random share: the part of the requested time that the job uses. Many results are rounded
    to common values. A share above 1 means that the job runs longer than it requested.

    Args:
        like: for each job, the row of an earlier job; the request of the earlier one is repeated if it is long enough.
        draw, rounding: random numbers below 1 that choose the share, and whether to round.
    """
    if not model.requests:
        return np.full(len(runtime), np.inf)
    bounds = np.array([band.below for band in model.requests])
    band = np.searchsorted(bounds, runtime, side="right").clip(max=len(bounds) - 1)
    used = np.ones(len(runtime))
    for number, one in enumerate(model.requests):
        own = np.flatnonzero(band == number)
        used[own] = Draws(one.used).values(draw[own])
    asked = np.maximum(np.ceil(runtime / used), 1.0)
    if model.longest:
        asked = np.minimum(asked, np.where(used <= 1, np.maximum(model.longest, runtime), model.longest))
    if model.rounds:
        rounds = np.array(model.rounds)
        above = np.searchsorted(rounds, asked, side="left").clip(max=len(rounds) - 1)
        below = np.maximum(above - 1, 0)
        nearest = np.where(asked - rounds[below] < rounds[above] - asked, rounds[below], rounds[above])
        enough = rounds[np.searchsorted(rounds, runtime, side="left").clip(max=len(rounds) - 1)]
        nearest = np.where((used <= 1) & (nearest < runtime), enough, nearest)
        rounded = (rounding < model.rounded) & ((used > 1) | (nearest >= runtime))
        asked = np.where(rounded, nearest, asked)
    kept: NDArray[np.bool_] = (used[like] <= 1) & (asked[like] >= runtime)
    return np.where(kept, asked[like], asked)


def _submitted(model: WorkloadModel, drawn: Workload, seed: int, seconds: float) -> Workload:
    """Draw when campaigns begin, and return the jobs sorted by submit time.

    Submit times after ``seconds`` wrap around to the start of the workload. Without wrapping, the first hours would
    lack jobs of campaigns that began before time 0.
    """
    campaign = drawn.columns["campaign"]
    draws = seeded(seed, _STARTS, 0).random(int(campaign[-1]) + 1)
    starts = weekly_times(draws, np.array(model.hours, dtype=np.float64), seconds, EPOCH + FIRST)
    times = np.floor(starts)[campaign] + drawn.submit
    whole = math.floor(seconds) + 1.0
    submit = FIRST + (times - np.floor(times / whole) * whole)
    order = np.argsort(submit, kind="stable")
    jobs = drawn.select(order)
    note = f"synthetic, by pipistrelle: like {model.name}, {len(jobs)} jobs, seed {seed}, {decimal_text(seconds)} s"
    return replace(
        jobs,
        ids=list(map(str, range(1, len(jobs) + 1))),
        submit=submit[order],
        columns={name: column for name, column in jobs.columns.items() if name != "campaign"},
        epoch=EPOCH,
        timezone="UTC",
        header=synthetic_header(len(jobs), model.machine_size, EPOCH, [note]),
    )
