"""Closed forms of yields: compared with the slides' sums term by term, and their consequences."""

import math
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import load_program

from pipistrelle.platforms.failures.checkpointing import daly_interval, daly_time
from pipistrelle.platforms.failures.yield_model import (
    SHAPES,
    SLIDES,
    Allocation,
    YieldError,
    YieldModel,
    grid_teams,
)

HOUR, YEAR = 3600.0, 365.25 * 86400.0


@pytest.fixture(scope="module")
def study() -> ModuleType:
    """Return the benchmark that computes completion times."""
    return load_program("benchmarks/yield_models.py")


@given(
    nodes=st.integers(1, 60),
    mtbf=st.floats(1e5, 1e7),
    dump=st.floats(0.1, 10.0),
    read=st.floats(0.0, 10.0),
    wait=st.floats(0.0, 1e5),
    share=st.floats(0.0, 1.0),
)
def test_the_sums_of_the_slides(nodes: int, mtbf: float, dump: float, read: float, wait: float, share: float) -> None:
    """Time, work and yield are as on the slides, with C_i, R_i and mu_i in each term; idle spares cost nothing."""
    failures = int(share * (nodes - 1))
    mu, c, r = (lambda i: mtbf / i), (lambda i: dump * nodes / i), (lambda i: read * nodes / i)
    up = range(nodes, nodes - failures - 1, -1)
    time = sum(mu(i) for i in up) + wait
    n = nodes - failures
    interval = math.sqrt(2 * c(n) * mu(n))
    useful = sum(mu(i) - (r(n) + interval / 2) * n / i for i in up)
    rigid = n / (1 + c(n) / interval) * useful
    moldable = sum(
        i / (1 + c(i) / math.sqrt(2 * c(i) * mu(i))) * (mu(i) - (r(i) + math.sqrt(2 * c(i) * mu(i)) / 2)) for i in up
    )

    for shape, work in (("rigid", rigid), ("moldable", moldable)):
        model = YieldModel(shape, Allocation(nodes, mtbf, dump, read))
        assert model.between_restarts(wait)[failures] == pytest.approx(time)
        assert model.work[failures] == pytest.approx(work)
        assert model.yields(wait)[failures] == pytest.approx(work / (nodes * time))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_order_is_near_the_expectation(shape: str) -> None:
    """In the paper's setting both forms differ by less than 0.15 points of yield, for every F up to a thousand."""
    paper, exact = (YieldModel(shape, SLIDES, form=form, most=1000) for form in ("paper", "exact"))
    for wait in (0.1, 1.0, 10.0, 24.0, 100.0):
        assert np.abs(paper.yields(wait * HOUR) - exact.yields(wait * HOUR)).max() < 0.0015


@pytest.mark.parametrize(("wait", "most"), [(0.1, 0.90), (1.0, 0.81), (10.0, 0.40), (24.0, 0.23), (100.0, 0.07)])
def test_without_spares_the_yield_collapses(wait: float, most: float) -> None:
    """It drops with a wait of minutes, to a twentieth for days; the best F keeps it above 86 % for each shape."""
    assert YieldModel("rigid", SLIDES, most=0).yields(wait * HOUR)[0] < most
    for shape in SHAPES:
        assert YieldModel(shape, SLIDES).optimum(wait * HOUR).share > 0.86


@pytest.mark.parametrize(("shape", "hours"), [("rigid", 73.0), ("moldable", 36.0), ("grid", 47.5)])
def test_the_best_number_of_spares_is_below_two_percent(shape: str, hours: float) -> None:
    """This holds up to waits of 36 to 73 hours by shape; beyond, 2 % cost less than half a point."""
    model = YieldModel(shape, SLIDES)
    few = 0.02 * SLIDES.nodes
    for wait in (0.1, 1.0, 10.0, 24.0, hours):
        assert model.optimum(wait * HOUR).failures < few
    assert model.optimum((hours + 1.5) * HOUR).failures >= few
    assert model.optimum(100 * HOUR).share - model.yields(100 * HOUR)[int(few) - 1] < 0.005


def test_the_claim_of_one_percent_of_spares() -> None:
    """With a day's wait all are above 88.6 %, the moldable above 89 %; without reads, or up to 16.7 hours, all are."""
    share = SLIDES.nodes // 100
    longest = {"rigid": 16.76, "moldable": 25.77, "grid": 18.85}
    without = Allocation(SLIDES.nodes, SLIDES.mtbf, SLIDES.dump, 0.0)
    above = {}
    for shape in SHAPES:
        model = YieldModel(shape, SLIDES)
        above[shape] = float(model.yields(24 * HOUR)[share])
        bound = model.largest_wait(0.89, share)
        assert bound is not None
        assert bound.wait / HOUR == pytest.approx(longest[shape], abs=0.005)
        assert YieldModel(shape, without).yields(24 * HOUR)[share] > 0.89

    assert above == pytest.approx({"rigid": 0.8864, "moldable": 0.8909, "grid": 0.8874}, abs=5e-5)
    assert all(f"{value:.0%}" == "89%" for value in above.values())
    assert YieldModel("rigid", SLIDES).optimum(24 * HOUR).share < 0.89  # no other F helps


