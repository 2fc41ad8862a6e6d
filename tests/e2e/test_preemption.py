"""Preemption from the command line: over a socket, in process, recorded, resumed, and errors."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

LOW, HIGH = "low", "high"
WAY = ("--preempt-type", "qos", "--preempt", "high=low", "--preempt-mode", "checkpoint", "--preempt-grace", "low=2min")
DUMPS = ("--checkpoint", "30min", "--dump", "1min", "--read", "1min")


@pytest.fixture
def jobs(shell: Any) -> str:
    """Write a workload of jobs of two QOS, some of which are preempted; return its name."""
    rows = [
        {"id": f"{n}", "subtime": 400 * n, "res": 1 + 3 * n % 8, "walltime": 9000, "profile": f"p{n % 7}", "qos": qos}
        for n, qos in ((n, HIGH if n % 4 == 3 else LOW) for n in range(40))
    ]
    profiles = {f"p{n}": {"type": "delay", "delay": 900 + 1100 * n} for n in range(7)}
    name = "jobs.json"
    (shell.folder / name).write_text(json.dumps({"nb_res": 8, "jobs": rows, "profiles": profiles}))
    return name


def outputs(folder: Path) -> dict[str, bytes]:
    """Return the tables of a run."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("out_*.csv"))}


def test_a_run_over_a_socket_is_that_of_one_process(shell: Any, jobs: str) -> None:
    """Both modes agree; replays to scheduler and server find no difference."""
    shell.run("run", "-w", jobs, *WAY, *DUMPS, "--in-process", "--out", "one", "--quiet").ok()
    shell.run("run", "-w", jobs, *WAY, *DUMPS, "--out", "two", "--record", "s.jsonl", "--quiet").ok()
    assert outputs(shell.folder / "one") == outputs(shell.folder / "two")
    figures = json.loads((shell.folder / "one" / "out_summary.json").read_text())["preemption"]
    assert figures["preempted"] == figures["requeued"] > 3
    assert 0 < figures["dumped"] <= figures["preempted"]
    assert figures["asked"] == figures["preempted"] + figures["ended_before"]
    assert "easy decides as recorded" in shell.run("check", "replay", "s.jsonl").ok().out
    assert "the server sends the recorded notices" in shell.run("check", "replay", "s.jsonl", "--server").ok().out


def test_a_run_goes_on_from_a_snapshot(shell: Any, jobs: str) -> None:
    """The outputs are the same; a policy without preemption is refused."""
    shell.run("run", "-w", jobs, *WAY, "--in-process", "--out", "whole", "--quiet").ok()
    shell.run(
        *("run", "-w", jobs, *WAY, "--in-process", "--out", "cut", "--quiet"),
        *("--snapshot-every", "sim:2h", "--leave-snapshots"),
    ).ok()
    assert outputs(shell.folder / "whole") == outputs(shell.folder / "cut")
    snapshot = str(sorted((shell.folder / "cut").glob("*snapshot*"))[0].relative_to(shell.folder))
    shell.run("resume", snapshot, "--out", "again", "--quiet").ok()
    assert outputs(shell.folder / "whole") == outputs(shell.folder / "again")
    other = shell.run("resume", snapshot, "--scheduler", "fcfs", "--out", "other", "--quiet")
    other.failed(2, "only one of the two schedulers may preempt")


def test_what_was_lost_is_accounted_for(shell: Any, jobs: str) -> None:
    """Jobs that did not reach their walltime did all their work; summary and attempts agree."""
    shell.run("run", "-w", jobs, *WAY[:4], "--in-process", "--out", "out", "--quiet").ok()
    with (shell.folder / "out" / "out_attempts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    gone = [row for row in rows if row["cause"] == "preempted"]
    figures = json.loads((shell.folder / "out" / "out_summary.json").read_text())
    assert len(gone) == figures["preemption"]["preempted"] > 3
    assert {(row["final_state"], row["retried"]) for row in gone} == {("COMPLETED_KILLED", "1")}
    assert sum(float(row["unit_seconds_lost"]) for row in gone) == pytest.approx(figures["preemption"]["lost"])
    last = {row["first_job_id"]: row for row in rows}
    assert len(last) == figures["jobs"] == figures["completed"] == 40
    assert figures["reliability"]["interrupted_attempts"] == 0
    told = shell.run("explain", "job", "out", gone[0]["job_id"]).ok().out
    assert f"It was preempted at {float(gone[0]['finish_time']):.10g} s; the scheduler says: for w0!" in told


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (WAY[:2], "no QOS may preempt another"),
        (("--preempt", "high=low"), "options of preemption need a type"),
        (("--preempt-type", "partition_prio"), "all have the same tier"),
        ((*WAY, "--dialect", "batsim"), "the batsim dialect does not support preemption"),
        ((*WAY, "--scheduler", "maui"), "'maui' has no options of preemption"),
        ((*WAY, "--reliability", "auto"), "cannot be combined"),
        ((*WAY[:4], "--preempt-mode", "suspend"), "invalid --preempt-mode"),
        (("--max-attempts", "3"), "--max-attempts has no effect"),
    ],
)
def test_what_makes_no_sense_is_one_message(shell: Any, jobs: str, words: tuple[str, ...], text: str) -> None:
    """Contradictory options give one message without traceback."""
    failed = shell.run("run", "-w", jobs, *words, "--quiet")
    assert failed.code in (1, 2, 4), failed
    assert text in failed.err
    assert "Traceback" not in failed.err


def test_options_of_attempts_go_with_preemption(shell: Any, jobs: str) -> None:
    """--max-attempts limits starts; without QOS a warning says that no job is preempted."""
    shell.run("run", "-w", jobs, *WAY[:4], "--max-attempts", "1", "--in-process", "--out", "out", "--quiet").ok()
    figures = json.loads((shell.folder / "out" / "out_summary.json").read_text())["preemption"]
    assert (figures["requeued"], figures["cancelled"] > 3) == (0, True)
    told = shell.run("run", "-w", "seven-jobs", *WAY[:4], "--in-process", "--quiet")
    assert told.code == 0
    assert "has a QOS, so none is preempted" in told.err
