"""Start slurmctld with stand-ins for its nodes, and give it commands."""

import os
import pwd
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.whole import read_whole
from pipistrelle.runs.slurmctld.conductor import VirtualTimeError
from pipistrelle.runs.slurmctld.configuration import FIRST_PORT, NodeOfCluster, derive
from pipistrelle.runs.slurmctld.installation import find_slurm
from pipistrelle.runs.slurmctld.nodes import StandIn
from pipistrelle.runs.slurmctld.submission import Users
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS, VirtualTime

#: longest virtual time that a command may take (ns)
_COMMAND: Final = 300 * NANOSECONDS
#: virtual time in which slurmctld starts, and in which its nodes register (ns)
_BOOT: Final = 10 * NANOSECONDS
_REGISTERED: Final = 20 * NANOSECONDS
_SUBMITTED: Final = re.compile(r"\d+")
_SHOWN: Final = 400
#: lines of slurmctld's log in the error that it has ended
_LINES: Final = 3


def check_alive(slurmctld: "subprocess.Popen[bytes]", log: bytes) -> None:
    """Raise VirtualTimeError if slurmctld has ended; the error has the signal or exit code, and the end of the log."""
    code = slurmctld.poll()
    if code is None:
        return
    lines = [line.strip() for line in log.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = [line for line in lines if " slurmscriptd: " not in line]  # its process for scripts, which ends after it
    fatal = [line for line in lines if "fatal: " in line][:1]
    said = "; ".join(printable(line) for line in fatal or lines[-_LINES:])[-_SHOWN:]
    found = f"exit code {code}"
    if code < 0:
        found = f"signal {-code}"
        with suppress(ValueError):
            found += f" ({signal.Signals(-code).name})"
    raise VirtualTimeError("slurmctld ended", found=found, hint=f"The end of its log: {said}" if said else None)


class Slurmctld:
    """A running slurmctld; use it as a context manager.

    Args:
        config: the cluster's slurm.conf.
        start: virtual time at which slurmctld starts (ns since 1970).
        prefix: the folder in which Slurm is installed; None: the programs in the PATH.
        accounting: files of associations and QOS.

    Raises:
        PipistrelleError: Slurm or a compiler is absent, the configuration is wrong, or slurmctld does not start.
    """

    def __init__(self, config: str, start: int, prefix: str | None = None, accounting: Sequence[str] = ()) -> None:
        self._installation = find_slurm(prefix)
        self._programs = self._installation.programs
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._booted = 0
        self.time = VirtualTime(start)
        try:
            self._folder = self.time.folder
            uid = os.getuid()
            self._users = Users(self._folder / "users")
            self.cluster, self.remarks = self._derive(config, uid, accounting, start)
            self._env = {
                **self._installation.environment,
                "PATH": "/usr/bin:/bin",
                "TZ": "UTC",
                "LC_ALL": "C",
                "SLURM_CONF": str(self._folder / "slurm.conf"),
                **self._users.environment,
            }
            self.nodes = StandIn(self.cluster, self.time, uid)
            self.time.answer_ports(FIRST_PORT, FIRST_PORT + len(self.cluster) - 1)
            self._boot(start)
        except BaseException:
            self.close()
            raise

    def _derive(
        self, config: str, uid: int, accounting: Sequence[str], start: int
    ) -> tuple[list[NodeOfCluster], list[str]]:
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            name = str(uid)
        installation = self._installation
        return derive(
            config,
            self._folder,
            name,
            installation.plugins,
            installation.settings,
            accounting=accounting,
            number=self._users.number,
            now=start // NANOSECONDS,
        )

    def _boot(self, start: int) -> None:
        self._daemon = self.time.start(
            [self._programs["slurmctld"], "-D", "-c"], {**self._env, "PIPISTRELLE_TIED": "1"}, output=self._output
        )
        self.advance(start + _BOOT)
        self.nodes.register()
        self.nodes.serve()
        self.advance(start + _REGISTERED)
        self._booted = len(self._log())  # before that, slurmctld logs that it finds no saved state

    def __enter__(self) -> "Slurmctld":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End slurmctld."""
        self.close()

    def close(self) -> None:
        """End slurmctld and remove its files."""
        nodes = getattr(self, "nodes", None)
        self.time.__exit__(None, None, None)
        if nodes is not None:
            nodes.close()
        self._output.close()

    def advance(self, to: int) -> None:
        """Move the clock to ``to`` (ns) and answer what slurmctld sends until then."""
        while True:
            self.time.run(to)
            self.nodes.serve()
            self.check()
            if self.time.reached:
                return

    def hold(self, length: int) -> None:
        """Hold up slurmctld's main loop for ``length`` ns."""
        self.time.hold(self._daemon.pid, length)

    def check(self) -> None:
        """Raise VirtualTimeError if slurmctld has ended."""
        if self._daemon.poll() is not None:
            check_alive(self._daemon, self._log()[self._booted :])

    def _log(self) -> bytes:
        """Return what slurmctld has logged, or printed before it opened its log."""
        log = self._folder / "slurmctld.log"
        if log.is_file() and (text := read_whole(log)):
            return text
        self._output.seek(0)
        return self._output.read()

    def submit(self, words: Sequence[str], user: str | None) -> int | str:
        """Submit a job with sbatch; return its number, or why Slurm refuses it."""
        more = {} if user is None else {"PIPISTRELLE_UID": str(self._users.number(user))}
        code, said = self.command(["sbatch", "--parsable", *words], more)
        found = _SUBMITTED.match(said.strip().rpartition("\n")[2])
        if code == 0 and found is not None:
            return int(found[0])
        return " ".join(said.removeprefix("sbatch: error: ").split())[:_SHOWN] or f"sbatch: exit code {code}"

    def command(self, words: Sequence[str], more: dict[str, str] | None = None) -> tuple[int, str]:
        """Run a command of Slurm such as ``squeue``; return its exit code and output.

        Args:
            words: the command's name and arguments.
            more: further environment variables.
        """
        return self.time.finish(
            [self._programs[words[0]], *words[1:]],
            {**self._env, **(more or {})},
            within=_COMMAND,
            serve=self._served,
        )

    def _served(self) -> None:
        """Answer what slurmctld has sent; raise VirtualTimeError if it has ended, instead of an error of a command."""
        self.nodes.serve()
        self.check()
