"""A scheduler process that is a simulation with its own clock."""

import csv
from pathlib import Path

import pytest


def starts(table: Path) -> dict[str, float]:
    """Return {job: start (s)}."""
    return {row["job_id"]: float(row["starting_time"]) for row in csv.DictReader(table.read_text().splitlines())}


@pytest.mark.parametrize("period", ["1", "7", "40"])
def test_a_scheduler_with_its_own_clock_decides_at_its_own_times(shell, period):
    """It starts jobs at the same times as a built-in scheduler that decides at multiples of the period."""
    shell.simulate("own_clock", period).ok()
    (shell.folder / "out").rename(shell.folder / "own")
    shell.run(
        "run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--scheduler", "fcfs", "--poll", f"{period}s"
    ).ok()  # fmt: skip

    own, polled = (starts(shell.folder / name / "out_jobs.csv") for name in ("own", "out"))
    assert own == polled
    assert {start % float(period) for start in own.values()} == {0}


def test_its_clock_and_the_servers_failures_stay_synchronised(shell):
    """Nodes fail and are repaired between its ticks; each job ends or is accounted for, and the run is repeatable."""
    outputs = []
    for _ in range(2):
        shell.simulate("own_clock", "7", options=["--failures", "exponential,mtbf=200s", "--repair", "10s"]).ok()
        outputs.append((shell.folder / "out" / "out_jobs.csv").read_bytes())
    assert outputs[0] == outputs[1]
