"""Logarithm, exponential and cosine with the same last bit on every machine.

The results of C libraries and of numpy differ in the last bit between processors and versions. The functions here use
only what IEEE 754 defines exactly: addition, multiplication, division, rounding and scaling by powers of two. Their
errors are a few units in the last place, which is accurate enough for random numbers.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LN2_HIGH: Final = 0.6931471803691238  # ln 2 cut to 32 bits, so that small multiples of it are exact
_LN2_LOW: Final = 1.9082149292705877e-10  # the rest of ln 2
_ROOT_HALF: Final = 0.7071067811865476
#: 2 / (2k + 1) for k = 11 ... 0: ln((1 + s) / (1 - s)) = s * sum of 2 s**2k / (2k + 1)
_LOG: Final = tuple(2.0 / (2 * k + 1) for k in range(11, -1, -1))
#: 1 / k! for k = 14 ... 0
_EXP: Final = tuple(1.0 / math.factorial(k) for k in range(14, -1, -1))
#: (-1)**k / (2k)! for k = 14 ... 0
_COS: Final = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(14, -1, -1))


def log(x: Floats) -> Floats:
    """Return the natural logarithm of positive finite numbers, in the shape of x."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < _ROOT_HALF
    mantissa = np.where(low, 2.0 * mantissa, mantissa)
    power = (exponent - low).astype(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return power * _LN2_HIGH + (power * _LN2_LOW + s * _horner(_LOG, s * s))


def exp(x: Floats) -> Floats:
    """Return e**x in the shape of x, with x clipped to -700 to 700."""
    x = np.clip(x, -700.0, 700.0)
    power = np.rint(x / (_LN2_HIGH + _LN2_LOW))
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    scaled: Floats = np.ldexp(_horner(_EXP, rest), power.astype(np.int64))
    return scaled


def cos_turns(x: Floats) -> Floats:
    """Return the cosine of `x` full turns (2 pi x), in the shape of x."""
    turn = np.abs(x - np.rint(x))  # distance from a whole turn, 0 to 1/2
    mirrored = turn > 0.25
    angle = 2.0 * math.pi * np.where(mirrored, 0.5 - turn, turn)
    return np.where(mirrored, -1.0, 1.0) * _horner(_COS, angle * angle)


def _horner(coefficients: tuple[float, ...], x: Floats) -> Floats:
    total = np.full(x.shape, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total
