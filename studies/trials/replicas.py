"""Which trials a study needs: so many of each point, in rounds over all points."""

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.trials.trial import Outcome

#: a trial: its point and its replica
Key = tuple[int, int]


class Replication(Protocol):
    """Says which trial is next; what it asks for depends on what came out of trials, never on when."""

    @property
    def known(self) -> int:
        """How many trials are known to be needed."""

    @property
    def left(self) -> int:
        """How many of these have not ended."""

    @property
    def ended(self) -> Collection[Key]:
        """The trials that have ended, of those that are needed."""

    def next(self) -> Key | None:
        """Return a trial that has not been asked for; None if there is none now."""

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of trials that have ended."""


class Counting:
    """So many replicas of each point; all points have their first replica before any has its second.

    Parameters
    ----------
    points, count
        how many there are of either.
    done
        trials that have ended already; others than these are not asked for.
    """

    def __init__(self, points: int, count: int, done: Iterable[Key]) -> None:
        self.known = points * count
        self.ended = {key for key in done if key[0] < points and key[1] < count}
        self._rest: Iterator[Key] = (
            (point, replica)
            for replica in range(count)
            for point in range(points)
            if (point, replica) not in self.ended
        )

    @property
    def left(self) -> int:
        """How many trials have not ended."""
        return self.known - len(self.ended)

    def next(self) -> Key | None:
        """Return the next trial."""
        return next(self._rest, None)

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of trials that have ended."""
        self.ended |= {(one.point, one.replica) for one in outcomes}


def replication_of(study: Study, outcomes: Iterable[Key]) -> Replication:
    """Return what says which trials of a study are needed beside those that have ended."""
    return Counting(study.size, study.replicas.count, outcomes)
