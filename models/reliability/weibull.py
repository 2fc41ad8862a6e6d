"""How surely a job is done before a node of it fails, and how reliable nodes must be for that: Weibull lifetimes."""

import math
from typing import Final

from pipistrelle.models.reliability.errors import ReliabilityError
from pipistrelle.platforms.errors import check_range

#: the shape of lifetimes in the thesis (section 4.2)
BETA: Final = 0.7
#: the probabilities of table 4.3
PROBABILITIES: Final = (0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 0.99)


def job_reliability(mttf: float, size: float, time: float, beta: float = BETA) -> float:
    """Return the chance that a job of `size` nodes lasts: exp(-(n T Gamma(1 + 1/beta) / MTTF)^beta).

    This is equation 3.7 with n T in place of T, which is what tables 4.3 and 4.8 were made with: a job of n nodes is
    taken as one node that runs n times as long.

    Parameters
    ----------
    mttf, time
        the mean time to failure of a node, and how long the job runs, in one unit.
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
