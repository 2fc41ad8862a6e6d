"""Maintenance, windows and failures under every policy, in whole runs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.maintenance.plan import Maintenance
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.backfill.conservative import Conservative
from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.schedulers.catalogue.parts import compose, make_backfill
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs, Sjf
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import Stalled
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

RULES: dict[str, Callable[[], Any]] = {
    name: partial(make_backfill, name) for name in PARTS["backfill"] if name != "fill"
}
#: under fcfs jobs pass each other, too: the slower tests check a second order
ORDERS = ["fcfs", pytest.param("sjf", marks=pytest.mark.slow)]
RunPolicy = Callable[..., Any]
Row = tuple[float, int, float, float]
#: announced, begin, length (s), units
Down = tuple[float, float, float, frozenset[int]]
#: id, start, units
Start = tuple[str, float, frozenset[int]]
UNITS = 6

#: in the order of submission, so that a row's number is the job's
times = st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(st.integers(0, 12).map(float), st.integers(1, UNITS), times, times), min_size=1, max_size=18
).map(sorted)
units_of_a_window = st.sets(st.integers(0, UNITS - 1), min_size=1).map(frozenset)


def downs(announced: st.SearchStrategy[float]) -> st.SearchStrategy[list[Down]]:
    """Return windows that are announced so."""
    length = st.sampled_from([1.0, 2.5, 6.0])
    return st.lists(st.tuples(announced, st.integers(1, 25).map(float), length, units_of_a_window), max_size=5)


known_ahead = downs(st.just(0.0))
known_late = downs(st.integers(0, 20).map(float))
#: node, down, length (s)
broken_nodes = st.tuples(st.integers(0, UNITS - 1), st.integers(0, 25), st.sampled_from([1.0, 2.5, 6.0]))
failures = st.lists(broken_nodes, max_size=6, unique_by=lambda row: row[:2])
SEEDS = range(2)


def dense(seed: int) -> tuple[list[Row], list[Down]]:
    """Return a random workload that keeps the machine busy and its queue filled, and maintenance again and again."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    jobs, now = [], 0.0
    for _ in range(150):
        size = chance.choice([1, 1, 1, 2, 2, 3, 4, 6])
        runtime = float(chance.choice([10, 10, 20, 30, 60, 90]))
        jobs.append((now, size, runtime, chance.choice([runtime, runtime, 2 * runtime, 100.0, runtime / 2])))
        now += chance.choice([0.0, 0.0, 5.0, 10.0, 40.0])
    downs = []
    for begin in range(130, 4000, 270):
        units = frozenset(range(UNITS) if chance.random() < 0.4 else chance.sample(range(UNITS), chance.randint(1, 4)))
        downs.append((0.0, float(begin + chance.randint(0, 40)), chance.choice([10.0, 50.0, 90.0]), units))
    return jobs, downs


def each_dense(check: Callable[..., None]) -> Callable[..., None]:
    """Let a property hold for the dense workloads, too."""
    for seed in SEEDS:
        jobs, downs = dense(seed)
        check = example(jobs=jobs, downs=downs)(check)
    return check


class Planned:
    """Maintenance as a list."""

    def __init__(self, downs: Sequence[Down]) -> None:
        self.every = [
            Maintenance(f"m{number}", min(announced, begin), begin, begin + length, NodeSet.of(nodes), "test")
            for number, (announced, begin, length, nodes) in enumerate(downs)
        ]

    def occurrences(self) -> Iterator[Maintenance]:
        """Return the planned outages, by the time of their announcement."""
        return iter(sorted(self.every, key=lambda plan: plan.announced))


class Starts(Observer):
    """Keeps every start, in order."""

    def __init__(self) -> None:
        self.starts: list[Start] = []

    def started(self, now: float, job: Job) -> None:
        """Keep it."""
        self.starts.append((job.id.partition("!")[2], now, frozenset(job.alloc)))


