"""Playing jobs to the Maui policy without a server: users and classes, outages and windows at will."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

import pytest

from pipistrelle.protocol.decisions import CallMeLater, CancelCall, ExecuteJob, RejectJob
from pipistrelle.protocol.events import JobDescription, SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.runtime.runtime import view_of


@dataclass
class Asked:
    """A job of a test: its request, its real run time, and its credentials."""

    submit: float
    size: int
    walltime: float
    runtime: float | None = None
    user: str | None = None
    group: str | None = None
    account: str | None = None
    queue: str | None = None
    qos: str | None = None

    @property
    def takes(self) -> float:
        """Run time, s."""
        return min(self.walltime, self.walltime if self.runtime is None else self.runtime)


@dataclass
class Played:
    """The results: starts, allocations, rejections, and what runs and is reserved at every instant."""

    start: dict[int, float] = field(default_factory=dict)
    alloc: dict[int, NodeSet] = field(default_factory=dict)
    rejected: dict[int, str] = field(default_factory=dict)
    asked: int = 0
    running: list[tuple[float, list[int]]] = field(default_factory=list)
    reservations: list[tuple[float, dict[int, float]]] = field(default_factory=list)


#: (time, units that are out of service from then on)
Outages = list[tuple[float, NodeSet]]


def _play(
    policy: Any, units: int, jobs: list[Asked], outages: Outages | None = None, windows: Sequence[Window] = ()
) -> Played:
    """Run a policy over jobs, in the order of submission, on a machine of ``units``; every event wakes it."""
    view = view_of(SimulationBeginsData(units), policy.order)
    for window in windows:
        view.windows.add(window)
    played = Played()
    events: list[tuple[float, int, int, str]] = [(job.submit, 2, number, "") for number, job in enumerate(jobs)]
    events += [(time, 1, number, "") for number, (time, _) in enumerate(outages or [])]
    heapq.heapify(events)
    waiting: dict[int, SchedulerJob] = {}
    pending: set[str] = set()
    while events:
        now = events[0][0]
        view.now, view.decisions = now, []
        while events and events[0][0] == now:
            _, kind, number, call = heapq.heappop(events)
            if kind == 0:
                view.give_back(view.running.remove(str(number)).alloc)
            elif kind == 1:
                out = (outages or [])[number][1]
                view.put_back(view.unavailable - out)
                view.withdraw(out - view.unavailable)
            elif kind == 2:
                asked = jobs[number]
                names = (asked.user, asked.group, asked.account, asked.queue, asked.qos)
                walltime = None if asked.walltime == inf else asked.walltime
                description = JobDescription(str(number), asked.size, walltime, None, None, *names)
                job = waiting[number] = SchedulerJob.submitted(description, number, now)
                view.waiting.add(job)
                view.arrivals.append(job)
            elif call in pending:
                pending.remove(call)
                view.calls.append(call)
        policy.decide(view)
        played.asked += 1
        assert played.asked < 100 * (len(jobs) + 10), "the policy is asked for ever"
        view.arrivals, view.released, view.calls = [], False, []
        for decision in view.decisions:
            if isinstance(decision, ExecuteJob):
                number = int(decision.data.job_id)
                played.start[number], played.alloc[number] = now, NodeSet.parse(decision.data.alloc)
                heapq.heappush(events, (now + jobs[number].takes, 0, number, ""))
            elif isinstance(decision, RejectJob):
                played.rejected[int(decision.data.job_id)] = decision.data.why or ""
            elif isinstance(decision, CancelCall):
                pending.remove(decision.data.id)
            elif isinstance(decision, CallMeLater):
                assert decision.data.timestamp > now
                assert decision.data.id not in pending
                pending.add(decision.data.id)
                heapq.heappush(events, (decision.data.timestamp, 3, 0, decision.data.id))
        played.running.append((now, [int(job.id) for job in view.running]))
        if isinstance(policy, MauiPolicy):
            times = {number: policy.reservation(job) for number, job in waiting.items()}
            played.reservations.append((now, {number: time for number, time in times.items() if time is not None}))
    return played


def _maui(text: str, **more: Any) -> MauiPolicy:
    """Return the policy of a configuration without warnings."""
    settings, warnings = parse_maui_config(text)
    assert warnings == []
    return MauiPolicy(settings, **more)


def _random_jobs(seed: int, count: int = 120, units: int = 16) -> list[Asked]:
    """Return a workload that keeps a machine busy and its queue filled, with ties, users, classes and accounts."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    jobs, now = [], 0.0
    for _ in range(count):
        runtime = float(chance.choice([10, 20, 30, 60, 90]))
        size = chance.choice([1, 1, 2, 3, 4, 8, 12, units])
        walltime = chance.choice([runtime, runtime, 2 * runtime, 100.0])
        names = [chance.choice(choices) for choices in ("abcd", "gh", "xyz", ["fast", "long"], [None, "high"])]
        jobs.append(Asked(now, size, walltime, runtime, *names))
        now += chance.choice([0.0, 0.0, 5.0, 10.0, 20.0])
    return jobs


def _check_machine(played: Played, jobs: list[Asked], units: int) -> None:
    """Raise AssertionError unless every job ran once, on as many units as asked for, and none was used twice."""
    assert sorted([*played.start, *played.rejected]) == list(range(len(jobs)))
    for number, alloc in played.alloc.items():
        assert len(alloc) == jobs[number].size
        assert played.start[number] >= jobs[number].submit
        assert alloc.last < units
    for now, running in played.running:
        busy = [played.alloc[number] for number in running]
        assert sum(map(len, busy)) == len(NodeSet.of(unit for alloc in busy for unit in alloc)), now


@pytest.fixture
def ask() -> type[Asked]:
    """Return what makes a job of a test: ask(submit, size, walltime, runtime, user=...)."""
    return Asked


@pytest.fixture
def play() -> Callable[..., Played]:
    """Return a function that runs a policy: play(policy, units, jobs, outages, windows)."""
    return _play


@pytest.fixture
def maui() -> Callable[..., MauiPolicy]:
    """Return a function that makes the policy of a configuration: maui(text)."""
    return _maui


@pytest.fixture
def random_jobs() -> Callable[..., list[Asked]]:
    """Return a function that makes a workload: random_jobs(seed, count)."""
    return _random_jobs


@pytest.fixture
def check_machine() -> Callable[..., None]:
    """Return a function that checks the results: check_machine(played, jobs, units)."""
    return _check_machine
