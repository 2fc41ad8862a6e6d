"""Jobs that request nodes, between real processes and in every mode."""

import json
import random
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "pools"


def made(shell, jobs=150):
    """Write a workload whose jobs ask for all kinds of nodes of the example's machine."""
    dice = random.Random(7)  # noqa: S311 - a test's dice
    told = []
    for number in range(jobs):
        job = {"id": str(number), "subtime": number // 3, "res": dice.choice([1, 2, 3, 4, 6]), "walltime": 30}
        job |= {"profile": f"d{dice.choice([3, 9, 20])}"}
        if constraint := dice.choice(["", "pool=cpu", "unit=gpu", "nvlink", "a100|k80", "rack7"]):
            job["constraint"] = constraint
        if dice.random() < 0.5:
            job["units_per_node"] = dice.choice([1, 2, 3, 4])
        if dice.random() < 0.2:
            job["whole_nodes"] = True
        told.append(job)
    profiles = {f"d{length}": {"type": "delay", "delay": length} for length in (3, 9, 20)}
    return shell.write("asks.json", json.dumps({"jobs": told, "profiles": profiles}))


@pytest.mark.parametrize("policy", ["easy", "conservative", "pbs", "maui"])
def test_every_way_to_run_gives_the_same_schedule(shell, policy):
    """One process, two processes and Batsim's dialect agree; no decision is illegal."""
    asks = made(shell)
    jobs = {}
    for out, options in {"one": ["--in-process"], "two": [], "batsim": ["--dialect", "batsim"]}.items():
        command = ("run", "-p", EXAMPLES / "zeus.toml", "-w", asks, "--scheduler", policy, "--strict", "--out", out)
        assert shell.run(*command, *options).code == 0
        jobs[out] = shell.files(out)["out_jobs.csv"]

    assert jobs["one"] == jobs["two"] == jobs["batsim"]
    assert len(jobs["one"].splitlines()) > 100


def test_what_cannot_be_is_said_by_name(shell):
    """Warnings name the jobs: unknown pools, unsatisfiable constraints, too many units per node."""
    command = ("run", "-p", EXAMPLES / "zeus.toml", "-w", EXAMPLES / "jobs.json", "--in-process", "--out", "out")
    outcome = shell.run(*command)

    assert outcome.code == 0
    assert "no pool meets its constraint 'gpu_model=h100': '6'" in outcome.err
    assert "it asks for 8 units a node" in outcome.err
    assert "2 jobs do not run, because no nodes are as requested" in outcome.err
    assert "To let all jobs run on any nodes, add --ignore-constraints" in outcome.err
    summary = json.loads((shell.folder / "out" / "out_summary.json").read_text())
    assert summary["dropped"] == {"no nodes are as it asks": 2}
    shell.run(*command, "--partition-pools", "1=gpus").failed(
        2, "--partition-pools", "has no pool 'gpus'", "mean 'gpu'"
    )
