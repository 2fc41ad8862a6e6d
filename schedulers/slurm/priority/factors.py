"""Compute the priority of a job.

It is a weighted sum of factors, or follows from the order of submission.
"""

from typing import Final

from msgspec import Struct

from pipistrelle.schedulers.slurm.accounts.records import Accounts
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine, SlurmPartition
from pipistrelle.schedulers.slurm.config.parameters import PrioritySettings
from pipistrelle.schedulers.slurm.priority.fairshare import ClassicFairshare

#: priority of the first job with priority/basic; each later one is lower by 1
FIRST_BASIC: Final = 4294901760
_MOST: Final = 0xFFFFFFFF


class Factors(Struct, frozen=True):
    """The factors of one job in one partition, as ``sprio`` shows them.

    Each factor is from 0 to 1 unless noted.

    Attributes:
        tres: {TRES: factor}.
        site: added to the priority without a weight.
        nice: subtracted from the priority without a weight.
    """

    age: float
    assoc: float
    fairshare: float
    job_size: float
    partition: float
    qos: float
    tres: dict[str, float]
    site: int
    nice: int


class Multifactor:
    """Computes priorities as priority/multifactor does.

    Source: Slurm's documentation, "Multifactor Priority Plugin".
    """

    def __init__(self, machine: SlurmMachine, accounts: Accounts, settings: PrioritySettings) -> None:
        self.machine = machine
        self.accounts = accounts
        self.settings = settings
        flags = settings.flags
        self.most_part = max((one.settings.priority_job_factor for one in machine.partitions), default=1)
        self.norm_part = "NO_NORMAL_PART" not in flags and "NO_NORMAL_ALL" not in flags
        self.norm_qos = "NO_NORMAL_QOS" not in flags and "NO_NORMAL_ALL" not in flags
        self.norm_assoc = "NO_NORMAL_ASSOC" not in flags and "NO_NORMAL_ALL" not in flags
        self.norm_tres = "NO_NORMAL_TRES" not in flags and "NO_NORMAL_ALL" not in flags
        self.by_time = "SMALL_RELATIVE_TO_TIME" in flags
        self.accrue_always = "ACCRUE_ALWAYS" in flags
        #: computes the fairshare factors that the classic formula gives; None: Fair Tree gives them
        self.classic: ClassicFairshare | None = None
        if flags & {"NO_FAIR_TREE", "DEPTH_OBLIVIOUS"}:
            damping, oblivious = settings.fair_share_dampening_factor, "DEPTH_OBLIVIOUS" in flags
            self.classic = ClassicFairshare(accounts, damping, depth_oblivious=oblivious)
        self.totals: list[dict[str, float]] = [self._totals(one) for one in machine.partitions]

    def _totals(self, partition: SlurmPartition) -> dict[str, float]:
        if not self.settings.weight_tres:
            return {}
        totals: dict[str, float] = {"node": partition.size}
        for at in range(self.machine.count):
            if partition.mask >> at & 1:
                totals["cpu"] = totals.get("cpu", 0) + self.machine.cpus[at]
                totals["mem"] = totals.get("mem", 0) + self.machine.memory[at]
                for name, count in self.machine.gres[at].items():
                    totals[f"gres/{name}"] = totals.get(f"gres/{name}", 0) + count
                    general = f"gres/{name.split(':')[0]}"
                    if general != f"gres/{name}":
                        totals[general] = totals.get(general, 0) + count
        totals["billing"] = totals.get("cpu", 0)
        return totals

    def factors(self, job: SlurmJob, part: int, now: int) -> Factors:
        """Return the factors of a job in a partition at time ``now``."""
        settings = self.settings
        machine = self.machine
        age = 0.0
        if settings.weight_age:
            since = job.submit if self.accrue_always else job.accrued
            if 0 < since < now:
                age = min(1.0, (now - since) / settings.max_age) if settings.max_age > 0 else 1.0
        size = self._size(job) if settings.weight_job_size else 0.0
        factor: float = machine.partitions[part].settings.priority_job_factor
        if self.norm_part:
            factor = factor / self.most_part if self.most_part else 0.0
        qos = float(self.accounts.qos[job.qos].settings.priority) if job.qos >= 0 else 0.0
        if self.norm_qos:
            qos = qos / self.accounts.most_qos_priority if self.accounts.most_qos_priority else 0.0
        assoc = fairshare = 0.0
        if job.assoc >= 0:
            one = self.accounts.associations[job.assoc]
            fairshare = one.factor
            assoc = float(one.settings.priority)
            if self.norm_assoc:
                most = self.accounts.most_assoc_priority
                assoc = assoc / most if most else 0.0
        tres: dict[str, float] = {}
        for name in settings.weight_tres:
            amount = self._asked(job, name)
            if self.norm_tres:
                total = self.totals[part].get(name, 0)
                amount = min(1.0, amount / total) if total else 0.0
            tres[name] = amount
        return Factors(age, assoc, fairshare, size, factor, qos, tres, job.site, job.sub.nice)

    @staticmethod
    def _asked(job: SlurmJob, name: str) -> float:
        if job.tres:
            return float(job.tres.get(name, 0))
        if name in ("cpu", "billing"):
            return job.min_cpus
        if name == "node":
            return job.min_nodes
        if name == "mem":
            return job.mem * (job.min_cpus if job.mem_kind == "cpu" else job.min_nodes)
        wanted = name.removeprefix("gres/")
        return sum(n for key, n in job.gres.items() if wanted in (key, key.split(":")[0])) * job.min_nodes

    def _size(self, job: SlurmJob) -> float:
        machine = self.machine
        nodes, cpus = job.min_nodes, max(job.cpus or job.min_cpus, 1)
        favor_small = self.settings.favor_small
        if self.by_time:
            size = max(cpus, nodes * machine.total_cpus / machine.count) / max(1, job.limit // 60) / machine.total_cpus
            return min(1.0, max(0.0, 1.0 - size if favor_small else size))
        if favor_small:
            size = (machine.count - nodes) / machine.count
            size = (size + (machine.total_cpus - cpus) / machine.total_cpus) / 2
        else:
            size = (nodes / machine.count + cpus / machine.total_cpus) / 2
        return min(1.0, max(0.0, size))

    def weigh(self, factors: Factors) -> int:
        """Return the priority: the weighted sum, truncated, at least 1."""
        settings = self.settings
        total = (
            settings.weight_age * factors.age
            + settings.weight_assoc * factors.assoc
            + settings.weight_fairshare * factors.fairshare
            + settings.weight_job_size * factors.job_size
            + settings.weight_partition * factors.partition
            + settings.weight_qos * factors.qos
        )
        for name, weight in settings.weight_tres.items():
            total += weight * factors.tres.get(name, 0.0)
        total += factors.site - factors.nice
        return int(min(max(total, 1.0), _MOST))

    def set_priority(self, job: SlurmJob, now: int) -> None:
        """Set a job's priority.

        A job with several partitions gets one priority per partition. The caller sets the priority of held jobs to 0.
        """
        if self.classic is not None and job.assoc >= 0 and self.settings.weight_fairshare:
            self.classic.need(job.assoc)
        if len(job.parts) > 1:
            job.part_priorities = [self._new(job, part, now) for part in job.parts]
            job.priority = max(job.part_priorities)
        else:
            job.priority = self._new(job, job.part, now)

    def _new(self, job: SlurmJob, part: int, now: int) -> int:
        value = self.weigh(self.factors(job, part, now))
        return max(value, job.priority) if "INCR_ONLY" in self.settings.flags else value
