"""What `view.fits`, `view.pick` and `view.start` answer for jobs with classes, requests, and maintenance ahead."""

import importlib.util
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms import catalogue
from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.read import parse_platform
from pipistrelle.platforms.requests.requests import NodeRequest
from pipistrelle.protocol.events import JobDescription, SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.runtime.runtime import Runtime, view_of
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result, simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.load import load
from pipistrelle.traces.workload import Workload

ROOT = Path(__file__).resolve().parent.parent.parent.parent
POOLS = ROOT / "docs" / "examples" / "pools"
EXAMPLES = {"shortest_first": "ShortestFirst", "considerate": "Considerate"}
#: ten units: two nodes of one, two of two, one of four
SMALL = Platform(
    name="m",
    pools=(
        Pool(name="cpu", nodes=2),
        Pool(name="old", nodes=2, units_per_node=2, unit="gpu"),
        Pool(name="gpu", nodes=1, units_per_node=4, unit="gpu"),
    ),
    classes=(JobClass(name="x", pools=("old", "gpu")),),
)
UNITS = 10


def view_on(platform: Platform, free: frozenset[int]) -> View:
    """Return the view of a machine on which only these units are free."""
    view = view_of(SimulationBeginsData(platform.units, platform.info), Fcfs())
    view.free.remove(NodeSet.of(set(range(platform.units)) - free))
    return view


def submit(view: View, size: int, **asks: Any) -> SchedulerJob | None:
    """Submit a job and return it; None if the machine can never run it."""
    job = SchedulerJob.submitted(JobDescription("a", size, 60.0, **asks), 0, 0.0)
    view.submit(job, 0.0)
    return job if view.arrivals else None


def legal(view: View, job: SchedulerJob, units: NodeSet) -> bool:
    """Return whether the server would accept a start on these free units, judged by the rules of requests alone."""
    if job.description is not None and job.description.queue == "x" and units.first < 2:
        return False
    return job.request is None or view.machine.requests.fault(job.request, job.size, units) is None


@settings(max_examples=300, deadline=None)
@given(
    free=st.frozensets(st.integers(0, UNITS - 1)),
    size=st.integers(1, 6),
    constraint=st.sampled_from([None, "cpu", "old|gpu"]),
    each=st.sampled_from([None, 1, 2, 3]),
    queue=st.sampled_from([None, "x"]),
    maintained=st.frozensets(st.integers(0, UNITS - 1), max_size=3),
)
def test_a_job_fits_exactly_if_some_free_units_are_legal(
    free: frozenset[int],
    size: int,
    constraint: str | None,
    each: int | None,
    queue: str | None,
    maintained: frozenset[int],
) -> None:
    """`pick` returns legal free units without maintenance if there are any; `fits` and `start` agree with it."""
    view = view_on(SMALL, free)
    if maintained:
        view.windows.add(Window("m", 30.0, inf, NodeSet.of(maintained)))
    job = submit(view, size, constraint=constraint, units_per_node=each, queue=queue)
    if job is None:
        return
    some = sorted(free - maintained)
    exists = any(legal(view, job, NodeSet.of(units)) for units in combinations(some, size))
    picked = view.pick(job)

    assert view.fits(job) == (picked is not None) == exists
    assert view.free.snapshot() == NodeSet.of(free), "asking takes nothing"
    if picked is None:
        with pytest.raises(ValueError, match=r"a does not fit now|cannot take|Ask view.fits"):
            view.start(job)
    else:
        assert len(picked) == size
        assert picked <= NodeSet.of(some)
        assert legal(view, job, picked)
        view.start(job)
        assert job.alloc == picked
        assert view.free.snapshot() == NodeSet.of(free) - picked


@pytest.mark.parametrize("taken", [False, True])
def test_start_takes_the_units_that_the_caller_has_not_taken(taken: bool) -> None:
    """Units from `pick` are free until the start; units that the policy took from ``free`` are not taken twice."""
    view = view_on(SMALL, frozenset(range(UNITS)))
    job = submit(view, 3, units_per_node=3)
    assert job is not None
    picked = view.pick(job)
    assert picked == NodeSet.parse("6-8")
    if taken:
        view.free.remove(picked)
    view.start(job, picked)

    assert view.free.snapshot() == NodeSet.parse("0-5 9")


