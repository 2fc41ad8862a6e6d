"""Choose the jobs to preempt: lowest tier first, as few and as small as possible."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipistrelle.protocol.fields import PreemptMode
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class Candidate(NamedTuple):
    """A running job that may be preempted.

    Attributes:
        level: the priority tier of the job; jobs of the lowest tier are preempted first.
        units: the job's units or nodes that the preempting job may use.
        worth: number of units, or of cores on shared nodes, that preempting the job would free.
    """

    job: SchedulerJob
    level: float
    units: NodeSet
    worth: int


#: whether a job can start on the free units and on the units of these candidates
Fits = Callable[[Sequence[Candidate]], bool]


def choose(candidates: Sequence[Candidate], fits: Fits, *, youngest_first: bool = False) -> list[Candidate] | None:
    """Return the jobs to preempt; None if preempting all candidates does not suffice.

    1. Candidates are added until the job fits, from the lowest level to the highest. Within a level, the largest
       candidate comes first; with ``youngest_first``, the last started.
    2. Candidates that are not needed are dropped, from the highest level to the lowest, the smallest first.
    3. Without ``youngest_first``, each remaining candidate, the largest first, is replaced by the smallest candidate of
       its level with which the job still fits.

    Of equally large candidates, the last started is preempted first, then the last submitted.

    Args:
        candidates: each has at least one unit.
        fits: if it is true for a set of candidates, it must be true for every larger set.
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
    """Preempt the jobs that `choose` returns, and return them in order of submission.

    If the job would not fit even then, preempt none and return None.

    Args:
        terms: returns the mode and the grace period (s) with which a job is preempted.
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
