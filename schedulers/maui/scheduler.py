"""The decisions of the Maui policy during one simulation.

As in Maui (MSchedProcessJobs), each decision first starts jobs within all soft limits, in the order of priority, until
one does not fit. That job and others, up to RESERVATIONDEPTH, get reservations. Then jobs are backfilled within soft
limits, then within hard limits.
"""

from collections.abc import Iterable, Iterator
from math import inf, nan
from typing import Any

import numpy as np

from pipistrelle.protocol.base.state import Kept
from pipistrelle.schedulers.backfill.fills import start_or_reserve
from pipistrelle.schedulers.maui.calls import Calls
from pipistrelle.schedulers.maui.config.settings import MauiSettings, Names
from pipistrelle.schedulers.maui.limits.limits import Limits
from pipistrelle.schedulers.maui.machine import Backfilled, Filling, PlannedMachine
from pipistrelle.schedulers.maui.on_nodes import PlannedNodes
from pipistrelle.schedulers.maui.on_units import PlannedUnits
from pipistrelle.schedulers.maui.preemption import MauiPreemption
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare
from pipistrelle.schedulers.maui.priority.priority import Breakdown, Priorities
from pipistrelle.schedulers.maui.priority.waiting import Bools, GrowingInts, Ints, MauiQueue
from pipistrelle.schedulers.maui.standing import StandingReservations
from pipistrelle.schedulers.plan.access import Accesses, Restriction
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.policy.interfaces import PastStep, Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Floats
from pipistrelle.schedulers.policy.view import View


