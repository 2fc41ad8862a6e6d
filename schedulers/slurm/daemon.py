"""Run slurmctld's activities at the right times.

The activities are the main loop, backfill, checks of time limits, and recalculations of priorities.
"""

import json
from bisect import insort
from math import ceil, floor, inf
from typing import Any, Final

from msgspec import Struct

from pipistrelle.schedulers.slurm.accounts.reasons import is_of_usage
from pipistrelle.schedulers.slurm.backfill.backfill_pass import backfill_pass
from pipistrelle.schedulers.slurm.backfill.memory import Memory
from pipistrelle.schedulers.slurm.backfill.results import BackfillResult
from pipistrelle.schedulers.slurm.cluster.jobs import PREEMPTED, TIMEOUT, SlurmJob
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.job_order import build_queue
from pipistrelle.schedulers.slurm.passes.main_pass import PassResult, main_pass

#: s from a kill until its nodes report that the job has ended
EPILOG: Final = 0.02
_MICRO: Final = 1e-6
#: passes over the full queue in a row that start nothing, after which waiting jobs may wait forever
_BARREN: Final = 2
#: how long jobs may wait for past usage to decay while nothing else happens (s)
_PATIENCE: Final = 2 * 86400
#: events come after what the controller does at the same second
_EVENT: Final = 1e-3
#: whole seconds are compared, so a tick that comes a little early counts
_SLACK: Final = 1e-4


class Actions(Struct):
    """What the controller did at one moment, in order.

    Attributes:
        started: records of jobs started.
        killed: jobs that reached their time limits.
        preempted: (victim, REQUEUE or CANCEL, grace time in s).
        passes: (kind, result) of each pass, if the daemon keeps them.
    """

    started: list[SlurmJob]
    killed: list[SlurmJob]
    preempted: list[tuple[SlurmJob, str, float]]
    passes: list[tuple[str, PassResult | BackfillResult]]


