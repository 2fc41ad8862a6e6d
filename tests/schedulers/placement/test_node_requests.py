"""Jobs that request nodes and units per node, under every order, backfilling rule and placement."""

from collections.abc import Callable
from math import exp, inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedulers.pairs import PAIRS

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.requests.requests import NodeRequest
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.orders import NODE_ORDERS
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.backfill.conservative import Conservative
from pipistrelle.schedulers.backfill.easy import Easy
from pipistrelle.schedulers.catalogue.names import ON_UNITS, PARTS
from pipistrelle.schedulers.catalogue.parts import compose, make_placement
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result, simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

#: submit, size, runtime, walltime (s), constraint, units a node (0: any), whole nodes, queue
Row = tuple[float, int, float, float, str, int, bool, str]
#: announced, begin, length (s), nodes
Down = tuple[float, float, float, frozenset[int]]
Unsteady = Callable[..., Reliability]

POOLS = (
    Pool(name="cpu", nodes=3, mttf=900.0),
    Pool(name="gpu", nodes=2, units_per_node=4, unit="gpu", properties={"model": "a100", "nvlink": True}, mttf=300.0),
    Pool(name="old", nodes=2, units_per_node=2, unit="gpu", properties={"model": "k80"}, mttf=100.0),
)
ZEUS = Platform(name="zeus", pools=POOLS, topology=TopologyRule(kind="torus", shape=(7, 1)))
TARGET = 0.9
WITH_CLASSES = Platform(name="zeus", pools=POOLS, classes=(JobClass(name="x", pools=("gpu", "old"), max_nodes=4),))
NODES = 7
ORDER_OPTIONS = {
    "bins": {"bins": [{"name": "large", "smallest": 5, "boost": 4.0}]},
    "pbs": {"formula": "queue_priority + ncpus + eligible_time/4"},
}
CONSTRAINTS = ["", "", "pool=cpu", "unit=gpu", "a100|cpu", "nvlink&model=a100", "k80"]
#: those whose placement never refuses what fits
PLACEMENTS = ["lowest", "pack", "spread"]

times = st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        st.integers(0, 12).map(float),
        st.integers(1, 8),
        times,
        times,
        st.sampled_from(CONSTRAINTS),
        st.sampled_from([0, 0, 1, 2, 3, 4]),
        st.sampled_from([False, False, True]),
        st.sampled_from(["x", "y"]),
    ),
    min_size=1,
    max_size=16,
).map(sorted)
some_nodes = st.sets(st.integers(0, NODES - 1), min_size=1).map(frozenset)
downs: st.SearchStrategy[list[Down]] = st.lists(
    st.tuples(st.integers(0, 15).map(float), st.integers(1, 20).map(float), st.sampled_from([1.0, 2.5]), some_nodes),
    max_size=2,
)
lines = st.fixed_dictionaries(
    {"node-order": st.sampled_from([one for one in NODE_ORDERS if one != "alps"]), "age-aware": st.booleans()},
    optional={"dual-ended": st.just("nodes<=2"), "reliability-target": st.just(TARGET)},
)
failures = st.dictionaries(st.integers(0, NODES - 1), st.integers(0, 20).map(float), max_size=3)


class Watch(Observer):
    """Keeps every start, by an account of units and nodes of its own."""

    def __init__(self, platform: Platform) -> None:
        self._pools: list[Pool] = []
        self._node: list[int] = []
        for pool in platform.pools:
            for _ in range(pool.nodes):
                self._node += [len(self._pools)] * pool.units_per_node
                self._pools.append(pool)
        self.starts: dict[str, float] = {}
        self.least_chance = 1.0

    def started(self, now: float, job: Job) -> None:
        """Check that the job has what it requests."""
        self.starts.setdefault(job.id.partition("!")[2].partition("#")[0], now)
        request = job.request
        nodes = {self._node[unit] for unit in job.alloc}
        rate = sum(1.0 / float(self._pools[node].mttf) for node in nodes)
        self.least_chance = min(self.least_chance, exp(-job.walltime * rate))
        if request is None:
            return
        counts: dict[int, int] = {}
        for unit in job.alloc:
            counts[self._node[unit]] = counts.get(self._node[unit], 0) + 1
        for node, count in counts.items():
            pool = self._pools[node]
            assert request.constraint is None or meets(pool, request.constraint)
            if request.whole_nodes:
                assert count == pool.units_per_node
            assert pool.units_per_node >= (request.units_per_node or 1)
        if request.units_per_node is not None:
            full, rest = divmod(job.size, request.units_per_node)
            assert sorted(counts.values()) == sorted([request.units_per_node] * full + [rest] * bool(rest))


def meets(pool: Pool, constraint: str) -> bool:
    """Return whether a pool satisfies one of `CONSTRAINTS`, by their meaning as written here."""
    return pool.name in {
        "pool=cpu": {"cpu"},
        "unit=gpu": {"gpu", "old"},
        "a100|cpu": {"gpu", "cpu"},
        "nvlink&model=a100": {"gpu"},
        "k80": {"old"},
    }.get(constraint, {"cpu", "gpu", "old"})


