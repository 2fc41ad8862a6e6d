"""Estimate means, quantiles and ratios with confidence intervals.

A sample has one number per independent replica, all for one combination of a study's options (a cell).
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import PipistrelleError

Floats = NDArray[np.float64]
#: method for the interval of a mean
Method = Literal["t", "bootstrap"]

#: default confidence level
LEVEL: Final = 0.95
#: quantiles of the standard normal distribution, and of Student's with 19 degrees of freedom, without scipy
NORMAL_95: Final = 1.6448536269514722
NORMAL_975: Final = 1.959963984540054
STUDENT_19_975: Final = 2.093024
#: bootstrap samples, and their seed
RESAMPLES: Final = 1999
SEED: Final = 1
_SPREAD: Final = (("p05", 0.05), ("p25", 0.25), ("median", 0.5), ("p75", 0.75), ("p95", 0.95))


class StatisticsError(PipistrelleError):
    """The number or values of replicas do not allow this estimate."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval.

    Args:
        value: the estimate; None without replicas.
        low, high: ends of the interval; None with fewer than two replicas.
    """

    value: float | None
    low: float | None
    high: float | None
    count: int

    @property
    def relative(self) -> float | None:
        """Return half the width of the interval, divided by the estimate.

        Return None without an interval, or if the estimate is 0.
        """
        if self.value is None or self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    def plain(self) -> dict[str, float | int | None]:
        """Return the interval as JSON values."""
        ends = {"value": self.value, "low": self.low, "high": self.high, "relative": self.relative}
        return {
            **{name: end if end is None or math.isfinite(end) else None for name, end in ends.items()},
            "n": self.count,
        }


def scipy_part(name: str, what: str = "intervals need", error: type[PipistrelleError] = StatisticsError) -> Any:
    """Import and return a module of scipy; raise `error` if scipy is not installed.

    ``what`` is the start of the message, which continues with "scipy, which is not installed".
    """
    from importlib import import_module

    try:
        return import_module(f"scipy.{name}")
    except ImportError:
        raise error(
            f"{what} scipy, which is not installed", hint="Install it with: pip install 'pipistrelle[study]'"
        ) from None


def mean_of(sample: Sequence[float] | Floats) -> float:
    """Return the mean, computed by an exact sum."""
    values = _values(sample)
    return math.fsum(values) / len(values)


def deviation_of(sample: Sequence[float] | Floats) -> float:
    """Return the standard deviation of two or more values, with divisor n - 1."""
    values = _values(sample)
    middle = mean_of(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def spread_of(sample: Floats) -> dict[str, float]:
    """Return the quantiles p05, p25, median, p75 and p95 of a sample.

    They are linearly interpolated.
    """
    return {name: float(np.quantile(sample, share)) for name, share in _SPREAD}


def _values(sample: Sequence[float] | Floats) -> list[float]:
    values: list[float] = np.asarray(sample, dtype=np.float64).tolist()
    return values


def normal_quantile(share: float) -> float:
    """Return the quantile of the standard normal distribution at a probability.

    ``share`` is the probability. At 0.975 use `NORMAL_975` instead: the last bits computed here may differ.
    """
    return NormalDist().inv_cdf(share)


def t_quantile(count: int, level: float = LEVEL) -> float:
    """Return Student's quantile for the interval of a mean of ``count`` replicas."""
    return float(scipy_part("special").stdtrit(count - 1, (1 + level) / 2))


def mean_interval(
    sample: Sequence[float] | Floats, *, level: float = LEVEL, method: Method = "t", seed: int = SEED
) -> Interval:
    """Return the mean of replicas with its confidence interval.

    Args:
        method: ``t`` is Student's interval, which is exact for normal replicas and close for means over many jobs.
            ``bootstrap`` is the bias-corrected and accelerated bootstrap (Efron, Better Bootstrap Confidence Intervals,
            JASA 82, 1987).
    """
    count = len(sample)
    if not count:
        return Interval(None, None, None, 0)
    middle = mean_of(sample)
    if count == 1:
        return Interval(middle, None, None, 1)
    if method == "bootstrap":
        low, high = _bootstrap((np.asarray(sample, dtype=np.float64),), _row_means, level, seed)
        return Interval(middle, low, high, count)
    half = t_quantile(count, level) * deviation_of(sample) / math.sqrt(count)
    return Interval(middle, middle - half, middle + half, count)


