"""One pass of sched/backfill over the queue."""

from collections.abc import Callable
from math import inf
from typing import Final

from msgspec.structs import replace

from pipistrelle.schedulers.slurm.accounts.reasons import is_limit
from pipistrelle.schedulers.slurm.backfill.memory import Memory
from pipistrelle.schedulers.slurm.backfill.results import BEYOND, RESERVES, STARTED, BackfillResult, TestOutcome
from pipistrelle.schedulers.slurm.backfill.search import Search
from pipistrelle.schedulers.slurm.backfill.space import Space
from pipistrelle.schedulers.slurm.cluster.bits import mask_of
from pipistrelle.schedulers.slurm.cluster.jobs import PENDING, SlurmJob
from pipistrelle.schedulers.slurm.nodes.asked import Chosen
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.eligible import array_may_start
from pipistrelle.schedulers.slurm.passes.job_order import QueueEntry, build_queue
from pipistrelle.schedulers.slurm.passes.placing import HELD, LICENSES, STARTS, licenses_free, place, preempt_for
from pipistrelle.schedulers.slurm.passes.request import YEAR

#: position in `_Pass.most_tested` of the limit per association
_BY_ASSOCIATION: Final = 2


def backfill_pass(
    controller: Controller,
    now: int,
    *,
    preempt: Callable[[SlurmJob, SlurmJob], None] | None = None,
    complete: bool = True,
    expects: bool = True,
    memory: Memory | None = None,
) -> BackfillResult:
    """Start jobs in queue order that do not delay an earlier job's expected start.

    Args:
        preempt: called with each victim and the job that needs the victim's nodes.
        complete: whether ``changed`` in the result must be the same as in Slurm. If not, it is also true if the pass
            finds that no remaining job may start.
        expects: whether a pass that finds this continues, to renew the expected starts of the remaining jobs; implied
            by ``complete``.
        memory: results of the controller's earlier passes, which this pass uses and updates to save time.
    """
    controller.reservations.advance(now)
    queue = build_queue(controller, now)
    memory = memory or Memory()
    memory.begin(controller, now)
    known = memory.recall_pass(queue, complete=complete, expects=expects)
    if known is not None:
        return replace(known)
    this = _Pass(controller, now, preempt, memory, complete=complete, expects=expects)
    result = this.run(queue)
    if not (result.started or result.preempted) and this.is_timeless(queue):
        memory.keep_pass(queue, result, complete=complete, expects=expects)
    return result


