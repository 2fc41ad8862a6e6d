"""Runs on nodes with cores, memory and GPUs, of which jobs take parts."""

import csv
import json
from random import Random

import pytest

MACHINE = """
name = "shared"
[[pools]]
name = "std"
nodes = 6
resources = { cores = 16, memory = "64 GiB" }
[[pools]]
name = "gpu"
nodes = 2
resources = { cores = 16, memory = "128 GiB", gpu = { count = 4, model = "a100" } }
[licenses]
matlab = 3
"""
FAILING = ("--failures", "exponential,mtbf=10h", "--repair", "2h", "--max-attempts", "50")


def request(random):
    """Return what some job requests."""
    kind = random.randrange(5)
    if kind == 0:
        return {"tasks": random.randint(1, 8), "memory_per_core": random.randint(500, 6000)}
    if kind == 1:
        return {"tasks": 1, "gpus": 1, "gpu_share": random.choice([250, 500, 1000])}
    if kind == 2:
        return {"nodes": 2, "most_nodes": 2, "tasks": 6, "memory_per_node": 9000}
    if kind == 3:
        return {"nodes": 1, "exclusive": True}
    return {"tasks": 2, "licenses": {"matlab": 1}}


def make(shell, jobs=200, of=request):
    """Write the machine and a workload on it."""
    random, time = Random(7), 0  # noqa: S311
    rows, profiles = [], {}
    for number in range(jobs):
        time += random.randint(1, 400)
        run = random.randint(60, 4000)
        profiles[str(run)] = {"type": "delay", "delay": run}
        row = {"id": number, "subtime": time, "walltime": 2 * run, "res": 1, "profile": str(run)}
        rows.append(row | {"request": of(random)})
    shell.write("shared.toml", MACHINE)
    shell.write("jobs.json", json.dumps({"nb_res": 8, "jobs": rows, "profiles": profiles}))


def run(shell, out, *arguments, policy="easy"):
    """Run the workload; return the outcome."""
    return shell.run(
        "run", "-p", "shared.toml", "-w", "jobs.json", "--scheduler", policy, *arguments, "--out", out, "--quiet"
    )


def rows(shell, out):
    """Return the rows of the jobs."""
    with (shell.folder / out / "out_jobs.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_every_transport_gives_the_same_bytes(shell, policy):
    """In process, over ipc and over tcp; each row says what its job requested and took."""
    make(shell)
    run(shell, "one", "--in-process", policy=policy).ok()
    run(shell, "two", policy=policy).ok()
    run(shell, "three", "--endpoint", "tcp://127.0.0.1:*", policy=policy).ok()

    assert shell.files("one") == shell.files("two") == shell.files("three")
    for row in rows(shell, "one"):
        assert row["final_state"] == "COMPLETED_SUCCESSFULLY"
        assert row["takes"]
        assert float(row["allocated_cores"]) >= float(row["requested_cores"])
        assert float(row["allocated_gpus"]) >= float(row["requested_gpus"])
    summary = json.loads((shell.folder / "one" / "out_summary.json").read_text())
    used = summary["resources"]
    assert used["cores"]["utilisation"] == pytest.approx(summary["utilisation"])
    assert set(used) == {"cores", "memory", "gpu"}
    assert set(used["gpu"]["stranded"]) == {"cores", "memory"}


def test_a_run_with_failures_is_recorded_and_replayed(shell):
    """Scheduler and server both decide as recorded, although jobs lose their nodes and come back."""
    make(shell)
    run(shell, "whole", "--in-process", *FAILING).ok()
    run(shell, "out", *FAILING, "--record", "s.jsonl").ok()
    assert "the server sends the recorded notices" in shell.run("check", "replay", "s.jsonl", "--server").ok().out
    assert "easy decides as recorded" in shell.run("check", "replay", "s.jsonl").ok().out
    assert shell.files("out") == shell.files("whole")
    attempts = (shell.folder / "whole" / "out_attempts.csv").read_text()
    assert "#1" in attempts


def test_jobs_that_share_nodes_need_the_feature(shell):
    """A scheduler that does not request it is refused at HELLO, and told which job shares nodes."""
    make(shell)
    run(shell, "out", policy=" ".join(map(str, shell.peer("good")))).failed(
        4, "the feature 'resources'", "take parts of nodes"
    )


def test_a_run_in_batsims_dialect_is_refused(shell):
    """Batsim's protocol cannot say what a job takes of a node."""
    make(shell)
    run(shell, "out", "--dialect", "batsim").failed(2, "Batsim's protocol cannot say", "native")
