"""Measure what class pools and constraints add to the time of a run.

The queue is deep, and runs are in process. The same jobs are simulated on 1,000 nodes three times: without
restrictions, with classes that have pools of their own, and with constraints of the jobs. Prints the processor time of
each run and the ratio to the first, the round trips, and the length of the queue.

    python benchmarks/class_pools.py [--scheduler easy] [--jobs 19500] [--load 1.0] [--repeat 1]
"""

import argparse
import hashlib
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload

UNITS = 1000
POOLS = (Pool(name="a", nodes=600), Pool(name="b", nodes=400))
#: {queue: its pools}, and the constraint with the same meaning
QUEUES = {"any": ("a", "b"), "left": ("a",), "right": ("b",)}
CONSTRAINTS = {"any": "", "left": "pool=a", "right": "pool=b"}


class Depth(Observer):
    """An observer that records the length of the queue at each submission and start."""

    def __init__(self) -> None:
        self.now = self.total = self.events = self.most = 0

    def submitted(self, now: float, job: Job) -> None:
        """Count a job that joined the queue."""
        self._change(1)

    def started(self, now: float, job: Job) -> None:
        """Count a job that left the queue."""
        self._change(-1)

    def _change(self, step: int) -> None:
        self.now += step
        self.total += self.now
        self.events += 1
        self.most = max(self.most, self.now)


def cases(count: int, load: float) -> dict[str, tuple[Platform, Workload]]:
    """Return {name of a case: machine and jobs}.

    The cases are without restrictions, with class pools, and with constraints. About a quarter of the small jobs may
    use only the first pool, and a sixth only the second. All other jobs may use both.
    """
    plain = generate(jobs=count, units=UNITS, seed=5, load=load)
    drawn = np.random.Generator(np.random.PCG64(7)).choice(["any", "left", "right"], count, p=[0.6, 0.24, 0.16])
    queues = [name if size <= 300 else "any" for name, size in zip(drawn.tolist(), plain.size.tolist(), strict=True)]
    machine = Platform(name="two", pools=POOLS)
    classes = tuple(JobClass(name=name, pools=pools) for name, pools in QUEUES.items())
    constraints = [CONSTRAINTS[name] for name in queues]
    return {
        "plain": (machine, plain),
        "class pools": (
            Platform(name="two", pools=POOLS, classes=classes),
            replace(plain, labels={**plain.labels, "queue": queues}),
        ),
        "constraints": (machine, replace(plain, labels={**plain.labels, "constraint": constraints})),
    }


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", default="easy")
    parser.add_argument("--jobs", type=int, default=19_500)
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    taken: dict[str, list[float]] = {}
    for _ in range(options.repeat):
        for name, (machine, workload) in cases(options.jobs, options.load).items():
            depth = Depth()
            with tempfile.TemporaryDirectory() as folder:
                began = time.process_time()
                result = run_in_process(
                    workload,
                    options.scheduler,
                    platform=machine,
                    options=RunOptions(out=Path(folder), overwrite=True, observers=[depth]),
                )
                taken.setdefault(name, []).append(time.process_time() - began)
                digest = hashlib.sha256((Path(folder) / "out_jobs.csv").read_bytes()).hexdigest()[:12]
            seconds = statistics.median(taken[name])
            print(
                f"{name:12} {seconds:6.2f} s, {seconds / statistics.median(taken['plain']):.2f} x; "
                f"{result.times.round_trips:,} round trips; queue {depth.total / depth.events:,.0f} on average, "
                f"{depth.most:,} at most; out_jobs.csv {digest}",
                flush=True,
            )


if __name__ == "__main__":
    main()
