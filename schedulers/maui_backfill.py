"""Maui's backfilling: which of the jobs that fit a window of free units are started in it.

Source: admin manual of Maui, 8.2, and MBFFirstFit, MBFBestFit and MBFGreedy of Maui 3.2.
"""

from collections.abc import Callable
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.maui_limits import Limits, Rows
from pipistrelle.schedulers.maui_plan import Plan
from pipistrelle.schedulers.maui_queue import Bools, Floats, MauiQueue

#: how often GREEDY asks whether a job fits beside others
_MOST_QUESTIONS: Final = 10000
#: a depth up to which the first by rank are found one by one
_SHALLOW: Final = 16


class Candidates:
    """The jobs that backfilling may look at, and those of them that fit the window at hand.

    Parameters
    ----------
    queue, limits, plan
        of the simulation.
    accesses
        how many accesses there are.
    start
        starts the job of a row if there is room, and tells whether there was.
    eligible
        the rows that may be looked at; those that are started are taken out.
    ranks
        the order of the rows, highest first.
    now
        the time (s).
    hard
        whether hard limits count, else soft ones.
    changed
        whether jobs were started since the eligible rows were chosen, which may have put others beyond a limit.
    """

    def __init__(
        self,
        queue: MauiQueue,
        limits: Limits,
        plan: Plan,
        accesses: int,
        start: Callable[[int], bool],
        eligible: Bools,
        ranks: Floats,
        now: float,
        *,
        hard: bool,
        changed: bool,
    ) -> None:
        self._queue = queue
        self._limits = limits
        self._plan = plan
        self._accesses = range(accesses)
        self._start = start
        self._eligible = eligible
        self._ranks = ranks
        self._now = now
        self._hard = hard
        self._widths: NDArray[np.int64] = np.zeros(accesses, dtype=np.int64)
        self._changed = changed
        #: rows that fit the window, in the order of submission
        self.rows: Rows = np.zeros(0, dtype=np.intp)

    def next_window(self, after: float) -> float:
        """Return until when (s) the next longer window of free units lasts, -inf if there is none."""
        ends = (step.end for access in self._accesses for step in self._plan.steps(access) if step.end > after)
        return min(ends, default=-inf)

    def select(self, until: float, depth: int) -> None:
        """Take the jobs that fit a window that lasts until then (s); of these the ``depth`` first by rank, 0: all."""
        queue = self._queue
        for access in self._accesses:
            lasting = (step.width for step in self._plan.steps(access) if step.end >= until)
            self._widths[access] = next(lasting, 0)
        fit = queue.size <= (self._widths[queue.access] if len(self._widths) > 1 else self._widths[0])
        fit &= self._eligible
        if until != inf:
            fit &= queue.walltime <= until - self._now
        self.rows = np.flatnonzero(fit)
        if self._changed:  # limits as they are by now
            self.rows = self.rows[self._allowed()]
        if depth and len(self.rows) > depth:
            self.rows = self._first(depth)

    def _first(self, depth: int) -> Rows:
        if depth > _SHALLOW:
            return np.sort(self.in_order()[:depth])
        keys = self._ranks[self.rows]
        found = []
        for _ in range(depth):
            at = int(np.argmax(keys))
            found.append(at)
            keys[at] = -inf
        first: Rows = self.rows[np.sort(np.array(found))]
        return first

    def in_order(self) -> Rows:
        """Return the rows in the order of rank, ties in the order of submission."""
        return self.rows[np.argsort(-self._ranks[self.rows], kind="stable")]

    def _allowed(self) -> Bools:
        """Return which of the rows may still be started, by the limits."""
        rows = self.rows
        allowed = self._limits.allowed(self._queue, self._now, hard=self._hard, rows=rows)
        eligible: Bools = self._eligible[rows]
        return eligible if allowed is None else eligible & allowed

    def _narrow(self) -> None:
        """Drop the jobs that have no room, or are beyond a limit, by now."""
        queue = self._queue
        most = max((step.width for access in self._accesses for step in self._plan.steps(access)), default=0)
        self.rows = self.rows[queue.size[self.rows] <= most]
        if not len(self.rows):
            return
        self.rows = rows = self.rows[self._allowed()]
        accesses, sizes = queue.access[rows], queue.size[rows]
        ends = self._now + queue.walltime[rows]
        keep: Bools = np.ones(len(rows), dtype=np.bool_)
        for access in self._accesses:
            steps = self._plan.steps(access)
            widths = np.array([step.width for step in steps] + [0])
            room = widths[np.searchsorted(np.array([step.end for step in steps]), ends, side="left")]
            fits = sizes <= room
            keep &= fits if len(self._accesses) == 1 else fits | (accesses != access)
        self.rows = rows[keep]

    def start(self, row: int) -> None:
        """Start the job of one of the rows, if there is room, and drop what has none any more."""
        self._eligible[row] = False
        if self._start(row):
            self._changed = True
            self._narrow()
        else:
            self.rows = self.rows[self.rows != row]

    def best_by_rank(self) -> int:
        """Return the first row by rank."""
        return int(self.rows[np.argmax(self._ranks[self.rows])])

    def values(self, rows: Rows, metric: str) -> Floats:
        """Return BACKFILLMETRIC of rows: units, seconds of walltime, or their product."""
        queue = self._queue
        sizes = queue.size[rows].astype(np.float64)
        if metric == "SECONDS":
            return queue.walltime[rows]
        if metric in ("PROCSECONDS", "PESECONDS"):
            return sizes * queue.walltime[rows]
        return sizes

    def fits_beside(self, taken: int, row: int) -> bool:
        """Tell whether a job fits the window beside others that take so many units."""
        return taken + int(self._queue.size[row]) <= int(self._widths[self._queue.access[row]])


