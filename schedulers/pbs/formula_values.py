"""Operators and functions of formulas, for columns of numbers.

Undefined values are NaN. NaN propagates unless an ``if`` discards it.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COMPARISONS: Final[Mapping[str, Callable[[Floats, Floats], NDArray[np.bool_]]]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
CONSTANTS: Final = {"e": float(np.e), "pi": float(np.pi)}


def choose(if_true: Floats, condition: Floats, if_false: Floats) -> Floats:
    """Return ``if_true if condition else if_false`` for each job.

    The arrays are broadcast against each other.
    """
    return np.where(np.isnan(condition), np.nan, np.where(condition != 0.0, if_true, if_false))


def compare(operator: Callable[[Floats, Floats], NDArray[np.bool_]], a: Floats, b: Floats) -> Floats:
    """Return 1 for each job for which the comparison is true, else 0.

    Return NaN where one of the compared values is NaN.
    """
    return np.where(np.isnan(a) | np.isnan(b), np.nan, operator(a, b))


def chain(operators: list[Callable[[Floats, Floats], NDArray[np.bool_]]], values: tuple[Floats, ...]) -> Floats:
    """Return 1 or 0 for each job: the result of a comparison such as ``a < b < c``."""
    found = compare(operators[-1], values[-2], values[-1])
    for at in range(len(operators) - 2, -1, -1):
        this = compare(operators[at], values[at], values[at + 1])
        found = choose(found, this, this)
    return found


def _defined(value: Floats, undefined: NDArray[np.bool_] | np.bool_) -> Floats:
    return np.where(undefined, np.nan, value) if np.any(undefined) else value


def _not_by_zero(operator: Callable[[Floats, Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    return lambda a, b: _defined(operator(a, b), np.equal(b, 0.0))


_divide: Final = _not_by_zero(np.divide)


def _no_overflow(value: Floats, *arguments: Floats) -> Floats:
    finite: NDArray[np.bool_] | np.bool_ = np.isinf(value)
    for argument in arguments:
        finite = finite & np.isfinite(argument)
    return _defined(value, finite)


def power(a: Floats, b: Floats) -> Floats:
    """Return a to the power of b for each job; NaN if it overflows or is not real."""
    # numpy has 1 ** NaN = NaN ** 0 = 1.
    value = _defined(np.power(a, b), np.isnan(a) | np.isnan(b))
    return _no_overflow(value, a, b)  # the check also covers 0 to a negative power


def _positive(value: Floats, x: Floats) -> Floats:
    return _defined(value, np.less_equal(x, 0.0))


def _exp(x: Floats) -> Floats:
    return _no_overflow(np.exp(x), x)


def _log(x: Floats, base: Floats | None = None) -> Floats:
    natural = _positive(np.log(x), x)
    return natural if base is None else _divide(natural, _positive(np.log(base), base))


def _log2(x: Floats) -> Floats:
    return _positive(np.log2(x), x)


def _log10(x: Floats) -> Floats:
    return _positive(np.log10(x), x)


SUMS: Final[Mapping[str, Callable[..., Floats]]] = {"+": np.add, "-": np.subtract}
PRODUCTS: Final[Mapping[str, Callable[..., Floats]]] = {
    "*": np.multiply,
    "/": _divide,
    "//": _not_by_zero(np.floor_divide),
    "%": _not_by_zero(np.mod),
}
#: {name: (least and greatest number of arguments, function)}
FUNCTIONS: Final[Mapping[str, tuple[int, int, Callable[..., Floats]]]] = {
    "abs": (1, 1, np.abs),
    "ceil": (1, 1, np.ceil),
    "exp": (1, 1, _exp),
    "fabs": (1, 1, np.abs),
    "floor": (1, 1, np.floor),
    "log": (1, 2, _log),
    "log10": (1, 1, _log10),
    "log2": (1, 1, _log2),
    "max": (2, 99, lambda *values: reduce(np.maximum, values)),
    "min": (2, 99, lambda *values: reduce(np.minimum, values)),
    "pow": (2, 2, power),
    "sqrt": (1, 1, np.sqrt),
    "trunc": (1, 1, np.trunc),
}
