"""Measure how long runs on shared nodes take.

Jobs request cores, memory and GPUs.

    python benchmarks/shared_nodes.py [--jobs 20000] [--nodes 200] [--load 0.95] [--scheduler easy] [--repeat 1]
    python benchmarks/shared_nodes.py --plain [--repeat 3]
    python benchmarks/shared_nodes.py --growth [--nodes 10000] [--jobs 100000]

The first form prints the processor time of a run. ``--plain`` simulates the bundled demo on shared nodes with one core
each and on plain nodes, and prints the ratio of processor times; the start times must be equal. ``--growth`` prints the
exponent with which the time grows with the number of jobs.
"""

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.protocol.resources.request import Request
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.inputs.named import load_platform, load_workload
from pipistrelle.traces.workload import Workload

CORES, MEMORY, GPUS = 64, 256, 4


def machine(nodes: int) -> Platform:
    """Return a platform of shared nodes, of which a tenth have four GPUs each."""
    gpu = max(1, nodes // 10)
    has = {"cores": CORES, "memory": f"{MEMORY} GiB"}
    return Platform(
        name=f"shared-{nodes}",
        pools=(
            Pool(name="std", nodes=nodes - gpu, resources=has),
            Pool(name="gpu", nodes=gpu, weight=10, resources={**has, "gpu": {"count": GPUS, "model": "a100"}}),
        ),
    )


def jobs(count: int, nodes: int, load: float, seed: int = 1) -> Workload:
    """Return random jobs that request cores, memory and GPUs.

    Their offered load is ``load``. A job counts with its cores or its memory, whichever is the larger share of a node.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    requests: list[Request | None] = []
    share = 0.0
    runtime = np.ceil(rng.lognormal(7.5, 1.3, count).clip(10, 200_000))
    for row in range(count):
        kind = rng.random()
        cores = int(2 ** rng.integers(0, 7))
        if kind < 0.1:
            gpus = int(rng.integers(1, GPUS + 1))
            one = Request(nodes=1, most_nodes=1, tasks=gpus * 4, memory_per_core=4096, gpus_per_node=gpus)
            used = gpus * 4 / CORES
        elif kind < 0.2:
            many = int(rng.integers(2, 9))
            one = Request(nodes=many, most_nodes=many, tasks=many * 32, tasks_per_node=32, memory_per_core=2048)
            used = many * 32 / CORES
        else:
            memory = int(cores * 4096 * 2 ** rng.normal(0, 0.8))
            one = Request(nodes=1, most_nodes=1, tasks=cores, memory_per_node=min(memory, MEMORY * 1024))
            used = max(cores / CORES, min(memory / 1024, MEMORY) / MEMORY)
        requests.append(one)
        share += used * runtime[row]
    span = share / (nodes * load)
    submit = np.sort(np.floor(rng.random(count) * span))
    return Workload(
        name="shared",
        source="shared",
        ids=list(map(str, range(count))),
        submit=submit,
        size=np.ones(count, dtype=np.int64),
        walltime=np.ceil(runtime * (1 + rng.random(count) * 2)),
        runtime=runtime,
        requests=requests,
    )


def seconds(platform: Platform, workload: Workload, scheduler: str, out: Path) -> float:
    """Return the processor time (s) of an in-process run, including its outputs."""
    begin = time.process_time()
    run_in_process(workload, scheduler, platform=platform, options=RunOptions(out=out, overwrite=True))
    return time.process_time() - begin


def starts(out: Path) -> list[tuple[str, ...]]:
    """Return (id, start, end) of each job of a run, as texts of out_jobs.csv."""
    rows = [line.split(",") for line in (out / "out_jobs.csv").read_text().splitlines()[1:]]
    return [(row[0], row[8], row[10]) for row in rows]


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--scheduler", default="easy")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        if options.plain:
            plain, workload = load_platform("demo"), load_workload("demo")
            shared = Platform(name="demo", pools=(Pool(name="all", nodes=plain.units, resources={"cores": 1}),))
            ratios = []
            for _ in range(options.repeat):
                one = seconds(plain, workload, options.scheduler, out / "plain")
                other = seconds(shared, workload, options.scheduler, out / "shared")
                ratios.append(other / one)
                assert starts(out / "plain") == starts(out / "shared"), "the starts differ"
            print(f"shared / plain: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
            return
        counts = [options.jobs // 4, options.jobs // 2, options.jobs] if options.growth else [options.jobs]
        times = []
        for count in counts:
            workload = jobs(count, options.nodes, options.load)
            runs = [
                seconds(machine(options.nodes), workload, options.scheduler, out / "run") for _ in range(options.repeat)
            ]
            times.append(statistics.median(runs))
            print(f"{count:,} jobs on {options.nodes:,} nodes under {options.scheduler}: {times[-1]:.2f} s")
        if options.growth:
            print(f"exponent: {math.log(times[-1] / times[0]) / math.log(counts[-1] / counts[0]):.2f}")


if __name__ == "__main__":
    main()
