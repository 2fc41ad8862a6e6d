"""Measure the time to forecast a large queue under Slurm's scheduler.

    python benchmarks/forecast.py [--nodes 1000] [--pending 2000] [--replicas 100] [--jobs N] [--profile]

The cluster has shared nodes of 32 cores in 4 overlapping partitions, and is full. The running jobs, the pending jobs
and the history are random with a fixed seed. Prints the wall time and a checksum of the forecast.
"""

import argparse
import cProfile
import hashlib
import pstats
import tempfile
import time
from pathlib import Path

import numpy as np

from pipistrelle.reports.estimates.forecast_texts import ForecastTexts
from pipistrelle.runs.forecast.files import forecast_files
from pipistrelle.traces.logs.job_table import LogOptions

PARTITIONS = 4
CORES = 32
USERS = 50
NOW = 1767600000
FIELDS = "JOBID|PARTITION|NAME|USER|ACCOUNT|STATE|PRIORITY|SUBMIT_TIME|START_TIME|TIME|TIME_LIMIT|NODES|CPUS|NODELIST"


def configuration(nodes: int) -> str:
    """Return the content of slurm.conf for the cluster of the benchmark."""
    lines = [
        "ClusterName=forecast",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=bf_interval=60,bf_window=2880,bf_resolution=300,bf_max_job_test=500",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "PriorityType=priority/multifactor",
        "PriorityWeightAge=1000",
        "PriorityWeightJobSize=500",
        f"NodeName=n[0001-{nodes:04}] CPUs={CORES} CoresPerSocket={CORES} RealMemory=128000",
    ]
    for at in range(PARTITIONS):
        first, last = 1 + at * nodes // (PARTITIONS + 1), (at + 2) * nodes // (PARTITIONS + 1)
        lines.append(
            f"PartitionName=p{at} Nodes=n[{first:04}-{last:04}] Default={'NO' if at else 'YES'} MaxTime=2880"
            " DefMemPerCPU=3000"
        )
    return "\n".join(lines) + "\n"


def date(moment: float) -> str:
    """Return a moment (s since 1970) as Slurm writes it."""
    return str(np.datetime64(int(moment), "s"))


def length(seconds: float) -> str:
    """Return a duration (s) as Slurm writes it."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def queue(nodes: int, pending: int) -> str:
    """Return running and pending jobs, as squeue prints them.

    The running jobs fill the cluster.
    """
    rng = np.random.default_rng(28)
    lines = [FIELDS]
    number = 1000
    at = 0
    while at < nodes:
        part = min(PARTITIONS - 1, at * (PARTITIONS + 1) // nodes)
        wide = min(int(1 << rng.integers(0, 5)), nodes - at) if rng.random() < 0.4 else 1
        shares = [CORES] if wide > 1 else [int(1 << rng.integers(0, 5)) for _ in range(2)]
        names = f"n[{at + 1:04}-{at + wide:04}]" if wide > 1 else f"n{at + 1:04}"
        for cores in shares:
            number += 1
            limit = 3600 * int(rng.integers(1, 48))
            used = int(limit * rng.random() * 0.95)
            user = int(rng.integers(USERS))
            lines.append(
                f"{number}|p{part}|job|u{user}|a{user % 10}|RUNNING|{int(rng.integers(100, 2000))}"
                f"|{date(NOW - used - 600)}|{date(NOW - used)}|{length(used)}|{length(limit)}|{wide}"
                f"|{cores * wide}|{names}"
            )
        at += wide
    for _ in range(pending):
        number += 1
        user, cores = int(rng.integers(USERS)), min(1 << int(rng.geometric(0.25)), 1024)
        limit = 1800 * int(rng.integers(1, 49))
        lines.append(
            f"{number}|p{int(rng.integers(PARTITIONS))}|job|u{user}|a{user % 10}|PENDING|{int(rng.integers(100, 2000))}"
            f"|{date(NOW - int(rng.integers(1, 86400)))}|N/A|0:00|{length(limit)}|{-(-cores // CORES)}|{cores}|"
        )
    return "\n".join(lines) + "\n"


def history(jobs: int = 2000) -> str:
    """Return random ended jobs as sacct prints them."""
    rng = np.random.default_rng(29)
    lines = ["JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|Timelimit|NNodes"]
    for number in range(1, jobs + 1):
        limit = 1800 * int(rng.integers(1, 49))
        elapsed = max(1, int(limit * rng.beta(1.0, 1.5)))
        begin = NOW - 10 * 86400 + number * 60
        user = int(rng.integers(USERS))
        lines.append(
            f"{number}|u{user}|a{user % 10}|p{int(rng.integers(PARTITIONS))}|COMPLETED|{begin - 60}|{begin}"
            f"|{begin + elapsed}|{elapsed}|{length(limit)}|1"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Generate the files, make the forecast and print the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pending", type=int, default=2000)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--jobs", type=int, help="worker processes; default: one per processor")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slurm.conf").write_text(configuration(options.nodes))
        (folder / "squeue.txt").write_text(queue(options.nodes, options.pending))
        (folder / "sacct.txt").write_text(history())
        profile = cProfile.Profile()
        begun, processor = time.perf_counter(), time.process_time()
        if options.profile:
            profile.enable()
        found = forecast_files(
            [str(folder / "squeue.txt")],
            str(folder / "slurm.conf"),
            history=[str(folder / "sacct.txt")],
            at=date(NOW),
            replicas=options.replicas,
            jobs=options.jobs,
        )
        profile.disable()
        seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    texts = ForecastTexts(found, LogOptions().zone())
    check = hashlib.sha256(texts.csv().encode()).hexdigest()[:16]
    print(
        f"{options.nodes:,} nodes, {found.running:,} running and {len(found.jobs):,} pending jobs,"
        f" {options.replicas:,} replicas: {seconds:.1f} s ({processor:.1f} s of this process), forecast {check}"
    )
    for text in (*found.remarks, *found.faults[:1]):
        print("   ", text)
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
