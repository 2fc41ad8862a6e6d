"""Survival of jobs on unreliable nodes (Weibull lifetimes), and their checkpoints."""

import math
from typing import Final, NamedTuple

from pipistrelle.platforms.errors import PlatformError, check_range

#: Weibull shape of node lifetimes in Umamaheshwaran's thesis (section 4.2)
BETA: Final = 0.7
#: survival probabilities in table 4.3 of Umamaheshwaran's thesis
PROBABILITIES: Final = (0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 0.99)
_MINUTES: Final = 60.0


class ReliabilityError(PlatformError):
    """Job classes, a machine or a number are outside the range of the formulas."""


def job_reliability(mttf: float, size: float, time: float, beta: float = BETA) -> float:
    """Return a job's survival probability: exp(-(n T Gamma(1 + 1/beta) / MTTF)^beta).

    This is equation 3.7 of Umamaheshwaran's thesis with n T in place of T, as in its tables 4.3 and 4.8. A job of n
    nodes thus counts as one node that runs n times as long.

    Args:
        mttf, time: mean time to failure of a node, and run time T, in the same unit.
    """
    _check(mttf, time, size, beta)
    return math.exp(-math.pow(size * time * math.gamma(1.0 + 1.0 / beta) / mttf, beta))


def series_reliability(mttf: float, size: float, time: float, beta: float = BETA) -> float:
    """Return the probability that n nodes survive.

    It is exp(-n (T Gamma(1 + 1/beta) / MTTF)^beta).
    """
    _check(mttf, time, size, beta)
    return math.exp(-size * math.pow(time * math.gamma(1.0 + 1.0 / beta) / mttf, beta))


def required_mttf(probability: float, size: float, time: float, beta: float = BETA) -> float:
    """Return the node MTTF for a survival probability.

    It follows Umamaheshwaran's table 4.3. The MTTF is n T Gamma(1 + 1/beta) / ln(1/R)^(1/beta). The thesis's equation
    4.1 has T where its table uses n T.
    """
    _check(1.0, time, size, beta)
    if not 0 < probability < 1:
        raise ReliabilityError(
            "a probability is out of range", expected="above 0 and below 1", found=f"{probability!r}"
        )
    return size * time * math.gamma(1.0 + 1.0 / beta) / math.pow(-math.log(probability), 1.0 / beta)


def required_mttf_in_series(probability: float, size: float, time: float, beta: float = BETA) -> float:
    """Return the node MTTF at which `series_reliability` is `probability`.

    It is n^(1/beta - 1) times `required_mttf`, because a job fails with the first of its nodes.
    """
    return math.pow(size, 1.0 / beta - 1.0) * required_mttf(probability, size, time, beta)


def _check(mttf: float, time: float, size: float, beta: float) -> None:
    check_range("a mean time to failure", mttf, 0, 1e300, ReliabilityError, above=True, unit="", where="MTTF")
    check_range("a time", time, 0, 1e300, ReliabilityError, above=True, unit="")
    check_range("a size", size, 0, 1e12, ReliabilityError, above=True, unit=" nodes")
    check_range("a shape", beta, 0.05, 50, ReliabilityError, unit="", where="beta")


class CheckpointChange(NamedTuple):
    """Change of the optimal checkpoint interval and of its cost.

    The interval is in minutes, the cost in node-minutes per hour.
    """

    interval: float
    cost: float


def interval(dump: float, mttf: float) -> float:
    """Return the optimal checkpoint interval sqrt(2 delta M) - delta.

    This is Daly's estimate of 2003 (equation 4.2 of Umamaheshwaran's thesis). The checkpoint time delta and the MTTF M
    are in the same unit. If delta is at least 2 M, the interval is M (Daly 2006).
    """
    check_range("a mean time to failure", mttf, 0, 1e300, ReliabilityError, above=True, unit="", where="MTTF")
    check_range("a dump's time", dump, 0, 1e300, ReliabilityError, above=True, unit="")
    return mttf if dump >= 2.0 * mttf else math.sqrt(2.0 * dump * mttf) - dump


def change(size: float, dump: float, before: float, after: float) -> CheckpointChange:
    """Return how the optimal checkpoint interval and the checkpoint cost change.

    The node MTTF changes from ``before`` to ``after``. ``dump`` is the time to write a checkpoint. All times are in
    minutes.
    """
    old, new = interval(dump, before), interval(dump, after)
    return CheckpointChange(new - old, _MINUTES * dump * size * (1.0 / new - 1.0 / old))


def job_change(size: float, dump: float, before: float, after: float) -> CheckpointChange:
    """Return how a job's optimal checkpoint interval and its checkpoint cost change.

    Both depend on the MTTF of the whole job. The job's MTTF is the node MTTF, ``before`` or ``after`` (minutes),
    divided by the job's number of nodes, ``size``. `change` uses the node MTTF itself.
    """
    return change(size, dump, before / size, after / size)
