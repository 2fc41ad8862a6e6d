"""The choice of a study's next trials.

Each trial is a replica of a point (combination of options).
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from pipistrelle.models.samples.stopping import Rule, reached, replicas_needed
from pipistrelle.studies.measures.metrics import Metric
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.trials.trial import Outcome

#: the point and the replica of a trial
Key = tuple[int, int]


class Replication(Protocol):
    """Interface of the choice of a study's trials.

    The choice depends on the outcomes so far, never on how fast trials run.
    """

    @property
    def known(self) -> int:
        """Return the number of trials known to be needed."""

    @property
    def left(self) -> int:
        """Return the number of needed trials that have not ended."""

    @property
    def ended(self) -> Collection[Key]:
        """Return the needed trials that have ended."""

    @property
    def imprecise(self) -> int:
        """Return the number of points that stay too imprecise.

        The means of these points are too imprecise, but the points get no more replicas.
        """

    def next(self) -> Key | None:
        """Return a trial to start; None if no trial can be started now."""

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of ended trials."""


class Counting:
    """The choice of a fixed number of replicas for each point.

    A point is a combination of options. All points get their first replica, then all get their second, and so on.

    Args:
        done: trials that have ended already.
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
        """Return the number of trials that have not ended."""
        return self.known - len(self.ended)

    def next(self) -> Key | None:
        """Return the next trial to start; None if all have been started."""
        return next(self._rest, None)

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of ended trials."""
        self.ended |= {(one.point, one.replica) for one in outcomes}


class Precise:
    """The choice of replicas in stages, until the mean of a metric is precise enough.

    The next stage of a point is decided when all replicas of a stage have ended. The decision uses their metric in the
    order of the replicas, so timing does not matter. If no replica of a point has the metric, because all stall, the
    point gets no more replicas.

    Args:
        rule: says when a point has enough replicas.
        metric: the metric whose values the rule judges.
        done: outcomes of trials that have ended already.
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
        """Decide the next stage of a point if all replicas of its latest stage have ended.

        If the replicas of the next stage have ended, too, decide the stage after it, and so on.
        """
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
        """Return the number of trials known to be needed so far."""
        return sum(self._wanted)

    @property
    def ended(self) -> set[Key]:
        """Return the needed trials that have ended."""
        return {
            (point, replica)
            for point, (found, wanted) in enumerate(zip(self._found, self._wanted, strict=True))
            for replica in found
            if replica < wanted
        }

    @property
    def left(self) -> int:
        """Return the number of needed trials that have not ended."""
        return self.known - len(self.ended)

    @property
    def imprecise(self) -> int:
        """Return the number of points still too imprecise with the maximum of replicas."""
        return sum(
            len(found) >= self._rule.most and not reached([found[replica] for replica in range(wanted)], self._rule)
            for found, wanted in zip(self._found, self._wanted, strict=True)
        )

    def next(self) -> Key | None:
        """Return a trial to start.

        Return None if all trials of the current stages have been started.
        """
        return self._rest.popleft() if self._rest else None

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of ended trials."""
        for one in outcomes:
            self._found[one.point][one.replica] = one.figures.get(self._metric)
            self._look(one.point)


def replication_of(study: Study, outcomes: Mapping[Key, Outcome]) -> Replication:
    """Return the object that selects the trials that a study still needs."""
    rule = study.rule
    if rule is None:
        return Counting(study.size, study.count, outcomes)
    return Precise(study.size, rule, study.metric, outcomes.values())
