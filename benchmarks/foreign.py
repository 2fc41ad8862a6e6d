"""Compare round-trip times of schedulers in other languages and EASY in Python.

Simulates a log several times with each scheduler in turn; server and scheduler are two processes on a Unix socket.
Prints the mean wall time of a round trip, from notice to reply, and the part in which the server waits for the
scheduler. Both are also given relative to EASY in Python. All schedulers must produce the same schedule.

    python benchmarks/foreign.py LOG.swf.gz [--platform kth-sp2] [--repeat 3] [FOLDER...]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from started import started

FOREIGN = Path(__file__).resolve().parent.parent / "schedulers" / "foreign"


def measured(log: str, platform: str, scheduler: str, folder: Path) -> tuple[float, float, bytes]:
    """Run a simulation and return its times and its jobs.

    Returns:
        The mean time of a round trip (µs), the server's mean wait for the scheduler in it (µs), and the content of
        out_jobs.csv.
    """
    timings = folder / "timings.json"
    words = [sys.executable, "-m", "pipistrelle.cli", "run", "-w", log, "-p", platform, "--scheduler", scheduler]
    words += ["--quiet", "--timings", str(timings), "-o", str(folder / "out")]
    subprocess.run(words, check=True)
    told = json.loads(timings.read_text())
    trips = told["round_trips"]
    jobs = (folder / "out" / "out_jobs.csv").read_bytes()
    return 1e6 * told["wall_time"] / trips, 1e6 * told["waiting_for_scheduler"] / trips, jobs


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--platform", default="kth-sp2")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    folders = arguments.folders or sorted(str(file.parent) for file in FOREIGN.glob("*/scheduler.toml"))
    whole: dict[str, list[float]] = {name: [] for name in ["easy", *folders]}
    waits: dict[str, list[float]] = {name: [] for name in whole}
    schedules = set()
    with tempfile.TemporaryDirectory() as name:
        for _ in range(arguments.repeat):
            for scheduler in ["easy", *folders]:  # alternately, so that other programs' work affects all of them
                trip, wait, jobs = measured(arguments.log, arguments.platform, scheduler, Path(name))
                whole[scheduler].append(trip)
                waits[scheduler].append(wait)
                schedules.add(jobs)
    assert len(schedules) == 1, "not all of them decide alike"
    print(f"{'scheduler':<12}  {'round trip, us':>14}  {'ratio':>5}  {'waiting, us':>11}  {'ratio':>5}")
    trip_of_easy, wait_of_easy = min(whole["easy"]), min(waits["easy"])
    for scheduler, trips in whole.items():
        trip, wait = min(trips), min(waits[scheduler])
        name = "python" if scheduler == "easy" else Path(scheduler).name
        print(f"{name:<12}  {trip:14.0f}  {trip / trip_of_easy:5.2f}  {wait:11.0f}  {wait / wait_of_easy:5.2f}")
    spread = statistics.median(max(trips) / min(trips) for trips in whole.values())
    print(f"least of {arguments.repeat} runs; the longest took {spread:.2f} times as long (median)")


if __name__ == "__main__":
    started(main)
