"""Recording slurmctld: submissions, the files made from a log, and the daemons themselves."""

import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.runs.recordings.tiny_recording import CONF, EVENTS, FILES, write_recording

from pipistrelle.protocol.base.errors import InputError, PipistrelleError
from pipistrelle.runs.inputs.named import load_workload
from pipistrelle.runs.recorder.daemons import require_programs
from pipistrelle.runs.recorder.jobs import planned_jobs, timed_commands
from pipistrelle.runs.recorder.packing import Packing
from pipistrelle.runs.recorder.record import record
from pipistrelle.runs.recordings.check import check_recording
from pipistrelle.runs.recordings.recording import Recording
from pipistrelle.runs.slurmctld.conductor import VirtualTimeError
from pipistrelle.server.errors import OutputFailed

needs_slurm = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("slurmctld", "slurmd", "sbatch", "cc")) or os.geteuid() != 0,
    reason="slurmctld, slurmd, sbatch or cc is not installed, or the tests do not run as root",
)
LOG = """[2026-01-05T00:00:00.000] slurmctld version 22.05.8 started on cluster tiny
[2026-01-05T00:02:07.050] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=4294901759 usec=0
[2026-01-05T00:02:08.000] debug:  sched: Running job scheduler for default depth.
[2026-01-05T00:02:08.000] debug2: JobId=3 being held, if allowed the job request will exceed QOS day
[2026-01-05T00:02:08.000] debug2: acct_policy_job_begin: after adding JobId=1, qos normal is 9
[2026-01-05T00:02:08.000] sched: Allocate JobId=1_0(1) NodeList=n[1-2] #CPUs=8 Partition=batch
[2026-01-05T00:02:38.000] debug:  sched/backfill: _attempt_backfill: beginning
[2026-01-05T00:02:38.000] sched/backfill: _attempt_backfill: BACKFILL: test for JobId=2 Prio=1 Partition=batch
[2026-01-05T00:02:38.000] sched/backfill: _start_job: Started JobId=2 in batch on n3
[2026-01-05T00:02:38.000] sched/backfill: _attempt_backfill: completed testing 1(1) jobs, usec=0
[2026-01-05T00:03:08.000] _job_complete: JobId=1_0(1) done
[2026-01-05T00:03:08.150] debug2: node_did_resp n3
[2026-01-05T00:03:08.750] debug2: node_did_resp n2
[2026-01-06T00:00:00.500] debug2: Testing job time limits and checkpoints
"""


def test_submissions_of_a_file_of_events(tmp_path: Path) -> None:
    """Times stay as they are; an array is one submission."""
    array = "-sim-walltime 7 -t 2 --array=0-2%2 --nice=5 -d afterok:1 pseudo.job"
    (tmp_path / "jobs.events").write_text(f"{EVENTS}-dt 200.5 -e submit_batch_job | {array}\n")
    jobs, said = planned_jobs(load_workload(str(tmp_path / "jobs.events")), "batch")
    assert [job.time for job in jobs] == [127, 128, 129, 200]
    assert (jobs[3].cells["array"], jobs[3].depends, jobs[3].cells["partition"]) == ("0,1,2%2", "afterok:1", "batch")
    assert "--array=0,1,2%2" in jobs[3].options
    assert jobs[0].cells["limit_min"] == "10"
    assert jobs[3].cells["options"] == "--nice=5"
    assert said == []


def test_switches_of_submissions_are_recorded(tmp_path: Path) -> None:
    """As the recorded text and as an option of sbatch; the time may be missing."""
    lines = [f"-dt 130 -e submit_batch_job | -J a -sim-walltime 7 -t 2 -N 2 {one} j\n" for one in ("--switches=1", "")]
    timed = "-dt 131 -e submit_batch_job | -J b -sim-walltime 7 -t 2 -N 2 --switches=2@90 j\n"
    (tmp_path / "jobs.events").write_text("".join([*lines, timed]))

    jobs, said = planned_jobs(load_workload(str(tmp_path / "jobs.events")), "batch")

    assert [job.cells["switches"] for job in jobs] == ["1", "", "2@1:30:00"]
    assert [[one for one in job.options if "switches" in one] for job in jobs] == [
        ["--switches=1"],
        [],
        ["--switches=2@1:30:00"],
    ]
    assert said == []


