"""Whom to preempt for a job: the lowest first, as few as will do, and of those the smallest."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipistrelle.protocol.fields import PreemptMode
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class Candidate(NamedTuple):
    """A running job that may be preempted: its level, lower first, and the units that the other would have of it."""

    job: SchedulerJob
    level: float
    units: NodeSet

    @property
    def worth(self) -> int:
        """How many these are."""
        return len(self.units)


#: tells whether a job can start on what is free and the units of these
Fits = Callable[[Sequence[Candidate]], bool]


def choose(candidates: Sequence[Candidate], fits: Fits, *, youngest_first: bool = False) -> list[Candidate] | None:
    """Return whom to preempt; None if all of them together would not do.

    Candidates are taken from the lowest level on, at each the largest first (``youngest_first``: the one that was
    started last), until the job fits. Then whoever can be done without is let go, from the highest level on, the
    smallest first; and in the place of each of the others, the largest first, comes the smallest of its level with
    which the job still fits (not with ``youngest_first``). Ties go against the job that was started, and then
    submitted, last.

    Parameters
    ----------
    candidates
        each with at least one unit.
    fits
        also holds with more of them where it holds with some.
    """
    taken: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: (one.level, *_turn(one, youngest_first))):
        if taken and fits(taken):
            break
        taken.append(candidate)
    if not fits(taken):
        return None
    for candidate in sorted(taken, key=lambda one: (-one.level, one.worth, one.job.start, one.job.number)):
        rest = [one for one in taken if one is not candidate]
        if rest and fits(rest):
            taken = rest
    if youngest_first:
        return taken
    for candidate in sorted(taken, key=lambda one: (-one.worth, *_turn(one, False))):
        rest = [one for one in taken if one is not candidate]
        others = [
            one
            for one in candidates
            if one.level == candidate.level and one.worth < candidate.worth and one not in rest
        ]
        for other in sorted(others, key=lambda one: (one.worth, -one.job.start, -one.job.number)):
            if fits([*rest, other]):
                taken = [*rest, other]
                break
    return taken


def preempt_for(
    view: View,
    job: SchedulerJob,
    candidates: Sequence[Candidate],
    fits: Fits,
    terms: Callable[[SchedulerJob], tuple[PreemptMode, float]],
    *,
    youngest_first: bool = False,
) -> list[Candidate] | None:
    """Preempt for a job those that `choose` returns; return them in the order of submission, or None.

    ``terms`` returns how a job is preempted, and its grace (s).
    """
    chosen = choose(candidates, fits, youngest_first=youngest_first) if candidates else None
    if chosen is None:
        return None
    chosen.sort(key=lambda one: one.job.number)
    for one in chosen:
        mode, grace = terms(one.job)
        view.preempt(one.job, mode, grace, f"for {job.id}")
    return chosen


def _turn(one: Candidate, youngest_first: bool) -> tuple[float, ...]:
    if youngest_first:
        return (-one.job.start, -one.job.number)
    return (-one.worth, -one.job.start, -one.job.number)