def workload_of(jobs: list[Row]) -> Workload:
    """Return rows as a workload."""
    submit, size, runtime, walltime, constraint, each, whole, queue = zip(*jobs, strict=True)
    return Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(jobs))],
        submit=np.array(submit),
        size=np.array(size, dtype=np.int64),
        walltime=np.array(walltime),
        runtime=np.array(runtime),
        columns={
            "units_per_node": np.array([one or -1 for one in each], dtype=np.int64),
            "whole_nodes": np.array([1 if one else -1 for one in whole], dtype=np.int64),
        },
        labels={"constraint": list(constraint), "queue": list(queue)},
    )


def play(
    policy: Policy,
    jobs: list[Row],
    platform: Platform = ZEUS,
    reliability: Reliability | None = None,
    kind: Callable[[Policy], Any] = Runtime,
) -> tuple[Watch, Result]:
    """Run a policy and return its observer and its results."""
    watch = Watch(platform)
    result = simulate(
        Setup.of(platform, workload_of(jobs), strict=True, reliability=reliability),
        InProcessTransport(runtime := kind(policy)),
        clock=lambda: 0.0,
        observers=[watch],
        between=lambda simulation: check_invariants(simulation.engine, runtime.view),
    )
    if result.failure is not None:
        raise result.failure
    return watch, result


def check_all_end(result: Result, jobs: list[Row], *, rejects: bool) -> None:
    """Check that every job that the machine can satisfy has ended."""
    summary = result.summary
    ended = summary.completed + summary.killed_at_walltime
    assert summary.jobs == len(jobs) - sum(summary.dropped.values())
    assert (ended + summary.rejected, summary.unfinished) == (summary.jobs, 0)
    assert rejects or not summary.rejected


@pytest.mark.parametrize(("order", "backfill"), PAIRS)
def test_every_job_gets_its_request(unsteady: Unsteady, order: str, backfill: str) -> None:
    """Nodes fail and are maintained: no decision is illegal, every start is as the job asks, and all jobs end."""

    @settings(max_examples=15)
    @given(jobs=rows, planned=downs, broken=failures, placement=st.sampled_from(sorted(ON_UNITS)), line=lines)
    def check(
        jobs: list[Row], planned: list[Down], broken: dict[int, float], placement: str, line: dict[str, Any]
    ) -> None:
        policy = compose(
            order=order,
            backfill=backfill,
            placement=placement,
            order_options=ORDER_OPTIONS.get(order),
            placement_options=line,
        )
        watch, result = play(policy, jobs, reliability=unsteady(planned, broken))
        check_all_end(result, jobs, rejects=placement == "contiguous" or "reliability-target" in line)
        assert "reliability-target" not in line or watch.least_chance >= TARGET - 1e-9

    check()


@pytest.mark.parametrize("backfill", PARTS["backfill"])
def test_classes_and_requests_hold_together(backfill: str) -> None:
    """Jobs of a class with its own pools get matching nodes of these; impossible jobs are rejected."""

    @settings(max_examples=20)
    @given(jobs=rows, placement=st.sampled_from(PLACEMENTS))
    def check(jobs: list[Row], placement: str) -> None:
        _, result = play(compose(backfill=backfill, placement=placement), jobs, WITH_CLASSES)
        check_all_end(result, jobs, rejects=True)

    check()


@pytest.mark.parametrize("fill", ["FIRSTFIT", "BESTFIT", "GREEDY", "NONE"])
@pytest.mark.parametrize("keep", ["CURRENTHIGHEST", "HIGHEST", "NEVER"])
@pytest.mark.parametrize("nodes", ["FIRSTAVAILABLE", "LASTAVAILABLE", "pack"])
def test_maui_respects_requests(unsteady: Unsteady, fill: str, keep: str, nodes: str) -> None:
    """For any order of filling, any reserve and any placement."""
    own = "" if nodes == "pack" else f"NODEALLOCATIONPOLICY {nodes}\n"
    text = f"BACKFILLPOLICY {fill}\nRESERVATIONPOLICY {keep}\nRESERVATIONDEPTH 2\n{own}"

    @settings(max_examples=10)
    @given(jobs=rows, planned=downs, broken=failures)
    def check(jobs: list[Row], planned: list[Down], broken: dict[int, float]) -> None:
        policy = MauiPolicy(parse_maui_config(text)[0], placement=make_placement("pack") if nodes == "pack" else None)
        _, result = play(policy, jobs, reliability=unsteady(planned, broken))
        check_all_end(result, jobs, rejects=False)

    check()


class Promises(ComposedPolicy):
    """Records every announced reservation; none may move back while the job waits for it."""

    def __init__(self, rule: Any, placement: str) -> None:
        self.rule = rule
        super().__init__("promises", Fcfs(), rule, make_placement(placement))
        self.promised: dict[int, float] = {}

    def decide(self, view: View) -> None:
        """Decide, and compare the promises with the earlier ones."""
        super().decide(view)
        for job in view.waiting:
            now = self.rule.reservation(job)
            if now is not None:
                assert view.now < now <= self.promised.get(job.number, inf)
                self.promised[job.number] = now


