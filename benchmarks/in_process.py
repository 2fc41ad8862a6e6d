"""Compare an in-process run with a minimal EASY loop.

Both write the same jobs file. The loop below supports only EASY on rigid jobs. It has a heap of ends, a list of queued
jobs, and intervals of free units. Its out_jobs.csv must equal that of the run, byte for byte. Prints the ratio

    processor time of the run (all outputs) / processor time of the loop (out_jobs.csv alone)

for each repetition, and the median. Reading the workload is not counted. The output says whether the package is
compiled (docs/how-to/compiled.md); the loop never is.

With ``--command``, a log is simulated by the whole command `pipistrelle run --in-process` and by textbook_easy.py, a
program that shares no code with the package, reads the log and writes the starts alone. Both are new processes. Their
processor times include the start of Python and all imports. The starts must be equal.

    python benchmarks/in_process.py LOG.swf.gz [--platform kth-sp2] [--repeat 5]
    python benchmarks/in_process.py LOG.swf.gz --command [--platform kth-sp2] [--repeat 5]
    python benchmarks/in_process.py [--jobs 130000] [--units 1490] [--load 0.85] [--repeat 5]
"""

import argparse
import csv
import filecmp
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left, insort
from heapq import heappop, heappush
from math import inf
from pathlib import Path

from started import started

from pipistrelle.platforms.description import Platform, homogeneous
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.inputs.named import load_platform, load_workload
from pipistrelle.server.outputs.recorder import JOBS_COLUMNS
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation import loop
from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload, decimal_texts


def by_hand(units: int, workload: Workload, path: Path) -> None:  # noqa: PLR0915 - one loop, as one would write it
    """Simulate a workload with the minimal EASY loop, and write its jobs file.

    Jobs get the lowest free units. The workload must be prepared by `Setup.of`, which removes invalid jobs.
    """
    ids, submit, size = workload.ids, workload.submit.tolist(), workload.size.tolist()
    walltime, runtime = workload.walltime.tolist(), workload.runtime.tolist()
    profile = decimal_texts(workload.runtime) if workload.profiles is None else workload.profiles
    starts, stops = [0], [units - 1]
    free, now, at, count = units, 0.0, 0, 0
    queue: list[int] = []
    ends: list[tuple[float, int, int]] = []
    planned: list[tuple[float, int, int]] = []
    held: dict[int, list[tuple[int, int]]] = {}
    begun: dict[int, float] = {}

    def start(job: int) -> None:
        nonlocal free, count
        left = size[job]
        free -= left
        taken = []
        while left:
            low, high = starts[0], stops[0]
            if high - low >= left:
                taken.append((low, low + left - 1))
                starts[0] = low + left
                break
            taken.append((low, high))
            left -= high - low + 1
            del starts[0], stops[0]
        held[job], begun[job] = taken, now
        count += 1
        heappush(ends, (now + min(runtime[job], walltime[job]), count, job))
        insort(planned, (now + walltime[job], job, size[job]))

    def give_back(units: list[tuple[int, int]]) -> None:
        for low, high in units:
            place = bisect_left(starts, low)
            after = place < len(starts) and starts[place] == high + 1
            if place and stops[place - 1] == low - 1:
                if after:
                    stops[place - 1] = stops[place]
                    del starts[place], stops[place]
                else:
                    stops[place - 1] = high
            elif after:
                starts[place] = low
            else:
                starts.insert(place, low)
                stops.insert(place, high)

    with path.open("w", newline="") as out:
        out.write(f"{JOBS_COLUMNS}\n")
        while at < len(ids) or ends:
            now = min(submit[at] if at < len(ids) else inf, ends[0][0] if ends else inf)
            while ends and ends[0][0] == now:
                job = heappop(ends)[2]
                taken, begin, came = held.pop(job), begun.pop(job), submit[job]
                free += size[job]
                give_back(taken)
                del planned[bisect_left(planned, (begin + walltime[job], job))]
                late = runtime[job] > walltime[job]
                state = "COMPLETED_WALLTIME_REACHED" if late else "COMPLETED_SUCCESSFULLY"
                ran, total = now - begin, now - came
                text = " ".join([f"{low}-{high}" if low < high else f"{low}" for low, high in taken])
                out.write(
                    f"{ids[job]},w0,{profile[job]},{came:.6f},{size[job]},{walltime[job]:.6f},{int(not late)},{state},"
                    f"{begin:.6f},{ran:.6f},{now:.6f},{begin - came:.6f},{total:.6f},"
                    f'{total / ran if ran > 0 else 1.0:.6f},{text},-1.000000,""\n'
                )
            while at < len(ids) and submit[at] == now:
                queue.append(at)
                at += 1
            while queue and size[queue[0]] <= free:
                start(queue.pop(0))
            if not queue or not free:
                continue
            shadow, left = inf, free
            for end, _, more in planned:
                if end > shadow:
                    break
                left += more
                if left >= size[queue[0]]:
                    shadow = end
            extra = max(left - size[queue[0]], 0)
            for job in queue[1:]:
                late = now + walltime[job] > shadow
                if size[job] <= free and (not late or size[job] <= extra):
                    extra -= size[job] if late else 0
                    start(job)
                    queue.remove(job)


