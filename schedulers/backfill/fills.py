"""Maui's backfilling: choose jobs that fit a window of free units, and start them.

Source: admin manual of Maui, 8.2, and MBFFirstFit, MBFBestFit and MBFGreedy of Maui 3.2.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Annotated, Final, Literal, Protocol

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from pipistrelle.protocol.messages import WakeWhen
from pipistrelle.protocol.units.masks import mask_of, units_of
from pipistrelle.schedulers.backfill.waking import once_one_fits
from pipistrelle.schedulers.plan.access import Accesses, AccessPlan
from pipistrelle.schedulers.plan.pickers import placed_by
from pipistrelle.schedulers.policy.interfaces import Backfill, KeepsBegins, Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.plan.reserving import ReservingOnNodes

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: limit of GREEDY's checks of whether a job fits beside the jobs already chosen
_MOST_QUESTIONS: Final = 10000


def only(rows: Rows, mask: Bools) -> Rows:
    """Return the rows for which ``mask`` is true.

    This is ``rows[mask]``, but several times faster than numpy's indexing.
    """
    found: Rows = rows[np.flatnonzero(mask)]
    return found


class JobColumns(Protocol):
    """Attributes of the waiting jobs as arrays; a job has the same row in all arrays.

    Attributes:
        size: units that the job needs; in a row without a job, more than any machine has.
        walltime: longest time that the job holds its units, s.
        access: a number shared by the jobs that the same reservations admit.
    """

    #: units per job; an empty row has more than any machine
    size: Ints
    #: longest time that each job holds its units, s
    walltime: Floats
    access: Ints


class Candidates:
    """The queued jobs that may be backfilled, and which of them fit a window.

    A window is a number of units that stay free until a given time.

    Args:
        queue: the waiting jobs, one per row.
        accesses: number of access numbers. Jobs that the same reservations admit share an access number.
        start: starts the job of a row if it fits; returns whether the job started.
        eligible: the rows of jobs that may be backfilled; rows of started jobs are removed.
        ranks: priority of each row's job; higher priorities come first.
        now: the time, s.
        allowed: returns for each row whether the limits let its job start; None: all may start.
        changed: whether jobs started since ``eligible`` was computed, so that limits may now exclude other jobs.
    """

    def __init__(
        self,
        queue: JobColumns,
        plan: AccessPlan,
        accesses: int,
        start: Callable[[int], bool],
        eligible: Bools,
        ranks: Floats,
        now: float,
        *,
        allowed: Callable[[Rows], Bools | None] = lambda rows: None,
        changed: bool = False,
    ) -> None:
        self._queue = queue
        self._allows = allowed
        self._plan = plan
        self._accesses = range(accesses)
        self._start = start
        self._eligible = eligible
        self._ranks = ranks
        self._now = now
        self._widths: NDArray[np.int64] = np.zeros(accesses, dtype=np.int64)
        self._changed = changed
        #: rows that fit a remaining window, in the order of submission; None before the second window
        self._fitting: Rows | None = None
        self._windows = 0
        #: rows that fit the current window, in the order of submission
        self.rows: Rows = np.zeros(0, dtype=np.intp)

    def next_window(self, after: float) -> float:
        """Return the end (s) of the shortest window that ends later than ``after`` (s).

        Return -inf if there is none, or if no job fits any window.
        """
        if self._windows == 1:
            widest = self._widest()
            self._fitting = np.flatnonzero((self._queue.size <= widest) & self._eligible) if widest else self.rows[:0]
            if self._changed and len(self._fitting):
                self._fitting = only(self._fitting, self._allowed(self._fitting))
            self._fitting = only(self._fitting, self._has_room(self._fitting))
        self._windows += 1
        if self._fitting is not None and not len(self._fitting):
            return -inf
        ends = (step.end for access in self._accesses for step in self._plan.steps(access) if step.end > after)
        return min(ends, default=-inf)

    def _widest(self) -> int:
        return max((step.width for access in self._accesses for step in self._plan.steps(access)), default=0)

    def select(self, until: float, depth: int) -> None:
        """Select the first ``depth`` jobs that fit a window that ends at ``until`` (s).

        With ``depth`` 0, select all jobs that fit.
        """
        queue, rows = self._queue, self._fitting
        for access in self._accesses:
            lasting = (step.width for step in self._plan.steps(access) if step.end >= until)
            self._widths[access] = next(lasting, 0)
        widest = int(self._widths.max(initial=0))
        if rows is None:
            fit = (queue.size <= widest) & self._eligible
            if until != inf:
                fit &= queue.walltime <= until - self._now
            rows = np.flatnonzero(fit)
            if self._changed and len(rows):
                rows = only(rows, self._allowed(rows))
        else:
            rows = only(rows, (queue.size[rows] <= widest) & (queue.walltime[rows] <= until - self._now))
        if len(self._widths) > 1:
            rows = only(rows, queue.size[rows] <= self._widths[queue.access[rows]])
        self.rows = rows
        if depth and len(rows) > depth:
            self.rows = self._first(depth)

    def _first(self, depth: int) -> Rows:
        """Return the ``depth`` selected jobs of highest priority, in submission order.

        A job is given by its row in the queue. Ties in priority go to the job submitted first.
        """
        keys = self._ranks[self.rows]
        least = np.partition(keys, len(keys) - depth)[len(keys) - depth]
        above = np.flatnonzero(keys > least)
        ties = np.flatnonzero(keys == least)[: depth - len(above)]
        first: Rows = self.rows[np.sort(np.concatenate([above, ties]))]
        return first

    def in_order(self, most: int) -> Rows:
        """Return at most ``most`` selected jobs, highest priority first.

        A job is given by its row in the queue. Ties go to the job submitted first.
        """
        rows = self._first(most) if len(self.rows) > most else self.rows
        return rows[np.argsort(-self._ranks[rows], kind="stable")]

    def _allowed(self, rows: Rows) -> Bools:
        """Return for each of the jobs in ``rows`` whether limits still let it start.

        A job is given by its row in the queue.
        """
        allowed = self._allows(rows)
        eligible: Bools = self._eligible[rows]
        return eligible if allowed is None else eligible & allowed

    def _has_room(self, rows: Rows) -> Bools:
        """Return for each of the jobs (rows of the queue) whether it fits some window.

        A window is a number of units that stay free until a given time. The caller must leave out jobs that need more
        units than the widest window has.
        """
        queue = self._queue
        if not len(rows):
            return np.ones(0, dtype=np.bool_)
        # For each access and size, the latest end of a step that is wide enough: the job must end by then.
        most = self._widest() + 1
        last: Floats = np.full(most * len(self._accesses), -inf)
        for access in self._accesses:
            for step in self._plan.steps(access):  # each has a later end than the one before, and fewer units
                last[access * most : access * most + step.width + 1] = step.end
        keys = queue.size[rows]
        if len(self._accesses) > 1:
            keys = keys + queue.access[rows] * most
        fits: Bools = last[keys] >= self._now + queue.walltime[rows]
        return fits

    def _narrow(self) -> None:
        widest = self._widest()
        self.rows = self._left(self.rows, widest)
        if self._fitting is not None:
            self._fitting = self._left(self._fitting, widest)

    def _left(self, rows: Rows, widest: int) -> Rows:
        if not widest:
            return rows[:0]
        rows = only(rows, self._queue.size[rows] <= widest)
        rows = only(rows, self._allowed(rows)) if len(rows) else rows
        return only(rows, self._has_room(rows))

    def start(self, row: int) -> None:
        """Start the job in row ``row`` of the queue if it fits.

        In either case the job is no longer a candidate. If it started, jobs that no longer fit are removed from the
        candidates.
        """
        self._eligible[row] = False
        if self._start(row):
            self._changed = True
            self._narrow()
        else:
            self.rows = only(self.rows, self.rows != row)
            if self._fitting is not None:
                self._fitting = only(self._fitting, self._fitting != row)

    def best_by_rank(self, places: Rows | None = None) -> int:
        """Return the job (row of the queue) that has the highest priority.

        With ``places``, which are indices of selected jobs, compare only these jobs.
        """
        rows = self.rows if places is None else self.rows[places]
        return int(rows[np.argmax(self._ranks[rows])])

    def values(self, rows: Rows, metric: str) -> Floats:
        """Return the value of BACKFILLMETRIC for each of the jobs in ``rows``.

        A job is given by its row in the queue. ``metric`` says whether the value is units, walltime (s), or their
        product.
        """
        queue = self._queue
        sizes = queue.size[rows].astype(np.float64)
        if metric == "SECONDS":
            return queue.walltime[rows]
        if metric in ("PROCSECONDS", "PESECONDS"):
            return sizes * queue.walltime[rows]
        return sizes

    def slack(self, rows: Rows) -> NDArray[np.int64]:
        """Return how many units of the window each of these jobs would leave free.

        ``rows`` are the jobs' rows of the queue.
        """
        queue = self._queue
        slack: NDArray[np.int64] = self._widths[queue.access[rows]] - queue.size[rows]
        return slack


def first_fit(candidates: Candidates, metric: str) -> None:
    """Start every job that fits, in the order of priority; ``metric`` is unused."""
    while len(candidates.rows):
        candidates.start(candidates.best_by_rank())


def best_fit(candidates: Candidates, metric: str) -> None:
    """Repeatedly start the job with the highest metric, while any job fits.

    Ties are broken by priority.
    """
    while len(candidates.rows):
        values = candidates.values(candidates.rows, metric)
        candidates.start(candidates.best_by_rank(np.flatnonzero(values == values.max())))


def greedy(candidates: Candidates, metric: str) -> None:
    """Start the set of jobs with the largest sum of metrics among the sets tried.

    Sets are searched depth first, in the order of rank. When no further job fits into a set, its last job is replaced
    by a later job. The search ends after a limited number of tests.
    """
    order = candidates.in_order(_MOST_QUESTIONS)  # the first set takes a check per job
    if not len(order):
        return
    sizes, slacks = candidates.values(order, "PROCS").astype(np.int64).tolist(), candidates.slack(order)
    values = candidates.values(order, metric).tolist()
    #: the largest slack from a position on: if more is taken, nothing more fits
    ahead = np.maximum.accumulate(slacks[::-1])[::-1].tolist()
    slack = slacks.tolist()
    rows = order.tolist()
    count = len(rows)
    best: list[int] = []
    best_value = 0.0
    chosen: list[int] = []
    taken, value, at, questions = 0, 0.0, 0, 0
    while questions < _MOST_QUESTIONS:
        position = at
        while position < count:
            if ahead[position] < taken:  # all remaining checks would fail
                questions += count - position
                break
            questions += 1
            if slack[position] >= taken:
                chosen.append(position)
                taken += sizes[position]
                value += values[position]
            position += 1
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


#: {BACKFILLPOLICY: the function that fills a window}
FILLS: Final[dict[str, Callable[[Candidates, str], None]]] = {
    "FIRSTFIT": first_fit,
    "BESTFIT": best_fit,
    "GREEDY": greedy,
}


def fill_windows(candidates: Candidates, now: float, policy: str, metric: str, depth: int) -> None:
    """Start jobs in the windows of free units, one window after the other.

    A window is a number of units that stay free until a given time. The windows are filled in the order of their ends.

    Args:
        now: the time, s.
        policy: Maui's BACKFILLPOLICY.
        metric: Maui's BACKFILLMETRIC.
        depth: consider only the first ``depth`` jobs that fit each window; 0: all that fit.
    """
    until = now
    while (until := candidates.next_window(until)) > now:
        candidates.select(until, depth)
        FILLS[policy](candidates, metric)


def start_or_reserve(rows: Iterable[int], start: Callable[[int], bool], reserve: Callable[[int], bool]) -> None:
    """Start the jobs of ``rows`` in order; reserve units for jobs that do not fit.

    ``start`` returns whether the job of a row started. ``reserve`` returns whether to continue with the next row.
    """
    for row in rows:
        if not (start(row) or reserve(row)):
            return


class FillOptions(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the backfilling rule ``fill``.

    Attributes:
        policy: Maui's BACKFILLPOLICY.
        metric: Maui's BACKFILLMETRIC.
        depth: consider only the first ``depth`` jobs that fit each window; 0: all that fit.
        reservations: number of jobs at the front of the queue that get a reservation.
    """

    policy: Literal["firstfit", "bestfit", "greedy"] = "firstfit"
    metric: Literal["procs", "seconds", "procseconds"] = "procs"
    depth: Annotated[int, Meta(ge=0)] = 0
    reservations: Annotated[int, Meta(ge=0)] = 1


