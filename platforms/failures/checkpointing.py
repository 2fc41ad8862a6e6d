"""How often to dump: Young's and Daly's intervals, and how long a job takes that is dumped and restarted."""

import math
from collections.abc import Iterable


def allocation_mtbf(rates: Iterable[float]) -> float:
    """Return the mean time (s) between failures of nodes that fail at these rates (1/s), inf if none ever does."""
    rate = math.fsum(rates)
    return 1.0 / rate if rate > 0 else math.inf


def young_interval(dump: float, mtbf: float) -> float:
    """Return the time of work (s) between two dumps of ``dump`` s that Young's formula gives: sqrt(2 C M).

    J. W. Young, "A first order approximation to the optimum checkpoint interval", 1974. With no dump time it is 0: the
    more dumps the better; with an infinite ``mtbf`` (s) there is no need of any, and it is infinite.
    """
    return math.inf if math.isinf(mtbf) else math.sqrt(2.0 * dump * mtbf)


def daly_interval(dump: float, mtbf: float) -> float:
    """Return the time of work (s) between two dumps of ``dump`` s by Daly's higher order estimate.

    sqrt(2 C M) (1 + sqrt(C / (2 M)) / 3 + C / (18 M)) - C if C < 2 M, else M: J. T. Daly, "A higher order estimate of
    the optimum checkpoint interval for restart dumps", 2006, equation 37. Infinite for an infinite ``mtbf`` (s).
    """
    if math.isinf(mtbf):
        return math.inf
    if dump >= 2.0 * mtbf:
        return mtbf
    half = dump / (2.0 * mtbf)
    return math.sqrt(2.0 * dump * mtbf) * (1.0 + math.sqrt(half) / 3.0 + half / 9.0) - dump


def daly_time(work: float, interval: float, dump: float, read: float, mtbf: float) -> float:
    """Return the expected time (s) that ``work`` s take with dumps and restarts on exponential failures.

    M e^(R/M) (e^((tau + C)/M) - 1) T / tau: Daly 2006, equation 20; it counts a dump after the last interval, too.

    Parameters
    ----------
    work, interval, dump, read
        T, tau, C and R in seconds; failures may strike during dumps and reads.
    mtbf
        M, the mean time between failures of the whole allocation, in seconds.
    """
    return mtbf * math.exp(read / mtbf) * math.expm1((interval + dump) / mtbf) * work / interval