def first_fit(candidates: Candidates, metric: str) -> None:
    """Start every job that fits, in the order of rank; the metric does not matter."""
    while len(candidates.rows):
        candidates.start(candidates.best_by_rank())


def best_fit(candidates: Candidates, metric: str) -> None:
    """Start the job of the highest metric, ties by rank, as long as one fits."""
    while len(candidates.rows):
        rows = candidates.in_order()
        candidates.start(int(rows[np.argmax(candidates.values(rows, metric))]))


def greedy(candidates: Candidates, metric: str) -> None:
    """Start the set of jobs whose metrics have the largest sum, of the sets that are looked at.

    Sets are gone through depth first in the order of rank: each is filled as far as it goes, then its last job is
    given up for a later one, until the questions are used up.
    """
    rows = candidates.in_order()[:_MOST_QUESTIONS].tolist()
    values = candidates.values(np.array(rows, dtype=np.intp), metric).tolist()
    sizes = candidates.values(np.array(rows, dtype=np.intp), "PROCS").astype(np.int64).tolist()
    best: list[int] = []
    best_value = 0.0
    chosen: list[int] = []
    taken, value, at, questions = 0, 0.0, 0, 0
    while questions < _MOST_QUESTIONS:
        for position in range(at, len(rows)):
            questions += 1
            if candidates.fits_beside(taken, rows[position]):
                chosen.append(position)
                taken += sizes[position]
                value += values[position]
        if value > best_value:
            best, best_value = list(chosen), value
        if not chosen:
            break
        at = chosen.pop()
        taken -= sizes[at]
        value -= values[at]
        at += 1
    for position in best:
        if rows[position] in candidates.rows:
            candidates.start(rows[position])


#: {BACKFILLPOLICY: how it fills a window}
FILLERS: Final[dict[str, Callable[[Candidates, str], None] | None]] = {
    "FIRSTFIT": first_fit,
    "BESTFIT": best_fit,
    "GREEDY": greedy,
    "NONE": None,
}
