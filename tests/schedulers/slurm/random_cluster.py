"""Files of a small cluster with preemption, limits, switches and a reservation, and random jobs for it."""

from pathlib import Path

import numpy as np

CONF = """ClusterName=random
SelectType=select/{select}
{parameters}
GresTypes=gpu
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=500
PriorityWeightFairshare=2000
PriorityCalcPeriod=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=limits,qos,safe
SchedulerParameters=bf_interval=30,{more}
PreemptType=preempt/qos
PreemptMode=REQUEUE
TopologyPlugin=topology/tree
NodeName=n[1-6] CPUs=4 CoresPerSocket=4 RealMemory=4000 Weight={weight}
NodeName=g[1-2] CPUs=4 CoresPerSocket=4 RealMemory=4000 Gres=gpu:2 Weight=3
PartitionName=batch Nodes=ALL Default=YES DefMemPerCPU=500 MaxTime=60
PartitionName=short Nodes=n[1-4] PriorityTier=2 MaxTime=5 DefMemPerCPU=500
"""
TREE = "SwitchName=a Nodes=n[1-3],g1\nSwitchName=b Nodes=n[4-6],g2\nSwitchName=top Switches=a,b\n"
ACCOUNTS = (
    "add qos low\nadd qos high preempt=low priority=5 MaxTRESPU=cpu=16\nadd account bio fairshare=2 GrpTRES=cpu=20\n"
    "add account chem GrpTRESMins=cpu=9000\nadd user ann account=bio qos=low,high defaultqos=low\n"
    "add user bob account=chem qos=low,high defaultqos=low\n"
)
RESERVATIONS = "200,create reservation=r starttime=now+5minutes duration=5 nodes=n[1-2] flags=maint,ignore_jobs\n"
WHO = ("--uid=ann -A bio", "--uid=bob -A chem", "--uid=bob -A chem -q high")
SIZES = ("-N 1", "-N 2-3", "-N 2 --switches=1@1", "-n 3 --mem-per-cpu=900", "-n 5 --exclusive", "-n 2")
OTHERS = ("", "--gres=gpu:1", "--array=0-3%2", "--begin=now+60", "-d afterany:1", "-d singleton")
PARTITIONS = ("batch", "short", "batch,short")
Job = tuple[int, int, str, str, str, str]


def write_cluster(
    folder: Path, jobs: list[Job], select: str = "cons_tres", weight: int = 1, more: str = ""
) -> list[str]:
    """Write the files; return the options of ``pipistrelle run`` that name them.

    Args:
        jobs: (submit time, runtime, options of user, size and others, partition) of each job.
        more: a key of SchedulerParameters.
    """
    parameters = "SelectTypeParameters=CR_Core_Memory" if select == "cons_tres" else ""
    text = CONF.format(select=select, parameters=parameters, weight=weight, more=more or "bf_window=20")
    lines = [
        f"-dt {at} -e submit_batch_job | -J jobid_{n} -sim-walltime {run} {who} -t 5 {size} {other} -p {part} j\n"
        for n, (at, run, who, size, other, part) in enumerate(sorted(jobs), start=1)
    ]
    files = {"slurm.conf": text, "topology.conf": TREE, "accounts": ACCOUNTS, "reservations": RESERVATIONS}
    for name, content in {**files, "jobs.events": "".join(lines)}.items():
        (folder / name).write_text(content)
    conf = str(folder / "slurm.conf")
    words = ["--scheduler", "slurm", "-p", conf, "--config", conf, "-w", str(folder / "jobs.events")]
    return [*words, "--accounting", str(folder / "accounts"), "--reservations", str(folder / "reservations")]


def random_jobs(seed: int, count: int, span: int, longest: int = 400) -> list[Job]:
    """Return ``count`` random jobs that are submitted in the first ``span`` seconds; none waits for itself.

    Jobs of more than 300 s reach their time limits.
    """
    draw = np.random.default_rng(seed)

    def one_of(texts: tuple[str, ...]) -> str:
        return texts[int(draw.integers(len(texts)))]

    first: Job = (0, 60, WHO[0], SIZES[0], "", PARTITIONS[0])
    rest = [
        (
            int(draw.integers(1, span)),
            int(draw.integers(1, longest)),
            *map(one_of, (WHO, SIZES, OTHERS, PARTITIONS)),
        )
        for _ in range(count - 1)
    ]
    return [first, *rest]  # type: ignore[list-item]
