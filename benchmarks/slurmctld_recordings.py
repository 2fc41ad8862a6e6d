"""Simulate recorded jobs with the real slurmctld as scheduler, and compare the starts with the recording.

    python benchmarks/slurmctld_recordings.py FOLDER...

FOLDER is a recording (docs/reference/slurm-recordings.md) without slurmdbd. The simulated nodes report the end of a
job so late that slurmctld notices it in the recorded second. This needs slurmctld 22.05 and a C compiler. Prints for
each recording how many starts are in the recorded second on the recorded nodes, and the jobs of the first ten others.
"""

import argparse
import csv
import math
import tempfile
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import Listening
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.slurmctld.bridge import Bridge
from pipistrelle.schedulers.wire.native import ServerAddress, serve_simulation

#: times (s) after which slurmctld looks whether all nodes have answered
LOOKS = (0, 0.005, 0.015, 0.035, 0.075, 0.155, 0.315, 0.635, 1.275, 2.275, 3.275)


def recorded_delays(folder: Path) -> dict[int, float]:
    """Return {job: how late its nodes must report its end (s)}.

    With these delays slurmctld notices the end in the recorded second. Jobs without a delay are left out.
    """
    ended: dict[int, float] = {}
    delays = {}
    with (folder / "events.csv").open() as file:
        for row in csv.DictReader(file):
            if row["event"] == "complete":
                ended[int(row["id"])] = float(row["time"])
            elif row["event"] == "request" and int(row["id"] or 0) in ended:
                at, asked = ended[int(row["id"])], float(row["time"])
                if asked - at >= 0.05:
                    second = math.floor(asked + 1e-6)
                    looks = [one for one in LOOKS if math.floor(at + one) == second]
                    nearest = min(looks, key=lambda one: abs(at + one - asked))
                    delays[int(row["id"])] = max(0.0, nearest - 0.001)
    return {number: delay for number, delay in delays.items() if delay}


def differing(folder: Path, out: Path) -> tuple[int, list[str]]:
    """Return the number of recorded starts, and the jobs that start at another second or on other nodes."""
    conf = str(folder / "slurm.conf")

    def announce(endpoint: str) -> AbstractContextManager[None]:
        def serve() -> None:
            bridge = Bridge(conf, delays=recorded_delays(folder))
            try:
                serve_simulation(bridge, ServerAddress(endpoint), hello_timeout=30.0, report=lambda text: None)
            finally:
                bridge.close()

        threading.Thread(target=serve, daemon=True).start()
        return nullcontext()

    spec = RunSpec(workload=(str(folder / "jobs.events"),), platform=conf, config=conf, scheduler="slurmctld")
    run(spec, RunOptions(connection=Listening(announce=announce), out=out))
    with (out / "out_jobs.csv").open() as file:
        found = {row["job_id"]: row for row in csv.DictReader(file)}
    with (folder / "starts.csv").open() as file:
        recorded = list(csv.DictReader(file))
    return len(recorded), [
        row["id"]
        for row in recorded
        if math.floor(float(found[row["id"]]["starting_time"]) + 1e-6) != math.floor(float(row["time"]))
        or set(expanded(found[row["id"]]["allocated_nodes"], "")) != set(expanded(row["nodes"], ""))
    ]


def main() -> None:
    """Compare all recordings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    for folder in parser.parse_args().folders:
        with tempfile.TemporaryDirectory() as out:
            count, others = differing(folder, Path(out) / "out")
        print(
            f"{folder.name}: {count - len(others)} of {count} starts equal; others: {' '.join(others[:10]) or 'none'}"
        )


if __name__ == "__main__":
    main()
