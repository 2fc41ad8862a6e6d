"""Compare the processor time of conservative backfill with that of EASY.

Both run in one process. Conservative backfill reserves nodes for every queued job. Prints both times, their ratio, and
the time per event (job submission or end) of `conservative`. Reading the workload is not counted.

    python benchmarks/conservative.py LOG.swf.gz [--platform curie] [--first 20000]
    python benchmarks/conservative.py [--jobs 20000] [--units 1000] [--load 2]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from started import started

from pipistrelle.platforms.description import Platform, homogeneous
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.inputs.named import load_platform, load_workload
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload


def processor_time(workload: Workload, scheduler: str, platform: Platform) -> float:
    """Return the processor time (s) of an in-process run, including all its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        run_in_process(workload, scheduler, platform=platform, options=RunOptions(out=Path(folder) / "out"))
        return time.process_time() - began


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log", nargs="?")
    parser.add_argument("--platform", default="curie")
    parser.add_argument("--first", type=int, help="first jobs of the log; default: all")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--units", type=int, default=1000)
    parser.add_argument("--load", type=float, default=2.0)
    arguments = parser.parse_args()
    if arguments.log is not None:
        platform = load_platform(arguments.platform)
        workload = Setup.of(platform, load_workload(arguments.log)).workloads["w0"]
        workload = workload.select(np.arange(len(workload))[: arguments.first])
    else:
        platform = homogeneous(arguments.units, "machine")
        workload = generate(jobs=arguments.jobs, units=arguments.units, seed=1, load=arguments.load)
    easy = processor_time(workload, "easy", platform)
    print(f"{len(workload):,} jobs on {platform.units:,} units: easy {easy:.1f} s", flush=True)
    conservative = processor_time(workload, "conservative", platform)
    each = 1e3 * conservative / (2 * len(workload))
    print(f"conservative {conservative:.1f} s, {conservative / easy:.1f} times as much, {each:.2f} ms an event")


if __name__ == "__main__":
    started(main)
