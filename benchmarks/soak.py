"""Check that memory and file descriptors do not grow in a long run.

The run is a ``pipistrelle run`` command over ipc. Each job of one unit starts at once and ends before the next is
submitted, so a job takes at least one round trip and the queue stays empty. Memory and descriptors of server and
scheduler are sampled from outside. The first tenth of the run is a warm-up.

    python benchmarks/soak.py [--round-trips 1000000] [--scheduler easy]

The exit code is 1 if, after the warm-up, the resident memory of a process grows by more than 5 MiB or its number of
descriptors grows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

#: allowed growth of resident memory after the warm-up (KiB)
MOST_KB = 5 * 1024
_WARM = 0.1
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


@dataclass(frozen=True)
class Look:
    """Memory and descriptors of one process at one time.

    It holds the resident memory (KiB) and the number of open file descriptors.
    """

    resident: int
    descriptors: int

    @staticmethod
    def at(pid: int) -> "Look":
        """Return a sample of a process's memory and descriptors.

        Raise OSError if the process has ended.
        """
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
        return Look(int(pages) * _PAGE_KB, len(os.listdir(f"/proc/{pid}/fd")))


@dataclass(frozen=True)
class Looks:
    """Samples of server and scheduler at one time.

    ``done`` is the progress of the run: at first the size of out_jobs.csv (bytes), later the share of the run in
    thousandths.
    """

    done: int
    server: Look
    scheduler: Look


def write_workload(path: Path, jobs: int) -> None:
    """Write jobs that are submitted every 10 s and run for 5 s."""
    lines = ["; MaxProcs: 16"]
    lines += [f"{n + 1} {10 * n} -1 5 1 -1 -1 1 60 -1 1 {n % 40} 1 -1 -1 -1 -1 -1" for n in range(jobs)]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def child_of(pid: int) -> int | None:
    """Return the id of a process's first child; None if there is none."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return int(children[0]) if children else None


def soak(round_trips: int, scheduler: str, home: Path) -> tuple[int, float, list[Looks]]:
    """Run the simulation and sample both processes.

    Returns the number of round trips, the wall time (s) and the samples.
    """
    workload, out, timings = home / "soak.swf", home / "out", home / "timings.json"
    write_workload(workload, round_trips)
    words = [sys.executable, "-m", "pipistrelle.cli", "run", "-w", str(workload), "--scheduler", scheduler]
    server = subprocess.Popen([*words, "--out", str(out), "--timings", str(timings), "--quiet"])
    looks: list[Looks] = []
    while server.poll() is None:
        time.sleep(0.2)
        try:
            child = child_of(server.pid)
            size = (out / "out_jobs.csv").stat().st_size
            if child is not None:
                look = Looks(size, Look.at(server.pid), Look.at(child))
                looks += [look] if look.scheduler.resident else []  # 0 if the scheduler has just ended
        except OSError:  # a process or file does not exist yet, or not any more
            continue
    assert server.returncode == 0, f"the run ended with exit code {server.returncode}"
    times = json.loads(timings.read_text(encoding="utf-8"))
    whole = (out / "out_jobs.csv").stat().st_size
    looks = [Looks(1000 * look.done // whole, look.server, look.scheduler) for look in looks]
    return times["round_trips"], times["wall_time"], looks


def figures(looks: list[Looks]) -> tuple[list[str], bool]:
    """Return the memory and descriptors of both processes as lines of text.

    Also return whether their growth stays within the limits.
    """
    warm = next((look for look in looks if look.done >= 1000 * _WARM), looks[0])
    lines, fine = [], True
    for part in range(11):
        look = next((one for one in looks if one.done >= 100 * part), looks[-1])
        lines.append(
            f"{10 * part:3} %: server {look.server.resident / 1024:7.1f} MiB, {look.server.descriptors} descriptors; "
            f"scheduler {look.scheduler.resident / 1024:7.1f} MiB, {look.scheduler.descriptors} descriptors"
        )
    since = looks[looks.index(warm) :]
    for name in ("server", "scheduler"):
        first: Look = getattr(warm, name)
        most = max(getattr(look, name).resident for look in since) - first.resident
        more = max(getattr(look, name).descriptors for look in since) - first.descriptors
        fine = fine and most <= MOST_KB and more <= 0
        lines.append(f"{name}: {most / 1024:+.1f} MiB and {more:+} descriptors at the most after the first tenth")
    return lines, fine


def main() -> int:
    """Run the benchmark and print the results; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round-trips", type=int, default=1_000_000)
    parser.add_argument("--scheduler", default="easy")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as home:
        trips, took, looks = soak(options.round_trips, options.scheduler, Path(home))
    lines, fine = figures(looks)
    print(
        f"{trips:,} round trips in {took:.1f} s, {1e6 * took / trips:.0f} us each; {len(looks)} looks", *lines, sep="\n"
    )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
