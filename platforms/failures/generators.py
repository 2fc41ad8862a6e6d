"""Random bits of many streams at once: those of numpy's PCG64, seeded by a spawn key each, in whole arrays.

A year of a machine takes a few numbers of each of a thousand streams or more, and to make a generator of numpy's for
each costs far more than to draw them. The numbers are the same, bit for bit.

Sources: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
Generation", 2014 (PCG XSL RR 128/64); F. Brown, "Random number generation with arbitrary strides", 1994, for steps
taken together; numpy's `SeedSequence` after M. O'Neill, "Developing a seed_seq Alternative", 2015.
"""

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
#: numbers of 128 bits as their upper and their lower half
Wide = tuple[Words, Words]

#: of the linear congruential generator, modulo 2**128
_MULTIPLIER: Final = 0x2360ED051FC65DA44385DF649FCCF645
_WIDE: Final = 1 << 128
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
_ONE: Final = np.uint64(1)
_BITS: Final = np.uint64(63)
_WORD: Final = np.uint64(64)
#: the upper six bits of a state tell by how much its bits are turned
_TURN: Final = np.uint64(58)

# of seed sequences, modulo 2**32
_POOL: Final = 4
_IN: Final = (0x43B0D7E5, 0x931E8875)
_OUT: Final = (0x8B51F9DD, 0x58F38DED)
_MIX: Final = (np.uint32(0xCA01F9DD), np.uint32(0x4973F715))
_SHIFT: Final = np.uint32(16)


class Generators:
    """Streams as of ``numpy.random.PCG64(SeedSequence(seed, spawn_key=(*key, number)))``, one a number.

    Parameters
    ----------
    seed
        0 or more.
    key
        what spawn keys begin with, whole numbers of at least 0; one or more.
    numbers
        their last members, shape (streams,), below 2**32.
    """

    def __init__(self, seed: int, key: tuple[int, ...], numbers: Ints) -> None:
        high, low, chosen_high, chosen_low = _seeds(seed, key, numbers)
        #: what is added at each step: another odd number for each stream
        self._step: Wide = ((chosen_high << _ONE) | (chosen_low >> _BITS), (chosen_low << _ONE) | _ONE)
        self._state = _advanced(_sum(self._step, (high, low)), self._step, 1)

    def random_raw(self, rows: NDArray[np.intp], count: int) -> Words:
        """Return the next numbers of some streams, given by their places, each once; shape (rows, count)."""
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
    """Return the states after one to `count` steps; the last axis has a place for each, or they are 1."""
    factors, shares = _strides(count)
    return _sum(_product(state, factors), _product(step, shares))


@cache
def _strides(count: int) -> tuple[Wide, Wide]:
    """Return what a state and a step are multiplied by to go on by k steps: m**k, and 1 + m + ... + m**(k-1)."""
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
    """Return products modulo 2**128, the lower halves multiplied by halves of their own."""
    low, others = one[1] & _LOW, other[1] & _LOW
    high, upper = one[1] >> _HALF, other[1] >> _HALF
    middle = high * others + (low * others >> _HALF)
    carry = low * upper + (middle & _LOW)
    top = high * upper + (middle >> _HALF) + (carry >> _HALF)
    return top + one[0] * other[1] + one[1] * other[0], one[1] * other[1]


def _seeds(seed: int, key: tuple[int, ...], numbers: Ints) -> tuple[Words, Words, Words, Words]:
    """Return what ``SeedSequence(seed, spawn_key=(*key, number)).generate_state(4, uint64)`` gives of each number."""
    # numpy mixes all but the last word of a spawn key; each word until then has changed the constant once a place
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
    """Return of how many words of 32 bits a number is, at least one."""
    return max(-(-number.bit_length() // 32), 1)


def _scattered(words: "NDArray[np.uint32]", constant: int, factor: int) -> "tuple[NDArray[np.uint32], int]":
    """Return words with their bits mixed by a constant, and the next constant."""
    following = constant * factor % (1 << 32)
    mixed = (words ^ np.uint32(constant % (1 << 32))) * np.uint32(following)
    return mixed ^ (mixed >> _SHIFT), following
