"""Wake the Maui policy when a job may start although no event happens."""

from collections.abc import Collection, Iterable
from math import inf, nextafter
from typing import Any

import numpy as np

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.fields import LATEST
from pipistrelle.schedulers.maui.limits.arrays import Rows
from pipistrelle.schedulers.maui.limits.limits import Limits
from pipistrelle.schedulers.maui.machine import PlannedMachine
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare
from pipistrelle.schedulers.maui.priority.priority import Priorities
from pipistrelle.schedulers.maui.priority.waiting import Bools, MauiQueue
from pipistrelle.schedulers.policy.order import Floats
from pipistrelle.schedulers.policy.view import View

#: horizon for the growth of priorities, and least time between two calls (s)
_AHEAD, _LEAST = 3600.0, 1.0
#: most jobs examined for passing a job with a reservation: the oldest, then the first of these by rank
_OLDEST, _NEAREST = 1000, 64
#: after this many calls in a row without a start, on an idle machine, no job will ever start
_FRUITLESS = 500


class Calls(Kept):
    """Request wake-up calls at times when a job may start; at most one is pending.

    Args:
        rejects_negative: whether jobs with negative priorities may not start.
    """

    _kept = ("held_until", "_due", "_count", "_fruitless", "_waiting")

    def __init__(
        self,
        view: View,
        queue: MauiQueue,
        priorities: Priorities,
        limits: Limits,
        fairshare: Fairshare,
        credentials: Credentials,
        machine: PlannedMachine[Any, Any],
        rejects_negative: bool,
    ) -> None:
        self._view = view
        self._machine = machine
        self._queue = queue
        self._priorities = priorities
        self._limits = limits
        self._fairshare = fairshare
        self._credentials = credentials
        self._rejects_negative = rejects_negative
        self._caps = fairshare.has_caps
        #: when the last deferral of a job ends (s)
        self.held_until = -inf
        #: time of the latest call (s), and number of calls
        self._due = -inf
        self._count = 0
        #: number of consecutive calls on an idle machine, and number of waiting jobs then
        self._fruitless, self._waiting = 0, -1

    def ask(self, now: float, times: Iterable[float], reserved: Collection[int], ready: Bools, ranks: Floats) -> None:
        """Ask for a wake-up call at the earliest time at which a job may start.

        This is the earliest of ``times`` (s) and of the times at which priorities, caps or limits may let a job start.

        Args:
            reserved: numbers of the jobs with a reservation.
            ready: for each row of the queue, whether its job is ready: it is not deferred, and neither its priority
                nor a fairshare cap holds it back.
            ranks: for each row, the priority of its job.
        """
        queue = self._queue
        self._fruitless = 0 if len(self._view.running) or len(queue) != self._waiting else self._fruitless + 1
        self._waiting = len(queue)
        if self._fruitless > _FRUITLESS:
            return  # the server reports the stalled run
        found = list(times)
        if self.held_until > now:
            held = queue.held[queue.live & (queue.held > now)]
            found += [float(held.min())] if len(held) else []
        small = queue.size <= self._machine.free  # other jobs need an event that frees units
        if self._caps or self._rejects_negative:
            kept_back = np.flatnonzero(small & queue.live & ~ready & (queue.held <= now))
            if len(kept_back):
                found.append(self._fairshare.next_window)
                found += self._rising(kept_back[ranks[kept_back] < 0], now) if self._rejects_negative else []
                found += self._growing_caps(kept_back, now) if self._caps else []
        if reserved and not self._priorities.grow_alike:
            found += self._overtaking(small & ready & queue.live, reserved, ranks, now)
        if self._limits.outstanding:
            found.append(self._limits.next_room(queue, np.flatnonzero(small & queue.live), now))
        following = min((time for time in found if now < time <= LATEST), default=inf)
        if following < inf and not now < self._due <= following:
            if self._due > now:
                self._view.cancel_call(f"maui {self._count}")
            self._due = following
            self._count += 1
            self._view.call_me_later(following, f"maui {self._count}")

    def _rising(self, rows: Rows, now: float) -> list[float]:
        """Return the earliest time (s) at which a negative priority of ``rows`` reaches 0.

        The list is empty if there is none. Also reject the jobs whose priority never rises.
        """
        if not len(rows):
            return []
        rises = {code: self._priorities.ever_rises(code) for code in np.unique(self._queue.code[rows]).tolist()}
        totals = self._priorities.totals(self._queue, rows, now, now)
        slopes = (self._priorities.totals(self._queue, rows, now, now + _AHEAD) - totals) / _AHEAD
        for row, total in zip(rows.tolist(), totals.tolist(), strict=True):
            if not rises[int(self._queue.code[row])]:
                job = self._queue.job(row)
                self._queue.remove(job)
                self._view.reject(job, f"its priority is {total:g} and never rises (REJECTNEGPRIOJOBS)")
        rising = slopes > 0.0
        if not rising.any():
            return []
        # Maui truncates priorities: any value above -1 counts as 0.
        wait = float(((-1.0 - totals[rising]) / slopes[rising]).min())
        return [nextafter(now + max(wait, 1e-3), inf)]

    def _growing_caps(self, rows: Rows, now: float) -> list[float]:
        """Return the earliest time (s) at which a job of ``rows`` fits its fairshare caps.

        The list is empty if no job ever fits. It is assumed that no job starts or ends before.
        """
        queue = self._queue
        need = queue.size[rows] * queue.walltime[rows]
        wait: Floats = np.zeros(len(rows))
        for kind, (room, growth) in enumerate(self._fairshare.rooms(now)):
            if room.min() < inf:
                name = self._credentials.table[queue.code[rows], kind]
                missing = need - room[name]
                with np.errstate(divide="ignore", invalid="ignore"):
                    grows = np.where(growth[name] > 0.0, missing / growth[name], inf)
                np.maximum(wait, np.where(missing > 0.0, grows, 0.0), out=wait)
        wait = wait[wait > 0.0]
        return [now + max(float(wait.min()), _LEAST)] if len(wait) else []

    def _overtaking(self, fits: Bools, reserved: Collection[int], ranks: Floats, now: float) -> list[float]:
        """Return when (s) a job that fits may pass the job whose reservation blocks it.

        In a long queue, only some of the oldest jobs are checked: those with the highest priorities. That is enough,
        because other events are frequent then.
        """
        queue = self._queue
        first = np.array([queue.row_of[number] for number in reserved if number in queue.row_of], dtype=np.intp)
        rows = np.flatnonzero(fits)[:_OLDEST]
        if not len(rows) or not len(first):
            return []
        if len(rows) > _NEAREST:
            mine = ranks[rows]
            rows = rows[np.flatnonzero(mine >= np.partition(mine, len(mine) - _NEAREST)[len(mine) - _NEAREST])]
            rows = rows[:_NEAREST]
        times = [self._fairshare.next_window]
        every = np.concatenate([first, rows])
        totals = self._priorities.totals(queue, every, now, now)
        slopes = (self._priorities.totals(queue, every, now, now + _AHEAD) - totals) / _AHEAD
        for at in range(len(first)):
            ahead, faster = totals[at] - totals[len(first) :], slopes[len(first) :] - slopes[at]
            behind = np.flatnonzero((ranks[rows] <= ranks[first[at]]) & (faster > 0.0))
            if len(behind):
                # Priorities are truncated: a job passes when they are equal, or at the latest when its own is 1 higher.
                missing = np.where(ahead > 0.0, ahead, ahead + 1.0)[behind]
                times.append(now + max(float((missing / faster[behind]).min()), _LEAST))
        return times
