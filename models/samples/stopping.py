"""When replicas are enough: a sequential rule for means of a wanted relative precision.

Replicas of a cell are added until the half-width of the interval of their mean is at most a share of the mean::

    n >= least   and   t(n - 1, (1 + level) / 2) s(n) / sqrt(n) <= precision |mean(n)|

with the standard deviation s. It is the rule of Chow and Robbins (On the Asymptotic Theory of Fixed-Width Sequential
Confidence Intervals for the Mean, Ann. Math. Statist. 36, 1965) in its form for a width in proportion to the mean
(Nadas, An Extension of a Theorem of Chow and Robbins, Ann. Math. Statist. 40, 1969).

What it promises. For independent replicas with a finite variance and a mean other than 0 the rule ends with probability
1, and as the precision goes to 0 the chance that the interval holds the mean goes to the level, while the number of
replicas goes to what would be needed if the variance were known. For a given precision neither is exact: a cell stops
early when its first replicas happen to lie close together, so the coverage is somewhat below the level (Glynn and
Whitt, The Asymptotic Validity of Sequential Stopping Rules for Stochastic Simulations, Ann. Appl. Probab. 2, 1992; Law,
Simulation Modeling and Analysis, section 9.4.1). Against that stand a least number of replicas and looks in stages, not
after each replica. The precision is that of the estimate: an interval of 2 % about the estimate is one of at most
2 / 98 about the true mean. Cells that reach the most replicas are not that precise, and `reached` says so.
"""

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pipistrelle.models.samples.estimates import LEVEL, Interval, StatisticsError, mean_interval

#: replicas before a cell is looked at for the first time
LEAST: Final = 10
#: how much a stage adds at least and at most, as a share of what is there
_SMALLEST, _LARGEST = 0.1, 1.0


class Rule(Struct, frozen=True, kw_only=True):
    """When the replicas of a cell are enough.

    Args:
        precision: half-width of the interval over the mean, at most; 0.02 is 2 %.
        level: of the interval.
        least, most: replicas that a cell has in any case, and at most.
    """

    precision: float
    level: float = LEVEL
    least: int = LEAST
    most: int = 1000

    def __post_init__(self) -> None:
        if not (0 < self.precision < 1 and 0 < self.level < 1 and 2 <= self.least <= self.most):
            raise StatisticsError(
                "a rule of precision cannot be",
                expected="a precision and a level between 0 and 1, and 2 replicas or more, no more than the most",
                found=f"{self.precision:g}, {self.level:g}, {self.least} to {self.most}",
            )


def replicas_needed(sample: Sequence[float | None], rule: Rule) -> int:
    """Return how many replicas a cell needs in all, so far as its first ones tell: its own number if it has enough.

    The next stage ends where the interval would be narrow enough if mean and deviation stayed, but is from a tenth of
    the replicas to as many again. A mean of 0 with a deviation goes on to the most replicas; replicas that are all
    alike are enough. It depends on the sample alone, so whoever asks again is told the same.

    Args:
        sample: the metric of each replica, in their order; None where one has none: it counts as a replica, not in the
            mean.
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
    """Return whether the mean of these replicas is as precise as the rule wants it."""
    known = [value for value in sample if value is not None]
    if len(known) < 2:
        return False
    found = _interval(known, rule)
    assert found.value is not None
    assert found.low is not None
    return found.value - found.low <= rule.precision * abs(found.value)


def _interval(known: Sequence[float], rule: Rule) -> Interval:
    return mean_interval(known, level=rule.level)
