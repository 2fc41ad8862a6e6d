"""The part of an attempt between two failures.

In this part, work and checkpoints alternate.
"""

from pipistrelle.platforms.failures.checkpointing import WorkPhase, done_at, dumps_until_done, phase_at
from pipistrelle.protocol.base.state import register


class Segment:
    """Work with regular checkpoints; its progress can be computed for any time (s).

    A checkpoint is written after each ``interval`` (s) of work, except at the end of the work. With an infinite
    interval there are no checkpoints. At the instant when a checkpoint or the work ends, it counts as complete.
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
        """Return the progress at ``now`` (s), which is not before the start."""
        return phase_at(now, self.start, self._read, self._work, self._interval, self._dumps, self._dump, self.finish)

    def made(self) -> list[float]:
        """Return the constructor's arguments, for a snapshot.

        A restored run makes an equal segment from them.
        """
        return [self.start, self._read, self._work, self._interval, self._dump]


register(Segment, Segment.made, lambda state: Segment(*state))
