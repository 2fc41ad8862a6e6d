"""What another reliability does to checkpoints: table 4.10 as it is printed, and as it is in one unit of time."""

import math
from typing import NamedTuple

from pipistrelle.models.reliability.errors import ReliabilityError
from pipistrelle.platforms.errors import check_range

_MINUTES = 60.0


class CheckpointChange(NamedTuple):
    """How the optimal interval of a class changes with the mean time to failure, and what its checkpoints cost then.

    ``interval`` is in minutes; ``cost`` in node-minutes an hour, negative if less is spent.
    """

    interval: float
    cost: float


def interval(dump: float, mttf: float) -> float:
    """Return the optimal time between checkpoints: sqrt(2 delta M) - delta (equation 4.2), all in one unit.

    It is Daly's estimate of 2003; where a dump takes half of the mean time to failure or longer, there is no sense in
    it, and it is that mean time (Daly 2006).
    """
    check_range("a mean time to failure", mttf, 0, 1e300, ReliabilityError, above=True, unit="", where="MTTF")
    check_range("a dump's time", dump, 0, 1e300, ReliabilityError, above=True, unit="")
    return mttf if dump >= 2.0 * mttf else math.sqrt(2.0 * dump * mttf) - dump


def change(size: float, dump: float, before: float, after: float) -> CheckpointChange:
    """Return the change from one mean time to failure of a node to another, both and the dump in minutes.

    The interval changes by equation 4.3, the cost by 60 delta n (1 / tau_2 - 1 / tau_1). What table 4.10 prints is this
    with the dump in minutes and the mean times to failure in hours.
    """
    old, new = interval(dump, before), interval(dump, after)
    return CheckpointChange(new - old, _MINUTES * dump * size * (1.0 / new - 1.0 / old))


def equation_as_printed(size: float, dump: float, before: float, after: float) -> float:
    """Return the change of the cost by equation 4.5 as it is printed, which lacks a factor 1 / sqrt(2 delta)."""
    root = math.sqrt(dump / 2.0)
    first, second = math.sqrt(before), math.sqrt(after)
    return _MINUTES * dump * size * (first - second) / ((first - root) * (second - root))


def job_change(size: float, dump: float, before: float, after: float) -> CheckpointChange:
    """Return the change for the job: the mean time to failure of its n nodes together is that of one over n."""
    return change(size, dump, before / size, after / size)
