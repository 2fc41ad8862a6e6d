"""The kernel's runs are the reference engine's: job by job and bit by bit."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.kernel import state
from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages, merge
from pipistrelle.platforms.maintenance.dates import Moment
from pipistrelle.platforms.maintenance.plan import MaintenancePlan, MaintenanceRule
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.inputs.named import load_platform, load_workload
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.resilience import Resilience
from pipistrelle.traces.workload import Workload

TRACES = os.environ.get("PIPISTRELLE_TRACES")
LOGS = {
    "kth-sp2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "grizzly": "LANL-Grizzly-2018-01.swf",
    "theta": "ALCF-Theta-2022.swf.gz",
}

#: few of them, so that instants coincide, and some that are no binary fractions
TIMES = st.one_of(st.integers(1, 12).map(lambda number: 10.0 * number), st.floats(0.1, 100.0))


@st.composite
def workloads(draw, units: int) -> Workload:
    """Return jobs for a machine of this many units; many share a submission time."""
    count = draw(st.one_of(st.integers(0, 3), st.integers(15, 40)))
    largest = draw(st.sampled_from([1, 2, max(units // 2, 1), units]))

    def column(values):
        return np.array(draw(st.lists(values, min_size=count, max_size=count)))

    runtime = column(TIMES).astype(float)
    return Workload(
        name="drawn",
        source="hypothesis",
        ids=[str(number) for number in range(count)],
        submit=np.sort(column(st.one_of(st.integers(0, 30).map(lambda at: 10.0 * at), st.floats(0, 300)))).astype(
            float
        ),
        size=column(st.integers(1, largest)).astype(np.int64),
        walltime=column(st.one_of(TIMES, st.just(np.inf), TIMES.map(lambda time: 3 * time))).astype(float),
        runtime=runtime,
    )


@st.composite
def platforms(draw) -> Platform:
    """Return a machine of one or two pools, up to 140 units, some nodes with several."""
    pools = draw(
        st.lists(
            st.tuples(st.sampled_from([1, 2, 3, 4, 5, 8, 31, 63]), st.sampled_from([1, 1, 1, 2])),
            min_size=1,
            max_size=2,
        )
    )
    return Platform(
        name="drawn",
        pools=tuple(
            Pool(name=f"p{at}", nodes=nodes, units_per_node=units, unit="core")
            for at, (nodes, units) in enumerate(pools)
        ),
    )


@st.composite
def outages(draw, nodes: int) -> Outages:
    """Return outages of some nodes, some simultaneous, some permanent, some adjacent."""
    found = []
    for down in draw(
        st.lists(st.one_of(st.integers(1, 40).map(lambda at: 10.0 * at), st.floats(1, 400)), min_size=1, max_size=15)
    ):
        for node in draw(st.sets(st.integers(0, nodes - 1), min_size=1, max_size=4)):
            found.append(Outages.of([Outage(node, down, down + draw(st.one_of(TIMES, st.just(1e9))))]))
    return merge(found)


@st.composite
def maintenance(draw, nodes: int) -> MaintenancePlan:
    """Return maintenance of some nodes or all, known from the begin or ahead, that may overlap or touch."""
    rules = []
    for at in range(draw(st.integers(1, 5))):
        begin = draw(st.one_of(st.integers(0, 30).map(lambda at: 10.0 * at), st.floats(0, 300)))
        low = draw(st.integers(0, nodes - 1))
        some = NodeSet.interval(low, draw(st.integers(low, nodes - 1)))
        rules.append(
            MaintenanceRule(
                text=f"rule {at}",
                nodes=draw(st.sampled_from([NodeSet.interval(0, nodes - 1), some, some])),
                first=Moment(begin, f"@{begin}"),
                length=draw(TIMES),
                lead=draw(st.sampled_from([None, 0.0, 10.0, 70.0])),
            )
        )
    return MaintenancePlan(tuple(rules))


@st.composite
def resiliences(draw) -> Resilience:
    """Return an options object for failures that the kernel supports."""
    if draw(st.booleans()):
        return Resilience()
    interval = draw(st.one_of(st.sampled_from(["daly", "young", 10.0]), st.floats(1.0, 60.0)))
    return Resilience("checkpoint", interval, draw(st.sampled_from([0.0, 1.0, 2.7])), draw(st.sampled_from([0.0, 3.1])))


@st.composite
def runs(draw, *, failing: bool, planned: bool = False) -> tuple[Setup, RunSpec]:
    """Return a run in the kernel's subset."""
    platform = draw(platforms())
    reliability = None
    if failing or planned:
        broken = draw(outages(platform.nodes)) if failing else Outages([], [], [], [])
        way = draw(resiliences()) if len(broken) and broken.down.max() > 0 else Resilience()
        reliability = Reliability(
            outages=broken,
            maintenance=draw(maintenance(platform.nodes)) if planned else None,
            resilience=way,
            requeue=draw(st.sampled_from(["original", "back", "never"])),
            max_attempts=draw(st.sampled_from([None, None, None, 2])),
            restart_walltime=draw(st.sampled_from(["full", "rest"])),
            walltime=draw(st.sampled_from(["asked", "extended"])),
        )
    setup = Setup.of(platform, draw(workloads(platform.units)), reliability=reliability)
    until = draw(st.one_of(st.just(np.inf), st.just(np.inf), st.floats(1.0, 500.0)))
    spec = RunSpec(
        scheduler=draw(st.sampled_from(["fcfs", "easy", "easy", "filler"])),
        order=draw(st.sampled_from([None, "sjf"])),
    )
    return Setup(**{name: getattr(setup, name) for name in Setup.__slots__} | {"until": until}), spec


