"""Closed standard streams and limits on memory and open files give one line and a known exit code."""

import signal
import sys

import pytest

RUN = ("run", "--in-process", "-p", "tiny", "--out", "out")


def in_shell(shell, script, *arguments):
    """Run a script of the shell in which "$@" is the command with these arguments."""
    return shell.spawn("sh", "-c", script, "sh", *shell.command, *arguments).finish()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing(shell, closed):
    """No output file gets a stream's number, and the run completes."""
    in_shell(shell, f'"$@" {closed}', *RUN, "-w", shell.small()).ok()
    shell.run(*RUN[:-1], "open", "-w", shell.small()).ok()
    assert shell.files("out") == shell.files("open")


@pytest.mark.parametrize(
    ("streams", "arguments", "code"),
    [(">&-", ("--help",), 0), ("2>&-", ("nonsense",), 2), (">&-", ("show", "platform"), 0)],
    ids=["help", "wrong", "list"],
)
def test_closed_streams_of_other_commands(shell, streams, arguments, code):
    """The exit code is the usual one."""
    outcome = in_shell(shell, f'"$@" {streams}', *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (code, "", "")


@pytest.mark.parametrize("streams", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize("arguments", [("show", "platform"), (*RUN, "-w", "small.swf"), ("nonsense",)])
def test_a_reader_that_has_gone_is_told_by_the_exit_code(shell, streams, arguments):
    """No traceback and no bug report; the outputs are complete."""
    shell.small()
    broken = f"import os, sys; r, w = os.pipe(); os.close(r); [os.dup2(w, n) for n in {streams}]; "
    outcome = shell.spawn(
        sys.executable, "-c", broken + "os.execv(sys.argv[1], sys.argv[1:])", *shell.command, *arguments
    ).finish()
    said = 2 if arguments == ("nonsense",) else 1
    assert outcome.code == (1 if said in streams else 2 if said == 2 else 0)
    assert "bug" not in outcome.err
    assert "Traceback" not in outcome.err
    if arguments[0] == "run":
        assert len(shell.ended_jobs()) == 4


def limited(shell, kind, most, *arguments):
    """Run the command with a limit of the system's."""
    script = f"import os, resource, sys; resource.setrlimit(resource.{kind}, ({most}, {most})); "
    return shell.spawn(
        sys.executable, "-c", script + "os.execv(sys.argv[1], sys.argv[1:])", *shell.command, *arguments
    ).finish()


def test_too_little_memory_is_no_bug(shell):
    """It gives one line and its own exit code."""
    made = ("workload", "generate", "--jobs", "10000000", "-o", "made.swf")
    limited(shell, "RLIMIT_AS", 600 << 20, *made).failed(71, "out of memory")


def test_a_run_is_resumed_in_little_memory(shell):
    """A snapshot is read in blocks, so memory may be far smaller than the longest state."""
    words = (*RUN, "-w", shell.small(), "--snapshot-every", "sim:1", "--leave-snapshots")
    shell.run(*words).ok()
    limited(shell, "RLIMIT_AS", 2 << 30, "resume", "out", "--out", "again", "--quiet").ok()
    assert shell.ended_jobs("again") == shell.ended_jobs()


def test_too_few_open_files_are_no_bug(shell):
    """The message names the file that cannot be opened."""
    limited(shell, "RLIMIT_NOFILE", 6, *RUN, "-w", shell.small()).failed(71, "out of file descriptors", "ulimit -n")


SERVE = ("serve", "-p", "tiny", "-w", "small.swf", "--out", "out", "--hello-timeout", "0.1")
CURVE = (*SERVE, "--endpoint", "tcp://127.0.0.1:*", "--curve", "keys/server.key", "--clients", "keys")
STUDY = '[run]\nworkload = "small.swf"\nplatform = "tiny"\n[axes]\nscheduler = ["fcfs", "easy"]\n'


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((*RUN, "-w", "small.swf"), 0),
        pytest.param(("run", "-p", "tiny", "-w", "small.swf", "--out", "out", "--quiet"), 0, marks=pytest.mark.slow),
        pytest.param((*RUN, "-w", "small.swf", "--page", "0"), 0, marks=pytest.mark.slow),
        pytest.param(
            (*RUN, "-w", "small.swf", "--record", "s.jsonl", "--timings", "t.json"), 0, marks=pytest.mark.slow
        ),
        pytest.param(("study", "run", "study.toml", "--out", "out", "--jobs", "2"), 0, marks=pytest.mark.slow),
        pytest.param(SERVE, 4, marks=pytest.mark.slow),
        pytest.param(CURVE, 4, marks=pytest.mark.slow),
    ],
    ids=["run", "sockets", "page", "record", "study", "serve", "curve"],
)
def test_a_lack_of_descriptors_has_one_exit_code(shell, words, code):
    """With any number of descriptors, the command completes or ends with code 71."""
    shell.small()
    shell.write("study.toml", STUDY)
    shell.run("new", "keys", "keys").ok()
    ends = set()
    for most in (5, 6, 7, 8, 10, 12, 15, 20):
        outcome = limited(shell, "RLIMIT_NOFILE", most, *words)
        ends.add(outcome.code)
        assert "Traceback" not in outcome.err
        if outcome.code == 71:
            assert "this process is out of file descriptors (Too many open files); raise the limit" in outcome.err
            assert outcome.err.count("\n") == 1
    assert ends == {71, code}


def test_an_interrupt_during_the_start_leaves_no_traceback(shell):
    """An interrupt ends the process at once, even during imports."""
    hook = "import builtins, os; real = builtins.__import__; "
    hook += (
        "builtins.__import__ = lambda name, *more: (name == 'click' and os.kill(os.getpid(), 2)) or real(name, *more); "
    )
    hook += "from pipistrelle.cli.__main__ import main; main()"
    outcome = shell.spawn(sys.executable, "-c", hook).finish()
    assert (outcome.code, outcome.err) == (-signal.SIGINT, "")
