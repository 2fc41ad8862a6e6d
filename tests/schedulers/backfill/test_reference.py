"""Every policy against a reference that is naive on purpose: start by start, unit by unit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.schedulers.catalogue.parts import compose

RunPolicy = Callable[..., Any]


@dataclass
class NaiveJob:
    """A job of the reference."""

    number: int
    submit: float
    size: int
    runtime: float
    walltime: float
    start: float = inf


Choose = Callable[[float, list[NaiveJob], list[NaiveJob], int], NaiveJob | None]


def reference(
    units: int, rows: list[tuple[float, int, float, float]], choose: Choose, rank: Callable[[NaiveJob], float]
) -> list[tuple[int, float, str]]:
    """Return every start of a simulation that recomputes everything at every step."""
    jobs = [NaiveJob(number, *row) for number, row in enumerate(rows) if row[1] <= units]
    starts, held = [], dict[int, set[int]]()
    to_come = sorted(jobs, key=lambda job: (job.submit, job.number))
    order = {job.number: place for place, job in enumerate(to_come)}
    waiting: list[NaiveJob] = []
    running: list[NaiveJob] = []

    def end_of(job: NaiveJob) -> float:
        return job.start + min(job.runtime, job.walltime)

    while to_come or running:
        now = min([job.submit for job in to_come] + [end_of(job) for job in running])
        for job in [job for job in running if end_of(job) == now]:
            running.remove(job)
            del held[job.number]
        waiting += [job for job in to_come if job.submit == now]
        to_come = [job for job in to_come if job.submit != now]
        while True:
            waiting.sort(key=lambda job: (rank(job), order[job.number]))
            free = sorted(set(range(units)) - set().union(*held.values()))
            chosen = choose(now, waiting, running, len(free))
            if chosen is None:
                break
            waiting.remove(chosen)
            running.append(chosen)
            chosen.start = now
            held[chosen.number] = set(free[: chosen.size])
            starts.append((chosen.number, now, text_of(free[: chosen.size])))
    assert not waiting
    return starts


def text_of(units: list[int]) -> str:
    """Return ascending unit numbers as intervals."""
    pieces, first = [], units[0]
    for unit, after in zip(units, [*units[1:], -1], strict=True):
        if after != unit + 1:
            pieces.append(str(first) if first == unit else f"{first}-{unit}")
            first = after
    return " ".join(pieces)


def strictly_in_order(now: float, waiting: list[NaiveJob], running: list[NaiveJob], free: int) -> NaiveJob | None:
    """Choose the first in the queue, if it fits."""
    return waiting[0] if waiting and waiting[0].size <= free else None


def first_that_fits(now: float, waiting: list[NaiveJob], running: list[NaiveJob], free: int) -> NaiveJob | None:
    """Choose the first in the queue that fits."""
    return next((job for job in waiting if job.size <= free), None)


def easy(*, shortest_first: bool) -> Choose:
    """Return EASY's choice, from the definition: docs/reference/scheduling.md."""

    def choose(now: float, waiting: list[NaiveJob], running: list[NaiveJob], free: int) -> NaiveJob | None:
        if not waiting:
            return None
        first = waiting[0]
        if first.size <= free:
            return first

        def free_at(time: float) -> int:
            return free + sum(job.size for job in running if job.start + job.walltime <= time)

        times = sorted(job.start + job.walltime for job in running)
        shadow = next((time for time in times if free_at(time) >= first.size), inf)
        extra = max(free_at(shadow) - first.size, 0)
        able = [job for job in waiting[1:] if job.size <= free and (now + job.walltime <= shadow or job.size <= extra)]
        if shortest_first:
            able.sort(key=lambda job: job.walltime)
        return able[0] if able else None

    return choose


