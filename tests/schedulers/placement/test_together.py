"""Every order with every backfilling rule, placement and order of the nodes, on nodes that fail and are maintained."""

from collections.abc import Callable, Sequence
from math import exp, inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedulers.pairs import PAIRS

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.orders import NODE_ORDERS, node_order
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.catalogue.names import ON_UNITS, PARTS
from pipistrelle.schedulers.catalogue.parts import compose, make_backfill, make_order, make_placement
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.view import View
from pipistrelle.server.outages.reliability import Reliability

RunPolicy = Callable[..., Any]
Unsteady = Callable[..., Reliability]
#: (submit, size, runtime, walltime)
Row = tuple[float, int, float, float]
#: announced, begin, length (s), units
Down = tuple[float, float, float, frozenset[int]]
UNITS = 8
TARGET = 0.8
PLATFORM = Platform(
    name="m",
    pools=(Pool(name="old", nodes=5, mttf=100.0), Pool(name="new", nodes=3, mttf=900.0)),
    topology=TopologyRule(kind="torus", shape=(2, 2, 2)),
)
MACHINE = Machine(UNITS, PLATFORM.info)
RATES = (1.0 / MACHINE.nodes.mttf).tolist()
ORDER_OPTIONS = {
    "bins": {"bins": [{"name": "large", "smallest": 5, "boost": 4.0}]},
    "pbs": {"formula": "queue_priority + ncpus + eligible_time/4"},
}

times = st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(st.integers(0, 15).map(float), st.integers(1, UNITS), times, times), min_size=1, max_size=20
).map(sorted)
lines = st.fixed_dictionaries(
    {"node-order": st.sampled_from(NODE_ORDERS), "age-aware": st.booleans()},
    optional={
        "dual-ended": st.sampled_from(["nodes<=2", ["walltime<3s", "jobs=w0!3"]]),
        "base-order": st.just("nodes>=7"),
        "reliability-target": st.just(TARGET),
    },
)


def downs(announced: st.SearchStrategy[float]) -> st.SearchStrategy[list[Down]]:
    """Return maintenance that is announced so."""
    units = st.sets(st.integers(0, UNITS - 1), min_size=1).map(frozenset)
    length = st.sampled_from([1.0, 2.5, 6.0])
    return st.lists(st.tuples(announced, st.integers(1, 25).map(float), length, units), max_size=3)


#: {node: when it fails (s)}, for 2.5 s
failures = st.dictionaries(st.integers(0, UNITS - 1), st.integers(0, 25).map(float), max_size=4)


def check_run(
    run_policy: RunPolicy,
    policy: Policy,
    placement: str,
    options: dict[str, Any],
    jobs: list[Row],
    happens: Reliability,
) -> None:
    """Run without an illegal decision: every job that the placement can place ends and keeps its reservation."""
    run = run_policy(policy, UNITS, jobs, reliability=happens, platform=PLATFORM)
    summary = run.result.summary
    assert (summary.completed + summary.killed_at_walltime + summary.rejected, summary.unfinished) == (len(jobs), 0)
    if "reliability-target" in options:
        for number, _, units in run.starts:
            walltime = jobs[number][3]
            assert exp(-walltime * sum(RATES[unit] for unit in NodeSet.parse(units))) >= TARGET * (1 - 1e-12)
    else:
        assert summary.rejected == 0
    if placement.startswith("contiguous") and not options["age-aware"]:
        rank = {int(node): at for at, node in enumerate(node_order(options["node-order"], MACHINE))}
        for _, _, units in run.starts:
            at = sorted(rank[unit] for unit in NodeSet.parse(units))
            assert at == list(range(at[0], at[0] + len(at)))


