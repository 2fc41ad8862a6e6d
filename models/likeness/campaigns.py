"""Who submitted what in a row: campaigns, and how often users repeat themselves."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.traces.workload import Floats, Ints, Workload, label_column

#: s: a job that comes later after the user's job before is no longer of its campaign. Sessions of users are told by
#: their submissions, with intervals such as this (Zakay and Feitelson, On Identifying User Session Boundaries in
#: Parallel Workload Logs, JSSPP 2012).
APART: Final = 1200.0
#: run times are alike if the shorter one is at least this part of the longer one
ALIKE: Final = 0.9


@dataclass(frozen=True)
class Campaigns:
    """The campaigns of a workload: a user's jobs of one size, each at most `APART` s after the one before.

    Attributes:
        order: rows of the jobs, campaign by campaign, shape (jobs,).
        first: where in ``order`` each campaign begins, shape (campaigns,).
        user: the user of each job, by row, from 0, the busiest first, shape (jobs,); all 0 where the log has no users.
        users: how many users there are; 0: the log has none.
    """

    order: Ints
    first: Ints
    user: Ints
    users: int

    @property
    def lengths(self) -> Ints:
        """How many jobs each campaign has."""
        return np.diff(np.append(self.first, len(self.order)))

    @property
    def begins(self) -> Ints:
        """The rows of the jobs that begin one."""
        begins: Ints = self.order[self.first]
        return begins

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the rows of jobs that follow one another in a campaign: the ones before, the ones after."""
        inner = np.ones(len(self.order), dtype=np.bool_)
        inner[self.first] = False
        after = np.flatnonzero(inner)
        return self.order[after - 1], self.order[after]


def users_of(jobs: Workload) -> tuple[Ints, int]:
    """Return each job's user as a number from 0, the busiest first, and how many users there are; 0 if none is told."""
    texts = label_column(jobs, "user")
    if texts is None or not any(texts):
        return np.zeros(len(jobs), dtype=np.int64), 0
    values, place, counts = np.unique(np.array(texts), return_inverse=True, return_counts=True)
    rank = np.empty(len(values), dtype=np.int64)
    rank[np.lexsort((values, -counts))] = np.arange(len(values))
    return rank[place], len(values)


def campaigns_of(jobs: Workload) -> Campaigns:
    """Return the campaigns of a workload, whose jobs are in the order of their submit times."""
    user, users = users_of(jobs)
    order = np.lexsort((np.arange(len(jobs)), jobs.submit, jobs.size, user))
    same = (np.diff(user[order]) == 0) & (np.diff(jobs.size[order]) == 0) & (np.diff(jobs.submit[order]) <= APART)
    first = np.flatnonzero(np.concatenate((np.ones(1, dtype=np.bool_), ~same)))
    return Campaigns(order=order, first=first, user=user, users=users)


def repetition(jobs: Workload) -> dict[str, float | int | None]:
    """Return how often users repeat themselves; of a log without users as if it had one.

    ``same_size``: of the jobs that have one of their user before them, the share of its size; ``same_work``: of its
    size and of a run time that is `alike`. ``jobs_per_campaign``: see `Campaigns`. ``users``, and the share
    of the jobs that the busiest one and the ten busiest have; None without users.
    """
    user, users = users_of(jobs)
    order = np.lexsort((np.arange(len(jobs)), jobs.submit, user))
    before, after = order[:-1], order[1:]
    own = user[before] == user[after]
    before, after = before[own], after[own]
    same = jobs.size[before] == jobs.size[after]
    counts = np.bincount(user, minlength=max(users, 1))
    found: dict[str, float | int | None] = {
        "same_size": _share(same),
        "same_work": _share(same & alike(jobs.runtime[before], jobs.runtime[after])),
        "jobs_per_campaign": len(jobs) / len(campaigns_of(jobs).first),
        "users": users or None,
        "busiest": int(counts[0]) / len(jobs) if users else None,
        "ten_busiest": int(counts[:10].sum()) / len(jobs) if users else None,
    }
    return found


def alike(runtime: Floats, other: Floats) -> NDArray[np.bool_]:
    """Tell of which jobs two run times are alike."""
    return np.minimum(runtime, other) >= ALIKE * np.maximum(runtime, other)


def _share(which: NDArray[np.bool_]) -> float | None:
    return float(np.count_nonzero(which)) / len(which) if len(which) else None


def hours_of_week(times: Floats) -> Ints:
    """Return the hour of the week, from 0, of times in seconds after a Monday 0:00."""
    hours: Ints = np.floor(times / 3600.0).astype(np.int64) % 168
    return hours
