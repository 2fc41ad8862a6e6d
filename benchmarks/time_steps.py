"""Measure how fixed time steps change the waits of jobs.

With a time step, the scheduler decides only at multiples of it. Simulates a week of a log in process, once driven by
events and once with each step. Prints how much the waits differ from those of the event-driven run, how long the run
took, and how often the scheduler was asked for decisions.

    python benchmarks/time_steps.py LOG [--week 10] [--scheduler easy] [--steps 1 5 10 30 60]
"""

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from started import started

from pipistrelle.platforms.description import Platform
from pipistrelle.runs.inputs.named import load_workload, platform_for
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.runtime.polling import Polling
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

WEEK = 7 * 86400.0


class Waits(Observer):
    """An observer that records the wait (s) of each job that started."""

    def __init__(self) -> None:
        self.of: dict[str, float] = {}

    def started(self, now: float, job: Job) -> None:
        """Record the wait of the job."""
        self.of[job.id] = now - job.submit


class Error(NamedTuple):
    """Differences of waits from the event-driven run; all times in seconds.

    Attributes:
        step: the time step; 0 for the event-driven run.
        mean: mean difference.
        absolute: mean absolute difference.
        largest: largest absolute difference.
        seconds: wall time of the run.
        asked: number of times that the scheduler was asked for decisions.
    """

    step: float
    mean: float
    absolute: float
    largest: float
    seconds: float
    asked: int


def week_of(workload: Workload, number: int) -> Workload:
    """Return the jobs submitted in week ``number``; week 0 begins with the first job."""
    begin = float(workload.submit[0]) + number * WEEK
    return workload.select((workload.submit >= begin) & (workload.submit < begin + WEEK))


def waits(platform: Platform, workload: Workload, policy: Policy) -> tuple[NDArray[np.float64], float, int]:
    """Simulate a workload under a policy.

    Returns:
        The waits of the jobs that started, sorted by job id (s, shape (jobs,)); the wall time (s); and how often the
        scheduler was asked for decisions.
    """
    watch = Waits()
    began = time.perf_counter()
    result = simulate(
        Setup.of(platform, workload), InProcessTransport(Runtime(policy)), clock=time.perf_counter, observers=[watch]
    )
    if result.failure is not None:
        raise result.failure
    found = np.array([wait for _, wait in sorted(watch.of.items())])
    return found, time.perf_counter() - began, result.times.round_trips


def study(platform: Platform, workload: Workload, scheduler: str, steps: Sequence[float]) -> list[Error]:
    """Return the `Error` of the event-driven run (step 0) and of each step (s)."""
    exact, seconds, asked = waits(platform, workload, make_policy(scheduler))
    found = [Error(0.0, 0.0, 0.0, 0.0, seconds, asked)]
    for step in steps:
        polled, seconds, asked = waits(platform, workload, Polling(make_policy(scheduler), step))
        off = polled - exact
        far = np.abs(off)
        found.append(Error(step, float(off.mean()), float(far.mean()), float(far.max()), seconds, asked))
    return found


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("--week", type=int, default=10)
    parser.add_argument("--scheduler", default="easy")
    parser.add_argument("--steps", nargs="+", type=float, default=[1.0, 5.0, 10.0, 30.0, 60.0])
    arguments = parser.parse_args()
    workload = load_workload(arguments.log)
    week = week_of(workload, arguments.week)
    print(f"week {arguments.week} of {workload.name}: {len(week):,} jobs under {arguments.scheduler}")
    for error in study(platform_for(workload), week, arguments.scheduler, arguments.steps):
        print(
            f"{'events' if not error.step else f'{error.step:g} s':>6}: mean wait {error.mean:+10.1f} s, "
            f"mean distance {error.absolute:10.1f} s, at most {error.largest:10.0f} s; "
            f"{error.seconds:.2f} s of run time, asked {error.asked:,} times"
        )


if __name__ == "__main__":
    started(main)