CHOICES: dict[str, Choose] = {
    "none": strictly_in_order,
    "firstfit": first_that_fits,
    "easy": easy(shortest_first=False),
    "easy-sjbf": easy(shortest_first=True),
}
RANKS: dict[str, Callable[[NaiveJob], float]] = {"fcfs": lambda job: job.submit, "sjf": lambda job: job.walltime}
#: two simultaneous arrivals: the second is first by walltime, and only one fits
TWO_ARRIVE = [(0.0, 3, 10.0, 10.0), (0.5, 4, 1.0, 1.0), (1.0, 1, 3.0, 3.0), (1.0, 1, 2.0, 2.0)]
#: an arrival that becomes the first by walltime, and fits
ONE_PASSES = [(0.0, 3, 10.0, 10.0), (0.5, 4, 3.0, 3.0), (1.0, 1, 2.0, 2.0)]
COMPOSED = [(order, backfill) for order in RANKS for backfill in CHOICES]

#: many equal submit times and ends; run times equal to the walltime, and above it: killed there
rows = st.lists(
    st.tuples(
        st.integers(0, 8).map(float),
        st.integers(1, 6),
        st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0]),
        st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0, 9.0, inf]),
    ),
    min_size=1,
    max_size=22,
)


@pytest.mark.parametrize(("order", "backfill"), COMPOSED)
def test_small_workloads_with_many_ties(run_policy: RunPolicy, order: str, backfill: str) -> None:
    """Same jobs, same instants, same units, in the same order, as by the definition."""

    @settings(max_examples=50)
    @given(rows=rows, units=st.integers(3, 7))
    @example(rows=TWO_ARRIVE, units=4)
    @example(rows=ONE_PASSES, units=4)
    def check(rows: list[tuple[float, int, float, float]], units: int) -> None:
        expected = reference(units, rows, CHOICES[backfill], RANKS[order])
        assert run_policy(compose(order=order, backfill=backfill), units, rows).starts == expected

    check()


def dense(seed: int, jobs: int, units: int, *, load: float, endless: bool) -> Iterator[tuple[float, int, float, float]]:
    """Yield a random workload whose queue grows and shrinks: bursts of equal submit times, few distinct durations."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    now = 0.0
    for _ in range(jobs):
        size = min(units, chance.choice([1, 1, 1, 2, 2, 3, 4, 8, units]))
        runtime = float(chance.choice([1, 5, 5, 10, 20, 40]))
        walltime = chance.choice([runtime, runtime, runtime + 5, 2 * runtime, 60.0, runtime / 2])
        if endless and chance.random() < 0.02:
            walltime = inf
        yield now, size, runtime, walltime
        if chance.random() < 0.4:
            now += float(chance.randint(0, max(1, round(2.5 * 2 * size * runtime / (units * load)))))


@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.parametrize(("order", "backfill"), COMPOSED)
def test_deep_queues(run_policy: RunPolicy, order: str, backfill: str, endless: bool) -> None:
    """Hundreds of jobs wait: queues that grow beyond any first capacity, have gaps, and empty again."""
    workload = list(dense(7, 260, 12, load=1.6, endless=endless))
    expected = reference(12, workload, CHOICES[backfill], RANKS[order])

    assert run_policy(compose(order=order, backfill=backfill), 12, workload).starts == expected


@pytest.mark.parametrize("order", list(RANKS))
@pytest.mark.parametrize("backfill", [*CHOICES, "conservative", "easy-slices"])
def test_the_wake_filter_changes_nothing(run_policy: RunPolicy, order: str, backfill: str) -> None:
    """A policy that is woken by every event starts the same jobs at the same times on the same units."""

    @settings(max_examples=25)
    @given(rows=rows, units=st.integers(3, 7))
    @example(rows=TWO_ARRIVE, units=4)
    @example(rows=ONE_PASSES, units=4)
    def check(rows: list[tuple[float, int, float, float]], units: int) -> None:
        filtered = run_policy(compose(order=order, backfill=backfill), units, rows)
        told_all = run_policy(compose(order=order, backfill=backfill), units, rows, filtered=False)
        assert filtered.starts == told_all.starts
        assert filtered.result.times.round_trips <= told_all.result.times.round_trips

    check()
