"""When the Maui policy wants to be called though nothing happens: where time alone lets a job start."""

from collections.abc import Collection, Iterable
from math import inf, nextafter

import numpy as np

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.fields import LATEST
from pipistrelle.schedulers.maui.limits.arrays import Rows
from pipistrelle.schedulers.maui.limits.limits import Limits
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare
from pipistrelle.schedulers.maui.priority.priority import Priorities
from pipistrelle.schedulers.maui.priority.waiting import Bools, MauiQueue
from pipistrelle.schedulers.policy.order import Floats
from pipistrelle.schedulers.policy.view import View

#: how far ahead one looks to see how fast a priority grows, and how long after the last look the next is at least (s)
_AHEAD, _LEAST = 3600.0, 1.0
#: how many jobs are looked at that may pass one with a reservation
_OLDEST, _NEAREST = 1000, 64
#: after so many calls in a row that let nobody start, with nothing running, nobody ever will
_FRUITLESS = 500


class Calls(Kept):
    """Asks for one call at a time: the earliest instant at which something may have changed.

    Parameters
    ----------
    view, queue, priorities, limits, fairshare, credentials
        of the simulation.
    rejects_negative
        whether a job of negative priority may not start.
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
        rejects_negative: bool,
    ) -> None:
        self._view = view
        self._queue = queue
        self._priorities = priorities
        self._limits = limits
        self._fairshare = fairshare
        self._credentials = credentials
        self._rejects_negative = rejects_negative
        self._caps = fairshare.has_caps
        #: when the last deferred job comes back (s)
        self.held_until = -inf
        #: when the last call that was asked for is due (s), and how many there were
        self._due = -inf
        self._count = 0
        #: how often in a row nothing ran, and how many jobs waited then
        self._fruitless, self._waiting = 0, -1

    def ask(self, now: float, times: Iterable[float], reserved: Collection[int], ready: Bools, ranks: Floats) -> None:
        """Ask for a call at the earliest of these times (s) and of those at which time alone changes something.

        Parameters
        ----------
        reserved
            numbers of the jobs with a reservation.
        ready
            the rows that are neither deferred nor kept back by their priority or a fairshare cap.
        ranks
            the order of the rows.
        """
        queue = self._queue
        self._fruitless = 0 if len(self._view.running) or len(queue) != self._waiting else self._fruitless + 1
        self._waiting = len(queue)
        if self._fruitless > _FRUITLESS:
            return  # the server sees that the run has stalled, and says who waits
        found = list(times)
        if self.held_until > now:
            held = queue.held[queue.live & (queue.held > now)]
            found += [float(held.min())] if len(held) else []
        small = queue.size <= self._view.free.count  # the others need an event that frees units
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
        """Return when negative priorities will have risen to 0; reject the jobs whose priority never rises."""
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
        # Cut to a whole number it is 0 from above -1 on.
        wait = float(((-1.0 - totals[rising]) / slopes[rising]).min())
        return [nextafter(now + max(wait, 1e-3), inf)]

    def _growing_caps(self, rows: Rows, now: float) -> list[float]:
        """Return when the first job has room below its fairshare caps, if no job starts or ends before."""
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
        """Return when a job that fits may have passed one with a reservation, which keeps it from starting.

        Of a deep queue only some are looked at, those that have waited longest and of these the first by rank: events
        are never far then.
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
                # Cut to whole numbers it passes when it has as much, or at the latest when it has 1 more.
                missing = np.where(ahead > 0.0, ahead, ahead + 1.0)[behind]
                times.append(now + max(float((missing / faster[behind]).min()), _LEAST))
        return times
