"""Failure models: reproducible, prefix-stable, and with the statistics given by their parameters."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.platforms.failures.domains import blocks
from pipistrelle.platforms.failures.durations import Exponential, Fixed, Lognormal, Weibull
from pipistrelle.platforms.failures.models import FailureModel, draw_lengths
from pipistrelle.platforms.failures.outage import OutageError, Outages
from pipistrelle.platforms.failures.plan import FailurePlan, Source
from pipistrelle.platforms.failures.text import parse_durations, parse_failures

HOUR, DAY = 3600.0, 86400.0
YEAR = 365.25 * DAY
#: with seed 7: (node, down, up) of a node's process, (node, down) of a system's
FIRST = [(1, 3944.524, 29518.203), (1, 48511.968, 51162.378), (0, 62122.927, 73160.158)]
HITS = [(22, 63310.24), (87, 147195.421)]

uptimes = st.one_of(
    st.floats(10, 1e6).map(Exponential),
    st.builds(Weibull, st.floats(10, 1e6), st.floats(0.5, 5)),
    st.builds(Lognormal, st.floats(10, 1e6), st.floats(0.1, 2)),
)
repairs = st.one_of(st.floats(0.001, 1e5).map(Fixed), st.floats(1, 1e5).map(Exponential))
models = st.builds(FailureModel, uptimes, repairs, st.sampled_from(["node", "system"]))


def parts(stream, horizons):
    """Return the outages of a stream that is read in steps."""
    return [row for horizon in horizons for row in stream.extend(horizon)]


@settings(max_examples=25)
@given(models, st.integers(1, 6), st.integers(0, 2**64), st.lists(st.floats(1, 3e5), min_size=1, max_size=4))
def test_streams_are_valid_and_prefix_stable(model, nodes, seed, steps):
    """Any steps give the same outages: sorted, without overlaps, all beginning within the horizon."""
    horizons = sorted(steps)
    whole = model.stream(range(nodes), seed).extend(horizons[-1])

    assert parts(model.stream(range(nodes), seed), horizons) == list(whole)
    assert not len(whole) or (whole.down.max() < horizons[-1] and whole.node.max() < nodes)
    assert Outages.of(whole) == whole


@settings(max_examples=30)
@given(st.lists(st.tuples(models, st.booleans()), min_size=1, max_size=3), st.integers(0, 99), st.floats(1, 1e5))
def test_plans_are_valid_and_prefix_stable(chosen, seed, horizon):
    """The same for several models together, of nodes and of domains."""
    nodes = range(6)
    plan = FailurePlan(tuple(Source(model, nodes, blocks(nodes, 4) if domain else ()) for model, domain in chosen))
    whole = plan.stream(seed).extend(2 * horizon)

    assert parts(plan.stream(seed), [horizon, 2 * horizon]) == list(whole)
    assert Outages.of(whole) == whole


def test_equal_seeds_give_equal_outages():
    """The same seed gives the same stream, another seed another one."""
    model = FailureModel(Exponential(DAY), Exponential(HOUR))

    assert model.outages(range(9), 7, YEAR) == model.outages(range(9), 7, YEAR)
    assert model.outages(range(9), 7, YEAR) != model.outages(range(9), 8, YEAR)


def test_the_first_outages_of_a_seed_never_change():
    """Streams are stable: these numbers may change only with an entry in the changelog."""
    model = FailureModel(Weibull.of_mean(DAY, 0.7), Lognormal(HOUR, 1.0))
    first = [(row.node, row.down, row.up) for row in model.outages(range(3), 7, YEAR)][:3]
    system = FailureModel(Exponential(DAY), Fixed(HOUR), scope="system")
    hits = [(row.node, row.down) for row in system.outages(range(100), 7, YEAR)][:2]

    assert (first, hits) == (FIRST, HITS)


def test_nodes_are_independent():
    """A node's outages do not depend on how many other nodes there are, nor on the repair of others' models."""
    model = FailureModel(Exponential(DAY), Exponential(HOUR))
    few, many = (model.outages(range(count), 7, 30 * DAY) for count in (3, 50))

    assert few == many.select(many.node < 3)


def test_repairs_do_not_change_when_nodes_fail_first():
    """Models that differ only in their repair have the same up times: common random numbers."""
    streams = [
        FailureModel(Exponential(30 * DAY), repair).outages(range(40), 3, YEAR) for repair in (Fixed(1), Fixed(DAY))
    ]
    firsts = [{row.node: row.down for row in reversed(list(stream))} for stream in streams]

    assert firsts[0] == firsts[1]


@pytest.mark.parametrize(
    ("uptime", "repair"),
    [
        (Exponential(50 * HOUR), Exponential(10 * HOUR)),
        (Weibull.of_mean(50 * HOUR, 0.7), Lognormal.of_mean(10 * HOUR, 1.0)),
        (Lognormal.of_mean(50 * HOUR, 0.8), Fixed(10 * HOUR)),
    ],
)
def test_availability(uptime, repair):
    """Nodes are up for MTBF / (MTBF + MTTR) of the time, within four standard errors."""
    model = FailureModel(uptime, repair)
    nodes, horizon = 400, 4000 * HOUR
    outages = model.outages(range(nodes), 11, horizon)
    late = np.clip(outages.up, horizon / 2, horizon) - np.clip(outages.down, horizon / 2, horizon)
    down = np.bincount(outages.node, weights=late, minlength=nodes) / (horizon / 2)
    error = down.std(ddof=1) / math.sqrt(nodes)

    assert model.availability(nodes) == pytest.approx(50 / 60)
    assert abs(down.mean() - 10 / 60) < 4 * error
    assert error < 0.005


def test_counts_of_a_poisson_process():
    """Failures of exponential nodes over a long time are n T / (MTBF + MTTR), within four standard deviations."""
    outages = FailureModel(Exponential(DAY), Fixed(60)).outages(range(200), 5, 100 * DAY)
    expected = 200 * 100 * DAY / (DAY + 60)

    assert abs(len(outages) - expected) < 4 * math.sqrt(expected)


def test_hits_of_the_system_on_down_nodes_are_dropped():
    """LANL's process: victims are uniform, and the share of hits that find a node down is the share of down time."""
    nodes = 20
    model = FailureModel(Exponential(HOUR), Fixed(5 * HOUR), scope="system")
    outages = model.outages(range(100, 100 + nodes), 5, 20_000 * HOUR)
    counts = np.bincount(outages.node - 100, minlength=nodes)

    assert model.availability(nodes) == pytest.approx(0.8)
    assert len(outages) / 20_000 == pytest.approx(0.8, abs=0.02)
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 45  # chi-squared with 19 degrees of freedom


