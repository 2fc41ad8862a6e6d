"""Sequential stopping: the guarantees of the rule, and that it depends on the sample alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.models.samples.estimates import StatisticsError, mean_interval
from pipistrelle.models.samples.stopping import Rule, reached, replicas_needed

VALUES = st.lists(st.none() | st.floats(0.5, 100.0), max_size=60)
RULES = st.builds(
    lambda precision, least, more: Rule(precision=precision, least=least, most=least + more),
    st.floats(0.005, 0.5),
    st.integers(2, 12),
    st.integers(0, 200),
)


def carried_out(draw, rule):
    """Return the replicas of one cell, drawn as the rule wants them."""
    count = 0
    while (needed := replicas_needed(draw[:count].tolist(), rule)) > count:
        count = needed
    return draw[:count]


def test_intervals_that_stopped_hold_the_truth():
    """With a precision of 10 % on skewed replicas, about 95 % do; and about the needed number was drawn."""
    rule, held, counts = Rule(precision=0.1, most=2000), 0, []
    for seed in range(400):
        sample = carried_out(np.random.Generator(np.random.PCG64(seed)).exponential(1.0, 2000), rule)
        found = mean_interval(sample)
        assert found.relative <= 0.1
        held += found.low <= 1.0 <= found.high
        counts.append(len(sample))

    assert 0.92 <= held / 400 <= 0.98
    assert np.mean(counts) == pytest.approx(1.96**2 / 0.1**2, rel=0.1)


@given(VALUES, RULES)
@settings(deadline=None, max_examples=150)
def test_a_stage_ends_and_never_asks_for_less(sample, rule):
    """Each answer lies between the present number and the maximum, and asking again gives the same."""
    needed = replicas_needed(sample, rule)

    assert needed >= len(sample)
    assert needed <= max(rule.most, len(sample))
    assert needed == replicas_needed(list(sample), rule)
    assert needed >= rule.least
    if needed == len(sample) < rule.most:
        assert reached(sample, rule)
    if len(sample) >= rule.least:
        assert needed <= 2 * len(sample)


def test_what_cells_need():
    """A cell that has enough needs its own number, others more; at the most replicas none needs more."""
    rule = Rule(precision=0.02, least=3, most=50)
    same, wide, few = [5.0] * 3, [1.0, 2.0, 9.0], [1.0]

    assert [replicas_needed(sample, rule) for sample in (wide, same, few, wide * 20)] == [6, 3, 3, 60]
    assert not reached(wide * 20, rule)


def test_replicas_without_a_figure():
    """They count as replicas without a mean: the cell continues to the maximum."""
    rule = Rule(precision=0.05, least=2, most=9)

    assert replicas_needed([None, None], rule) == 4
    assert replicas_needed([None] * 9, rule) == 9
    assert replicas_needed([None, 4.0, 4.0], rule) == 3


@pytest.mark.parametrize(
    "wrong", [{"precision": 0.0}, {"precision": 1.0}, {"precision": 0.1, "least": 1}, {"precision": 0.1, "most": 5}]
)
def test_rules_that_cannot_be(wrong):
    """A precision is a share, and two replicas are the least."""
    with pytest.raises(StatisticsError, match="rule of precision"):
        Rule(**wrong)
