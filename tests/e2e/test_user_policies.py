"""Policies from a user's file run in both modes; each error is one message."""

import hashlib
import json

import pytest

POLICY = '''
from pipistrelle.schedulers.orders.fixed import Fcfs


class Mine:
    """Starts whatever fits."""

    name = "mine"
    order = Fcfs()

    def decide(self, view):
        """Start all that fits."""
        for job in list(view.waiting):
            if job.size <= view.free.count:
                view.start(job, why="fits")


class NoOrder:
    name = "no-order"

    def decide(self, view):
        pass


class Unmade(Mine):
    def __init__(self):
        raise ValueError("no licence")


class NeedsMore(Mine):
    def __init__(self, size):
        self.size = size


class Fails(Mine):
    def decide(self, view):
        if view.now >= 100:
            return {}["missing"]
        super().decide(view)


class Illegal(Mine):
    def decide(self, view):
        super().decide(view)
        if view.now >= 100:
            view.cancel_call("never asked for")


class Lazy(Mine):
    def decide(self, view):
        pass


def make():
    """Return a policy."""
    return Mine()


number = 42
'''
MODES = pytest.mark.parametrize("mode", [[], ["--in-process"]], ids=["two processes", "in process"])


@MODES
@pytest.mark.parametrize("name", ["Mine", "make"])
def test_a_policy_of_ones_own_runs(shell, mode, name):
    """A class, or a function that returns a policy, in both modes."""
    shell.write("mine.py", POLICY)
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--scheduler", f"mine.py:{name}", *mode, "--out", "out").ok()

    assert len(shell.ended_jobs()) == 4
    assert {line[5] for line in shell.decisions()} == {"fits"}


def test_without_out_the_outputs_folder_is_named_after_both(shell):
    """Each run gets its own folder."""
    shell.write("mine.py", POLICY)
    for number in (1, 2):
        outcome = shell.run("run", "-p", "tiny", "-w", shell.small(), "--scheduler", "mine.py:Mine").ok()
        assert f"outputs in pipistrelle-out/small-mine-{number}" in outcome.out


@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("missing.py:Mine", ["missing.py", "there is no such file"]),
        ("mine.py:Mein", ["mine.py", "it has no 'Mein'", "Did you mean 'Mine'?"]),
        ("mine.py:", ["mine.py", "it has no ''"]),
        ("mine.py:NoOrder", ["mine.py:NoOrder", "it has no 'order'", "name, order and decide(view)"]),
        ("mine.py:number", ["mine.py:number", "cannot create the policy (TypeError"]),
        ("mine.py:Unmade", ["mine.py:Unmade", "cannot create the policy (ValueError: no licence)"]),
        (
            "mine.py:NeedsMore",
            ["mine.py:NeedsMore", "cannot create the policy (TypeError", "required arguments"],
        ),
        ("broken.py:Mine", ["broken.py", "cannot import it (SyntaxError"]),
        ("raising.py:Mine", ["raising.py", "cannot import it (ZeroDivisionError"]),
        ("binary.py:Mine", ["binary.py", "cannot import it"]),
        ("no_module_of_ours:Mine", ["no_module_of_ours", "cannot import it (ModuleNotFoundError"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_policy_that_cannot_be_made_is_refused(shell, name, fragments):
    """Exit code 2 before the run starts."""
    shell.write("mine.py", POLICY)
    shell.write("broken.py", "class Mine(:\n")
    shell.write("raising.py", "x = 1 / 0\n")
    shell.write("binary.py", b"\0\xff")
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--scheduler", name, "--out", "out").failed(2, *fragments)

    assert not (shell.folder / "out").exists()


def test_schedule_says_the_same(shell):
    """`schedule` accepts the same policies and gives the same errors."""
    shell.write("mine.py", POLICY)
    shell.run("schedule", "mine.py:Unmade", "--connect", "tcp://127.0.0.1:9").failed(2, "no licence")


@MODES
@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("Fails", ["policy 'mine' raised KeyError: 'missing'", "simulated time 100.0", "mine.py:"]),
        ("Illegal", ["the server rejected a decision (unknown_call)", "CANCEL_CALL"]),
    ],
)
def test_a_policy_that_fails_on_the_way_ends_the_run(shell, mode, name, fragments):
    """Exit code 4; the cause appears once, and outputs so far are kept."""
    shell.write("mine.py", POLICY)
    outcome = shell.run(
        "run", "-p", "tiny", "-w", shell.small(), "--scheduler", f"mine.py:{name}", *mode, "--out", "out"
    )

    assert outcome.code == 4
    assert "Traceback" not in outcome.err
    cause, *consequence = outcome.messages
    for fragment in fragments:
        assert fragment in cause
    # Of two processes, the server says for its part that it lost its scheduler.
    assert len(consequence) == (0 if mode else 1)
    assert "the scheduler ended with exit code 4" in "".join(consequence) or mode
    assert [job[0] for job in shell.ended_jobs()][:2] == ["2", "1"]
    assert (shell.folder / "out" / "out_summary.json").is_file()


