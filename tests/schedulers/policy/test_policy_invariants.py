"""Guarantees of every policy for any workload."""

from collections.abc import Callable
from math import inf
from random import Random
from typing import Any

import pytest

from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.catalogue.presets import library
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View

RunPolicy = Callable[..., Any]
UNITS = 16
SEEDS = range(5)
#: those that reserve single units: the lowest of these may be kept for others
BY_UNIT = {"conservative", "easy-slices"}


def workload(seed: int, jobs: int = 150) -> list[tuple[float, int, float, float]]:
    """Return a random workload with bursts and ties, that keeps a machine of 16 units busy and its queue filled."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    rows, now = [], 0.0
    for _ in range(jobs):
        size = chance.choice([1, 1, 2, 3, 4, 8, 12, 16])
        runtime = float(chance.choice([10, 10, 20, 30, 60, 90]))
        walltime = chance.choice([runtime, runtime, 2 * runtime, 100.0, runtime / 2])
        rows.append((now, size, runtime, walltime))
        now += chance.choice([0.0, 0.0, 5.0, 10.0, 20.0])
    return rows


def preset(name: str) -> ComposedPolicy:
    """Return a preset's policy."""
    parts = library()[name]
    return compose(
        order=parts.order,
        backfill=parts.backfill,
        placement=parts.placement,
        order_options=parts.order_options,
        backfill_options=parts.backfill_options,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_fcfs_starts_jobs_in_the_order_of_submission(run_policy: RunPolicy, seed: int) -> None:
    """Starts never overtake."""
    run = run_policy(preset("fcfs"), UNITS, workload(seed))

    assert [number for number, _, _ in run.starts] == list(range(150))
    assert [time for _, time, _ in run.starts] == sorted(time for _, time, _ in run.starts)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", list(library()))
def test_every_job_runs_once_and_not_before_its_submission(run_policy: RunPolicy, name: str, seed: int) -> None:
    """No job is lost, started twice or started early, and all of them end."""
    rows = workload(seed)
    run = run_policy(preset(name), UNITS, rows)
    summary = run.result.summary

    assert sorted(number for number, _, _ in run.starts) == list(range(150))
    assert all(time >= rows[number][0] for number, time, _ in run.starts)
    assert (summary.completed + summary.killed_at_walltime, summary.rejected, summary.unfinished) == (150, 0, 0)
    assert summary.killed_at_walltime == sum(runtime > walltime for _, _, runtime, walltime in rows)


@pytest.mark.parametrize("name", list(library()))
def test_no_job_waits_on_an_empty_machine(run_policy: RunPolicy, name: str) -> None:
    """An empty machine never keeps a job waiting: jobs wait only because others run."""
    rows = workload(11)
    run = run_policy(preset(name), UNITS, rows)
    lasts = {number: min(rows[number][2:]) for number in range(150)}
    for number, start, _ in run.starts:
        waited_from = rows[number][0]
        busy = [s for n, s, _ in run.starts if n != number and s < start and s + lasts[n] > waited_from]
        assert start == waited_from or busy, f"job {number} waited on an empty machine"


@pytest.mark.parametrize("name", sorted({*library()} - BY_UNIT))
def test_jobs_get_the_lowest_free_units(run_policy: RunPolicy, name: str) -> None:
    """The units of every start are the lowest free ones."""
    rows = workload(3)
    run = run_policy(preset(name), UNITS, rows)
    held: dict[int, tuple[float, set[int]]] = {}
    for number, start, text in run.starts:
        held = {n: (end, units) for n, (end, units) in held.items() if end > start}
        free = sorted(set(range(UNITS)) - set().union(*(units for _, units in held.values())))
        units = {u for piece in text.split() for u in range(int(piece.split("-")[0]), int(piece.split("-")[-1]) + 1)}
        assert units == set(free[: rows[number][1]])
        held[number] = (start + min(rows[number][2:]), units)


class Watched(ComposedPolicy):
    """A policy that writes down, when a job becomes the first in the queue, by when it must start."""

    def __init__(self, inner: ComposedPolicy) -> None:
        self.name, self.order, self._inner = inner.name, inner.order, inner
        #: {job number: latest start in seconds}
        self.promised: dict[int, float] = {}

    def decide(self, view: View) -> None:
        """Let the policy decide, then work out the first one's reservation from the running jobs."""
        self._inner.decide(view)
        first = view.waiting.first
        if first is not None and first.number not in self.promised:
            self.promised[first.number] = self._latest(view, first)

    @staticmethod
    def _latest(view: View, first: SchedulerJob) -> float:
        free = view.free.count
        for job in sorted(view.running, key=lambda job: job.expected_end):
            free += job.size
            if free >= first.size:
                return job.expected_end
        return inf


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["easy", "easy-sjbf", "easy-slices"])
def test_easy_keeps_its_promise(run_policy: RunPolicy, name: str, seed: int) -> None:
    """The first in the queue never starts later than the reservation that it had when it became the first."""
    policy = Watched(preset(name))
    run = run_policy(policy, UNITS, workload(seed))

    assert len(policy.promised) > 30
    late = {n: (run.start_of[n], by) for n, by in policy.promised.items() if run.start_of[n] > by}
    assert late == {}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["easy", "easy-slices", "conservative"])
def test_jobs_pass_under_easy_and_not_under_fcfs(run_policy: RunPolicy, name: str, seed: int) -> None:
    """The workloads of these tests are ones on which backfilling does something."""
    rows = workload(seed)
    fcfs, easy = (run_policy(preset(name), UNITS, rows) for name in ("fcfs", name))
    order = [number for number, _, _ in easy.starts]

    assert order != sorted(order)
    assert easy.result.summary.mean_wait < fcfs.result.summary.mean_wait


@pytest.mark.parametrize("name", list(library()))
def test_a_policy_object_can_be_used_again(run_policy: RunPolicy, name: str) -> None:
    """State does not leak from one simulation into the next, of another workload or the same."""
    policy = preset(name)
    first = run_policy(policy, UNITS, workload(1)).starts
    other = run_policy(policy, 2 * UNITS, workload(2)).starts
    again = run_policy(policy, UNITS, workload(1)).starts

    assert first == again == run_policy(preset(name), UNITS, workload(1)).starts
    assert other == run_policy(preset(name), 2 * UNITS, workload(2)).starts


def test_a_job_without_walltime_may_pass_only_beside_the_reservation(run_policy: RunPolicy) -> None:
    """It is expected to run forever: it starts on extra units, never on reserved ones."""
    rows = [
        (0.0, 10, 50.0, 50.0),
        (1.0, 12, 10.0, 10.0),
        (2.0, 3, 500.0, inf),
        (3.0, 2, 5.0, inf),
    ]
    run = run_policy(preset("easy"), UNITS, rows)

    assert run.start_of == {0: 0.0, 2: 2.0, 1: 50.0, 3: 60.0}


def test_first_job_without_a_reservation_blocks_no_job(run_policy: RunPolicy) -> None:
    """If jobs without walltime hold too much, there is no reservation, and everything that fits starts."""
    rows = [
        (0.0, 10, 100.0, inf),
        (1.0, 12, 10.0, 10.0),
        (2.0, 6, 500.0, 500.0),
        (3.0, 1, 5.0, 5.0),
    ]
    run = run_policy(preset("easy"), UNITS, rows)

    assert run.start_of == {0: 0.0, 2: 2.0, 1: 502.0, 3: 100.0}
