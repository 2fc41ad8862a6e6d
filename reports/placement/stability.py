"""Effect of GPU stability on leadership jobs, after Zimmer et al. (SC 2018)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from pipistrelle.reports.placement.run import PlacementError
from pipistrelle.traces.outages.log import OutageLog

#: pools of new and of old GPUs in Table II: (nodes, failures per day in the whole pool)
_NEW: Final = (9_500, 1.0)
_OLD: Final = (9_188, 5.0)
#: Table II: {nodes with new GPUs in a job of 4,000 nodes: printed MTBF in hours}
TABLE_II: Final[Mapping[int, float]] = {0: 11.0, 1_000: 13.8, 2_000: 18.5, 3_000: 27.9, 4_000: 57.0}
_JOB: Final = 4_000
#: leadership jobs' share of hours; the factor by which their stable hours grow; share of stable GPUs on the machine
LEADERSHIP_HOURS: Final = 0.55
MORE_STABLE: Final = 4 / 3
STABLE_SHARE: Final = 8_500 / 18_688
#: failure rate of an old GPU relative to a new GPU in Table II
TABLE_II_RATIO: Final = (_OLD[1] / _OLD[0]) / (_NEW[1] / _NEW[0])


class Rates(NamedTuple):
    """The failures of old and of new GPUs in a period.

    They are given with the GPU-days in service.
    """

    old_failures: int
    old_days: float
    new_failures: int
    new_days: float

    @property
    def ratio(self) -> float:
        """Return the failure rate of an old GPU relative to a new GPU."""
        return (self.old_failures / self.old_days) / (self.new_failures / self.new_days)


def series_mtbf(new: int, old: int) -> float:
    """Return the MTBF (h) of a job on nodes with new and with old GPUs.

    The job has ``new`` nodes of the first kind and ``old`` nodes of the second. The failure rates are those of Table
    II. A failure of any node ends the job, so the rates of its nodes add up.
    """
    rate = new * _NEW[1] / (24.0 * _NEW[0]) + old * _OLD[1] / (24.0 * _OLD[0])
    return 1.0 / rate


def table_ii() -> dict[int, float]:
    """Return Table II: {nodes with new GPUs in a job of 4,000 nodes: MTBF in hours}."""
    return {new: series_mtbf(new, _JOB - new) for new in TABLE_II}


def failure_share(hours: float, stable: float, more: float, ratio: float) -> float:
    """Return the share of failures that strike leadership jobs.

    It is computed by a formula of Zimmer et al.

    Leadership jobs have the share `hours` of all node-hours. Under random placement, all jobs spend the share `stable`
    of their node-hours on stable nodes. A better placement multiplies the stable hours of leadership jobs by `more`. A
    stable node fails at rate 1, another node at rate `ratio`::

        hours * (more * stable + (1 - more * stable) * ratio) / (stable + (1 - stable) * ratio)
    """
    own = more * stable
    return hours * (own + (1.0 - own) * ratio) / (stable + (1.0 - stable) * ratio)


def rates_of(log: OutageLog, begin: float, end: float) -> Rates:
    """Return failures of old and new GPUs in a period, from a log of lifetimes.

    Raises:
        PlacementError: if the log has no lifetimes of classes ``old`` and ``new``, or no GPU of a class failed.
    """
    if log.lives is None or not {"old", "new"} <= set(log.classes):
        raise PlacementError(
            "the log does not have the lives of old and new GPUs",
            where=log.source,
            expected="TitanGPULife's table of lives",
            found=log.format,
        )
    lives = log.lives.within(begin, end)
    days = (lives.left - lives.entered) / 86_400.0
    told: list[Any] = []
    for name in ("old", "new"):
        mine = lives.group == log.classes.index(name)
        told += [int(np.count_nonzero(lives.failed[mine])), float(days[mine].sum())]
    rates = Rates(told[0], told[1], told[2], told[3])
    if not (rates.old_failures and rates.new_failures):
        raise PlacementError(
            "none of them failed then", where=log.source, found=f"{rates.old_failures} old, {rates.new_failures} new"
        )
    return rates
