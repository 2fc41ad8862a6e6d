"""The policy ``slurm`` on the engine: the same starts as the controller alone, and the same after a snapshot."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from pipistrelle.schedulers.policy.errors import PolicyError

CONF = """ClusterName=small
SchedulerType=sched/backfill
SelectType=select/linear
PriorityType=priority/basic
NodeName=n[01-08] CPUs=4 CoresPerSocket=4 RealMemory=16000
PartitionName=batch Nodes=ALL Default=YES MaxTime=1440 OverSubscribe=EXCLUSIVE
"""
EVENTS = """-dt 10 -e submit_batch_job | -J jobid_1 -sim-walltime 300 --uid=ann -t 10 -N 6 -p batch pseudo.job
-dt 10 -e submit_batch_job | -J jobid_2 -sim-walltime 100 --uid=ann -t 5 -N 8 -p batch pseudo.job
-dt 11 -e submit_batch_job | -J jobid_3 -sim-walltime 50 --uid=bob -t 2 -N 2 -p batch pseudo.job
-dt 12 -e submit_batch_job | -J jobid_4 -sim-walltime 40 --uid=bob -t 60 -N 1 -p batch pseudo.job
-dt 12 -e submit_batch_job | -J jobid_5 -sim-walltime 30 --uid=bob -t 5 -N 1 --dependency=afterok:1 -p batch pseudo.job
-dt 12 -e submit_batch_job | -J jobid_6 -sim-walltime 30 --uid=bob -t 5 -N 1 --array=0-3%2 -p batch pseudo.job
-dt 12 -e submit_batch_job | -J jobid_7 -sim-walltime 30 --uid=bob -t 5 -N 1 --begin=now+100 -p batch pseudo.job
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a configuration and events."""
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.events").write_text(EVENTS)
    return tmp_path


def starts(folder: Path) -> dict[str, tuple[float, str]]:
    """Return {job: (start, nodes)} of a run's outputs."""
    with (folder / "out_jobs.csv").open(newline="") as stream:
        return {row["job_id"]: (float(row["starting_time"]), row["allocated_nodes"]) for row in csv.DictReader(stream)}


def arguments(files: Path) -> list[str]:
    """Return the arguments of a run of the policy."""
    conf = str(files / "slurm.conf")
    return ["run", "--scheduler", "slurm", "--config", conf, "-p", conf, "-w", str(files / "jobs.events")]


def run(*words: str) -> None:
    """Run a command in a process of its own; fail with its error output."""
    done = subprocess.run(
        [sys.executable, "-m", "pipistrelle.cli", *words], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_run_starts_jobs_as_slurmctld_would(files: Path) -> None:
    """Jobs start at whole seconds by the main loop, small ones by backfill, dependent ones after their event."""
    run(*arguments(files), "-o", str(files / "out"))
    found = starts(files / "out")
    assert found["1"] == (11.0, "n[01-06]")  # the tick after the submission
    assert found["3"][1] == "n[07-08]"
    assert found["5"][0] >= 311.0
    assert found["2"][0] >= 311.0
    assert found["7"][0] >= 112.0
    tasks = sorted(found[f"6_{task}"][0] for task in range(4))
    assert tasks[2] >= tasks[0] + 30
    assert all(start == int(start) for start, _ in found.values())


def test_machine_of_another_file_is_refused(files: Path) -> None:
    """The policy says what is wrong if the nodes are not those of its configuration."""
    from pipistrelle.protocol.events import SimulationBeginsData
    from pipistrelle.runs.inputs.slurm_cluster import load_cluster
    from pipistrelle.schedulers.runtime.runtime import view_of
    from pipistrelle.schedulers.slurm.policy import SlurmPolicy

    policy = SlurmPolicy(load_cluster(str(files / "slurm.conf")).config)
    view = view_of(SimulationBeginsData(4), policy.order)
    with pytest.raises(PolicyError, match="not that of the slurm.conf"):
        policy.decide(view)
