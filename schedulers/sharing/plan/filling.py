"""Choose jobs to start on nodes that jobs share, by Maui's BACKFILLPOLICY."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, Literal, TypeVar

#: Maui's BACKFILLPOLICY
FillPolicy = Literal["firstfit", "bestfit", "greedy"]
#: limit of checks by ``greedy`` of whether a job fits beside the jobs already chosen
_MOST_QUESTIONS: Final = 1000
_Item = TypeVar("_Item")
#: removes a temporary reservation
Release = Callable[[], None]


def fill(
    items: Sequence[_Item],
    policy: FillPolicy,
    value: Callable[[_Item], float],
    most: int,
    hold: Callable[[_Item], Release | None],
    start: Callable[[_Item], object],
) -> None:
    """Start the jobs that a backfill policy chooses.

    Args:
        items: the jobs, in the order of the queue.
        policy: ``firstfit`` tries them in this order, ``bestfit`` by descending value, and ``greedy`` starts the set
            with the largest sum of values among the sets tried.
        value: returns a job's value by Maui's BACKFILLMETRIC.
        most: choose only among the first ``most`` jobs of ``items`` that each fit alone; 0: among all jobs.
        hold: reserves what a job takes, and returns a function that removes this reservation; returns None if the job
            does not fit now.
        start: starts a job if it fits.
    """
    if most:
        items = list(islice((item for item in items if _fits(item, hold)), most))
    if policy == "greedy":
        items = _best_set(items, value, hold)
    elif policy == "bestfit":
        items = sorted(items, key=value, reverse=True)
    for item in items:
        start(item)


def _fits(item: _Item, hold: Callable[[_Item], Release | None]) -> bool:
    release = hold(item)
    if release is None:
        return False
    release()
    return True


def _best_set(
    items: Sequence[_Item], value: Callable[[_Item], float], hold: Callable[[_Item], Release | None]
) -> list[_Item]:
    """Return the set of jobs with the largest sum of values among the sets tried.

    Sets are searched depth first in the order of the queue. When no further job fits into a set, its last job is
    replaced by a later job. The search ends after a limited number of tests.
    """
    questions = at = 0
    chosen: list[tuple[int, Release]] = []
    best: list[_Item] = []
    best_value = 0.0
    while questions < _MOST_QUESTIONS:
        for position in range(at, len(items)):
            questions += 1
            release = hold(items[position])
            if release is not None:
                chosen.append((position, release))
        total = sum(value(items[position]) for position, _ in chosen)
        if total > best_value:
            best, best_value = [items[position] for position, _ in chosen], total
        if not chosen:
            break
        at, release = chosen.pop()
        release()
        at += 1
    for _, release in reversed(chosen):
        release()
    return best
