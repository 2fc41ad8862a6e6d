"""Simulate recorded jobs with the real slurmctld as scheduler, and compare the starts with the recording.

    python benchmarks/slurmctld_recordings.py FOLDER...

FOLDER is a recording (docs/reference/slurm-recordings.md). The simulated nodes report the end of a
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

from msgspec.structs import replace

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import Listening
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.slurmctld.bridge import LEAD_S, Bridge
from pipistrelle.schedulers.wire.native import ServerAddress, serve_simulation

#: with slurmdbd, the recorded slurmctld started 4 s after time 0, which decides the times of its passes
WITH_SLURMDBD = -4
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
    accounting = tuple(str(folder / name) for name in ("sacctmgr.dump", "qos.txt") if (folder / name).is_file())
    lead = WITH_SLURMDBD if accounting else LEAD_S

    def announce(endpoint: str) -> AbstractContextManager[None]:
        def serve() -> None:
            bridge = Bridge(conf, accounting=accounting, delays=recorded_delays(folder), lead=lead)
            try:
                serve_simulation(bridge, ServerAddress(endpoint), hello_timeout=30.0, report=lambda text: None)
            finally:
                bridge.close()

        threading.Thread(target=serve, daemon=True).start()
        return nullcontext()

    spec = RunSpec(workload=(str(folder / "jobs.events"),), platform=conf, config=conf, scheduler="slurmctld")
    spec = replace(spec, accounting=accounting)
    run(spec, RunOptions(connection=Listening(announce=announce), out=out))
    found: dict[str, list[dict[str, str]]] = {}
    with (out / "out_jobs.csv").open() as file:
        for row in csv.DictReader(file):
            if row["starting_time"]:
                found.setdefault(row["job_id"].partition("#")[0], []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: float(row["starting_time"]))
    others, starts = [], 0
    with (folder / "starts.csv").open() as file:
        for row in csv.DictReader(file):
            starts += 1
            attempts = found.get(row["id"], [])
            attempt = attempts.pop(0) if attempts else None
            if attempt is None or not is_same(row, attempt):
                others.append(row["id"])
    return starts, others


def is_same(recorded: dict[str, str], found: dict[str, str]) -> bool:
    """Return whether two starts are in the same second on the same nodes."""
    seconds = math.floor(float(recorded["time"])) == math.floor(float(found["starting_time"]) + 1e-6)
    return seconds and set(expanded(recorded["nodes"], "")) == set(expanded(found["allocated_nodes"], ""))


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
