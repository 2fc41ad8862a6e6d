"""Streams of outages, merged in order of time.

They are generated only as far ahead as needed.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import attrgetter
from typing import Final

from pipistrelle.platforms.failures.models import LONGEST_HORIZON, Stream
from pipistrelle.platforms.failures.outage import Outage

#: first time span requested (s); later spans adapt to yield about `_FEW` to `_MANY` outages
_FIRST_STRETCH: Final = 2.0**-7
_FEW: Final = 256
_MANY: Final = 4096


class OutageFeed:
    """Several streams of outages, merged by the time at which nodes go down."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        time = attrgetter("down")
        self._instants = groupby(merge(*map(_outages, streams), key=time), key=time)

    def next_instant(self) -> list[Outage]:
        """Return all outages that begin at the next time at which a node goes down.

        The outages are in the order of streams, then nodes. The result is [] at the end.
        """
        return list(next(self._instants, (0.0, ()))[1])


def _outages(stream: Stream) -> Iterator[Outage]:
    horizon, stretch = 0.0, _FIRST_STRETCH
    while horizon < LONGEST_HORIZON:
        horizon = min(horizon + stretch, LONGEST_HORIZON)
        made = stream.extend(horizon)
        if len(made) < _FEW:
            stretch *= 2
        elif len(made) > _MANY:
            stretch /= 2
        yield from made
