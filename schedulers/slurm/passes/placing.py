"""Test one job at one moment, as Slurm's function select_nodes does.

Limits, licences, reservations and nodes are tested.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pipistrelle.schedulers.slurm.accounts.reasons import is_limit
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.nodes.asked import Alloc
from pipistrelle.schedulers.slurm.passes.controller import Controller

STARTS: Final = "starts"
BUSY: Final = "busy"
HELD: Final = "held by a limit"
RESERVED: Final = "reserved"
LICENSES: Final = "licenses"
UNAVAILABLE: Final = "unavailable"


class Placed(Struct):
    """The outcome of the function `place` for a job.

    Attributes:
        code: one of the constants of this module.
        alloc: the job's allocation if it starts, now or once ``victims`` have ended.
    """

    code: str
    alloc: Alloc | None = None
    victims: list[SlurmJob] = []


def licenses_free(controller: Controller, job: SlurmJob, now: int) -> bool:
    """Return whether the licences that a job requests are free.

    If not, set the job's reason.
    """
    for name, count in job.sub.licenses.items():
        total = controller.config.licenses.get(name, 0) - controller.reservations.licenses_kept(name, now)
        if controller.licenses_used.get(name, 0) + count > total:
            job.reason = "Licenses"
            return False
    return True


def place(controller: Controller, job: SlurmJob, part: int, usable: int, now: int, *, closed: int = 0) -> Placed:
    """Test whether a job can start now.

    Args:
        usable: the set of nodes that the pass still offers.
        closed: the set of nodes that backfill reserves for other jobs.
    """
    limits, machine = controller.limits, controller.machine
    if is_limit(job.reason):
        job.reason = "None"
    job.part = part
    reason = limits.before(job)
    if reason:
        job.reason = reason
        return Placed(HELD)
    if not licenses_free(controller, job, now):
        return Placed(LICENSES)
    one = machine.partitions[part]
    open_nodes, _, begin = controller.reservations.open_nodes(job, now, job.limit)
    if begin > now:  # its nodes are reserved until then
        open_nodes = 0
    nodes = usable & one.mask & open_nodes & ~closed & ~machine.completing & ~machine.down
    alloc: Alloc | None = None
    victims: list[SlurmJob] = []
    asked = controller.requests.asked(job, one, now)
    controller.selector.begin_test(asked, machine.all & ~closed)
    for way in asked:
        alloc = controller.selector.now(way, nodes)
        if alloc is not None:
            break
    if alloc is None and controller.preemption.enabled:
        candidates = controller.preemption.candidates(job, part, controller.running_jobs(), now)
        if candidates:
            for way in asked:
                found = controller.preemption.victims(controller.selector, way, nodes & way.nodes, candidates)
                if found is not None:
                    alloc, victims = found
                    break
    if alloc is None:
        controller.selector.test_ever(asked, usable & one.mask & open_nodes & ~closed & ~machine.down)
    if alloc is not None:
        job.cpus = sum(cpus for cpus, _, _ in alloc.values())
        job.likely_nodes = len(alloc)
    reason = "" if limits.idle else limits.after(job, controller.requests.tres(job, one, alloc), alloc or ())
    if reason:
        job.reason = reason
        return Placed(HELD)
    if alloc is not None:
        return Placed(STARTS if not victims else BUSY, alloc, victims)
    if begin > now:
        job.reason = "Reservation" if job.reservation else "ReqNodeNotAvail, Reserved for maintenance"
        return Placed(RESERVED)
    # Slurm tells "busy" from "not available" by whether a job keeps others off any of the nodes.
    up, busy = open_nodes & ~machine.down, machine.busy if controller.requests.linear else machine.whole
    if not any((way.nodes & up).bit_count() >= way.min_nodes or way.nodes & up & busy for way in asked):
        job.reason = "ReqNodeNotAvail"
        return Placed(UNAVAILABLE)
    return Placed(BUSY)


def preempt_for(
    controller: Controller,
    job: SlurmJob,
    victims: list[SlurmJob],
    preempt: Callable[[SlurmJob, SlurmJob], None],
    now: int,
) -> list[tuple[SlurmJob, SlurmJob]]:
    """Preempt the victims of a job; return (victim, job) for each victim.

    Preempt none if earlier victims of the job may still be ending.
    """
    if controller.preemption.in_progress(job, now):
        return []
    if not job.preempts_since:
        job.preempts_since = now
    for victim in victims:
        preempt(victim, job)
    return [(victim, job) for victim in victims]