@pytest.mark.parametrize("shape", [0.7, 3.0])
def test_ages(shape):
    """Nodes that have been up before the start fail at the hazard of their age."""
    law = Weibull.of_mean(YEAR, shape)
    age, horizon, nodes = YEAR / 2, YEAR / 4, 20_000
    outages = FailureModel(law, Fixed(horizon * 0.99), age=age).outages(range(nodes), 1, horizon)
    expected = nodes * (1 - math.exp((age / law.scale) ** shape - ((age + horizon) / law.scale) ** shape))

    assert np.unique(outages.node).size == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize(
    ("law", "mean", "median"),
    [
        (Fixed(5.0), 5.0, 5.0),
        (Exponential(1000.0), 1000.0, 1000 * math.log(2)),
        (Weibull.of_mean(1000.0, 0.7), 1000.0, 1000 / math.gamma(1 + 1 / 0.7) * math.log(2) ** (1 / 0.7)),
        (Lognormal.of_mean(1000.0, 1.0), 1000.0, 1000 * math.exp(-0.5)),
    ],
)
def test_distributions(law, mean, median):
    """Each distribution has its mean and median, scales, and survives as text."""
    drawn = draw_lengths(law, 200_000, 3)

    assert law.mean == pytest.approx(mean)
    assert drawn.mean() == pytest.approx(mean, rel=0.02)
    assert np.median(drawn) == pytest.approx(median, rel=0.02)
    assert law.scaled(2).mean == pytest.approx(2 * mean)
    assert parse_durations(str(law)) == law


