"""Rules that both engines and all policies share, as pure functions of scalars and arrays.

mypyc compiles this file for the reference engine, numba compiles its functions for the kernel and for long plans.
"""

from collections.abc import Iterable
from math import inf, nextafter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def end_of(begin: float, walltime: float) -> float:
    """Return when a job that begins then (s) is planned to end; always later, however short its walltime (s)."""
    end = begin + walltime
    return end if end > begin else nextafter(begin, inf)


def ends_of(begins: NDArray[np.float64], walltime: float) -> NDArray[np.float64]:
    """Return `end_of` for several begins (s)."""
    return np.maximum(begins + walltime, np.nextafter(begins, inf))


def held_until(end: float, now: float) -> float:
    """Return until when (s) a running job is planned to hold its units, given its expected end (s).

    A job that should have ended already may end at any moment, but its units are not free yet.
    """
    return max(end, nextafter(now, inf))


def is_late(now: float, walltime: float, shadow: float) -> bool:
    """Return whether a job that starts now (s) may still run after the shadow time (s)."""
    return now + walltime > shadow


def spares(size: int, beside: int, reserved: int, wanted: int) -> bool:
    """Return whether a late job of ``size`` units leaves ``wanted`` of the ``reserved`` units to the first job.

    ``beside`` units that it may use are not reserved.
    """
    return size - beside <= reserved - wanted


class Reservation(NamedTuple):
    """When a job can start at the latest, by the walltimes of the running ones.

    ``shadow`` is that time in seconds; ``extra`` the number of units that are left over then, beside the job's own.
    """

    shadow: float
    extra: int


def reservation_of(ends: Iterable[tuple[float, int, int]], size: int, free: int) -> Reservation:
    """Return the earliest time at which ``size`` units will be free, if every job uses its whole walltime.

    ``free`` units are free now, fewer than ``size``; ``ends`` are (expected end in s, number, units) of the running
    jobs, ascending. Every job that ends not later than the shadow time counts for what is left over. Without such a
    time (a job of no walltime holds the units) shadow is inf.
    """
    shadow = inf
    for end, _, units in ends:
        if end > shadow:
            break
        free += units
        if free >= size:
            shadow = end
    return Reservation(shadow, max(free - size, 0))
