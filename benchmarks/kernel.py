"""Measure the speed of the kernel, the compiled engine of studies.

Prints three ratios of processor times, each from medians over the repetitions:

- Time of the kernel / time of the same EASY loop in C++ (easy_loop.cpp, compiled with -O3), at each offered load. This
  needs a C++ compiler. In one comparison both assign nodes to jobs, in another both only count nodes. All start times
  must be equal.
- Time of a year with failures, repairs and checkpoints / time of a year without. One ratio is for the kernel alone, one
  for a whole trial, which also computes metrics.
- With --reference: time of the reference engine, in process and without output files / time of the kernel.

    python benchmarks/kernel.py [--jobs 130000] [--units 1490] [--loads 0.85 1.05] [--repeat 7] [--reference]
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from pipistrelle.kernel import kernel, loop
from pipistrelle.kernel.state import make_state
from pipistrelle.kernel.subset import plan_of
from pipistrelle.kernel.table import run_kernel
from pipistrelle.platforms.description import homogeneous
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.studies.measures.metrics import metrics
from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload

SOURCE = Path(__file__).with_name("easy_loop.cpp")


def built(folder: Path) -> Path | None:
    """Compile the EASY loop in C++ and return the path of the program.

    Return None if there is no compiler.
    """
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return None
    program = folder / "easy_loop"
    subprocess.run([compiler, "-O3", "-march=native", "-o", str(program), str(SOURCE)], check=True)
    return program


def in_cpp(program: Path, workload: Workload, units: int, *, placing: bool) -> tuple[float, np.ndarray]:
    """Return the processor time (s) of the C++ loop, and the job start times (s).

    With ``placing`` each job is assigned nodes; otherwise nodes are only counted.
    """
    columns = (workload.submit, workload.size, workload.walltime, workload.runtime)
    data = np.concatenate([[len(workload)], *columns]).astype(np.float64).tobytes()
    done = subprocess.run([program, str(units), str(int(placing)), "1"], input=data, capture_output=True, check=True)
    return float(done.stderr), np.frombuffer(done.stdout)


def in_kernel(setup: Setup, *, placing: bool) -> tuple[float, np.ndarray]:
    """Return the processor time (s) of the kernel's loop, and the job start times (s).

    With ``placing`` each job is assigned nodes; otherwise nodes are only counted.
    """
    plan = plan_of(setup, RunSpec(), None, keeping=False)
    plan = plan._replace(rules=plan.rules._replace(placing=placing))
    run = make_state(plan.rules, plan.jobs, plan.node_of, plan.interval)
    began = time.process_time()
    loop.advance(run)
    return time.process_time() - began, run.lives.start


def against_cpp(program: Path, setup: Setup, load: float, repeat: int) -> None:
    """Time the C++ loop and the kernel in turn, and print the ratio.

    Also check that both give equal start times.
    """
    (workload,) = setup.workloads.values()
    for placing in (False, True):
        in_kernel(setup, placing=placing)  # compiles the kernel, or loads it from the cache
        ratios, mine, theirs = [], [], []
        for _ in range(repeat):
            spent, starts = in_cpp(program, workload, setup.platform.units, placing=placing)
            took, same = in_kernel(setup, placing=placing)
            if not np.array_equal(starts, same):
                raise SystemExit("the C++ loop and the kernel do not agree")
            mine.append(took)
            theirs.append(spent)
            ratios.append(took / spent)
        print(
            f"load {load:g}, {'nodes' if placing else 'counts'}: kernel / C++ {statistics.median(ratios):.2f} "
            f"({1e3 * statistics.median(mine):.1f} ms, C++ {1e3 * statistics.median(theirs):.1f} ms, "
            f"{len(workload):,} jobs)",
            flush=True,
        )


def median_time(action: Callable[[], object], repeat: int) -> float:
    """Return the median processor time (s) of an action.

    A first call is not counted.
    """
    action()
    times = []
    for _ in range(repeat):
        began = time.process_time()
        action()
        times.append(time.process_time() - began)
    return statistics.median(times)


def whole_trial(setup: Setup, spec: RunSpec) -> object:
    """Run the kernel and return the metrics of the run, as a study's trial does."""
    return metrics(run_kernel(setup, spec))


def failing(setup: Setup, repeat: int) -> None:
    """Time runs of the kernel with and without failures, and print the ratios."""
    (workload,) = setup.workloads.values()
    nodes = setup.platform.nodes
    spec = RunSpec(
        failures=(f"exponential,mtbf={nodes // 2}d",),  # the system fails every 12 hours
        repair="1d",
        checkpoint="daly",
        dump="5min",
        read="5min",
        checkpoint_walltime="extended",
    )
    struck = setup.with_reliability(load_reliability(spec, setup.platform, workload))
    without, with_them = RunSpec(), spec
    table = run_kernel(struck, with_them)
    assert table.reliability is not None
    loops = [
        median_time(partial(kernel.simulate, one, other), repeat)
        for one, other in ((setup, without), (struck, with_them))
    ]
    trials = [
        median_time(partial(whole_trial, one, other), repeat) for one, other in ((setup, without), (struck, with_them))
    ]
    print(
        f"a year with {table.reliability.node_failures:,} failures, {table.reliability.interrupted_attempts:,} of them "
        f"under a job: kernel {loops[1] / loops[0]:.2f} x one without ({1e3 * loops[1]:.0f} ms, {1e3 * loops[0]:.0f} "
        f"ms), whole trial {trials[1] / trials[0]:.2f} x ({1e3 * trials[1]:.0f} ms, {1e3 * trials[0]:.0f} ms)",
        flush=True,
    )


def reference(setup: Setup, load: float) -> None:
    """Time the reference engine and the kernel, and print the ratio."""
    runtime = Runtime(make_policy("easy"))
    began = time.process_time()
    simulate(setup, InProcessTransport(runtime), clock=lambda: 0.0)
    spent = time.process_time() - began
    took = median_time(lambda: run_kernel(setup, RunSpec()), 3)
    print(f"load {load:g}: reference engine / kernel {spent / took:.0f} ({spent:.1f} s, {took:.3f} s)", flush=True)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=130_000)
    parser.add_argument("--units", type=int, default=1490)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.85, 1.05])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--reference", action="store_true")
    arguments = parser.parse_args()
    machine = homogeneous(arguments.units, "machine")
    with tempfile.TemporaryDirectory() as name:
        program = built(Path(name))
        if program is None:
            print("there is no C++ compiler to compare with")
        for load in arguments.loads:
            setup = Setup.of(machine, generate(jobs=arguments.jobs, units=arguments.units, seed=1, load=load))
            if program is not None:
                against_cpp(program, setup, load, arguments.repeat)
            if load < 1:
                failing(setup, arguments.repeat)
            if arguments.reference:
                reference(setup, load)
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
