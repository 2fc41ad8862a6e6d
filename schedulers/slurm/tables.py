"""Tables of the controller's state as Slurm's commands show them.

The commands are squeue, sprio, sshare and sdiag.
"""

from typing import Any

from msgspec import Struct, field

from pipistrelle.platforms.naming.hostlists import compressed
from pipistrelle.schedulers.slurm.backfill.results import BackfillResult
from pipistrelle.schedulers.slurm.cluster.jobs import PENDING
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.main_pass import PassResult


class PassCounts(Struct):
    """Counts of the passes of one scheduler, main loop or backfill.

    Attributes:
        last: time of the last pass, s; None: there was none.
        tested: jobs tested in all passes; ``last_tested``: in the last one.
        queued: jobs still queued after a pass, summed over all passes; ``last_queued``: after the last pass.
    """

    cycles: int = 0
    started: int = 0
    last: int | None = None
    tested: int = 0
    last_tested: int = 0
    queued: int = 0
    last_queued: int = 0

    def add(self, now: int, started: int, tested: int, queued: int) -> None:
        """Count a pass that tested ``tested`` of ``queued`` jobs and started ``started``."""
        self.cycles += 1
        self.started += started
        self.last = now
        self.tested += tested
        self.last_tested = tested
        self.queued += queued
        self.last_queued = queued

    def mean(self, total: int) -> float:
        """Return ``total`` divided by the number of passes; 0 without passes."""
        return total / self.cycles if self.cycles else 0.0


class Diagnostics(Struct):
    """What the controller has done since the run began, as ``sdiag`` counts it."""

    submitted: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    preempted: int = 0
    main: PassCounts = field(default_factory=PassCounts)
    backfill: PassCounts = field(default_factory=PassCounts)

    def count_pass(self, now: int, result: PassResult | BackfillResult, queued: int) -> None:
        """Count a pass that left ``queued`` records in the queue."""
        if isinstance(result, BackfillResult):
            self.backfill.add(now, len(result.started), len(result.outcomes), queued)
        else:
            self.main.add(now, len(result.started), len(result.tested), queued)


def diagnostics_table(controller: Controller, found: Diagnostics, now: int) -> dict[str, dict[str, Any]]:
    """Return the counts by section, with the names that ``sdiag`` prints.

    Args:
        now: s of simulated time.
    """
    minutes = max(now - controller.config.start, 1.0) / 60
    main, fill = found.main, found.backfill
    return {
        "Jobs": {
            "Jobs submitted": found.submitted,
            "Jobs started": found.started,
            "Jobs completed": found.completed,
            "Jobs canceled": found.cancelled,
            "Jobs failed": found.failed,
            "Jobs preempted": found.preempted,
            "Jobs pending": sum(len(job.ids) for job in controller.pending.values()),
            "Jobs running": len(controller.running),
        },
        "Main schedule statistics": {
            "Total cycles": main.cycles,
            "Mean depth cycle": main.mean(main.tested),
            "Cycles per minute": main.cycles / minutes,
            "Last queue length": main.last_queued,
            "Last cycle when": main.last,
        },
        "Backfilling stats": {
            "Total backfilled jobs": fill.started,
            "Total cycles": fill.cycles,
            "Last cycle when": fill.last,
            "Last depth cycle": fill.last_tested,
            "Depth Mean": fill.mean(fill.tested),
            "Last queue length": fill.last_queued,
            "Queue length mean": fill.mean(fill.queued),
        },
    }


def factors_table(controller: Controller, now: int) -> list[dict[str, Any]]:
    """Return the weighted factors of waiting jobs, as ``sprio -l`` shows them.

    The table has one row per job and partition.

    Args:
        now: simulated time (s).
    """
    rows: list[dict[str, Any]] = []
    weights = controller.config.priority
    for job in controller.pending.values():
        for at, part in enumerate(job.parts):
            row: dict[str, Any] = {
                "JOBID": job.number,
                "PARTITION": controller.machine.partitions[part].name,
                "USER": job.user,
                "ACCOUNT": job.account,
                "PRIORITY": job.part_priorities[at] if job.part_priorities else job.priority,
            }
            if not controller.basic:
                factors = controller.multifactor.factors(job, part, now)
                row |= {
                    "SITE": factors.site,
                    "AGE": weights.weight_age * factors.age,
                    "ASSOC": weights.weight_assoc * factors.assoc,
                    "FAIRSHARE": weights.weight_fairshare * factors.fairshare,
                    "JOBSIZE": weights.weight_job_size * factors.job_size,
                    "PARTITIONFACTOR": weights.weight_partition * factors.partition,
                    "QOSNAME": controller.accounts.qos[job.qos].settings.name if job.qos >= 0 else "",
                    "QOS": weights.weight_qos * factors.qos,
                    "NICE": factors.nice,
                    "TRES": {name: weights.weight_tres[name] * value for name, value in factors.tres.items()},
                }
            rows.append(row)
    return sorted(rows, key=lambda row: (-row["PRIORITY"], row["JOBID"]))


def shares_table(controller: Controller) -> list[dict[str, Any]]:
    """Return shares, usage and fairshare, as ``sshare -l`` shows them.

    The table has one row per association.
    """
    accounts = controller.accounts
    total = accounts.associations[accounts.root].usage if accounts.root >= 0 else 0.0
    rows = []
    for one in accounts.associations:
        rows.append(
            {
                "Account": one.settings.account,
                "User": one.settings.user,
                "RawShares": one.shares,
                "NormShares": one.norm_shares,
                "RawUsage": one.usage,
                "NormUsage": one.usage / total if total else 0.0,
                "EffectvUsage": one.effective,
                "FairShare": one.factor if one.is_user else None,
                "LevelFS": one.level_fs,
            }
        )
    return rows


def queue_table(controller: Controller, now: int) -> list[dict[str, Any]]:
    """Return state, reason and expected start of jobs, as ``squeue`` shows them.

    The table has one row per waiting or running job. Waiting jobs come first, by priority. The waiting tasks of an
    array are one row.

    Args:
        now: s of simulated time.
    """
    rows = []
    waiting = sorted(controller.pending.values(), key=lambda job: (-job.priority, job.number, job.serial))
    running = [job for _, _, job in controller.running]
    for job in (*waiting, *running):
        shown = str(job.number)
        if job.state == PENDING and len(job.tasks_waiting) > 1:
            tasks = compressed(f"t{task}" for task in job.tasks_waiting).removeprefix("t").strip("[]")
            shown += f"_[{tasks}{f'%{job.array_limit}' if job.array_limit else ''}]"
        elif job.array_task is not None:
            shown += f"_{job.array_task}"
        rows.append(
            {
                "JOBID": shown,
                "PARTITION": ",".join(controller.machine.partitions[part].name for part in job.parts)
                if job.state == PENDING
                else controller.machine.partitions[job.part].name,
                "NAME": job.sub.name,
                "USER": job.user,
                "ACCOUNT": job.account,
                "STATE": job.state,
                "TIME": now - job.start if job.start else 0,
                "TIME_LIMIT": job.limit,
                "START_TIME": job.start or job.expected or None,
                "PRIORITY": job.priority,
                "NODES": job.nodes.bit_count() or job.min_nodes,
                "NODELIST": compressed(controller.machine.names_of(job.nodes)),
                "REASON": job.reason,
            }
        )
    return rows
