"""The jobs that a pass tests, in the order in which it tests them."""

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from pipistrelle.schedulers.slurm.accounts.reasons import is_limit
from pipistrelle.schedulers.slurm.cluster.jobs import PENDING, SlurmJob
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


class KnownQueue(Struct, frozen=True):
    """A queue that stays the same until the next change of the controller.

    Attributes:
        changed, reordered, serial: the controller's counters of changes and records when the queue was built.
        keys: the key of each entry, if the queue only loses jobs that start or end and gains those that are submitted;
            None: every change makes a new queue necessary.
    """

    changed: int
    reordered: int
    serial: int
    entries: list[QueueEntry]
    keys: list[Key] | None


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
    known: KnownQueue | None = controller.queue
    if known is not None and known.changed != controller.changed:
        known = controller.queue = _renewed(controller, known, now)
    if known is not None:
        return known.entries
    entries: list[QueueEntry] = []
    controller.gated = refused = False
    stays = True
    for job in list(controller.pending.values()):
        if not is_eligible(controller, job, now):
            controller.gated = True
            continue
        if job.reservation and not controller.reservations.usable(job, now):
            own = controller.reservations.find(job.reservation)
            job.reason = "ReservationDeleted" if own is None else "Reservation"
            continue
        stays = stays and _stays(job)
        refused = _enter(controller, job, entries) or refused
    entries, keys = _sorted(controller, entries)
    if not (controller.gated or refused or controller.reservations.all or controller.reservations.waiting):
        counters = (controller.changed, controller.reordered, controller.serial)
        controller.queue = KnownQueue(*counters, entries, keys if stays else None)
    return entries


def _enter(controller: Controller, job: SlurmJob, entries: list[QueueEntry]) -> bool:
    """Append a job's entries; return whether its last partition refuses it, and set its reason then."""
    refusal = ""
    for at, part in enumerate(job.parts):
        refusal = part_limit(controller, job, part)
        if refusal:
            continue
        priority = job.part_priorities[at] if job.part_priorities else job.priority
        entries.append(QueueEntry(job, part, priority))
    if refusal and not is_limit(job.reason):
        job.reason = refusal
    return bool(refusal)


def _stays(job: SlurmJob) -> bool:
    """Return whether an eligible job remains eligible whatever happens to other jobs."""
    return not (job.depends or job.array_limit or job.reservation)


def _renewed(controller: Controller, known: KnownQueue, now: int) -> KnownQueue | None:
    """Return the queue without the jobs that no longer wait, and with those submitted since it was built.

    Return None if this is not enough, so that all jobs must be tested again.
    """
    if known.reordered != controller.reordered or known.keys is None:
        return None
    arrived: list[SlurmJob] = []
    for job in reversed(controller.pending.values()):
        if job.serial <= known.serial:
            break
        arrived.append(job)
    new: list[QueueEntry] = []
    for job in reversed(arrived):
        if not _stays(job) or not is_eligible(controller, job, now) or _enter(controller, job, new):
            return None
    waits = [one.job.state == PENDING for one in known.entries]
    entries = [one for one, still in zip(known.entries, waits, strict=True) if still]
    keys = [one for one, still in zip(known.keys, waits, strict=True) if still]
    for entry in new:
        key = _key(controller, entry)
        at = bisect_right(keys, key)
        if controller.preemption.enabled and at and keys[at - 1] == key:
            return None
        keys.insert(at, key)
        entries.insert(at, entry)
    return KnownQueue(controller.changed, controller.reordered, controller.serial, entries, keys)


def _key(controller: Controller, entry: QueueEntry) -> Key:
    job = entry.job
    tier = controller.machine.partitions[entry.part].settings.priority_tier
    task = -1 if len(job.ids) > 1 or job.array_task is None else job.array_task
    return (not job.reservation, -tier, -entry.priority, job.submit, job.order_number, task)


def _sorted(controller: Controller, entries: list[QueueEntry]) -> tuple[list[QueueEntry], list[Key] | None]:
    """Sort as Slurm does: by reservation, tier, priority, submission and id.

    A job that may preempt another comes before that other job, whatever their priorities. Return the entries and their
    keys; None instead of the keys if the order does not follow from them alone.
    """
    preemption = controller.preemption
    keyed = sorted([(entry, _key(controller, entry)) for entry in entries], key=lambda one: one[1])
    keys = [one for _, one in keyed]
    by_keys = not preemption.enabled or (
        # preemption and the keys order partitions by the same tiers
        preemption.by_part and not any(entry.job.reservation for entry in entries) and len(set(keys)) == len(keys)
    )
    if by_keys:
        return [entry for entry, _ in keyed], keys

    def first(one: tuple[QueueEntry, Key], other: tuple[QueueEntry, Key]) -> bool:
        if preemption.allows(one[0].job, one[0].part, other[0].job, other[0].part):
            return True
        if preemption.allows(other[0].job, other[0].part, one[0].job, one[0].part):
            return False
        return one[1] < other[1]

    return [entry for entry, _ in _merge_sort([(entry, _key(controller, entry)) for entry in entries], first)], None


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
