"""What waiting jobs are promised is kept, whatever the workload: property tests of every backfilling rule."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.backfill.conservative import Conservative
from pipistrelle.schedulers.backfill.easy_slices import EasySlices
from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.schedulers.catalogue.parts import compose, make_backfill, make_order
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.runtime.runtime import view_of

RULES: dict[str, Callable[[], Any]] = {
    name: partial(make_backfill, name) for name in PARTS["backfill"] if name != "fill"
}
RunPolicy = Callable[..., Any]
MakeJob = Callable[..., SchedulerJob]
Row = tuple[float, int, float, float]
UNITS = 6

#: in the order of submission, so that a row's number is the job's
rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        st.integers(0, 12).map(float),
        st.integers(1, UNITS),
        st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0]),
        st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0, 9.0, inf]),
    ),
    min_size=1,
    max_size=25,
).map(sorted)


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
@pytest.mark.parametrize("backfill", RULES)
def test_every_accepted_job_runs(run_policy: RunPolicy, order: str, backfill: str) -> None:
    """Each job starts once, not before its submission, on as many units as it requests, which no other job holds."""

    @settings(max_examples=30)
    @given(rows=rows)
    def check(rows: list[Row]) -> None:
        run = run_policy(compose(order=order, backfill=backfill), UNITS, rows)
        assert sorted(number for number, _, _ in run.starts) == list(range(len(rows)))
        held: list[tuple[float, set[int]]] = []
        for number, start, text in run.starts:
            submit, size, runtime, walltime = rows[number]
            units = set(NodeSet.parse(text))
            held = [(end, others) for end, others in held if end > start]
            assert start >= submit
            assert len(units) == size
            assert units <= set(range(UNITS))
            assert not any(units & others for _, others in held)
            held.append((start + min(runtime, walltime), units))

    check()


class Promises(ComposedPolicy):
    """Conservative backfilling that writes down every job's latest reservation, which must never move back."""

    def __init__(self, order: str) -> None:
        self.rule = Conservative()
        super().__init__("promises", make_order(order), self.rule, LowestIds())
        self.promised: dict[int, float] = {}

    def decide(self, view: View) -> None:
        """Decide, and compare the promises with the earlier ones."""
        super().decide(view)
        for job in view.waiting:
            now = self.rule.reservation(job)
            assert view.now < now <= self.promised.get(job.number, inf)
            self.promised[job.number] = now


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_no_job_is_delayed_past_its_reservation_under_conservative(run_policy: RunPolicy, order: str) -> None:
    """From the moment a job has one, its reservation only moves forward, and it starts by then."""

    @settings(max_examples=100)
    @given(rows=rows)
    def check(rows: list[Row]) -> None:
        policy = Promises(order)
        run = run_policy(policy, UNITS, rows)
        assert all(run.start_of[number] <= promised for number, promised in policy.promised.items())

    check()


class FirstOnes(ComposedPolicy):
    """A policy that writes down, when a job becomes the first in the queue, by when it can start at the latest."""

    def __init__(self, backfill: str) -> None:
        super().__init__("first-ones", Fcfs(), RULES[backfill](), LowestIds())
        self.promised: dict[int, float] = {}

    def decide(self, view: View) -> None:
        """Decide, then count the units that the running jobs' walltimes promise."""
        super().decide(view)
        first = view.waiting.first
        if first is not None and first.number not in self.promised:
            free, self.promised[first.number] = view.free.count, inf
            for job in sorted(view.running, key=lambda job: job.expected_end):
                free += job.size
                if free >= first.size:
                    self.promised[first.number] = job.expected_end
                    break


@pytest.mark.parametrize("backfill", ["easy", "easy-sjbf", "easy-slices", "depth"])
def test_the_first_is_never_delayed_by_a_backfill(run_policy: RunPolicy, backfill: str) -> None:
    """Once a job is first, no later start delays it beyond the walltimes of the running jobs."""

    @settings(max_examples=100)
    @given(rows=rows)
    def check(rows: list[Row]) -> None:
        policy = FirstOnes(backfill)
        run = run_policy(policy, UNITS, rows)
        assert all(run.start_of[number] <= promised for number, promised in policy.promised.items())

    check()


