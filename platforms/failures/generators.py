"""Draw random bits from many numpy PCG64 generators at once.

Each generator has a spawn key of its own. Simulating a machine for a year takes a few numbers from each of a thousand
or more streams. Creating a numpy generator for each stream costs far more than drawing the numbers. The numbers here
equal numpy's, bit for bit.

Sources: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
Generation", 2014 (PCG XSL RR 128/64); F. Brown, "Random number generation with arbitrary strides", 1994, for several
steps at once; numpy's `SeedSequence` after M. O'Neill, "Developing a seed_seq Alternative", 2015.
"""

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
#: 128-bit numbers as upper and lower halves
Wide = tuple[Words, Words]

#: multiplier of the linear congruential generator, modulo 2**128
_MULTIPLIER: Final = 0x2360ED051FC65DA44385DF649FCCF645
_WIDE: Final = 1 << 128
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
_ONE: Final = np.uint64(1)
_BITS: Final = np.uint64(63)
_WORD: Final = np.uint64(64)
#: the upper six bits of a state give the rotation of its bits
_TURN: Final = np.uint64(58)

# constants of numpy's SeedSequence, modulo 2**32
_POOL: Final = 4
_IN: Final = (0x43B0D7E5, 0x931E8875)
_OUT: Final = (0x8B51F9DD, 0x58F38DED)
_MIX: Final = (np.uint32(0xCA01F9DD), np.uint32(0x4973F715))
_SHIFT: Final = np.uint32(16)


class Generators:
    """Streams of numpy's ``PCG64(SeedSequence(seed, spawn_key=(*key, number)))``.

    Args:
        seed: 0 or more.
        key: the beginning of all spawn keys: one or more whole numbers of at least 0.
        numbers: the last member of each stream's spawn key, below 2**32, shape (streams,).
    """

    def __init__(self, seed: int, key: tuple[int, ...], numbers: Ints) -> None:
        high, low, chosen_high, chosen_low = _seeds(seed, key, numbers)
        #: the increment of each stream, an odd number
        self._step: Wide = ((chosen_high << _ONE) | (chosen_low >> _BITS), (chosen_low << _ONE) | _ONE)
        self._state = _advanced(_sum(self._step, (high, low)), self._step, 1)

    def random_raw(self, rows: NDArray[np.intp], count: int) -> Words:
        """Return the next `count` random 64-bit numbers of each chosen stream.

        The result has shape (streams, count). ``rows`` are the indices of the chosen streams in `numbers`, each at most
        once.
        """
        high, low = _advanced(_column(self._state, rows), _column(self._step, rows), count)
        for column, last in zip(self._state, (high, low), strict=True):
            column[rows] = last[:, -1]
        word, turn = high ^ low, high >> _TURN
        turned: Words = np.bitwise_or(word >> turn, word << ((_WORD - turn) & _BITS))
        return turned


def _column(numbers: Wide, rows: NDArray[np.intp]) -> Wide:
    high, low = numbers
    return high[rows, None], low[rows, None]


def _advanced(state: Wide, step: Wide, count: int) -> Wide:
    """Return the generators' states after 1, 2, ..., `count` steps.

    The steps are along a new last axis of ``state``.
    """
    factors, shares = _strides(count)
    return _sum(_product(state, factors), _product(step, shares))


@cache
def _strides(count: int) -> tuple[Wide, Wide]:
    """Return (a, b) for 1, 2, ..., `count` steps of a random generator.

    Each has shape (count,). The state after the steps is a x state + b x increment, modulo 2**128.
    """
    factors, shares = [_MULTIPLIER], [1]
    for _ in range(count - 1):
        factors.append(factors[-1] * _MULTIPLIER % _WIDE)
        shares.append((shares[-1] * _MULTIPLIER + 1) % _WIDE)
    return _wide(factors), _wide(shares)


def _wide(numbers: list[int]) -> Wide:
    return (
        np.array([number >> 64 for number in numbers], dtype=np.uint64),
        np.array([number % (1 << 64) for number in numbers], dtype=np.uint64),
    )


def _sum(one: Wide, other: Wide) -> Wide:
    low = one[1] + other[1]
    return one[0] + other[0] + (low < one[1]), low


def _product(one: Wide, other: Wide) -> Wide:
    """Return the products of two arrays of 128-bit numbers modulo 2**128.

    They are computed from 32-bit parts.
    """
    low, others = one[1] & _LOW, other[1] & _LOW
    high, upper = one[1] >> _HALF, other[1] >> _HALF
    middle = high * others + (low * others >> _HALF)
    carry = low * upper + (middle & _LOW)
    top = high * upper + (middle >> _HALF) + (carry >> _HALF)
    return top + one[0] * other[1] + one[1] * other[0], one[1] * other[1]


def _seeds(seed: int, key: tuple[int, ...], numbers: Ints) -> tuple[Words, Words, Words, Words]:
    """Return the initial state that numpy gives each random stream.

    numpy computes it by ``SeedSequence.generate_state(4, uint64)``.
    """
    # Let numpy mix all but the last word of the spawn key. Each mixed word changes the constant once per pool entry.
    pool = np.random.SeedSequence(seed, spawn_key=key).pool
    mixed = _POOL * (max(_words(seed), _POOL) + sum(map(_words, key)))
    constant = _IN[0] * pow(_IN[1], mixed, 1 << 32)
    own = numbers.astype(np.uint32)
    state = []
    for word in pool:
        scattered, constant = _scattered(own, constant, _IN[1])
        both = _MIX[0] * word.reshape(1) - _MIX[1] * scattered
        state.append(both ^ (both >> _SHIFT))
    words, constant = [], _OUT[0]
    for at in range(8):
        scattered, constant = _scattered(state[at % _POOL], constant, _OUT[1])
        words.append(scattered.astype(np.uint64))
    first, second, third, fourth = (low | (high << _HALF) for low, high in zip(words[::2], words[1::2], strict=True))
    return first, second, third, fourth


def _words(number: int) -> int:
    """Return how many 32-bit words are needed to store a number, at least one."""
    return max(-(-number.bit_length() // 32), 1)


def _scattered(words: "NDArray[np.uint32]", constant: int, factor: int) -> "tuple[NDArray[np.uint32], int]":
    """Mix the bits of 32-bit numbers with a constant.

    Return the mixed numbers, and the next constant (constant x factor).
    """
    following = constant * factor % (1 << 32)
    mixed = (words ^ np.uint32(constant % (1 << 32))) * np.uint32(following)
    return mixed ^ (mixed >> _SHIFT), following
