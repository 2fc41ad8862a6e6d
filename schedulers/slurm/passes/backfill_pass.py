"""One pass of sched/backfill over the queue."""

from collections.abc import Callable

from msgspec import Struct

from pipistrelle.schedulers.slurm.cluster.bits import mask_of
from pipistrelle.schedulers.slurm.cluster.jobs import PENDING, SlurmJob
from pipistrelle.schedulers.slurm.nodes.asked import Chosen, NodesAsked
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.eligible import array_may_start
from pipistrelle.schedulers.slurm.passes.job_order import QueueEntry, build_queue
from pipistrelle.schedulers.slurm.passes.placing import HELD, LICENSES, STARTS, licenses_free, place, preempt_for
from pipistrelle.schedulers.slurm.passes.request import YEAR
from pipistrelle.schedulers.slurm.passes.space import Space

#: kinds of outcomes
STARTED = "start"
RESERVES = "reserve"
#: the start lies beyond bf_window
BEYOND = "window"


class TestOutcome(Struct):
    """The result of backfill's test of one job.

    Attributes:
        kind: "start": the job starts now; "reserve": nodes are reserved for a later start; "window": the start lies
            beyond ``bf_window``; "": none of these.
        start, end: of the reservation, s; the end is rounded to ``bf_resolution``.
        nodes: set of the nodes on which the job starts now or later.
    """

    job: SlurmJob
    kind: str = ""
    start: int = 0
    end: int = 0
    nodes: int = 0


class BackfillResult(Struct):
    """The result of a backfill pass.

    Attributes:
        changed: whether the pass changed the table of jobs; if so, the next pass runs even without other changes.
        planned: set of idle nodes that were reserved (Slurm's state PLANNED).
    """

    outcomes: list[TestOutcome]
    started: list[SlurmJob]
    preempted: list[tuple[SlurmJob, SlurmJob]]
    note: str = ""
    changed: bool = False
    planned: int = 0


def backfill_pass(
    controller: Controller,
    now: int,
    *,
    preempt: Callable[[SlurmJob, SlurmJob], None] | None = None,
    complete: bool = True,
    expects: bool = True,
) -> BackfillResult:
    """Start jobs in queue order that do not delay an earlier job's expected start.

    Args:
        preempt: called with each victim and the job that needs the victim's nodes.
        complete: whether the table of jobs is changed only if Slurm changes it. Otherwise it also counts as changed if
            no job at the end of the queue may start now.
        expects: whether to renew the expected starts of these jobs; ``complete`` implies it.
    """
    return _Pass(controller, now, preempt, complete=complete, expects=expects).run()


