"""Polling: decisions at the multiples of a step only."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.catalogue.presets import library
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.polling import Polling, PollingError

RunPolicy = Callable[..., Any]
Rows = list[tuple[float, int, float, float]]


def rows(seed: int, jobs: int = 120) -> Rows:
    """Return a random workload of whole seconds for 16 units."""
    chance = np.random.default_rng(seed)
    size = chance.choice([1, 1, 2, 3, 4, 8, 12, 16], jobs)
    runtime = chance.integers(1, 60, jobs)
    walltime = runtime + chance.choice([0, 0, 7, 30], jobs)
    submit = np.cumsum(chance.choice([0, 0, 3, 11, 20], jobs))
    return [tuple(map(float, line)) for line in zip(submit, size, runtime, walltime, strict=True)]  # type: ignore[misc]


class Watched:
    """A policy that records the times of its decisions and the new jobs."""

    def __init__(self, inner: Policy) -> None:
        self.name, self.order, self._inner = inner.name, inner.order, inner
        self.times: list[float] = []
        self.arrivals: list[int] = []
        self.calls: list[str] = []

    def decide(self, view: View) -> None:
        """Write down, decide."""
        self.times.append(view.now)
        self.arrivals += [job.number for job in view.arrivals]
        self.calls += view.calls
        self._inner.decide(view)


@pytest.mark.parametrize("name", list(library()))
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_polling_step_that_hits_every_event_changes_nothing(run_policy: RunPolicy, name: str, seed: int) -> None:
    """With 1 s or less on whole seconds every start is the event-driven one, on the same units."""
    plain = run_policy(make_policy(name), 16, rows(seed))
    for step in (1.0, 0.5, 0.125, 1e-12):
        polled = run_policy(Polling(make_policy(name), step), 16, rows(seed))
        assert polled.starts == plain.starts


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("step", [0.1, 5.0, 7.5, 60.0, 3600.0])
@pytest.mark.parametrize("name", ["easy", "easy-slices", "filler", "pbs", "titan-bins"])
def test_decisions_are_at_the_multiples(run_policy: RunPolicy, name: str, step: float, filtered: bool) -> None:
    """Every start is at a poll, all jobs run, no job is announced twice, and the run ends."""
    policy = Watched(make_policy(name))
    run = run_policy(Polling(policy, step), 16, rows(5), filtered=filtered)

    assert sorted(run.start_of) == list(range(120))
    for time in (*policy.times, *run.start_of.values()):
        assert time == round(time / step) * step
    assert sorted(policy.arrivals) == list(range(120))
    assert policy.calls == []


def test_the_error_grows_with_the_step(run_policy: RunPolicy) -> None:
    """Mean waits are farther from the event-driven one the larger the step is, and converge (paper 002)."""
    waits = []
    for step in (None, 1.0, 30.0, 120.0, 600.0):
        policy = make_policy("easy")
        run = run_policy(policy if step is None else Polling(policy, step), 16, rows(7, 300))
        waits.append(run.result.summary.mean_wait)
    errors = [abs(wait - waits[0]) for wait in waits[1:]]

    assert errors[0] == 0.0
    assert errors == sorted(errors)
    assert errors[-1] > 100.0


def test_event_at_a_multiple_is_decided_then(run_policy: RunPolicy) -> None:
    """At 10 s the first ends and the third comes: both count at 10 s, not at 20 s; the second waits from 5 to 10 s."""
    jobs = [(0.0, 16, 10.0, 10.0), (5.0, 8, 10.0, 10.0), (10.0, 8, 3.0, 3.0), (14.0, 8, 1.0, 1.0)]
    run = run_policy(Polling(make_policy("easy"), 10.0), 16, jobs)

    assert run.start_of == {0: 0.0, 1: 10.0, 2: 10.0, 3: 20.0}


def test_nothing_is_asked_for_when_nothing_waits(run_policy: RunPolicy) -> None:
    """Ends alone lead to no decision between the multiples and to no call."""
    policy = Watched(make_policy("easy"))
    run = run_policy(Polling(policy, 100.0), 16, [(0.0, 1, 7.0, 7.0), (0.0, 1, 13.0, 13.0)])

    assert set(policy.times) == {0.0}
    assert run.result.summary.makespan == 13.0


class Caller:
    """A policy that requests a call at 7 s, and starts nothing before."""

    name = "caller"

    def __init__(self) -> None:
        self.order = Fcfs()
        self.calls: list[tuple[float, list[str]]] = []

    def decide(self, view: View) -> None:
        """Request a call once; start when called."""
        self.calls.append((view.now, list(view.calls)))
        if view.now == 0.0:
            view.call_me_later(7.0, "mine")
        if view.calls:
            first: SchedulerJob | None = view.waiting.first
            assert first is not None
            view.start(first)


def test_policys_own_calls_arrive_at_the_next_multiple(run_policy: RunPolicy) -> None:
    """The call of 7 s is reported at 10 s, under its name; the poll's own call is not."""
    policy = Caller()
    run = run_policy(Polling(policy, 5.0), 16, [(0.0, 1, 7.0, 7.0)])

    assert run.start_of == {0: 10.0}
    assert [call for call in policy.calls if call[1]] == [(10.0, ["mine"])]


def test_reservation_between_polls_starts_at_the_next(run_policy: RunPolicy) -> None:
    """conservative: a job whose reservation began between two polls starts at the next, not behind later jobs.

    At 5 s the first ends, as planned. The second is to start then, for 20 s, the third after it.
    """
    jobs = [(0.0, 2, 5.0, 5.0), (0.0, 2, 20.0, 20.0), (0.0, 2, 10.0, 10.0)]
    run = run_policy(Polling(make_policy("conservative"), 10.0), 2, jobs)

    assert run.start_of == {0: 0.0, 1: 10.0, 2: 30.0}


def test_replanning_uses_the_ends_of_running_jobs(run_policy: RunPolicy) -> None:
    """conservative: the reservation at 5 s is missed, all is replanned; half a second too long misses a gap.

    The first runs until 30 s; at 20 s there is a gap of 10 s before the fourth job, which needs both units, for the
    last, if that takes no longer.
    """
    for walltime, start in ((10.0, 20.0), (10.5, 40.0)):
        jobs = [(0.0, 1, 30.0, 30.0), (0.0, 1, 5.0, 5.0), (0.0, 1, 10.0, 10.0), (0.0, 2, 10.0, 10.0)]
        jobs.append((0.0, 1, walltime, walltime))
        run = run_policy(Polling(make_policy("conservative"), 10.0), 2, jobs)

        assert run.start_of == {0: 0.0, 1: 0.0, 2: 10.0, 3: 30.0, 4: start}


def test_it_can_be_used_again_and_has_a_name(run_policy: RunPolicy) -> None:
    """Data collected in one simulation does not leak into the next."""
    policy = Polling(compose(backfill="easy"), 60.0)

    assert policy.name == "fcfs+easy+lowest+poll=60s"
    assert run_policy(policy, 16, rows(1)).starts == run_policy(policy, 16, rows(1)).starts


@pytest.mark.parametrize("step", [0.0, -1.0, inf, nan])
def test_a_step_must_be_above_zero(step: float) -> None:
    """And finite."""
    with pytest.raises(PollingError, match="invalid polling step: expected seconds above 0"):
        Polling(compose(), step)
