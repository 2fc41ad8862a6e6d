"""Run unmodified programs in virtual time: their clock moves only while none of their threads can run."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from pipistrelle.runs.slurmctld.build import Tools, build_tools
from pipistrelle.runs.slurmctld.conductor import Conductor, VirtualTimeError
from pipistrelle.runs.slurmctld.private_folder import PrivateFolder

NANOSECONDS: Final = 1_000_000_000


class VirtualTime:
    """A virtual clock and the programs that use it; use the object as a context manager.

    The programs sleep, time out and read the clock in virtual time. The clock stands still while any of their threads
    can run. TCP connections between them are replaced by Unix sockets, which no other run can reach. At the end of the
    block, all processes are killed, including those that became daemons.

    Args:
        start: the time at which the clock begins (ns since 1970).

    Raises:
        BuildError: the C programs cannot be compiled.
    """

    def __init__(self, start: int) -> None:
        self.tools: Tools = build_tools()
        self._children: list[subprocess.Popen[bytes]] = []
        #: number of connections that the listener at the ports of `answer_ports` has accepted
        self.answered = 0
        self._folder = PrivateFolder()
        clock = self._folder.clock
        try:
            self._conductor = Conductor(self.tools.conductor, clock)
            self.environment = {"LD_PRELOAD": str(self.tools.preload), "PIPISTRELLE_CLOCK": str(clock)}
            self._conductor.ask(f"set {start}")
            file = os.stat(clock)
            #: beginning of the abstract names of the Unix sockets that replace TCP, before a slash and the port
            self.network = b"pipistrelle-%x-%x" % (file.st_dev, file.st_ino)
        except BaseException:
            self._folder.remove()
            raise

    @property
    def now(self) -> int:
        """Virtual time in ns since 1970."""
        return self._conductor.now

    @property
    def reached(self) -> bool:
        """Whether the last `run` reached its end time; False if a connection stopped it earlier."""
        return self._conductor.reached

    @property
    def calls(self) -> int:
        """Number of connections so far to the ports given to `answer_ports`."""
        return self._conductor.calls

    @property
    def folder(self) -> Path:
        """The private folder, in memory where possible, which the conductor removes at its end."""
        return self._folder.path

    def __enter__(self) -> "VirtualTime":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill all processes and remove the clock."""
        self._conductor.close()
        self._folder.remove()
        for child in self._children:
            child.kill()
            child.wait()

    def start(
        self, command: Sequence[str], env: Mapping[str, str], *, output: int | IO[bytes] = subprocess.DEVNULL
    ) -> "subprocess.Popen[bytes]":
        """Start a program and return it once it is idle.

        Its working directory is the private folder, so that no core dump is left behind.

        Args:
            env: its environment, without the variables of virtual time.
            output: receives what it prints.
        """
        child = subprocess.Popen(  # noqa: S603 - running the user's programs is the purpose
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**env, **self.environment},
            cwd=self.folder,
        )
        self._children.append(child)
        self._conductor.tell(f"enter {child.pid}")
        self._conductor.ask("settle")
        return child

    def finish(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        within: int,
        serve: Callable[[], None] = lambda: None,
    ) -> tuple[int, str]:
        """Run a program to its end; return its exit code and what it printed.

        The clock moves only while the program sleeps, and by at most ``within`` ns.

        Args:
            serve: called when a program connects to a port given to `answer_ports`, to answer it.

        Raises:
            VirtualTimeError: the program did not end in this time.
        """
        with tempfile.TemporaryFile() as printed:
            child = subprocess.Popen(  # noqa: S603 - running the user's programs is the purpose
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                env={**env, **self.environment},
            )
            self._children.append(child)
            last = self.now + within
            while True:
                self._conductor.ask(f"until {child.pid} {last} {self.answered}")
                code = child.poll()
                serve()
                if code is not None or self.now >= last:
                    break
            if code is None:
                raise VirtualTimeError(
                    f"the program did not end within {within / NANOSECONDS:g} s of virtual time", where=command[0]
                )
            self._children.remove(child)
            printed.seek(0)
            return code, printed.read().decode("utf-8", "replace")

    def run(self, to: int) -> None:
        """Move the clock to ``to`` (ns), but stop when a program connects to a port given to `answer_ports`."""
        self._conductor.ask(f"run {to} {self.answered}")

    def answer_ports(self, first: int, last: int) -> None:
        """Let `run` and `finish` return when a program connects to a port from ``first`` to ``last``.

        The caller listens at these ports, outside virtual time, and answers the connections.
        """
        self._conductor.tell(f"ports {first} {last}")

    def hold(self, pid: int, length: int) -> None:
        """Let the sleeping first thread of a process sleep ``length`` ns longer."""
        self._conductor.tell(f"hold {pid} {length}")

    def settle(self) -> None:
        """Wait until all programs are idle."""
        self._conductor.ask("settle")
