"""Placements along a line: the chosen units, by job, end and target."""

from collections.abc import Callable
from itertools import combinations
from math import exp, inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.orders import NODE_ORDERS, node_order
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.catalogue.names import ON_UNITS
from pipistrelle.schedulers.catalogue.parts import make_placement
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob

MakeJob = Callable[..., SchedulerJob]
GRID = TopologyRule(kind="torus", shape=(4, 2, 4))
YEAR = 365.25 * 86400.0


def machine(*mttfs: float | None, ages: tuple[float, ...] = (), grid: TopologyRule = GRID, each: int = 1) -> Machine:
    """Return a machine of 32 units in equal pools of these MTTFs (s) and ages (s), on a torus."""
    count = max(len(mttfs), len(ages), 1)
    nodes = int(np.prod(grid.shape)) * grid.nodes_per_router // count
    known: list[dict[str, float]] = [{} for _ in range(count)]
    for at, mttf in enumerate(mttfs):
        known[at] |= {} if mttf is None else {"mttf": mttf}
    for at, age in enumerate(ages):
        known[at] |= {"age": age}
    unit: Any = "node" if each == 1 else "core"
    pools = [Pool(name=f"p{at}", nodes=nodes, units_per_node=each, unit=unit, **told) for at, told in enumerate(known)]
    platform = Platform(name="m", pools=tuple(pools), topology=grid)
    return Machine(platform.units, platform.info)


MIXED = machine(1 * YEAR, 9 * YEAR, 1 * YEAR, 9 * YEAR)  # 8 nodes each; 8-15 and 24-31 are stable


def picked(placement: str | Placement, job: SchedulerJob, units: str, where: Machine = MIXED, **options: Any) -> str:
    """Return a placement's pick as text, "refused" for None."""
    made = make_placement(placement, options) if isinstance(placement, str) else placement
    found = made.pick(job, NodeSet.parse(units), where)
    return "refused" if found is None else str(found)


def test_lowest_takes_the_first_of_the_order(waiting_job: MakeJob) -> None:
    """The first open nodes in the order of the nodes."""
    for name in NODE_ORDERS:
        order = node_order(name, MIXED).tolist()
        units = NodeSet.parse("1-9 11 14-30")
        expected = [node for node in order if node in units][:7]
        options = {"node-order": name}
        assert picked("lowest", waiting_job(0, size=7), str(units), **options) == str(NodeSet.of(expected))


def test_units_of_a_node_stay_together(waiting_job: MakeJob) -> None:
    """On nodes of two units the line is that of the nodes, each with both units."""
    where = machine(None, grid=TopologyRule(kind="mesh", shape=(2, 2, 2)), each=2)
    order = node_order("snake", where).tolist()
    line = [unit for node in order for unit in (2 * node, 2 * node + 1)]
    for size in range(1, 17):
        found = picked("lowest", waiting_job(0, size=size), "0-15", where, **{"node-order": "snake"})
        assert found == str(NodeSet.of(line[:size]))


def test_stable_nodes_go_first(waiting_job: MakeJob) -> None:
    """By MTTF; the order is kept within each kind."""
    aware = {"age-aware": True}
    assert picked("lowest", waiting_job(0, size=10), "0-31", **aware) == "8-15 24-25"
    assert picked("lowest", waiting_job(0, size=18), "0-31", **aware) == "0-1 8-15 24-31"
    assert picked("lowest", waiting_job(0, size=3), "0-9", **aware) == "0 8-9"
    order = node_order("alps", MIXED).tolist()
    line = [node for node in order if node % 16 >= 8] + [node for node in order if node % 16 < 8]
    both = {"age-aware": True, "node-order": "alps"}
    assert picked("lowest", waiting_job(0, size=20), "0-31", **both) == str(NodeSet.of(line[:20]))


def test_stable_by_age_without_mttf(waiting_job: MakeJob) -> None:
    """The younger nodes are chosen; nodes of unknown age are not."""
    aware = {"age-aware": True}
    assert picked("lowest", waiting_job(0, size=2), "0-31", machine(ages=(3 * YEAR, YEAR)), **aware) == "16-17"
    assert picked("lowest", waiting_job(0, size=2), "0-31", machine(None, YEAR, 2 * YEAR, None), **aware) == "16-17"
    with pytest.raises(PolicyError, match="it is unknown which nodes of the machine are stable"):
        picked("lowest", waiting_job(0), "0-31", machine(None), **aware)


