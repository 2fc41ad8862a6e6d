"""Conservative backfilling against a literal version of its rule: all queued jobs are replanned, one by one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from math import inf
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.backfill import conservative
from pipistrelle.schedulers.backfill.conservative import Conservative
from pipistrelle.schedulers.catalogue.parts import make_order, make_placement
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.plan import gaps, reservations
from pipistrelle.schedulers.plan.plan import Plan
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.interfaces import Placement, Stateless
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

#: (submit, size, runtime, walltime)
Row = tuple[float, int, float, float]
#: announced, begin, length (s), nodes
Down = tuple[float, float, float, frozenset[int]]
Unsteady = Callable[..., Reliability]
NODES = 9

rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        st.integers(0, 25).map(float),
        st.integers(1, NODES),
        st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.5, 9.0, 14.0]),
        st.sampled_from([1.0, 2.0, 4.0, 6.0, 9.0, 12.5, 20.0, 31.0]) | st.just(inf),
    ),
    min_size=1,
    max_size=45,
).map(sorted)
downs: st.SearchStrategy[list[Down]] = st.lists(
    st.tuples(
        st.integers(0, 20).map(float),
        st.integers(1, 40).map(float),
        st.sampled_from([1.0, 2.5, 6.0]),
        st.sets(st.integers(0, NODES - 1), min_size=1).map(frozenset),
    ),
    max_size=2,
)
failures = st.dictionaries(st.integers(0, NODES - 1), st.integers(0, 40).map(float), max_size=3)


class ToTheLetter(Stateless):
    """The rule of docs/reference/scheduling.md, on slices of time, with all jobs at every release."""

    wake_when = Conservative.wake_when

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._places: dict[int, Place] = {}

    def schedule(self, view: View, placement: Placement) -> None:
        """Start every job whose reservation begins now."""
        plan = self._plan
        missed = any(place.begin < view.now for place in self._places.values())
        if plan is None or not plan.holds_for(view) or missed:
            plan = self._plan = Plan(view, placement)
            self._places = {}
            jobs = list(view.waiting)
        else:
            plan.follow()
            jobs = list(view.waiting) if view.released or plan.windows_changed else view.waiting.in_order(view.arrivals)
        for job in jobs:
            self._place(view, plan, job)
        plan.look_ahead()

    def _place(self, view: View, plan: Plan, job: SchedulerJob) -> None:
        old = self._places.get(job.number)
        if old is not None and old.is_closed(plan.closures(job)):
            plan.clear(self._places.pop(job.number))
            old = None
        fit = plan.fit(job, old)
        if fit is None:
            return
        if old is not None:
            plan.clear(self._places.pop(job.number))
        if fit.begin > view.now:
            self._places[job.number] = plan.take(job, fit.begin, fit.units)
        else:
            plan.start(job, fit.units)


class Answers:
    """Replies with a policy under this rule; its state passes through JSON before the notices of these numbers."""

    def __init__(self, rule: Any, order: str, placement: str, handovers: frozenset[int] = frozenset()) -> None:
        self._made = (rule, order, placement)
        self._handovers = handovers
        self.runtime = self._runtime()
        self.replies: list[Reply] = []

    def _runtime(self) -> Runtime:
        rule, order, placement = self._made
        return Runtime(ComposedPolicy("rule", make_order(order), rule(), make_placement(placement)))

    def hello(self) -> HelloData:
        """Return the scheduler's HELLO."""
        return self.runtime.hello()

    def welcome(self, data: WelcomeData) -> None:
        """Store the agreed features."""
        self.runtime.welcome(data)

    def answer(self, notice: Notice) -> Reply:
        """Return the decisions for a notice."""
        if len(self.replies) in self._handovers:
            text = to_json(self.runtime.state())
            self.runtime = self._runtime()
            self.runtime.restore(from_json(text))
        reply = self.runtime.answer(notice)
        self.replies.append(reply)
        return reply


#: {variant: number of checks of reservations before compiled loops take over}
WAYS = {"compiled": 0, "plain": inf, "in between": 25}