def play(policy: Any, jobs: list[Row], downs: Sequence[Down] = (), broken: Sequence[Any] = ()) -> tuple[Any, Any]:
    """Run a policy on a machine with maintenance and failures; return the starts and the summary."""
    submit, size, runtime, walltime = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    trace = Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(jobs))],
        submit=submit,
        size=size.astype(np.int64),
        walltime=walltime,
        runtime=runtime,
    )
    outages = Outages.of(apart(broken))
    reliability = Reliability(maintenance=Planned(downs), outages=outages)  # type: ignore[arg-type]
    watch = Starts()
    result = simulate(
        Setup.of(homogeneous(UNITS, "m"), trace, strict=True, reliability=reliability),
        InProcessTransport(runtime := Runtime(policy)),
        clock=lambda: 0.0,
        observers=[watch],
        between=lambda simulation: check_invariants(simulation.engine, runtime.view),
    )
    if result.failure is not None:
        raise result.failure
    return watch.starts, result.summary


def apart(broken: Sequence[tuple[int, int, float]]) -> list[Outage]:
    """Return outages; those of one node do not overlap."""
    made: list[Outage] = []
    for node, down, length in sorted(broken):
        begin = float(down)
        if made and made[-1].node == node:
            begin = max(begin, made[-1].up)
        made.append(Outage(node, begin, begin + length))
    return made


def overlaps(downs: Sequence[Down], start: float, end: float, units: frozenset[int]) -> list[Down]:
    """Return the maintenance, known at ``start``, that a job on these units would overlap."""
    return [
        down
        for down in downs
        if min(down[:2]) <= start and down[1] < end and down[1] + down[2] > start and down[3] & units
    ]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("backfill", RULES)
def test_no_job_runs_into_maintenance_that_was_announced(order: str, backfill: str) -> None:
    """Whatever is planned: none starts where it would not end in time, none is ended, and all run."""

    @settings(max_examples=15)
    @given(jobs=rows, downs=known_ahead)
    @each_dense
    def check(jobs: list[Row], downs: list[Down]) -> None:
        starts, summary = play(compose(order=order, backfill=backfill), jobs, downs)
        for name, start, units in starts:
            assert not overlaps(downs, start, start + jobs[int(name)][3], units)
        assert sorted(int(name) for name, _, _ in starts) == list(range(len(jobs)))
        assert (summary.completed + summary.killed_at_walltime, summary.unfinished) == (len(jobs), 0)

    check()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("backfill", RULES)
def test_every_job_runs_in_the_end(order: str, backfill: str) -> None:
    """Nodes fail, maintenance is announced late, jobs lose their nodes and requeue: none starves, none is lost."""

    @settings(max_examples=15)
    @given(jobs=rows, downs=known_late, broken=failures)
    def check(jobs: list[Row], downs: list[Down], broken: list[Any]) -> None:
        starts, summary = play(compose(order=order, backfill=backfill), jobs, downs, broken)
        for name, start, units in starts:
            assert not overlaps(downs, start, start + jobs[int(name.partition("#")[0])][3], units)
        assert (summary.completed + summary.killed_at_walltime, summary.unfinished) == (len(jobs), 0)

    check()


class InOrder(ComposedPolicy):
    """A policy that checks that every started job was at the head of the queue."""

    def __init__(self) -> None:
        super().__init__("in-order", Fcfs(), make_backfill("none"), LowestIds())

    def decide(self, view: View) -> None:
        """Decide, and compare."""
        before = sorted(view.waiting, key=lambda job: (job.submit, job.number))
        assert before == list(view.waiting)
        super().decide(view)
        assert before[len(view.decisions) :] == list(view.waiting)


@settings(max_examples=60)
@given(jobs=rows, downs=known_late, broken=failures)
def test_fcfs_starts_jobs_in_order(jobs: list[Row], downs: list[Down], broken: list[Any]) -> None:
    """Requeued jobs precede those submitted later, and no job passes another."""
    play(InOrder(), jobs, downs, broken)


def promise(view: View, first: SchedulerJob, downs: Sequence[Down]) -> float:
    """Return by when a job can start at the latest: every instant is tried, unit by unit."""
    times = {job.expected_end for job in view.running} | {begin + length for _, begin, length, _ in downs}
    for time in sorted(time for time in times if time >= view.now):
        busy = {unit for job in view.running if job.expected_end > time for unit in job.alloc}
        free = frozenset({*range(UNITS)} - busy)
        good = [unit for unit in free if not overlaps(downs, time, time + first.walltime, frozenset({unit}))]
        if len(good) >= first.size:
            return time
    return inf


