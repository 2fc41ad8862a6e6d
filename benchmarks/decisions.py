"""Compare the time that schedulers spend in decisions.

The default schedulers are two implementations of EASY: `easy` counts free units, and the older `easy-slices` tracks
single units in time slices. Simulates a generated workload in process under each scheduler, at an offered load that
makes the queue deep. Prints the time spent in decisions, its ratio to the first scheduler's, and the mean waits.

    python benchmarks/decisions.py [--jobs 50000] [--units 1490] [--load 1.1] [--workload FILE]
                                   [--schedulers easy easy-slices]
"""

import argparse
import time

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.execution.run import run_in_process
from pipistrelle.runs.inputs.named import load_workload, platform_for
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.traces.generator import generate


class Timed:
    """A policy that measures its decision time.

    The time to update the view, the policy's copy of queue and machine, is not counted.
    """

    def __init__(self, inner: Policy) -> None:
        self._inner = inner
        self.name: str = inner.name
        self.order: Order = inner.order
        self.seconds = 0.0
        self.asked = 0
        self.deepest = 0
        self._waited = 0

    def decide(self, view: View) -> None:
        """Let the policy decide, and measure the processor time."""
        self.asked += 1
        self._waited += len(view.waiting)
        self.deepest = max(self.deepest, len(view.waiting))
        began = time.process_time()
        self._inner.decide(view)
        self.seconds += time.process_time() - began

    @property
    def depth(self) -> float:
        """The mean number of queued jobs at the policy's decisions."""
        return self._waited / self.asked


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--units", type=int, default=1490)
    parser.add_argument("--load", type=float, default=1.1)
    parser.add_argument("--workload", help="a log instead of a generated workload, on its own machine")
    parser.add_argument("--schedulers", nargs="+", default=["easy", "easy-slices"])
    arguments = parser.parse_args()
    try:
        if arguments.workload is None:
            workload = generate(jobs=arguments.jobs, units=arguments.units, seed=1, load=arguments.load)
            machine = homogeneous(arguments.units, "machine")
        else:
            workload = load_workload(arguments.workload)
            machine = platform_for(workload, arguments.workload)
        first: tuple[float, float] | None = None
        for name in arguments.schedulers:
            timed = Timed(make_policy(name))
            wait = run_in_process(workload, timed, platform=machine).summary.mean_wait or 0.0
            first = first or (timed.seconds, wait)
            print(
                f"{name}: {timed.seconds:.2f} s in {timed.asked:,} decisions, "
                f"{timed.seconds / first[0]:.1f} x the first; "
                f"queue {timed.depth:,.0f} on average, {timed.deepest:,} at most; "
                f"mean wait {wait:,.0f} s ({100 * (wait / first[1] - 1) if first[1] else 0:+.1f} %)"
            )
    except PipistrelleError as error:
        parser.exit(error.exit_code, f"{error}\n")


if __name__ == "__main__":
    main()