@settings(deadline=None, max_examples=50)
@given(runs(failing=False))
def test_the_kernel_does_what_the_reference_engine_does(compare, run: tuple[Setup, RunSpec]) -> None:
    """Starts, ends, states and units of all jobs are the same, up to a horizon or the end."""
    compare(*run)


@settings(deadline=None, max_examples=80)
@given(runs(failing=True))
def test_the_kernel_does_the_same_when_nodes_fail(compare, run: tuple[Setup, RunSpec]) -> None:
    """The same holds for all attempts, their use of time, the figures of nodes, and runs that never end."""
    compare(*run)


@settings(deadline=None, max_examples=40)
@given(st.booleans().flatmap(lambda failing: runs(failing=failing, planned=True)))
def test_the_kernel_does_the_same_around_maintenance(compare, run: tuple[Setup, RunSpec]) -> None:
    """Jobs avoid announced maintenance, lose nodes to unannounced maintenance, and reserve units for later."""
    compare(*run)


def bins_file(folder: Path) -> str:
    """Return a scheduler with boosts for large jobs, as fixed priorities."""
    path = folder / "boosted.toml"
    path.write_text(
        'description = "boosts"\norder = "bins"\nbackfill = "easy"\nplacement = "lowest"\n'
        '[order-options]\nover-limit = "run"\n'
        '[[order-options.bins]]\nname = "large"\nsmallest = 16\nboost = "1h"\n'
        '[[order-options.bins]]\nname = "middle"\nsmallest = 4\nboost = 600.1\n'
    )
    return str(path)


@pytest.mark.parametrize("failures", [(), ("exponential,mtbf=2d",)])
def test_boosts_by_size_are_fixed_priorities(
    compare, small_workload, tmp_path: Path, failures: tuple[str, ...]
) -> None:
    """The order of Titan's bins is within the subset."""
    spec = RunSpec(scheduler=bins_file(tmp_path), failures=failures, repair="1h" if failures else None)
    platform = homogeneous(32, "m")
    workload = small_workload()
    compare(Setup.of(platform, workload, reliability=load_reliability(spec, platform, workload)), spec)