def test_further_options_and_partitions_are_recorded_and_read_again(tmp_path: Path) -> None:
    """In the column ``options`` and as options of sbatch; the partition is a list. A warning counts other options."""
    words = "-p batch,gpu --licenses=a:2,b --nice=7 -x n2 --ntasks-per-node=2 -n 2 --hold --reservation=day"
    given = f"-dt 130 -e submit_batch_job | -J jobid_1 -sim-walltime 7 -t 2 {words} --contiguous pseudo.job\n"
    (tmp_path / "jobs.events").write_text(given)
    (job,), said = planned_jobs(load_workload(str(tmp_path / "jobs.events")), "batch")
    options = "--ntasks-per-node=2 --licenses=a:2,b:1 --reservation=day --exclude=n2 --nice=7 --hold"
    assert (job.cells["options"], job.cells["partition"]) == (options, "batch,gpu")
    assert {*options.split(), "--partition=batch,gpu"} <= set(job.options)
    assert said == ["not recorded: the option contiguous (1 times)"]

    folder = write_recording(tmp_path / "tiny")
    (folder / "slurm.conf").write_text(f"{CONF}PartitionName=gpu Nodes=n1\n")
    head, first, *_ = FILES["jobs.csv"].splitlines()
    first = first.replace(",batch,", ',"batch,gpu",')
    (folder / "jobs.csv").write_text(f'{head},options\n{first},"{options}"\n')
    found = Recording(folder).jobs["1"].job
    assert (found.partitions, found.licenses, found.nice) == (("batch", "gpu"), {"a": 2, "b": 1}, 7)
    assert (found.excluded, found.tasks_per_node, found.hold, found.reservation) == (("n2",), 2, True, "day")
    (folder / "jobs.csv").write_text(f"{head},options\n{first},--licenses=a:2\n")
    assert Recording(folder).jobs["1"].job.licenses == {"a": 2}

    (folder / "jobs.csv").write_text(f"{head},options\n{first},--nice=much\n")
    with pytest.raises(PipistrelleError, match=r"jobs\.csv:2: wrong value of 'options'"):
        assert Recording(folder).jobs


def test_submissions_of_a_log_begin_at_121_seconds() -> None:
    """A log's own times are moved."""
    jobs, _ = planned_jobs(load_workload("seven-jobs"), "batch")
    assert jobs[0].time == 121
    assert len(jobs) == 7


def test_commands_must_create_reservations(tmp_path: Path) -> None:
    """Other commands are refused, with their line."""
    path = tmp_path / "commands.csv"
    path.write_text(
        't,command\n30,"scontrol create reservation nodes=n1,n2"\n20,scontrol create reservation nodes=ALL\n'
    )
    assert [one.time for one in timed_commands(path)] == [20, 30]
    path.write_text("t,command\n30,scontrol shutdown\n")
    with pytest.raises(InputError, match=r"commands\.csv:2: wrong value of 'command'"):
        timed_commands(path)


def test_log_becomes_starts_passes_and_events(tmp_path: Path) -> None:
    """The request for a pass is the first answer of one of the job's nodes."""
    (tmp_path / "log").write_text(LOG)
    found = Packing(tmp_path / "log", "/private")
    assert found.starts == [("1", 128.0, "main", "n[1-2]", "1_0(1)"), ("2", 158.0, "backfill", "n3", "")]
    assert [(time, kind, started) for time, kind, _, started, _ in found.passes] == [
        (128.0, "main", ["1_0(1)"]),
        (158.0, "backfill", ["2"]),
    ]
    assert found.events == [
        (127.05, "submit", "1", ""),
        (188.0, "complete", "1", ""),
        (188.75, "request", "1", "complete"),
        (86400.5, "limit_check", "", ""),
    ]
    (tmp_path / "out").mkdir()
    found.write(tmp_path / "out", [], [], "")
    log = lzma.decompress((tmp_path / "out" / "decisions.log.xz").read_bytes()).decode()
    assert " debug2: JobId=3 being held, if allowed" in log
    assert "acct_policy_job_begin" not in log


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setattr("pipistrelle.runs.recorder.daemons.shutil.which", lambda name, path: None)
    with pytest.raises(InputError, match=r"Slurm, which is not installed.*apt install slurmctld slurmd slurm-client"):
        require_programs(None)


def test_folder_is_refused_before_the_recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder with files, or one that cannot be created, is named before any daemon starts."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "slurm.conf").write_text(CONF)
    jobs = load_workload("seven-jobs")
    with pytest.raises(InputError, match=r"one: the folder exists.*Give a new folder"):
        record(tmp_path, jobs, tmp_path / "one", until=1)
    assert (tmp_path / "one" / "slurm.conf").read_text() == CONF
    with pytest.raises(OutputFailed, match=r"cannot write to the output folder \(Not a directory\)"):
        record(tmp_path, jobs, tmp_path / "one" / "slurm.conf" / "below", until=1)
    monkeypatch.setattr("pipistrelle.runs.recorder.daemons.shutil.which", lambda name, path: None)
    with pytest.raises(InputError, match="Slurm, which is not installed"):
        record(tmp_path, jobs, tmp_path / "new" / "two", until=1)
    assert not (tmp_path / "new" / "two").exists()


def left(folder: Path) -> list[str]:
    """Return the processes with this temporary folder, and what is in it."""
    found = [str(path) for path in folder.iterdir()]
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}\0".encode() in entry.read_bytes() or str(folder).encode() in entry.read_bytes():
                found.append((entry.parent / "cmdline").read_text())
        except OSError:
            continue
    return found


def wait_until_nothing_is_left(folder: Path) -> None:
    """Wait until the last process has ended and the folder is empty."""
    for _ in range(600):
        if not left(folder):
            break
        time.sleep(0.05)
    assert left(folder) == []


