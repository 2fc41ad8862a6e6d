"""One pass of slurmctld's main loop over the queue."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.schedulers.slurm.accounts.reasons import is_limit
from pipistrelle.schedulers.slurm.cluster.jobs import PENDING, SlurmJob
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.eligible import array_may_start
from pipistrelle.schedulers.slurm.passes.job_order import build_queue
from pipistrelle.schedulers.slurm.passes.placing import BUSY, HELD, LICENSES, RESERVED, STARTS, place, preempt_for


class PassResult(Struct):
    """The result of a pass of the main loop.

    Attributes:
        started: records of the jobs started, in order.
        preempted: (victim, job that needs its nodes).
        tested: records tested, in order.
        note: why the pass ended early; "" if it did not.
        seen: whether the pass changed the record of a job that stays queued, so that backfill runs again. A job that
            waits for the same limit as before does not count.
    """

    started: list[SlurmJob]
    preempted: list[tuple[SlurmJob, SlurmJob]]
    tested: list[SlurmJob]
    note: str = ""
    seen: bool = False


def main_pass(
    controller: Controller, now: int, *, full: bool, preempt: Callable[[SlurmJob, SlurmJob], None] | None = None
) -> PassResult:
    """Run a pass of the main loop: test jobs in order and start those that fit.

    If a job does not fit because resources are short, its partition is closed for the rest of the pass: later jobs in
    this partition are not tested, and the partition's nodes are not used for others.

    Args:
        full: test the whole queue, not only ``default_queue_depth`` jobs.
        preempt: called with each victim and the job that needs the victim's nodes.
    """
    controller.reservations.advance(now)
    return _Pass(controller, now, full=full, preempt=preempt).run()


class _Pass:
    def __init__(
        self, controller: Controller, now: int, *, full: bool, preempt: Callable[[SlurmJob, SlurmJob], None] | None
    ) -> None:
        self.controller = controller
        self.now = now
        self.full = full
        self.preempt = preempt
        self.parameters = controller.config.scheduler_parameters
        self.result = PassResult([], [], [])
        #: nodes that the pass still offers, and partitions that it has closed
        self.usable = controller.machine.all & ~controller.machine.down
        self.failed: set[int] = set()
        self.tested_in: dict[int, int] = {}
        self.rejected: tuple[int, int] | None = None
        self.depth = 0

    def run(self) -> PassResult:
        for entry in build_queue(self.controller, self.now):
            job: SlurmJob | None = entry.job
            while job is not None and job.state == PENDING:
                if not self._is_due(job, entry.part):
                    if self.result.note:
                        return self.result
                    break
                job.priority = entry.priority
                job = self._test(job, entry.part)
                if self.result.note:
                    return self.result
        return self.result

    def _is_due(self, job: SlurmJob, part: int) -> bool:
        """Return whether the pass must test a job.

        If the whole pass must stop here, set the result's note.
        """
        parameters = self.parameters
        if parameters.sched_max_job_start and len(self.result.started) >= parameters.sched_max_job_start:
            self.result.note = "sched_max_job_start"
            return False
        if job.array:
            if self.rejected == (job.array, part):
                return False
            self.rejected = (job.array, part)
            if not array_may_start(self.controller, job):
                return False
        if parameters.partition_job_depth:
            self.tested_in[part] = self.tested_in.get(part, 0) + 1
            if self.tested_in[part] > parameters.partition_job_depth:
                if job.reason == "None":
                    job.reason = "Priority"
                return False
        if not self.full:
            self.depth += 1
            if self.depth > parameters.default_queue_depth + 1:
                self.result.note = f"already tested {self.depth} jobs"
                return False
        if part in self.failed and not job.reservation:
            if job.reason in ("None", "Resources"):
                job.reason = "Priority"
            self.result.seen = True
            return False
        if is_limit(job.reason):
            job.part = part
            reason = self.controller.limits.before(job)
            if reason:
                job.reason = reason
                return False
        return True

    def _test(self, job: SlurmJob, part: int) -> SlurmJob | None:
        """Test a job, and start it if it fits.

        If a task of an array has started, return the array's record, for the next task; otherwise return None.
        """
        self.result.tested.append(job)
        before = job.reason
        one = self.controller.machine.partitions[part]
        if (self.usable & one.mask).bit_count() < job.min_nodes:
            job.reason = "Resources"
            self.result.seen = True
            self._close(part)
            return None
        placed = place(self.controller, job, part, self.usable, self.now)
        if placed.code == STARTS:
            assert placed.alloc is not None
            self.rejected = None
            running = self.controller.start(job, placed.alloc, self.now)
            self.result.started.append(running)
            return job if running is not job else None
        if placed.code != HELD or job.reason != before:
            self.result.seen = True
        if placed.victims and self.preempt is not None:
            self.result.preempted += preempt_for(self.controller, job, placed.victims, self.preempt, self.now)
        if placed.code == BUSY and self.failed and not self._could_fit(job, part):
            job.reason = "ReqNodeNotAvail"
            return None
        if placed.code == BUSY:
            job.reason = "Resources"
        if placed.code == LICENSES and self.parameters.bf_licenses:
            self.result.note = "licenses"
            return None
        fails = placed.code == BUSY or (placed.code == HELD and self.parameters.assoc_limit_stop)
        if job.reservation and (fails or placed.code == RESERVED):
            own = self.controller.reservations.find(job.reservation)
            if own is not None:
                self.usable &= ~own.mask
            fails = False
        if job.required and job.required.bit_count() >= job.min_nodes:
            fails = False
            self.usable &= ~job.required
        if fails and not _too_new(self.controller, job, self.now):
            self._close(part)
        return None

    def _could_fit(self, job: SlurmJob, part: int) -> bool:
        """Return whether a job would fit on the nodes that closed partitions leave, if no other job ran there.

        Requests with GPUs are not tested, because a test changes the order of nodes.
        """
        controller = self.controller
        one = controller.machine.partitions[part]
        for way in controller.requests.asked(job, one, self.now):
            if way.gres or controller.selector.ever(replace(way, nodes=way.nodes & self.usable)) is not None:
                return True
        return False

    def _close(self, part: int) -> None:
        """Close a partition for the rest of the pass.

        Its nodes are closed to other partitions, too.
        """
        self.failed.add(part)
        self.usable &= ~self.controller.machine.partitions[part].mask


def _too_new(controller: Controller, job: SlurmJob, now: int) -> bool:
    """Return whether a job that cannot start leaves its partition open to later jobs.

    This is so if the job is younger than ``bf_min_age_reserve`` or has a lower priority than ``bf_min_prio_reserve``.
    """
    parameters = controller.config.scheduler_parameters
    if parameters.bf_min_age_reserve and (not job.eligible or now - job.eligible < parameters.bf_min_age_reserve):
        return True
    least = controller.limits.least_priority(job, parameters.bf_min_prio_reserve)
    return bool(least and job.priority < least)
