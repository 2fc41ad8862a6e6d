"""A stretch of an attempt between two failures: a read, then work and dumps."""

from pipistrelle.platforms.failures.checkpointing import WorkPhase, done_at, dumps_until_done, phase_at
from pipistrelle.protocol.base.state import register


class Segment:
    """Work with dumps in between, computed for any time at once. Times in s.

    A dump follows each ``interval`` (inf: no dumps) of work, but not the end of the work. A dump or the work counts as
    complete at the very instant of its end.
    """

    __slots__ = ("_dump", "_dumps", "_interval", "_read", "_work", "finish", "start")

    def __init__(self, start: float, read: float, work: float, interval: float, dump: float) -> None:
        self.start = start
        self._read = read
        self._work = work
        self._interval = interval
        self._dump = dump
        self._dumps = dumps_until_done(work, interval)
        self.finish = done_at(start, read, work, self._dumps, dump)

    def at(self, now: float) -> WorkPhase:
        """Return the progress at ``now`` (s), not before its start."""
        return phase_at(now, self.start, self._read, self._work, self._interval, self._dumps, self._dump, self.finish)

    def made(self) -> list[float]:
        """Return its arguments."""
        return [self.start, self._read, self._work, self._interval, self._dump]


register(Segment, Segment.made, lambda state: Segment(*state))
