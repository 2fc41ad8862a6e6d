"""Ranks of several treatments, Friedman's and Nemenyi's tests, Holm's correction, and rankings of a study."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipistrelle.models.samples.estimates import StatisticsError
from pipistrelle.models.samples.ranks import holm, letters, pair_p, rank_test
from pipistrelle.studies.inference.ranking import ranking
from pipistrelle.studies.inference.reports import all_pairs
from pipistrelle.studies.inference.trials import TrialTable


def drawn(blocks: int, treatments: int, seed: int = 1) -> np.ndarray:
    """Return a table of random values."""
    return np.random.Generator(np.random.PCG64(seed)).normal(size=(blocks, treatments))


def test_the_critical_difference_of_a_published_example():
    """Four treatments in 14 blocks: 2.569 sqrt(4 * 5 / (6 * 14)) = 1.25 at 95 % (Demsar 2006, section 3.2.2)."""
    found = rank_test(drawn(14, 4))

    assert found.critical == pytest.approx(2.569 * (4 * 5 / (6 * 14)) ** 0.5, abs=2e-3)
    assert rank_test(drawn(14, 4), level=0.9).critical == pytest.approx(2.291 * (4 * 5 / (6 * 14)) ** 0.5, abs=2e-3)


def test_friedman_is_that_of_scipy_and_ranks_add_up():
    """The sum of the mean ranks of k treatments is k (k + 1) / 2, also with ties."""
    for values in (drawn(9, 5), np.round(drawn(9, 5))):
        found = rank_test(values)
        expected = stats.friedmanchisquare(*values.T)

        assert (found.statistic, found.p) == (expected.statistic, expected.pvalue)
        assert sum(found.ranks) == pytest.approx(15)


def test_pairs_differ_beyond_the_critical_difference():
    """A pair's p-value is below 5 % exactly if its mean ranks are further apart than the critical difference."""
    values = drawn(12, 4)
    values[:, 3] += 1.5
    found = rank_test(values)
    for one in range(4):
        for other in range(4):
            apart = abs(found.ranks[one] - found.ranks[other])
            assert (found.pairs[one][other] < 0.05) == (apart > found.critical)


def test_one_block_has_ranks_and_no_test():
    """One block tells an order; two treatments or no block are refused."""
    found = rank_test(np.array([[3.0, 1.0, 2.0]]))

    assert (found.ranks, found.p, found.pairs) == ((3.0, 1.0, 2.0), None, None)
    for shape in ((3, 2), (0, 3)):
        with pytest.raises(StatisticsError, match="at least three values"):
            rank_test(np.ones(shape))
    assert rank_test(np.ones((4, 3))).p == 1.0


def test_holm_of_a_known_example():
    """Of 0.01, 0.04, 0.03 and 0.005 the adjusted values are 0.03, 0.06, 0.06 and 0.02; missing ones stay missing."""
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=9))
def test_holm_lies_between_nothing_and_bonferroni(p_values):
    """An adjusted value is at least the value, at most the number of values times it, and keeps the order."""
    adjusted = holm(p_values)

    assert all(new >= p for p, new in zip(p_values, adjusted, strict=True))
    assert min(adjusted, default=0.0) == min(1.0, min(p_values, default=0.0) * len(p_values))
    assert [adjusted[place] for place in np.argsort(p_values, kind="stable")] == sorted(adjusted)


@pytest.mark.parametrize("test", ["t", "wilcoxon"])
def test_paired_tests_are_those_of_scipy(test):
    """Student's and Wilcoxon's; equal samples have p = 1, one pair has no test."""
    first, second = drawn(10, 2).T
    expected = stats.ttest_rel(second, first) if test == "t" else stats.wilcoxon(second - first)

    assert pair_p(first, second, test) == pytest.approx(expected.pvalue)
    assert pair_p(first, first, test) == 1.0
    assert pair_p([1.0], [2.0], test) is None
    assert pair_p([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], "t") == 0.0


@given(st.integers(0, 200), st.integers(3, 6), st.integers(2, 12))
@settings(deadline=None, max_examples=30)
def test_a_common_letter_means_that_two_do_not_differ(seed, treatments, blocks):
    """Two treatments share a letter exactly if no pair between them in the order of ranks differs."""
    values = drawn(blocks, treatments, seed)
    values[:, 0] += 2.0
    found = rank_test(values)
    told = letters(found.ranks, found.pairs)
    for one in range(treatments):
        for other in range(treatments):
            assert bool(set(told[one]) & set(told[other])) == (found.pairs[one][other] >= 0.05 or one == other)


def study(waits, replicas=4):
    """Return a table of two logs, with {policy: wait}, in which replicas differ by their number."""
    rows = [
        (log, policy, replica, replica, (1.0 if log == "a" else 10.0) * (wait + replica))
        for log in ("a", "b")
        for policy, wait in waits.items()
        for replica in range(replicas)
    ]
    names = ("log", "policy", "replica", "seed", "mean_wait")
    return TrialTable(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def test_a_ranking_of_policies_over_logs():
    """Each replica of each log is a block; with means of cells there are as many blocks as logs."""
    table = study({"x": 3.0, "y": 1.0, "z": 2.0})
    found = ranking(table, "policy", ["x", "y", "z"], "mean_wait")

    assert [(one.value, one.rank, one.best) for one in found.standings] == [("y", 1, 8), ("z", 2, 0), ("x", 3, 0)]
    assert (found.test.blocks, found.left_out, found.better) == (8, 0, "less")
    cells = ranking(table, "policy", ["x", "y", "z"], "mean_wait", blocks="cells", better="more")
    assert [one.value for one in cells.standings] == ["x", "z", "y"]
    assert cells.test.blocks == 2
    with pytest.raises(StatisticsError, match="at least three values"):
        ranking(table, "policy", ["x", "y"], "mean_wait")


def test_blocks_without_a_figure_are_left_out_and_counted():
    """A block counts only if every policy has its figure."""
    table = study({"x": 3.0, "y": 1.0, "z": 2.0})
    table.columns["mean_wait"][0] = None
    found = ranking(table, "policy", ["x", "y", "z"], "mean_wait")

    assert (found.test.blocks, found.left_out, len(found.gaps)) == (7, 1, 1)
    assert found.gaps[0].cause == "without this metric"
    table.columns["mean_wait"] = [None] * len(table)
    with pytest.raises(StatisticsError, match="no block has a mean_wait of every policy"):
        ranking(table, "policy", ["x", "y", "z"], "mean_wait")


def test_all_pairs_are_corrected_together():
    """Three policies and two logs make six tests of a metric, whose smallest p-value is multiplied by six."""
    table = study({"x": 3.0, "y": 1.0, "z": 2.0})
    rng = np.random.Generator(np.random.PCG64(5))
    table.columns["mean_wait"] = [wait + rng.normal() for wait in table.columns["mean_wait"]]
    rows = all_pairs(table, "policy", ["x", "y", "z"], test="t")

    assert [row.values for row in rows[:3]] == [("x", "y"), ("x", "z"), ("y", "z")]
    least = min(rows, key=lambda row: row.p)
    assert least.adjusted == pytest.approx(min(1.0, 6 * least.p))