class Daemon:
    """Runs a controller in simulated time.

    Call `advance` at each time that `next_time` returns. Within one second the order is: main loop, backfill,
    recalculation, events of jobs.

    Args:
        keep: keep the results of all passes in the actions.
        complete: also run the parts of backfill passes that cannot start a job and only renew expected starts.
        looks_last: once its interval is over, backfill looks for changes after the other activities of the second, not
            before. On a real cluster, this depends on when the threads of slurmctld began to sleep.
    """

    def __init__(
        self, controller: Controller, *, keep: bool = False, complete: bool = True, looks_last: bool = False
    ) -> None:
        config = controller.config
        self.controller = controller
        self.parameters = config.scheduler_parameters
        self.start = int(config.start)
        self.keep = keep
        self.looks_last = looks_last
        self.complete = complete
        #: whether backfill renews the expected starts of all jobs; see `expect`
        self.expects = complete
        self.backfills = config.scheduler_type == "sched/backfill"
        self.recalculates = config.accounting_storage and not controller.basic
        self.interval = self.parameters.sched_interval
        #: fraction of a second at which the main loop ticks
        self.phase = 0.0
        self.last_full = float(self.start)
        self.last = float(self.start)
        #: when the last pass began, for ``sched_min_interval``
        self.last_pass = -inf
        #: a pass that ``sched_min_interval`` put off: when, and whether of the full queue
        self.put_off: tuple[float, bool] | None = None
        self.requests: list[float] = []
        #: passes that an epilog asks for at once
        self.at_once: list[float] = []
        self.last_backfill = float(self.start)
        #: nodes in Slurm's state PLANNED since the last backfill
        self.planned = 0
        #: when anything last changed that backfill looks at
        self.touched = float(self.start)
        #: the first such change since the last backfill; inf: none
        self.work = float(self.start)
        #: whether usage may kill jobs, and the time of the last change of usage that no check has seen; inf: none
        self.kills = controller.limits.kills
        self.usage_changed = inf
        self.next_recalculation = self.start + max(1, int(config.priority.calc_period))
        #: full passes in a row that started nothing, since anything happened to a job
        self.barren = 0
        #: (changes to the controller, whether any job was tested) of the last main pass if the next one would find the
        #: same: nothing to start
        self._quiet: tuple[int, bool] | None = None
        #: what backfill passes found out
        self._memory = Memory()
        #: killed jobs with the time at which their nodes are usable again, and whether they are queued again
        self.ending: list[tuple[float, int, SlurmJob, bool]] = []
        self._actions = Actions([], [], [], [])
        self._now = 0.0

    def expect(self, now: float) -> None:
        """Renew the expected starts of all waiting jobs, unless passes already do so.

        From now on, every backfill pass renews all expected starts, even if no job can start.
        """
        if self.expects:
            return
        self.expects = True
        copy = Controller(self.controller.config)
        copy.restore(json.loads(json.dumps(self.controller.state())))
        backfill_pass(copy, int(now))
        for serial, job in copy.pending.items():
            self.controller.pending[serial].expected = job.expected

    def touch(self, now: float) -> None:
        """Record that the cluster changed at ``now`` (s), so that backfill runs again."""
        self.touched = max(self.touched, now)
        self.work = min(self.work, now)

    def request(self, time: float) -> None:
        """Request a pass of the main loop at ``time`` (s)."""
        self._quiet = None
        insort(self.requests, time)

    def submitted(self, now: float) -> None:
        """Record a submission, and request a pass of the main loop."""
        self.barren = 0
        self.request(now)
        self.touch(now + _EVENT)

    def ended(self, job: SlurmJob, state: str, now: float, request: float) -> None:
        """Record that a running job has ended by itself.

        Also request a pass at ``request`` (s).
        """
        self.barren = 0
        self.controller.release(job, state, int(now))
        self.usage_changed = min(self.usage_changed, now + _EVENT)
        self.request(request)
        self.touch(now + _EVENT)

    def next_time(self) -> float:
        """Return when to call `advance` next (s).

        Return inf if nothing will happen without further events.
        """
        soonest = inf
        if self.at_once:
            soonest = self.at_once[0]
        if self.ending:
            soonest = min(soonest, self.ending[0][0])
        if self.put_off is not None:
            soonest = min(soonest, self.put_off[0])
        soonest = min(soonest, self._next_tick(), self._next_backfill(), self._next_limit_check())
        waiting = self.controller.reservations.waiting
        if waiting:
            soonest = min(soonest, waiting[0].announced)
        return soonest

    def _next_tick(self) -> float:
        """Return the time of the main loop's next tick that runs a pass (s).

        Return inf if no pass is due.
        """
        soonest = inf
        if self.controller.pending and self.interval is not None:
            soonest = self._tick_at(self.last_full + self.interval)
        if self.requests:
            tick = floor(self.requests[0] + _MICRO - self.phase) + 1 + self.phase
            soonest = min(soonest, max(tick, self._tick_at(self.last + self.parameters.batch_sched_delay)))
        return soonest

    def _tick_at(self, time: float) -> float:
        """Return the time (s) of the main loop's first tick at or after ``time``."""
        return ceil(time - self.phase - _SLACK) + self.phase

    def _next_backfill(self) -> float:
        if not self.backfills:
            return inf
        if self.work < inf and (self.controller.pending or self.complete):
            due = self.last_backfill + self.parameters.bf_interval
            return due if self.work <= due else self._next_look()
        return inf

    def _next_look(self) -> float:
        """Return when backfill next looks for changes, which it does each second once its interval is over (s)."""
        return float(ceil(self.work) if self.looks_last else floor(self.work) + 1)

    def _next_limit_check(self) -> float:
        running = self.controller.running
        if not running:
            return inf
        first = self._kill_time(running[0][2])
        if self.kills:
            first = min(first, self.usage_changed, self.next_recalculation + _EVENT if self.recalculates else inf)
        period = self.controller.config.limit_check
        return self.start + ceil(max(0.0, first - self.start) / period) * period

    def _kill_time(self, job: SlurmJob) -> float:
        own = self.controller.machine.partitions[job.part].settings.over_time_limit
        return job.limit_end + (self.controller.config.over_time_limit if own is None else own)

    def advance(self, now: float) -> Actions:
        """Run every activity that is due at ``now`` (s).

        No activity may be due earlier, so call this at each time that `next_time` returns.
        """
        self._actions = Actions([], [], [], [])
        self._now = now
        self.catch_up(now)
        while self.ending and self.ending[0][0] <= now + _MICRO:
            _, _, job, again = self.ending.pop(0)
            self.controller.clean(job)
            if again:
                self.controller.requeue(job, int(now))
            self.at_once.append(now)
            self.touch(now)
        if self._next_limit_check() <= now:
            self._check_limits(now)
        if self.controller.reservations.advance(now):
            self.request(now)
            self.touch(now + _EVENT)
        if self._next_tick() <= now:
            full = self.interval is not None and now - self.last_full >= self.interval - _SLACK
            if full:
                self.last_full = float(floor(now))
            self.last = float(floor(now))
            self.requests = [time for time in self.requests if time >= now - _MICRO]
            self._pass(now, full=full)
        if self.put_off is not None and self.put_off[0] <= now:
            full, self.put_off = self.put_off[1], None
            self._run(now, full=full)
        if self.at_once and self.at_once[0] <= now + _MICRO:
            self.at_once = [time for time in self.at_once if time > now + _MICRO]
            self._pass(now, full=False)
        if self._next_backfill() <= now:
            self._backfill(now)
        if self.recalculates and self.next_recalculation <= now:
            self._recalculate(self.next_recalculation)
        return self._actions

    def catch_up(self, now: float) -> None:
        """Run the recalculations that are due before ``now``.

        Also skip full passes over an empty queue, up to the one at ``now`` itself.
        """
        while self.recalculates and self.next_recalculation < now:
            self._recalculate(self.next_recalculation)
        if self.interval is not None and not self.controller.pending:
            behind = floor((now - self.last_full + _MICRO) / self.interval)
            if behind > 0:
                self.last_full += behind * self.interval
                self.last = max(self.last, self.last_full)
                self.requests = [time for time in self.requests if time >= self.last_full - _MICRO]

        while self.backfills and not self.complete and not self.controller.pending and self.work < inf:
            due = self.last_backfill + self.parameters.bf_interval
            due = due if self.work <= due else self._next_look()
            if due >= now:
                break
            self.last_backfill = due
            self.work = self.touched if self.touched >= floor(due) else inf

    def _recalculate(self, now: int) -> None:
        self.controller.recalculate(now)
        self.usage_changed = min(self.usage_changed, now + _EVENT)
        if self.controller.pending:
            self.touch(now + _EVENT if self.looks_last else now)
        self.next_recalculation = now + max(1, int(self.controller.config.priority.calc_period))

    def _pass(self, now: float, *, full: bool) -> None:
        """Run a pass of the main loop, or postpone it.

        It is postponed if the last pass was less than ``sched_min_interval`` ago.
        """
        least = self.parameters.sched_min_interval * _MICRO
        if self.put_off is not None:
            self.put_off = (self.put_off[0], self.put_off[1] or full)
        elif now - self.last_pass < least - _MICRO:
            step = min(max(least / 2, 0.01), 1.0)
            self.put_off = (now + ceil((self.last_pass + least - now) / step - _MICRO) * step, full)
        else:
            self._run(now, full=full)

    def _run(self, now: float, *, full: bool) -> None:
        self.last_pass = now
        controller = self.controller
        if self._quiet is not None and self._quiet[0] == controller.changed:
            self.barren += full
            if self._quiet[1]:
                self.touch(now)
            return
        result = main_pass(controller, int(now), full=full, preempt=self._preempt)
        self.barren = 0 if result.started else self.barren + full
        self._actions.started += result.started
        if self.keep:
            self._actions.passes.append(("main-full" if full else "main", result))
        if result.started or result.seen or controller.gated:
            self.touch(now)
        finds_again = not (self.complete or result.started or result.note or controller.gated) and self._timeless(now)
        self._quiet = (controller.changed, result.seen) if finds_again else None

    def _timeless(self, now: float) -> bool:
        """Return whether a pass of the main loop repeats the last pass if nothing happened in between.

        GPU counts do not matter, because the tests of the main loop forget what earlier tests counted.
        """
        controller = self.controller
        reservations = controller.reservations
        if reservations.all or reservations.waiting or self.parameters.bf_min_age_reserve:
            return False
        running, preemption = controller.running_jobs(), controller.preemption
        return not any(
            one.job.sub.switches or preemption.may_preempt(one.job, one.part, running)
            for one in build_queue(controller, int(now))
        )

    def _backfill(self, now: float) -> None:
        self.last_backfill = now
        self.work = now if self.touched >= floor(now) else inf
        result = backfill_pass(
            self.controller,
            int(now),
            preempt=self._preempt,
            complete=self.complete,
            expects=self.expects,
            memory=self._memory,
        )
        self._actions.started += result.started
        if result.outcomes:
            self._quiet = None
        if self.keep:
            self._actions.passes.append(("backfill", result))
        if result.changed or result.preempted or result.planned or self.planned or self.controller.gated:
            self.touch(now)
        self.planned = result.planned

    def stuck(self, now: float) -> bool:
        """Return whether only a submission or a failed node's return lets a job start.

        This is the case if no job runs, nothing is due, and two full passes in a row have started nothing. If limits of
        past usage keep jobs waiting, it is the case once nothing has started for two days.
        """
        controller = self.controller
        if not controller.pending or controller.running or self.ending or self.barren < _BARREN:
            return False
        if controller.reservations.all or controller.reservations.waiting:
            return False
        impatient = self.barren * (self.interval or 0) >= _PATIENCE
        return not any(
            job.begin > now or (is_of_usage(job.reason) and not impatient) or any(one.delay for one in job.depends)
            for job in controller.pending.values()
        )

    def _check_limits(self, now: float) -> None:
        """Kill the running jobs that have reached a time limit or a limit on past usage."""
        for _, _, job in list(self.controller.running):
            if self._kill_time(job) > now:
                break
            self._actions.killed.append(job)
            self.kill(job, TIMEOUT, now)
        if self.kills and self.usage_changed <= now:
            self.usage_changed = inf
            for job in list(self.controller.running_jobs()):
                if self.controller.limits.is_used_up(job):
                    self._actions.killed.append(job)
                    self.kill(job, TIMEOUT, now)

    def kill(self, job: SlurmJob, state: str, now: float, *, again: bool = False) -> None:
        """Kill a running job.

        Its nodes report the end a moment later, and then a pass runs at once.

        Args:
            state: the job's final state.
            again: whether the job is requeued.
        """
        self.controller.release(job, state, int(now), completing=True)
        self.usage_changed = min(self.usage_changed, now + _EVENT)
        insort(self.ending, (now + EPILOG, job.serial, job, again))
        self.touch(now)

    def _preempt(self, victim: SlurmJob, _: SlurmJob) -> None:
        preemption = self.controller.preemption
        mode, grace = preemption.mode_of(victim), preemption.grace_of(victim)
        self._actions.preempted.append((victim, mode, grace))
        if not grace:
            self.kill(victim, PREEMPTED, self._now, again=mode == "REQUEUE")
        else:
            victim.preempted_by = 1

    def state(self) -> dict[str, Any]:
        """Return the times of past and future activities, and all other state.

        The values are plain.
        """
        return {
            "phase": self.phase,
            "barren": self.barren,
            "last_full": self.last_full,
            "last": self.last,
            "last_pass": None if self.last_pass == -inf else self.last_pass,
            "put_off": None if self.put_off is None else list(self.put_off),
            "requests": self.requests,
            "at_once": self.at_once,
            "last_backfill": self.last_backfill,
            "touched": self.touched,
            "work": None if self.work == inf else self.work,
            "planned": format(self.planned, "x"),
            "next_recalculation": self.next_recalculation,
            "usage_changed": None if self.usage_changed == inf else self.usage_changed,
            "ending": [[time, serial, again] for time, serial, _, again in self.ending],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what the method `state` returned; the controller must be restored first."""
        self.phase, self.barren = state["phase"], state["barren"]
        self.last_full, self.last = state["last_full"], state["last"]
        self.last_pass = -inf if state["last_pass"] is None else state["last_pass"]
        self.put_off = None if state["put_off"] is None else (state["put_off"][0], state["put_off"][1])
        self.requests, self.at_once = list(state["requests"]), list(state["at_once"])
        self.last_backfill, self.touched = state["last_backfill"], state["touched"]
        self.work = inf if state["work"] is None else state["work"]
        self.planned = int(state["planned"], 16)
        self.next_recalculation = state["next_recalculation"]
        self.usage_changed = inf if state["usage_changed"] is None else state["usage_changed"]
        jobs = {job.serial: job for some in self.controller.by_number.values() for job in some}
        self.ending = [(time, serial, jobs[serial], again) for time, serial, again in state["ending"]]
