"""A scheduler as a child process: started with an endpoint, watched, and ended."""

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
#: how long a scheduler may take to end, in seconds: one that was told that the run is over, and one that was refused
_GRACE_S: Final = 3.0
_BRIEF_S: Final = 0.5
#: what there is too little of, if a process cannot be started for that
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
#: signals by which a user, or a batch system, asks a process to end
_INTERRUPTS: Final = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
#: what a shell adds to the number of the signal that has killed a program
_BY_SIGNAL: Final = 128


class CommandError(PipistrelleError):
    """A scheduler's command that cannot be started."""


def own_command(policy: str, *options: str, verbose: int = 0, batsim: bool = False) -> list[str]:
    """Return the command that serves with one of our own policies.

    ``verbose`` is the log's level, as `-v` counts; ``batsim`` is whether it listens and speaks the batsim dialect.
    """
    program = [sys.executable, "-m", "pipistrelle.cli", *["-v"] * verbose]
    way = ["--dialect", "batsim", "--bind"] if batsim else ["--connect"]
    return [*program, "schedule", policy, *way, PLACEHOLDER, "--quiet", *options]


def check_command(command: Sequence[str]) -> None:
    """Raise CommandError unless the command tells its scheduler the endpoint."""
    if not any(PLACEHOLDER in word for word in command):
        raise CommandError(
            "the scheduler's command does not name the endpoint",
            where=shlex.join(command),
            expected=f"{PLACEHOLDER} in one of its arguments",
            hint=f"For example: --scheduler {shlex.join([*command, PLACEHOLDER])}. "
            "Everything after --scheduler belongs to the command.",
        )


class Child:
    """A started scheduler; use it as a context manager.

    Parameters
    ----------
    command
        program and arguments; ``{endpoint}`` in them is replaced.
    endpoint
        where the server listens; in the batsim dialect, where the scheduler shall.
    printed
        takes what it prints, on both of its streams; None: they are ours.

    Raises
    ------
    CommandError
        when it cannot be started.
    """

    def __init__(self, command: Sequence[str], endpoint: str, *, printed: IO[bytes] | None = None) -> None:
        self._name = shlex.join(command)
        words = [word.replace(PLACEHOLDER, endpoint) for word in command]
        try:
            # A session of its own: Ctrl-C reaches the server alone, which then tells the scheduler.
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
                hint="Give it more (ulimit, a batch system's limit)." if wants else "Is the path right?",
            ) from None

    def fate(self, patience: float = 0.0) -> SchedulerFailed | None:
        """Return None if the process lives on for so long (s), else how it ended."""
        if not self._ended(patience):
            return None
        how, reason = _ending(self._process.returncode)
        return SchedulerFailed(f"the scheduler {how} before the simulation was over: {self._name}", reason=reason)

    def terminate(self) -> None:
        """Ask the process, and what it has started, to end."""
        self._signal(signal.SIGTERM)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        """Give the process some seconds to end by itself, then end it; sooner if the run never began.

        Signals go to its whole group: a command may be a script that starts the real scheduler.
        """
        try:
            by_itself = self._ended(_GRACE_S if failed is None else _BRIEF_S)
            self._signal(signal.SIGTERM)  # also for what it left behind
            if by_itself or self._ended(_GRACE_S):
                return
        except BaseException:  # a second Ctrl-C: no more patience, but no orphan either
            self._signal(signal.SIGKILL)
            raise
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
            os.killpg(self._process.pid, number)

    def _ended(self, patience: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
            return True
        return False


def _ending(code: int) -> tuple[str, EndReason]:
    """Return how a process with this return code has ended; shells tell of signals as 128 and their number."""
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
    except ValueError:  # a real-time signal
        return f"signal {number}"
