"""Ctrl-C, SIGTERM and sudden death: both sides end, outputs are complete, nothing is left behind."""

import re
import signal

import pytest

JOBS = 20_000
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])


@pytest.fixture(autouse=True)
def _from_nothing(shell):
    """Start all processes as a user's do: their signal handling counts from the first instruction on."""
    shell.forks = None


def busy(shell, *arguments):
    """Start a run, or a server, that takes about ten seconds if nothing ends it."""
    return shell.start(*arguments, "-p", "tiny", "-w", shell.many(JOBS), "--out", "out", "--decision-timeout", "600")


def until_jobs_end(shell, wait_until):
    """Wait until a first part of the jobs file is on the disk."""
    file = shell.folder / "out" / "out_jobs.csv"
    wait_until(lambda: file.is_file() and file.read_bytes().count(b"\n") > 1)


def check_outputs(shell, text):
    """Assert that the outputs hold exactly what had happened until the time that the message names."""
    match = re.search(r"simulated time (\d+\.\d)", text)
    assert match, text
    # The n-th job, counted from 0, is submitted and starts at 10 n and ends 25 s later.
    names = [job[0] for job in shell.ended_jobs()]
    assert names == [str(n + 1) for n in range(JOBS) if 10 * n + 25 <= float(match[1])]
    assert 0 < len(names) < JOBS
    files = shell.files("out")
    assert sorted(files) == [f"out_{name}" for name in (
        "config.json", "decisions.csv", "jobs.csv", "labels.csv", "machine_states.csv", "schedule.csv", "summary.json"
    )]  # fmt: skip
    assert f'"completed": {len(names)}'.encode() in files["out_summary.json"]


@BOTH
def test_interrupting_the_server_ends_both_sides(shell, wait_until, number):
    """The server ends with 130; the scheduler receives the end and exits with 0."""
    server = busy(shell, "serve")
    server.until("listening")
    scheduler = shell.start("schedule", "easy", "--connect", "out")
    until_jobs_end(shell, wait_until)
    server.signal(number)

    outcome = server.finish().failed(130, "interrupted")
    assert "the simulation ended: interrupted" in scheduler.finish().ok().out
    check_outputs(shell, outcome.err)


@BOTH
def test_interrupting_a_scheduler_that_listens_ends_both_sides(shell, wait_until, free_endpoint, number):
    """The same in the batsim dialect, where the scheduler reports it only to our own server."""
    scheduler = shell.start("schedule", "easy", "--dialect", "batsim", "--bind", free_endpoint)
    server = busy(shell, "serve", "--dialect", "batsim", "--connect", free_endpoint)
    until_jobs_end(shell, wait_until)
    scheduler.signal(number)

    scheduler.finish().failed(130, "interrupted")
    server.finish().failed(4, "was interrupted after the message of time", "as it said")
    assert shell.end_reason() == "scheduler_interrupted"


@BOTH
def test_interrupting_the_scheduler_ends_both_sides(shell, wait_until, number):
    """The scheduler ends with 130; it notifies the server, which ends with 4."""
    server = busy(shell, "serve")
    server.until("listening")
    scheduler = shell.start("schedule", "easy", "--connect", "out")
    until_jobs_end(shell, wait_until)
    scheduler.signal(number)

    scheduler.finish().failed(130, "interrupted")
    server.finish().failed(4, "scheduler 'easy' was interrupted after notice", "as it said")
    assert shell.end_reason() == "scheduler_interrupted"
    assert len(shell.ended_jobs()) > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_interrupting_a_run_ends_it_and_its_scheduler(shell, wait_until, number):
    """Exit code 130, outputs up to that moment, and no process is left."""
    run = busy(shell, "run")
    until_jobs_end(shell, wait_until)
    run.signal(number)

    outcome = run.finish().failed(130, "interrupted")
    assert "ended early: interrupted" in outcome.out
    check_outputs(shell, outcome.err)


def test_interrupting_a_run_in_one_process_keeps_its_outputs(shell, wait_until):
    """There is no scheduler to notify."""
    run = shell.start("run", "--in-process", "-p", "tiny", "-w", shell.many(8 * JOBS), "--out", "out")
    until_jobs_end(shell, wait_until)
    run.signal(signal.SIGINT)

    run.finish().failed(130, "interrupted")
    assert 0 < len(shell.ended_jobs()) < 8 * JOBS


def test_repeated_interrupts_leave_no_process(shell, wait_until):
    """Several interrupts in a row leave no process and no traceback."""
    run = busy(shell, "run")
    until_jobs_end(shell, wait_until)
    for _ in range(6):
        run.signal(signal.SIGINT)

    run.finish().failed(130, "interrupted")


