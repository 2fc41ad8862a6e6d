"""Rules that reserve single units, `conservative` and `easy-slices`, against a reference that is naive on purpose."""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer

RunPolicy = Callable[..., Any]
Row = tuple[float, int, float, float]
Start = tuple[int, float, str]
Placed = tuple[float, frozenset[int]]


@dataclass(eq=False)
class NaiveJob:
    """A job of the reference; ``placed`` is when and where it runs, or is meant to."""

    number: int
    submit: float
    size: int
    runtime: float
    walltime: float
    place: int = 0
    placed: Placed | None = None

    def overlaps(self, begin: float, end: float) -> bool:
        """Return whether the job holds its units at some time from begin to end."""
        return self.placed is not None and self.placed[0] < end and self.placed[0] + self.walltime > begin


@dataclass
class Naive:
    """A machine, its queue, and its running jobs."""

    units: int
    rank: Callable[[NaiveJob], float]
    now: float = 0.0
    waiting: list[NaiveJob] = field(default_factory=list)
    running: list[NaiveJob] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)

    def free(self, begin: float, end: float, others: Iterable[NaiveJob]) -> list[int]:
        """Return the units that no other holds at any time from begin to end, ascending."""
        held = {unit for job in others if job.overlaps(begin, end) and job.placed for unit in job.placed[1]}
        return [unit for unit in range(self.units) if unit not in held]

    def first_fit(self, job: NaiveJob, others: list[NaiveJob]) -> Placed | None:
        """Return the earliest place for a job: now or when another ends, on the lowest units free over all of it."""
        times = {self.now} | {other.placed[0] + other.walltime for other in others if other.placed}
        for begin in sorted(time for time in times if self.now <= time < inf):
            free = self.free(begin, begin + job.walltime, others)
            if len(free) >= job.size:
                return begin, frozenset(free[: job.size])
        return None

    def start(self, job: NaiveJob, units: frozenset[int]) -> None:
        """Let a waiting job run from now on."""
        job.placed = (self.now, units)
        self.waiting.remove(job)
        self.running.append(job)
        self.starts.append((job.number, self.now, text_of(sorted(units))))


Decide = Callable[[Naive, bool, list[NaiveJob]], None]


def conservative(machine: Naive, ended: bool, arrived: list[NaiveJob]) -> None:
    """Replan the whole queue, job by job, if a job has ended; else plan only new arrivals."""
    for job in [job for job in machine.waiting if ended or job in arrived]:
        job.placed = None
        others = machine.running + [other for other in machine.waiting if other is not job]
        job.placed = machine.first_fit(job, others)
        if job.placed is not None and job.placed[0] == machine.now:
            machine.start(job, job.placed[1])


def easy_slices(machine: Naive, ended: bool, arrived: list[NaiveJob]) -> None:
    """Place the first; start one that fits around it; and all over again."""
    for job in machine.waiting:
        job.placed = None
    while machine.waiting:
        first = machine.waiting[0]
        first.placed = machine.first_fit(first, machine.running)
        if first.placed is not None and first.placed[0] == machine.now:
            machine.start(first, first.placed[1])
            continue
        for job in machine.waiting[1:]:
            free = machine.free(machine.now, machine.now + job.walltime, [*machine.running, first])
            if len(free) >= job.size:
                machine.start(job, frozenset(free[: job.size]))
                break
        else:
            return


def reference(units: int, rows: list[Row], decide: Decide, rank: Callable[[NaiveJob], float]) -> list[Start]:
    """Return every start."""
    jobs = [NaiveJob(number, *row) for number, row in enumerate(rows) if row[1] <= units]
    to_come = sorted(jobs, key=lambda job: (job.submit, job.number))
    for place, job in enumerate(to_come):
        job.place = place
    machine = Naive(units, rank)

    def end_of(job: NaiveJob) -> float:
        assert job.placed is not None
        return job.placed[0] + min(job.runtime, job.walltime)

    while to_come or machine.running:
        machine.now = now = min([job.submit for job in to_come] + [end_of(job) for job in machine.running])
        ended = [job for job in machine.running if end_of(job) == now]
        machine.running = [job for job in machine.running if job not in ended]
        arrived = [job for job in to_come if job.submit == now]
        to_come = [job for job in to_come if job.submit != now]
        machine.waiting = sorted(machine.waiting + arrived, key=lambda job: (rank(job), job.place))
        decide(machine, bool(ended), arrived)
    assert not machine.waiting
    return machine.starts


