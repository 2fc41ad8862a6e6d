"""Functions for job ends and reservations, shared by all policies and engines.

mypyc compiles this file for the reference engine. numba compiles its functions for the kernel and for long plans.
"""

from collections.abc import Iterable, Sequence
from math import inf, nextafter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def end_of(begin: float, walltime: float) -> float:
    """Return the planned end (s) of a job, always later than ``begin``."""
    end = begin + walltime
    return end if end > begin else nextafter(begin, inf)


def ends_of(begins: NDArray[np.float64], walltime: float) -> NDArray[np.float64]:
    """Return the planned ends (s) of jobs that start at ``begins`` (s).

    All jobs have the same walltime.
    """
    return np.maximum(begins + walltime, np.nextafter(begins, inf))


def held_until(end: float, now: float) -> float:
    """Return the time (s) until which a running job is planned to hold its units.

    A job past its expected end (s) may end at any moment, but its units are not free yet.
    """
    return max(end, nextafter(now, inf))


def is_late(now: float, walltime: float, shadow: float) -> bool:
    """Return whether a job started ``now`` may run past ``shadow``; all times in s."""
    return now + walltime > shadow


def in_time(now: float, walltimes: NDArray[np.float64], shadow: float) -> NDArray[np.bool_]:
    """Return for each walltime whether a job started ``now`` ends by ``shadow``.

    All times are in s.
    """
    return now + walltimes <= shadow


def spares(size: int, beside: int, reserved: int, wanted: int) -> bool:
    """Return whether a backfilled job leaves enough units for the queue's first job.

    The backfilled job needs ``size`` units and takes ``beside`` of them from units that are not reserved. The first job
    needs ``wanted`` of the ``reserved`` units.
    """
    return size - beside <= reserved - wanted


class Reservation(NamedTuple):
    """A job's reservation, assuming that running jobs use their full walltime.

    Attributes:
        shadow: the job's latest start, s.
        extra: number of units still free when the job has started.
    """

    shadow: float
    extra: int


def reservation_of(ends: Iterable[tuple[float, int, int]], size: int, free: int) -> Reservation:
    """Return the reservation of a job of ``size`` units.

    Running jobs are assumed to use their full walltime. ``shadow`` is inf if jobs without a walltime hold the units.
    ``extra`` is counted after all jobs that end by ``shadow`` have ended.

    Args:
        ends: (expected end in s, number, units) of the running jobs, ascending.
        free: units free now, fewer than ``size``.
    """
    shadow = inf
    for end, _, units in ends:
        if end > shadow:
            break
        free += units
        if free >= size:
            shadow = end
    return Reservation(shadow, max(free - size, 0))


class Span(NamedTuple):
    """A window from ``begin`` to ``end`` (s).

    The window closes the set of units with the number ``which``.
    """

    begin: float
    end: float
    which: int


class Closed(NamedTuple):
    """Windows, sorted by start, and the sets of units that they close.

    A set of units has a fixed number of words with a bit per unit: in Python one integer of any length, in the kernel
    several int64. Set k begins at word k * (words per set).
    """

    windows: Sequence[Span]
    sets: Sequence[int]


class Releases(NamedTuple):
    """The times at which running jobs release their units.

    ``ends`` are the times (s), ascending. For each time, ``which`` has the number of a set of units in ``held``, from
    0.
    """

    ends: Sequence[float]
    which: Sequence[int]
    held: Sequence[int]


def bits_in(word: int) -> int:
    """Return how many bits of ``word`` are set.

    The kernel replaces this function for its words of fixed length.
    """
    return word.bit_count()


def cut_short(end: float, now: float, held: Sequence[int], base: int, words: int, closed: Closed) -> float:
    """Return when (s) a running job releases its units.

    This is ``end`` (s), or the start of the first maintenance that kills the job. The job's units are the ``words``
    words of ``held`` that begin at index ``base``.
    """
    for window in closed.windows:
        if window.begin >= end:
            break
        if window.begin > now:
            for word in range(words):
                if held[base + word] & closed.sets[window.which * words + word] != 0:
                    return window.begin
    return end


def opening(
    time: float, size: int, walltime: float, free: list[int], units: list[int], releases: Releases, closed: Closed
) -> tuple[float, float, int]:
    """Return when a job can start on units that stay open to it for its walltime.

    A unit is open if it is free and no window closes it before the job ends.

    Args:
        time: the earliest time (s).
        size: number of units that the job needs.
        free: the units free at ``time``; units released later are added.
        units: receives the open units at the time found.

    Returns:
        The time (s; inf if never), the next time (s) at which the open units may change, and how many are open.
    """
    words, held, sets, ended, count = len(free), releases.held, closed.sets, 0, -1
    while time < inf:
        while ended < len(releases.ends) and releases.ends[ended] <= time:
            base = releases.which[ended] * words
            for word in range(words):
                free[word] |= held[base + word]
            ended += 1
            count = -1
        if count < 0:
            count = 0
            for word in range(words):
                count += bits_in(free[word])
        end = end_of(time, walltime)
        following = releases.ends[ended] if ended < len(releases.ends) else inf
        for word in range(words):
            units[word] = free[word]
        for window in closed.windows:
            if window.end > time:
                following = min(following, window.end)
                if count >= size and window.begin < end:
                    for word in range(words):
                        units[word] &= ~sets[window.which * words + word]
        if count >= size:
            found = 0
            for word in range(words):
                found += bits_in(units[word])
            if found >= size:
                return time, following, found
        time = following
    return inf, inf, 0
