"""Fit failure models by maximum likelihood with censoring.

Sources: J. Lawless, "Statistical Models and Methods for Lifetime Data", 2nd edition, 2003 (likelihoods with right
censoring and left truncation, observed information); B. Schroeder and G. Gibson, "A Large-Scale Study of Failures in
High-Performance Computing Systems", 2006 (Weibull and lognormal for LANL's systems).
"""

import math
from functools import partial
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pipistrelle.models.reliability import MODELS
from pipistrelle.models.samples.estimates import scipy_part
from pipistrelle.platforms.failures.fitted import Fitted, FittedModel
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean
from pipistrelle.traces.outages.log import Lives, OutageLog

Floats = NDArray[np.float64]
Interval = tuple[float, float]

_LEAST_SHAPE, _MOST_SHAPE = 0.05, 50.0


class FitError(PipistrelleError):
    """There is too little data for a fit, or scipy is not installed."""


_scipy: Final = partial(scipy_part, what="fitting needs", error=FitError)


def fit_log(
    log: OutageLog,
    *,
    name: str,
    description: str = "",
    source: str = "",
    model: str = "auto",
    confidence: float = 0.95,
    age: float = 0.0,
) -> FittedModel:
    """Fit a model of failures and repairs to a log of outages.

    Args:
        model: one of `MODELS`; ``auto`` takes the Weibull distribution if its AIC is lower than the exponential one's.
        age: uptime of the nodes at time 0 (s).
    """
    if model not in MODELS:
        raise FitError(f"unknown model '{model}'", where="--model", hint=did_you_mean(model, list(MODELS)))
    lives = log.watched()
    fits: list[Fitted | None] = []
    if model != "weibull":
        fits.append(fit_exponential(lives, confidence))
    if model != "exponential":
        fits.append(fit_weibull(lives, confidence, required=model == "weibull"))
    best = min((fit for fit in fits if fit is not None), key=aic)
    lengths = (log.up - log.down)[np.isfinite(log.up) & np.isnan(log.announced)]
    return FittedModel(
        name=name,
        description=description,
        source=source,
        nodes=len(log.nodes),
        confidence=confidence,
        failures=replace(best, age=age),
        repair=fit_repair(lengths, confidence) if lengths.size >= 2 and np.unique(lengths).size >= 2 else None,
    )


def aic(fit: Fitted) -> float:
    """Return Akaike's information criterion, 2 x parameters - 2 x log likelihood."""
    if fit.log_likelihood is None:
        return math.inf
    return 2 * (1 if fit.distribution == "exponential" else 2) - 2 * fit.log_likelihood


def fit_exponential(lives: Lives, confidence: float = 0.95) -> Fitted:
    """Fit an exponential distribution to lifetimes: mean = exposure / failures.

    The interval is that of Poisson counts: for d failures, chi-squared quantiles with 2d + 2 and 2d degrees of freedom.
    """
    failures, exposure = _counted(lives, 1)
    mean = exposure / failures
    tail = (1 - confidence) / 2
    quantile = _scipy("stats").chi2.ppf
    interval = (
        2 * exposure / float(quantile(1 - tail, 2 * failures + 2)),
        2 * exposure / float(quantile(tail, 2 * failures)),
    )
    return Fitted(
        distribution="exponential",
        mean=mean,
        mean_interval=interval,
        observations=failures,
        censored=len(lives) - failures,
        exposure=exposure,
        log_likelihood=-failures * (math.log(mean) + 1),
    )


def fit_weibull(lives: Lives, confidence: float = 0.95, *, required: bool = True) -> Fitted | None:
    """Fit a Weibull distribution to lifetimes, left-truncated at the age of entry.

    The shape's interval comes from the profile likelihood. The intervals of scale and mean come from the observed
    information, in logarithms.

    Raises:
        FitError: if there are fewer than two failures, or the shape is outside 0.05 to 50. If ``required`` is False,
            None is returned instead.
    """
    try:
        failures, exposure = _counted(lives, 2)
        shape = _best_shape(lives)
    except FitError:
        if required:
            raise
        return None
    problem = _Weibull(lives)
    scale = problem.scale(shape)
    top = problem.profile(shape)
    covariance = problem.covariance(scale, shape)
    normal = float(_scipy("stats").norm.ppf((1 + confidence) / 2))
    digamma = float(_scipy("special").digamma(1 + 1 / shape))
    mean = scale * math.gamma(1 + 1 / shape)
    slope = np.array([1.0, -digamma / shape])
    return Fitted(
        distribution="weibull",
        mean=mean,
        mean_interval=_around(mean, normal * math.sqrt(float(slope @ covariance @ slope))),
        scale=scale,
        scale_interval=_around(scale, normal * math.sqrt(float(covariance[0, 0]))),
        shape=shape,
        shape_interval=_shape_interval(problem, shape, top, confidence),
        observations=failures,
        censored=len(lives) - failures,
        exposure=exposure,
        log_likelihood=top,
    )


