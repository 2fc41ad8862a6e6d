"""What a deep queue costs: the same number of jobs at an offered load above 1 and at one below.

Simulates generated workloads in process and prints the ratio of their times, and the depth of the queue.

    python benchmarks/queue_depth.py [--jobs 130000] [--units 1490] [--loads 0.85 1.05] [--scheduler easy]
"""

import argparse
import time

from pipistrelle.platforms.description import homogeneous
from pipistrelle.server.jobs import Job
from pipistrelle.server.observers import Observer
from pipistrelle.studies.run import run_in_process
from pipistrelle.traces.generator import generate


class Depth(Observer):
    """Follows the length of the queue."""

    def __init__(self) -> None:
        self.now = 0
        self.total = 0
        self.events = 0
        self.most = 0

    def _change(self, step: int) -> None:
        self.now += step
        self.total += self.now
        self.events += 1
        self.most = max(self.most, self.now)

    def submitted(self, now: float, job: Job) -> None:
        """Count one more."""
        self._change(1)

    def started(self, now: float, job: Job) -> None:
        """Count one less."""
        self._change(-1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=130_000)
    parser.add_argument("--units", type=int, default=1490)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.85, 1.05])
    parser.add_argument("--scheduler", default="easy")
    arguments = parser.parse_args()
    base = None
    for load in arguments.loads:
        workload = generate(jobs=arguments.jobs, units=arguments.units, seed=1, load=load)
        depth = Depth()
        began = time.process_time()
        result = run_in_process(
            workload, arguments.scheduler, platform=homogeneous(arguments.units, "machine"), observers=[depth]
        )
        seconds = time.process_time() - began
        base = base or seconds
        print(
            f"load {load:.2f}: {seconds / base:5.2f} x the first ({seconds:.1f} s of CPU, "
            f"{1e6 * seconds / result.times.round_trips:.0f} us a round trip), "
            f"queue {depth.total / depth.events:,.0f} on average, {depth.most:,} at most"
        )


if __name__ == "__main__":
    main()
