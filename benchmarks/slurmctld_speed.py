"""Measure how fast the real slurmctld decides in virtual time.

Also check whether equal runs have equal outputs.

    python benchmarks/slurmctld_speed.py NODESxJOBS... [--repeat 3] [--failures]

Each machine runs random jobs with the scheduler slurmctld, again and again. Prints the medians: the simulated time, the
real time, their ratio, and how many of the runs have the same outputs as the first. The last figure is for an idle day:
slurmctld has no jobs, and does what it does regularly. With --failures, nodes fail and are repaired. This needs
slurmctld 22.05 and a C compiler.
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from statistics import median

import numpy as np

from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import WithChild
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.slurmctld.bridge import EPOCH_S
from pipistrelle.runs.slurmctld.daemon import Slurmctld
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS

CONF = """ClusterName=speed
SlurmctldHost=head
SelectType=select/linear
SchedulerParameters=bf_interval=30
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=1000
JobRequeue=1
NodeName=n[1-{nodes}] CPUs=4 RealMemory=1000
PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0 OverSubscribe=EXCLUSIVE
"""
#: an idle day (s)
DAY_S = 86_400
#: seed of the random jobs and outages
SEED = 22
#: mean runtime (s), mean share of the machine in a job, and load that the jobs offer
RUNTIME_S = 600.0
SHARE = 0.15
LOAD = 0.9


def write_inputs(folder: Path, nodes: int, jobs: int, *, failures: bool) -> RunSpec:
    """Write the configuration, the random jobs and the outages to a folder.

    Return the description of the run.
    """
    draw = np.random.default_rng(SEED)
    (folder / "slurm.conf").write_text(CONF.format(nodes=nodes))
    gap = RUNTIME_S * SHARE / LOAD
    at, lines = 120.0, []
    for number in range(1, jobs + 1):
        at += draw.exponential(gap)
        runtime = 10 + int(draw.exponential(RUNTIME_S))
        width = 1 + int(draw.integers(0, max(1, round(2 * SHARE * nodes))))
        limit = -(-runtime // 60) + int(draw.integers(1, 30))
        lines.append(
            f"-dt {int(at)} -e submit_batch_job | -J jobid_{number} -sim-walltime {runtime} "
            f"--uid=u{draw.integers(0, 5)} -t {limit} -N {width} x.job\n"
        )
    (folder / "jobs.events").write_text("".join(lines))
    conf, outages = str(folder / "slurm.conf"), None
    if failures:
        rows = ["node,down,up\n"]
        for node in draw.permutation(nodes)[: min(nodes, 30)]:
            down = draw.uniform(120, at)
            rows.append(f"{node},{down:.3f},{down + draw.uniform(60, 3600):.3f}\n")
        (folder / "outages.csv").write_text("".join(rows))
        outages = str(folder / "outages.csv")
    workload = (str(folder / "jobs.events"),)
    return RunSpec(workload=workload, platform=conf, config=conf, scheduler="slurmctld", outages=outages)


def outputs(folder: Path) -> str:
    """Return a checksum of all output files."""
    found = sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def idle(conf: str) -> float:
    """Return the real time (s) that slurmctld needs for a simulated day without jobs."""
    with Slurmctld(conf, EPOCH_S * NANOSECONDS) as slurm:
        begun = time.perf_counter()
        slurm.advance(slurm.time.now + DAY_S * NANOSECONDS)
        return time.perf_counter() - begun


def main() -> None:
    """Measure all machines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", nargs="+", metavar="NODESxJOBS")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--keep", type=Path, help="keep the outputs in this folder")
    given = parser.parse_args()
    for machine in given.machines:
        nodes, jobs = map(int, machine.split("x"))
        spans, walls, sums, idles = [], [], [], []
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            spec = write_inputs(folder, nodes, jobs, failures=given.failures)
            for turn in range(given.repeat):
                out = (folder if given.keep is None else given.keep) / f"{machine}-{turn}"
                begun = time.perf_counter()
                result = run(spec, RunOptions(connection=WithChild(name="slurmctld"), out=out))
                walls.append(time.perf_counter() - begun)
                spans.append(result.summary.makespan)
                sums.append(outputs(out))
                idles.append(idle(str(folder / "slurm.conf")))
        most = Counter(sums).most_common(1)[0][1]
        span, wall = median(spans), median(walls)
        print(
            f"{nodes} nodes, {jobs} jobs: {span:,.0f} s in {wall:.1f} s, ratio {span / wall:,.0f}; "
            f"{most} of {len(sums)} runs equal; idle ratio {DAY_S / median(idles):,.0f}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