def fit_repair(lengths: Floats, confidence: float = 0.95) -> Fitted:
    """Fit a repair-time distribution to two or more outage lengths (s).

    The distribution is chosen by AIC.
    """
    if np.unique(lengths).size < 2:
        raise FitError("there are too few repairs to fit", expected="two of different lengths")
    size = lengths.size
    whole = Lives(
        np.zeros(size), lengths, np.ones(size, dtype=np.bool_), np.zeros(size), np.zeros(size, dtype=np.int64)
    )
    fits = [_lognormal(lengths, confidence), fit_exponential(whole, confidence)]
    weibull = fit_weibull(whole, confidence, required=False)
    return min([*fits, weibull] if weibull else fits, key=aic)


def _lognormal(lengths: Floats, confidence: float) -> Fitted:
    logs = np.log(lengths)
    size = logs.size
    middle, sigma = float(logs.mean()), float(logs.std())
    tail = (1 - confidence) / 2
    stats = _scipy("stats")
    error = float(stats.t.ppf(1 - tail, size - 1)) * float(logs.std(ddof=1)) / math.sqrt(size)
    squares = float(((logs - middle) ** 2).sum())
    low, high = (math.sqrt(squares / float(stats.chi2.ppf(q, size - 1))) for q in (1 - tail, tail))
    return Fitted(
        distribution="lognormal",
        mean=math.exp(middle + sigma**2 / 2),
        median=math.exp(middle),
        median_interval=(math.exp(middle - error), math.exp(middle + error)),
        sigma=sigma,
        sigma_interval=(low, high),
        observations=size,
        censored=0,
        exposure=float(lengths.sum()),
        log_likelihood=-size * (middle + math.log(sigma) + 0.5 * math.log(2 * math.pi) + 0.5),
    )


class _Weibull:
    """The likelihood of Weibull lifetimes.

    Ages are divided by their mean, so that powers stay small.
    """

    def __init__(self, lives: Lives) -> None:
        self.unit = float(lives.left.mean())
        self.left = lives.left / self.unit
        self.log_left = np.log(self.left)
        self.entered = lives.entered / self.unit
        #: values at age 0 do not matter: they are multiplied by 0
        self.log_entered = np.log(np.where(self.entered > 0, self.entered, 1.0))
        self.failures = int(lives.failed.sum())
        self.log_sum = float(self.log_left[lives.failed].sum())

    def hazard(self, shape: float) -> float:
        """Return the cumulative hazard for scale 1: sum(left**shape - entered**shape)."""
        return float((self.left**shape - self.entered**shape).sum())

    def scale(self, shape: float) -> float:
        """Return the scale (s) with the highest likelihood for a shape."""
        return float(self.unit * (self.hazard(shape) / self.failures) ** (1 / shape))

    def profile(self, shape: float) -> float:
        """Return the log likelihood of a shape with the best scale for it.

        The lifetimes are in seconds.
        """
        count = self.failures
        return (
            count * (math.log(shape) - math.log(self.hazard(shape) / count) - 1 - math.log(self.unit))
            + (shape - 1) * self.log_sum
        )

    def covariance(self, scale: float, shape: float) -> Floats:
        """Return the covariance of (log scale, log shape), from observed information."""
        moved = math.log(scale / self.unit)
        late, early = self.log_left - moved, self.log_entered - moved
        at_end = np.exp(shape * late)
        at_begin = np.where(self.entered > 0, np.exp(shape * early), 0.0)
        plain = float((at_end - at_begin).sum())
        first = float((at_end * late - at_begin * early).sum())
        second = float((at_end * late**2 - at_begin * early**2).sum())
        failed = self.log_sum - self.failures * moved
        mixed = -(shape**2) * first
        information = np.array(
            [[shape**2 * plain, mixed], [mixed, -shape * failed + shape * first + shape**2 * second]]
        )
        inverse: Floats = np.linalg.inv(information)
        return inverse


def _best_shape(lives: Lives) -> float:
    problem = _Weibull(lives)
    found = _scipy("optimize").minimize_scalar(
        lambda log_shape: -problem.profile(math.exp(log_shape)),
        bounds=(math.log(_LEAST_SHAPE), math.log(_MOST_SHAPE)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    shape = math.exp(float(found.x))
    if not _LEAST_SHAPE * 1.01 < shape < _MOST_SHAPE * 0.99:
        raise FitError(
            "no Weibull distribution fits",
            expected=f"a shape from {_LEAST_SHAPE} to {_MOST_SHAPE:g}",
            found=f"{shape:.3g}",
        )
    return shape


def _shape_interval(problem: _Weibull, shape: float, top: float, confidence: float) -> Interval:
    lowest = top - float(_scipy("stats").chi2.ppf(confidence, 1)) / 2
    solve = _scipy("optimize").brentq

    def bound(end: float) -> float:
        if problem.profile(end) > lowest:
            return end
        return float(solve(lambda other: problem.profile(other) - lowest, *sorted((shape, end)), xtol=1e-9))

    return bound(_LEAST_SHAPE), bound(_MOST_SHAPE)


def _around(value: float, log_error: float) -> Interval:
    return value * math.exp(-log_error), value * math.exp(log_error)


def _counted(lives: Lives, least: int) -> tuple[int, float]:
    """Return the number of failures and the total time observed (s).

    Raise FitError if there are fewer than ``least`` failures.
    """
    failures = int(lives.failed.sum())
    if failures < least:
        raise FitError(
            "there are too few failures to fit",
            expected=f"at least {least} in the observed time",
            found=str(failures),
            hint="Use a longer part of the log.",
        )
    return failures, float((lives.left - lives.entered).sum())
