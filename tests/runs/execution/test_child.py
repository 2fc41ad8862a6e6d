"""A scheduler as a child process: its command and its exit."""

import os
import resource
import sys
from collections.abc import Sequence

import pytest

from pipistrelle.runs.execution.child import Child, CommandError, check_command, own_command

PYTHON = sys.executable


@pytest.mark.parametrize("command", [["x", "{endpoint}"], ["x", "--connect={endpoint}"], ["sh", "-c", "y {endpoint}"]])
def test_command_has_the_endpoint(command: Sequence[str]) -> None:
    """The placeholder may stand anywhere in an argument."""
    check_command(command)


@pytest.mark.parametrize("command", [["my scheduler"], ["x", "endpoint"], ["x", "{end point}"]])
def test_a_command_without_a_place_for_the_endpoint_is_refused(command: Sequence[str]) -> None:
    """The error repeats the command, quoted as in a shell, and shows the correct form."""
    with pytest.raises(CommandError, match=r"\{endpoint\} in one of its arguments") as caught:
        check_command(command)

    assert caught.value.exit_code == 2
    assert "For example: --scheduler" in (caught.value.hint or "")


def test_our_own_schedulers_are_commands_too() -> None:
    """The command names this Python, the policy and its options."""
    command = own_command("easy", "--order", "sjf")

    check_command(command)
    assert command[0] == PYTHON
    assert command[-2:] == ["--order", "sjf"]


def test_missing_program_is_reported() -> None:
    """No traceback for a wrong path."""
    with pytest.raises(CommandError, match="cannot start the scheduler"):
        Child(["/absent/scheduler", "{endpoint}"], "tcp://127.0.0.1:1")


def test_too_few_descriptors_are_not_taken_for_a_wrong_path() -> None:
    """The message says that the program exists and what to do."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull, "rb") as last:  # the next descriptor is one beyond
        resource.setrlimit(resource.RLIMIT_NOFILE, (last.fileno() + 1, limits[1]))
        try:
            with pytest.raises(CommandError, match=r"Too many open files.*Raise the limit"):
                Child([PYTHON, "{endpoint}"], "tcp://127.0.0.1:1")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def wait_for_fate(child: Child) -> str:
    """Return how the child ended."""
    fate = child.fate(600.0)
    assert fate is not None
    return str(fate)


def test_the_endpoint_is_handed_over_twice() -> None:
    """In place of the placeholder, and in the environment."""
    program = (
        "import os, sys; sys.exit(5 if sys.argv[1] == 'at:X' and os.environ['PIPISTRELLE_ENDPOINT'] == 'X' else 6)"
    )
    with Child([PYTHON, "-c", program, "at:{endpoint}"], "X") as child:
        fate = wait_for_fate(child)

    assert "ended with exit code 5 before the simulation was over" in fate


def test_killed_child_is_distinguished_from_ended_one() -> None:
    """The signal is named."""
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with Child([PYTHON, "-c", program, "{endpoint}"], "X") as child:
        fate = wait_for_fate(child)

    assert "was killed by " in fate
    assert "SIGKILL" in fate or "signal 9" in fate


def leave_by_failure(child: Child) -> None:
    """Leave the child's block as a run that fails does."""
    with child:
        raise ZeroDivisionError


def test_a_child_that_lives_has_no_fate_and_is_ended_with_the_run() -> None:
    """Leaving the block after a failure ends the process soon."""
    child = Child([PYTHON, "-c", "import time; time.sleep(100_000)", "{endpoint}"], "X")
    alive = child.fate() is None and child.fate(0.01) is None
    with pytest.raises(ZeroDivisionError):
        leave_by_failure(child)

    assert alive
    assert "was interrupted by SIGTERM" in wait_for_fate(child)


@pytest.mark.parametrize(
    ("how", "reason", "says"),
    [
        ("kill -KILL $$", "scheduler_killed", "was killed by SIGKILL"),
        ("kill -SEGV $$", "scheduler_killed", "was killed by SIGSEGV"),
        ("kill -INT $$", "scheduler_interrupted", "was interrupted by SIGINT"),
        ("kill -TERM $$", "scheduler_interrupted", "was interrupted by SIGTERM"),
        ("kill -HUP $$", "scheduler_interrupted", "was interrupted by SIGHUP"),
        ("exit 130", "scheduler_interrupted", "ended with exit code 130"),
        ("exit 137", "scheduler_killed", "ended with exit code 137"),
        ("exit 1", "scheduler_error", "ended with exit code 1"),
        ("exit 255", "scheduler_error", "ended with exit code 255"),
        ("exit 0", "scheduler_left", "ended with exit code 0"),
    ],
)
def test_how_a_child_ended_is_a_reason(how: str, reason: str, says: str) -> None:
    """By its signal, which shells report as 128 plus its number, or by its exit code."""
    with Child(["sh", "-c", f"trap - INT TERM HUP; {how}", "{endpoint}"], "X") as child:
        fate = child.fate(600.0)

    assert fate is not None
    assert fate.reason == reason
    assert says in str(fate)