def compare(name: str, platform: Platform, workload: Workload, repeat: int, folder: Path) -> None:
    """Time the minimal loop and the run in turn, and print the ratios.

    Their outputs must be equal.
    """
    cleaned = Setup.of(platform, workload).workloads["w0"]
    ratios, jobs = [], len(cleaned)
    for _ in range(repeat):
        began = time.process_time()
        by_hand(platform.units, cleaned, folder / "by-hand.csv")
        between = time.process_time()
        run_in_process(cleaned, "easy", platform=platform, options=RunOptions(out=folder / "out"))
        ratios.append((time.process_time() - between) / (between - began))
        if not filecmp.cmp(folder / "by-hand.csv", folder / "out" / "out_jobs.csv", shallow=False):
            raise SystemExit(f"{name}: the loop and the run do not agree")
        print(f"  loop {1e6 * (between - began) / jobs:.1f} us a job, run {ratios[-1]:.2f} x", flush=True)
    build = "plain" if loop.__file__.endswith(".py") else "compiled"
    print(f"{name}: {jobs:,} jobs, {build} run / loop {statistics.median(ratios):.2f} (median of {repeat})")


def spent(*words: str) -> float:
    """Run a command, and return the processor time (s) that its process took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *words], check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def starts(path: Path) -> dict[str, str]:
    """Return {job id: start} of a table of jobs."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["job_id"]: row["starting_time"] for row in csv.DictReader(file)}


def compare_commands(log: str, platform: str, repeat: int, folder: Path) -> None:
    """Time `textbook_easy.py` and ``pipistrelle run`` in turn, and print the ratios.

    A first pair, which fills the caches, does not count.
    """
    units = str(load_platform(platform).units)
    textbook, table = str(Path(__file__).with_name("textbook_easy.py")), folder / "starts.csv"
    words = ["-m", "pipistrelle.cli", "run", "-w", log, "-p", platform, "--scheduler", "easy", "--in-process"]
    pairs = []
    for _ in range(repeat + 1):
        pairs.append((spent(textbook, log, units, str(table)), spent(*words, "--quiet", "-o", str(folder / "out"))))
        if starts(table) != starts(folder / "out" / "out_jobs.csv"):
            raise SystemExit(f"{log}: the textbook's program and the run do not agree")
        print(f"  textbook {pairs[-1][0]:.2f} s, command {pairs[-1][1]:.2f} s", flush=True)
    ratio = statistics.median(command / loop for loop, command in pairs[1:])
    print(f"{log}: whole command / textbook's program {ratio:.2f} (median of {repeat})")


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log", nargs="?")
    parser.add_argument("--platform", default="kth-sp2")
    parser.add_argument("--jobs", type=int, default=130_000)
    parser.add_argument("--units", type=int, default=1490)
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--command", action="store_true", help="compare whole processes; needs a log")
    arguments = parser.parse_args()
    if arguments.command and arguments.log is None:
        parser.error("--command needs a log")
    with tempfile.TemporaryDirectory() as name:
        if arguments.command:
            compare_commands(arguments.log, arguments.platform, arguments.repeat, Path(name))
        elif arguments.log is not None:
            machine = load_platform(arguments.platform)
            compare(arguments.log, machine, load_workload(arguments.log), arguments.repeat, Path(name))
        else:
            machine = homogeneous(arguments.units, "machine")
            made = generate(jobs=arguments.jobs, units=arguments.units, seed=1, load=arguments.load)
            compare(f"load {arguments.load:g}", machine, made, arguments.repeat, Path(name))


if __name__ == "__main__":
    started(main)