def test_a_job_whose_units_are_only_partly_free_does_not_start() -> None:
    """The view refuses the start before the server sees it, and names the units."""
    view = view_on(SMALL, frozenset({0, 1, 2}))
    job = submit(view, 2)
    assert job is not None
    with pytest.raises(ValueError, match="units not in the set: 3"):
        view.start(job, NodeSet.parse("2-3"))


def test_a_job_set_aside_does_not_fit() -> None:
    """A limit of its class keeps the job out of the queue, however many units are free."""
    limited = Platform(name="m", pools=(Pool(name="a", nodes=4),), classes=(JobClass(name="x", max_nodes=2),))
    view = view_on(limited, frozenset(range(4)))
    first, second = (
        SchedulerJob.submitted(JobDescription(name, 2, 60.0, queue="x"), number, 0.0)
        for number, name in enumerate("ab")
    )
    view.submit(first, 0.0)
    view.submit(second, 0.0)
    view.let_in()

    assert (view.fits(first), view.fits(second), view.pick(second)) == (True, False, None)


def policy_of(name: str) -> Policy:
    """Return the policy of an example of the documentation."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "docs" / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    policy: Policy = getattr(module, EXAMPLES[name])()
    return policy


def play(platform: Platform, workload: Workload, name: str) -> Result:
    """Run an example; check the invariants after each instant, and that no decision is rejected."""
    runtime = Runtime(policy_of(name))
    result = simulate(
        Setup.of(platform, workload, strict=True),
        InProcessTransport(runtime),
        clock=lambda: 0.0,
        between=lambda simulation: check_invariants(simulation.engine, runtime.view),
    )
    if result.failure is not None:
        raise result.failure
    return result


def busy_days(platform: Platform, jobs: int = 40) -> Workload:
    """Return jobs that keep a machine busy, of all its queues, some with units per node and constraints."""
    rng = np.random.Generator(np.random.PCG64(7))
    largest = max(platform.units // 3, 1)
    queues = [one.name for one in platform.classes] or [""]
    pools = [pool.name for pool in platform.pools]
    runtime = rng.integers(60, 3600, jobs).astype(float)
    asks = platform.units > 4
    each = rng.choice([0, 0, 2, 6], jobs) if any(pool.units_per_node > 1 for pool in platform.pools) else None
    return Workload(
        name="busy",
        source="busy",
        ids=[str(number) for number in range(jobs)],
        submit=np.sort(rng.integers(0, 7200, jobs)).astype(float),
        size=rng.integers(1, largest + 1, jobs).astype(np.int64),
        runtime=runtime,
        walltime=runtime * 2.0,
        labels={
            "queue": rng.choice(queues, jobs).tolist(),
            **({"constraint": rng.choice(["", f"pool={pools[-1]}"], jobs).tolist()} if asks else {}),
        },
        columns={} if each is None else {"units_per_node": np.where(each == 0, -1, each).astype(np.int64)},
    )


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("machine", catalogue.names())
def test_the_examples_run_on_every_bundled_platform(machine: str, name: str) -> None:
    """README's policies respect pools, classes and requests without knowing of them."""
    platform = catalogue.get(machine)
    result = play(platform, busy_days(platform), name)

    assert result.summary.unfinished == 0


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("jobs", ["jobs.json", "shapes.json"])
def test_the_examples_run_on_pools_of_gpus(jobs: str, name: str) -> None:
    """Jobs that ask for units per node, constraints and whole nodes start on such nodes."""
    platform = parse_platform((POOLS / "zeus.toml").read_text(encoding="utf-8"), "zeus.toml")
    result = play(platform, load(str(POOLS / jobs)), name)

    assert result.summary.unfinished == 0


def test_the_message_about_a_job_that_does_not_fit_says_what_it_asks_for() -> None:
    """The policy's author reads the request, how many units are open, and which question to ask first."""
    view = view_on(SMALL, frozenset({0, 1, 2, 4}))
    job = submit(view, 4, constraint="old", units_per_node=2)
    assert job is not None
    assert job.request == NodeRequest("old", 2)
    with pytest.raises(ValueError, match="it asks for 4 units, constraint 'old', 2 units a node; 2 of"):
        view.start(job)
