"""Measure peak memory and time of a run on a large log.

The memory is that of server and scheduler. The time is given relative to the time of reading the log.

python benchmarks/memory.py CEA-Curie-2011-2.1-cln.swf.gz --platform curie
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from started import started

from pipistrelle.runs.inputs.named import load_workload


def main() -> None:
    """Run the log and print the peak memory and the times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("--platform", default="curie")
    parser.add_argument("--scheduler", default="easy")
    arguments = parser.parse_args()
    began = time.perf_counter()
    jobs = len(load_workload(arguments.log))
    reading = time.perf_counter() - began
    cli = [sys.executable, "-m", "pipistrelle.cli"]
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        began = time.perf_counter()
        server = subprocess.Popen([*cli, "serve", "-w", arguments.log, "-p", arguments.platform, "-o", name])
        scheduler = subprocess.Popen([*cli, "schedule", arguments.scheduler, "--connect", str(out / "connection.json")])
        peaks = {}
        for role, process in (("server", server), ("scheduler", scheduler)):
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            peaks[role] = usage.ru_maxrss / 1024
        seconds = time.perf_counter() - began
    print(
        f"{jobs:,} jobs in the log; the whole run took {seconds / reading:.0f} x the reading of the log "
        f"({seconds:.0f} s)"
    )
    for role, peak in peaks.items():
        print(f"peak memory of the {role}: {peak:.0f} MiB")


if __name__ == "__main__":
    started(main)