class FirstOnes(ComposedPolicy):
    """A policy that writes down, when a job becomes the first in the queue, by when it can start at the latest."""

    def __init__(self, backfill: str, downs: list[Down]) -> None:
        super().__init__("first-ones", Fcfs(), RULES[backfill](), LowestIds())
        self.downs = downs
        self.promised: dict[str, float] = {}

    def decide(self, view: View) -> None:
        """Decide, then record what the running jobs' walltimes and the windows promise."""
        super().decide(view)
        first = view.waiting.first
        if first is not None:
            self.promised.setdefault(first.id.partition("!")[2], promise(view, first, self.downs))


@pytest.mark.parametrize("backfill", ["easy", "easy-sjbf", "easy-slices", "depth"])
def test_the_first_is_never_delayed_by_a_backfill(backfill: str) -> None:
    """Between windows, too, it starts as soon as what ran when it became the first lets it."""

    @settings(max_examples=60)
    @given(jobs=rows, downs=known_ahead)
    @each_dense
    def check(jobs: list[Row], downs: list[Down]) -> None:
        policy = FirstOnes(backfill, downs)
        starts, _ = play(policy, jobs, downs)
        begun = {name: start for name, start, _ in starts}
        late = {name: (begun[name], by) for name, by in policy.promised.items() if begun[name] > by}
        assert late == {}

    check()


class Promises(ComposedPolicy):
    """Conservative backfilling that writes down every job's latest reservation, which must never move back."""

    def __init__(self) -> None:
        self.rule = Conservative()
        super().__init__("promises", Fcfs(), self.rule, LowestIds())
        self.promised: dict[str, float] = {}

    def decide(self, view: View) -> None:
        """Decide, and compare the promises with the earlier ones."""
        super().decide(view)
        for job in view.waiting:
            now = self.rule.reservation(job)
            assert view.now < now <= self.promised.get(job.id, inf)
            self.promised[job.id] = now


@settings(max_examples=80)
@given(jobs=rows, downs=known_ahead)
@each_dense
def test_conservative_keeps_its_promises_between_windows(jobs: list[Row], downs: list[Down]) -> None:
    """Maintenance that was known begins and ends, and no reservation ever moves back."""
    policy = Promises()
    starts, _ = play(policy, jobs, downs)
    begun = {f"w0!{name}": start for name, start, _ in starts}
    assert all(begun[name] <= by < inf for name, by in policy.promised.items())


class Windowed(ComposedPolicy):
    """A policy with windows of its own that requests calls at their begins and ends."""

    def __init__(self, order: str, backfill: str, windows: list[Window]) -> None:
        super().__init__("windowed", Fcfs() if order == "fcfs" else Sjf(), RULES[backfill](), LowestIds())
        self._own: list[Window] | None = windows

    def decide(self, view: View) -> None:
        """Decide, and see to it that no change of windows is missed."""
        if self._own is not None:
            for window in self._own:
                view.windows.add(window)
            self._own = None
        super().decide(view)
        change = view.windows.next_change(view.now)
        if change < inf:
            view.call_me_later(change)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "backfill", sorted({*RULES} - {"depth", "easy-fixed"})
)  # `depth` then reserves other units than by numbers, and `easy-fixed` is then `easy`
def test_a_window_that_admits_everybody_changes_nothing(run_policy: RunPolicy, order: str, backfill: str) -> None:
    """The rule by single units is the rule by numbers where all units are alike."""

    @settings(max_examples=15)
    @given(jobs=rows)
    @example(jobs=dense(0)[0])
    @example(jobs=dense(1)[0])
    def check(jobs: list[Row]) -> None:
        window = Window("all", 0.0, inf, NodeSet.interval(0, UNITS - 1), lambda job: True)
        windowed = run_policy(Windowed(order, backfill, [window]), UNITS, jobs)
        assert windowed.starts == run_policy(compose(order=order, backfill=backfill), UNITS, jobs).starts

    check()


