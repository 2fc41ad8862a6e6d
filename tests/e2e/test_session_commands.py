"""Record a run, replay the session, and compare runs, from the command line."""

import json

import pytest

MADE = ("workload", "generate", "--jobs", "300", "--machine-size", "32", "--seed", "7", "-o", "made.swf")


def test_a_run_of_two_processes_is_recorded_and_played(shell):
    """`check replay` works with the recorded scheduler, a program, another policy and the server."""
    shell.run(*MADE).ok()
    shell.run("run", "-w", "made.swf", "--out", "out", "--record", "s.jsonl.gz", "--quiet").ok()
    assert "easy decides as recorded" in shell.run("check", "replay", "s.jsonl.gz").ok().out
    assert "the server sends the recorded notices" in shell.run("check", "replay", "s.jsonl.gz", "--server").ok().out
    other = shell.run("check", "replay", "s.jsonl.gz", "--order", "sjf", "--scheduler", "easy")
    assert (other.code, other.err) == (1, "")
    assert "first difference at notice" in other.out
    assert "Queue at that time" in other.out
    simple = shell.run("check", "replay", "s.jsonl.gz", "--scheduler", *shell.peer("good"))
    assert simple.code in (1, 4), simple
    assert "Traceback" not in simple.err


def test_serve_records_too_and_sessions_are_equal(shell):
    """Sessions of all modes have the same bytes, except the description of the run."""
    shell.run(*MADE).ok()
    shell.run("run", "-w", "made.swf", "--out", "one", "--record", "one.jsonl", "--quiet").ok()
    server = shell.start("serve", "-w", "made.swf", "--out", "two", "--record", "two.jsonl")
    server.until("listening")
    shell.run("schedule", "easy", "--connect", "two").ok()
    assert server.finish().code == 0
    texts = [(shell.folder / name).read_text() for name in ("one.jsonl", "two.jsonl")]
    lines = [[json.loads(line) for line in text.splitlines()] for text in texts]
    frames = [[{**line, "chain": ""} for line in some[1:]] for some in lines]
    assert frames[0] == frames[1]
    shell.run("check", "replay", "two.jsonl").failed(2, "the run description names no scheduler")


@pytest.mark.slow
def test_batsims_dialect_is_recorded_too(shell):
    """Replayed to its scheduler, another one and the server; native schedulers are refused."""
    shell.run("run", "--until", "12h", "--dialect", "batsim", "--record", "s.jsonl.gz", "--out", "out", "--quiet").ok()
    assert "easy decides as recorded" in shell.run("check", "replay", "s.jsonl.gz").ok().out
    parted = shell.run("check", "replay", "s.jsonl.gz", "--scheduler", "fcfs")
    assert parted.code == 1
    assert "first difference at notice" in parted.out
    assert "the server sends the recorded notices" in shell.run("check", "replay", "s.jsonl.gz", "--server").ok().out
    shell.run("check", "replay", "s.jsonl.gz", "--in-process").failed(2, "does not support")


def test_what_cannot_be_recorded_or_played_is_said(shell):
    """Errors: Batsim's dialect, a missing folder, an input as output, a file without a session."""
    small = shell.small()
    run = ("run", "-p", "tiny", "-w", small, "--out", "out")
    shell.run(*run, "--record", "no/where.jsonl").failed(6, "no/where.jsonl", "--record")
    shell.run(*run, "--record", small).failed(2, "also read by this command")
    shell.run("check", "replay", small).failed(2, "this is not a session", "run --record FILE")
    shell.run(*run, "--record", "s.jsonl", "--quiet").ok()
    shell.run("check", "replay", "s.jsonl", "--server", "--scheduler", "easy").failed(
        2, "--server tests the server, not a scheduler"
    )
