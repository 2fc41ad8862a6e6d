"""Distributions of times between failures and of repair times."""

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import OutageError, check_range
from pipistrelle.platforms.failures.outage import seconds_text
from pipistrelle.platforms.failures.portable_math import cos_turns, exp, log

Floats = NDArray[np.float64]

#: seconds (three million years): sums of a few such lengths in milliseconds fit into 64 bits
LONGEST: Final = 1e14


class Durations(Protocol):
    """A distribution of times between failures, or of repair times (s)."""

    @property
    def mean(self) -> float:
        """The mean of the distribution (s)."""

    def draw(self, uniform: Floats, age: float = 0.0) -> Floats:
        """Draw the remaining lifetimes (s) of components that are `age` s old.

        The result has shape (...). `uniform` has independent uniform numbers in (0, 1), shape (..., 2).
        """

    def hazard(self, length: float) -> float:
        """Return a lower bound of -log P(a component survives ``length`` s more).

        It is 0 if no bound is known. The component was put into use long ago at an unknown time, so its age is random.
        With S the survival function and M the mean, it survives with probability 1 - (integral of S from 0 to `length`)
        / M (renewal theory). This is at most 1 - length S(length) / M, because S falls.
        """

    def scaled(self, factor: float) -> "Durations":
        """Return the distribution with all times multiplied by `factor`."""

    def __str__(self) -> str:
        """Return the distribution as text; the inverse of `parse_durations`."""


@dataclass(frozen=True, slots=True)
class _Law:
    """Base of the distributions.

    Each has a parameter in seconds and at most one other number.
    """

    def scaled(self, factor: float) -> Self:
        first = fields(self)[0].name
        return replace(self, **{first: getattr(self, first) * factor})

    def hazard(self, length: float) -> float:
        """Return the trivial lower bound 0; see `Durations.hazard`."""
        return 0.0

    def __str__(self) -> str:
        (first, seconds), *more = ((field.name, getattr(self, field.name)) for field in fields(self))
        shape = "".join(f",{name}={value!r}" for name, value in more)
        return f"{type(self).__name__.lower()},{first}={seconds_text(seconds)}s{shape}"


@dataclass(frozen=True, slots=True)
class _OfMean(_Law):
    _what: ClassVar[str] = "mean"
    mean: float

    def __post_init__(self) -> None:
        _check_time(self._what, self.mean)


@dataclass(frozen=True, slots=True)
class Fixed(_OfMean):
    """A fixed time: always `mean` (s); OutageError if it is out of range."""

    _what: ClassVar[str] = "length of time"

    def draw(self, uniform: Floats, age: float = 0.0) -> Floats:
        """Return the remaining lifetime (s) of a component that is `age` s old.

        The component fails when its age is the next multiple of the mean.
        """
        return np.full(uniform.shape[:-1], self.mean - math.fmod(age, self.mean))


@dataclass(frozen=True, slots=True)
class Exponential(_OfMean):
    """The exponential distribution; OutageError if its `mean` (s) is out of range."""

    def draw(self, uniform: Floats, age: float = 0.0) -> Floats:
        """Draw remaining lifetimes (s), which do not depend on `age`.

        They have shape (...); see `Durations.draw`.
        """
        return self.mean * -log(uniform[..., 0])

    def hazard(self, length: float) -> float:
        """Return -log P(a component of any age survives `length` s more).

        This is `length` / mean.
        """
        return length / self.mean


@dataclass(frozen=True, slots=True)
class Weibull(_Law):
    """The Weibull distribution: P(length > t) = exp(-(t / scale)**shape).

    The hazard falls with age if the shape is below 1, and rises if it is above 1.

    Args:
        scale: seconds.
        shape: 0.05 to 50.

    Raises:
        OutageError: if a parameter or the mean is out of range.
    """

    scale: float
    shape: float

    def __post_init__(self) -> None:
        _check_time("scale", self.scale)
        check_range("a shape", self.shape, 0.05, 50, unit="")
        _check_time("mean", self.mean)

    @classmethod
    def of_mean(cls, mean: float, shape: float) -> "Weibull":
        """Return the distribution with this mean (s): scale = mean / Gamma(1 + 1 / shape)."""
        _check_time("mean", mean)
        cls(1.0, shape)
        return cls(_settled(mean / math.gamma(1.0 + 1.0 / shape)), shape)

    @property
    def mean(self) -> float:
        """The mean time (s): scale Gamma(1 + 1 / shape)."""
        return self.scale * math.gamma(1.0 + 1.0 / self.shape)

    def draw(self, uniform: Floats, age: float = 0.0) -> Floats:
        """Draw the remaining lifetimes (s) of components that are `age` s old.

        From `age` to the end of the life, the cumulative hazard (t / scale)**shape grows by an exponentially
        distributed number with mean 1.
        """
        used = np.full(1, age / self.scale)
        hazard = -log(uniform[..., 0]) + (exp(self.shape * log(used)) if age > 0 else 0.0)
        return self.scale * exp(log(hazard) / self.shape) - age

    def hazard(self, length: float) -> float:
        """Return a lower bound of -log P(a component of any age survives `length` s more).

        The bound is the value of the components that are the most likely to survive. If shape >= 1, these are new ones.
        If shape < 1, these are very old ones, for which renewal theory gives a bound. With S the survival function and
        M the mean, they survive with probability 1 - (integral of S from 0 to `length`) / M, which is at most 1 -
        length S(length) / M.
        """
        new = (length / self.scale) ** self.shape
        return new if self.shape >= 1 else -math.log1p(-length / self.mean * math.exp(-new))


@dataclass(frozen=True, slots=True)
class Lognormal(_Law):
    """The lognormal distribution: log(length) has the standard deviation `sigma`.

    Args:
        median: seconds.
        sigma: above 0, at most 10.

    Raises:
        OutageError: if a parameter or the mean is out of range.
    """

    median: float
    sigma: float

    def __post_init__(self) -> None:
        _check_time("median", self.median)
        check_range("a sigma", self.sigma, 0, 10, above=True, unit="")
        _check_time("mean", self.mean)

    @classmethod
    def of_mean(cls, mean: float, sigma: float) -> "Lognormal":
        """Return the distribution with this mean (s): median = mean exp(-sigma**2 / 2)."""
        _check_time("mean", mean)
        cls(1e-9, sigma)
        return cls(_settled(mean * math.exp(-sigma * sigma / 2)), sigma)

    @property
    def mean(self) -> float:
        """The mean time (s): median exp(sigma**2 / 2)."""
        return self.median * math.exp(self.sigma * self.sigma / 2)

    def draw(self, uniform: Floats, age: float = 0.0) -> Floats:
        """Draw the lifetimes (s), shape (...), of new components.

        `uniform` has independent uniform numbers in (0, 1), shape (..., 2). Source: G. Box and M. Muller, "A Note on
        the Generation of Random Normal Deviates", 1958.

        Raises:
            OutageError: if the age is above 0, which is not supported.
        """
        if age > 0:
            raise OutageError("an age cannot be given to a lognormal distribution", hint="Use weibull.")
        normal = np.sqrt(-2.0 * log(uniform[..., 0])) * cos_turns(uniform[..., 1])
        return self.median * exp(self.sigma * normal)


def _check_time(what: str, seconds: float) -> None:
    check_range(f"a {what}", seconds, 0, LONGEST, above=True)


def _settled(parameter: float) -> float:
    """Round a parameter of a distribution to 12 digits.

    The last bits of gamma and exp differ between machines.
    """
    return float(f"{parameter:.12g}")