@pytest.mark.parametrize("order", ["snake", "hilbert"])
def test_nodes_are_given_away_in_the_order_of_the_machine(compare, small_workload, tmp_path: Path, order: str) -> None:
    """A job gets the free nodes that come first in the order, and loses those, around maintenance, too."""
    path = tmp_path / "grid.toml"
    path.write_text(
        'name = "grid"\ndescription = "a torus"\n[topology]\nkind = "torus"\nshape = [4, 4, 2]\n'
        '[[pools]]\nname = "all"\nnodes = 32\n'
    )
    platform, workload = load_platform(str(path)), small_workload()
    spec = RunSpec(
        scheduler="easy",
        node_order=order,
        failures=("exponential,mtbf=2d",),
        repair="1h",
        maintenance=("@6h +2h 4-11 daily announced 5h", "@1d +3h all announced 12h"),
    )
    made = compare(Setup.of(platform, workload, reliability=load_reliability(spec, platform, workload)), spec)
    assert made is not None
    assert made.units.tolist() != list(range(32))


def test_outages_and_attempts_without_end_in_sight(compare) -> None:
    """A job that takes months, and hundreds of attempts: outages are made and room for attempts is found on the way."""
    jobs = Workload(
        name="long",
        source="test",
        ids=["1", "2"],
        submit=np.array([0.0, 5.0]),
        size=np.array([1, 1]),
        walltime=np.array([np.inf, np.inf]),
        runtime=np.array([3e6, 1e6]),
    )
    spec = RunSpec(failures=("exponential,mtbf=3h",), repair="10min", checkpoint="daly", dump="1min", read="1min")
    platform = homogeneous(2, "m")
    made = compare(Setup.of(platform, jobs, reliability=load_reliability(spec, platform, jobs)), spec)
    assert made is not None
    assert len(made.attempts.job) > 300
    assert made.end > 3e6


@pytest.mark.slow
@pytest.mark.skipif(not TRACES, reason="no PIPISTRELLE_TRACES")
@pytest.mark.parametrize("platform", LOGS)
def test_logs_give_the_same_runs(compare, platform: str) -> None:
    """The same holds for the first jobs of logs, in both orders, with and without failures and dumps."""
    workload = load_workload(str(Path(str(TRACES)) / LOGS[platform]))
    workload = workload.select(np.arange(len(workload)) < 1500)
    machine = load_platform(platform)
    compare(Setup.of(machine, workload), RunSpec(scheduler="easy"))
    spec = RunSpec(
        scheduler="easy",
        order="sjf",
        failures=(f"exponential,mtbf={machine.nodes // 2}d",),
        repair="1d",
        checkpoint="daly",
        dump="5min",
        read="5min",
    )
    made = compare(Setup.of(machine, workload, reliability=load_reliability(spec, machine, workload)), spec)
    assert made is not None
    assert (made.attempts.number > 0).any(), "no job has lost its nodes"


@pytest.mark.slow
@pytest.mark.skipif(not TRACES, reason="no PIPISTRELLE_TRACES")
@pytest.mark.parametrize("platform", LOGS)
def test_whole_logs_give_the_same_runs(compare, platform: str) -> None:
    """The same holds for whole logs: without failures, and with failures, dumps and biweekly maintenance."""
    workload, machine = load_workload(str(Path(str(TRACES)) / LOGS[platform])), load_platform(platform)
    spec = RunSpec(
        scheduler="easy",
        failures=(f"exponential,mtbf={machine.nodes}d",),
        repair="1d",
        checkpoint="daly",
        dump="5min",
        read="5min",
        maintenance=("@5d +12h all every 2 weeks announced 7d",),
    )
    for one in [spec] if platform == "theta" else [RunSpec(scheduler="easy"), spec]:  # it takes longest
        made = compare(Setup.of(machine, workload, reliability=load_reliability(one, machine, workload)), one)
        assert made is not None
        assert (made.lives.state >= state.COMPLETED).all()
