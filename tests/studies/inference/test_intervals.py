"""Intervals of means, quantiles, ratios and differences: by hand, by scipy, and how often they hold the truth."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipistrelle.models.samples.estimates import (
    StatisticsError,
    mean_interval,
    mean_of_ratios,
    quantile_interval,
    ratio_of_means,
    t_quantile,
)
from pipistrelle.models.samples.paired import paired

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))
SAMPLES = st.lists(NUMBERS, min_size=2, max_size=30)


def rng(seed):
    """Return a generator of its own."""
    return np.random.Generator(np.random.PCG64(seed))


@given(SAMPLES)
@settings(deadline=None, max_examples=80)
def test_the_t_interval_is_scipys(sample):
    """Mean and ends are those that scipy's distribution gives."""
    found = mean_interval(sample)
    error = stats.sem(sample)

    assert found.value == pytest.approx(np.mean(sample), abs=1e-6)
    half = stats.t.ppf(0.975, len(sample) - 1) * error
    assert found.high - found.low == pytest.approx(2 * half, rel=1e-6, abs=1e-6)
    assert found.count == len(sample)


def test_students_table():
    """Two quantiles that every table of Student's distribution has."""
    assert t_quantile(11) == pytest.approx(2.228, abs=5e-4)
    assert t_quantile(2, 0.9) == pytest.approx(6.314, abs=5e-4)


def test_one_replica_has_no_interval():
    """Nor do none have a value."""
    one, none = mean_interval([3.5]), mean_interval([])

    assert (one.value, one.low, one.high, one.relative) == (3.5, None, None, None)
    assert (none.value, none.count) == (None, 0)
    assert quantile_interval([3.5], 0.5).low is None
    assert ratio_of_means([2.0], [4.0]).value == 0.5
    assert paired([1.0], [2.0]).difference.low is None


@pytest.mark.parametrize(
    ("method", "draw", "truth", "least"),
    [
        ("t", lambda one: one.normal(5.0, 2.0, 8), 5.0, 0.93),
        ("t", lambda one: one.exponential(2.0, 40), 2.0, 0.90),
        ("bootstrap", lambda one: one.exponential(2.0, 40), 2.0, 0.90),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(method, draw, truth, least):
    """Of seeded samples about 95 % do."""
    runs = 800 if method == "t" else 120
    held = 0
    for seed in range(runs):
        found = mean_interval(draw(rng(seed)), method=method)
        held += found.low <= truth <= found.high

    assert least <= held / runs <= 0.98


def test_intervals_of_quantiles_hold_the_truth():
    """They cover it at least as often as claimed, for any distribution."""
    truth = math.log(2)
    held = 0
    for seed in range(500):
        found = quantile_interval(rng(seed).exponential(1.0, 25), 0.5)
        held += found.low <= truth <= found.high

    assert held / 500 >= 0.94


def test_the_interval_of_a_median_by_hand():
    """Of ten replicas it is from the second to the ninth: 1.07 % lie below, and above."""
    found = quantile_interval(list(range(1, 11)), 0.5)

    assert (found.low, found.high) == (2, 9)
    assert quantile_interval([1.0, 2.0, 3.0], 0.95).high == math.inf
    assert quantile_interval([1.0, 2.0, 3.0], 0.95).plain()["high"] is None


@given(SAMPLES)
@settings(deadline=None, max_examples=15)
def test_a_bootstrap_is_seeded_and_within_the_sample(sample):
    """Equal seeds give equal intervals, which lie within the drawn values."""
    first, again = (mean_interval(sample, method="bootstrap") for _ in range(2))

    assert first == again
    assert min(sample) - 1e-6 <= first.low <= first.high <= max(sample) + 1e-6


def test_means_of_ratios_are_not_ratios_of_means():
    """A replica with a small denominator weighs much in the one and little in the other."""
    over, under = [1.0, 30.0], [1.0, 10.0]

    assert mean_of_ratios(over, under).value == 2.0
    assert ratio_of_means(over, under).value == pytest.approx(31 / 11)
    assert ratio_of_means(over, [0.0, 0.0]).value is None
    assert mean_of_ratios([1.0, 4.0, 6.0], [0.0, 2.0, 2.0]).count == 2


@given(SAMPLES, NUMBERS)
@settings(deadline=None, max_examples=25)
def test_what_is_common_drops_out(sample, shift):
    """A constant difference has an interval of no length, though both means have one."""
    other = [value + shift for value in sample]
    found = paired(sample, other)

    assert found.difference.value == pytest.approx(shift, abs=1e-6)
    assert found.difference.high - found.difference.low == pytest.approx(0.0, abs=1e-4)


def test_common_random_numbers_narrow_the_interval():
    """The gain is the ratio of variances; the paired interval is that of scipy's paired test."""
    one = rng(1)
    before = one.exponential(100.0, 60)
    after = 1.1 * before + one.normal(0.0, 2.0, 60)
    found = paired(before, after)
    tested = stats.ttest_rel(after, before).confidence_interval()

    assert found.difference.low == pytest.approx(tested.low)
    assert found.difference.high == pytest.approx(tested.high)
    assert found.correlation == pytest.approx(np.corrcoef(before, after)[0, 1])
    spread = np.var(before, ddof=1) + np.var(after, ddof=1)
    assert found.gain == pytest.approx(spread / np.var(after - before, ddof=1))
    assert found.gain > 50
    boot = paired(before, after, method="bootstrap").difference
    assert boot.high - boot.low == pytest.approx(tested.high - tested.low, rel=0.25)


def test_without_scipy_the_extra_is_named(monkeypatch):
    """One clear error says what to install."""
    monkeypatch.setitem(sys.modules, "scipy.special", None)

    with pytest.raises(StatisticsError, match=r"pipistrelle\[study\]"):
        mean_interval([1.0, 2.0])