def test_domains_fail_as_a_whole():
    """All nodes of a domain go down and up together, with the domain in the cause; the last domain may be smaller."""
    machine = homogeneous(10, "ten")
    source = parse_failures("exponential,mtbf=10d,domain=cabinet:4").source(machine, Fixed(HOUR))
    outages = FailurePlan((source,)).outages(1, YEAR)
    groups = {}
    for row in outages:
        groups.setdefault((row.down, row.up, row.cause), []).append(row.node)

    assert {tuple(nodes) for nodes in groups.values()} == {(0, 1, 2, 3), (4, 5, 6, 7), (8, 9)}
    assert {cause for _, _, cause in groups} == {f"cabinet {number}: failure" for number in range(3)}


def test_failures_of_nodes_that_are_down_are_dropped():
    """With two sources, a node's outages still never overlap; the other nodes of the domain go down."""
    nodes = range(2)
    often = FailureModel(Exponential(HOUR), Fixed(HOUR))
    both = FailurePlan((Source(often, range(1)), Source(often, nodes, blocks(nodes, 2)))).outages(1, 300 * HOUR)

    assert Outages.of(both) == both
    assert {row.cause for row in both if row.node == 1} == {"domain 0: failure"}
    assert {row.cause for row in both if row.node == 0} == {"failure", "domain 0: failure"}


def test_how_many_units_are_up_in_the_long_run():
    """MTBF / (MTBF + MTTR) of all sources that affect a node, as counted from a long stream; cabinets vary more."""
    fat = Pool(name="b", nodes=4, unit="core", units_per_node=4)
    machine = Platform(name="m", pools=(Pool(name="a", nodes=8), fat))
    often = FailureModel(Exponential(9 * HOUR), Exponential(HOUR))
    alone = FailurePlan((Source(often, range(12)),))
    cabinets = FailurePlan((Source(often, range(8), blocks(range(8), 4)),))
    mean, spread = alone.units_up(machine)
    horizon = 100_000 * HOUR
    down = sum(
        (min(row.up, horizon) - row.down) * (1 if row.node < 8 else 4) for row in alone.outages(seed=1, horizon=horizon)
    )

    assert mean == pytest.approx(24 * 0.9)
    assert machine.units - down / horizon == pytest.approx(mean, rel=0.002)
    assert spread == pytest.approx(math.sqrt((8 + 4 * 16) * 0.09))
    assert cabinets.units_up(machine) == pytest.approx((16 + 8 * 0.9, math.sqrt(8 * 4 * 0.09)))