@pytest.mark.slow
@needs_slurm
def test_our_scheduler_does_what_was_recorded(tmp_path: Path) -> None:
    """Every pass of three jobs is decided as our scheduler decides, and a second recording has the same starts.

    Threads of slurmctld that wake at the same instant may run in either order, which moves a start by a second.
    """
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.events").write_text(EVENTS)
    starts = []
    for name in ("one", "two"):
        try:
            found = record(tmp_path, load_workload(str(tmp_path / "jobs.events")), tmp_path / name, until=3600)
        except VirtualTimeError:
            pytest.skip("a thread of a daemon never slept, as happens on a very busy computer")
        assert (found.jobs, found.starts, found.left, found.remarks) == (3, 3, False, [])
        check = check_recording(tmp_path / name)
        assert {one.what: one.compared - one.equal for one in check.passes if one.compared != one.equal} == {}
        starts.append(sorted(check.starts))
    for one, other in zip(*starts, strict=True):
        assert one.job == other.job
        assert one.time == pytest.approx(other.time, abs=2)


ACCOUNTS = """add qos low
add qos high Priority=100 Preempt=low MaxTRESPerUser=cpu=8
add account bio
add user ada.l Account=bio QOS=normal,low,high
add user bob Account=bio QOS=normal,low,high MaxJobs=1
"""
WITH_ACCOUNTS = f"""{CONF}AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations,limits,qos
PreemptType=preempt/qos
PreemptMode=REQUEUE
"""


@pytest.mark.slow
@needs_slurm
def test_limits_and_preemption_of_associations_are_recorded(tmp_path: Path) -> None:
    """A job of a high QOS preempts one of a low QOS, limits hold, and our scheduler decides the same."""
    (tmp_path / "slurm.conf").write_text(WITH_ACCOUNTS)
    (tmp_path / "accounts.txt").write_text(ACCOUNTS)
    lines = (
        "-dt 130 -e submit_batch_job | -J 1 -sim-walltime 400 -t 20 -N 2 --uid=bob -A bio --qos=low j",
        "-dt 140 -e submit_batch_job | -J 2 -sim-walltime 300 -t 9 -N 1 --uid=bob -A bio --qos=low j",
        "-dt 200 -e submit_batch_job | -J 3 -sim-walltime 50 -t 5 -N 1 --uid=ada.l -A bio --qos=high j",
        "-dt 210 -e submit_batch_job | -J 4 -sim-walltime 50 -t 5 -N 1 --uid=bob -A bio j",  # waits for 2: MaxJobs
        "-dt 220 -e submit_batch_job | -J 5 -sim-walltime 50 -t 5 -N 1 --uid=eve -A bio j",
    )
    (tmp_path / "jobs.events").write_text("".join(f"{line}\n" for line in lines))
    jobs = load_workload(str(tmp_path / "jobs.events"))
    found = record(tmp_path, jobs, tmp_path / "one", until=7200, accounting=[str(tmp_path / "accounts.txt")])
    assert found.jobs == 4
    assert any("job 5 was refused" in remark and "Invalid account" in remark for remark in found.remarks)
    recording = Recording(tmp_path / "one")
    begun = [(start.job, int(start.time)) for start in recording.starts]
    assert [name for name, _ in begun].count("1") == 2
    assert dict(begun)["3"] < 300
    assert dict(begun)["4"] >= dict(begun)["2"] + 300
    check = check_recording(tmp_path / "one")
    assert {one.what: one.compared - one.equal for one in check.passes if one.compared != one.equal} == {}


@pytest.mark.slow
@needs_slurm
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_recorder_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """Processes end and temporary files go, whatever ends the recorder."""
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.events").write_text(EVENTS)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = [
        "slurm",
        "record",
        "--config",
        str(tmp_path),
        "-w",
        str(tmp_path / "jobs.events"),
        "-o",
        str(tmp_path / "r"),
    ]
    child = subprocess.Popen([sys.executable, "-m", "pipistrelle", *words], env=os.environ | {"TMPDIR": str(temporary)})
    while not list(temporary.glob("*/slurmctld.pid")):
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(number)
    assert child.wait() == (130 if number == signal.SIGINT else -number)
    wait_until_nothing_is_left(temporary)
    assert [*tmp_path.glob("r/*")] == []


@pytest.mark.slow
@needs_slurm
def test_killed_slurmctld_ends_the_recording_with_one_message(tmp_path: Path) -> None:
    """The exit code is 4, and nothing is left."""
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.events").write_text(EVENTS)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = ["slurm", "record", "--config", str(tmp_path), "-w", str(tmp_path / "jobs.events")]
    child = subprocess.Popen(
        [sys.executable, "-m", "pipistrelle", *words, "-o", str(tmp_path / "r")],
        env=os.environ | {"TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (found := list(temporary.glob("*/slurmctld.pid"))) or not found[0].read_text().strip():
        assert child.poll() is None
        time.sleep(0.01)
    os.kill(int(found[0].read_text()), signal.SIGKILL)
    _, text = child.communicate()
    assert child.returncode == 4
    assert text.startswith("pipistrelle: slurmctld ended: found signal 9 (SIGKILL)")
    assert text.count("\n") == 1
    wait_until_nothing_is_left(temporary)
