"""Decide when the means of replicas are precise enough.

Replicas of a cell are added until the half-width of the interval of their mean is at most a share of the mean::

    n >= least   and   t(n - 1, (1 + level) / 2) s(n) / sqrt(n) <= precision |mean(n)|

with the standard deviation s. This is the rule of Chow and Robbins (On the Asymptotic Theory of Fixed-Width Sequential
Confidence Intervals for the Mean, Ann. Math. Statist. 36, 1965) for a width in proportion to the mean (Nadas, An
Extension of a Theorem of Chow and Robbins, Ann. Math. Statist. 40, 1969).

For independent replicas with a finite variance and a nonzero mean the rule ends with probability 1. As the precision
goes to 0, the coverage goes to the level, and the number of replicas to the number needed for a known variance. At a
given precision a cell stops early if its first replicas happen to lie close together, so the coverage is somewhat below
the level (Glynn and Whitt, The Asymptotic Validity of Sequential Stopping Rules for Stochastic Simulations, Ann. Appl.
Probab. 2, 1992; Law, Simulation Modeling and Analysis, section 9.4.1). A least number of replicas and checks in stages
reduce this. The precision refers to the estimate: 2 % of the estimate is at most 2 / 98 of the true mean. Cells that
reach the largest number of replicas may be less precise, which `reached` checks.
"""

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pipistrelle.models.samples.estimates import LEVEL, Interval, StatisticsError, mean_interval

#: smallest number of replicas before the first check
LEAST: Final = 10
#: bounds of a stage's new replicas, as shares of the replicas so far
_SMALLEST, _LARGEST = 0.1, 1.0


class Rule(Struct, frozen=True, kw_only=True):
    """A rule that says when a cell has enough replicas.

    A cell is one combination of a study's options.

    Args:
        precision: largest accepted half-width of the confidence interval, as a share of the mean; 0.02 is 2 %.
        least, most: smallest and largest number of replicas.
    """

    precision: float
    level: float = LEVEL
    least: int = LEAST
    most: int = 1000

    def __post_init__(self) -> None:
        if not (0 < self.precision < 1 and 0 < self.level < 1 and 2 <= self.least <= self.most):
            raise StatisticsError(
                "the rule of precision is not valid",
                expected="a precision and a level between 0 and 1, and 2 replicas or more, no more than the most",
                found=f"{self.precision:g}, {self.level:g}, {self.least} to {self.most}",
            )


def replicas_needed(sample: Sequence[float | None], rule: Rule) -> int:
    """Return how many replicas a cell will need in total.

    A cell is one combination of a study's options. The result is the number at which the interval would be narrow
    enough if mean and deviation did not change. If more replicas are needed, their number grows by at least a tenth and
    is at most doubled. It is doubled if the mean is 0 but the replicas differ. If all replicas are equal, no more are
    needed.

    Args:
        sample: metric of each replica, in order; None counts as a replica but is left out of the mean.
    """
    count = len(sample)
    if count >= rule.most:
        return count
    least = min(rule.least, rule.most)
    known = [value for value in sample if value is not None]
    if count < least:
        return least
    if reached(known, rule):
        return count
    found = _interval(known, rule)
    wanted = math.inf
    if found.relative is not None:
        wanted = math.ceil(min(count * (found.relative / rule.precision) ** 2, float(rule.most)))
    stage = min(max(wanted, count + math.ceil(count * _SMALLEST)), count + math.ceil(count * _LARGEST))
    return int(min(stage, rule.most))


def reached(sample: Sequence[float | None], rule: Rule) -> bool:
    """Return whether the mean of the replicas is as precise as the rule requires."""
    known = [value for value in sample if value is not None]
    if len(known) < 2:
        return False
    found = _interval(known, rule)
    assert found.value is not None
    assert found.low is not None
    return found.value - found.low <= rule.precision * abs(found.value)


def _interval(known: Sequence[float], rule: Rule) -> Interval:
    return mean_interval(known, level=rule.level)
