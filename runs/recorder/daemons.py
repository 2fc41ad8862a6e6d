"""Run an unmodified slurmctld and its slurmds in virtual time.

Jobs are submitted to them.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final

from pipistrelle.protocol.base.errors import InputError, PipistrelleError, printable
from pipistrelle.protocol.base.whole import read_whole, read_whole_text, write_whole
from pipistrelle.runs.recorder.configuration import PrivateConfiguration
from pipistrelle.runs.recorder.jobs import BEGIN, PlannedJob, TimedCommand
from pipistrelle.runs.recordings.names import WITH_DATABASE, ZERO
from pipistrelle.runs.slurmctld.configuration import write_associations
from pipistrelle.runs.slurmctld.daemon import check_alive
from pipistrelle.runs.slurmctld.installation import Installation, look_for
from pipistrelle.runs.slurmctld.submission import Users
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS, VirtualTime

#: commands that recording needs, and Debian's packages
PACKAGES: Final = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
_START: Final = int(datetime.fromisoformat(ZERO).replace(tzinfo=UTC).timestamp()) * NANOSECONDS
#: time at which the slurmds start (s), and until when all nodes must be idle
_NODES_START: Final = 10.0
_NODES_READY: Final = 110
#: a submission is this much after the full second (s)
_WITHIN: Final = 0.05
#: longest virtual time of a command (s)
_COMMAND: Final = 60
#: time between two looks at the queue after the last submission (s), and after how many without change it ends
_LOOK: Final = 60
_PATIENCE: Final = 60
_REMOVE: Final = """cat > /dev/null; for i in 1 2 3 4 5 6 7 8 9 10; do
rm -rf "$@" 2> /dev/null; sleep 0.3; for f; do test ! -e "$f" || continue 2; done; exit 0; done"""


class RecorderError(PipistrelleError):
    """The daemons of Slurm failed."""

    exit_code = 4


def require_programs(prefix: str | None) -> Installation:
    """Return Slurm as it is installed in a folder.

    If ``prefix`` is None, look for it in the PATH. Raise InputError if a command is missing, or this process does not
    run as root.
    """
    names = (*PACKAGES, "squeue", "scontrol", "sdiag")
    found = look_for(prefix, names)
    lacking = ", ".join(name for name in names if name not in found.programs)
    if lacking:
        raise InputError(
            "recording needs Slurm, which is not installed",
            where=None if prefix is None else f"--slurm-prefix {printable(prefix)}",
            expected=f"the commands {', '.join(names)}",
            found=f"no {lacking}",
            hint=f"Install it (Debian: apt install {' '.join(PACKAGES.values())}).",
        )
    if os.geteuid() != 0:
        raise InputError(
            "recording needs root, because slurmd starts jobs of several users", hint="Run it in a container, as root."
        )
    return found


class CommandFailed(RecorderError):
    """A command of Slurm failed, although slurmctld is still running."""


class Daemons:
    """A private cluster in virtual time; use it as a context manager.

    At the end of the block, or if this process is killed, all processes are killed and the private folder is removed.

    Args:
        users: the users of the jobs.
    """

    def __init__(self, configuration: PrivateConfiguration, slurm: Installation, users: Sequence[str] = ()) -> None:
        self._slurm = slurm
        self._programs = slurm.programs
        self._configuration = configuration
        self.folder = Path(tempfile.mkdtemp(prefix="pipistrelle-record-"))
        self._keeper: subprocess.Popen[bytes] | None = None
        self._people = users

    def __enter__(self) -> "Daemons":
        """Write the files and start the daemons."""
        try:
            self._prepare()
            self.time = VirtualTime(_START)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        try:
            self._open_to_users()
            self._boot()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill all processes and remove the private folder."""
        try:
            self.time.__exit__(kind, error, trace)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            if self._keeper is not None and self._keeper.stdin is not None:
                self._keeper.stdin.close()
                self._keeper.wait()

    def _prepare(self) -> None:
        self.folder.chmod(0o755)
        for name in ("state", "spool", "dev"):
            (self.folder / name).mkdir()
        for name, text in self._configuration.files.items():
            more = "".join(f"{line}\n" for line in self._slurm.settings) if name == "slurm.conf" else ""
            write_whole(self.folder / name, [more.encode(), text.replace("@STATE@", str(self.folder)).encode()])
        for name in self._configuration.devices:
            (self.folder / name).touch()
        self._users = Users(self.folder / "users", self._people)
        configuration = self._configuration
        if configuration.accounting is not None:
            state, now = self.folder / "state", _START // NANOSECONDS
            write_associations(configuration.accounting, configuration.conf, state, self._users.number, now)
        self._env = {
            **self._slurm.environment,
            **self._users.environment,
            "PATH": os.environ.get("PATH", os.defpath),
            "TZ": "UTC",
            "LC_ALL": "C",
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }

    def _open_to_users(self) -> None:
        """Let the processes of jobs, which do not run as root, read the virtual clock.

        Also start a process that removes the private folders even if this process is killed.
        """
        clock = Path(self.time.environment["PIPISTRELLE_CLOCK"])
        clock.parent.chmod(0o755)
        clock.chmod(0o666)
        preload = clock.parent / "preload.so"
        shutil.copy(self.time.tools.preload, preload)
        preload.chmod(0o755)
        self.time.environment["LD_PRELOAD"] = str(preload)
        self._keeper = subprocess.Popen(  # noqa: S603 - a script of ours
            ["/bin/sh", "-c", _REMOVE, "sh", str(self.folder), str(clock.parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _boot(self) -> None:
        if self._configuration.accounting is not None:
            self.to(WITH_DATABASE)
        self._controller = self.time.start([self._programs["slurmctld"], "-D", "-c"], self._env)
        self.to(_NODES_START)
        for node in self._configuration.nodes:
            self.time.start([self._programs["slurmd"], "-D", "-N", node], self._env)
        wanted = len(self._configuration.nodes)
        for at in range(15, _NODES_READY, 5):
            self.to(at)
            states = self.command("scontrol", "-o", "show", "nodes").count("State=IDLE ")
            if states == wanted:
                return
        raise RecorderError(
            "the nodes do not register with slurmctld",
            expected=f"{wanted} idle nodes",
            found=f"{states}; {self.last_error()}",
        )

    def last_error(self) -> str:
        """Return the last error in slurmctld's log."""
        with suppress(OSError):
            lines = [
                line for line in read_whole_text(self.folder / "slurmctld.log").splitlines() if "] error: " in line
            ]
            if lines:
                return lines[-1].partition("] ")[2]
        return "no error in slurmctld's log"

    def to(self, seconds: float) -> None:
        """Move the virtual clock to a time (s after time 0) unless it is later already."""
        wanted = _START + round(seconds * NANOSECONDS)
        while self.time.now < wanted:
            self.time.run(wanted)

    @property
    def now(self) -> float:
        """The virtual time (s after time 0)."""
        return (self.time.now - _START) / NANOSECONDS

    def command(self, name: str, *words: str) -> str:
        """Run a command of Slurm and return what it prints.

        Raise CommandFailed if it fails.
        """
        within = _COMMAND * NANOSECONDS
        code, text = self.time.finish([self._programs[name], *words], self._env, within=within, serve=self._check)
        if code != 0:
            raise CommandFailed(f"{name} failed with exit code {code}", found=text.strip()[-200:] or self.last_error())
        return text

    def _check(self) -> None:
        """Raise VirtualTimeError if slurmctld has ended."""
        if self._controller.poll() is not None:
            log = self.folder / "slurmctld.log"
            check_alive(self._controller, read_whole(log) if log.is_file() else b"")

    def submit_all(
        self, jobs: Sequence[PlannedJob], commands: Sequence[TimedCommand], progress: Callable[[int, float], None]
    ) -> list[str]:
        """Submit the jobs at their times.

        Return a text about each job that slurmctld refused. Set ``cells["id"]`` of each accepted job to Slurm's id.

        Args:
            commands: commands of scontrol, in the order of time.
        """
        ids: dict[str, str] = {}
        refused: list[str] = []
        told = list(commands)
        for number, job in enumerate(jobs):
            while told and told[0].time <= max(BEGIN, job.time):
                self._control(told.pop(0))
            self.to(max(BEGIN, job.time) + _WITHIN)
            words = [f"--uid={self._users.number(job.cells['user'])}", *job.options]
            if job.depends:
                job.cells["after"] = _translated(job.depends, ids)
                words.append(f"--dependency={job.cells['after']}")
            script = f"exec sleep {job.cells['run_s']}"
            try:
                text = self.command("sbatch", "-D", "/", "-o", "/dev/null", *words, "--wrap", script)
            except CommandFailed as error:
                refused.append(f"job {job.name} was refused: {error.found}")
                continue
            ids[job.name] = job.cells["id"] = text.split()[-1]
            progress(number + 1, self.now)
        for command in told:
            self._control(command)
        return refused

    def _control(self, command: TimedCommand) -> None:
        """Run a command of scontrol at the virtual time that it names."""
        self.to(command.time + _WITHIN)
        self.command("scontrol", *command.words)

    def wait(self, until: float, progress: Callable[[int, float], None], count: int) -> bool:
        """Let virtual time pass until no job can run, but at most until ``until`` (s).

        Return whether jobs are still queued.
        """
        last, same = "", 0
        while self.now < until:
            self.to(min(self.now + _LOOK, until))
            queue = self.command("squeue", "-h", "-t", "PD,R,CG,S", "-o", "%i %t %r")
            progress(count, self.now)
            if not queue or all("DependencyNeverSatisfied" in line for line in queue.splitlines()):
                return False
            waits = all(line.split()[1] == "PD" for line in queue.splitlines())
            same = same + 1 if waits and queue == last else 0
            last = queue
            if same >= _PATIENCE and "BeginTime" not in queue and "Reservation" not in queue:
                return True
        return True


def _translated(text: str, ids: dict[str, str]) -> str:
    """Replace the workload's job names in a dependency by Slurm's job ids.

    The id is 1 if the job was not submitted.
    """
    parts = []
    for mark, part in _parts(text):
        kind, *names = part.split(":")
        told = (name.partition("+") for name in names)
        parts.append(mark + ":".join([kind, *(f"{ids.get(name, '1')}{plus}{delay}" for name, plus, delay in told)]))
    return "".join(parts)


def _parts(text: str) -> list[tuple[str, str]]:
    found, mark, start = [], "", 0
    for at, letter in enumerate(text):
        if letter in ",?":
            found.append((mark, text[start:at]))
            mark, start = letter, at + 1
    return [*found, (mark, text[start:])]
