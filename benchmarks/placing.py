"""Measure the time of choosing nodes on Titan, for each placement and node order.

The first part repeats the node choices of a simulated month with each placement, in the recorded states of the machine.
The second part measures the processor time of whole runs with each node order, with server and scheduler in one
process. Each process simulates the month twice. The benchmark prints the time of the whole process and that of the
second simulation alone, when all modules are already loaded.

    python benchmarks/placing.py [--runs 5]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

from pipistrelle.cli.main import main as run_command
from pipistrelle.models.workloads.class_jobs import generate_jobs
from pipistrelle.models.workloads.classes import load_classes
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.run import run_in_process
from pipistrelle.runs.inputs.named import load_platform
from pipistrelle.schedulers.catalogue.parts import make_backfill, make_order, make_placement
from pipistrelle.schedulers.catalogue.presets import library_preset
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.interfaces import Backfill
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.traces.load import save

ORDERS = ("id", "snake", "hilbert", "alps")
PLACEMENTS = ("lowest", "contiguous", "contiguous,fit=best", "best-fit", "random", "compact")


class Asked(LowestIds):
    """The placement ``lowest``, recording the job and the open units of each request."""

    def __init__(self, order: str) -> None:
        self._placement = make_placement("lowest", {"node-order": order})
        self.questions: list[tuple[SchedulerJob, NodeSet]] = []

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return the same units as the placement ``lowest``."""
        self.questions.append((job, open_units))
        return self._placement.pick(job, open_units, machine)


def parts() -> tuple[Order, Backfill]:
    """Return the queue order and the backfill rule of the preset ``titan-bins``."""
    preset = library_preset("titan-bins")
    return (
        make_order(preset.order, preset.order_options),
        make_backfill(preset.backfill, preset.backfill_options),
    )


def choices() -> None:
    """Print the median time that each placement takes to choose a job's nodes (µs).

    The requests are those of a simulated month.
    """
    platform, jobs = load_platform("titan"), generate_jobs(load_classes("titan-month"), 1)
    machine = Machine(platform.units, platform.info)
    print(f"{'microseconds a choice':24}" + "".join(f"{order:>22}" for order in ORDERS))
    asked = {}
    for order in ORDERS:
        asking = Asked(order)
        run_in_process(jobs, ComposedPolicy("asked", *parts(), asking), platform=platform)
        asked[order] = asking.questions[::10]
    for name in PLACEMENTS:
        text = f"{name:24}"
        for order in ORDERS:
            placement = make_placement(name, {"node-order": order})
            placement.pick(*asked[order][0], machine)
            times = []
            for job, units in asked[order]:
                began = time.perf_counter()
                placement.pick(job, units, machine)
                times.append(1e6 * (time.perf_counter() - began))
            times.sort()
            text += f"{statistics.median(times):10.0f} ({times[len(times) * 95 // 100]:6.0f})".rjust(22)
        print(text, flush=True)
    print("the median, and in brackets what 95 % do not exceed")


def runs(count: int) -> None:
    """Print the least processor time of ``count`` runs with each node order."""
    with tempfile.TemporaryDirectory() as folder:
        save(generate_jobs(load_classes("titan-month"), 1), Path(folder) / "month.sacct")
        command = ["run", "-q", "--in-process", "-w", f"{folder}/month.sacct", "-p", "titan", "-o", f"{folder}/out"]
        for scheduler in ("easy", "titan-bins"):
            whole: dict[str, list[float]] = {order: [] for order in ORDERS}
            own: dict[str, list[float]] = {order: [] for order in ORDERS}
            for _ in range(count):
                for order in ORDERS:
                    words = [*command, "--scheduler", scheduler, *(["--node-order", order] if order != "id" else [])]
                    before = os.times()
                    told = subprocess.run([sys.executable, __file__, "--command", *words], check=True, stdout=PIPE)
                    after = os.times()
                    whole[order].append(after.children_user - before.children_user)
                    own[order].append(float(told.stdout))
            for order in ORDERS:
                print(f"{scheduler:12} {order:8}", end="")
                for name, spent in (("in the process", own), ("command", whole)):
                    least = min(spent[order])
                    print(f"  {name} {least:6.2f} s, {least / min(spent['id']):.2f} times id", end="")
                print(flush=True)


def command(words: list[str]) -> None:
    """Run a command twice in this process.

    Print the processor time (s) of the second run.
    """
    for _ in range(2):
        began = time.process_time()
        with suppress(SystemExit):
            run_command(words)
        spent = time.process_time() - began
    print(spent)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs per order; 0: only time choices")
    parser.add_argument("--command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.command:
        command(arguments.command)
        return
    choices()
    if arguments.runs:
        runs(arguments.runs)


if __name__ == "__main__":
    main()
