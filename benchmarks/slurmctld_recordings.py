"""Simulate recorded jobs with the real slurmctld as scheduler, and compare the starts with the recording.

    python benchmarks/slurmctld_recordings.py FOLDER... [--without holds,late,delays]

FOLDER is a recording (docs/reference/slurm-recordings.md). The run repeats what the recording shows of slurmctld's
surroundings: how long each job ran, how late its nodes reported its end, when the host held up slurmctld's main loop,
and the commands that made reservations. This needs slurmctld 22.05 and a C compiler.

Prints for each recording: how many starts are in the recorded second on the recorded nodes; how many jobs were started
(the last time) by the same loop as recorded, main or backfill; and the first ten starts that differ.
"""

import argparse
import math
import re
import shlex
import tempfile
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import Listening
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.recordings.csv_files import read_rows
from pipistrelle.runs.recordings.names import JobStart
from pipistrelle.runs.recordings.recording import Recording
from pipistrelle.runs.recordings.whole_runs import equal, pairs
from pipistrelle.runs.slurmctld.bridge import LEAD_S, Bridge, RecordedDetails
from pipistrelle.schedulers.wire.native import ServerAddress, serve_simulation

#: with slurmdbd, the recorded slurmctld started 4 s after time 0, which decides the times of its passes
WITH_SLURMDBD = 4
#: times (s) after which slurmctld looks whether all nodes have answered
LOOKS = (0, 0.005, 0.015, 0.035, 0.075, 0.155, 0.315, 0.635, 1.275, 2.275, 3.275)
#: period (s) of the saves of slurmctld's state
SAVES = 300
#: the recording gave its commands so long after the second (s)
COMMANDS = 0.05
#: decimals of the times at which slurmctld received submissions
SUBMITTED = ".049"
PARTS = ("late", "delays", "holds")


