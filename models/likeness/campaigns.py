"""Find campaigns, and measure how often users repeat jobs.

A campaign is a series of similar jobs of one user.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.traces.workload import Floats, Ints, Workload, label_column

#: longest gap within a campaign (s), a typical bound of user sessions (Zakay and Feitelson, On Identifying User Session
#: Boundaries in Parallel Workload Logs, JSSPP 2012)
APART: Final = 1200.0
#: run times are alike if the shorter is at least this share of the longer
ALIKE: Final = 0.9


@dataclass(frozen=True)
class Campaigns:
    """The campaigns of a workload: series of a user's jobs of one size.

    In a campaign, each job is submitted at most `APART` s after the previous one.

    Attributes:
        order: rows of the jobs, campaign by campaign, shape (jobs,).
        first: index in ``order`` of each campaign's first job, shape (campaigns,).
        user: number of each job's user, by row, busiest user first (0), shape (jobs,); all 0 if the log has no users.
        users: number of users; 0 if the log has none.
    """

    order: Ints
    first: Ints
    user: Ints
    users: int

    @property
    def lengths(self) -> Ints:
        """Return the number of jobs in each campaign, shape (campaigns,)."""
        return np.diff(np.append(self.first, len(self.order)))

    @property
    def begins(self) -> Ints:
        """Return the row number of each campaign's first job, shape (campaigns,)."""
        begins: Ints = self.order[self.first]
        return begins

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the rows of successive jobs in campaigns.

        The first array has the earlier job of each pair, the second array the later job.
        """
        inner = np.ones(len(self.order), dtype=np.bool_)
        inner[self.first] = False
        after = np.flatnonzero(inner)
        return self.order[after - 1], self.order[after]


def users_of(jobs: Workload) -> tuple[Ints, int]:
    """Return each job's user, numbered from 0 (the busiest), and the number of users."""
    texts = label_column(jobs, "user")
    if texts is None or not any(texts):
        return np.zeros(len(jobs), dtype=np.int64), 0
    values, place, counts = np.unique(np.array(texts), return_inverse=True, return_counts=True)
    rank = np.empty(len(values), dtype=np.int64)
    rank[np.lexsort((values, -counts))] = np.arange(len(values))
    return rank[place], len(values)


def campaigns_of(jobs: Workload) -> Campaigns:
    """Return the campaigns of a workload that is sorted by submit time."""
    user, users = users_of(jobs)
    order = np.lexsort((np.arange(len(jobs)), jobs.submit, jobs.size, user))
    same = (np.diff(user[order]) == 0) & (np.diff(jobs.size[order]) == 0) & (np.diff(jobs.submit[order]) <= APART)
    first = np.flatnonzero(np.concatenate((np.ones(1, dtype=np.bool_), ~same)))
    return Campaigns(order=order, first=first, user=user, users=users)


def repetition(jobs: Workload) -> dict[str, float | int | None]:
    """Return how often users repeat jobs.

    If the log has no users, all jobs count as one user's.

    - ``same_size``: share of jobs that have the same size as the user's previous job.
    - ``same_work``: share of jobs that have the same size and an `alike` run time.
    - ``jobs_per_campaign``: mean number of jobs in a campaign (see `Campaigns`).
    - ``users``: number of users; None without users.
    - ``busiest``, ``ten_busiest``: share of all jobs that the busiest user, or the ten busiest, submitted; None without
      users.
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
    """Return for each pair of run times whether both are nearly equal (`ALIKE`)."""
    return np.minimum(runtime, other) >= ALIKE * np.maximum(runtime, other)


def _share(which: NDArray[np.bool_]) -> float | None:
    return float(np.count_nonzero(which)) / len(which) if len(which) else None


def hours_of_week(times: Floats) -> Ints:
    """Return hours of the week (0 to 167) for times (s) counted from a Monday 0:00."""
    hours: Ints = np.floor(times / 3600.0).astype(np.int64) % 168
    return hours