def test_dual_ended_jobs_are_placed_from_the_other_end(waiting_job: MakeJob) -> None:
    """Of the base order and of the aged one, for jobs that satisfy a condition."""
    small = {"dual-ended": "nodes<=4"}
    assert picked("lowest", waiting_job(0, size=4), "0-20", **small) == "17-20"
    assert picked("lowest", waiting_job(0, size=5), "0-20", **small) == "0-4"
    aged = {**small, "age-aware": True}
    assert picked("lowest", waiting_job(0, size=4), "6-31", **aged) == "20-23"
    assert picked("lowest", waiting_job(0, size=4), "6-17", **aged) == "6-7 16-17"
    two = {"dual-ended": ["nodes<=1", "walltime<2h"]}
    assert picked("lowest", waiting_job(0, size=4, walltime=7199.0), "0-20", **two) == "17-20"
    assert picked("lowest", waiting_job(0, size=4, walltime=7200.0), "0-20", **two) == "0-3"
    assert picked("contiguous", waiting_job(0, size=4), "0-5 8-11 14-17", **small) == "14-17"
    assert picked("best-fit", waiting_job(0, size=3), "0-5 8-11 14-17 19", **small) == "15-17"


def test_a_job_may_ask_for_the_base_order(waiting_job: MakeJob) -> None:
    """By a condition on the job's size, or by the job's own label."""
    options = {"age-aware": True, "base-order": ["nodes>=30", "qos=base"]}
    asking = waiting_job(0, size=9, description=JobDescription("w0!0", 9, qos="base"))
    assert picked("lowest", asking, "0-31", **options) == "0-8"
    assert picked("lowest", waiting_job(0, size=9), "0-31", **options) == "8-15 24"
    assert make_placement("lowest", options).features == ("labels",)  # type: ignore[attr-defined]


def test_best_fit(waiting_job: MakeJob) -> None:
    """The shortest run that is long enough; without one the longest, then the shortest for the rest."""
    units = "0-4 6-8 10-12 14 16-20 22"
    expected = {1: "14", 2: "6-7", 3: "6-8", 4: "0-3", 5: "0-4", 6: "0-4 14", 8: "0-4 6-8", 9: "0-4 16-19"}
    for size, text in expected.items():
        assert picked("best-fit", waiting_job(0, size=size), units) == text
    assert picked("best-fit", waiting_job(0, size=18), units) == units
    assert picked("best-fit", waiting_job(0, size=19), units) == "refused"


open_sets = st.sets(st.integers(0, 31), min_size=1).map(sorted)
conditions = st.sampled_from([(), ("nodes<=5",)])


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(list(ON_UNITS)),
    order=st.sampled_from(NODE_ORDERS),
    aged=st.booleans(),
    ended=conditions,
    target=st.sampled_from([None, 0.5, 0.999]),
    units=open_sets,
    more=st.sets(st.integers(0, 31)),
    size=st.integers(1, 32),
    number=st.integers(0, 5),
)
def test_guarantees_of_every_placement(
    name: str,
    order: str,
    aged: bool,
    ended: tuple[str, ...],
    target: float | None,
    units: list[int],
    more: set[int],
    size: int,
    number: int,
) -> None:
    """As many open units as it needs; the same again; some among more units; none below the target."""
    options = {"node-order": order, "age-aware": aged, "dual-ended": ended}
    options |= {} if target is None else {"reliability-target": target}
    placement = make_placement(name, options)
    job = SchedulerJob(f"w0!{number}", number, size, YEAR / 50, 0.0)

    found = placement.pick(job, NodeSet.of(units), MIXED)

    assert found == make_placement(name, options).pick(job, NodeSet.of(units), MIXED)
    if found is None:
        assert size > len(units) or not placement.fits_by_count
        return
    assert len(found) == size
    assert set(found) <= set(units)
    assert placement.pick(job, NodeSet.of({*units, *more}), MIXED) is not None
    if target is not None:
        rate = sum(1.0 / MIXED.nodes.mttf[unit] for unit in found)
        assert exp(-job.walltime * rate) >= target * (1 - 1e-12)


