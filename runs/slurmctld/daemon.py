"""Start slurmctld with stand-ins for its nodes, and give it commands."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from pipistrelle.protocol.base.errors import InputError
from pipistrelle.protocol.base.whole import read_whole, whole_file
from pipistrelle.runs.slurmctld.conductor import VirtualTimeError
from pipistrelle.runs.slurmctld.configuration import FIRST_PORT, NodeOfCluster, derive
from pipistrelle.runs.slurmctld.nodes import StandIn
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS, VirtualTime

#: release of Slurm that the stand-in talks to
RELEASE: Final = "22.05"
_PROGRAMS: Final = ("slurmctld", "sbatch", "scancel", "scontrol", "squeue")
_PLACES: Final = ("/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin", "/usr/local/bin")
#: numbers of the workload's users begin here
_FIRST_UID: Final = 100_000
#: longest virtual time that a command may take (ns)
_COMMAND: Final = 300 * NANOSECONDS
#: virtual time in which slurmctld starts, and in which its nodes register (ns)
_BOOT: Final = 10 * NANOSECONDS
_REGISTERED: Final = 20 * NANOSECONDS
_BRIEF_S: Final = 20.0
_SUBMITTED: Final = re.compile(r"\d+")
_ODD: Final = re.compile(r"[^A-Za-z0-9._@+-]")
_SHOWN: Final = 400


def installed() -> dict[str, str]:
    """Return {name of a Slurm program: its path} for all programs that this scheduler needs.

    Raises:
        InputError: one is absent, or they are of another release.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), *_PLACES])
    found = {name: shutil.which(name, path=path) for name in _PROGRAMS}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        raise InputError(
            f"the scheduler slurmctld needs Slurm's own programs, and there is no {missing[0]}",
            expected=f"slurmctld and the commands of Slurm {RELEASE}",
            hint="Install them (Debian 12: apt install slurmctld slurm-client), or use --scheduler slurm.",
        )
    programs = {name: place for name, place in found.items() if place is not None}
    version = subprocess.run(  # noqa: S603 - the user's own slurmctld
        [programs["slurmctld"], "-V"], capture_output=True, timeout=_BRIEF_S, check=False
    )
    told = version.stdout.decode("utf-8", "replace").strip()
    if f" {RELEASE}." not in f"{told}.":
        raise InputError(
            "the scheduler slurmctld supports one release of Slurm",
            where=programs["slurmctld"],
            expected=RELEASE,
            found=told or "no version",
        )
    return programs


class Slurmctld:
    """A running slurmctld; use it as a context manager.

    Args:
        config: the cluster's slurm.conf.
        start: virtual time at which slurmctld starts (ns since 1970).

    Raises:
        PipistrelleError: Slurm or a compiler is absent, the configuration is wrong, or slurmctld does not start.
    """

    def __init__(self, config: str, start: int) -> None:
        self._programs = installed()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self.time = VirtualTime(start)
        try:
            self._folder = self.time.folder
            uid = os.getuid()
            self.cluster, self.remarks = self._derive(config, uid)
            self._users: dict[str, int] = {}
            self._file = self._folder / "users"
            self._write_users()
            self._env = {
                "PATH": "/usr/bin:/bin",
                "TZ": "UTC",
                "LC_ALL": "C",
                "SLURM_CONF": str(self._folder / "slurm.conf"),
                "PIPISTRELLE_USERS": str(self._file),
            }
            self.nodes = StandIn(self.cluster, self.time, uid)
            self.time.answer_ports(FIRST_PORT, FIRST_PORT + len(self.cluster) - 1)
            self._boot(start)
        except BaseException:
            self.close()
            raise

    def _derive(self, config: str, uid: int) -> tuple[list[NodeOfCluster], list[str]]:
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            name = str(uid)
        plugins = next((one for one in Path("/usr/lib").glob("*/slurm-wlm") if one.is_dir()), None)
        return derive(config, self._folder, name, plugins)

    def _boot(self, start: int) -> None:
        self._daemon = self.time.start(
            [self._programs["slurmctld"], "-D", "-c"], {**self._env, "PIPISTRELLE_TIED": "1"}, output=self._output
        )
        self.advance(start + _BOOT)
        self.nodes.register()
        self.nodes.serve()
        self.advance(start + _REGISTERED)

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

    def check(self) -> None:
        """Raise VirtualTimeError if slurmctld has ended."""
        code = self._daemon.poll()
        if code is None:
            return
        said = self._said()
        raise VirtualTimeError(
            "slurmctld ended", found=f"signal {-code}" if code < 0 else f"exit code {code}", hint=said or None
        )

    def _said(self) -> str:
        """Return the line in slurmctld's log that says why it ended; "" if there is none."""
        self._output.seek(0)
        log = self._folder / "slurmctld.log"
        text = (read_whole(log) if log.is_file() else b"") + self._output.read()
        lines = [line for line in text.decode("utf-8", "replace").splitlines() if "fatal: " in line]
        return " ".join(lines[:1])[-_SHOWN:]

    def user(self, name: str) -> int:
        """Return the user number (uid) that Slurm has for a user of the workload; add the user to Slurm if new."""
        clean = _ODD.sub("_", name)
        if clean not in self._users:
            self._users[clean] = _FIRST_UID + len(self._users)
            self._write_users()
        return self._users[clean]

    def _write_users(self) -> None:
        with whole_file(self._file) as file:
            file.write("".join(f"{name}:{number}\n" for name, number in self._users.items()).encode())

    def submit(self, words: Sequence[str], user: str | None) -> int | str:
        """Submit a job with sbatch; return its number, or why Slurm refuses it."""
        more = {} if user is None else {"PIPISTRELLE_UID": str(self.user(user))}
        code, said = self.command(["sbatch", "--parsable", *words], more)
        found = _SUBMITTED.match(said.strip().rpartition("\n")[2])
        if code == 0 and found is not None:
            return int(found[0])
        return " ".join(said.removeprefix("sbatch: error: ").split())[:_SHOWN] or f"sbatch: exit code {code}"

    def command(self, words: Sequence[str], more: dict[str, str] | None = None) -> tuple[int, str]:
        """Run a command of Slurm such as ``squeue``; return its exit code and output."""
        found = self.time.finish(
            [self._programs[words[0]], *words[1:]],
            {**self._env, **(more or {})},
            within=_COMMAND,
            serve=self.nodes.serve,
        )
        self.check()
        return found
