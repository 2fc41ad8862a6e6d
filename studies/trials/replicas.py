"""Which trials a study needs: so many of each point, in rounds over all points."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from pipistrelle.models.samples.stopping import Rule, reached, replicas_needed
from pipistrelle.studies.trials.metrics import Metric
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

    @property
    def imprecise(self) -> int:
        """How many points are not as precise as asked, and get no more replicas."""

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

    imprecise = 0

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


class Precise:
    """As many replicas of each point as a rule asks for, in stages.

    A stage is decided when all replicas of the one before have ended, by their metric in the order of replicas: so it
    depends on what came out alone. Points none of whose replicas has the metric, as they stall, are enough.

    Parameters
    ----------
    points
        how many there are.
    rule, metric
        when the replicas of a point are enough, and of what.
    done
        trials that have ended already.
    """

    def __init__(self, points: int, rule: Rule, metric: str, done: Iterable[Outcome]) -> None:
        self._rule, self._metric = rule, metric
        self._found: list[dict[int, Metric]] = [{} for _ in range(points)]
        self._wanted = [0] * points
        self._rest: deque[Key] = deque()
        for one in done:
            if one.point < points:
                self._found[one.point][one.replica] = one.figures.get(metric)
        for point in range(points):
            self._look(point)

    def _look(self, point: int) -> None:
        """Ask for the next stage of a point, as often as all replicas of one are there."""
        found = self._found[point]
        while all(replica in found for replica in range(self._wanted[point])):
            before = self._wanted[point]
            sample = [found[replica] for replica in range(before)]
            if sample and all(value is None for value in sample):
                return
            needed = replicas_needed(sample, self._rule)
            if needed == before:
                return
            self._wanted[point] = needed
            keys = [(point, replica) for replica in range(before, needed) if replica not in found]
            self._rest += keys

    @property
    def known(self) -> int:
        """How many trials are known to be needed so far."""
        return sum(self._wanted)

    @property
    def ended(self) -> set[Key]:
        """The trials that have ended, of those that are needed."""
        return {
            (point, replica)
            for point, (found, wanted) in enumerate(zip(self._found, self._wanted, strict=True))
            for replica in found
            if replica < wanted
        }

    @property
    def left(self) -> int:
        """How many trials of the present stages have not ended."""
        return self.known - len(self.ended)

    @property
    def imprecise(self) -> int:
        """How many points have as many replicas as they may have, and are not as precise as the rule asks."""
        return sum(
            len(found) >= self._rule.most and not reached([found[replica] for replica in range(wanted)], self._rule)
            for found, wanted in zip(self._found, self._wanted, strict=True)
        )

    def next(self) -> Key | None:
        """Return the next trial; None until a stage has ended if none is left of the present ones."""
        return self._rest.popleft() if self._rest else None

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Take note of trials that have ended."""
        for one in outcomes:
            self._found[one.point][one.replica] = one.figures.get(self._metric)
            self._look(one.point)


def replication_of(study: Study, outcomes: Mapping[Key, Outcome]) -> Replication:
    """Return what says which trials of a study are needed beside those that have ended."""
    rule = study.rule
    if rule is None:
        return Counting(study.size, study.count, outcomes)
    return Precise(study.size, rule, study.metric, outcomes.values())
