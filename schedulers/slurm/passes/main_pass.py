"""One pass of slurmctld's main loop over the queue."""

from collections.abc import Callable

from msgspec import Struct

from pipistrelle.schedulers.slurm.accounts.reasons import is_limit
from pipistrelle.schedulers.slurm.cluster.jobs import PENDING, Job
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.eligible import array_may_start
from pipistrelle.schedulers.slurm.passes.placing import BUSY, HELD, LICENSES, RESERVED, STARTS, place, preempt_for
from pipistrelle.schedulers.slurm.passes.queue import build_queue


class PassResult(Struct):
    """What a pass did.

    Attributes:
        started: records of the jobs started, in order.
        preempted: (victim, job that needs its nodes).
        tested: records tested, in order.
        note: why the pass ended early; "" if it did not.
    """

    started: list[Job]
    preempted: list[tuple[Job, Job]]
    tested: list[Job]
    note: str = ""


def main_pass(
    controller: Controller, now: int, *, full: bool, preempt: Callable[[Job, Job], None] | None = None
) -> PassResult:
    """Test jobs in order and start those that fit.

    A job that does not fit for want of resources closes its partition: no later job of it is tested, and its nodes are
    taken from every other partition for the rest of the pass.

    Args:
        full: test the whole queue, not only ``default_queue_depth`` jobs.
        preempt: called for each victim with the job that needs its nodes; it releases the victim.
    """
    controller.reservations.advance(now)
    parameters = controller.config.scheduler_parameters
    machine = controller.machine
    result = PassResult([], [], [])
    usable = machine.all & ~machine.down
    failed: set[int] = set()
    tested_in: dict[int, int] = {}
    rejected: tuple[int, int] | None = None
    depth = 0
    for entry in build_queue(controller, now, backfill=False):
        job: Job | None = entry.job
        part = entry.part
        while job is not None and job.state == PENDING:
            current, job = job, None
            if parameters.sched_max_job_start and len(result.started) >= parameters.sched_max_job_start:
                result.note = "sched_max_job_start"
                return result
            if current.array:
                if rejected == (current.array, part):
                    break
                rejected = (current.array, part)
                if not array_may_start(controller, current):
                    break
            if parameters.partition_job_depth:
                tested_in[part] = tested_in.get(part, 0) + 1
                if tested_in[part] > parameters.partition_job_depth:
                    if current.reason == "None":
                        current.reason = "Priority"
                    break
            if not full:
                depth += 1
                if depth > parameters.default_queue_depth + 1:
                    result.note = f"already tested {depth} jobs"
                    return result
            if part in failed and not current.reservation:
                if current.reason in ("None", "Resources"):
                    current.reason = "Priority"
                break
            one = machine.partitions[part]
            if is_limit(current.reason):
                current.part = part
                reason = controller.limits.before(current)
                if reason:
                    current.reason = reason
                    break
            result.tested.append(current)
            if (usable & one.mask).bit_count() < current.min_nodes:
                current.reason = "Resources"
                failed.add(part)
                usable &= ~one.mask
                break
            current.priority = entry.priority
            placed = place(controller, current, part, usable, now)
            if placed.code == STARTS:
                assert placed.alloc is not None
                rejected = None
                head = current
                running = controller.start(current, placed.alloc, now)
                result.started.append(running)
                job = head if running is not head else None
                continue
            if placed.victims and preempt is not None:
                result.preempted += preempt_for(controller, current, placed.victims, preempt, now)
            fails = placed.code == BUSY or (placed.code == HELD and parameters.assoc_limit_stop)
            if placed.code == BUSY:
                current.reason = "Resources"
            if placed.code == LICENSES and parameters.bf_licenses:
                result.note = "licenses"
                return result
            if placed.code == RESERVED and current.reservation:
                own = controller.reservations.find(current.reservation)
                if own is not None:
                    usable &= ~own.mask
            if current.required and current.required.bit_count() >= current.min_nodes:
                fails = False
                usable &= ~current.required
            if fails and current.reservation:
                fails = False
                own = controller.reservations.find(current.reservation)
                if own is not None:
                    usable &= ~own.mask
            fails = fails and not _too_new(controller, current, now)
            if fails:
                failed.add(part)
                usable &= ~one.mask
            break
    return result


def _too_new(controller: Controller, job: Job, now: int) -> bool:
    """Return whether a job does not close its partition because of ``bf_min_age_reserve`` or ``bf_min_prio_reserve``."""
    parameters = controller.config.scheduler_parameters
    if parameters.bf_min_age_reserve and (not job.eligible or now - job.eligible < parameters.bf_min_age_reserve):
        return True
    least = parameters.bf_min_prio_reserve
    if job.qos >= 0:
        least = controller.accounts.qos[job.qos].settings.min_prio_thresh or least
    return bool(least and job.priority < least)
