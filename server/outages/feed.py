"""Outages one instant after the other, made only as far ahead as they are needed."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from pipistrelle.platforms.failures.models import LONGEST_HORIZON, Stream
from pipistrelle.platforms.failures.outage import Outage

#: the first stretch of time that is asked for, in seconds, short enough for nodes that fail every millisecond; it grows
#: or shrinks until one has about `_FEW` to `_MANY`
_FIRST_STRETCH: Final = 2.0**-7
_FEW: Final = 256
_MANY: Final = 4096


class OutageFeed:
    """Merges streams of outages by the time they go down.

    Parameters
    ----------
    streams
        each makes its outages as far as it is asked to; what comes out does not depend on how far that is.
    """

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._sources = [_Source(stream) for stream in streams]

    def next_instant(self) -> list[Outage]:
        """Return all outages that go down next, at one time, by stream and node; none if there are no more."""
        first = min((source.next_time() for source in self._sources), default=float("inf"))
        if first == float("inf"):
            return []
        return [outage for source in self._sources for outage in source.take(first)]


class _Source:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._made: deque[Outage] = deque()
        self._horizon = 0.0
        self._stretch = _FIRST_STRETCH

    def next_time(self) -> float:
        """Return when the next outage goes down in seconds, inf if there is none."""
        while not self._made:
            if self._horizon >= LONGEST_HORIZON:
                return float("inf")
            self._horizon = min(self._horizon + self._stretch, LONGEST_HORIZON)
            self._made.extend(self._stream.extend(self._horizon))
            if len(self._made) < _FEW:
                self._stretch *= 2
            elif len(self._made) > _MANY:
                self._stretch /= 2
        return self._made[0].down

    def take(self, time: float) -> list[Outage]:
        """Remove and return the outages that go down at ``time``."""
        taken = []
        while self.next_time() == time:
            taken.append(self._made.popleft())
        return taken