def test_a_scheduler_that_is_stuck_does_not_hold_up_an_interrupt(shell):
    """It gets a little time to reply, and is then killed."""
    run = shell.start(
        "run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--scheduler", *shell.peer("hangs", "mid-run")
    )
    run.until("peer hangs")
    run.signal(signal.SIGINT)

    run.finish().failed(130, "simulated time 100.0", "interrupted")
    assert [job[0] for job in shell.ended_jobs()] == ["2", "1"]


def test_a_second_interrupt_at_the_end_loses_no_output(shell):
    """The outputs have everything that had ended by then, also in the files that are written last."""
    run = shell.start(
        "run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--scheduler", *shell.peer("hangs", "mid-run")
    )
    run.until("peer hangs")
    run.signal(signal.SIGINT)
    run.noticed()
    run.signal(signal.SIGINT)

    run.finish().failed(130, "interrupted")
    assert [job[0] for job in shell.ended_jobs()] == ["2", "1"]
    assert {"out_schedule.csv", "out_summary.json"} <= set(shell.files("out"))


@BOTH
def test_a_server_that_waits_can_be_interrupted(shell, number):
    """Nothing had begun: no outputs, no connection file."""
    server = busy(shell, "serve")
    server.until("listening")
    server.signal(number)

    server.finish().failed(130, "interrupted")
    assert list((shell.folder / "out").iterdir()) == []


def test_a_run_whose_scheduler_never_connects_can_be_interrupted(shell):
    """The scheduler's process ends too."""
    run = busy(shell, "run", "--scheduler", "sh -c 'echo peer started; sleep 3600' {endpoint}")
    run.until("peer started")
    run.signal(signal.SIGINT)

    run.finish().failed(130, "interrupted")


@pytest.mark.parametrize("connect", ["tcp://127.0.0.1:9", "missing/connection.json"])
def test_a_scheduler_that_waits_can_be_interrupted(shell, connect):
    """It waits for the server, or for its connection file."""
    scheduler = shell.start("-v", "schedule", "easy", "--connect", connect)
    scheduler.until("waiting for a server")
    scheduler.signal(signal.SIGINT)

    assert scheduler.finish().code in (130, -signal.SIGINT)
    assert "Traceback" not in scheduler.err


def test_a_scheduler_whose_server_is_killed_ends_by_itself(shell, wait_until):
    """It says that the server disconnected, with exit code 4."""
    server = busy(shell, "serve")
    server.until("listening")
    scheduler = shell.start("schedule", "easy", "--connect", "out")
    until_jobs_end(shell, wait_until)
    server.signal(signal.SIGKILL)

    scheduler.finish().failed(4, "the server disconnected")
    shell.tidy()


def test_a_run_that_is_killed_leaves_no_orphan(shell, wait_until):
    """The scheduler that it had started notices, and exits; a table loses no whole row.

    A SIGKILL inside the kernel's write may cut the last row (docs/explanation/guarantees.md).
    """
    run = busy(shell, "run")
    until_jobs_end(shell, wait_until)
    run.signal(signal.SIGKILL)
    run.finish()

    wait_until(lambda: not shell.survivors())
    shell.tidy()
    for name in ("jobs", "machine_states", "decisions"):
        head, *rows = (shell.folder / "out" / f"out_{name}.csv").read_bytes().split(b"\n")[:-1]
        assert head.startswith((b"job_id,", b"time,")), head
        assert {row.count(b",") for row in rows} <= {head.count(b",")}


def test_what_a_schedulers_script_started_is_ended_too(shell):
    """A command may be a script that starts the real scheduler, which outlives it."""
    script = shell.write("start.sh", f'"{shell.peer("hangs", "mid-run")[0]}" "$@" &\nwait\n')
    peer = shell.peer("hangs", "mid-run")
    outcome = shell.run(
        "run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--decision-timeout", "1",
        "--scheduler", "sh", script, *peer[1:],
    )  # fmt: skip

    outcome.failed(4, "did not answer")
    assert shell.survivors() == []


@pytest.mark.parametrize("keeping", [[], ["--snapshot-every", "1d"]], ids=["run", "snapshots"])
def test_an_interrupt_ends_a_run_without_notices(shell, keeping):
    """The only job is submitted very late; until then nodes fail, and the scheduler is not subscribed to failures."""
    shell.swf("late.swf", [(1, 10**15, 25, 1, 30)])
    run = shell.start(
        "run", "-p", "tiny", "-w", "late.swf", "--out", "out", "--failures", "exponential,mtbf=1h", "--repair", "10s",
        *keeping, "--scheduler", *shell.peer("good"),
    )  # fmt: skip
    run.until("peer at 0.0")
    run.signal(signal.SIGTERM)

    outcome = run.finish()
    assert outcome.code == 130
    assert "interrupted" in outcome.messages[-1]
    assert "peer ended interrupted" in outcome.out
    assert shell.ended_jobs() == []
    assert shell.end_reason() == "interrupted"
