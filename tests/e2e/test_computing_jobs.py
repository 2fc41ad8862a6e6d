"""Jobs that compute, from the command line: on hosts of unequal speed, shared or not, up to work that never ends."""

import csv
import json
from functools import partial

import pytest

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="None">
<host id="h0" speed="100Mf"/><host id="h1" speed="50Mf"/>
</zone></platform>
"""
PROFILES = {
    "both": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    "total": {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 0},
    "each": {"type": "parallel", "cpu": [4e9, 1e9], "com": [0, 0, 0, 0]},
    "wait": {"type": "delay", "delay": 10},
    "rounds": {"type": "composed", "repeat": 2, "seq": ["total", "wait"]},
    "endless": {"type": "parallel_homogeneous", "cpu": 1e30, "com": 0},
}


@pytest.fixture
def play(shell):
    """Return a function that runs jobs (id, size, profile, walltime), and how they ended: {id: (state, start, end)}."""
    shell.write("platform.xml", PLATFORM)

    def play(jobs, *words, folder):
        described = [
            {"id": name, "subtime": 0, "res": size, "profile": profile, "walltime": walltime}
            for name, size, profile, walltime in jobs
        ]
        shell.write("workload.json", json.dumps({"nb_res": 2, "jobs": described, "profiles": PROFILES}))
        simulate = shell.batsim if "--no-sched" in words else partial(shell.run, "run")
        outcome = simulate(*words, "-p", "platform.xml", "-w", "workload.json")
        with (shell.folder / f"{folder}_jobs.csv").open() as lines:
            rows = {
                row["job_id"]: (row["final_state"], float(row["starting_time"]), float(row["finish_time"]))
                for row in csv.DictReader(lines)
            }
        return outcome, rows

    return play


NATIVE = ("--in-process", "--scheduler", "fcfs", "--out", "out")
ALONE = ("--no-sched", "-e", "alone")


def test_the_slowest_host_counts(play):
    """They run one after the other under FCFS; the times of a composed profile's parts add up."""
    jobs = [("1", 2, "both", 100), ("2", 2, "total", 100), ("3", 2, "each", 100), ("4", 2, "rounds", 100)]

    outcome, rows = play(jobs, *NATIVE, folder="out/out")

    outcome.ok()
    done = "COMPLETED_SUCCESSFULLY"
    assert rows == {"1": (done, 0, 20), "2": (done, 20, 30), "3": (done, 30, 70), "4": (done, 70, 110)}


def test_without_a_scheduler_jobs_share_the_hosts(play):
    """All start at once: the fast host gives each a third of its speed, which is less than that of the slow one."""
    jobs = [("1", 1, "both", 1000), ("2", 2, "both", 1000), ("3", 1, "both", 1000)]

    outcome, rows = play(jobs, *ALONE, folder="alone")

    outcome.ok()
    assert {row[0] for row in rows.values()} == {"COMPLETED_SUCCESSFULLY"}
    assert {row[2] for row in rows.values()} == {30.0}


@pytest.mark.parametrize(("words", "folder"), [(NATIVE, "out/out"), (ALONE, "alone")])
def test_endless_work_ends_at_its_walltime(play, words, folder):
    """The job has more flops than any machine can compute."""
    outcome, rows = play([("1", 1, "endless", 50)], *words, folder=folder)

    outcome.ok()
    assert rows == {"1": ("COMPLETED_WALLTIME_REACHED", 0, 50)}


@pytest.mark.parametrize(("words", "folder"), [(NATIVE, "out/out"), (ALONE, "alone")])
def test_endless_work_without_a_walltime_is_reported(play, words, folder):
    """The run ends early with one message that names the job; what was done before is written."""
    outcome, _ = play([("1", 1, "endless", -1)], *words, folder=folder)

    outcome.failed(5, "w0!1 would never end", "profile 'endless'", "walltime")