class Bench:
    """A rule and a view whose jobs are added and removed by the test."""

    def __init__(self, rule: Conservative | EasySlices, units: int = 4) -> None:
        self.rule = rule
        self.view = view_of(SimulationBeginsData(units), Fcfs())

    def at(self, now: float, *arrivals: SchedulerJob, ended: tuple[SchedulerJob, ...] = ()) -> dict[int, str]:
        """Let these jobs arrive and those end, and return the units of all that start then."""
        view = self.view
        view.now = now
        for job in ended:
            view.give_back(view.running.remove(job.id).alloc)
        for job in arrivals:
            view.waiting.add(job)
        view.arrivals = list(arrivals)
        before = {job.number for job in view.running}
        self.rule.schedule(view, LowestIds())
        view.arrivals, view.released = [], False
        return {job.number: str(job.alloc) for job in view.running if job.number not in before}


@pytest.fixture(params=[Conservative, EasySlices])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Return a bench with each of the rules that reserve units."""
    return Bench(request.param())


def test_units_out_of_service_are_planned_around(bench: Bench, waiting_job: MakeJob) -> None:
    """No job is placed on them, nor starts there, until they are back."""
    one, wide, narrow = waiting_job(0, size=2, walltime=10.0), waiting_job(1, size=4, walltime=5.0), waiting_job(2)
    assert bench.at(0.0, one) == {0: "0-1"}
    bench.view.withdraw(NodeSet.parse("1-2"))
    assert bench.at(1.0, wide, narrow) == {2: "3"}
    assert bench.at(10.0, ended=(one,)) == {}
    assert bench.at(11.0, ended=(narrow,)) == {}
    bench.view.put_back(NodeSet.parse("1-2"))

    assert bench.at(12.0) == {1: "0-3"}


def test_a_job_that_runs_on_keeps_its_units(bench: Bench, waiting_job: MakeJob) -> None:
    """When simultaneous ends arrive one by one, no job takes what the first needs; it starts after the last end."""
    left, right = waiting_job(0, size=2, walltime=10.0), waiting_job(1, size=2, walltime=10.0)
    first, small = waiting_job(2, size=4, walltime=5.0), waiting_job(3, size=1, walltime=5.0)
    assert bench.at(0.0, left, right) == {0: "0-1", 1: "2-3"}
    assert bench.at(1.0, first) == {}
    assert bench.at(10.0, small, ended=(left,)) == {}
    assert bench.at(10.0, ended=(right,)) == {2: "0-3"}
    assert bench.at(15.0, ended=(first,)) == {3: "0"}


def test_a_job_far_beyond_its_walltime_is_waited_for(bench: Bench, waiting_job: MakeJob) -> None:
    """An expired reservation is replanned."""
    late, first = waiting_job(0, size=3, walltime=10.0), waiting_job(1, size=4, walltime=5.0)
    assert bench.at(0.0, late) == {0: "0-2"}
    assert bench.at(10.0, first) == {}
    assert bench.at(20.0) == {}

    assert bench.at(25.0, ended=(late,)) == {1: "0-3"}


def test_a_job_that_survives_maintenance_keeps_its_units(bench: Bench, waiting_job: MakeJob) -> None:
    """It continues without its lost nodes, unlike planned: no other job gets what it still holds."""
    long, first = waiting_job(0, size=2, walltime=30.0), waiting_job(1, size=3, walltime=5.0)
    assert bench.at(0.0, long) == {0: "0-1"}
    bench.view.windows.add(Window("m", 8.0, 12.0, NodeSet.parse("0")))
    assert bench.at(1.0, first) == {}
    bench.view.withdraw(NodeSet.parse("0"), "m")
    assert bench.at(8.0) == {}
    bench.view.put_back(NodeSet.parse("0"), "m")
    bench.view.windows.remove("m")
    assert bench.at(12.0) == {}

    assert bench.at(20.0, ended=(long,)) == {1: "0-2"}


class HighestIds(LowestIds):
    """A placement of the user's own; derived, so that it must not be taken for the one it derives from."""

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet:
        """Return the highest open units."""
        return NodeSet.of(sorted(open_units)[-job.size :])


@pytest.mark.parametrize("backfill", ["conservative", "easy-slices"])
def test_any_placement_chooses_among_the_units_that_stay_free(run_policy: RunPolicy, backfill: str) -> None:
    """Reservations and starts are on units that the placement picks."""
    policy = ComposedPolicy("high", Fcfs(), RULES[backfill](), HighestIds())
    run = run_policy(policy, 4, [(0.0, 3, 10.0, 10.0), (1.0, 2, 5.0, 5.0), (2.0, 1, 20.0, 20.0)])

    assert run.starts == [(0, 0.0, "1-3"), (2, 2.0, "0"), (1, 10.0, "2-3")]
