"""Run a scheduler as a child process: start, watch and end it."""

import errno
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.fields import EndReason
from pipistrelle.schedulers.catalogue.names import PLACEHOLDER
from pipistrelle.server.errors import SchedulerFailed

ENVIRONMENT: Final = "PIPISTRELLE_ENDPOINT"
#: how long a scheduler may take to end (s): after a complete run, and after a failed run
_GRACE_S: Final = 3.0
_BRIEF_S: Final = 0.5
#: errors at process start that mean an exhausted resource
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
#: signals with which a user or a batch system ends a process
_INTERRUPTS: Final = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
#: added by a shell to the signal's number, to report that a signal killed a program
_BY_SIGNAL: Final = 128


class CommandError(PipistrelleError):
    """The command of a scheduler cannot be started."""


def own_command(policy: str, *options: str, verbose: int = 0, batsim: bool = False) -> list[str]:
    """Return the command that runs a built-in policy as a scheduler process.

    Args:
        verbose: number of `-v` options to pass.
        batsim: make the scheduler listen and use the batsim dialect.
    """
    program = [sys.executable, "-m", "pipistrelle.cli", *["-v"] * verbose]
    way = ["--dialect", "batsim", "--bind"] if batsim else ["--connect"]
    return [*program, "schedule", policy, *way, PLACEHOLDER, "--quiet", *options]


def check_command(command: Sequence[str]) -> None:
    """Raise CommandError unless an argument of the command contains ``{endpoint}``."""
    if not any(PLACEHOLDER in word for word in command):
        raise CommandError(
            "the scheduler's command does not name the endpoint",
            where=shlex.join(command),
            expected=f"{PLACEHOLDER} in one of its arguments",
            hint=f"For example: --scheduler {shlex.join([*command, PLACEHOLDER])}. "
            "--scheduler takes all arguments that follow it.",
        )


class Child:
    """A scheduler process; use it as a context manager.

    Args:
        command: program and arguments; ``endpoint`` replaces ``{endpoint}`` in an argument.
        endpoint: address at which the server listens; in the batsim dialect, at which the scheduler listens.
        printed: receives both output streams of the process; None: the output appears among the output of this program.

    Raises:
        CommandError: the process cannot be started.
    """

    def __init__(self, command: Sequence[str], endpoint: str, *, printed: IO[bytes] | None = None) -> None:
        self._name = shlex.join(command)
        words = [word.replace(PLACEHOLDER, endpoint) for word in command]
        try:
            # In a new session, Ctrl-C reaches only the server. The server then notifies the scheduler.
            self._process = subprocess.Popen(  # noqa: S603 - running the user's command is the purpose
                words,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env={**os.environ, ENVIRONMENT: endpoint},
                start_new_session=True,
            )
        except OSError as error:
            wants = error.errno in _EXHAUSTED
            raise CommandError(
                f"cannot start the scheduler ({error.strerror or error})",
                where=self._name,
                hint="Raise the limit (ulimit, the batch system's)." if wants else "Is the path right?",
            ) from None

    def fate(self, patience: float = 0.0) -> SchedulerFailed | None:
        """Return an error that says how the scheduler process ended.

        Return None if the process still runs after ``patience`` seconds.
        """
        if not self._ended(patience):
            return None
        how, reason = _ending(self._process.returncode)
        return SchedulerFailed(f"the scheduler {how} before the simulation was over: {self._name}", reason=reason)

    def terminate(self) -> None:
        """Send SIGTERM to the process and to the processes that it started."""
        self._signal(signal.SIGTERM)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        """Wait briefly for the process to end (less if the run failed), then kill it.

        Signals go to its process group, because the command may be a script that starts the real scheduler.
        """
        try:
            by_itself = self._ended(_GRACE_S if failed is None else _BRIEF_S)
            self._signal(signal.SIGTERM)  # also end processes that it left behind
            if by_itself or self._ended(_GRACE_S):
                return
        except BaseException:  # on a second Ctrl-C, stop waiting, but leave no orphan process
            self._signal(signal.SIGKILL)
            raise
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # the process group is empty
            os.killpg(self._process.pid, number)

    def _ended(self, patience: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
            return True
        return False


def _ending(code: int) -> tuple[str, EndReason]:
    """Return how a process ended, as a text and as the reason for the end of the run.

    A negative ``code`` is a signal. A code above 128 may be one too: shells report a signal as 128 plus its number.
    """
    number = -code if code < 0 else code - _BY_SIGNAL
    how = f"ended with exit code {code}"
    if number in _INTERRUPTS:
        return f"was interrupted by {_signal_name(number)}" if code < 0 else how, "scheduler_interrupted"
    if number in signal.valid_signals():
        return f"was killed by {_signal_name(number)}" if code < 0 else how, "scheduler_killed"
    return how, "scheduler_error" if code else "scheduler_left"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"
