"""Measure how much simulation time node failures cost.

The first part simulates a log with and without node failures, in process, and prints the ratio of the times. The
second part simulates a machine of 40,960 nodes with more and more outages. It prints the additional time per outage,
which should not grow with their number.

    python benchmarks/failures.py [LOG.swf.gz] [--platform kth-sp2] [--repeat 3]
"""

import argparse
import statistics
import time

import numpy as np
from started import started

from pipistrelle.platforms.description import Platform, homogeneous
from pipistrelle.platforms.failures.outage import Outages
from pipistrelle.platforms.failures.text import parse_durations
from pipistrelle.runs.inputs.named import load_platform, load_workload
from pipistrelle.runs.inputs.outages import failure_plan
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result, simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.generator import generate
from pipistrelle.traces.resilience import Resilience
from pipistrelle.traces.workload import Workload

_NODES = 40_960
_JOBS = 20_000


def timed(machine: Platform, workload: Workload, reliability: Reliability | None, policy: str) -> tuple[float, Result]:
    """Return the processor time (s) of an in-process run, and its result.

    The run writes no output files.
    """
    setup = Setup.of(machine, workload, reliability=reliability)
    began = time.process_time()
    result = simulate(setup, InProcessTransport(Runtime(make_policy(policy))), clock=time.perf_counter)
    if result.failure is not None:
        raise SystemExit(str(result.failure))
    return time.process_time() - began, result


def year(workload: Workload, machine: Platform, repeat: int) -> None:
    """Print the times of a log with and without failures, at a node MTBF of one year."""
    plan = failure_plan(["exponential,mtbf=1y"], machine, parse_durations("1d"))
    failing = Reliability(plan, resilience=Resilience("checkpoint", "daly", 120.0, 120.0))
    ratios = []
    for _ in range(repeat):
        without, _ = timed(machine, workload, None, "easy")
        with_them, result = timed(machine, workload, failing, "easy")
        assert result.summary.reliability is not None
        ratios.append(with_them / without)
        print(f"  without {without:.2f} s, with {with_them:.2f} s, {result.summary.reliability.node_failures} failures")
    print(f"failures / no failures: {statistics.median(ratios):.2f}, the scheduler in the same process")


def large() -> None:
    """Print the additional time per outage on a large machine.

    Run lengths, failure rates, schedulers and the jobs' checkpointing vary.
    """
    machine = homogeneous(_NODES, "large")
    workload = generate(jobs=_JOBS, seed=1, units=_NODES, load=0.7)
    span = float(workload.submit.max())
    plan = failure_plan([f"exponential,smtbf={span / 10_000}s"], machine, parse_durations("1h"))
    outages = plan.outages(1, span)
    print(f"{_NODES:,} nodes, {len(workload):,} jobs in {span / 86400:.0f} days")
    for dumps in (Resilience("checkpoint", "daly", 60.0, 60.0), Resilience()):
        print("jobs with dumps" if dumps.kind == "checkpoint" else "jobs without dumps")
        for policy in ("fcfs", "easy"):
            for share in (4, 2, 1):
                part = workload.select(np.arange(len(workload)) < len(workload) // share)
                some = outages.between(0.0, float(part.submit.max()))
                report(f"{policy}, 1/{share} of the days", machine, part, Reliability(outages=some, resilience=dumps))
            for share in (4, 2):
                some = Outages.of(outage for at, outage in enumerate(outages) if at % share == 0)
                report(
                    f"{policy}, 1/{share} of the rate", machine, workload, Reliability(outages=some, resilience=dumps)
                )


def report(what: str, machine: Platform, workload: Workload, reliability: Reliability) -> None:
    """Print the time of a run without and with outages.

    ``what`` is the label to print; it begins with the scheduler's name and a comma.
    """
    policy = what.split(",", maxsplit=1)[0]
    base, _ = timed(machine, workload, None, policy)
    taken, result = timed(machine, workload, reliability, policy)
    assert result.summary.reliability is not None
    assert reliability.outages is not None
    count, attempts = len(reliability.outages), result.summary.reliability.attempts
    print(
        f"  {what}: {count:,} outages, {attempts:,} attempts, {base:.2f} s without them, {taken:.2f} s with them, "
        f"{1e6 * (taken - base) / count:.0f} us an outage more",
        flush=True,
    )


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", nargs="?", default="demo")
    parser.add_argument("--platform", default="demo")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    year(load_workload(options.log), load_platform(options.platform), options.repeat)
    large()


if __name__ == "__main__":
    started(main)