@MODES
def test_the_traceback_of_a_policy_is_in_the_log_on_request(shell, mode):
    """-vv shows where a policy failed, also in its own process."""
    shell.write("mine.py", POLICY)
    outcome = shell.run("-vv", "run", "-p", "tiny", "-w", shell.small(), "--scheduler", "mine.py:Fails", *mode)

    assert outcome.code == 4
    assert 'return {}["missing"]' in outcome.err


@MODES
def test_a_policy_that_starts_nothing_stalls(shell, mode):
    """Exit code 5; the message names the jobs."""
    shell.write("mine.py", POLICY)
    outcome = shell.run("run", "-p", "tiny", "-w", shell.small(), "--scheduler", "mine.py:Lazy", *mode)
    outcome.failed(5, "the run stalled", "w0!1 (2 units)")


@pytest.mark.parametrize("dialect", ["native", "batsim"])
def test_a_policy_that_fails_in_another_terminal_is_told_of(shell, free_endpoint, dialect):
    """The server ends with code 4 and writes the reason; the scheduler's terminal shows the cause."""
    shell.write("mine.py", POLICY)
    way = ("--endpoint", free_endpoint) if dialect == "native" else ("--dialect", "batsim", "--connect", free_endpoint)
    reach = ("--connect", free_endpoint) if dialect == "native" else ("--dialect", "batsim", "--bind", free_endpoint)
    server = shell.start("serve", "-p", "tiny", "-w", shell.small(), "--out", "out", *way)
    scheduler = shell.start("schedule", "mine.py:Fails", *reach)

    scheduler.finish().failed(4, "policy 'mine' raised KeyError: 'missing'")
    server.finish().failed(4, "failed after ", "as it said")
    assert shell.end_reason() == "scheduler_error"


def test_explain_runs_code_of_a_runs_folder_only_if_it_is_trusted(shell):
    """`explain` and `validate` run no code that outputs name; `explain --trust` does."""
    shell.write("mine.py", POLICY)
    shell.run(
        "run", "-p", "tiny", "-w", shell.small(), "--scheduler", "mine.py:Mine", "--in-process", "--out", "out"
    ).ok()
    command = json.loads((shell.folder / "out" / "out_command.json").read_text())
    shell.write("mine.py", POLICY + "\nopen('ran', 'w').close()\n")
    command["files"]["mine.py"] = hashlib.sha256((shell.folder / "mine.py").read_bytes()).hexdigest()
    shell.write("out/out_command.json", json.dumps(command))

    for _ in range(2):
        told = shell.run("explain", "job", "out", "w0!3", "--json").ok().out
        assert "mine.py:Mine, which --trust lets run" in json.loads(told)["not_replayed"]
    shell.run("validate", "out/out_command.json").ok()
    assert not (shell.folder / "ran").exists()
    told = shell.run("explain", "job", "out", "w0!3", "--json", "--trust").ok().out
    assert json.loads(told)["not_replayed"] is None
    assert (shell.folder / "ran").exists()
