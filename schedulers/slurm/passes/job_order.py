"""The jobs that a pass tests, in the order in which it tests them."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from pipistrelle.schedulers.slurm.accounts.reasons import is_limit
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.eligible import is_eligible

T = TypeVar("T")
#: (no reservation, -tier, -priority, submit, id, task)
Key = tuple[bool, int, int, int, int, int]


class QueueEntry(Struct, frozen=True):
    """A job, one of its partitions, and the job's priority there."""

    job: SlurmJob
    part: int
    priority: int


def part_limit(controller: Controller, job: SlurmJob, part: int) -> str:
    """Return why a partition's settings keep a job waiting; "" if they do not."""
    one = controller.machine.partitions[part]
    settings = one.settings
    if not one.runs_jobs:
        return "PartitionDown" if settings.state == "DOWN" else "PartitionInactive"
    return controller.beyond(job, one)


def build_queue(controller: Controller, now: int) -> list[QueueEntry]:
    """Return the jobs that may run now, once per partition, in the order of testing.

    Jobs that wait for the start of their reservation are left out. The caller must not change the list.
    """
    if controller.queue is not None and controller.queue[0] == controller.changed:
        return controller.queue[1]
    entries: list[QueueEntry] = []
    controller.gated = refused = False
    for job in list(controller.pending.values()):
        if not is_eligible(controller, job, now):
            controller.gated = True
            continue
        if job.reservation and not controller.reservations.usable(job, now):
            own = controller.reservations.find(job.reservation)
            job.reason = "ReservationDeleted" if own is None else "Reservation"
            continue
        refusal = ""
        for at, part in enumerate(job.parts):
            refusal = part_limit(controller, job, part)
            if refusal:
                continue
            priority = job.part_priorities[at] if job.part_priorities else job.priority
            entries.append(QueueEntry(job, part, priority))
        if refusal:
            refused = True
            if not is_limit(job.reason):
                job.reason = refusal
    entries = sort_queue(controller, entries)
    stays = not (controller.gated or refused or controller.reservations.all or controller.reservations.waiting)
    controller.queue = (controller.changed, entries) if stays else None
    return entries


def sort_queue(controller: Controller, entries: list[QueueEntry]) -> list[QueueEntry]:
    """Sort as Slurm does: by reservation, tier, priority, submission and id.

    A job that may preempt another comes before that other job, whatever their priorities.
    """
    parts = controller.machine.partitions
    tiers = [one.settings.priority_tier for one in parts]

    def key(entry: QueueEntry) -> Key:
        job = entry.job
        task = -1 if len(job.ids) > 1 or job.array_task is None else job.array_task
        return (not job.reservation, -tiers[entry.part], -entry.priority, job.submit, job.order_number, task)

    preemption = controller.preemption
    if not preemption.enabled:
        entries.sort(key=key)
        return entries
    keyed = sorted(((entry, key(entry)) for entry in entries), key=lambda one: one[1])
    keys = [one for _, one in keyed]
    if preemption.by_part and not any(entry.job.reservation for entry in entries) and len(set(keys)) == len(keys):
        return [entry for entry, _ in keyed]  # preemption and the keys order partitions by the same tiers

    def first(one: tuple[QueueEntry, Key], other: tuple[QueueEntry, Key]) -> bool:
        if preemption.allows(one[0].job, one[0].part, other[0].job, other[0].part):
            return True
        if preemption.allows(other[0].job, other[0].part, one[0].job, one[0].part):
            return False
        return one[1] < other[1]

    return [entry for entry, _ in _merge_sort([(entry, key(entry)) for entry in entries], first)]


def _merge_sort(items: list[T], first: Callable[[T, T], bool]) -> list[T]:
    """Sort by a comparison that need not be transitive.

    The list is split as by the C library's qsort, so that the order is the same as in slurmctld.
    """
    if len(items) < 2:
        return items
    half = len(items) // 2
    low, high = _merge_sort(items[:half], first), _merge_sort(items[half:], first)
    merged = []
    i = j = 0
    while i < len(low) and j < len(high):
        if first(low[i], high[j]):
            merged.append(low[i])
            i += 1
        else:
            merged.append(high[j])
            j += 1
    return merged + low[i:] + high[j:]
