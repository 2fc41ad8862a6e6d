"""Measure the time to simulate a cluster of the University at Buffalo's Slurm simulator.

    python benchmarks/slurm_simulator.py FOLDER [--events FILE] [--jobs 19579] [--profile]

FOLDER is such as ``tutorials/medium_cluster/etc`` of their slurm_sim_tools: a slurm.conf, the files beside it, and a
file of sacctmgr commands named ``sacctmgr*``. Their events file of the medium cluster has 19,579 jobs of one week.

Without ``--events``, the jobs are random with a fixed seed: they have the form, number and time span of that file.
Users submit campaigns of similar jobs, less than a second apart. Most ask for a part of a node, some for several nodes,
a few for GPUs or the partition for tests. The load is about 80 % of the medium cluster.
"""

import argparse
import cProfile
import pstats
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from started import started

from pipistrelle.api.runs import run
from pipistrelle.protocol.base.errors import PipistrelleError

#: the time span of their week (s), and the mean number of jobs of a campaign
SPAN, CAMPAIGN = 600_000, 40
#: options of a campaign's jobs, and the share of campaigns that have them
SHAPES = (
    ("-N 1 -n 1 --mem=4000M", 0.22),
    ("-N 1 -n 6 --mem=32000M", 0.24),
    ("-N 1 -n 16 --mem=60G", 0.16),
    ("-N 1 -n 32 --mem=187000M --exclusive", 0.14),
    ("-N 2 -n 64", 0.09),
    ("-N 4 -n 128", 0.05),
    ("-N 1 -n 32 --mem=500G", 0.01),
    ("-N 1 -n 8 --gres=gpu:1 --mem=32G", 0.04),
    ("-N 1 -n 4 --constraint=CPU-Gold-6130", 0.02),
)
LIMITS = ("01:00:00", "03:00:00", "12:00:00", "1-00:00:00", "3-00:00:00")
HOURS = (1, 3, 12, 24, 72)
#: the share of campaigns that go to the partition for tests
TESTS = 0.04
_USER = re.compile(r"^add user name=(\S+)", re.IGNORECASE | re.MULTILINE)


def generated(accounts: str, count: int) -> Iterator[str]:
    """Yield ``count`` submissions of the users in a list of sacctmgr commands, as lines of an events file."""
    rng = np.random.default_rng(2022)
    users = sorted(_USER.findall(accounts))
    shapes, shares = zip(*SHAPES, strict=True)
    rows = list[tuple[float, str]]()
    while len(rows) < count:
        user = users[int(rng.zipf(1.6) - 1) % len(users)]
        begin, at = rng.uniform(0, SPAN), 0.0
        limit = int(rng.integers(len(LIMITS)))
        typical = HOURS[limit] * 3600 * rng.uniform(0.02, 0.14)
        if rng.random() < TESTS:
            options = f"-t {LIMITS[0]} -N 1 -n 4 --mem=8G -p debug -q debug"
            typical, length = 300.0, int(rng.integers(1, 4))
        else:
            shape = shapes[int(rng.choice(len(shapes), p=np.array(shares) / sum(shares)))]
            options = f"-t {LIMITS[limit]} {shape} -p general-compute -q general-compute"
            length = int(rng.geometric(1 / CAMPAIGN))
        for _ in range(min(length, count - len(rows))):
            runtime = max(1, int(typical * rng.lognormal(0, 0.4)))
            rows.append((begin + at, f"-sim-walltime {runtime} --uid={user} {options}"))
            at += rng.exponential(0.6)
    rows.sort()
    for number, (at, text) in enumerate(rows, start=1):
        yield f"-dt {at:.2f} -e submit_batch_job | -J jobid_{number:05} {text} pseudo.job\n"


def main() -> None:
    """Simulate the cluster and print the processor time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=Path, help="their events file (default: random jobs)")
    parser.add_argument("--jobs", type=int, default=19_579, help="number of random jobs")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    files = sorted(options.folder.glob("sacctmgr*"))
    if not files:
        raise PipistrelleError("the folder has no file 'sacctmgr*'", where=str(options.folder))
    with tempfile.TemporaryDirectory() as name:
        events = options.events
        if events is None:
            events = Path(name) / "jobs.events"
            events.write_text("".join(generated(files[0].read_text(encoding="utf-8"), options.jobs)))
        conf = str(options.folder / "slurm.conf")
        profile = cProfile.Profile()
        begun = time.process_time()
        if options.profile:
            profile.enable()
        made = run(
            str(events),
            conf,
            "slurm",
            config=conf,
            accounting=[str(files[0])],
            out=Path(name) / "out",
            progress=False,
        )
        profile.disable()
        seconds = time.process_time() - begun
        print(f"{'random jobs' if options.events is None else events.name}: {seconds:.1f} s of processor time")
        print(made)
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    started(main)
