"""Measure how the time of a run grows with its jobs, its nodes and its queue.

Simulates generated jobs in this process, and prints for each scheduler and each axis

    the time at the smallest and at the largest value, their ratio, and the exponent

An exponent of 0 says that the time does not grow, 1 that it grows in proportion. The times are processor times:

- jobs: the whole run. 1 is linear.
- nodes: per job; the jobs' sizes grow with the machine.
- failures: per job and node failure, at a node MTBF of five years, with checkpoints.
- queue: per decision with that many jobs queued, including the server's part.

    python benchmarks/scaling.py [--schedulers easy maui ...] [--axes jobs nodes failures queue] [--repeat 3]

Each value is the median of the repetitions, which are measured in turn. The benchmark compares nothing with limits.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from math import log
from typing import Final

import numpy as np
from queue_depth import measure, stream

from pipistrelle.platforms.description import homogeneous
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import run_in_process
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.traces.generator import generate
from pipistrelle.traces.resilience import Resilience

#: measured decisions of a queue, and units of its machine: few enough that the queue hardly becomes shorter
EVENTS: Final = 250
QUEUE_UNITS: Final = 240
FAILING: Final = RunSpec(failures=("exponential,mtbf=5y",), repair="1h")
DUMPS: Final = Resilience("checkpoint", "daly", 60.0, 60.0)


def seconds(scheduler: str, jobs: int, units: int, *, failing: bool = False) -> tuple[float, int]:
    """Return the processor time (s) of a run, and its number of node failures."""
    workload, machine = generate(jobs=jobs, units=units, seed=1, load=0.7 if failing else 0.85), homogeneous(units, "m")
    reliability = load_reliability(FAILING, machine, workload) if failing else None
    if reliability is not None:
        reliability = replace(reliability, resilience=DUMPS)
    began = time.process_time()
    result = run_in_process(workload, scheduler, platform=machine, reliability=reliability)
    taken = time.process_time() - began
    figures = result.summary.reliability
    return taken, 0 if figures is None else figures.node_failures


def by_jobs(scheduler: str, jobs: int) -> float:
    """Return the time (s) of a run of this many jobs."""
    return seconds(scheduler, jobs, 1490)[0]


def by_nodes(scheduler: str, nodes: int) -> float:
    """Return the time (s) per job on this many nodes."""
    jobs = 3000
    return seconds(scheduler, jobs, nodes)[0] / jobs


def by_failing_nodes(scheduler: str, nodes: int) -> float:
    """Return the time (s) of a run on this many nodes, divided by the number of its jobs and node failures together."""
    jobs = 5000
    taken, failures = seconds(scheduler, jobs, nodes, failing=True)
    return taken / (jobs + failures)


def by_queue(scheduler: str, waiting: int) -> float:
    """Return the mean time (s) from one decision to the next with a deep queue.

    ``waiting`` is the number of queued jobs.
    """
    timed = measure(make_policy(scheduler), stream(waiting, EVENTS, QUEUE_UNITS, 0.3), QUEUE_UNITS, EVENTS)
    return float(np.mean(timed.whole))


#: {axis: (its values, the function that measures one)}
AXES: Final[dict[str, tuple[tuple[int, ...], Callable[[str, int], float]]]] = {
    "jobs": ((10_000, 100_000), by_jobs),
    "nodes": ((1_000, 100_000), by_nodes),
    "failures": ((1_000, 100_000), by_failing_nodes),
    "queue": ((600, 60_000), by_queue),
}


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedulers", nargs="+", default=["easy", "easy-sjbf", "filler", "pbs", "maui"])
    parser.add_argument("--axes", nargs="+", choices=tuple(AXES), default=list(AXES))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    for scheduler in options.schedulers:
        seconds(scheduler, 100, 64)  # imports and compiles what the scheduler needs
        for axis in options.axes:
            values, timed = AXES[axis]
            found = [[timed(scheduler, value) for value in values] for _ in range(options.repeat)]
            least, *_, most = (statistics.median(column) for column in zip(*found, strict=True))
            ratio = statistics.median(row[-1] / row[0] for row in found)
            exponent = log(ratio) / log(values[-1] / values[0])
            print(
                f"{scheduler:10} {axis:8} {values[0]:>7,}: {least:.3g} s  {values[-1]:>9,}: {most:.3g} s  "
                f"ratio {ratio:.2f}  exponent {exponent:.2f}  load of the machine {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
