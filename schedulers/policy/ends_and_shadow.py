"""Scheduling rules shared by both engines and all policies, as pure functions.

mypyc compiles this file for the reference engine, numba compiles its functions for the kernel and for long plans.
"""

from collections.abc import Iterable
from math import inf, nextafter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def end_of(begin: float, walltime: float) -> float:
    """Return the planned end (s) of a job, always later than ``begin``."""
    end = begin + walltime
    return end if end > begin else nextafter(begin, inf)


def ends_of(begins: NDArray[np.float64], walltime: float) -> NDArray[np.float64]:
    """Return `end_of` for several begins (s)."""
    return np.maximum(begins + walltime, np.nextafter(begins, inf))


def held_until(end: float, now: float) -> float:
    """Return until when (s) a running job is planned to hold its units.

    A job past its expected end (s) may end at any moment, but its units are not free yet.
    """
    return max(end, nextafter(now, inf))


def is_late(now: float, walltime: float, shadow: float) -> bool:
    """Return whether a job that starts ``now`` (s) may run past the shadow time (s)."""
    return now + walltime > shadow


def in_time(now: float, walltimes: NDArray[np.float64], shadow: float) -> NDArray[np.bool_]:
    """Return for several walltimes (s) whether the job is not late, see `is_late`."""
    return now + walltimes <= shadow


def spares(size: int, beside: int, reserved: int, wanted: int) -> bool:
    """Return whether a late job leaves ``wanted`` of ``reserved`` units to the first.

    The job needs ``size`` units; it can take ``beside`` of them from units that are not reserved.
    """
    return size - beside <= reserved - wanted


class Reservation(NamedTuple):
    """The latest start of a job, given the walltimes of the running jobs.

    Attributes:
        shadow: that time, s.
        extra: number of units left over at that time, besides the job's own.
    """

    shadow: float
    extra: int


def reservation_of(ends: Iterable[tuple[float, int, int]], size: int, free: int) -> Reservation:
    """Return when ``size`` units will be free if all jobs use their full walltime.

    The units left over are counted after all jobs that end by the shadow time. The shadow is inf if jobs without a
    walltime hold the units.

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
