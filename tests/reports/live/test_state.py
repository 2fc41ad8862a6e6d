"""The live view of a run: correct at every look, and without effect on its results."""

import filecmp
import time
from dataclasses import replace

import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.reports.live.watch import LiveWatch
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.generator import generate
from pipistrelle.traces.resilience import parse_resilience


class Keen:
    """A view that wants every state there is."""

    every = 0.0

    def __init__(self) -> None:
        self.states = []
        self.last = None

    def show(self, state) -> None:
        """Keep it."""
        self.states.append(state)

    def over(self, state) -> None:
        """Keep the last one."""
        assert self.last is None
        self.last = state


class Ticks:
    """A clock whose reads take no time; a second passes between two reads."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def observed(setup, out, policy="easy", **more):
    """Run with a look at every possible step; return the view and the result."""
    view, clock = Keen(), Ticks()
    watch = LiveWatch(setup, [view], clock)

    def look(simulation):
        clock.now += 1.0
        assert watch(simulation) == 0.0
        return 0.0

    connection = InProcess(make_policy(policy))
    result = run(
        RunSpec(), RunOptions(setup=setup, connection=connection, out=out, observers=[watch], look=look, **more)
    )
    return view, result


@pytest.fixture
def workload():
    """Return 300 jobs for 64 units, some of them with users."""
    made = generate(jobs=300, units=64, seed=5, load=0.95)
    return replace(made, labels={"user": [f"user {job % 9}" for job in range(300)]})


@pytest.fixture
def failing(workload):
    """Return a setup in which nodes of these jobs fail."""
    span = float(workload.submit[-1])
    outages = Outages.of(Outage(node, span * node / 40, span * node / 40 + 9000.0, "fan") for node in range(30))
    reliability = Reliability(outages=outages, resilience=parse_resilience(checkpoint="1h", dump="60", read="30"))
    return Setup.of(homogeneous(64, "m"), workload, reliability=reliability)


def check(view, setup):
    """Assert that every state is true in itself and follows from the one before."""
    before = None
    for state in [*view.states, view.last]:
        machine = state.machine
        assert machine.held + machine.idle + state.down == state.units
        assert machine.held == (machine.on >= 0).sum()
        assert state.down == machine.down.sum()
        assert not (machine.down & (machine.on >= 0)).any()
        assert len(machine.colours) == state.running == len(state.on_machine)
        assert set(machine.on[machine.on >= 0].tolist()) <= set(range(state.running))
        assert 0 <= state.ended <= state.jobs == setup.jobs
        assert state.queue >= len(state.longest)
        assert all(one.since <= state.now for one in state.longest)
        assert [one.time for one in state.decisions] == sorted((one.time for one in state.decisions), reverse=True)
        if before is not None:
            assert (state.now, state.ended, state.notices) >= (before.now, before.ended, before.notices)
        before = state


def test_every_look_is_at_a_whole_state(workload, tmp_path):
    """At each look units and jobs agree, and the last one equals the summary."""
    setup = Setup.of(homogeneous(64, "m"), workload)
    view, result = observed(setup, tmp_path / "out")

    check(view, setup)
    assert len(view.states) > 300
    assert max(state.queue for state in view.states) > 5
    assert max(len(state.longest) for state in view.states) > 5
    assert {one.what for state in view.states for one in state.decisions} == {"EXECUTE_JOB"}
    assert {one.user for state in view.states for one in state.longest} <= {f"user {job}" for job in range(9)}
    assert view.last.reason == result.summary.reason == "completed"
    assert view.last.ended == result.summary.jobs == 300
    assert view.last.running == view.last.queue == view.last.down == 0
    assert view.last.backlog == 0.0


def test_nodes_that_fail_are_seen(failing, tmp_path):
    """Units of nodes that are down are counted apart from those that are free and those that jobs hold."""
    view, result = observed(failing, tmp_path / "out")

    check(view, failing)
    assert max(state.down for state in view.states) > 0
    assert view.last.ended == result.summary.jobs


@pytest.mark.parametrize("kind", ["steady", "failing"])
def test_looking_leaves_no_trace(kind, workload, failing, tmp_path):
    """The outputs of a run viewed at every step have the bytes of a run without a viewer."""
    setup = failing if kind == "failing" else Setup.of(homogeneous(64, "m"), workload)
    run(RunSpec(), RunOptions(setup=setup, connection=InProcess(make_policy("easy")), out=tmp_path / "plain"))
    observed(setup, tmp_path / "seen")

    names = sorted(path.name for path in (tmp_path / "plain").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "seen").iterdir())
    assert len(names) >= 6
    assert filecmp.cmpfiles(tmp_path / "plain", tmp_path / "seen", names, shallow=False) == (names, [], [])


def test_a_policy_that_thinks_long_is_looked_at(workload):
    """While the scheduler thinks, the view is read repeatedly and stays unchanged."""
    setup = Setup.of(homogeneous(64, "m"), workload)
    view, thought = Keen(), []

    class Thinker:
        name = "thinker"
        order = Fcfs()

        def decide(self, policy_view) -> None:
            """Begin once all jobs that come at first have been seen for a while."""
            before = len(view.states)
            while len(thought) < 3 and len(view.states) < before + 3:
                time.sleep(0.01)
            thought.append(view.states[before:])
            for job in list(policy_view.waiting):
                if job.size > policy_view.free.count:
                    return
                policy_view.start(job)

    watch = LiveWatch(setup, [view])
    run(
        RunSpec(),
        RunOptions(
            setup=setup, connection=InProcess(Thinker()), observers=[watch], look=lambda one: min(watch(one), 0.02)
        ),
    )

    for states in thought[:3]:
        assert len(states) >= 3
        assert len({(state.now, state.notices, state.queue, state.running) for state in states}) == 1
    check(view, setup)


def test_what_hardly_costs_is_looked_at_often_and_what_costs_much_seldom(workload):
    """The next look waits as long as the view wants, and thirty times as long as the last one took."""
    setup = Setup.of(homogeneous(64, "m"), workload)
    clock = Ticks()

    class Slow(Keen):
        every = 0.25

        def show(self, state) -> None:
            """Take the longer the more were shown."""
            super().show(state)
            clock.now += 0.1 * len(self.states)

    waits = []
    watch = LiveWatch(setup, [Slow()], clock)

    def look(simulation):
        waits.append(watch(simulation))
        clock.now += waits[-1]
        return 0.0

    run(
        RunSpec(until="3d"),
        RunOptions(setup=setup, connection=InProcess(make_policy("easy")), observers=[watch], look=look),
    )

    assert waits[:3] == pytest.approx([3.0, 6.0, 9.0])
