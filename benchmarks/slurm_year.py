"""Measure the time to simulate a year of a cluster under Slurm's scheduler.

    python benchmarks/slurm_year.py [--days 365] [--jobs-per-day 822] [--profile]

The cluster has 1,000 nodes in 12 partitions, shared nodes, 200 accounts with 5 users each, and fair-tree priorities.
The jobs are random with a fixed seed: 300,000 per year, mostly small, at about 80 % of the capacity.
"""

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pipistrelle.api.runs import run

PARTITIONS = 12
ACCOUNTS = 200
USERS = 5
CORES = 32
DAY = 86400


def configuration() -> str:
    """Return the content of slurm.conf for the cluster of the benchmark."""
    lines = [
        "ClusterName=year",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=bf_interval=60,bf_window=2880,bf_resolution=300,bf_max_job_test=200",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "PriorityType=priority/multifactor",
        "PriorityWeightAge=1000",
        "PriorityWeightFairshare=10000",
        "PriorityWeightJobSize=500",
        "PriorityCalcPeriod=5",
        "PriorityDecayHalfLife=7-0",
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageEnforce=associations,limits",
        f"NodeName=n[0001-1000] CPUs={CORES} CoresPerSocket={CORES} RealMemory=128000",
    ]
    for at in range(PARTITIONS):
        first = 1 + at * 70
        default = " Default=YES" if not at else ""
        lines.append(
            f"PartitionName=p{at} Nodes=n[{first:04}-{first + 229:04}]{default} MaxTime=2880 DefMemPerCPU=3000"
        )
    return "\n".join(lines) + "\n"


def accounts() -> str:
    """Return commands of sacctmgr that create the accounts and users of the cluster."""
    lines = []
    for account in range(ACCOUNTS):
        lines.append(f"add account a{account:03} Fairshare={1 + account % 7}")
        lines += [f"add user u{account:03}{user} account=a{account:03} Fairshare=1" for user in range(USERS)]
    return "\n".join(lines) + "\n"


def events(days: int, jobs_per_day: int) -> Iterator[str]:
    """Yield the submissions as lines of a Slurm simulator event file."""
    rng = np.random.default_rng(2022)
    count = days * jobs_per_day
    times = np.sort(rng.integers(0, days * DAY, count))
    tasks = np.minimum(1 << rng.geometric(0.25, count), 2048)
    hours = rng.lognormal(0.6, 1.3, count).clip(0.02, 40)
    for number in range(count):
        account, user, part = rng.integers(ACCOUNTS), rng.integers(USERS), rng.integers(PARTITIONS)
        runtime = int(hours[number] * 3600)
        limit = min(2880, int(runtime * rng.uniform(1.0, 4.0)) // 60 + 1)
        yield (
            f"-dt {times[number]} -e submit_batch_job | -J jobid_{number + 1} -sim-walltime {runtime} "
            f"--uid=u{account:03}{user} -t {limit} -n {tasks[number]} -A a{account:03} -p p{part} pseudo.job\n"
        )


def main() -> None:
    """Generate the files, simulate them and print the processor time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--jobs-per-day", type=int, default=822)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slurm.conf").write_text(configuration())
        (folder / "accounts.txt").write_text(accounts())
        with (folder / "jobs.events").open("w") as stream:
            stream.writelines(events(options.days, options.jobs_per_day))
        profile = cProfile.Profile()
        begun = time.process_time()
        if options.profile:
            profile.enable()
        conf = str(folder / "slurm.conf")
        run(
            str(folder / "jobs.events"),
            conf,
            "slurm",
            config=conf,
            accounting=[str(folder / "accounts.txt")],
            out=folder / "out",
            progress=False,
        )
        profile.disable()
        seconds = time.process_time() - begun
    jobs = options.days * options.jobs_per_day
    print(
        f"{options.days} days, {jobs:,} jobs: {seconds:.0f} s of processor time ({1e3 * seconds / jobs:.1f} ms a job)"
    )
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