class _Rows(Struct):
    size: Ints
    walltime: Floats
    access: Ints


class Fill(KeepsBegins):
    """The backfilling rule ``fill``, as in Maui.

    It reserves units for the first jobs that do not fit, then backfills other jobs into windows. A window is a number
    of units that stay free until a given time. The shortest window is filled first; it is also the widest. Each
    decision computes all reservations again.
    """

    def __init__(self, options: FillOptions | None = None) -> None:
        super().__init__()
        self._options = options or FillOptions()

    def on_nodes(self) -> Backfill:
        """Return this rule's version for machines on which jobs share nodes."""
        options = self._options
        return ReservingOnNodes(options.reservations, options.policy, options.metric, options.depth)

    def schedule(self, view: View, placement: Placement) -> None:
        """Start jobs in queue order, reserve units for the next jobs, then fill windows."""
        self._begins = {}
        if not view.free.count:
            view.wake = ("JOB_COMPLETED",)
            return
        jobs = list(view.waiting)
        accesses = Accesses(view)
        accesses.renew()
        queue = _Rows(
            np.array([job.size for job in jobs], dtype=np.int64),
            np.array([job.occupies for job in jobs], dtype=np.float64),
            np.array([accesses.number(job) for job in jobs], dtype=np.int64),
        )
        plan = AccessPlan(view.units, view.now, placed_by(placement, view.machine))
        plan.follow(view.now, view.gone)
        for job in view.running:
            plan.started(job, mask_of(job.alloc), view.windows.ends_at(job, view.now))
        plan.begin(accesses.restrictions(view.now), self._options.reservations)
        eligible: Bools = np.ones(len(jobs), dtype=np.bool_)
        first: SchedulerJob | None = None

        def start(row: int) -> bool:
            job = jobs[row]
            units = plan.units_now(int(queue.access[row]), job, job.occupies)
            if units:
                alloc = units_of(units)
                view.free.remove(alloc)
                view.start(job, alloc, None if first is None else f"backfilled before {first.id}")
                plan.started(job, units, job.expected_end)
                eligible[row] = False
            return bool(units)

        left = self._options.reservations

        def reserve(row: int) -> bool:
            nonlocal first, left
            first = first or jobs[row]
            if not left:
                return False
            left -= 1
            eligible[row] = False
            place = plan.reserve(int(queue.access[row]), jobs[row], jobs[row].occupies)
            self._begins[jobs[row].number] = inf if place is None else place.begin
            return True

        start_or_reserve(range(len(jobs)), start, reserve)
        candidates = Candidates(queue, plan, len(accesses), start, eligible, -np.arange(float(len(jobs))), view.now)
        options = self._options
        fill_windows(candidates, view.now, options.policy.upper(), options.metric.upper(), options.depth)

    def wake_when(self, view: View) -> WakeWhen | None:
        """Return the conditions under which an event can start a job; None: any event can."""
        return once_one_fits(view)
