"""What the reliability of nodes means for jobs: how surely they last (Weibull lifetimes), what checkpoints cost."""

import math
from typing import Final, NamedTuple

from pipistrelle.platforms.errors import PlatformError, check_range

#: the shape of lifetimes in the thesis (section 4.2)
BETA: Final = 0.7
#: the probabilities of table 4.3
PROBABILITIES: Final = (0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 0.99)
_MINUTES: Final = 60.0


class ReliabilityError(PlatformError):
    """A question about reliability has no answer: classes, a machine or a number in it cannot be."""


def job_reliability(mttf: float, size: float, time: float, beta: float = BETA) -> float:
    """Return the chance that a job of `size` nodes lasts: exp(-(n T Gamma(1 + 1/beta) / MTTF)^beta).

    This is equation 3.7 with n T in place of T, which is what tables 4.3 and 4.8 were made with: a job of n nodes is
    taken as one node that runs n times as long.

    Args:
        mttf, time: the mean time to failure of a node, and how long the job runs, in one unit.
    """
    _check(mttf, time, size, beta)
    return math.exp(-math.pow(size * time * math.gamma(1.0 + 1.0 / beta) / mttf, beta))


def series_reliability(mttf: float, size: float, time: float, beta: float = BETA) -> float:
    """Return the chance that all of `size` new, independent nodes last: exp(-n (T Gamma(1 + 1/beta) / MTTF)^beta)."""
    _check(mttf, time, size, beta)
    return math.exp(-size * math.pow(time * math.gamma(1.0 + 1.0 / beta) / mttf, beta))


def required_mttf(probability: float, size: float, time: float, beta: float = BETA) -> float:
    """Return the mean time to failure of a node at which `job_reliability` is the probability: table 4.3.

    n T Gamma(1 + 1/beta) / ln(1/R)^(1/beta); equation 4.1 has T alone, the table n T.
    """
    _check(1.0, time, size, beta)
    _check_probability(probability)
    return size * time * math.gamma(1.0 + 1.0 / beta) / math.pow(-math.log(probability), 1.0 / beta)


def required_mttf_in_series(probability: float, size: float, time: float, beta: float = BETA) -> float:
    """Return the mean time to failure of a node at which `series_reliability` is the probability.

    It is n^(1/beta - 1) times `required_mttf`: beside the table, since a job fails with the first of its nodes.
    """
    return math.pow(size, 1.0 / beta - 1.0) * required_mttf(probability, size, time, beta)


def _check(mttf: float, time: float, size: float, beta: float) -> None:
    check_range("a mean time to failure", mttf, 0, 1e300, ReliabilityError, above=True, unit="", where="MTTF")
    check_range("a time", time, 0, 1e300, ReliabilityError, above=True, unit="")
    check_range("a size", size, 0, 1e12, ReliabilityError, above=True, unit=" nodes")
    check_range("a shape", beta, 0.05, 50, ReliabilityError, unit="", where="beta")


def _check_probability(probability: float) -> None:
    if not 0 < probability < 1:
        raise ReliabilityError(
            "a probability is out of range", expected="above 0 and below 1", found=f"{probability!r}"
        )


class CheckpointChange(NamedTuple):
    """How the optimal interval of a class changes with the mean time to failure, and what its checkpoints cost then.

    ``interval`` is in minutes; ``cost`` in node-minutes an hour, negative if less is spent.
    """

    interval: float
    cost: float


def interval(dump: float, mttf: float) -> float:
    """Return the optimal time between checkpoints: sqrt(2 delta M) - delta (equation 4.2), all in one unit.

    It is Daly's estimate of 2003; where a dump takes half of the mean time to failure or longer, there is no sense in
    it, and it is that mean time (Daly 2006).
    """
    check_range("a mean time to failure", mttf, 0, 1e300, ReliabilityError, above=True, unit="", where="MTTF")
    check_range("a dump's time", dump, 0, 1e300, ReliabilityError, above=True, unit="")
    return mttf if dump >= 2.0 * mttf else math.sqrt(2.0 * dump * mttf) - dump


def change(size: float, dump: float, before: float, after: float) -> CheckpointChange:
    """Return the change from one mean time to failure of a node to another, both and the dump in minutes.

    The interval changes by equation 4.3, the cost by 60 delta n (1 / tau_2 - 1 / tau_1). What table 4.10 prints is this
    with the dump in minutes and the mean times to failure in hours.
    """
    old, new = interval(dump, before), interval(dump, after)
    return CheckpointChange(new - old, _MINUTES * dump * size * (1.0 / new - 1.0 / old))


def equation_as_printed(size: float, dump: float, before: float, after: float) -> float:
    """Return the change of the cost by equation 4.5 as it is printed, which lacks a factor 1 / sqrt(2 delta)."""
    root = math.sqrt(dump / 2.0)
    first, second = math.sqrt(before), math.sqrt(after)
    return _MINUTES * dump * size * (first - second) / ((first - root) * (second - root))


def job_change(size: float, dump: float, before: float, after: float) -> CheckpointChange:
    """Return the change for the job: the mean time to failure of its n nodes together is that of one over n."""
    return change(size, dump, before / size, after / size)