class _Pass:
    def __init__(
        self,
        controller: Controller,
        now: int,
        preempt: Callable[[SlurmJob, SlurmJob], None] | None,
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
        self.usable = machine.all & ~machine.down
        resolution = self.parameters.bf_resolution
        self.space = Space(now, now + self.window, self.usable, resolution)
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

    def run(self) -> BackfillResult:
        """Test the jobs of the queue in order, and return the result of the pass."""
        controller = self.controller
        controller.reservations.advance(self.now)
        queue = build_queue(controller, self.now, backfill=True)
        if self.complete or controller.preemption.enabled or not controller.limits.idle:
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
            now_only = self._now_only(entry) or (not self.expects and self._is_last(queue, at))
            if not self._test_all(entry, now_only):
                break
        if planned is not None:
            self.result.planned = planned
        return self.result

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
                if reserved < min(most, len(current.ids)) and self._more_tasks(current, reserved):
                    job = current
        return True

    def _any_start(self, queue: list[QueueEntry], begin: int) -> bool:
        """Return whether a job at or after position ``begin`` of the queue must still be tested.

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
        """Return whether no job behind position ``at`` of the queue might start in this pass.

        If so, a reservation for the job at this position has no effect.
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
        controller, job = self.controller, entry.job
        selector, one = controller.selector, controller.machine.partitions[entry.part]
        asked = controller.requests.asked(job, one, self.now)
        if not any(selector.may_fit(way, self.usable) for way in asked):
            return False
        start, nodes, _ = self._open(job, one.mask, self.now, self._limit(job, entry.part))
        if start > self.now or nodes.bit_count() < job.min_nodes:
            return False
        return any(selector.may_fit(way, nodes) for way in asked)

    def _more_tasks(self, job: SlurmJob, reserved: int) -> bool:
        """Return whether the limit of running tasks (%N) lets another task of an array run.

        ``reserved`` tasks of the array already have reservations and count as running.
        """
        return not job.array_limit or reserved < job.array_limit

    def _now_only(self, entry: QueueEntry) -> bool:
        """Return whether a job may start now but may not get a reservation for a later start."""
        parameters, job = self.parameters, entry.job
        least = parameters.bf_min_prio_reserve
        if job.qos >= 0:
            least = self.controller.accounts.qos[job.qos].settings.min_prio_thresh or least
        if least and entry.priority < least:
            return True
        if not least and parameters.bf_min_age_reserve and self.now - job.eligible < parameters.bf_min_age_reserve:
            return True
        if parameters.bf_one_resv_per_job and job.expected:
            return True
        most = parameters.bf_job_part_count_reserve
        return bool(most and self.reserved_in.get(entry.part, 0) >= most)

    def _over_counts(self, job: SlurmJob, part: int) -> bool:
        """Return whether enough jobs were tested already, by a limit such as bf_max_job_part.

        If not, count this job as tested. The limits are per partition, user and association.
        """
        if not any(self.most_tested):
            return False
        counted = self.counted
        who = (str(part), f"{job.user} {part}", str(job.assoc), job.user)
        keys = [(most, (kind, who[kind])) for kind, most in enumerate(self.most_tested) if most]
        if any(counted.get(key, 0) >= most for most, key in keys):
            return True
        for _, key in keys:
            counted[key] = counted.get(key, 0) + 1
        return False

    def _test(self, job: SlurmJob, entry: QueueEntry, outcome: TestOutcome, now_only: bool) -> bool:
        """Test whether a job can start now or get a reservation; return False to stop the pass."""
        controller, now = self.controller, self.now
        part = entry.part
        job.part = part
        if self._over_counts(job, part):
            return True
        if not self.parameters.bf_licenses and not licenses_free(controller, job, now):
            return True
        one = controller.machine.partitions[part]
        limit = self._limit(job, part)
        no_reserve = job.qos >= 0 and "NoReserve" in controller.accounts.qos[job.qos].settings.flags
        asked = controller.requests.asked(job, one, now)
        earlier, later, counted = job.expected, now, False
        while True:
            start_at, nodes, later = self._open(job, one.mask, later, limit)
            if nodes.bit_count() < job.min_nodes or job.required & ~nodes:
                if later and not now_only:
                    continue
                return True
            self.tried += not counted
            counted = True
            found = self._when(job, part, asked, nodes, now_only)
            if found is None:
                if later and not now_only:
                    continue
                return True
            start, chosen = found
            job.cpus = chosen.cpus
            if start_at > start:
                start = start_at
                self.result.changed = True
            if start <= now and chosen.nodes & controller.machine.completing:
                start, later = now + 1, 0
            if start <= now:
                if self._start(job, part, nodes, outcome, limit):
                    return True
                if outcome.kind == "held":
                    outcome.kind = ""
                    return True
                later = 0
            if start > now and now_only:
                job.expected = start
                return True
            if later and start > later:
                continue
            begin, until = self._rounded(start), self._rounded(start + limit)
            if start > now + self.window:
                outcome.kind, outcome.start, outcome.end, outcome.nodes = BEYOND, start, until, chosen.nodes
                job.expected = start
                return True
            if start > now and self.space.overlaps(begin, until, chosen.nodes):
                later = start
                continue
            return self._reserve(job, part, outcome, chosen, (start, begin, until), no_reserve, earlier)

    def _limit(self, job: SlurmJob, part: int) -> int:
        """Return the time limit (s) with which a job is tested in a partition."""
        most = self.controller.machine.partitions[part].settings.max_time
        limit = min(job.limit, int(most)) if most < YEAR else job.limit
        shortest = job.sub.time_min
        return int(shortest) if shortest is not None and shortest < limit else limit

    def _rounded(self, time: int) -> int:
        return time // self.space.resolution * self.space.resolution

    def _open(self, job: SlurmJob, nodes: int, when: int, limit: int) -> tuple[int, int, int]:
        """Return when to test a job, which nodes it may use then, and when to try next.

        Returns (start to test (s), bit mask of the nodes free from then on for the job's time limit, next start to
        test (s)).
        """
        reservations = self.controller.reservations
        open_nodes, overlap, when = reservations.open_nodes(job, when, limit)
        nodes &= open_nodes & self.usable & ~job.excluded
        nodes, later = self.space.open_between(when, limit + max(when, self.now), nodes)
        if overlap:
            end = reservations.next_end(when)
            if end and end + 1 < self.now + self.window and (not later or end + 1 < later):
                later = end + 1
        return when, nodes, later

    def _when(
        self, job: SlurmJob, part: int, asked: list[NodesAsked], nodes: int, now_only: bool
    ) -> tuple[int, Chosen] | None:
        """Return a job's earliest start (s) and its allocation; None if it never fits.

        The start is now if the job fits after preempting other jobs. With ``now_only``, later starts are not tried.
        """
        controller, now = self.controller, self.now
        selector = controller.selector
        best: tuple[int, Chosen] | None = None
        for way in asked if now_only or controller.preemption.enabled else ():  # else `expected` tests it, too
            alloc = selector.now(way, nodes)
            if alloc is not None:
                return now, Chosen.of(alloc)
        running = controller.running_jobs()
        candidates = controller.preemption.candidates(job, part, running, now) if controller.preemption.enabled else []
        if candidates:
            for way in asked:
                alloc = selector.without(way, nodes, candidates)
                if alloc is not None:
                    return now, Chosen.of(alloc)
            gone = {one.serial for one in candidates}
            running = [one for one in running if one.serial not in gone]
        if now_only:
            return None
        for way in asked:
            found = selector.expected(way, nodes, running, now, candidates)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        return best

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
            outcome.kind, outcome.nodes = STARTED, running.nodes
            outcome.job = running
            self.rejected = None
            return True
        if placed.victims and self.preempt is not None:
            self.result.preempted += preempt_for(controller, job, placed.victims, self.preempt, now)
        if placed.code in (HELD, LICENSES):
            outcome.kind = "held"
        return False

    def _longest(self, nodes: int, least: int, most: int) -> int:
        """Return the longest time limit (s) that avoids this pass's reservations.

        A job with this limit ends before they start. Jobs with ``--time-min`` get it.

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
            reason = controller.limits.after(job, controller.requests.tres(job, one, chosen.alloc))
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
            self.space.reserve(begin, until, nodes)
        if not earlier or start < earlier:
            self.result.planned |= nodes & controller.machine.idle
        job.expected = min(start, earlier) if earlier else start
        return True
