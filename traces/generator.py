"""Generate random workloads from a seed.

The same arguments give the same bytes on any machine with any numpy version. The only random source is PCG64's uniform
doubles. All calculations use operations that IEEE 754 defines to the last bit. Logarithms and exponentials are avoided
because their last bit differs between libraries.
"""

import math
from collections.abc import Sequence

import numpy as np

from pipistrelle.traces.errors import out_of_range
from pipistrelle.traces.workload import Floats, Ints, Workload, decimal_text

#: default Unix time (s) of time 0: Monday 5 January 2026, 00:00 UTC
EPOCH = 1767571200.0

#: shortest run time (s) and number of doublings; run times are log-uniform by octaves
RUNTIME_MIN, RUNTIME_DOUBLINGS = 20, 11

#: requested times (s) that users choose
ROUND_TIMES = tuple(60 * minutes for minutes in (5, 10, 15, 30, 60, 120, 180, 240, 360, 480, 720, 1080, 1440))

SERIAL_SHARE, POWER_SHARE = 0.25, 0.75  # share of serial jobs; share of powers of two in parallel jobs
UNDER_SHARE, EXACT_SHARE = 0.04, 0.10  # shares of jobs whose requested time is too short, or exact
USERS, GROUPS = 48, 6

#: submit time (s) of the first job; some Batsim clients cannot handle a job that starts at time 0
FIRST = 1.0

_HOUR, _WEEK = 3600, 168 * 3600
_MONDAY = 3 * 86400  # seconds from Monday to Unix time 0, which is a Thursday
_DAY_WEIGHTS = (5, 4, 3, 3, 3, 4, 5, 8, 14, 20, 23, 22, 19, 21, 24, 23, 21, 17, 13, 11, 10, 9, 8, 6)  # of each hour
_WEEK_WEIGHTS = (10, 11, 11, 11, 9, 4, 4)  # arrival weights by day, from Monday

_MOST = 10_000_000  # most jobs and most units; areas stay below 2**63 unit-seconds


