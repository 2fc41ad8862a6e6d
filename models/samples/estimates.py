"""Means, quantiles and ratios of a sample, each with an interval.

A sample has a figure of each replica of one cell of a study; replicas are independent of one another.
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
#: how the interval of a mean is reckoned
Method = Literal["t", "bootstrap"]

#: how likely an interval holds what is estimated, if nothing else is said
LEVEL: Final = 0.95
#: quantiles of the standard normal distribution, and of Student's with 19 degrees of freedom; others need scipy
NORMAL_95: Final = 1.6448536269514722
NORMAL_975: Final = 1.959963984540054
STUDENT_19_975: Final = 2.093024
#: samples drawn anew for a bootstrap, and the seed of their choice
RESAMPLES: Final = 1999
SEED: Final = 1
_SPREAD: Final = (("p05", 0.05), ("p25", 0.25), ("median", 0.5), ("p75", 0.75), ("p95", 0.95))


class StatisticsError(PipistrelleError):
    """A question that trials do not answer, or that makes no sense."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and its interval.

    Args:
        value: the estimate; None: there is no replica.
        low, high: ends of the interval; None: one replica has none.
        count: replicas that it stands on.
    """

    value: float | None
    low: float | None
    high: float | None
    count: int

    @property
    def relative(self) -> float | None:
        """Half the length of the interval as a share of the value; None if there is no interval, or the value is 0."""
        if self.value is None or self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    def plain(self) -> dict[str, float | int | None]:
        """Return it as JSON can have it."""
        ends = {"value": self.value, "low": self.low, "high": self.high, "relative": self.relative}
        return {
            **{name: end if end is None or math.isfinite(end) else None for name, end in ends.items()},
            "n": self.count,
        }


def scipy_part(name: str, what: str = "intervals need", error: type[PipistrelleError] = StatisticsError) -> Any:
    """Return a module of scipy.

    Raises:
        PipistrelleError: of the given class, if it is not installed; the message says what needs it, and names the
            extra.
    """
    from importlib import import_module

    try:
        return import_module(f"scipy.{name}")
    except ImportError:
        raise error(
            f"{what} scipy, which is not installed", hint="Install it with: pip install 'pipistrelle[study]'"
        ) from None


def mean_of(sample: Sequence[float] | Floats) -> float:
    """Return the mean, by an exact sum."""
    values = _values(sample)
    return math.fsum(values) / len(values)


def deviation_of(sample: Sequence[float] | Floats) -> float:
    """Return the standard deviation of a sample of two or more, with n - 1 in the denominator."""
    values = _values(sample)
    middle = mean_of(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def spread_of(sample: Floats) -> dict[str, float]:
    """Return quantiles of a sample that is not empty, by linear interpolation: p05, p25, median, p75 and p95."""
    return {name: float(np.quantile(sample, share)) for name, share in _SPREAD}


def _values(sample: Sequence[float] | Floats) -> list[float]:
    values: list[float] = np.asarray(sample, dtype=np.float64).tolist()
    return values


def normal_quantile(share: float) -> float:
    """Return a quantile of the standard normal distribution; its last bits may differ from those of `NORMAL_975`."""
    return NormalDist().inv_cdf(share)


def t_quantile(count: int, level: float = LEVEL) -> float:
    """Return the quantile of Student's distribution that the interval of a mean of ``count`` replicas takes."""
    return float(scipy_part("special").stdtrit(count - 1, (1 + level) / 2))


def mean_interval(
    sample: Sequence[float] | Floats, *, level: float = LEVEL, method: Method = "t", seed: int = SEED
) -> Interval:
    """Return the mean of a sample.

    Args:
        method: ``t``: Student's interval, exact for normal replicas and near it for means over many jobs;
            ``bootstrap``: the bias-corrected and accelerated one (Efron, Better Bootstrap Confidence Intervals, JASA
            82, 1987).
        seed: of the bootstrap.
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
    """Return a quantile of replicas with an interval between two of them, which holds whatever their distribution.

    The number of replicas below the quantile is binomial: the interval is from the greatest to the least order
    statistic beyond which there is at most half of what the level leaves (David and Nagaraja, Order Statistics, 7.1).
    An end is infinite where so few replicas have none.
    """
    values = sorted(_values(sample))
    count = len(values)
    if not count:
        return Interval(None, None, None, 0)
    value = float(np.quantile(np.array(values), share))
    if count == 1:
        return Interval(value, None, None, 1)
    bdtr = scipy_part("special").bdtr
    below = [float(bdtr(place, count, share)) for place in range(count)]  # chance of at most so many below
    rest = (1 - level) / 2
    low = max((place + 1 for place in range(count) if below[place] <= rest), default=0)
    high = min((place for place in range(count) if below[place] >= 1 - rest), default=count)
    ends = [-math.inf if low == 0 else values[low - 1], math.inf if high == count else values[high]]
    return Interval(value, ends[0], ends[1], count)


def ratio_of_means(
    over: Sequence[float] | Floats, under: Sequence[float] | Floats, *, level: float = LEVEL, seed: int = SEED
) -> Interval:
    """Return mean(over) / mean(under) of pairs, with a bootstrap interval that draws whole pairs.

    It answers what all jobs together gain; `mean_of_ratios` what a replica does on average, where small denominators
    weigh as much as large ones. The two differ, and a report says which one it has.
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
    """Return the mean of over / under of pairs, with Student's interval; those with a denominator of 0 are left out."""
    pairs = zip(_values(over), _values(under), strict=True)
    return mean_interval([top / bottom for top, bottom in pairs if bottom != 0], level=level)


def change_of_rates(counts: Sequence[float], exposures: Sequence[float]) -> Interval:
    """Return by how much the rate of a second Poisson count is above that of a first, as a share of it.

    The interval is at 95 %, by the normal approximation of the logarithm of the ratio; without counts or exposures
    there is none.
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
    """Return the ends of a bootstrap interval; a statistic that never changes is its own.

    Of samples so poor that the corrections cannot be reckoned they are plain quantiles of what was drawn.
    """
    if all(np.all(sample == sample[0]) for sample in samples):
        value = float(statistic(*samples))
        return value, value
    rng = np.random.Generator(np.random.PCG64(seed))
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells of poor samples
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
