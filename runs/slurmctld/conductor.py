"""Talk to the conductor, the C program that moves the clock of virtual time."""

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError

_PATIENCE_S: Final = 5.0


class VirtualTimeError(PipistrelleError):
    """Virtual time has ended: the conductor is gone, or a thread never waits."""

    exit_code = 4


class Conductor:
    """The conductor's process.

    Args:
        program: the compiled conductor.
        clock: the file that holds the clock.
    """

    def __init__(self, program: Path, clock: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a program of ours
            [program, clock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        #: virtual time in ns
        self.now = 0
        #: number of connections to the ports that are answered outside virtual time
        self.calls = 0
        #: whether nothing is left to do up to this time
        self.reached = True

    @property
    def pid(self) -> int:
        """Process number of the conductor."""
        return self._process.pid

    def close(self) -> None:
        """End the conductor, which kills all processes in virtual time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def tell(self, line: str) -> None:
        """Send the conductor a command that it does not answer; raise VirtualTimeError if the conductor is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._gone() from None

    def ask(self, line: str) -> None:
        """Send the conductor a command and wait until it is carried out; raise VirtualTimeError if that fails."""
        self.tell(line)
        assert self._process.stdout is not None
        while True:
            words = self._process.stdout.readline().decode().split()
            if not words:
                raise self._gone()
            if words[0] == "now":
                self.now, self.calls, self.reached = int(words[1]), int(words[2]), words[3] == "1"
                return
            raise VirtualTimeError(
                "a thread neither waits nor ends, so virtual time cannot pass",
                found=f"thread {words[2]} of process {words[1]}",
            )

    def _gone(self) -> VirtualTimeError:
        return VirtualTimeError(
            "the process that controls virtual time ended", hint="It was killed, or memory ran out."
        )