@settings(max_examples=100, deadline=None)
@given(
    units=st.sets(st.integers(0, 31), min_size=4, max_size=9).map(sorted),
    size=st.integers(1, 4),
    target=st.floats(0.9, 0.99),
    fit=st.sampled_from(["lowest", "best-fit", "random", "compact", "contiguous", "contiguous,fit=best"]),
)
def test_a_target_refuses_only_what_no_units_reach(units: list[int], size: int, target: float, fit: str) -> None:
    """A refused job has no open units that reach the target; for `contiguous`, no run of open units."""
    job = SchedulerJob("w0!0", 0, size, YEAR / 40, 0.0)
    rates = 1.0 / MIXED.nodes.mttf
    sets = [
        chosen
        for chosen in combinations(units, size)
        if not fit.startswith("contiguous") or chosen[-1] - chosen[0] == size - 1
    ]
    best = max((exp(-job.walltime * sum(rates[list(chosen)])) for chosen in sets), default=0.0)
    if abs(best - target) > 1e-9:
        found = make_placement(fit, {"reliability-target": target}).pick(job, NodeSet.of(units), MIXED)
        assert (found is not None) == (best >= target)


def test_a_target_leaves_out_as_few_nodes_as_it_must(waiting_job: MakeJob) -> None:
    """exp(-T sum(1 / MTTF)): two years' worth of rates on the nodes, and a walltime for which they are too many."""
    target = {"reliability-target": 0.9}  # sum of rates times T at most 0.10536
    assert picked("lowest", waiting_job(0, size=4, walltime=YEAR / 40), "0-31", **target) == "0-3"
    assert picked("lowest", waiting_job(0, size=4, walltime=YEAR / 30), "0-31", **target) == "8-11"
    assert picked("lowest", waiting_job(0, size=4, walltime=YEAR / 30), "0-9", **target) == "0-1 8-9"
    assert picked("lowest", waiting_job(0, size=4, walltime=YEAR / 2), "0-31", **target) == "refused"
    assert picked("lowest", waiting_job(0, size=1, walltime=inf), "0-31", **target) == "refused"
    assert picked("contiguous", waiting_job(0, size=4, walltime=YEAR / 30), "0-31", **target) == "5-8"
    with pytest.raises(PolicyError, match=r"the MTTF of some nodes is unknown: .*16 without, the first is node 16"):
        picked("lowest", waiting_job(0), "0-31", machine(YEAR, None), **target)


def test_a_node_counts_once_under_a_target(waiting_job: MakeJob) -> None:
    """Four cores of one node fail as one node does, and as less than two."""
    where = machine(YEAR, grid=TopologyRule(kind="torus", shape=(2, 2, 2)), each=4)
    target = {"reliability-target": 0.97}  # at most 0.03046 = T / MTTF
    job = waiting_job(0, size=4, walltime=0.02 * YEAR)
    for name in ("lowest", "contiguous"):
        assert picked(name, job, "4-31", where, **target) == "4-7"
        assert picked(name, job, "2-31", where, **target) in ("4-7", "refused")
    assert picked("contiguous", job, "2-31", where, **target) == "4-7"


def test_random_draws_each_unit_as_often(waiting_job: MakeJob) -> None:
    """All open units are drawn about as often; another seed draws others; the end makes no difference."""
    counts = np.zeros(32, dtype=int)
    placement, other = make_placement("random,seed=7"), make_placement("random,seed=8")
    turned = make_placement("random,seed=7", {"dual-ended": "nodes<=9", "node-order": "alps"})
    units = NodeSet.parse("0-9 12-31")
    same = 0
    for number in range(600):
        job = waiting_job(number, size=6)
        found = placement.pick(job, units, MIXED)
        assert found is not None
        assert found == turned.pick(job, units, MIXED)
        counts[list(found)] += 1
        same += found == other.pick(job, units, MIXED)
    assert same < 5
    assert counts[10:12].sum() == 0
    drawn = counts[[*range(10), *range(12, 32)]]
    # Each is drawn 120 times in the mean, with a standard deviation of 9.8.
    assert 70 < drawn.min() <= drawn.max() < 170