@pytest.mark.parametrize("shape", ["rigid", "moldable"])
def test_a_wait_costs_twice_its_root(shape: str) -> None:
    """The best F is near N sqrt(k D / mu), the yield near its ceiling, that without a wait, less 2 sqrt(D / (k mu)).

    With k = 1 if F nodes are idle all the time, 2 if on average half of them have failed: the dumps do not matter.
    """
    model = YieldModel(shape, SLIDES)
    ceiling = SLIDES.paper_period / SLIDES.mtbf
    assert ceiling == pytest.approx(0.9075, abs=5e-5)
    assert ceiling == pytest.approx(model.yields(0.0)[0])
    for hours in (10, 24, 100):
        best = model.optimum(hours * HOUR)
        per_life, factor = hours * HOUR / SLIDES.mtbf, 2 if shape == "moldable" else 1
        assert best.failures / SLIDES.nodes == pytest.approx(math.sqrt(factor * per_life), rel=0.04)
        assert best.share == pytest.approx(ceiling * (1 - 2 * math.sqrt(per_life / factor)), abs=0.002)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("target", [0.5, 0.8, 0.89])
def test_the_largest_wait_gives_the_target(shape: str, target: float) -> None:
    """With that wait the best F gives the target, and the model returns that F."""
    model = YieldModel(shape, SLIDES)
    found = model.largest_wait(target)

    assert found is not None
    best = model.optimum(found.wait)
    assert best.share == pytest.approx(target)
    assert model.yields(found.wait)[found.failures] == pytest.approx(target)
    fixed = model.largest_wait(target, 10)
    assert fixed is not None
    assert fixed.failures == 10
    assert fixed.wait <= found.wait


def test_a_target_that_no_wait_allows() -> None:
    """The dumps alone cost more than that."""
    assert YieldModel("moldable", SLIDES).largest_wait(0.95) is None


def test_a_grid_loses_rows_and_columns() -> None:
    """4 x 4, then 3 x 4 for four failures, 3 x 3 for three, ...; nodes beyond the square are spares."""
    assert grid_teams(16, 15).tolist() == [16, 12, 12, 12, 12, 9, 9, 9, 6, 6, 6, 4, 4, 2, 2, 1]
    assert grid_teams(11, 4).tolist() == [9, 9, 9, 6, 6]


def test_failures_that_leave_no_time_for_work() -> None:
    """Nodes that fail each second, all together much more often: the yield is 0, by both forms."""
    for form in ("paper", "exact"):
        assert YieldModel("moldable", Allocation(10_000, 1.0, 120.0, 120.0), form=form, most=5).yields(1.0).max() == 0


@pytest.mark.parametrize("ratio", [3, 5, 10, 50, 200, 1000])
def test_dalys_interval_is_near_the_best(ratio: float, study: ModuleType) -> None:
    """The interval of least expected time by Daly's equation 20 is within 2 % of his; so is the time with and without
    a dump at the end.
    """
    mtbf = 1e5
    dump = mtbf / ratio
    work, daly = 100 * mtbf, daly_interval(dump, mtbf)
    intervals = (daly * np.geomspace(0.5, 2.0, 2001)).tolist()
    times = [daly_time(work, interval, dump, dump, mtbf) for interval in intervals]

    assert intervals[int(np.argmin(times))] == pytest.approx(daly, rel=0.02)
    assert daly_time(work, daly, dump, dump, mtbf) < 1.0001 * min(times)
    least = min(study.completion_time(work, interval, dump, dump, mtbf) for interval in intervals)
    assert study.completion_time(work, daly, dump, dump, mtbf) < 1.02 * least


def test_completion_times(study: ModuleType) -> None:
    """Work shorter than an interval has no dump; long work agrees with Daly; without failures only dumps are added."""
    assert study.completion_time(50.0, 60.0, 9.0, 9.0, 100.0) == pytest.approx(100 * math.expm1(0.5))
    long = study.completion_time(1e6, 60.0, 9.0, 9.0, 100.0)
    assert long == pytest.approx(daly_time(1e6, 60.0, 9.0, 9.0, 100.0), rel=1e-4)
    assert study.completion_time(130.0, 60.0, 9.0, 9.0, 1e15) == pytest.approx(148.0, rel=1e-3)
    assert study.completion_time(1e9, 1e6, 9.0, 9.0, 100.0) == math.inf


@pytest.mark.parametrize(
    ("values", "fragment"),
    [
        ((0, 1.0, 1.0, 1.0), "the number of nodes is out of range"),
        ((10**7, 1.0, 1.0, 1.0), "the number of nodes is out of range: expected 1 to 1,000,000"),
        ((1, 0.0, 1.0, 1.0), "a mean time between failures is out of range"),
        ((1, math.nan, 1.0, 1.0), "a mean time between failures is out of range"),
        ((1, 1.0, -1.0, 1.0), "the time of a dump is out of range"),
        ((1, 1.0, 1.0, math.inf), "the time of a read is out of range"),
    ],
)
def test_wrong_allocations_are_refused(values: tuple[int, float, float, float], fragment: str) -> None:
    """The message has what is expected and what was found."""
    with pytest.raises(YieldError, match=fragment):
        Allocation(*values)


def test_wrong_arguments_are_rejected() -> None:
    """Invalid waits and targets, and more failures than nodes."""
    model = YieldModel("rigid", SLIDES, most=3)
    with pytest.raises(YieldError, match="a wait is out of range"):
        model.yields(-1.0)
    with pytest.raises(YieldError, match="a target is not a yield"):
        model.largest_wait(1.0)
    with pytest.raises(YieldError, match="4 failures are not in the model: expected 0 to 3"):
        model.largest_wait(0.5, 4)
    with pytest.raises(YieldError, match="22500 failures cannot be tolerated: expected 0 to 22499"):
        YieldModel("rigid", SLIDES, most=22500)
