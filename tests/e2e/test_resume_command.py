"""Runs that are killed or interrupted and resumed have the same bytes."""

import os
import shutil
import signal

import pytest

from pipistrelle.runs.inputs.keys import make_keys

RUN = (
    "run",
    "-w",
    "made.swf",
    "--failures",
    "exponential,mtbf=40d",
    "--repair",
    "6h",
    "--max-attempts",
    "3",
    "--quiet",
)
MODES = pytest.mark.parametrize("mode", [[], ["--in-process"]], ids=["two processes", "in process"])


def made(shell, jobs=3000):
    """Write a workload that takes some seconds, and return the outputs of its run."""
    shell.run("workload", "generate", "--jobs", str(jobs), "--machine-size", "64", "--seed", "7", "-o", "made.swf").ok()
    outcome = shell.run(*RUN, "--in-process", "--out", "whole")
    assert outcome.code == 0, outcome
    return shell.files("whole")


def snapshots(shell):
    """Return the numbers of notices of the snapshots that there are."""
    return sorted(int(path.name[13:23]) for path in (shell.folder / "out").glob("out_snapshot-*.gz"))


@MODES
@pytest.mark.parametrize("victim", ["server", pytest.param("scheduler", marks=pytest.mark.slow)])
def test_a_run_that_is_killed_goes_on(shell, wait_until, mode, victim):
    """Server or scheduler is killed; after the resumed run no snapshot is left."""
    if mode and victim == "scheduler":
        pytest.skip("there is none")
    whole = made(shell)
    shell.forks = None  # else nobody can tell by its command which process is the scheduler
    run = shell.start(*RUN, *mode, "--out", "out", "--snapshot-every", "sim:6h")
    wait_until(lambda: bool(snapshots(shell)) and snapshots(shell)[-1] > 500)
    if victim == "server":
        run.signal(signal.SIGKILL)
        run.finish()
        wait_until(lambda: not shell.survivors())
    else:
        (child,) = [pid for pid, words in shell._marked() if " schedule " in words]
        os.kill(child, signal.SIGKILL)
        run.finish().failed(4, "was killed by SIGKILL")
    shell.tidy()

    outcome = shell.run("resume", "out", "--quiet")
    assert outcome.code == 0, outcome
    assert {name: data for name, data in shell.files("out").items() if not name.startswith(".")} == whole
    assert snapshots(shell) == []


@MODES
def test_an_interrupt_takes_a_last_snapshot(shell, wait_until, mode):
    """SIGUSR1 takes one, too; a resumed run can be interrupted again."""
    whole = made(shell)
    run = shell.start(*RUN, *mode, "--out", "out", "--snapshot-every", "1d")
    wait_until(lambda: snapshots(shell) == [1])
    run.signal(signal.SIGUSR1)
    wait_until(lambda: len(snapshots(shell)) == 2)
    asked = snapshots(shell)[-1]
    run.signal(signal.SIGTERM)
    run.finish().failed(130, "interrupted")
    last = snapshots(shell)[-1]
    assert last > asked

    again = shell.start("resume", "out", "--quiet", "--snapshot-every", "sim:6h")
    wait_until(lambda: snapshots(shell)[-1] > last)
    again.signal(signal.SIGTERM)
    again.finish().failed(130, "interrupted")
    assert shell.run("resume", "out", "--quiet").code == 0
    assert shell.files("out") == whole


def test_what_cannot_be_kept_or_resumed_is_said(shell, wait_until):
    """Errors: a wrong interval, a folder without snapshots, untrusted code, changed inputs."""
    made(shell, 200)
    run = (*RUN, "--out", "out")
    shell.run(*run, "--snapshot-every", "soon").failed(2, "time between snapshots", "soon")
    shell.run(*run, "--snapshot-every", "sim:0s").failed(2, "time between snapshots")
    shell.run(*run, "--snapshot-every", "1d", "--record", "s.jsonl").failed(2, "--record")
    shell.run("resume", "whole").failed(2, "there is no snapshot to resume from", "--snapshot-every")

    peer = shell.start(
        "run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--snapshot-every", "1d",
        "--scheduler", *shell.peer("hangs", "mid-run"),
    )  # fmt: skip
    peer.until("peer hangs")
    peer.signal(signal.SIGKILL)
    peer.finish()
    for pid, _ in shell._marked():
        os.kill(pid, signal.SIGKILL)
    shell.tidy()
    shell.run("resume", "out").failed(2, "hangs.py", "needs --trust")
    shutil.copy(shell.folder / "made.swf", shell.folder / "small.swf")
    shell.run("resume", "out", "--trust").failed(2, "an input has changed since the run was described", "small.swf")


