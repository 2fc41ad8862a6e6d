"""Formulas for checkpoints: the optimal interval, progress and duration.

They are pure functions. A dump writes a checkpoint; a read loads it at a restart. The compiled kernel must compute the
same bits, so the order of all additions is fixed.
"""

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

#: the shortest work between two dumps (s), even if dumps take no time
SHORTEST: Final = 1.0
#: work that exceeds a number of intervals only by a rounding error needs no additional dump
NEARLY: Final = 1 - 1e-12


def failure_rate(rates: Iterable[float]) -> float:
    """Return the failure rate (1/s) of a group of nodes: the sum of the nodes' rates.

    The rate of consecutive nodes with equal rates is multiplied by their number. So n equal nodes have exactly n times
    the rate of one node.
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
    """Return the mean time (s) between failures at this rate (1/s); inf for rate 0."""
    return 1.0 / rate if rate > 0.0 else math.inf


def young_interval(dump: float, mtbf: float) -> float:
    """Return Young's optimal time of work (s) between two checkpoints.

    It is sqrt(2 dump mtbf). ``dump`` is the time to write a checkpoint (s), ``mtbf`` the mean time between failures
    (s). The interval is infinite if ``mtbf`` is. J. W. Young, "A first order approximation to the optimum checkpoint
    interval", 1974.
    """
    return math.inf if math.isinf(mtbf) else math.sqrt(2.0 * dump * mtbf)


def daly_interval(dump: float, mtbf: float) -> float:
    """Return Daly's optimal time of work (s) between two checkpoints.

    If C < 2 M, it is sqrt(2 C M) (1 + sqrt(C / (2 M)) / 3 + C / (18 M)) - C, otherwise M. C is ``dump``, the time to
    write a checkpoint, and M is ``mtbf``, both in seconds. J. T. Daly, "A higher order estimate of the optimum
    checkpoint interval for restart dumps", 2006, equation 37.
    """
    if math.isinf(mtbf):
        return math.inf
    if dump >= 2.0 * mtbf:
        return mtbf
    half = dump / (2.0 * mtbf)
    return math.sqrt(2.0 * dump * mtbf) * (1.0 + math.sqrt(half) / 3.0 + half / 9.0) - dump


def dump_interval(formula: str, dump: float, mtbf: float) -> float:
    """Return the optimal time of work (s) between two checkpoints, at least 1.

    The formula is "young" or "daly".
    """
    wanted = young_interval(dump, mtbf) if formula == "young" else daly_interval(dump, mtbf)
    return max(wanted, SHORTEST)


def dumps_until_done(work: float, interval: float) -> int:
    """Return the number of checkpoints written during ``work`` (s).

    There is one per ``interval`` (s) of work, and none at the end.
    """
    return 0 if math.isinf(interval) else max(math.ceil(work / interval * NEARLY) - 1, 0)


def done_at(start: float, read: float, work: float, dumps: int, dump: float) -> float:
    """Return the time (s) at which a job with checkpoints is done.

    This assumes that nothing interrupts the job.

    Args:
        start: when the job begins to read a checkpoint (s).
        read, work, dump: how long it takes to read the checkpoint, to do all of the work, and to write one checkpoint
            (s).
        dumps: number of checkpoints that the job writes.
    """
    return start + (read + (work + dumps * dump)) if work < math.inf else math.inf


class WorkPhase(NamedTuple):
    """The progress of work with checkpoints up to some time, in seconds.

    ``reading``, ``working`` and ``dumping`` add up to the time since the start. ``saved`` is the work that complete
    checkpoints cover; once the work is done, it is all of the work.
    """

    reading: float
    working: float
    dumping: float
    saved: float
    dumps: int


def phase_at(
    now: float, start: float, read: float, work: float, interval: float, dumps: int, dump: float, finish: float
) -> WorkPhase:
    """Return the progress of a job with checkpoints at the time ``now`` (s).

    The job first reads a checkpoint. Then it alternately works and writes a checkpoint. A checkpoint or the work counts
    as complete at the exact time at which it ends.

    Args:
        start: when the job begins to read (s).
        read, work, dump: how long it takes to read the checkpoint, to do all of the work, and to write one checkpoint
            (s).
        interval: the work before each checkpoint (s).
        dumps, finish: the results of `dumps_until_done` and `done_at`.
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
    """Return the expected time (s) to complete ``work`` under exponential failures.

    Daly 2006, equation 20: M e^(R/M) (e^((tau + C)/M) - 1) T / tau. It also counts a dump after the last interval.

    Args:
        work, interval, dump, read: T, tau, C and R (s); failures may happen during dumps and reads.
        mtbf: M, the mean time between failures of the whole allocation (s).
    """
    return mtbf * math.exp(read / mtbf) * math.expm1((interval + dump) / mtbf) * work / interval
