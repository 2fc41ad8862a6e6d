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
    """Return the time (s) until which a plan counts a running job's units as taken.

    This is the job's expected end ``end`` (s). If that time has passed, the job still holds its units: the result is
    then the instant just after ``now``.
    """
    return max(end, nextafter(now, inf))


def is_late(now: float, walltime: float, shadow: float) -> bool:
    """Return whether a job started ``now`` may run past ``shadow``.

    All times are in s. ``shadow`` is the reserved start of the first job in the queue.
    """
    return now + walltime > shadow


def in_time(now: float, walltimes: NDArray[np.float64], shadow: float) -> NDArray[np.bool_]:
    """Return for each walltime whether a job started ``now`` ends by ``shadow``.

    All times are in s. ``shadow`` is the reserved start of the first job in the queue.
    """
    return now + walltimes <= shadow


def spares(size: int, beside: int, reserved: int, wanted: int) -> bool:
    """Return whether a backfilled job leaves enough units for the queue's first job.

    Args:
        size: units that the backfilled job needs.
        beside: how many of these units are outside the first job's reservation.
        reserved: number of units in the reservation.
        wanted: how many of the reserved units the first job needs.
    """
    return size - beside <= reserved - wanted


class Reservation(NamedTuple):
    """When the queue's first job can start if running jobs use their full walltime.

    Attributes:
        shadow: the latest time, in s, at which the job is expected to start.
        extra: number of units still free when the job has started.
    """

    shadow: float
    extra: int


def reservation_of(ends: Iterable[tuple[float, int, int]], size: int, free: int) -> Reservation:
    """Return the reservation of a job of ``size`` units.

    Running jobs are assumed to use their full walltime. ``extra`` is counted after all jobs that end by ``shadow`` have
    ended. ``shadow`` is inf if too few units become free because jobs without a walltime hold the others.

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
    """A window: from ``begin`` to ``end`` (s) it closes some units to a job.

    ``which`` is the number of the set of these units in `Closed`.
    """

    begin: float
    end: float
    which: int


class Closed(NamedTuple):
    """Windows, sorted by start, and the sets of units that they close.

    A set of units is a bit mask in a fixed number of words, the same for all sets. A word is an integer: of any length
    in Python, where one word is enough, and of 64 bits in the kernel. ``sets`` has the words of all sets, one set after
    the other.
    """

    windows: Sequence[Span]
    sets: Sequence[int]


class Releases(NamedTuple):
    """The times at which running jobs release their units.

    Attributes:
        ends: the times (s), ascending.
        which: for each time, the number (from 0) of the set of units in ``held`` that become free.
        held: sets of units, stored as in `Closed`.
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

    This is ``end`` (s), or the start of the first maintenance that kills the job.

    Args:
        held: sets of units, stored as in `Closed`.
        base: where the first word of the job's units is in ``held``.
        words: number of words per set.
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
    """Return when a job can start on units that no window closes before the job ends.

    Args:
        time: the earliest time (s).
        size: number of units that the job needs.
        walltime: the job's walltime, s.
        free: the units free at ``time``; units released later are added.
        units: receives the units that the job may use at the time found.

    Returns:
        The time (s; inf if never), the next time (s) at which the usable units may change, and how many are usable.
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