def recorded_delays(recording: Recording, holds: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return {job: how late its nodes must report its end (s)}.

    With these delays slurmctld notices the end before the same turn of its main loop as in the recording, and the nodes
    are free for backfill at the recorded time. Jobs without a delay are left out.
    """
    ended: dict[str, float] = {}
    delays = {}
    for row in read_rows(recording.folder, "events.csv", ("time", "event", "id")):
        job = recording.names.get(row["id"], row["id"])
        if row["event"] == "complete":
            ended[job] = row.number("time")
        elif row["event"] == "request" and job in ended:
            phase = sum(length for at, length in holds if at < ended[job]) % 1
            at, asked = ended[job] - phase, row.number("time") - phase
            turn = math.floor(asked + 1e-6)
            looks = [one for one in LOOKS if math.floor(at + one + 1e-6) == turn]
            nearest = min(looks, key=lambda one: abs(at + one - asked))
            before = max((one for one in LOOKS if one < nearest), default=0.0)
            delays[job] = max(before + 0.001, min(nearest, asked - at) - 0.001)
    return {job: delay for job, delay in delays.items() if delay > 0}


def recorded_holds(recording: Recording, begun: float) -> list[tuple[float, float]]:
    """Return when the main loop stood still, and for how long (s); ``begun`` is the time at which slurmctld started.

    The loop turns once a second. Every 300 s it saves its state and writes to slurmdbd, and waits for that. In a
    recording with slurmdbd, the clock sometimes went on in the meantime. So the loop's next turn that left a trace may
    be at another fraction of a second, and turns before it may be missing.
    """
    turns, epilogs = [], set()
    for row in read_rows(recording.folder, "events.csv", ("time", "event")):
        if row["event"] == "limit_check":
            turns.append(row.number("time"))
        elif row["event"] == "epilog":
            epilogs.add(row.number("time"))
    for row in read_rows(recording.folder, "passes.csv", ("time", "kind")):
        if row["kind"].startswith("main"):
            turns.append(row.number("time"))
    # a pass just after a node's epilog is not by the loop
    turns = sorted(turn for turn in set(turns) if not any(0 <= turn - at < 0.05 for at in epilogs))
    holds, phase, saves = [], 0.0, 0
    for before, turn in pairwise(turns):
        saved = begun + SAVES * (saves + 1) + phase
        if before <= saved + 1e-6 < turn:
            saves += 1
            length = round(turn - 1 - saved, 3)
            if length > 0:
                holds.append((saved + COMMANDS, length))
            phase = round(turn % 1, 3)
    return holds


def recorded_late(recording: Recording) -> dict[str, float]:
    """Return {job: how long it ran after its runtime (s)}, for jobs that ran longer."""
    late = {}
    for row in read_rows(recording.folder, "result.csv", ("id", "start_ms", "complete_ms", "state")):
        if row["state"] == "COMPLETED":
            job = recording.names[row["id"]]
            runtime = recording.jobs[job.partition("_")[0]].runtime
            late[job] = round(row.number("complete_ms") - row.number("start_ms") - runtime, 3)
    return {job: seconds for job, seconds in late.items() if seconds > 0}


def recorded_commands(recording: Recording) -> list[tuple[float, list[str]]]:
    """Return the times (s) and words of the commands that made reservations."""
    commands = []
    for line in recording.reservations.splitlines():
        at, _, words = line.partition(",")
        commands.append((math.floor(float(at)) + COMMANDS, shlex.split(words)))
    return commands


class AskedBridge(Bridge):
    """A bridge that asks slurmctld for all jobs at the end."""

    shown = ""

    def close(self) -> None:
        """End slurmctld."""
        if self._slurm is not None:
            self.shown = self.slurm.command(["scontrol", "--oneliner", "show", "job"])[1]
        super().close()


class Compared(NamedTuple):
    """The comparison of a run with a recording.

    Attributes:
        starts: number of recorded starts.
        others: recorded starts that the run lacks or has at another second or on other nodes, each with the run's
            start.
        jobs: number of jobs that started in the recording.
        loops: number of these jobs that the same loop (main or backfill) started in the run.
    """

    starts: int
    others: list[tuple[JobStart, JobStart | None]]
    jobs: int
    loops: int


def compared(folder: Path, out: Path, without: frozenset[str] = frozenset()) -> Compared:
    """Simulate a recording, without some of the details in PARTS, and compare the starts."""
    recording = Recording(folder)
    accounting = tuple(recording.accounting)
    begun = WITH_SLURMDBD if accounting else -LEAD_S
    holds = recorded_holds(recording, begun) if accounting and "holds" not in without else []
    recorded = RecordedDetails(
        late={} if "late" in without else recorded_late(recording),
        delays={} if "delays" in without else recorded_delays(recording, holds),
        holds=holds,
        commands=recorded_commands(recording),
    )
    bridges: list[AskedBridge] = []
    threads: list[threading.Thread] = []

    def announce(endpoint: str) -> AbstractContextManager[None]:
        def serve() -> None:
            bridge = AskedBridge(recording.conf, accounting=accounting, recorded=recorded, lead=-begun)
            bridges.append(bridge)
            try:
                serve_simulation(bridge, ServerAddress(endpoint), hello_timeout=30.0, report=lambda text: None)
            finally:
                bridge.close()

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[0].start()
        return nullcontext()

    jobs = out.with_suffix(".events")
    jobs.write_text(re.sub(r"(?m)^(-dt \d+)", rf"\1{SUBMITTED}", (folder / "jobs.events").read_text()))
    spec = RunSpec(workload=(str(jobs),), platform=recording.conf, config=recording.conf, scheduler="slurmctld")
    run(replace(spec, accounting=accounting), RunOptions(connection=Listening(announce=announce), out=out))
    threads[0].join()
    found = [
        JobStart(row["job_id"].partition("#")[0], at + 1e-6, tuple(expanded(row["allocated_nodes"], "")))
        for row in read_rows(out, "out_jobs.csv", ("job_id", "starting_time", "allocated_nodes"))
        if (at := float(row["starting_time"] or "nan")) >= 0
    ]
    found.sort(key=lambda start: start.time)
    others = [(one, other) for one, other in pairs(recording.starts, found) if not equal(one, other)]
    return Compared(len(recording.starts), others, *same_loops(recording, bridges[0].shown))


def same_loops(recording: Recording, shown: str) -> tuple[int, int]:
    """Return how many jobs started in the recording, and how many of them the same loop started in the run."""
    loops = {}
    for line in shown.splitlines():
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        task = fields.get("ArrayTaskId", "")
        loops[f"{fields['ArrayJobId']}_{task}" if task else fields["JobId"]] = fields.get("Scheduler", "").lower()
    jobs = same = 0
    for row in read_rows(recording.folder, "result.csv", ("id", "start", "scheduler")):
        if row["start"]:
            jobs += 1
            same += loops.get(recording.names[row["id"]]) == row["scheduler"]
    return jobs, same


def told(start: JobStart | None) -> str:
    """Return a start as text."""
    return "none" if start is None else f"{start.time:.2f} on {','.join(start.nodes)}"


def main() -> None:
    """Compare all recordings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--without", default="", help=f"details that are not repeated: {', '.join(PARTS)}")
    given = parser.parse_args()
    for folder in given.folders:
        with tempfile.TemporaryDirectory() as out:
            one = compared(folder, Path(out) / "out", frozenset(given.without.split(",")))
        same = one.starts - len(one.others)
        print(f"{folder.name}: {same} of {one.starts} starts equal; {one.loops} of {one.jobs} by the same loop")
        for recorded, found in one.others[:10]:
            print(f"  job {recorded.job}: {told(recorded)}; here {told(found)}", flush=True)


if __name__ == "__main__":
    main()
