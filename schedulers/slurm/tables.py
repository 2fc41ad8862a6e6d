"""Tables of the controller's state as Slurm's commands show them.

The commands are sprio, sshare and squeue.
"""

from typing import Any

from pipistrelle.schedulers.slurm.passes.controller import Controller


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


def queue_table(controller: Controller) -> list[dict[str, Any]]:
    """Return state, reason and expected start of jobs, as ``squeue`` shows them.

    The table has one row per waiting or running job.
    """
    rows = []
    running = [job for _, _, job in controller.running]
    for job in (*controller.pending.values(), *running):
        rows.append(
            {
                "JOBID": job.number,
                "ARRAY_TASKS": list(job.tasks_waiting),
                "PARTITION": controller.machine.partitions[job.part].name,
                "NAME": job.sub.name,
                "USER": job.user,
                "STATE": job.state,
                "TIME_LIMIT": job.limit,
                "NODES": job.nodes.bit_count() or job.min_nodes,
                "NODELIST": controller.machine.names_of(job.nodes),
                "REASON": job.reason,
                "START_TIME": job.start or job.expected or None,
                "PRIORITY": job.priority,
            }
        )
    return rows
