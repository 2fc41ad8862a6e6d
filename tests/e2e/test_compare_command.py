"""``pipistrelle compare``: tables, JSON, a file of jobs, exit codes and errors."""

import csv
import json

import pytest


@pytest.fixture
def ran(shell):
    """Return a shell with runs of the seven jobs under fcfs and easy."""
    for name in ("fcfs", "easy"):
        shell.run("run", "-w", "seven-jobs", "--scheduler", name, "--in-process", "-o", name, "-q").ok()
    return shell


def test_two_runs_are_compared_with_exit_code_1(ran):
    """Tables that fit 80 columns, exit code 1, and the first difference."""
    found = ran.run("compare", "fcfs", "easy", "--by", "size", "--jobs", "jobs.csv")

    assert found.code == 1
    assert "7 jobs ended in all runs." in found.out
    assert "Runs 1 and 2 differ:" in found.out
    assert "backfilled before" in found.out
    assert max(map(len, found.out.partition("Runs 1 and 2 differ:")[0].splitlines())) <= 80
    with (ran.folder / "jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7
    assert float(rows[6]["wait_2"]) <= float(rows[6]["wait_1"])
    ran.run("compare", "fcfs", "easy", "--exit-zero").ok()


def test_equal_runs(ran):
    """Exit code 0, and a message that they are equal."""
    assert "every decision, every job" in ran.run("compare", "easy", "easy").ok().out


def test_without_scipy_one_warning_says_so(ran):
    """It is on standard error. With scipy, or with too few jobs for an interval, there is none."""
    for name in ("first", "second"):
        ran.run("run", "-w", "demo", "--in-process", "-o", name, "-q").ok()
    words = ("compare", "--exit-zero", "first", "second")
    assert "±" in (found := ran.run(*words).ok()).out
    assert not found.err

    ran.write("scipy.py", "raise ImportError")
    found = ran.run(*words)
    assert (found.code, "±" in found.out) == (0, False)
    assert found.err == "WARNING: intervals need scipy: python -m pip install scipy\n"
    assert not ran.run("compare", "--exit-zero", "fcfs", "easy").ok().err


def test_json(ran):
    """Three runs; the others are compared with the first."""
    told = json.loads(ran.run("compare", "fcfs", "easy", "fcfs", "--json", "--exit-zero").ok().out)

    assert [run["scheduler"] for run in told["runs"]] == ["fcfs", "easy", "fcfs"]
    assert told["first_difference"][1] is None
    assert len(told["figures"][0]["against_first"]) == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fcfs"], "give at least two runs"),
        (["fcfs", "nowhere"], "there is no such folder"),
        (["fcfs", "easy", "--by", "colour"], "the jobs have no colour"),
        (["fcfs", "easy", "--by", "qos"], "the jobs have no qos"),
    ],
)
def test_what_can_be_wrong(ran, words, says):
    """Each is one message, and exit code 2."""
    ran.run("compare", *words).failed(2, says)


def test_an_interrupted_run_can_be_compared(ran):
    """It is compared up to its end, and the output says that it was interrupted."""
    cut = ran.folder / "cut"
    cut.mkdir()
    for path in (ran.folder / "easy").iterdir():
        if path.is_file() and path.name != "out_summary.json":
            lines = path.read_text().splitlines(keepends=True)
            (cut / path.name).write_text("".join(lines[:4]) if path.name == "out_jobs.csv" else path.read_text())
    found = ran.run("compare", "easy", "cut")

    assert found.code == 1
    assert "cut short" in found.out
    assert "3 jobs ended in all runs; up to 4 jobs of a run did not." in found.out
    assert "does not end" in found.out