def test_a_run_goes_on_under_another_policy(shell):
    """In another folder; the same policy gives the same result; a program needs `takeover`."""
    run = ("run", "--until", "36h", "--quiet", "--snapshot-every", "sim:12h", "--leave-snapshots", "--out", "whole")
    assert shell.run(*run).code == 0
    whole = shell.files("whole")
    snapshot = sorted(name for name in whole if "snapshot" in name)[0]

    assert shell.run("resume", f"whole/{snapshot}", "--scheduler", "easy", "--out", "same", "--quiet").code == 0
    assert shell.run("resume", "whole", "--order", "sjf", "--out", "sjf", "--quiet").code == 0
    assert shell.files("whole") == whole
    assert shell.files("same")["out_jobs.csv"] == whole["out_jobs.csv"]
    assert shell.run("compare", "whole", "same").code == 0
    compared = shell.run("compare", "whole", "sjf")
    assert compared.code == 1
    assert "easy+order=sjf" in compared.out

    shell.run("resume", "whole", "--order", "sjf").failed(2, "a new output folder: give --out")
    shell.run("resume", "whole", "--scheduler", "esay", "--out", "x").failed(2, "there is no scheduler 'esay'")
    shell.run("run", "sjf/out_command.json").failed(2, "continued another run's snapshot", "whole/out_snapshot")
    shell.run("explain", "job", "sjf", "w0!2").ok()
    program = shell.peer("hangs", "mid-run")
    shell.run("resume", "whole", "--out", "x", "--scheduler", *program).failed(
        2, "cannot take a run over", "'takeover'"
    )
    assert shell.files("x") == {}


def test_a_scheduler_of_another_terminal_takes_over(shell):
    """The outputs equal those with a child process; a scheduler without `takeover` is refused."""
    run = ("run", "--until", "36h", "--quiet", "--snapshot-every", "sim:12h", "--leave-snapshots", "--out", "whole")
    shell.run(*run).ok()
    snapshot = sorted(shell.folder.glob("whole/*snapshot*"))[0]
    shell.run("resume", snapshot, "--scheduler", "fcfs", "--out", "child", "--quiet").ok()
    server = shell.start("resume", snapshot, "--serve", "--out", "served", "--quiet")
    shell.run("schedule", "fcfs", "--connect", "served/connection.json", "--quiet").ok()
    assert server.finish().code == 0
    served = shell.files("served")
    for name, data in shell.files("child").items():
        assert name == "out_command.json" or served[name] == data, name
    assert "connection.json" not in served

    server = shell.start("resume", snapshot, "--serve", "--out", "x", "--quiet", "--endpoint", "ipc://x.sock")
    peer = shell.spawn(*shell.peer("good", endpoint=f"ipc://{shell.folder}/x.sock"))
    server.finish().failed(2, "cannot take a run over", "'takeover'")
    peer.kill()  # libzmq does not tell it that the server has gone
    shell.run("resume", snapshot, "--serve").failed(2, "a new output folder: give --out")
    shell.run("resume", snapshot, "--serve", "--out", "y", "--scheduler", "easy").failed(2, "--serve waits for")
    shell.run("resume", snapshot, "--serve", "--out", "y", "--hello-timeout", "0.2").failed(4, "no scheduler connected")


@pytest.mark.slow
def test_a_served_run_goes_on(shell, wait_until):
    """Server and scheduler are killed and restarted with keys; the outputs are the same."""
    make_keys(shell.folder / "k", ["server", "scheduler"])
    listens = ("--endpoint", "tcp://127.0.0.1:*", "--curve", "k/server.key", "--clients", "k")
    calls = ("--curve", "k/scheduler.key", "--server-key", "k/server.pub")
    run = ("--until", "20d", "--quiet")
    assert shell.run("run", "--in-process", *run, "--out", "whole").code == 0
    server = shell.start("serve", *run, "--out", "out", "--snapshot-every", "sim:6h")
    scheduler = shell.start("schedule", "easy", "--connect", "out/connection.json", "--quiet")
    wait_until(lambda: bool(snapshots(shell)) and snapshots(shell)[-1] > 60)
    server.signal(signal.SIGKILL)
    server.finish()
    scheduler.finish().failed(4, "disconnected")
    shell.tidy()
    shell.run("resume", "out", "--hello-timeout", "0.3").failed(4, "no scheduler connected within 0.3 s")

    server = shell.start("resume", "out", "--quiet", *listens)
    shell.run("schedule", "easy", "--connect", "out/connection.json", "--quiet", *calls).ok()
    assert server.finish().code == 0
    found = shell.files("out")
    assert {name for name in found if "snapshot" in name or "connection" in name} == set()
    for name, whole in shell.files("whole").items():
        if name not in {"out_command.json", ".out.lock"}:
            assert found[name] == whole, name