def seeded(seed: int, *key: int) -> np.random.Generator:
    """Return a random generator; generators of one seed with different keys are independent.

    Args:
        key: whole numbers, such as the number of a workload.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def synthetic_header(jobs: int, units: int, epoch: float, note: Sequence[str]) -> dict[str, str]:
    """Return the header of a synthetic workload, whose time zone is UTC.

    Args:
        units: the size of the machine.
        epoch: the Unix time of time 0, in seconds.
        note: the lines of the directive ``Note``.
    """
    return {
        "Version": "2.2",
        "Computer": "none: a synthetic workload",
        "MaxJobs": str(jobs),
        "MaxRecords": str(jobs),
        "UnixStartTime": decimal_text(epoch),
        "TimeZoneString": "UTC",
        "MaxProcs": str(units),
        "Note": "\n".join(note),
    }


def generate(
    *, jobs: int, units: int, seed: int, load: float = 0.85, name: str = "generated", epoch: float = EPOCH
) -> Workload:
    """Return a synthetic workload of `jobs` jobs for a machine of `units` units.

    The span of submissions follows from `load`. Arrivals are a Poisson process whose rate depends on the hour of the
    week (UTC). The first arrival, the last arrival and the number of arrivals are fixed. The other arrivals are
    independent draws from the rate's distribution. All times are whole seconds.

    Args:
        load: offered load, sum(size x run time) / (units x span), from 0.01 to 100.
        epoch: Unix time (s) of time 0, which sets the first hour and weekday.
    """
    _check(jobs, units, seed, load, epoch)
    uniform = seeded(seed).random((7, jobs))
    size = _sizes(uniform[0], uniform[1], uniform[2], units)
    runtime = _ladder(uniform[3] * RUNTIME_DOUBLINGS, [RUNTIME_MIN << step for step in range(RUNTIME_DOUBLINGS + 1)])
    walltime = _estimates(uniform[4], runtime)
    user = _users(uniform[5])
    span = float(int((size * runtime).sum())) / (units * load)
    submit = np.floor(_arrivals(np.sort(uniform[6]), span, epoch))
    note = (
        f"synthetic, by pipistrelle: {jobs} jobs, {units} units, seed {seed}, load {decimal_text(load)}",
        "arrivals follow cycles of day and week, in UTC; requested times cluster on round values",
    )
    return Workload(
        name=name,
        source="generator",
        ids=list(map(str, range(1, jobs + 1))),
        submit=submit,
        size=size,
        walltime=walltime.astype(np.float64),
        runtime=runtime.astype(np.float64),
        columns={
            "allocated": size.copy(),
            "status": np.ones(jobs, dtype=np.int64),
            "user": user,
            "group": (user - 1) % GROUPS + 1,
        },
        machine_size=units,
        epoch=float(epoch),
        timezone="UTC",
        header=synthetic_header(jobs, units, epoch, note),
    )


def _check(jobs: int, units: int, seed: int, load: float, epoch: float) -> None:
    rules: tuple[tuple[str, float, float, float], ...] = (
        ("jobs", jobs, 1, _MOST),
        ("units", units, 1, _MOST),
        ("seed", seed, 0, 2**64 - 1),
        ("load", load, 0.01, 100.0),
        ("epoch", epoch, 0, 2**40),
    )
    for name, value, least, most in rules:
        if not least <= value <= most:
            where, expected = f"{name} of the workload to generate", f"a number from {least:,} to {most:,}"
            raise out_of_range("value", where, expected, str(value), "Choose a value in that range.")


def _ladder(position: Floats, rungs: list[int]) -> Ints:
    """Return values interpolated linearly in the list `rungs`, rounded down.

    Position 1.5 is halfway from item 1 to item 2. If each rung is twice the one before, uniform positions give every
    octave the same share.
    """
    marks = np.array(rungs, dtype=np.float64)
    step = np.floor(position).astype(np.int64)
    low = marks[step]
    return np.floor(low + (position - step) * (marks[step + 1] - low)).astype(np.int64)


def _sizes(kind: Floats, shape: Floats, octave: Floats, units: int) -> Ints:
    """Return job sizes, shape (n,); most are small.

    The jobs are serial, have a power of two of units, or have another size. ``kind``, ``shape`` and ``octave`` are
    uniform random numbers from 0 to 1, shape (n,). ``kind`` selects serial jobs, ``shape`` selects powers of two, and
    ``octave`` gives the size.
    """
    powers = units.bit_length() - 1  # 2**powers <= units
    if powers == 0:
        return np.ones(len(kind), dtype=np.int64)
    small = octave * octave
    rungs = [1 << power for power in range(powers + 1)]
    power_of_two = np.array(rungs, dtype=np.int64)[np.floor(small * powers).astype(np.int64) + 1]
    between = _ladder(small * powers, [*rungs[:-1], units])
    parallel = np.where(shape < POWER_SHARE, power_of_two, np.maximum(between, 2))
    return np.where(kind < SERIAL_SHARE, 1, parallel)


def _estimates(draw: Floats, runtime: Ints) -> Ints:
    """Return requested times (s), shape (n,): too short, exact, or rounded up."""
    rounds = np.array(ROUND_TIMES, dtype=np.int64)
    most = len(rounds) - 1
    below = np.searchsorted(rounds, runtime, side="left") - 1
    exact = np.maximum(runtime, rounds[0])
    # the rest of the draw is uniform again: jobs request up to five times their run time, most far less
    slack = (draw - (UNDER_SHARE + EXACT_SHARE)) / (1.0 - (UNDER_SHARE + EXACT_SHARE))
    wanted = runtime * (1.0 + 4.0 * (slack * slack))
    above = rounds[np.minimum(np.searchsorted(rounds, wanted, side="left"), most)]
    under = np.where(below >= 0, rounds[np.maximum(below, 0)], rounds[0])
    return np.where(draw < UNDER_SHARE, under, np.where(draw < UNDER_SHARE + EXACT_SHARE, exact, above))


def _users(draw: Floats) -> Ints:
    """Return user numbers from 1, shape (n,).

    The share of user k in the jobs is proportional to 1/k (Zipf).
    """
    edges = np.cumsum([1_000_000 // rank for rank in range(1, USERS + 1)])
    return np.searchsorted(edges, np.floor(draw * int(edges[-1])).astype(np.int64), side="right").astype(np.int64) + 1


def _arrivals(draw: Floats, span: float, epoch: float) -> Floats:
    """Return arrival times (s) from sorted uniform random numbers.

    ``draw`` has these numbers; the result has the same shape. The first arrival is at `FIRST`, the last one ``span`` s
    later. ``epoch`` is the Unix time (s) of time 0.
    """
    if len(draw) == 1:
        return np.full(1, FIRST, dtype=np.float64)
    rate = np.array([day * hour for day in _WEEK_WEIGHTS for hour in _DAY_WEIGHTS], dtype=np.float64)
    share = (draw - draw[0]) / (draw[-1] - draw[0])
    submit: Floats = FIRST + weekly_times(share, rate, span, epoch + FIRST)
    return submit


def weekly_times(share: Floats, rate: Floats, span: float, epoch: float) -> Floats:
    """Return the times (s) at which given shares of all arrivals have happened.

    The function inverts the cumulative rate, which is linear within each hour.

    Args:
        share: shares from 0 to 1.
        rate: weight of each hour of a week from Monday 0:00 UTC, whole numbers, shape (168,).
        span: the last time (s); the first is 0.
        epoch: Unix time (s) of time 0.
    """
    edges = np.concatenate((np.zeros(1), np.cumsum(rate)))
    week = float(edges[-1])
    start = math.fmod(epoch + _MONDAY, _WEEK)

    def cumulative(time: float) -> float:
        weeks, rest = divmod(time, _WEEK)
        hour = min(int(rest // _HOUR), 167)
        return weeks * week + float(edges[hour]) + (rest - hour * _HOUR) / _HOUR * float(rate[hour])

    first = cumulative(start)
    target = first + share * (cumulative(start + span) - first)
    weeks = np.floor(target / week)
    rest = target - weeks * week
    hour = np.clip(np.searchsorted(edges, rest, side="right") - 1, 0, 167)
    time = weeks * _WEEK + hour * _HOUR + (rest - edges[hour]) / np.maximum(rate[hour], 1.0) * _HOUR
    times: Floats = np.clip(time - start, 0.0, span)
    return times
