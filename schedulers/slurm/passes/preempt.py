"""Preemption: which jobs a job may preempt, and which of these it preempts."""

from collections.abc import Sequence
from typing import Final

from pipistrelle.schedulers.slurm.accounts.records import Accounts
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, NodesAsked, Selector

_REMOVES: Final = ("REQUEUE", "CANCEL")
#: ranks are limited to 16 bits
_MOST: Final = 0xFFFF


class SlurmPreemption:
    """The rules of preempt/qos and preempt/partition_prio."""

    def __init__(self, config: SlurmConfig, machine: SlurmMachine, accounts: Accounts) -> None:
        self.machine = machine
        self.accounts = accounts
        self.by_qos = config.preempt.type == "preempt/qos"
        self.by_part = config.preempt.type == "preempt/partition_prio"
        self.mode = _mode(config.preempt.mode)
        self.exempt = config.preempt.exempt_time
        parameters = config.scheduler_parameters
        self.youngest_first = parameters.preempt_youngest_first
        self.strict = parameters.preempt_strict_order
        self.reorders = parameters.preempt_reorder_count
        self.requeues = config.job_requeue
        self.patience = config.kill_wait + config.message_timeout
        self.enabled = self.by_qos or self.by_part
        #: the running jobs that `_lower` was last called with, and {(QOS, partition): what it returned}
        self._running: Sequence[SlurmJob] = ()
        self._found: dict[tuple[int, int], list[SlurmJob]] = {}
        names = accounts.qos_index
        #: {QOS: positions of those that it may preempt}
        self.below = [frozenset(names[name] for name in one.settings.preempt if name in names) for one in accounts.qos]
        parts = machine.partitions
        #: for each partition, whether it shares nodes with a partition whose jobs its jobs may preempt
        self._reaches = [
            any(self._is_above(one.index, two.index) and one.mask & two.mask for two in parts) for one in parts
        ]

    def allows(self, job: SlurmJob, part: int, other: SlurmJob, other_part: int) -> bool:
        """Return whether a job may preempt another one.

        Args:
            part, other_part: the partitions of the two jobs.
        """
        if self.by_qos:
            return job.qos >= 0 and other.qos >= 0 and other.qos in self.below[job.qos]
        return self.by_part and self._is_above(part, other_part)

    def mode_of_part(self, part: int) -> str:
        """Return the mode in which jobs of a partition are preempted."""
        own = self.machine.partitions[part].settings.preempt_mode
        return self.mode if own is None else _mode(own)

    def mode_of(self, job: SlurmJob) -> str:
        """Return how a job is preempted: REQUEUE, CANCEL or OFF.

        Jobs that may not be requeued are cancelled.
        """
        if self.by_qos:
            own = self.accounts.qos[job.qos].settings.preempt_mode if job.qos >= 0 else None
            mode = self.mode if own is None or own.upper() in ("", "CLUSTER") else own.upper()
        else:
            mode = self.mode_of_part(job.part)
        if mode == "REQUEUE" and not (self.requeues if job.sub.requeue is None else job.sub.requeue):
            return "CANCEL"
        return mode

    def grace_of(self, job: SlurmJob) -> float:
        """Return the grace time of a job, s."""
        if self.by_qos:
            return self.accounts.qos[job.qos].settings.grace_time if job.qos >= 0 else 0.0
        return self.machine.partitions[job.part].settings.grace_time

    def may_preempt(self, job: SlurmJob, part: int, running: Sequence[SlurmJob]) -> bool:
        """Return whether a job in a partition might preempt others, now or later.

        Later means after other jobs have started.

        Args:
            running: the running jobs; the caller never changes the list.
        """
        if not self.enabled:
            return False
        if self.by_qos:
            return job.qos >= 0 and bool(self.below[job.qos])
        return self._reaches[part] or bool(self._lower(job, part, running))

    def _is_above(self, part: int, other_part: int) -> bool:
        """Return whether jobs of a partition may preempt jobs of another, by their tiers."""
        parts = self.machine.partitions
        return (
            parts[part].settings.priority_tier > parts[other_part].settings.priority_tier
            and self.mode_of_part(other_part) != "OFF"
        )

    def _lower(self, job: SlurmJob, part: int, running: Sequence[SlurmJob]) -> list[SlurmJob]:
        """Return the running jobs that a job may preempt by its QOS or partition.

        Only jobs on nodes of the partition ``part`` are returned. Whether a job is preempted already, and how long it
        has run, does not count here.
        """
        if self._running is not running:
            self._running, self._found = running, {}
        key = (job.qos if self.by_qos else -1, part)
        found = self._found.get(key)
        if found is None:
            mask = self.machine.partitions[part].mask
            found = self._found[key] = [
                one
                for one in running
                if one.nodes & mask and self.allows(job, part, one, one.part) and self.mode_of(one) in _REMOVES
            ]
        return found

    def candidates(self, job: SlurmJob, part: int, running: Sequence[SlurmJob], now: int) -> list[SlurmJob]:
        """Return the running jobs that a job may preempt, in the order of preemption.

        Args:
            running: the running jobs; the caller never changes the list.
        """
        if not self.enabled or (self.by_qos and (job.qos < 0 or not self.below[job.qos])):
            return []
        found = [
            one
            for one in self._lower(job, part, running)
            if not one.preempted_by and now - one.start >= self._exempt_of(one)
        ]
        found.sort(key=lambda one: one.serial)
        if self.youngest_first:
            found.sort(key=lambda one: -one.start)
        else:
            found.sort(key=self._rank)
        return found

    def _exempt_of(self, job: SlurmJob) -> float:
        own = self.accounts.qos[job.qos].settings.preempt_exempt_time if job.qos >= 0 else None
        return self.exempt if own is None else own

    def _rank(self, job: SlurmJob) -> tuple[int, int]:
        """Return the key by which jobs are sorted for preemption.

        It is (priority of the job's QOS, or tier of its partition; number of its nodes).
        """
        if self.by_qos:
            rank = self.accounts.qos[job.qos].settings.priority
        else:
            rank = self.machine.partitions[job.part].settings.priority_tier
        return min(rank, _MOST), min(job.nodes.bit_count(), _MOST)

    def in_progress(self, job: SlurmJob, now: int) -> bool:
        """Return whether jobs preempted for this job may still be ending.

        If so, no more jobs are preempted for it.
        """
        return bool(job.preempts_since) and job.preempts_since > now - self.patience

    def victims(
        self, selector: Selector, asked: NodesAsked, usable: int, candidates: Sequence[SlurmJob]
    ) -> tuple[Alloc, list[SlurmJob]] | None:
        """Return a job's allocation and the candidates to preempt for it.

        Candidates are removed one by one until the job fits. Then the candidates that hold the most of the chosen nodes
        are moved to the front, and the search is repeated, so that few jobs are preempted. The result is None if the
        job does not fit even without all candidates.
        """
        order = list(candidates)
        passes = 0
        while True:
            gone: list[SlurmJob] = []
            found: Alloc | None = None
            last = -1
            for at, one in enumerate(order):
                if not one.nodes & usable:
                    continue
                gone.append(one)
                found = selector.without(asked, usable, gone)
                if found is not None:
                    last = at
                    break
            if found is None:
                return None
            nodes = 0
            for at in found:
                nodes |= 1 << at
            passes += 1
            if passes - 1 > self.reorders or len(order) <= passes:
                return found, [one for one in order[: last + 1] if one.nodes & nodes]
            if self.strict:
                order.insert(0, order.pop(last))
            else:
                shared = [(one.nodes & nodes).bit_count() for one in order[:last]]
                ranked = [*shared, 99999, *([0] * (len(order) - last - 1))]
                order = [order[at] for at in sorted(range(len(order)), key=lambda at: -ranked[at])]


def _mode(words: Sequence[str]) -> str:
    upper = [word.upper() for word in words]
    for word in ("REQUEUE", "CANCEL"):
        if word in upper:
            return word
    return "OFF"