@pytest.mark.parametrize("backfill", PARTS["backfill"])
def test_the_first_jobs_of_all_find_the_units_that_are_left(run_policy: RunPolicy, backfill: str) -> None:
    """Where a line of nodes is taken up with the first job, the second sees that it does not fit."""
    line = {"node-order": "id", "age-aware": False, "dual-ended": "nodes<=2"}
    policy = compose(order="fcfs", backfill=backfill, placement="lowest", placement_options=line)
    run = run_policy(policy, UNITS, [(0.0, UNITS // 2, 1.0, 1.0), (0.0, UNITS // 2 + 1, 1.0, 1.0)], platform=PLATFORM)

    assert run.start_of == {0: 0.0, 1: 1.0}


@pytest.mark.parametrize(("order", "backfill"), PAIRS)
def test_every_policy(unsteady: Unsteady, run_policy: RunPolicy, order: str, backfill: str) -> None:
    """No decision is illegal, all jobs end, and each is placed as it should be."""

    @settings(max_examples=20, deadline=None)
    @given(
        placement=st.sampled_from([*ON_UNITS, "contiguous,fit=best"]),
        options=lines,
        jobs=rows,
        planned=downs(st.integers(0, 20).map(float)),
        broken=failures,
    )
    def check(placement: str, options: dict[str, Any], jobs: list[Row], planned: list[Down], broken: Any) -> None:
        policy = compose(
            order=order,
            backfill=backfill,
            placement=placement,
            order_options=ORDER_OPTIONS.get(order),
            placement_options=options,
        )
        check_run(run_policy, policy, placement, options, jobs, unsteady(planned, broken))

    check()


@pytest.mark.parametrize("fill", ["FIRSTFIT", "BESTFIT", "GREEDY", "NONE"])
def test_maui(unsteady: Unsteady, run_policy: RunPolicy, fill: str) -> None:
    """The same with a maui.cfg."""

    @settings(max_examples=20, deadline=None)
    @given(
        keep=st.sampled_from(["CURRENTHIGHEST", "HIGHEST", "NEVER"]),
        placement=st.sampled_from([*ON_UNITS, "contiguous,fit=best"]),
        options=lines,
        jobs=rows,
        planned=downs(st.integers(0, 20).map(float)),
        broken=failures,
    )
    def check(
        keep: str, placement: str, options: dict[str, Any], jobs: list[Row], planned: list[Down], broken: Any
    ) -> None:
        text = f"BACKFILLPOLICY {fill}\nRESERVATIONPOLICY {keep}\nRESERVATIONDEPTH 2\n"
        policy = MauiPolicy(parse_maui_config(text)[0], placement=make_placement(placement, options))
        check_run(run_policy, policy, placement, options, jobs, unsteady(planned, broken))

    check()


class FirstOnes(ComposedPolicy):
    """A policy that writes down, when a job becomes the first in the queue, by when it can start at the latest."""

    def __init__(self, backfill: str, placement: str, options: dict[str, Any], planned: Sequence[Down]) -> None:
        self._own = make_placement(placement, options)
        super().__init__("first-ones", make_order("fcfs"), make_backfill(backfill), self._own)
        self._planned = planned
        self.promised: dict[int, float] = {}

    def decide(self, view: View) -> None:
        """Decide, then record what the running jobs' walltimes promise."""
        super().decide(view)
        first = view.waiting.first
        if first is None or not view.free.count:
            return
        ends = {job.expected_end for job in view.running} | {begin + length for _, begin, length, _ in self._planned}
        by = inf
        for time in sorted(end for end in ends if end >= view.now):
            busy = NodeSet.of(unit for job in view.running if job.expected_end > time for unit in job.alloc)
            for _, begin, length, units in self._planned:
                if begin < time + first.walltime and begin + length > time:
                    busy |= NodeSet.of(units)
            if self._own.pick(first, view.machine.all_units - busy, view.machine) is not None:
                by = time
                break
        assert self.reservation(first) == by
        self.promised.setdefault(first.number, by)


@pytest.mark.parametrize("backfill", ["easy", "easy-sjbf"])
def test_the_first_starts_by_its_reservation(unsteady: Unsteady, run_policy: RunPolicy, backfill: str) -> None:
    """A job that passes the first takes no units that it needs, for any placement: the first does not starve."""

    @settings(max_examples=60, deadline=None)
    @given(
        placement=st.sampled_from([*ON_UNITS, "contiguous,fit=best"]),
        options=lines,
        jobs=rows,
        planned=downs(st.just(0.0)),
    )
    def check(placement: str, options: dict[str, Any], jobs: list[Row], planned: list[Down]) -> None:
        policy = FirstOnes(backfill, placement, options, planned)
        run = run_policy(policy, UNITS, jobs, reliability=unsteady(planned, {}), platform=PLATFORM)
        late = {n: (run.start_of[n], by) for n, by in policy.promised.items() if run.start_of[n] > by}
        assert late == {}

    check()
