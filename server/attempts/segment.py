"""A stretch of an attempt between two failures: a read, then work and dumps in turn, worked out at any time at once."""

from pipistrelle.platforms.failures.checkpointing import WorkPhase, done_at, dumps_until_done, phase_at
from pipistrelle.protocol.base.state import register


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

    __slots__ = ("_dump", "_dumps", "_interval", "_read", "_work", "finish", "start")

    def __init__(self, start: float, read: float, work: float, interval: float, dump: float) -> None:
        self.start = start
        self._read = read
        self._work = work
        self._interval = interval
        self._dump = dump
        #: how many dumps there will be until the work is done
        self._dumps = dumps_until_done(work, interval)
        #: when the work will be done (s)
        self.finish = done_at(start, read, work, self._dumps, dump)

    def at(self, now: float) -> WorkPhase:
        """Return how far it has come at ``now`` (s), which is not before its start."""
        return phase_at(now, self.start, self._read, self._work, self._interval, self._dumps, self._dump, self.finish)

    def made(self) -> list[float]:
        """Return what it is made with."""
        return [self.start, self._read, self._work, self._interval, self._dump]


register(Segment, Segment.made, lambda state: Segment(*state))
