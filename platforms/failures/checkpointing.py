"""How often to dump, how far a job is that is dumped and restarted, and how long it takes: pure functions of scalars.

Sums are plain and in the order that is given, so that a compiled kernel gets the same bits from the same lines.
"""

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

#: no optimum is a shorter time of work between dumps (s), even if dumps take no time
SHORTEST: Final = 1.0
#: work that exceeds a number of intervals by rounding alone needs no dump more
NEARLY: Final = 1 - 1e-12


def failure_rate(rates: Iterable[float]) -> float:
    """Return how often nodes that fail at these rates (1/s) fail together, in 1/s.

    Equal neighbours count as one product: of n nodes that are all alike it is n times the rate of one.
    """
    total, each, count = 0.0, 0.0, 0
    for rate in rates:
        if rate == each:
            count += 1
        else:
            total += each * count
            each, count = rate, 1
    return total + each * count


def mtbf_of(rate: float) -> float:
    """Return the mean time (s) between failures that come at this rate (1/s), inf if none ever does."""
    return 1.0 / rate if rate > 0.0 else math.inf


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


def dump_interval(formula: str, dump: float, mtbf: float) -> float:
    """Return the time of work (s) between dumps of ``dump`` s: by ``formula``, "young" or "daly", at least 1 s."""
    wanted = young_interval(dump, mtbf) if formula == "young" else daly_interval(dump, mtbf)
    return max(wanted, SHORTEST)


def dumps_until_done(work: float, interval: float) -> int:
    """Return how many dumps there are in ``work`` s, one after each ``interval`` s of it but not at its end."""
    return 0 if math.isinf(interval) else max(math.ceil(work / interval * NEARLY) - 1, 0)


def done_at(start: float, read: float, work: float, dumps: int, dump: float) -> float:
    """Return when (s) ``work`` s are done that begin at ``start`` with a read, and have so many dumps in between."""
    return start + (read + (work + dumps * dump)) if work < math.inf else math.inf


class WorkPhase(NamedTuple):
    """How far a stretch of work has come at some time; seconds of time, not of work.

    ``reading``, ``working`` and ``dumping`` add up to the time since its begin. Of the working time ``saved`` is in
    dumps that are complete, or all of it if the work is done.
    """

    reading: float
    working: float
    dumping: float
    saved: float
    dumps: int


def phase_at(
    now: float, start: float, read: float, work: float, interval: float, dumps: int, dump: float, finish: float
) -> WorkPhase:
    """Return how far work is at ``now`` (s), not before its ``start``: a read, then work and dumps in turn.

    At the very time at which a dump or the work is complete, it is complete.

    Parameters
    ----------
    read, work, dump
        how long the read, all of the work and each dump take, in seconds.
    interval
        how long there is work before each dump, in seconds.
    dumps, finish
        what `dumps_until_done` and `done_at` say: how many dumps there will be, and when (s) the work is done.
    """
    if now >= finish:
        return WorkPhase(read, work, dumps * dump, work, dumps)
    passed = now - start - read
    if passed <= 0:
        return WorkPhase(now - start, 0.0, 0.0, 0.0, 0)
    if not dumps:
        return WorkPhase(read, min(passed, work), 0.0, 0.0, 0)
    cycle = interval + dump
    cycles = min(int(passed // cycle), dumps)
    if cycles < dumps and start + (read + (cycles + 1) * cycle) <= now:
        cycles += 1
    elif cycles and start + (read + cycles * cycle) > now:
        cycles -= 1
    rest = max(passed - cycles * cycle, 0.0)
    saved = cycles * interval
    if cycles == dumps:
        return WorkPhase(read, min(saved + rest, work), cycles * dump, saved, cycles)
    working = min(rest, interval)
    return WorkPhase(read, saved + working, cycles * dump + (rest - working), saved, cycles)


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