@pytest.mark.parametrize("rule", [Easy, Conservative])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_no_job_is_delayed_past_its_reservation(rule: Callable[[], Any], placement: str) -> None:
    """The first's under EASY, everybody's under conservative: it only moves forward, and the job starts by then."""

    @settings(max_examples=100)
    @given(jobs=rows)
    def check(jobs: list[Row]) -> None:
        policy = Promises(rule(), placement)
        watch, result = play(policy, jobs)
        left = [str(number) for number in range(len(jobs)) if str(number) in watch.starts]
        assert result.summary.jobs == len(left)
        assert all(watch.starts[left[number]] <= time for number, time in policy.promised.items())

    check()


class Handover(Runtime):
    """From each notice on, another runtime of the same kind continues from the previous state."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self._inner: Runtime = Runtime(compose(backfill="easy", placement="pack"))

    def answer(self, notice: Any) -> Any:
        """Answer with the latest, and hand over."""
        reply = self._inner.answer(notice)
        if self._inner.view is not None and self._inner.ended is None:
            text = to_json(self._inner.state())
            self._inner = Runtime(compose(backfill="easy", placement="pack"))
            self._inner.restore(from_json(text))
        return reply


@settings(max_examples=40, deadline=None)
@given(jobs=rows)
def test_state_has_the_jobs_requests(jobs: list[Row]) -> None:
    """A scheduler that is rebuilt at every notice makes the same decisions."""
    plain, _ = play(compose(backfill="easy", placement="pack"), jobs)
    handed, _ = play(compose(backfill="easy", placement="pack"), jobs, kind=Handover)

    assert plain.starts == handed.starts


def pick(placement: str, open_units: str, size: int, each: int | None = None) -> str:
    """Return what a placement picks on a machine of three nodes with four units, one with two and three with one."""
    pools = (
        Pool(name="a", nodes=3, units_per_node=4, unit="gpu"),
        Pool(name="b", nodes=1, units_per_node=2, unit="gpu"),
        Pool(name="c", nodes=3),
    )
    platform = Platform(name="m", pools=pools)
    machine = Machine(platform.units, platform.info)
    request = None if each is None else NodeRequest(None, each)
    job = SchedulerJob("w0!1", 0, size, inf, 0.0, request=request)
    found = picked(make_placement(placement), job, NodeSet.parse(open_units), machine)
    assert NodeUnits.told(platform.info.pools)
    return "none" if found is None else str(found)


@pytest.mark.parametrize(
    ("placement", "open_units", "size", "each", "found"),
    [
        ("pack", "0-16", 1, None, "14"),
        ("pack", "0-16", 2, None, "12-13"),
        ("pack", "0-16", 3, None, "0-2"),
        ("pack", "2-16", 2, None, "2-3"),
        ("pack", "0-16", 6, None, "0-3 12-13"),
        ("pack", "0-16", 9, None, "0-7 14"),
        ("pack", "1-3 4-11", 3, None, "1-3"),
        ("spread", "0-16", 1, None, "0"),
        ("spread", "0-16", 3, None, "0 4 8"),
        ("spread", "0-16", 8, None, "0-1 4 8 12 14-16"),
        ("spread", "2-16", 4, None, "2 4 8 12"),
        ("spread", "0-16", 17, None, "0-16"),
        ("pack", "0-16", 4, 2, "0-1 12-13"),
        ("spread", "0-16", 4, 2, "0-1 4-5"),
        ("spread", "2-16", 4, 2, "4-5 8-9"),
        ("lowest", "1-16", 5, 2, "1-2 4-5 8"),
        ("contiguous", "1-2 8-16", 4, 2, "8-9 12-13"),
        ("contiguous", "0-3 8-11", 4, 2, "none"),
        ("lowest", "0-2 4-6 8-10", 8, 4, "none"),
    ],
)
def test_which_units_are_picked(placement: str, open_units: str, size: int, each: int | None, found: str) -> None:
    """Pack: few nodes, the tightest; spread: many, the emptiest; others pick nodes as they pick units."""
    assert pick(placement, open_units, size, each) == found


def test_batsims_runtime_is_one() -> None:
    """The runtime for Batsim derives the native one, so that all this holds for it, too."""
    assert issubclass(BatsimRuntime, Runtime)


@pytest.mark.parametrize(
    ("condition", "found"),
    [("nodes<=2", "0-1 4-5 8"), ("nodes<=3", "4 8-9 12-13"), ("units<5", "0-1 4-5 8"), ("units<=5", "4 8-9 12-13")],
)
def test_conditions_are_about_the_whole_job(condition: str, found: str) -> None:
    """A placement that picks node kinds in turn requests the job's own nodes and units each time."""
    platform = Platform(name="m", pools=(Pool(name="a", nodes=4, units_per_node=4, unit="gpu"),))
    machine = Machine(platform.units, platform.info)
    description = JobDescription("w0!1", 5, None, units_per_node=2)
    job = SchedulerJob.submitted(description, 0, 0.0)
    placement = make_placement("lowest", {"dual-ended": condition})

    assert str(picked(placement, job, machine.all_units, machine)) == found
