"""Starts, interruptions and requeues of jobs on a machine that can fail."""

from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.failures.checkpointing import failure_rate
from pipistrelle.platforms.naming.numbering import NodeUnits
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.units.indices import numbers, pieces
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.attempts.accounting import (
    CHECKED_AT,
    NO_LIMIT,
    extended_walltime,
    fruitless_after,
    give_up_fruitless,
    give_up_hopeless,
    may_try_again,
    next_walltime,
    time_to_save,
    worked_until,
)
from pipistrelle.server.attempts.attempt import Attempt, AttemptRules, attempt_of
from pipistrelle.server.attempts.holders import Holders, ManyHolders
from pipistrelle.server.attempts.progress import AttemptProgress, RigidProgress, interval_of
from pipistrelle.server.engine.agenda import END
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job, Step
from pipistrelle.server.engine.lives import Dilation, JobLives, LimitChecks, Work
from pipistrelle.server.engine.observers import Reasons
from pipistrelle.traces.resilience import Resilience

if TYPE_CHECKING:  # most runs need no failure models
    from pipistrelle.platforms.failures.plan import FailurePlan


class Attempts(Kept):
    """The engine part that tracks the attempts of jobs that can lose their units.

    Args:
        rates: mean failure rate of each node (1/s), shape (nodes,).
        failures: failure models, which give the probability of a failure; None: unknown.
        work: carries out jobs whose runtime the simulated hosts decide; see `JobLives`.
    """

    _kept = ("_starts", "down", "_down_units", "unsettled")

    def __init__(
        self,
        clockwork: Clockwork,
        lives: JobLives,
        platform: Platform,
        node_units: NodeUnits,
        rules: AttemptRules,
        rates: NDArray[np.float64],
        *,
        failures: "FailurePlan | None" = None,
        work: Work | None = None,
        checks: LimitChecks | None = None,
        dilation: Dilation | None = None,
    ) -> None:
        self._clockwork = clockwork
        self._cluster = clockwork.cluster
        self._agenda = clockwork.agenda
        self._lives = lives
        self._node_units = node_units
        self._options = rules
        self._failures = failures
        self._work = work
        self._dilation = dilation
        self._checks = checks
        self._rates = rates
        self._mean_rate = float(rates.mean())
        #: largest number of units of a node
        self._each = max(pool.units_per_node for pool in platform.pools)
        #: whether all nodes have the same failure rate; the dump intervals computed so far
        self._uniform = bool((rates == rates[0]).all())
        self._intervals: dict[tuple[Resilience, int], float] = {}
        self._units = platform.units
        self._holders = ManyHolders(platform.units) if platform.shares_nodes else Holders(platform.units)
        #: {serial number: job} of the attempts that hold units
        self._jobs: dict[int, Job] = {}
        #: {serial number: job} of the attempts that hold units and wait for repairs
        self._held: dict[int, Job] = {}
        self._starts = 0
        self.down = NodeSet.EMPTY
        #: number of units that were down and not held at the last count
        self._down_units = 0
        #: whether units may have failed or come up since the last call of `idle_and_down`
        self.unsettled = False

    @property
    def at_work(self) -> bool:
        """Whether any job is working, so that at least one job is certain to end."""
        return len(self._jobs) > len(self._held)

    def submitted(self, job: Job) -> None:
        """Create the first attempt of a newly queued job.

        Do nothing if the job already has an attempt.
        """
        if job.attempt is None:
            resilience = job.resilience or self._options.resilience
            job.attempt = Attempt(0, job.id, job.submit, job.walltime, resilience)
            if self._options.walltime == "extended":
                job.walltime = self._extended(job.walltime, job.size, 0.0, resilience)

    def _extended(self, walltime: float, size: int, saved: float, resilience: Resilience) -> float:
        """Return a walltime (s) plus the time for reading and writing checkpoints.

        Failure rates are those of average nodes.
        """
        nodes = -(-size // self._each)
        rates = [self._mean_rate] * nodes if resilience.rates_matter else 0.0
        whole = AttemptProgress(resilience, start=0.0, work=0.0, saved=saved, nodes=range(nodes), rates=rates)
        return extended_walltime(walltime, saved, whole.slower, resilience.read, whole.interval, resilience.dump)

    def begins(self, job: Job) -> None:
        """Begin a job that just got its units, unless some of its nodes are down."""
        attempt = attempt_of(job)
        attempt.serial = self._starts
        self._starts += 1
        self._jobs[attempt.serial] = job
        attempt.parts = pieces(job.alloc)
        self._holders.hold(attempt.parts, attempt.serial, len(job.alloc))
        if self.down:
            attempt.awaited = self._node_units.nodes_of(job.alloc) & self.down
        if attempt.awaited:
            self.unsettled = True
            self._held[attempt.serial] = job
            attempt.waited = attempt.awaited
        else:
            self._set_off(job)

    def _set_off(self, job: Job) -> None:
        attempt = attempt_of(job)
        attempt.began = self._clockwork.now + job.prologue
        if job.work is not None:
            assert self._work is not None
            self._work.begins(job)
            return
        resilience = attempt.resilience
        if self._dilation is not None:
            attempt.dilation = self._dilation(job.alloc)
        if resilience.kind == "none":
            runtime = job.runtime * attempt.dilation
            if self._checks is None:
                job.in_time = runtime <= job.walltime
                attempt.work_ends = attempt.began + min(runtime, job.walltime)
            else:
                limit, killed = self._checks.deadline(job, attempt.began)
                job.in_time = attempt.began + runtime <= limit
                attempt.work_ends = min(attempt.began + runtime, killed)
            job.ending = self._agenda.put(attempt.work_ends + job.epilogue, END, job.id)
            return
        attempt.progress = self._progress_of(job, attempt)
        self.await_end(job)

    def _progress_of(self, job: Job, attempt: Attempt) -> AttemptProgress | RigidProgress:
        resilience = attempt.resilience
        nodes = self._node_units.nodes_of(job.alloc)
        work, saved = job.runtime * attempt.dilation, attempt.saved * attempt.dilation
        if resilience.tolerated(len(nodes)):
            return AttemptProgress(
                resilience,
                start=attempt.began,
                work=work,
                saved=saved,
                nodes=list(nodes),
                rates=self._rates[numbers(nodes)].tolist(),
            )
        return RigidProgress(
            start=attempt.began,
            work=work,
            saved=saved,
            nodes=len(nodes),
            interval=self._interval(resilience, nodes),
            dump=resilience.dump,
            read=resilience.read,
        )

    def _interval(self, resilience: Resilience, nodes: NodeSet) -> float:
        if not resilience.rates_matter:
            return interval_of(resilience, resilience.dump, 0.0)
        if not self._uniform:
            return interval_of(resilience, resilience.dump, failure_rate(self._rates[numbers(nodes)].tolist()))
        key = (resilience, len(nodes))
        if key not in self._intervals:
            self._intervals[key] = interval_of(resilience, resilience.dump, self._mean_rate * len(nodes))
        return self._intervals[key]

    def await_end(self, job: Job) -> None:
        """Schedule the end of a job, assuming no further failures."""
        attempt, agenda = attempt_of(job), self._agenda
        assert attempt.progress is not None
        self._forget_end(job)
        finish = attempt.progress.finish
        limit = killed = attempt.began + job.walltime
        if self._checks is not None:
            limit, killed = self._checks.deadline(job, attempt.began)
        job.in_time = finish <= limit
        attempt.work_ends = finish if job.in_time else min(finish, killed)
        if attempt.work_ends < inf:
            job.ending = agenda.put(attempt.work_ends + job.epilogue, END, job.id)

    def _forget_end(self, job: Job) -> None:
        if job.ending is not None:
            self._agenda.cancel(job.ending)
            job.ending = None

    def leaves(self, job: Job) -> None:
        """Record that a running job, which ends now, no longer holds its units."""
        attempt = attempt_of(job)
        if self._jobs.pop(attempt.serial, None) is None:  # its scheduler declared that it ran on no units
            return
        self._held.pop(attempt.serial, None)
        self._holders.release(attempt.parts, attempt.serial, len(job.alloc))
        if self.down:
            self.unsettled = True
        attempt.stopped = self.work_time(job)

    def work_time(self, job: Job) -> float:
        """Return the simulated time (s) at which a running job last worked.

        This is now, or the begin of the job's epilogue.
        """
        attempt = attempt_of(job)
        return worked_until(self._clockwork.now, attempt.began, attempt.work_ends)

    def share(self, job: Job) -> float:
        """Return the share of a running job's work that is done, 0 to 1."""
        attempt = attempt_of(job)
        if job.work is not None:  # it has not begun
            return 0.0
        done = attempt.saved
        account = attempt.account_at(self.work_time(job))
        if account is not None:
            done = account.saved + account.unsaved
        elif attempt.has_begun:
            done = (self.work_time(job) - attempt.began) / attempt.dilation
        return done / job.runtime if job.runtime > 0 else 1.0

    def state(self) -> dict[str, Any]:
        """Return the state of all attempts as JSON values, for a snapshot."""
        return {**super().state(), "held": list(self._held)}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore all attempts from a snapshot; the cluster must be restored before."""
        super().restore(state)
        for job in self._cluster.running.values():
            attempt = attempt_of(job)
            if attempt.serial >= 0:
                attempt.parts = pieces(job.alloc)
                self._jobs[attempt.serial] = job
                self._holders.hold(attempt.parts, attempt.serial, len(job.alloc))
        self._held = {serial: self._jobs[serial] for serial in state["held"]}

    def check_invariants(self) -> None:
        """Assert that the attempts agree with the units that jobs hold.

        Each unit is held by the job to which it is allocated, and each job with down nodes waits.
        """
        holding = []
        for job in self._cluster.running.values():
            attempt = attempt_of(job)
            if attempt.serial >= 0:
                assert self._jobs[attempt.serial] is job, f"{job.id} is not known by its serial number"
                assert bool(attempt.awaited) == (attempt.serial in self._held), f"{job.id} awaits {attempt.awaited}"
                holding.append((attempt.serial, attempt.parts))
        self._holders.check(holding)

    def is_awaited(self, job: Job) -> bool:
        """Return whether a running job ends only after an event that is not scheduled yet.

        Such an event is a repair, for example.
        """
        attempt = attempt_of(job)
        return attempt.serial in self._held or attempt.work_ends == inf

    def strike(self, nodes: NodeSet, why: Reasons) -> None:
        """Apply a failure of nodes to the jobs that hold them, in the order of job starts.

        Depending on its resilience, a job continues, waits for repairs, or loses its allocation.
        """
        for serial in sorted(self._holders.on(self._node_units.units_of(nodes))):
            job = self._jobs[serial]
            attempt = attempt_of(job)
            hit = self._node_units.nodes_of(job.alloc) & nodes
            if attempt.waited and attempt.began == self._clockwork.now + job.prologue:
                self._hold_again(job)
            if serial in self._held:
                attempt.awaited |= hit
                attempt.waited |= hit
                continue
            hit = hit - attempt.lost
            if not hit:
                continue
            attempt.lost |= hit
            self._strike(job, hit, why[hit.first][0])

    def _hold_again(self, job: Job) -> None:
        """Let a job wait until its failed nodes are repaired.

        The job's work began at this very instant.
        """
        attempt = attempt_of(job)
        if job.work is not None:
            assert self._work is not None
            self._work.over(job)
        self._forget_end(job)
        attempt.began, attempt.work_ends, attempt.progress = nan, inf, None
        self._held[attempt.serial] = job

    def _strike(self, job: Job, nodes: NodeSet, cause: str) -> None:
        attempt, now = attempt_of(job), self._clockwork.now
        progress = attempt.progress
        if now >= attempt.work_ends:  # the job is in its epilogue
            self._lives.end(job, "finish" if job.in_time else "reach_walltime")
        elif progress is not None and now >= attempt.began and progress.strike(now, list(nodes)):
            self.await_end(job)
        else:
            self._lose(job, cause)

    def forsake(self, nodes: NodeSet, cause: str) -> None:
        """End the jobs that wait for these nodes, which will never be repaired."""
        for job in list(self._held.values()):
            if not attempt_of(job).awaited.isdisjoint(nodes):
                self._lose(job, cause)

    def idle_and_down(self) -> tuple[int, int]:
        """Return the number of free units, and the number of down units that no job holds."""
        if self.unsettled:
            self.unsettled = False
            self._down_units = self._holders.free_among(self._node_units.units_of(self.down))
        return self._units - self._holders.held - self._down_units, self._down_units

    def set_down(self, nodes: NodeSet) -> None:
        """Set which nodes are down from now on."""
        self.down = nodes
        self.unsettled = True

    def repaired(self, nodes: NodeSet) -> None:
        """Begin the jobs that waited only for these repaired nodes."""
        for serial, job in list(self._held.items()):
            attempt = attempt_of(job)
            attempt.awaited = attempt.awaited - nodes
            if not attempt.awaited:
                del self._held[serial]
                self._set_off(job)

    def _lose(self, job: Job, cause: str) -> None:
        again = self.give_up(job, cause, "lose_nodes", comes_back=self._options.requeue != "never")
        if again is not None:
            if self._options.max_attempts is None:
                self._check_hope(again, self._node_units.nodes_of(job.alloc))
            self._clockwork.queue_at(self._clockwork.now, again)

    def give_up(self, job: Job, cause: str, step: Step, *, comes_back: bool) -> Job | None:
        """End a job's attempt early, and return the job to requeue.

        Return None if there is no further attempt.

        Args:
            cause: why the attempt ends.
            step: the change of the job's state.
            comes_back: whether the job gets a further attempt, if its maximum number of attempts allows one.
        """
        attempt = attempt_of(job)
        attempt.cause = cause
        attempt.retried = comes_back and may_try_again(attempt.number, self._options.max_attempts or NO_LIMIT)
        self._lives.end(job, step)
        return self._next(job) if attempt.retried else None

    def _check_hope(self, job: Job, nodes: NodeSet) -> None:
        """Raise Stalled if a requeued job is very unlikely ever to complete.

        ``nodes`` are the nodes of its last attempt.
        """
        attempt, now = attempt_of(job), self._clockwork.now
        give_up_fruitless(attempt.root, attempt.fruitless, now)
        most, plan = self._options.expected_attempts, self._failures
        if attempt.fruitless == CHECKED_AT and most and plan is not None:
            time = self._time_to_save(job, nodes)
            hazard = plan.hazard(self._rates.size, -(-job.size // self._each), time)
            give_up_hopeless(attempt.root, attempt.fruitless, now, time, hazard, most)

    def _time_to_save(self, job: Job, nodes: NodeSet) -> float:
        """Return the shortest time (s) until an attempt saves work; 0 if unknown."""
        saved, resilience = attempt_of(job).saved, attempt_of(job).resilience
        if job.work is not None or resilience.tolerated(len(nodes)):
            return 0.0
        interval = self._interval(resilience, nodes)
        return time_to_save(job.runtime - saved, job.walltime, saved, resilience.read, interval, resilience.dump)

    def _next(self, job: Job) -> Job:
        old, options = attempt_of(job), self._options
        saved = old.saved if old.account is None else min(old.account.saved, job.runtime)
        new = Attempt(old.number + 1, old.root, old.origin, old.asked, old.resilience, saved)
        new.fruitless = fruitless_after(old.fruitless, old.saved, saved)
        if options.requeue == "original":
            new.queued = old.origin
        suffix = new.number
        while self._cluster.knows(f"{new.root}#{suffix}"):  # a scheduler may have registered a job with this id
            suffix += 1
        walltime = next_walltime(old.asked, saved, options.restart_walltime == "rest")
        if options.walltime == "extended":
            walltime = self._extended(walltime, job.size, saved, old.resilience)
        again = job.again(new, self._clockwork.now, walltime)
        again.id = f"{new.root}#{suffix}"
        return again
