"""Functions for job ends and reservations, shared by all policies and engines.

mypyc compiles this file for the reference engine. numba compiles its functions for the kernel and for long plans.
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
    """Return the planned ends (s) of jobs with the same walltime that start at ``begins`` (s)."""
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
    """Return for each walltime whether a job started ``now`` ends by ``shadow``; all in s."""
    return now + walltimes <= shadow


def spares(size: int, beside: int, reserved: int, wanted: int) -> bool:
    """Return whether backfilling a job leaves enough reserved units to the first job.

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
    """Return when ``size`` units will be free if all jobs use their full walltime.

    The surplus units are counted after all jobs that end by the shadow time. The shadow time is inf if jobs without a
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