def test_random_with_stable_nodes_first(waiting_job: MakeJob) -> None:
    """Others are drawn only where the stable ones are too few; from the other end it is the other way round."""
    for number in range(20):
        placement = make_placement("random", {"age-aware": True})
        few = placement.pick(waiting_job(number, size=6), MIXED.all_units, MIXED)
        many = placement.pick(waiting_job(number, size=20), MIXED.all_units, MIXED)
        assert few is not None
        assert all(node % 16 >= 8 for node in few)
        assert many is not None
        assert sum(node % 16 >= 8 for node in many) == 16
        ended = make_placement("random", {"age-aware": True, "dual-ended": "nodes<9"})
        assert all(node % 16 < 8 for node in ended.pick(waiting_job(number, size=6), MIXED.all_units, MIXED) or [])


@settings(max_examples=60, deadline=None)
@given(units=st.sets(st.integers(0, 31), min_size=6, max_size=12).map(sorted), size=st.integers(2, 5))
def test_compact_is_near_the_best_there_is(units: list[int], size: int) -> None:
    """With a centre for each open unit: less than twice the least mean of hops, and not above `best-fit`'s."""
    where = machine(None)
    topology = where.topology
    job = SchedulerJob("w0!0", 0, size, YEAR, 0.0)
    least = min(topology.mean_hops(np.array(chosen)) for chosen in combinations(units, size))

    def hops(name: str) -> float:
        found = make_placement(name).pick(job, NodeSet.of(units), where)
        assert found is not None
        return topology.mean_hops(np.array(list(found)))

    assert hops("compact,centres=32") <= min(hops("best-fit"), 2 * least - 1e-12 if least else 0.0)
    assert hops("compact") <= hops("best-fit")


def test_compact_with_stable_nodes_first(waiting_job: MakeJob) -> None:
    """A set among the stable nodes if they are enough, else all of them with the nearest others."""
    placement = make_placement("compact", {"age-aware": True})
    few = placement.pick(waiting_job(0, size=8), MIXED.all_units, MIXED)
    many = placement.pick(waiting_job(0, size=20), MIXED.all_units, MIXED)
    assert few is not None
    assert all(node % 16 >= 8 for node in few)
    assert many is not None
    assert sum(node % 16 >= 8 for node in many) == 16


def test_compact_without_hops_is_best_fit(waiting_job: MakeJob) -> None:
    """Where every node is as far as any other."""
    assert picked("compact", waiting_job(0, size=3), "0-3 6-8", Machine(9)) == "6-8"


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("lowest", {"node-order": "alp"}, "expected 'id', 'snake', 'hilbert' or 'alps', found 'alp'"),
        ("lowest", {"reliability-target": 1.0}, "placement-options.reliability-target"),
        ("lowest", {"reliability-target": 0}, "placement-options.reliability-target"),
        ("lowest", {"dual-ended": "node<3"}, "placement-options.dual-ended: unknown property of jobs 'node'"),
        ("lowest", {"base-order": ["nodes<3", "qos"]}, "placement-options.base-order: invalid condition on jobs"),
        ("random,seed=-1", {}, "placement-options.seed"),
        ("random,seed=x", {}, "placement-options.seed"),
        ("compact,centres=0", {}, "placement-options.centres"),
        ("best-fit,fit=best", {}, "unknown key 'fit'"),
    ],
)
def test_options_that_cannot_be(text: str, options: dict[str, Any], says: str) -> None:
    """The message names the option and its valid values."""
    with pytest.raises(PolicyError) as caught:
        make_placement(text, options)

    assert says in str(caught.value)


def test_an_order_that_the_machine_has_not(waiting_job: MakeJob) -> None:
    """ALPS's list is one of three dimensions."""
    flat = machine(None, grid=TopologyRule(kind="torus", shape=(8, 4)))
    with pytest.raises(PlatformError, match="the order alps needs three dimensions"):
        picked("lowest", waiting_job(0), "0-31", flat, **{"node-order": "alps"})
