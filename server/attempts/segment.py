"""A stretch of an attempt between two failures: a read, then work and dumps in turn, worked out at any time at once."""

from math import ceil, inf, isinf
from typing import Final, NamedTuple

#: work that exceeds a number of intervals by rounding alone needs no dump more
NEARLY: Final = 1 - 1e-12


class Phase(NamedTuple):
    """How far a segment has come at some time; seconds of time, not of work.

    ``reading``, ``working`` and ``dumping`` add up to the time since its begin. Of the working time ``saved`` is in
    dumps that are complete, or all of it if the work is done.
    """

    reading: float
    working: float
    dumping: float
    saved: float
    dumps: int


class Segment:
    """Work that takes so long with nothing but dumps in between.

    A dump follows each ``interval`` of work, but not the end of the work: at the very time at which a dump or the work
    is complete, it is complete.

    Parameters
    ----------
    start
        when it begins, in seconds.
    read, dump
        how long they take, in seconds.
    work
        how long the work takes that is left, in seconds.
    interval
        how long there is work before each dump, in seconds; inf: there are no dumps.
    """

    __slots__ = ("_cycle", "_dump", "_dumps", "_interval", "_read", "_work", "finish", "start")

    def __init__(self, start: float, read: float, work: float, interval: float, dump: float) -> None:
        self.start = start
        self._read = read
        self._work = work
        self._interval = interval
        self._dump = dump
        self._cycle = interval + dump
        #: how many dumps there will be until the work is done
        self._dumps = 0 if isinf(interval) else max(ceil(work / interval * NEARLY) - 1, 0)
        #: when the work will be done (s)
        self.finish = start + (read + (work + self._dumps * dump)) if work < inf else inf

    def at(self, now: float) -> Phase:
        """Return how far it has come at ``now`` (s), which is not before its start."""
        if now >= self.finish:
            return Phase(self._read, self._work, self._dumps * self._dump, self._work, self._dumps)
        passed = now - self.start - self._read
        if passed <= 0:
            return Phase(now - self.start, 0.0, 0.0, 0.0, 0)
        if not self._dumps:
            return Phase(self._read, min(passed, self._work), 0.0, 0.0, 0)
        cycles = min(int(passed // self._cycle), self._dumps)
        if cycles < self._dumps and self._time_of(cycles + 1) <= now:
            cycles += 1
        elif cycles and self._time_of(cycles) > now:
            cycles -= 1
        rest = max(passed - cycles * self._cycle, 0.0)
        saved = cycles * self._interval
        if cycles == self._dumps:
            return Phase(self._read, min(saved + rest, self._work), cycles * self._dump, saved, cycles)
        working = min(rest, self._interval)
        return Phase(self._read, saved + working, cycles * self._dump + (rest - working), saved, cycles)

    def _time_of(self, dump: int) -> float:
        """Return when the dump of this number, from 1, is complete (s)."""
        return self.start + (self._read + dump * self._cycle)

    def state(self) -> list[float]:
        """Return what it is made with."""
        return [self.start, self._read, self._work, self._interval, self._dump]
