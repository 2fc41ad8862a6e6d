"""The policy ``slurm`` on the engine: the same starts as the controller alone, and the same after a snapshot."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipistrelle.protocol.events import JobDescription
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.slurm.config.machine import NodeSettings, PartitionSettings
from pipistrelle.schedulers.slurm.config.parameters import SelectSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass

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
SHARED = """ClusterName=shared
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n[1-3] CPUs=4 CoresPerSocket=4 RealMemory=16000
NodeName=g1 CPUs=4 CoresPerSocket=4 RealMemory=16000 Gres=gpu:4 Weight=9
PartitionName=batch Nodes=ALL Default=YES DefMemPerCPU=1000
PartitionName=urgent Nodes=n[1-3] PriorityTier=9 DefMemPerCPU=1000
"""
SHARED_EVENTS = """-dt 10 -e submit_batch_job | -J jobid_1 -sim-walltime 130 --uid=ann -t 2 -n 6 -p batch pseudo.job
-dt 10 -e submit_batch_job | -J jobid_2 -sim-walltime 100 --uid=ann -t 5 -n 1 -c 2 --gres=gpu:3 -p batch pseudo.job
-dt 11 -e submit_batch_job | -J jobid_3 -sim-walltime 50 --uid=bob -t 2 -n 1 --gres=gpu:1 -p batch pseudo.job
-dt 12 -e submit_batch_job | -J jobid_4 -sim-walltime 40 --uid=bob -t 60 -N 1 --exclusive -p batch pseudo.job
-dt 20 -e submit_batch_job | -J jobid_5 -sim-walltime 30 --uid=bob -t 5 -N 3 --exclusive -p urgent pseudo.job
-dt 20 -e submit_batch_job | -J jobid_6 -sim-walltime 30 --uid=bob -t 5 --dependency=afternotok:2 -p batch pseudo.job
-dt 20 -e submit_batch_job | -J jobid_7 -sim-walltime 30 --uid=bob -t 5 --dependency=afterany:6 -p batch pseudo.job
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


def test_a_range_of_nodes_gets_the_most_that_are_idle(files: Path) -> None:
    """With whole nodes, too: ``-N 2-3`` gets three nodes, or two if no more are idle."""
    line = "-dt 10 -e submit_batch_job | -J jobid_{} -sim-walltime 60 --uid=ann -t 5 -N {} -p batch pseudo.job\n"
    (files / "jobs.events").write_text(line.format(1, "2-3") + line.format(2, "3") + line.format(3, "2-3"))
    run(*arguments(files), "--out", str(files / "out"))
    assert [nodes for _, nodes in starts(files / "out").values()] == ["n[01-03]", "n[04-06]", "n[07-08]"]


def test_whole_nodes_of_unequal_machines(files: Path) -> None:
    """The server accepts the nodes that Slurm chooses by their CPUs, whatever tasks fit on one node."""
    lines = "NodeName=a[1-4] CPUs=4 Weight=1\nNodeName=b[1-3] CPUs=8 Weight=5"
    (files / "slurm.conf").write_text("\n".join(lines if "NodeName" in one else one for one in CONF.splitlines()))
    expected = {
        "-N 1 -n 8": "b3",
        "-n 8 -c 3 -x a[1-4]": "b[1-3]",
        "-c 8": "b1",
        "-w a1,a2": "a[1-2]",
        "-w a[1-3] -n 2": "a[1-2]",
        "-n 18": "b[1-3]",
        "-n 25": "a4,b[1-3]",
        "-N 1-3 -n 20": "b[1-3]",
        "-N 2-4": "a[1-4]",
    }
    line = "-dt {} -e submit_batch_job | -J jobid_{} -sim-walltime 60 --uid=ann -t 5 {} pseudo.job\n"
    jobs = enumerate(expected, start=1)
    (files / "jobs.events").write_text("".join(line.format(200 * at, at, options) for at, options in jobs))
    run(*arguments(files), "--out", str(files / "out"))
    assert dict(zip(expected, (nodes for _, nodes in starts(files / "out").values()), strict=True)) == expected