def quantile_interval(sample: Sequence[float] | Floats, share: float, *, level: float = LEVEL) -> Interval:
    """Return a quantile of replicas with a distribution-free interval.

    The number of replicas below the true quantile is binomial. The lower end is the greatest replica that exceeds the
    true quantile with a probability of at most (1 - level) / 2. The upper end is the least replica that is below it
    with at most this probability (David and Nagaraja, Order Statistics, 7.1). An end is infinite if there are too few
    replicas.
    """
    values = sorted(_values(sample))
    count = len(values)
    if not count:
        return Interval(None, None, None, 0)
    value = float(np.quantile(np.array(values), share))
    if count == 1:
        return Interval(value, None, None, 1)
    bdtr = scipy_part("special").bdtr
    below = [float(bdtr(place, count, share)) for place in range(count)]  # probability of at most `place` below
    rest = (1 - level) / 2
    low = max((place + 1 for place in range(count) if below[place] <= rest), default=0)
    high = min((place for place in range(count) if below[place] >= 1 - rest), default=count)
    ends = [-math.inf if low == 0 else values[low - 1], math.inf if high == count else values[high]]
    return Interval(value, ends[0], ends[1], count)


def ratio_of_means(
    over: Sequence[float] | Floats, under: Sequence[float] | Floats, *, level: float = LEVEL, seed: int = SEED
) -> Interval:
    """Return mean(over) / mean(under), with a confidence interval.

    ``over`` and ``under`` have one value for each replica of a study, in the same order. The interval comes from a
    bootstrap of these pairs. `mean_of_ratios` instead returns the mean of the replicas' ratios, in which replicas with
    a small denominator weigh as much as the others.
    """
    count = len(over)
    bottom = mean_of(under) if count else 0.0
    if not count or bottom == 0:
        return Interval(None, None, None, count)
    value = mean_of(over) / bottom
    if count == 1:
        return Interval(value, None, None, 1)
    low, high = _bootstrap(
        (np.asarray(over, dtype=np.float64), np.asarray(under, dtype=np.float64)), _row_ratios, level, seed
    )
    return Interval(value, low, high, count)


def mean_of_ratios(
    over: Sequence[float] | Floats, under: Sequence[float] | Floats, *, level: float = LEVEL
) -> Interval:
    """Return the mean of over / under, leaving out pairs with denominator 0."""
    pairs = zip(_values(over), _values(under), strict=True)
    return mean_interval([top / bottom for top, bottom in pairs if bottom != 0], level=level)


def change_of_rates(counts: Sequence[float], exposures: Sequence[float]) -> Interval:
    """Return the relative change from a first rate to a second, estimated from Poisson counts.

    The 95 % interval uses the normal approximation of the ratio's logarithm. If a count or an exposure is 0, there is
    neither an estimate nor an interval.

    Args:
        counts: the two numbers of events.
        exposures: the two lengths of time in which they were counted.
    """
    before, after = counts
    events = int(before + after)
    if not (before and after and all(exposures)):
        return Interval(None, None, None, events)
    ratio = (after / exposures[1]) / (before / exposures[0])
    spread = math.exp(NORMAL_975 * math.sqrt(1 / before + 1 / after))
    return Interval(ratio - 1.0, ratio / spread - 1.0, ratio * spread - 1.0, events)


def _row_means(sample: Floats, axis: int = -1) -> Floats:
    means: Floats = np.mean(sample, axis=axis)
    return means


def _row_ratios(over: Floats, under: Floats, axis: int = -1) -> Floats:
    ratios: Floats = np.mean(over, axis=axis) / np.mean(under, axis=axis)
    return ratios


def _bootstrap(
    samples: tuple[Floats, ...], statistic: Callable[..., Floats], level: float, seed: int
) -> tuple[float, float]:
    """Return the ends of a bootstrap confidence interval.

    The interval is for ``statistic`` over ``samples``. If the BCa corrections cannot be computed, the ends are
    quantiles of the bootstrap distribution.
    """
    if all(np.all(sample == sample[0]) for sample in samples):
        value = float(statistic(*samples))
        return value, value
    rng = np.random.Generator(np.random.PCG64(seed))
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about poor samples
        found = scipy_part("stats").bootstrap(
            samples,
            statistic,
            n_resamples=RESAMPLES,
            confidence_level=level,
            method="BCa" if len(samples[0]) > 2 else "percentile",
            paired=len(samples) > 1,
            vectorized=True,
            batch=max(1, 2_000_000 // len(samples[0])),
            random_state=rng,
        )
    ends = found.confidence_interval
    if math.isnan(ends.low) or math.isnan(ends.high):
        drawn = found.bootstrap_distribution
        shares = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(drawn[~np.isnan(drawn)], shares, method="inverted_cdf").tolist()
        return low, high
    return float(ends.low), float(ends.high)