@contextmanager
def done(way: str) -> Iterator[None]:
    """Have reservations made in one of these ways, with so little room to spare that it has to grow again and again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conservative, "MANY_LOOKS", WAYS[way])
        patch.setattr(conservative, "SOME_LOOKS", WAYS[way])
        patch.setattr(reservations, "_ROOM", 4)
        yield


def decisions(answers: Answers, nodes: int, jobs: list[Row], reliability: Reliability | None = None) -> list[Reply]:
    """Return all that is decided."""
    submit, size, runtime, walltime = zip(*jobs, strict=True)
    trace = Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(jobs))],
        submit=np.array(submit),
        size=np.array(size, dtype=np.int64),
        walltime=np.array(walltime),
        runtime=np.array(runtime),
    )
    platform = Platform(name="m", pools=(Pool(name="all", nodes=nodes),))
    result = simulate(
        Setup.of(platform, trace, strict=True, reliability=reliability),
        InProcessTransport(answers),
        clock=lambda: 0.0,
        between=lambda simulation: check_invariants(simulation.engine, answers.runtime.view),
    )
    if result.failure is not None:
        raise result.failure
    return answers.replies


@pytest.mark.parametrize("placement", ["lowest", "contiguous"])
@pytest.mark.parametrize("order", ["fcfs", "sjf", "pbs"])
@settings(max_examples=15)
@given(
    jobs=rows,
    planned=downs | st.just([]),
    broken=failures | st.just({}),
    handovers=st.sets(st.integers(1, 40)).map(frozenset),
)
def test_decisions_equal_a_full_replan(
    unsteady: Unsteady,
    order: str,
    placement: str,
    jobs: list[Row],
    planned: list[Down],
    broken: dict[int, float],
    handovers: frozenset[int],
) -> None:
    """Early ends, failures, closures and restored states: starts, units and reasons follow the rule."""
    told = (NODES, jobs, unsteady(planned, broken))
    found = decisions(Answers(Conservative, order, placement, handovers), *told)

    assert found == decisions(Answers(ToTheLetter, order, placement), *told)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15)
@given(
    order=st.sampled_from(["fcfs", "sjf", "pbs"]),
    jobs=rows,
    planned=downs | st.just([]),
    broken=failures | st.just({}),
    handovers=st.sets(st.integers(1, 40)).map(frozenset),
)
def test_it_decides_so_in_compiled_loops(
    unsteady: Unsteady,
    way: str,
    order: str,
    jobs: list[Row],
    planned: list[Down],
    broken: dict[int, float],
    handovers: frozenset[int],
) -> None:
    """Compiled, as plain Python, and when the loops take over in the middle of a run."""
    told = (NODES, jobs, unsteady(planned, broken))
    with done(way):
        found = decisions(Answers(Conservative, order, "lowest", handovers), *told)

    assert found == decisions(Answers(ToTheLetter, order, "lowest"), *told)


@pytest.mark.parametrize("ready", [True, False])
def test_loops_that_were_compiled_before_are_used_early(monkeypatch: pytest.MonkeyPatch, ready: bool) -> None:
    """Until a run has many placements, compiling the loops would take longer than plain Python."""
    used: list[bool] = []

    def compiled() -> ModuleType:
        used.append(True)
        return gaps

    monkeypatch.setattr(conservative, "SOME_LOOKS", 1)
    monkeypatch.setattr(conservative, "_is_ready", lambda: ready)
    monkeypatch.setattr(conservative, "_compiled", compiled)
    decisions(Answers(Conservative, "fcfs", "lowest"), 1, [(0.0, 1, 2.0, 2.0)] * 4)

    assert any(used) is ready


class Fickle(ComposedPolicy):
    """Changes its mind about a job that has a place."""

    def decide(self, view: View) -> None:
        """Reject job 1 at 5 s."""
        if view.now == 5.0:
            view.reject(next(job for job in view.waiting if job.id == "w0!1"))
        super().decide(view)


@pytest.mark.parametrize("way", [None, *WAYS])
def test_a_job_that_leaves_the_queue_gives_its_place_back(way: str | None) -> None:
    """Job 3, which comes just then, gets the place of job 1; job 2 moves forward at the next release."""
    answers = Answers(Conservative, "fcfs", "lowest")
    answers.runtime = Runtime(Fickle("fickle", make_order("fcfs"), Conservative(), make_placement("lowest")))
    jobs = [(0.0, 2, 10.0, 10.0), (1.0, 2, 10.0, 10.0), (2.0, 2, 10.0, 10.0), (5.0, 1, 1.0, 1.0)]
    with nullcontext() if way is None else done(way):
        told = [event for reply in decisions(answers, 2, jobs) for event in reply.events]

    assert [(event.timestamp, type(event).__name__, event.data.job_id) for event in told] == [  # type: ignore[union-attr]
        (0.0, "ExecuteJob", "w0!0"),
        (5.0, "RejectJob", "w0!1"),
        (10.0, "ExecuteJob", "w0!3"),
        (11.0, "ExecuteJob", "w0!2"),
    ]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_a_deep_queue_is_no_exception(seed: int) -> None:
    """Hundreds of jobs that wait for each other, of sizes and lengths of many kinds."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    jobs = []
    for _ in range(250):
        walltime = chance.choice([10.0, 60.0, 61.5, 300.0, 3600.0, chance.uniform(1.0, 4000.0)])
        runtime = walltime * chance.choice([1.0, 1.0, 0.5, chance.random()])
        jobs.append(
            (chance.choice([0.0, chance.uniform(0.0, 9000.0)]), chance.choice([1, 2, 3, 7, 16, 40]), runtime, walltime)
        )
    told = (64, sorted(jobs))
    order = ["fcfs", "sjf"][seed % 2]
    expected = decisions(Answers(ToTheLetter, order, "lowest"), *told)

    assert decisions(Answers(Conservative, order, "lowest"), *told) == expected
    with done(["compiled", "in between"][seed % 2]):
        assert decisions(Answers(Conservative, order, "lowest"), *told) == expected


@pytest.mark.slow
def test_thousands_of_gaps_are_no_exception() -> None:
    """Many jobs of many runs of units each: the compiled loops tidy up and make room, and decide the same."""
    chance = Random(1)  # noqa: S311 - a test's dice
    jobs = []
    for _ in range(500):
        walltime = chance.choice([600.0, 3600.0, chance.uniform(1.0, 20000.0)])
        size = chance.choice([1, 8, 40, chance.randint(1, 700)])
        jobs.append((chance.uniform(0.0, 20000.0), size, walltime * chance.random(), walltime))
    told = (3000, sorted(jobs))
    expected = decisions(Answers(Conservative, "fcfs", "lowest"), *told)
    with done("compiled"):
        assert decisions(Answers(Conservative, "fcfs", "lowest"), *told) == expected