class _Pass:
    def __init__(
        self,
        controller: Controller,
        now: int,
        preempt: Callable[[SlurmJob, SlurmJob], None] | None,
        memory: Memory,
        *,
        complete: bool,
        expects: bool,
    ) -> None:
        self.complete = complete
        self.expects = expects
        #: places in the queue of jobs that may start in this pass, or must be tested; None: every job is tested
        self.open_places: list[int] | None = None
        self.controller = controller
        self.now = now
        self.preempt = preempt
        self.parameters = controller.config.scheduler_parameters
        self.window = self.parameters.bf_window * 60
        self.result = BackfillResult([], [], [])
        machine = controller.machine
        usable = machine.all & ~machine.down
        self.space = Space(now, self.window, usable, self.parameters.bf_resolution)
        self.memory = memory
        self.search = Search(controller, now, self.space, usable, memory)
        self.most_records = self.parameters.bf_node_space_size or self.parameters.bf_max_job_test
        self.tried = 0
        parameters = self.parameters
        #: most jobs tested per partition, per user in a partition, per association and per user; 0: no limit
        self.most_tested = (
            parameters.bf_max_job_part,
            parameters.bf_max_job_user_part,
            parameters.bf_max_job_assoc,
            parameters.bf_max_job_user,
        )
        #: {(kind of limit, who): jobs tested}
        self.counted: dict[tuple[int, str], int] = {}
        self.reserved_in: dict[int, int] = {}
        self.rejected: tuple[int, int] | None = None
        #: the last array with reservations, and for how many of its tasks
        self.reserved_tasks = (0, 0)

    def run(self, queue: list[QueueEntry]) -> BackfillResult:
        """Test the jobs of the queue in order, and return the result of the pass."""
        controller = self.controller
        running, preemption = controller.running_jobs(), controller.preemption
        if self.parameters.bf_running_job_reserve:
            for one in sorted(running, key=lambda job: job.serial):
                self._keep_nodes(one)
        preempts = any(preemption.may_preempt(one.job, one.part, running) for one in queue)
        if self.complete or preempts or not controller.limits.idle:
            for waiting in controller.pending.values():
                waiting.expected = 0
        else:
            self.open_places = list(range(len(queue)))
        renewed: set[int] = set()
        #: nodes planned by the jobs before the end of the queue, at which no job may start
        planned: int | None = None
        for at, entry in enumerate(queue):
            if planned is None and not self._any_start(queue, at):
                self.result.changed = True
                if not self.expects:
                    break
                planned = self.result.planned
            if self.tried >= self.parameters.bf_max_job_test:
                self.result.note = f"limit of {self.parameters.bf_max_job_test} reached"
                break
            if entry.job.state != PENDING:
                continue
            if self.open_places is not None and entry.job.serial not in renewed:
                renewed.add(entry.job.serial)
                entry.job.expected = 0
            if not self.parameters.assoc_limit_stop:
                entry.job.part = entry.part
                reason = controller.limits.before(entry.job)
                if reason:
                    entry.job.reason = reason
                    continue
                if is_limit(entry.job.reason):
                    entry.job.reason = "None"
            now_only = self._now_only(entry) or (not self.expects and self._is_last(queue, at))
            if not self._test_all(entry, now_only):
                break
        if planned is not None:
            self.result.planned = planned
        return self.result

    def is_timeless(self, queue: list[QueueEntry]) -> bool:
        """Return whether only the searches for starts depend on the time of the pass."""
        parameters, controller = self.parameters, self.controller
        if parameters.bf_min_prio_reserve or parameters.bf_min_age_reserve or not controller.limits.idle:
            return False
        if controller.accounts.sets_priorities:
            return False
        return not any(
            job.array_limit or job.sub.licenses or job.sub.switches or (job.array and len(job.parts) > 1)
            for job in (entry.job for entry in queue)
        )

    def _test_all(self, entry: QueueEntry, now_only: bool) -> bool:
        """Test a job, or the tasks of an array one after the other.

        Return False if the pass must stop after it.
        """
        controller = self.controller
        job: SlurmJob | None = entry.job
        while job is not None and job.state == PENDING:
            if job.array:
                if self.rejected == (job.array, entry.part):
                    break
                self.rejected = (job.array, entry.part)
                if not array_may_start(controller, job):
                    break
            current = job
            job = None
            outcome = TestOutcome(current)
            self.result.outcomes.append(outcome)
            if not self._test(current, entry, outcome, now_only):
                return False
            if outcome.kind == STARTED:
                if len(self.result.started) >= self.parameters.bf_max_job_start > 0:
                    self.result.note = "bf_max_job_start"
                    return False
                if current.state == PENDING:  # an array with more tasks
                    job = current
            elif outcome.kind == RESERVES and len(current.ids) > 1:
                array, reserved = self.reserved_tasks
                reserved = reserved + 1 if array == current.array else 1
                self.reserved_tasks = (current.array, reserved)
                most = self.parameters.bf_max_job_array_resv
                if reserved < min(most, len(current.ids)):
                    job = current
        return True

    def _any_start(self, queue: list[QueueEntry], begin: int) -> bool:
        """Return whether a job from position ``begin`` of the queue on must be tested.

        A job must be tested if it might start in this pass, or if its test has other effects. A job that cannot start
        now cannot start later in the pass, because starts and reservations only use up nodes.
        """
        places = self.open_places
        if places is None:
            return True
        while places:
            at = places[-1]
            if at < begin:
                return False
            waits = queue[at].job.state == PENDING
            if waits and (not self._is_plain(queue[at]) or self._may_start(queue[at])):
                return True
            places.pop()
        return False

    def _is_last(self, queue: list[QueueEntry], at: int) -> bool:
        """Return whether no job behind position ``at`` might start in this pass.

        If so, a reservation for the job at this position of the queue has no effect.
        """
        return self._is_plain(queue[at]) and not self._any_start(queue, at + 1)

    def _is_plain(self, entry: QueueEntry) -> bool:
        """Return whether a failed test of the job would change only its expected start."""
        if self.open_places is None or entry.job.sub.licenses:
            return False
        controller = self.controller
        one = controller.machine.partitions[entry.part]
        return all(map(controller.selector.is_plain, controller.requests.asked(entry.job, one, self.now)))

    def _may_start(self, entry: QueueEntry) -> bool:
        """Return whether a job might start in this pass.

        False means that the job certainly cannot start.
        """
        return self.search.may_start(entry.job, entry.part, self._limit(entry.job, entry.part))

    def _now_only(self, entry: QueueEntry) -> bool:
        """Return whether a job may start now but may not get a reservation for later."""
        parameters, job = self.parameters, entry.job
        job.part = entry.part
        least = self.controller.limits.least_priority(job, parameters.bf_min_prio_reserve)
        if least and entry.priority < least:
            return True
        if not least and parameters.bf_min_age_reserve and self.now - job.eligible < parameters.bf_min_age_reserve:
            return True
        if parameters.bf_one_resv_per_job and job.expected:
            return True
        most = parameters.bf_job_part_count_reserve
        return bool(most and self.reserved_in.get(entry.part, 0) >= most)

    def _over_counts(self, job: SlurmJob, part: int) -> bool:
        """Return whether a limit such as bf_max_job_part forbids to test one more job.

        If not, count this job as tested. The limits are per partition, user and association.
        """
        if not any(self.most_tested):
            return False
        counted = self.counted
        who = (str(part), f"{job.user} {part}", str(job.assoc), job.user)
        # Jobs without an association are not counted by association.
        keys = [
            (most, (kind, who[kind]))
            for kind, most in enumerate(self.most_tested)
            if most and (kind != _BY_ASSOCIATION or job.assoc >= 0)
        ]
        if any(counted.get(key, 0) >= most for most, key in keys):
            return True
        for _, key in keys:
            counted[key] = counted.get(key, 0) + 1
        return False

    def _test(self, job: SlurmJob, entry: QueueEntry, outcome: TestOutcome, now_only: bool) -> bool:
        """Test whether a job can start now or get a reservation.

        Return False to stop the pass.
        """
        controller, now = self.controller, self.now
        part = entry.part
        job.part = part
        if self._over_counts(job, part):
            return True
        if not self.parameters.bf_licenses and not licenses_free(controller, job, now):
            return True
        limit = self._limit(job, part)
        no_reserve = job.qos >= 0 and "NoReserve" in controller.accounts.qos[job.qos].settings.flags
        earlier = job.expected
        found = self.search.find(job, part, limit, now_only)
        self.tried += found.tested
        if found.chosen is not None:
            job.cpus = found.chosen.cpus
        if found.delayed:
            self.result.changed = True
        start, chosen = found.start, found.chosen
        if start is None or chosen is None:
            return True
        if start <= now:
            if self._start(job, part, found.nodes, outcome, limit):
                return True
            if outcome.kind:
                held, outcome.kind = outcome.kind == "held", ""
                if not held or now_only or not self.parameters.assoc_limit_stop:
                    return True
                found = self.search.find_held(job, part, limit, chosen)
                start, chosen = found.start, found.chosen
                if start is None or chosen is None:
                    return True
        elif now_only:
            job.expected = start
            return True
        begin, until = self.space.rounded(start), self.space.rounded(start + limit)
        if start > now + self.window:
            outcome.kind, outcome.start, outcome.end, outcome.nodes = BEYOND, start, until, chosen.nodes
            job.expected = start
            return True
        return self._reserve(job, part, outcome, chosen, (start, begin, until), no_reserve, earlier)

    def _limit(self, job: SlurmJob, part: int) -> int:
        """Return the time limit (s) with which a job is tested in a partition."""
        most = self.controller.machine.partitions[part].settings.max_time
        limit = min(job.limit, int(most)) if most < YEAR else job.limit
        shortest = job.sub.time_min
        return int(shortest) if shortest is not None and shortest < limit else limit

    def _start(self, job: SlurmJob, part: int, nodes: int, outcome: TestOutcome, limit: int) -> bool:
        """Start a job on some of the nodes in a bit mask; return whether it started."""
        controller, now = self.controller, self.now
        closed = controller.machine.all & ~nodes
        placed = place(controller, job, part, controller.machine.all, now, closed=closed)
        if placed.code == STARTS:
            assert placed.alloc is not None
            full_limit = job.limit
            if limit < job.limit:
                job.limit = self._longest(mask_of(placed.alloc), limit, job.limit)
            running = controller.start(job, placed.alloc, now)
            if running is not job:
                job.limit = full_limit
            self.result.started.append(running)
            self.result.changed = True
            self.memory.renew(controller)
            self._keep_nodes(running)
            outcome.kind, outcome.nodes = STARTED, running.nodes
            outcome.job = running
            self.rejected = None
            return True
        if placed.victims and self.preempt is not None:
            self.result.preempted += preempt_for(controller, job, placed.victims, self.preempt, now)
            self.memory.renew(controller)
        if placed.code in (HELD, LICENSES):
            outcome.kind = "held" if placed.code == HELD else "licenses"
        return False

    def _keep_nodes(self, job: SlurmJob) -> None:
        """Reserve the nodes of a running job until its time limit if it is exclusive and cannot be preempted.

        Jobs that get whole nodes for another reason count as running only, as in Slurm.
        """
        mode = self.controller.preemption.mode_of(job)
        if job.sub.exclusive and mode == "OFF" and len(self.space) < self.most_records:
            reserved = self.space.rounded(self.now), self.space.rounded(job.limit_end), job.nodes
            self.space.reserve(*reserved)
            self.memory.reserved(reserved, -inf)

    def _longest(self, nodes: int, least: int, most: int) -> int:
        """Return the longest time limit (s) with which a job ends before the reservations.

        These are the reservations that this pass has made. Jobs with ``--time-min`` get the limit.

        Args:
            nodes: set of the nodes on which the job starts now.
            least, most: shortest and longest limit to return, s.
        """
        space, now = self.space, self.now
        at = 0
        while True:
            if space.begin[at] > now and nodes & ~space.open[at]:
                most = min(most, (space.begin[at] - now) // 60 * 60)
                break
            at = space.after[at]
            if not at:
                break
        return max(least, most)

    def _reserve(
        self,
        job: SlurmJob,
        part: int,
        outcome: TestOutcome,
        chosen: Chosen,
        times: tuple[int, int, int],
        no_reserve: bool,
        earlier: int,
    ) -> bool:
        """Reserve nodes for a later start, unless a limit would forbid the start.

        Return False, which ends the pass, if the table of reservations is full.
        """
        controller = self.controller
        start, begin, until = times
        one = controller.machine.partitions[part]
        if not (self.parameters.assoc_limit_stop or controller.limits.idle):
            reason = controller.limits.after(job, controller.requests.later_tres(job, one, chosen.alloc))
            if reason:
                job.reason = reason
                return True
        nodes = chosen.nodes
        outcome.kind, outcome.start, outcome.end, outcome.nodes = RESERVES, start, until, nodes
        if no_reserve:
            return True
        most = self.parameters.bf_job_part_count_reserve
        if most:
            if self.reserved_in.get(part, 0) >= most:
                return True
            self.reserved_in[part] = self.reserved_in.get(part, 0) + 1
        self.rejected = None
        if not self.parameters.bf_one_resv_per_job or not earlier:
            if len(self.space) >= self.most_records:
                self.result.note = f"table size limit of {self.most_records} reached"
                return False
            self.space.until = start if start > self.now else -inf
            self.space.reserve(begin, until, nodes)
            self.memory.reserved((begin, until, nodes), self.space.until)
        if not earlier or start < earlier:
            self.result.planned |= nodes & controller.machine.idle
        job.expected = min(start, earlier) if earlier else start
        return True
