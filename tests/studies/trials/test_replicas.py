"""Which trials a study needs: counted, or until a mean is precise enough, whatever the order in which trials end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.models.samples.stopping import Rule, reached
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.studies.trials.grid import prepared
from pipistrelle.studies.trials.replicas import Counting, Precise
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.trials.trial import Outcome

POINTS = 3


def outcome(key, spread):
    """Return the result of a trial: about 100, at random; the last point never has the metric."""
    point, replica = key
    drawn = float(np.random.default_rng(1000 * point + replica).normal(100.0, spread))
    figures = {} if point == POINTS - 1 else {"mean_wait": drawn}
    return Outcome(point=point, replica=replica, reason="completed", figures=figures)


def carried_out(replication, spread, chance, after=10**9):
    """Let trials end in random order, until all or this many have ended; return them."""
    running, found = [], []
    while len(found) < after:
        while len(running) < 4 and (key := replication.next()) is not None:
            running.append(key)
        if not running:
            break
        ended = [outcome(running.pop(int(chance.integers(len(running)))), spread)]
        replication.take(ended)
        found += ended
    return found


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.floats(0.5, 30.0), st.integers(0, 60))
def test_needed_replicas_do_not_depend_on_the_order(seed, spread, after):
    """Nor on an interruption; each point has as many replicas as the rule wants, and no trial is asked for twice."""
    rule, chance = Rule(precision=0.05, most=60), np.random.default_rng(seed)
    peace = Precise(POINTS, rule, "mean_wait", [])
    everything = carried_out(peace, spread, np.random.default_rng(0))
    first = carried_out(Precise(POINTS, rule, "mean_wait", []), spread, chance, after)
    again = Precise(POINTS, rule, "mean_wait", first)
    rest = carried_out(again, spread, chance)

    keys = [(one.point, one.replica) for one in (*first, *rest)]
    assert len(keys) == len(set(keys))
    assert set(keys) == again.ended == peace.ended
    assert peace.left == again.left == 0
    assert again.known == len(everything)
    for point in range(POINTS):
        sample = [one.figures.get("mean_wait") for one in everything if one.point == point]
        if point == POINTS - 1:
            assert len(sample) == rule.least
        else:
            assert reached(sample, rule) or len(sample) == rule.most


def test_points_that_are_not_precise_enough_are_counted():
    """Cells at the maximum number of replicas are done; replicas beyond the rule's number are left out."""
    wild = Precise(2, Rule(precision=0.001, most=12), "mean_wait", [])
    carried_out(wild, 30.0, np.random.default_rng(1))
    assert (wild.known, wild.imprecise) == (24, 2)

    calm = Precise(2, Rule(precision=0.5), "mean_wait", [outcome((0, replica), 1.0) for replica in range(50)])
    carried_out(calm, 1.0, np.random.default_rng(1))
    assert (calm.known, len(calm.ended), calm.imprecise) == (20, 20, 0)


def test_counted_replicas_come_in_rounds():
    """All points have a replica before one has its next; what there is already is not asked for."""
    counting = Counting(2, 2, [(1, 0), (7, 0), (0, 5)])
    assert [counting.next() for _ in range(4)] == [(0, 0), (0, 1), (1, 1), None]
    assert (counting.known, counting.left) == (4, 3)


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ({"count": 3, "precision": "2%"}, "a count or a precision, not both"),
        ({"precision": "2"}, "as '2%' or 0.02"),
        ({"precision": "much"}, "as '2%' or 0.02"),
        ({"at-most": 50}, "'at-most' requires a precision"),
        ({"precision": "2%", "metric": "mean_wiat"}, "no metric 'mean_wiat'.*Did you mean 'mean_wait'"),
    ],
)
def test_a_precision_that_cannot_be(replicas, message):
    """The error is raised before the first trial."""
    with pytest.raises(PipistrelleError, match=f"(?s){message}"):
        prepared(Study({"failures": "exponential,mtbf=60d"}, {"repair": ["1h"]}, replicas))