def test_pools_have_their_own_nodes():
    """A model of a pool affects the nodes of that pool."""
    machine = Platform(name="m", pools=(Pool(name="cpu", nodes=3), Pool(name="gpu", nodes=2)))
    source = parse_failures("exponential,smtbf=1d,pool=gpu").source(machine, Fixed(1))

    assert source.nodes == range(3, 5)
    assert source.model.uptime == Exponential(2 * DAY)


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda m: m.outages(range(0), 1, DAY), "no node"),
        (lambda m: m.outages(range(1), -1, DAY), "a seed is negative"),
        (lambda m: m.outages(range(1), 1, 0.0), "a horizon is out of range"),
        (lambda m: m.outages(range(1), 1, math.inf), "a horizon is out of range"),
        (lambda m: m.outages(range(1), 1, HOUR / 2), "a repair takes longer than the horizon"),
        (lambda m: FailurePlan((Source(m, range(1)),)).outages(1, HOUR / 2), "a repair takes longer than the horizon"),
        (
            lambda m: FailureModel(Fixed(0.001), Fixed(0.001)).outages(range(9), 1, YEAR),
            "there would be too many outages",
        ),
        (lambda m: FailureModel(m.uptime, m.repair, age=-1.0), "an age is out of range"),
        (lambda m: FailureModel(m.uptime, m.repair, scope="system", age=1.0), "an age cannot be given"),
        (lambda m: FailureModel(Lognormal(1, 1), m.repair, age=1.0), "an age cannot be given"),
        (lambda m: Exponential(0.0), "a mean is out of range"),
        (lambda m: Fixed(-1.0), "a length of time is out of range"),
        (lambda m: Weibull(1.0, 0.0), "a shape is out of range"),
        (lambda m: Lognormal(1.0, math.nan), "a sigma is out of range"),
        (lambda m: draw_lengths(m.repair, 1, -1), "a seed is negative"),
        (lambda m: blocks(range(3), 4), "the size of a failure domain is out of range"),
    ],
)
def test_wrong_models_are_refused(make, fragment):
    """Each rule has one message."""
    with pytest.raises(OutageError) as caught:
        make(FailureModel(Exponential(DAY), Fixed(HOUR)))

    assert fragment in str(caught.value)


@pytest.mark.parametrize("shape", [0.4, 0.7, 1.0, 1.5, 4.0])
@pytest.mark.parametrize("share", [0.1, 0.7, 2.0])
def test_no_node_stays_up_more_often_than_its_hazard_lets_it(shape, share):
    """At any time, and just after a repair: the probability to stay up for a share of the mean is bounded."""
    law = Exponential(DAY) if shape == 1 else Weibull.of_mean(DAY, shape)
    length = share * DAY
    bound = math.exp(-law.hazard(length))
    rows = FailureModel(law, Fixed(HOUR)).outages(range(200), 5, 200 * DAY)
    begins = np.concatenate([np.sort(rows.up[rows.node == node])[:-1] for node in range(200)])
    ends = np.concatenate([np.sort(rows.down[rows.node == node])[1:] for node in range(200)])
    up = ends - begins
    at_any_time = np.maximum(up - length, 0).sum() / up.sum()
    repaired = (up >= length).mean()

    assert at_any_time <= bound * 1.05 + 0.002
    assert repaired <= bound * 1.05 + 0.002
    if shape == 1:
        assert repaired == pytest.approx(bound, rel=0.05)


def test_the_hazard_of_a_machine_is_that_of_its_best_nodes():
    """Sources add up; unknown hazards count as zero: domains, other laws, old nodes whose hazard falls."""
    often, seldom = FailureModel(Exponential(DAY), Fixed(HOUR)), FailureModel(Exponential(10 * DAY), Fixed(HOUR))
    plan = FailurePlan((Source(often, range(4)), Source(seldom, range(8))))

    assert plan.hazard(8, 3, 5 * DAY) == pytest.approx(3 * 0.5)
    assert plan.hazard(8, 6, 5 * DAY) == pytest.approx(6 * 0.5 + 2 * 5.0)
    assert plan.hazard(9, 1, 5 * DAY) == 0.0
    hits = FailureModel(Exponential(HOUR), Fixed(HOUR), scope="system")
    assert FailurePlan((Source(hits, range(8)),)).hazard(8, 2, 8 * HOUR) == pytest.approx(2.0)
    unknown = [
        Source(FailureModel(Weibull(HOUR, 0.5), Fixed(HOUR), age=DAY), range(8)),
        Source(FailureModel(Weibull(HOUR, 2.0), Fixed(HOUR), scope="system"), range(8)),
        Source(FailureModel(Fixed(HOUR), Fixed(HOUR)), range(8)),
        Source(FailureModel(Lognormal(HOUR, 1.0), Fixed(HOUR)), range(8)),
        Source(often, range(8), tuple(blocks(range(8), 4))),
    ]
    assert FailurePlan(tuple(unknown)).hazard(8, 8, DAY) == 0.0
