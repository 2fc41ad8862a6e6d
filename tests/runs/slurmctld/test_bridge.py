"""Runs in which an unmodified slurmctld decides; they skip where Slurm 22.05 or a C compiler is absent."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pipistrelle.protocol.base.errors import InputError, PipistrelleError
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess, Listening, WithChild
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.slurmctld import installation
from pipistrelle.runs.slurmctld.bridge import EPOCH_S, Bridge, RecordedDetails
from pipistrelle.runs.slurmctld.conductor import VirtualTimeError
from pipistrelle.runs.slurmctld.daemon import Slurmctld
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS
from pipistrelle.schedulers.wire.native import ServerAddress, serve_simulation


def is_absent() -> str:
    """Return what is missing, or ""."""
    if shutil.which("cc") is None:
        return "there is no C compiler (cc)"
    try:
        installation.find_slurm(None)
    except InputError as error:
        return f"Slurm 22.05 is not installed ({error.what})"
    return ""


ABSENT = is_absent()
needs_slurm = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
CONF = """ClusterName=small
SlurmctldHost=head
SelectType=select/linear
SchedulerParameters=bf_interval=30
PriorityType=priority/basic
JobRequeue=1
NodeName=n[1-4] CPUs=4 RealMemory=1000
PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0 OverSubscribe=EXCLUSIVE
"""
JOB = (
    "-dt {at} -e submit_batch_job | -J jobid_{number} -sim-walltime {run} --uid={user} -t {limit} -N {nodes} {more} "
    "x.job\n"
)


def job(number: int, at: int, run: int, nodes: int, limit: int = 60, more: str = "", user: str = "ada") -> str:
    """Return a line of a file of events; ``limit`` is in minutes."""
    return JOB.format(number=number, at=at, run=run, nodes=nodes, limit=limit, more=more, user=user)


def spec_of(folder: Path, jobs: str, scheduler: str = "slurmctld", conf: str = CONF, **more: object) -> RunSpec:
    """Write the files of a run and return its description."""
    (folder / "slurm.conf").write_text(conf)
    (folder / "jobs.events").write_text(jobs)
    conf_file = str(folder / "slurm.conf")
    files = {"workload": (str(folder / "jobs.events"),), "platform": conf_file, "config": conf_file}
    return RunSpec(**{**files, "scheduler": scheduler, **more})  # type: ignore[arg-type]


def rows(folder: Path, name: str = "out_jobs.csv") -> dict[str, dict[str, str]]:
    """Return the rows of a table of jobs by id."""
    with (folder / name).open() as file:
        return {row["job_id"]: row for row in csv.DictReader(file)}


def starts(folder: Path) -> dict[str, tuple[float, str]]:
    """Return start and nodes of each job."""
    return {name: (float(row["starting_time"]), row["allocated_resources"]) for name, row in rows(folder).items()}


def run_in(folder: Path, spec: RunSpec) -> Path:
    """Carry out a run with the real slurmctld and return its outputs."""
    run(spec, RunOptions(connection=WithChild(name="slurmctld"), out=folder))
    return folder


MIXED = "".join(
    job(number, 120 + 7 * number, 40 + 31 * number % 300, 1 + number % 4, limit=3 + number % 5, user=f"u{number % 3}")
    for number in range(1, 41)
)


@pytest.mark.slow
@needs_slurm
def test_it_decides_as_our_model_of_it(tmp_path: Path) -> None:
    """All 40 jobs complete, and most start within the model's period of backfilling.

    slurmctld starts 10 minutes before time 0, the model at 0, so that their passes of backfilling have other times.
    """
    real = starts(run_in(tmp_path / "real", spec_of(tmp_path, MIXED)))
    run(spec_of(tmp_path, MIXED, "slurm"), RunOptions(connection=InProcess(), out=tmp_path / "model"))
    model = starts(tmp_path / "model")
    assert {row["final_state"] for row in rows(tmp_path / "real").values()} == {
        row["final_state"] for row in rows(tmp_path / "model").values()
    }
    assert real.keys() == model.keys()
    near = [name for name, (time, _) in model.items() if abs(real[name][0] - time) <= 30]
    assert len(near) >= 28, (real, model)


@needs_slurm
def test_limits_dependencies_arrays_and_refusals(tmp_path: Path) -> None:
    """What sbatch and slurmctld decide arrives in the outputs."""
    jobs = (
        job(1, 10, 1000, 4, limit=5)  # killed at the first check after its limit
        + job(2, 20, 50, 1, more="-d afterany:1")
        + job(3, 20, 50, 1, more="--reservation=nothing")
        + job(4, 30, 60, 2, more="--array=0-3%1")
    )
    out = run_in(tmp_path / "out", spec_of(tmp_path, jobs))
    found = rows(out)
    assert found["1"]["final_state"] == "COMPLETED_WALLTIME_REACHED"
    assert 300 <= float(found["1"]["execution_time"]) < 330
    assert float(found["2"]["starting_time"]) > float(found["1"]["finish_time"])
    assert found["3"]["final_state"] == "REJECTED"
    tasks = sorted(float(row["starting_time"]) for name, row in found.items() if name not in ("1", "2", "3"))
    assert len(tasks) == 4
    assert all(later - earlier >= 60 for earlier, later in pairwise(tasks))


@needs_slurm
def test_failed_nodes_go_down_and_jobs_are_requeued(tmp_path: Path) -> None:
    """slurmctld puts a job that lost its nodes back, and starts it again on nodes that are up."""
    (tmp_path / "outages.csv").write_text("node,down,up\n0,100,5000\n1,100,5000\n")
    spec = spec_of(tmp_path, job(1, 10, 600, 2) + job(2, 700, 60, 4), outages=str(tmp_path / "outages.csv"))
    out = run_in(tmp_path / "out", spec)
    found = rows(out)
    assert found["1"]["final_state"] == "COMPLETED_FAILED"
    (again,) = [row for name, row in found.items() if name.startswith("1#")]
    assert (again["final_state"], again["allocated_resources"]) == ("COMPLETED_SUCCESSFULLY", "2-3")
    assert float(again["starting_time"]) > 100
    assert float(found["2"]["starting_time"]) >= 5000


@pytest.mark.slow
@needs_slurm
def test_every_job_is_accounted_for_while_nodes_fail(tmp_path: Path) -> None:
    """Each of 500 jobs ends as its kind and its nodes' failures say, and nothing on a node overlaps."""
    draw = np.random.default_rng(7)
    kinds = ["plain"] * 6 + ["stays", "long", "refused"]
    at, lines, jobs = 0.0, [], {}
    for number in range(1, 501):
        at += draw.exponential(60)
        kind, runtime = str(draw.choice(kinds)), 10 + int(draw.exponential(600))
        more = {"stays": "--no-requeue", "refused": "--reservation=nothing"}.get(kind, "")
        limit = max(1, runtime // 120) if kind == "long" else runtime // 60 + 5
        nodes = 1 + int(draw.integers(0, 10))
        jobs[str(number)] = (kind, runtime, 60 * limit)
        lines.append(job(number, int(at), runtime, nodes, limit, more, user=f"u{number % 5}"))
    outages = []
    for node in draw.permutation(40)[:30]:
        down = float(round(draw.uniform(500, at), 3))
        outages.append((int(node), down, down + float(round(draw.uniform(60, 3600), 3))))
    table = "".join(f"{node},{down},{up}\n" for node, down, up in outages)
    (tmp_path / "outages.csv").write_text(f"node,down,up\n{table}")
    conf = CONF.replace("n[1-4]", "n[1-40]")
    out = run_in(tmp_path / "out", spec_of(tmp_path, "".join(lines), conf=conf, outages=str(tmp_path / "outages.csv")))
    attempts: dict[str, list[dict[str, str]]] = {}
    for name, row in rows(out).items():
        attempts.setdefault(name.partition("#")[0], []).append(row)
    assert attempts.keys() == jobs.keys()
    used: list[tuple[int, float, float]] = [*outages]
    failed = 0
    for name, (kind, runtime, limit) in jobs.items():
        *before, last = sorted(attempts[name], key=lambda row: float(row["submission_time"]))
        for row in [*before, *([last] if last["final_state"] == "COMPLETED_FAILED" else [])]:
            failed += 1
            assert row["final_state"] == "COMPLETED_FAILED"
            units = NodeSet.parse(row["allocated_resources"])
            assert any(node in units and down == float(row["finish_time"]) for node, down, _ in outages), row
        ran = float(last["execution_time"] or 0)
        if kind == "refused":
            assert last["final_state"] == "REJECTED"
        elif last["final_state"] == "COMPLETED_FAILED":
            assert kind == "stays"
            assert not before
        elif runtime > limit and last["final_state"] == "COMPLETED_WALLTIME_REACHED":
            assert limit - 1 < ran < limit + 31  # slurmctld counts whole seconds
        else:
            assert (last["final_state"], ran) == ("COMPLETED_SUCCESSFULLY", runtime)
            assert runtime < limit + 31
        for row in attempts[name] if kind != "refused" else ():
            begun, ended = float(row["starting_time"]), float(row["finish_time"])
            used += [(unit, begun, ended) for unit in NodeSet.parse(row["allocated_resources"])]
    assert failed >= 15, failed
    for (unit, _, ended), (other, begun, _) in pairwise(sorted(used)):
        assert unit != other or ended <= begun


@needs_slurm
def test_cancelled_job_leaves_slurms_queue(tmp_path: Path) -> None:
    """A job that was cancelled while it waited is cancelled then, and jobs behind it start without it."""
    lines = [
        (1, 10, -1, 1000, 4, 1200, 1),  # runs until 1011
        (2, 20, 300, 0, 4, 1200, 5),  # cancelled at 320, else it would run before job 3
        (3, 30, -1, 50, 4, 1200, 1),
    ]
    (tmp_path / "jobs.swf").write_text(
        "; MaxProcs: 4\n; UnixStartTime: 0\n"
        + "".join(
            f"{number} {at} {wait} {run} {nodes} -1 -1 {nodes} {limit} -1 {state} 1 1 1 -1 -1 -1 -1\n"
            for number, at, wait, run, nodes, limit, state in lines
        )
    )
    spec = spec_of(tmp_path, "", workload=(str(tmp_path / "jobs.swf"),), cancellations="keep")
    found = rows(run_in(tmp_path / "out", spec))
    assert found["2"]["final_state"] == "CANCELLED"
    assert float(found["1"]["finish_time"]) <= float(found["3"]["starting_time"]) < 1050


@needs_slurm
def test_maintenance_becomes_a_reservation(tmp_path: Path) -> None:
    """A job that would run into announced maintenance of all nodes starts after it; a shorter job starts before."""
    jobs = job(1, 100, 900, 2, limit=30) + job(2, 110, 300, 2, limit=10)
    out = run_in(tmp_path / "out", spec_of(tmp_path, jobs, maintenance=("@1200 +600s all announced 1h",)))
    found = rows(out)
    assert {row["final_state"] for row in found.values()} == {"COMPLETED_SUCCESSFULLY"}
    assert float(found["2"]["starting_time"]) < 150
    assert 1800 <= float(found["1"]["starting_time"]) < 1900


@needs_slurm
def test_details_of_a_recording_are_repeated(tmp_path: Path) -> None:
    """Nodes report ends late, the main loop stands still, and commands are given at their times."""
    jobs = job(1, 10, 100, 4) + job(2, 20, 100, 4) + job(3, 30, 100, 4) + job(4, 40, 100, 4)
    spec = spec_of(
        tmp_path, jobs, conf=CONF.replace("SchedulerParameters=bf_interval=30", "SchedulerType=sched/builtin")
    )
    recorded = RecordedDetails(
        late={"1": 50.0},
        delays={"2": 5.0},
        holds=[(595.05, 40.0)],
        commands=[(50.0, ["scontrol", "update", "JobId=4", "StartTime=now+550"])],
    )
    bridge = Bridge(str(tmp_path / "slurm.conf"), recorded=recorded)

    def serve(endpoint: str) -> None:
        with closing(bridge):
            serve_simulation(bridge, ServerAddress(endpoint), hello_timeout=30.0, report=lambda text: None)

    def announce(endpoint: str) -> AbstractContextManager[None]:
        threading.Thread(target=serve, args=(endpoint,), daemon=True).start()
        return nullcontext()

    run(spec, RunOptions(connection=Listening(announce=announce), out=tmp_path / "out"))
    begun = {name: time for name, (time, _) in starts(tmp_path / "out").items()}
    assert begun["1"] + 150 <= begun["2"] <= begun["1"] + 153, begun
    assert begun["2"] + 105 <= begun["3"] <= begun["2"] + 110, begun
    assert 635 <= begun["4"] <= 640, begun


@pytest.mark.slow
@needs_slurm
@pytest.mark.parametrize(("name", "equal"), [("a", 170), ("b", 179), ("c", 230), ("d", 199), ("f", 109)])
def test_recorded_jobs_start_as_recorded(slurm22_dir: Path, name: str, equal: int) -> None:
    """A run that repeats a recording's details has its starts; docs/how-to/slurmctld.md explains those that differ."""
    program = Path(__file__).parents[3] / "benchmarks" / "slurmctld_recordings.py"
    command = [sys.executable, str(program), str(slurm22_dir / name)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(text.split()[1]) >= equal, text


ACCOUNTING = """add account bio Fairshare=20 MaxJobs=1
add account lab parent=bio
add qos urgent Priority=100 Preempt=normal MaxTRESPerUser=cpu=8
add user ada Account=lab QOS=normal,urgent
add user bob Account=bio QOS=normal MaxJobs=5 GrpTRES=node=3
"""
WITH_ACCOUNTS = "AccountingStorageEnforce=associations,limits,qos\nPreemptType=preempt/qos\nPreemptMode=REQUEUE\n"


@needs_slurm
def test_limits_of_accounts_and_qos_hold(tmp_path: Path) -> None:
    """Users without an account are refused, limits of accounts and QOS make jobs wait, and a QOS preempts another."""
    (tmp_path / "accounts.txt").write_text(ACCOUNTING)
    jobs = (
        job(1, 10, 1000, 1)  # ada
        + job(2, 20, 100, 1)  # waits for 1: MaxJobs=1 of the account above hers
        + job(3, 30, 100, 1, user="eve")
        + job(4, 40, 5000, 3, limit=200, user="bob")
        + job(5, 50, 100, 1, user="bob")  # waits: he has 3 nodes
        + job(6, 1500, 100, 2, more="--qos=urgent")  # preempts 4
        + job(7, 1510, 100, 3, more="--qos=urgent")  # more than MaxTRESPerUser
    )
    spec = spec_of(tmp_path, jobs, conf=CONF + WITH_ACCOUNTS, accounting=(str(tmp_path / "accounts.txt"),))
    found = rows(run_in(tmp_path / "out", spec))
    starts = {name: float(row["starting_time"]) for name, row in found.items() if row["starting_time"]}
    assert found["3"]["final_state"] == "REJECTED"
    assert found["7"]["final_state"] == "REJECTED"
    assert starts["2"] >= 1000 + starts["1"]
    assert starts["6"] < 1600
    assert float(found["4"]["finish_time"]) == pytest.approx(starts["6"], abs=5)
    assert any(name.startswith("4#") for name in found)
    assert all(starts["5"] >= float(row["finish_time"]) for name, row in found.items() if name == "4")


@needs_slurm
def test_associations_are_those_of_sacctmgr(tmp_path: Path) -> None:
    """slurmctld knows shares, limits, and the limits that it inherits from accounts above."""
    (tmp_path / "accounts.txt").write_text(ACCOUNTING)
    (tmp_path / "slurm.conf").write_text(CONF + WITH_ACCOUNTS)
    config, accounting = str(tmp_path / "slurm.conf"), [str(tmp_path / "accounts.txt")]
    with Slurmctld(config, EPOCH_S * NANOSECONDS, None, accounting) as slurm:
        code, text = slurm.command(["scontrol", "show", "assoc_mgr"])
    assert code == 0, text
    blocks = {" ".join(block.split()[1:3]): block for block in text.split("ClusterName=")}
    ada = next(block for name, block in blocks.items() if name.startswith("Account=lab UserName=ada("))
    bob = next(block for name, block in blocks.items() if name.startswith("Account=bio UserName=bob("))
    assert "MaxJobs=1(0)" in ada
    assert "MaxJobs=5(0)" in bob
    assert "node=3(0)" in bob
    assert "SharesRaw/Norm/Level/Factor=20/" in blocks["Account=bio UserName="]
    assert "DefAssoc=Yes" in ada
    assert "Priority=100" in text[text.index("QOS=urgent") :]


@needs_slurm
def test_folder_of_configuration_and_prefix_of_slurm(tmp_path: Path) -> None:
    """A folder stands for the slurm.conf in it; --slurm-prefix names the Slurm that runs."""
    places = installation.find_slurm(None)
    prefix = tmp_path / "slurm"
    (prefix / "sbin").mkdir(parents=True)
    for name, place in places.programs.items():
        (prefix / "sbin" / name).symlink_to(place)
    assert places.plugins is not None
    (prefix / "lib").mkdir()
    (prefix / "lib" / "slurm").symlink_to(places.plugins)
    spec = spec_of(tmp_path, job(1, 10, 100, 1), slurm_prefix=str(prefix), config=str(tmp_path))
    assert spec.config == str(tmp_path / "slurm.conf")
    assert rows(run_in(tmp_path / "out", spec))["1"]["final_state"] == "COMPLETED_SUCCESSFULLY"
    (prefix / "sbin" / "squeue").unlink()
    with pytest.raises(InputError, match=r"--slurm-prefix .*there is no squeue"):
        installation.find_slurm(str(prefix))


def test_prefix_of_slurm_is_for_slurmctld_only(tmp_path: Path) -> None:
    """Our own schedulers run no programs of Slurm."""
    for name in ("slurm", "easy"):
        with pytest.raises(PipistrelleError, match="does not take --slurm-prefix"):
            run(spec_of(tmp_path, MIXED, name, slurm_prefix="/usr"), RunOptions(connection=InProcess()))


@needs_slurm
def test_job_that_nothing_can_start_is_rejected_at_the_end(tmp_path: Path) -> None:
    """The run ends, and the job has Slurm's reason."""
    jobs = job(1, 10, 100, 1) + job(2, 20, 100, 1, more="-d afternotok:1")
    found = rows(run_in(tmp_path / "out", spec_of(tmp_path, jobs)))
    assert found["1"]["final_state"] == "COMPLETED_SUCCESSFULLY"
    assert found["2"]["final_state"] == "REJECTED"


@needs_slurm
def test_error_says_how_slurmctld_ended(tmp_path: Path) -> None:
    """It has the signal and the end of slurmctld's log, also if slurmctld ends while it handles a submission."""
    (tmp_path / "slurm.conf").write_text(CONF)
    with Slurmctld(str(tmp_path / "slurm.conf"), EPOCH_S * NANOSECONDS) as slurm:
        assert slurm.submit(["--wrap=true"], "ada") == 1
        slurm.advance(slurm.time.now + 10 * NANOSECONDS)
        os.kill(slurm._daemon.pid, signal.SIGSEGV)
        said = r"signal 11 \(SIGSEGV\)\. The end of its log: .* JobId=1 "
        with pytest.raises(VirtualTimeError, match=said) as caught:
            slurm.submit(["--wrap=true"], "ada")
    assert caught.value.what == "slurmctld ended"
    assert caught.value.exit_code == 4


@needs_slurm
def test_equal_runs_have_equal_bytes(tmp_path: Path) -> None:
    """Two runs in which jobs compete, nodes fail and jobs are requeued write the same files."""
    (tmp_path / "outages.csv").write_text("node,down,up\n0,300,900\n2,700,800\n")
    spec = spec_of(tmp_path, MIXED, outages=str(tmp_path / "outages.csv"))
    one, other = (run_in(tmp_path / name, spec) for name in ("one", "other"))
    names = sorted(file.name for file in one.iterdir())
    assert "out_jobs.csv" in names
    assert names == sorted(file.name for file in other.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_folder_with_another_runs_results_is_refused(tmp_path: Path) -> None:
    """It is refused before slurmctld starts, so this holds also where it is absent."""
    out = tmp_path / "out"
    run(spec_of(tmp_path, MIXED, scheduler="fcfs", config=None), RunOptions(out=out))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(PipistrelleError, match=r"the folder has the results of another run.*--overwrite"):
        run(spec_of(tmp_path, MIXED), RunOptions(connection=WithChild(), out=out, overwrite=False))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_missing_slurm_is_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(installation, "PLACES", ())
    with pytest.raises(InputError, match=r"no slurmctld.*apt install slurmctld"):
        installation.find_slurm(None)


def test_options_of_other_schedulers_are_refused(tmp_path: Path) -> None:
    """Everything is in the slurm.conf."""
    with pytest.raises(PipistrelleError, match="'slurmctld' does not take --order"):
        run(spec_of(tmp_path, MIXED, order="fcfs"), RunOptions(connection=WithChild()))
    with pytest.raises(PipistrelleError, match=r"needs the configuration of a cluster.*--config slurm.conf"):
        run(spec_of(tmp_path, MIXED, config=None), RunOptions(connection=WithChild()))


def children(pid: int) -> dict[str, int]:
    """Return {name: number} of a process's children."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = entry.read_text().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        if int(rest.split()[1]) == pid:
            found[name] = int(entry.parent.name)
    return found


@pytest.mark.slow
@needs_slurm
@pytest.mark.parametrize("victim", ["slurmctld", "conductor", "bridge"])
def test_killed_part_ends_the_run_with_one_error(tmp_path: Path, victim: str) -> None:
    """The exit code is 4, and no process is left."""
    long = "".join(job(number, 10 * number, 3000, 4) for number in range(1, 300))
    spec_of(tmp_path, long)
    files = ["--config", "slurm.conf", "--platform", "slurm.conf", "--workload", "jobs.events", "--out", "out"]
    command = [sys.executable, "-m", "pipistrelle.cli", "run", "--scheduler", "slurmctld", *files]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        bridge, parts = 0, {}
        while not {"conductor", "slurmctld"} <= parts.keys():  # before that, slurmctld only prints its version
            time.sleep(0.05)
            bridge = next(iter(children(process.pid).values()), 0)
            parts = children(bridge)
        time.sleep(1)
        os.kill({**parts, "bridge": bridge}[victim], signal.SIGKILL)
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert process.returncode == 4
    assert said.count("pipistrelle: ") == 1, said
    time.sleep(0.5)
    assert not [pid for pid in (bridge, *parts.values()) if (Path("/proc") / str(pid) / "exe").exists()]