def test_machine_of_another_file_is_refused(files: Path) -> None:
    """The policy says what is wrong if the nodes are not those of its configuration."""
    from pipistrelle.protocol.events import SimulationBeginsData
    from pipistrelle.runs.slurm.cluster import load_cluster
    from pipistrelle.schedulers.runtime.runtime import view_of
    from pipistrelle.schedulers.slurm.policy import SlurmPolicy

    policy = SlurmPolicy(load_cluster(str(files / "slurm.conf")).config)
    view = view_of(SimulationBeginsData(4), policy.order)
    with pytest.raises(PolicyError, match=r"not that of the slurm\.conf"):
        policy.decide(view)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return a folder with a configuration of shared nodes, and events."""
    (tmp_path / "slurm.conf").write_text(SHARED)
    (tmp_path / "jobs.events").write_text(SHARED_EVENTS)
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def simulated(folder: Path, out: str, **options: object) -> Path:
    """Run the policy in this process; return the outputs."""
    from pipistrelle.api.runs import run as simulate

    conf = str(folder / "slurm.conf")
    simulate(str(folder / "jobs.events"), conf, "slurm", config=conf, out=folder / out, progress=False, **options)
    return folder / out


def test_jobs_share_nodes_and_keep_their_record_when_they_are_preempted(cluster: Path) -> None:
    """Cores and GPUs are those of the controller; a preempted job waits 121 s and starts again as one job."""
    out = simulated(cluster, "out")
    found = {row["job_id"]: row for row in rows(out / "out_jobs.csv")}
    attempts = {row["job_id"]: row for row in rows(out / "out_attempts.csv")}

    assert found["2"]["takes"].endswith(":1:0-2")
    assert found["3"]["takes"].endswith(":1:3")
    assert found["3"]["starting_time"] == "14.000000"  # batch_sched_delay after the pass at 11
    assert found["5"]["allocated_nodes"] == "n[1-3]"
    assert float(attempts["1#1"]["starting_time"]) >= float(attempts["1"]["finish_time"]) + 121
    # Its limit of 120 s is over between two checks: it ends at the next one, or by itself before it.
    assert found["1#1" if "1#1" in found else "1"]["final_state"] == "COMPLETED_WALLTIME_REACHED"


@pytest.mark.parametrize("names", [("a", "b"), ("a" * 40, "b" * 40)])
def test_a_job_may_start_in_each_of_its_partitions(tmp_path: Path, names: tuple[str, str]) -> None:
    """Their nodes differ; the label is the list of partitions, unless it is too long for a class."""
    first, second = names
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=two\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
        f"NodeName=n[1-2] CPUs=4 CoresPerSocket=4\nPartitionName={first} Nodes=n1 Default=YES MaxTime=60\n"
        f"PartitionName={second} Nodes=n2 MaxTime=30\n"
    )
    parts = (f"-p {first}", f"-p {second},{first}", f"-p {first},{second}")
    lines = [
        f"-dt 5 -e submit_batch_job | -J jobid_{n} -sim-walltime 60 -t 5 -n 4 {one} j\n"
        for n, one in enumerate(parts, 1)
    ]
    (tmp_path / "jobs.events").write_text("".join(lines))

    found = {row["job_id"]: row for row in rows(simulated(tmp_path, "out") / "out_jobs.csv")}

    assert [found[name]["allocated_nodes"] for name in "123"] == ["n1", "n2", "n1"]
    labels = [row["queue"] for row in rows(tmp_path / "out" / "out_labels.csv")]
    assert labels == [first, *((f"{second},{first}", f"{first},{second}") if len(first) == 1 else ("", ""))]


@pytest.mark.parametrize(
    ("options", "cpus"),
    [
        ({"gpus": "a100:1"}, 2),
        ({"gres": "gpu:2"}, 4),
        ({"gpus": "1", "cpus-per-gpu": "4"}, 4),
        ({"gres": "gpu:1", "ntasks": "3"}, 3),
        ({"gpus-per-task": "1", "ntasks": "2"}, 4),
        ({"gpus": "4", "nodes": "2"}, 8),
    ],
)
def test_a_job_gets_the_cpus_of_its_gpus_if_its_tasks_need_fewer(options: dict[str, str], cpus: int) -> None:
    """Jobs of slurmctld 22.05 with these options start; so do ours, with all their CPUs."""
    nodes = ("g1", "g2")
    config = SlurmConfig(
        select=SelectSettings(type="select/cons_tres", parameters=frozenset({"CR_Core"}), def_cpu_per_gpu=2),
        nodes=tuple(NodeSettings(name=name, cpus=8, cores=8, gres={"gpu:a100": 2}) for name in nodes),
        partitions=(PartitionSettings(name="gpu", nodes=nodes, default=True),),
    )
    controller = Controller(config)
    job, refused = controller.submit(["1"], submission_of(JobDescription("w0!1", 1, options=options), 0.0), 0)

    assert refused == ""
    assert main_pass(controller, 1, full=True).started == [job]
    assert job.cpus == cpus


def test_jobs_that_never_start_do_not_stall_the_run(cluster: Path) -> None:
    """Once nothing can start them, jobs whose dependency cannot be satisfied are rejected with Slurm's reason."""
    out = simulated(cluster, "out")
    told = {row["job_id"]: row["why"] for row in rows(out / "out_decisions.csv") if row["decision"] == "REJECT_JOB"}

    assert told == {
        "w0!6": "still waits at the end: DependencyNeverSatisfied",
        "w0!7": "still waits at the end: Dependency",
    }
    assert json.loads((out / "out_summary.json").read_text())["jobs"] == 7


@pytest.mark.slow
def test_sockets_resumed_runs_and_replays_agree_with_a_run_in_process(cluster: Path) -> None:
    """A run over a socket and runs resumed from its snapshots write the same jobs; a replay finds no difference."""
    first = (simulated(cluster, "first") / "out_jobs.csv").read_bytes()
    session, out = str(cluster / "session.jsonl"), cluster / "second"
    kept = ("--snapshot-every", "sim:60s", "--keep-snapshots", "99", "--leave-snapshots")
    run(*arguments(cluster), "-q", "-o", str(out), *kept)
    assert (out / "out_jobs.csv").read_bytes() == first
    snapshots = sorted(out.glob("out_snapshot-*.gz"))
    assert len(snapshots) > 3
    for number, snapshot in enumerate(snapshots[::3]):
        run("resume", str(snapshot), "--out", str(cluster / f"again-{number}"), "--quiet")
        assert (cluster / f"again-{number}" / "out_jobs.csv").read_bytes() == first
    run(*arguments(cluster), "-q", "-o", str(cluster / "third"), "--record", session)
    run("check", "replay", session)
    run("check", "replay", session, "--server")