class MauiScheduler(Kept):
    """The decisions of the Maui policy in one simulation.

    Args:
        midnight: seconds from 0:00 on a Sunday (local time) to time 0, for standing reservations.
        placement: picks the units of a job; None: by NODEALLOCATIONPOLICY.
    """

    _kept = ("_credentials", "fairshare", "_accesses", "_plan", "reserved", "_calls")

    def __init__(self, view: View, settings: MauiSettings, midnight: float, placement: Placement | None = None) -> None:
        self.view = view
        self._settings = settings
        kind = PlannedUnits if view.shared is None else PlannedNodes
        self._plan: PlannedMachine[Any, Any] = kind(view, settings, placement)
        per_node = self._plan.processors_per_node
        self._credentials = Credentials()
        self.fairshare = Fairshare(settings, self._credentials)
        self.priorities = Priorities(settings, self._credentials, self.fairshare, per_node)
        platform = view.begins.platform
        if platform is not None:
            self.priorities.class_priorities = {found.name: found.priority for found in platform.classes}
        self.limits = Limits(settings, self._credentials, per_node)
        self.queue = MauiQueue(self._plan.size)
        self._standing = StandingReservations(settings, view.machine, midnight, self._plan.processors)
        self._accesses = Accesses(view)
        self._running: dict[int, tuple[SchedulerJob, int]] = {}
        #: {number of a waiting job: its reservation} of the last decision
        self.reserved: dict[int, Any] = {}
        #: rows that accrue no queue time until the next decision
        self._blocked: Bools | None = None
        self._rejects_negative = settings.flag("REJECTNEGPRIOJOBS") and settings.flag("ENABLENEGJOBPRIORITY")
        self._calls = Calls(
            view,
            self.queue,
            self.priorities,
            self.limits,
            self.fairshare,
            self._credentials,
            self._plan,
            rejects_negative=self._rejects_negative,
        )
        #: number of the stack of reservations by combination of credentials, -1 for none
        self._stack_numbers = GrowingInts()
        self._policy = settings.text("RESERVATIONPOLICY")
        self._fill = Filling(
            settings.text("BACKFILLPOLICY"), settings.text("BACKFILLMETRIC"), int(settings.number("BACKFILLDEPTH"))
        )
        accrual = settings.text("JOBPRIOACCRUALPOLICY")
        self._full_accrual = accrual == "FULLPOLICY"
        self._tracks_blocked = self._full_accrual or (accrual == "QUEUEPOLICY" and self.limits.idle)
        self._caps = self.fairshare.has_caps
        self._preemption = MauiPreemption(view, settings, self._credentials, self._plan)
        self._two_passes = self.limits.two_levels or self._fill.depth > 0

    def state(self) -> dict[str, Any]:
        """Return the state between decisions.

        Jobs are stored by id, waiting jobs also by number.
        """
        blocked = None
        if self._blocked is not None:
            blocked = [self.queue.job(row).number for row in np.flatnonzero(self._blocked & self.queue.live).tolist()]
        running = [[job.id, job.number, self._plan.size(job), code] for job, code in self._running.values()]
        preemption = {"preemption": self._preemption.state()} if self._preemption.active else {}
        return {**super().state(), "queue": self.queue.state(), "running": running, "blocked": blocked, **preemption}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; the view must already be restored to that state's time."""
        super().restore(state)
        self.queue.restore(state["queue"], {job.id: job for job in (*self.view.waiting, *self.view.cancelled)})
        for job_id, number, size, code in state["running"]:
            job = SchedulerJob(job_id, number, size, nan, nan)  # no more is needed, even if it has ended
            self._running[number] = (job, code)
            self.limits.started(number, size, code, self._plan.end(number))
        if self._preemption.active:
            self._preemption.restore(state["preemption"])
        if state["blocked"] is not None:
            self._blocked = np.zeros(self.queue.rows, dtype=np.bool_)
            self._blocked[[self.queue.row_of[number] for number in state["blocked"]]] = True

    def learn_past(self, steps: Iterable[PastStep]) -> None:
        """Count the starts and ends of jobs under an earlier scheduler."""
        view = self.view
        for time, job, starts in steps:
            code = self._credentials.code(self._settings.names(job))
            (self.fairshare.started if starts else self.fairshare.ended)(time, code, self._plan.size(job))
        for job in view.running:
            code = self._credentials.code(self._settings.names(job))
            queue = None if job.description is None else job.description.queue
            end = end_of(job.start, self._settings.walltime(job) + view.held_times.of(queue))
            self._running[job.number] = (job, code)
            self._plan.started(job, self._plan.held_by(job), max(end, end_of(view.now, 0.0)))
            self.limits.started(job.number, self._plan.size(job), code, end)

    def decide(self) -> None:
        """Start all jobs that may start now."""
        view, queue = self.view, self.queue
        now = view.now
        if self._blocked is not None:
            queue.since[self._blocked[: queue.rows]] = now
            self._blocked = None
        self._follow(now)
        if not len(queue):
            self.reserved = {}
            return
        preempts = self._preemption.active
        if not self._plan.free and not self._tracks_blocked and self._policy != "HIGHEST" and not preempts:
            self.reserved = {}
            view.wake = ("JOB_COMPLETED",)
            return
        self._schedule(now)

    def breakdown(self, job: SchedulerJob) -> Breakdown:
        """Return the terms of a waiting job's priority.

        Raise KeyError if the job does not wait.
        """
        return self.priorities.breakdown(self.queue, self.queue.row_of[job.number], self.view.now)

    def reservations(self) -> list[str]:
        """Return the standing reservations that are in force or begin next, as texts."""
        return self._standing.described(self.view.now)

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return the hard limit that holds back a waiting job now; None if none does."""
        row = self.queue.row_of[job.number]
        code, walltime = int(self.queue.code[row]), float(self.queue.walltime[row])
        size = self._plan.size(job)
        blocked = self.limits.blocked(code, size, walltime, self.view.now, hard=True)
        if blocked is None and self._caps:
            (room, cap), need = self.fairshare.room(code, self.view.now), size * walltime
            return f"{cap} leaves {max(room, 0.0):g} unit x s, the job needs {need:g}" if need > room else None
        return None if blocked is None else str(blocked)

    def _follow(self, now: float) -> None:
        view = self.view
        if view.released:
            ended = [number for number, (job, _) in self._running.items() if job.id not in view.running]
            for number in ended:
                job, code = self._running.pop(number)
                self._plan.ended(number)
                self._preemption.ended(number)
                self.limits.ended(number, self._plan.size(job), code)
                self.fairshare.ended(now, code, self._plan.size(job))
        self._plan.follow(now, view.gone)
        if self._accesses.renew():
            for job in self.queue:
                names = self._credentials.combinations[int(self.queue.code[self.queue.row_of[job.number]])]
                self.queue.set_access(job, self._access(job, names))
        for job in view.cancelled:
            if job.number in self.queue.row_of:  # else it has just arrived
                self.queue.remove(job)
                self.reserved.pop(job.number, None)
                self._preemption.kept.pop(job.number, None)
        while view.arrivals:  # a rejection may admit other jobs
            arrivals, view.arrivals = view.arrivals, []
            for job in arrivals:
                self._arrive(job)

    def _arrive(self, job: SchedulerJob) -> None:
        names = self._settings.names(job)
        code = self._credentials.code(names)
        walltime = self._settings.walltime(job)
        never = self.limits.never(code, self._plan.size(job), walltime) or self._plan.never(job)
        if never is not None:
            self.view.reject(job, never)
            return
        # Planned times include prologue and epilogue.
        queue = None if job.description is None else job.description.queue
        walltime += self.view.held_times.of(queue)
        self.queue.add(job, walltime=walltime, code=code, access=self._access(job, names), since=job.submit)

    def _access(self, job: SchedulerJob, names: Names) -> int:
        return self._accesses.number(job, self._standing.lets_in(job, names, self._settings.walltime(job)))

    def _schedule(self, now: float) -> None:
        queue, plan = self.queue, self._plan
        ranks = self.priorities.ranks(queue, now)
        restrictions = self._accesses.restrictions(now, self._standing.closed(now), len(self._standing))
        stacks = self._settings.stacks
        most = 0 if self._policy == "NEVER" else sum(depth for depth, _ in stacks.values())
        plan.begin(restrictions, most + len(self.reserved))
        if self._preemption.kept:
            self._start_preemptors(ranks, restrictions, most, now)
        if self._policy == "HIGHEST":
            self._keep_reservations(ranks, restrictions, now)
        else:
            self.reserved = {}
        ready = self._ready(ranks, now)
        soft = self._selected(ready, ranks, now, hard=False, use="order")
        started = self._start_in_order(soft, ranks, now)
        if self._fill.policy != "NONE":
            self._backfill(soft, ranks, now, hard=False, changed=started)
        if self._two_passes and len(queue):
            hard = soft
            if self.limits.two_levels:
                hard = self._selected(ready & queue.live, ranks, now, hard=True, use="order")
            if self._fill.policy != "NONE":
                self._backfill(hard, ranks, now, hard=True, changed=True)
            elif self.limits.two_levels:
                self._start_in_order(hard, ranks, now, hard=True)
        if len(queue):
            self._note_blocked(ready, ranks, now)
            begins = self._unforeseen_begins()
            self._calls.ask(
                now, [*begins, *(restriction.closure.end for restriction in restrictions)], self.reserved, ready, ranks
            )

    def _start_preemptors(self, ranks: Floats, restrictions: list[Restriction], most: int, now: float) -> None:
        """Start each waiting job if all jobs that were preempted for it have ended.

        While some of the preempted jobs still run, keep the units reserved for the waiting job.
        """
        queue, preemption = self.queue, self._preemption
        for number, kept in preemption.ready(self._waiting_job):
            del preemption.kept[number]
            self.reserved.pop(number, None)
            row = queue.row_of[number]
            self._start(row, kept.taken, now, f"preempts {' '.join(kept.victims)}", float(ranks[row]))
        self._plan.begin(restrictions, most + len(self.reserved) + len(preemption.kept))
        self._keep_for_preemptors(now)

    def _keep_for_preemptors(self, now: float) -> None:
        self._preemption.keep_all(now, self._waiting_job)

    def _waiting_job(self, number: int) -> tuple[SchedulerJob, float]:
        """Return (waiting job, its planned walltime in s) by the job's number."""
        row = self.queue.row_of[number]
        return self.queue.job(row), float(self.queue.walltime[row])

    def _unforeseen_begins(self) -> Iterable[float]:
        """Yield the start times (s) of reservations at which no job is expected to end."""
        ends = {place.end for place in self.reserved.values()}
        for place in self.reserved.values():
            # A planned end brings an event, so no call is needed then.
            if place.begin not in ends and not self._plan.is_end(place.begin):
                yield place.begin

    # ------------------------------------------------------------------ which jobs may start

    def _ready(self, ranks: Floats, now: float) -> Bools:
        """Return for each row of the queue whether its job may be considered now.

        Deferred jobs may not, nor jobs held back by a negative priority or a fairshare cap.
        """
        queue = self.queue
        ready: Bools = queue.live.copy()
        in_service = self._plan.in_service
        if self.view.gone or self._calls.held_until > now:
            too_large = ready & (queue.size > in_service) & (queue.held <= now)
            deferred = self._settings.number("DEFERTIME")
            if not deferred:  # held back until the units return, which wakes the scheduler
                ready &= ~too_large
            elif too_large.any():
                self._calls.held_until = now + deferred
                queue.held[too_large] = now + deferred
            ready &= queue.held <= now
        if self._rejects_negative:
            ready &= ranks >= 0
        if self._caps:
            rooms: Floats = np.full(len(self._credentials.table), inf)
            for kind, (room, _) in enumerate(self.fairshare.rooms(now)):
                if room.min() < inf:  # -1 (no such name) is the last entry
                    np.minimum(rooms, room[self._credentials.table[:, kind]], out=rooms)
            ready &= queue.size * queue.walltime <= rooms[queue.code]
        return ready

    def _selected(self, ready: Bools, ranks: Floats, now: float, *, hard: bool, use: str) -> Bools:
        """Return which ready rows of the queue have jobs within the limits on jobs.

        The limits are those on running and on waiting jobs.

        Args:
            hard: whether to apply the hard limits; otherwise the soft limits apply.
            use: as in `Limits.considered`.
        """
        allowed = self.limits.allowed(self.queue, now, hard=hard)
        selected = ready.copy() if allowed is None else ready & allowed
        if self.limits.idle:
            selected = self.limits.considered(self.queue, selected, ranks, hard=hard, use=use)
        for number in self._preemption.kept:  # jobs are already being preempted for these
            selected[self.queue.row_of[number]] = False
        return selected

    def _note_blocked(self, ready: Bools, ranks: Floats, now: float) -> None:
        """Record the jobs that accrue no queue time until the next decision.

        JOBPRIOACCRUALPOLICY determines these jobs.
        """
        if not self._tracks_blocked:
            return
        waiting = self.queue.live
        if self._full_accrual:
            self._blocked = waiting & ~self._selected(ready & waiting, ranks, now, hard=True, use="accrual")
        else:
            self._blocked = waiting & ~self.limits.considered(self.queue, waiting, ranks, hard=True, use="accrual")

    # ------------------------------------------------------------------ in the order of priority

    def _start_in_order(self, eligible: Bools, ranks: Floats, now: float, *, hard: bool = False) -> bool:
        """Start jobs in priority order while they fit, then reserve units for the next.

        With ``hard`` limits no reservation is made, and the first job that does not fit ends the loop. Return whether
        any job started; if so, rows that were eligible may now exceed a limit.
        """
        queue, plan = self.queue, self._plan
        reserves = self._policy != "NEVER" and not hard
        left = [depth if reserves else 0 for depth, _ in self._settings.stacks.values()]
        keys = np.where(eligible, ranks, -inf)
        started = False
        preempts = self._preemption.active and not hard

        def stack_of(row: int) -> int:
            return int(self._stacks()[queue.code[row]])

        def by_rank() -> Iterator[int]:
            while len(keys) and keys[row := int(np.argmax(keys))] != -inf:
                keys[row] = -inf
                job, walltime = queue.job(row), float(queue.walltime[row])
                if job.number in self.reserved and not hard:
                    if (stack := stack_of(row)) >= 0:
                        left[stack] -= 1
                elif started and self.limits.blocked(
                    int(queue.code[row]), int(queue.size[row]), walltime, now, hard=hard
                ):
                    eligible[row] = False
                    self._drop_blocked(eligible, keys, now, hard=hard)
                else:
                    yield row

        def start(row: int) -> bool:
            nonlocal started
            job, access, walltime = queue.job(row), int(queue.access[row]), float(queue.walltime[row])
            taken = plan.fit_now(access, job, walltime)
            if taken is not None:
                self._start(row, taken, now, None, float(ranks[row]))
                started = True
            elif preempts and self._preemption.make_room(
                job, int(queue.code[row]), access, walltime, float(ranks[row])
            ):
                kept = self._preemption.kept[job.number]
                plan.keep(plan.place(job, kept.taken, now, end_of(now, walltime)))
            else:
                return False
            eligible[row] = False
            return True

        def reserve(row: int) -> bool:
            job, stack = queue.job(row), stack_of(row)
            if stack >= 0 and left[stack] > 0:
                left[stack] -= 1
                place = plan.reserve(int(queue.access[row]), job, float(queue.walltime[row]))
                if place is not None:
                    self.reserved[job.number] = place
            if all(number <= 0 for number in left):
                return False
            if stack < 0 or left[stack] <= 0:
                keys[self._stacks()[queue.code] == stack] = -inf
            return True

        start_or_reserve(by_rank(), start, reserve)
        return started

    def _stacks(self) -> Ints:
        """Return which RESERVATIONDEPTH[X] applies to each combination of credentials.

        The result has the position of X in the settings; -1 if none applies.
        """
        numbers = self._stack_numbers
        for names in self._credentials.combinations[len(numbers.array()) :]:
            stacks = self._settings.stacks.values()
            numbers.append(next((n for n, (_, of) in enumerate(stacks) if of is None or names.qos in of), -1))
        return numbers.array()

    def _drop_blocked(self, eligible: Bools, keys: Floats, now: float, *, hard: bool) -> None:
        """Make jobs that now exceed a limit ineligible, and set their ``keys`` to -inf.

        The arrays have one row per job of the queue. This is called after starts, which may have used up a limit.
        """
        rows = np.flatnonzero(eligible)
        allowed = self.limits.allowed(self.queue, now, hard=hard, rows=rows)
        if allowed is not None:
            beyond = rows[np.flatnonzero(~allowed)]
            eligible[beyond] = False
            keys[beyond] = -inf

    def _keep_reservations(self, ranks: Floats, restrictions: list[Restriction], now: float) -> None:
        """Renew the reservations of the last decision, at the same or earlier starts."""
        queue, plan = self.queue, self._plan
        jobs = [queue.job(queue.row_of[number]) for number in self.reserved if number in queue.row_of]
        jobs.sort(key=lambda job: (-ranks[queue.row_of[job.number]], job.number))
        places = self.reserved
        self.reserved = {}
        for job in jobs:
            others = [*self.reserved.values(), *(places[other.number] for other in jobs if other is not job
                                                 and other.number not in self.reserved)]  # fmt: skip
            plan.begin(restrictions, len(jobs) + len(self._settings.stacks))
            self._keep_for_preemptors(now)
            for place in others:
                if place.begin >= now:
                    plan.keep(place)
            row = queue.row_of[job.number]
            new = plan.find(int(queue.access[row]), job, float(queue.walltime[row]))
            if new is not None:
                self.reserved[job.number] = new
        plan.begin(restrictions, len(jobs) + sum(depth for depth, _ in self._settings.stacks.values()))
        self._keep_for_preemptors(now)
        for job in jobs:
            kept = self.reserved.get(job.number)
            row = queue.row_of[job.number]
            code, size, walltime = int(queue.code[row]), int(queue.size[row]), float(queue.walltime[row])
            if kept is None or not plan.is_free(int(queue.access[row]), kept):
                self.reserved.pop(job.number, None)
            elif kept.begin > now or self.limits.blocked(code, size, walltime, now, hard=False) is not None:
                plan.keep(kept)
            else:
                self.reserved.pop(job.number)
                self._start(row, plan.taken(kept), now, None, float(ranks[row]))

    def _start(self, row: int, taken: Any, now: float, why: str | None, priority: float) -> None:
        queue, plan = self.queue, self._plan
        job, code, walltime = queue.job(row), int(queue.code[row]), float(queue.walltime[row])
        size = plan.size(job)
        plan.start(job, taken, why)
        queue.remove(job)
        end = end_of(now, walltime)
        self._running[job.number] = (job, code)
        plan.started(job, taken, end)
        self.limits.started(job.number, size, code, end)
        self.fairshare.started(now, code, size)
        if self._preemption.active:
            self._preemption.started(job, code, priority)

    # ------------------------------------------------------------------ backfilling

    def _backfill(self, eligible: Bools, ranks: Floats, now: float, *, hard: bool, changed: bool) -> None:
        queue = self.queue
        if not len(queue):
            return
        for number in self.reserved:
            eligible[queue.row_of[number]] = False
        first = next(iter(self.reserved), None)
        why = None if first is None else f"backfilled before {queue.job(queue.row_of[first]).id}"

        def start(row: int) -> bool:
            job = queue.job(row)
            taken = self._plan.fit_now(int(queue.access[row]), job, float(queue.walltime[row]))
            if taken is not None:
                if self.priorities.counts_bypasses:
                    ahead = (ranks > ranks[row]) | ((ranks == ranks[row]) & (np.arange(len(ranks)) < row))
                    queue.bypass[ahead & queue.live] += 1.0
                self._start(row, taken, now, why, float(ranks[row]))
            return taken is not None

        jobs = Backfilled(
            queue,
            start,
            eligible,
            ranks,
            allowed=lambda rows: self.limits.allowed(queue, now, hard=hard, rows=rows),
            changed=changed,
        )
        self._plan.backfill(jobs, len(self._accesses), self._fill)