def text_of(units: list[int]) -> str:
    """Return ascending unit numbers as intervals."""
    pieces, first = [], units[0]
    for unit, after in zip(units, [*units[1:], -1], strict=True):
        if after != unit + 1:
            pieces.append(str(first) if first == unit else f"{first}-{unit}")
            first = after
    return " ".join(pieces)


RULES: dict[str, Decide] = {"conservative": conservative, "easy-slices": easy_slices}
RANKS: dict[str, Callable[[NaiveJob], float]] = {"fcfs": lambda job: job.submit, "sjf": lambda job: job.walltime}
COMPOSED = [(order, backfill) for order in RANKS for backfill in RULES]
#: the last job's reservation, for time 1, blocks the one before it, which may not take it
KEPT = [(0.0, 2, 1.0, 2.0), (0.0, 2, 1.0, 1.0), (0.0, 4, 1.0, 1.0), (0.0, 1, 1.0, 1.0)]

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

    @settings(max_examples=80)
    @given(rows=rows, units=st.integers(3, 7))
    @example(rows=KEPT, units=4)
    def check(rows: list[Row], units: int) -> None:
        expected = reference(units, rows, RULES[backfill], RANKS[order])
        assert run_policy(compose(order=order, backfill=backfill), units, rows).starts == expected

    check()


def dense(seed: int, jobs: int, units: int, *, endless: bool) -> list[Row]:
    """Return a random workload whose queue grows and shrinks: bursts of equal submit times, few distinct durations."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    made, now = [], 0.0
    for _ in range(jobs):
        size = min(units, chance.choice([1, 1, 1, 2, 2, 3, 4, 8, units]))
        runtime = float(chance.choice([1, 5, 5, 10, 20, 40]))
        walltime = chance.choice([runtime, runtime, runtime + 5, 2 * runtime, 60.0, runtime / 2])
        made.append((now, size, runtime, inf if endless and chance.random() < 0.02 else walltime))
        if chance.random() < 0.4:
            now += float(chance.randint(0, max(1, round(3 * size * runtime / units))))
    return made


@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.parametrize(("order", "backfill"), COMPOSED)
def test_deep_queues(run_policy: RunPolicy, order: str, backfill: str, endless: bool) -> None:
    """Dozens of jobs wait, with early ends, kills at the walltime, and jobs that hold units forever."""
    workload = dense(7, 150, 12, endless=endless)
    expected = reference(12, workload, RULES[backfill], RANKS[order])

    assert run_policy(compose(order=order, backfill=backfill), 12, workload).starts == expected


def test_others_keep_their_places_while_one_moves(run_policy: RunPolicy) -> None:
    """At time 1 all units are free, but the third job may not push the fourth back, which is placed there."""
    run = run_policy(compose(backfill="conservative"), 4, KEPT)

    assert run.starts == [(0, 0.0, "0-1"), (1, 0.0, "2-3"), (3, 1.0, "0"), (2, 2.0, "0-3")]


@pytest.mark.parametrize(
    ("recorded", "machine", "backfill"),
    [
        ("tiny.batsched_conservative_bf", "nonet4", "conservative"),
        ("tiny.batsched_easy_bf", "nonet4", "easy-slices"),
        ("tiny.batsched_easy_bf_fast", "nonet4", "easy-fixed"),
        ("w_1000_l0.85.batsched_easy_bf_fast", "nonet1490", "easy-fixed"),
        ("w_1000_l0.85_ms.batsched_easy_bf_fast", "nonet1490", "easy-fixed"),
    ],
)
def test_starts_are_those_of_batsched(batsim4_dir: Path, recorded: str, machine: str, backfill: str) -> None:
    """Where a real batsched was recorded, jobs start when and where it started them."""
    with (batsim4_dir / f"{recorded}.jobs.csv").open(newline="", encoding="utf-8") as file:
        theirs = {
            row["job_id"]: (row["starting_time"], row["allocated_resources"])
            for row in csv.DictReader(file)
            if row["final_state"] != "REJECTED"
        }
    ours: dict[str, tuple[str, str]] = {}

    class Watch(Observer):
        def started(self, now: float, job: Job) -> None:
            ours[job.id.partition("!")[2]] = (f"{now:.6f}", str(job.alloc))

    run_in_process(
        str(batsim4_dir / f"{recorded.rpartition('.')[0]}.json"),
        compose(backfill=backfill),
        platform=str(batsim4_dir / f"{machine}.xml"),
        options=RunOptions(observers=[Watch()]),
    )
    assert ours == theirs
