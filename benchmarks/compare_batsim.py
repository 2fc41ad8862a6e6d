"""Compare Batsim with batsched, and Pipistrelle, on the same workload.

One simulator is Batsim with batsched's easy_bf_fast. The other is `pipistrelle run` with its scheduler of that name.
Each runs as two processes. They simulate the workload alternately; two successive runs are a pair. Prints the wall time
and the processor time of each run, and the median, least and greatest ratio of the pairs:

    time of Batsim and batsched / time of Pipistrelle

The processor time of a run is the sum of both processes. The load of the machine is printed, too. At the end the starts
of the jobs are compared.

    python benchmarks/compare_batsim.py BATSIM BATSCHED [--jobs 100000] [--units 1490] [--load 0.85] [--pairs 5]
    python benchmarks/compare_batsim.py BATSIM BATSCHED --workload JOBS.json --platform HOSTS.xml

BATSIM and BATSCHED are commands, which may have options, such as "batsim --disable-machine-state-tracing". With
``--one-core``, all processes of a pair share one core; otherwise each program uses the cores that it uses by default.
"""

import argparse
import csv
import os
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from started import started

from pipistrelle.traces.batsim.text import batsim_chunks
from pipistrelle.traces.generator import generate

RULE = "easy_bf_fast"
#: two starts are equal if they differ by less (s); Batsim writes microseconds
CLOSE = 1e-3
#: characters shown of what a failed program printed
_SHOWN = 400


class Cost(NamedTuple):
    """Wall time and processor time of a run (s)."""

    wall: float
    processor: float


def write_inputs(folder: Path, jobs: int, units: int, load: float) -> tuple[Path, Path]:
    """Write a generated workload and a platform of equal hosts.

    Return the paths of both.
    """
    workload, platform = folder / "jobs.json", folder / "hosts.xml"
    workload.write_bytes(b"".join(batsim_chunks(generate(jobs=jobs, units=units, seed=1, load=load))))
    names = ["master_host", *(f"h{number}" for number in range(units))]
    hosts = "".join(f'<host id="{name}" coordinates="0 0 0" speed="1Gf"/>\n' for name in names)
    platform.write_text(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        f'<platform version="4.1">\n<zone id="all" routing="Vivaldi">\n{hosts}</zone>\n</platform>\n'
    )
    return workload, platform


def free_port() -> int:
    """Return a TCP port on which nothing listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def measured(commands: list[list[str]], folder: Path) -> Cost:
    """Run programs side by side until all have ended.

    Return their wall time and processor time together. If a program fails, end the others and exit with a message.
    """
    with ExitStack() as stack:
        began, left, processor = time.perf_counter(), {}, 0.0
        for number, words in enumerate(commands):
            log = stack.enter_context((folder / f"{number}.log").open("w+b"))
            try:
                process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
            except OSError as error:
                raise SystemExit(f"compare_batsim.py: cannot start {words[0]}: {error.strerror}") from None
            left[process.pid] = (process, log)
            stack.callback(process.kill)
        while left:
            pid, status, used = os.wait4(-1, 0)
            process, log = left.pop(pid)
            process.returncode = os.waitstatus_to_exitcode(status)
            processor += used.ru_utime + used.ru_stime
            if process.returncode:
                log.seek(0)
                said = log.read().decode(errors="replace").strip()[-_SHOWN:]
                name = Path(process.args[0]).name  # type: ignore[index, arg-type]
                raise SystemExit(f"compare_batsim.py: {name} ended with exit code {process.returncode}: {said}")
        return Cost(time.perf_counter() - began, processor)


def batsim(batsim: list[str], batsched: list[str], workload: Path, platform: Path, folder: Path) -> Cost:
    """Simulate a workload with Batsim and batsched.

    The outputs have the prefix ``out`` in ``folder``.
    """
    port = free_port()
    server = [*batsim, "-p", str(platform), "-w", str(workload), "-s", f"tcp://localhost:{port}"]
    return measured(
        [[*batsched, "-v", RULE, "-s", f"tcp://*:{port}"], [*server, "-e", str(folder / "out")]],
        folder,
    )


def ours(workload: Path, platform: Path, folder: Path) -> Cost:
    """Simulate with `pipistrelle run`, which starts the scheduler."""
    words = [sys.executable, "-m", "pipistrelle.cli", "run", "-w", str(workload), "-p", str(platform)]
    return measured([[*words, "--scheduler", RULE, "-o", str(folder)]], folder)


def starts(folder: Path) -> dict[str, float]:
    """Return {job id: start (s)} of the jobs that started."""
    with (folder / "out_jobs.csv").open(newline="", encoding="utf-8") as file:
        return {row["job_id"]: float(row["starting_time"]) for row in csv.DictReader(file) if row["starting_time"]}


def compared(theirs: dict[str, float], mine: dict[str, float]) -> str:
    """Return one line about how many jobs start at the same time in both simulators."""
    common = theirs.keys() & mine.keys()
    equal = sum(abs(theirs[job] - mine[job]) < CLOSE for job in common)
    alone = len(theirs.keys() ^ mine.keys())
    return f"starts: {equal:,} of {len(common):,} equal, {alone:,} jobs started by one of both alone"


def ratios(name: str, theirs: list[float], mine: list[float]) -> str:
    """Return one line with the median and the spread of a ratio of times."""
    found = [one / other for one, other in zip(theirs, mine, strict=True)]
    return (
        f"{name}: Batsim / Pipistrelle {statistics.median(found):.2f} (from {min(found):.2f} to {max(found):.2f}; "
        f"medians {statistics.median(theirs):.2f} s and {statistics.median(mine):.2f} s)"
    )


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("batsim", type=shlex.split)
    parser.add_argument("batsched", type=shlex.split)
    parser.add_argument("--workload", type=Path, help="in Batsim's JSON; by default one is generated")
    parser.add_argument("--platform", type=Path, help="in SimGrid's XML, for --workload")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--units", type=int, default=1490)
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--one-core", action="store_true", help="all processes share one core")
    arguments = parser.parse_args()
    if (arguments.workload is None) != (arguments.platform is None):
        parser.error("give both --workload and --platform, or neither")
    if arguments.one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the children inherit it
    theirs: list[Cost] = []
    mine: list[Cost] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("batsim", "ours"):
            (folder / part).mkdir()
        if arguments.workload is None:
            workload, platform = write_inputs(folder, arguments.jobs, arguments.units, arguments.load)
        else:
            workload, platform = arguments.workload.absolute(), arguments.platform.absolute()
        for pair in range(arguments.pairs):
            for side in ("batsim", "ours") if pair % 2 == 0 else ("ours", "batsim"):  # each is first in half of them
                if side == "ours":
                    mine.append(ours(workload, platform, folder / side))
                else:
                    theirs.append(batsim(arguments.batsim, arguments.batsched, workload, platform, folder / side))
            print(
                f"  pair {pair + 1}: Batsim {theirs[-1].wall:.2f} s (processor {theirs[-1].processor:.2f} s), "
                f"Pipistrelle {mine[-1].wall:.2f} s (processor {mine[-1].processor:.2f} s), "
                f"load of the machine {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        told = compared(starts(folder / "batsim"), starts(folder / "ours"))
    print(f"{len(mine)} pairs in turn, {'one core' if arguments.one_core else 'cores as each program takes them'}")
    print(ratios("wall time", [one.wall for one in theirs], [one.wall for one in mine]))
    print(ratios("processor time", [one.processor for one in theirs], [one.processor for one in mine]))
    print(told)


if __name__ == "__main__":
    started(main)