@pytest.mark.parametrize("backfill", RULES)
def test_windows_that_admit_some(run_policy: RunPolicy, backfill: str) -> None:
    """Standing reservations, in force or to come, keep others out; everybody runs when they are over."""

    @settings(max_examples=15)
    @given(jobs=rows, own=known_ahead, narrow=st.integers(1, UNITS))
    def check(jobs: list[Row], own: list[Down], narrow: int) -> None:
        own = [(announced, begin - 1.0, length, units) for announced, begin, length, units in own]
        windows = [
            Window(str(number), begin, begin + length, NodeSet.of(units), lambda job: job.size <= narrow)
            for number, (_, begin, length, units) in enumerate(own)
        ]
        run = run_policy(Windowed("fcfs", backfill, windows), UNITS, jobs)
        assert sorted(number for number, _, _ in run.starts) == list(range(len(jobs)))
        for number, start, text in run.starts:
            units = frozenset(NodeSet.parse(text))
            assert jobs[number][1] <= narrow or not overlaps(own, start, start + jobs[number][3], units)

    check()


@pytest.mark.parametrize("backfill", RULES)
def test_a_first_that_can_never_start_crashes_nothing(run_policy: RunPolicy, backfill: str) -> None:
    """Without a walltime it runs into a window that never ends: it waits; others run unless the order forbids it."""
    jobs = [(0.0, 4, 1.0, inf), (0.0, 1, 1.0, 2.0), (3.0, 3, 1.0, 2.0)]
    window = Window("for ever", 50.0, inf, NodeSet.interval(0, UNITS - 1))
    starts: list[str] = []

    class Watched(Windowed):
        def decide(self, view: View) -> None:
            super().decide(view)
            starts.extend(job.id for job in view.running if job.start == view.now)

    with pytest.raises(Stalled):
        run_policy(Watched("fcfs", backfill, [window]), UNITS, jobs)
    assert starts == ([] if backfill == "none" else ["w0!1", "w0!2"])


@pytest.mark.parametrize("backfill", RULES)
def test_ramp_down(backfill: str) -> None:
    """Before maintenance of half of the machine, jobs that end in time start there; the rest run elsewhere or wait."""
    jobs = [(0.0, 3, 8.0, 10.0), (0.0, 3, 8.0, 10.0), (1.0, 1, 4.0, 4.0), (1.0, 2, 2.0, 2.0)]
    starts, _ = play(compose(backfill=backfill), jobs, [(0.0, 5.0, 10.0, frozenset({0, 1, 2}))])
    begun = {name: (start, sorted(units)) for name, start, units in starts}

    assert begun["0"] == (0.0, [3, 4, 5])
    assert begun["1"] == (8.0, [3, 4, 5])
    if backfill == "none":
        assert (begun["2"], begun["3"]) == ((15.0, [0]), (15.0, [1, 2]))
    else:
        assert (begun["2"][0], begun["3"][0], {*begun["2"][1], *begun["3"][1]}) == (1.0, 1.0, {0, 1, 2})


@pytest.mark.parametrize("broken", [[], [(5, 3, 0.5)]])
@pytest.mark.parametrize("backfill", ["easy", "easy-slices", "conservative"])
def test_jobs_that_maintenance_will_end_hold_nothing_beyond_it(backfill: str, broken: list[Any]) -> None:
    """Announced late, it ends the job that runs there; the next is planned on that job's other units.

    The same holds when a failure forces all plans to be remade.
    The requeued job is first again where only the first has a reservation.
    """
    jobs = [(0.0, 4, 30.0, 30.0), (1.0, 4, 5.0, 5.0), (4.0, 2, 3.0, 3.0), (4.0, 2, 7.0, 7.0)]
    starts, _ = play(compose(backfill=backfill), jobs, [(2.0, 8.0, 100.0, frozenset({0}))], broken)
    begun = {name: (start, sorted(units)) for name, start, units in starts}

    assert begun["2"] == (4.0, [4, 5])
    assert begun["1" if backfill == "conservative" else "0#1"] == (8.0, [1, 2, 3, 4])


def test_a_place_that_new_maintenance_closes_is_given_up() -> None:
    """From the announcement on, conservative backfilling keeps nothing free for a job that cannot run there now."""
    jobs = [(0.0, 6, 10.0, 10.0), (1.0, 6, 5.0, 5.0), (3.0, 6, 2.0, 2.0)]
    starts, _ = play(compose(backfill="conservative"), jobs, [(2.0, 12.0, 8.0, frozenset(range(UNITS)))])

    assert [(name, start) for name, start, _ in starts] == [("0", 0.0), ("2", 10.0), ("1", 20.0)]
