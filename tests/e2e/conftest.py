"""Real processes for the end-to-end tests: each test gets its own shell and leaves nothing behind."""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

TESTS = Path(__file__).resolve().parent.parent
PEERS = TESTS / "peers"
MARK = "PIPISTRELLE_TEST_MARK"
#: time limits of runs whose tests are not about limits; long enough for a slow machine
PATIENCE = ("--hello-timeout", "600", "--decision-timeout", "600")

#: rows of the small workload: id, submit time, run time, size, requested time; on 4 units under FCFS the jobs run
#: 0-100, 10-60, 100-110 and 500-505
ROWS = ((1, 0, 100, 2, 200), (2, 10, 50, 2, 100), (3, 20, 10, 4, 20), (4, 500, 5, 1, 10))


@dataclass(frozen=True)
class Outcome:
    """How a process ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def messages(self) -> list[str]:
        """The program's own messages on standard error."""
        return [line for line in self.err.splitlines() if line.startswith("pipistrelle:")]

    def ok(self) -> "Outcome":
        """Assert that the exit code is 0 and no message was printed."""
        assert (self.code, self.err) == (0, ""), self
        return self

    def failed(self, code: int, *fragments: str) -> "Outcome":
        """Assert the exit code, and that one message, without a traceback, holds all the fragments."""
        assert self.code == code, self
        assert "Traceback" not in self.err + self.out, self
        assert len(self.messages) == 1, self
        for fragment in fragments:
            assert fragment in self.messages[0], self
        return self


class Process:
    """A process in the background, with its output in files."""

    def __init__(self, words: Sequence[str], folder: Path, environment: dict[str, str], forks: Any) -> None:
        self._files = [folder / f".{uuid.uuid4().hex}.{name}" for name in ("out", "err")]
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            if forks is not None and forks.can(words, environment):
                self._popen = forks.start(words, folder, environment, out, err)
            else:
                self._popen = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=folder,
                    env=environment,
                    start_new_session=True,
                )
        self.pid = self._popen.pid

    @property
    def out(self) -> str:
        """Standard output so far."""
        return self._files[0].read_text(errors="replace")

    @property
    def err(self) -> str:
        """Standard error so far."""
        return self._files[1].read_text(errors="replace")

    def until(self, text: str) -> "Process":
        """Wait until the standard output contains the text."""
        _wait_until(lambda: text in self.out or self._popen.poll() is not None)
        assert text in self.out, (text, self.out, self.err)
        return self

    def signal(self, number: int) -> None:
        """Send a signal to this process alone."""
        self._popen.send_signal(number)

    def finish(self) -> Outcome:
        """Wait for the end."""
        return Outcome(self._popen.wait(), self.out, self.err)

    def noticed(self) -> None:
        """Wait until the process has handled the signals that were sent."""
        status = Path(f"/proc/{self.pid}/status")
        _wait_until(lambda: not re.search(r"^(?:SigPnd|ShdPnd):\s*0*[1-9a-f]", status.read_text(), re.MULTILINE))

    def kill(self) -> None:
        """Kill the process and everything in its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()


#: how often a test checks whether all its processes have ended, for some minutes at most
_LOOKS: Final = 6000


def _wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds; one that never holds ends at the time limit of every test."""
    while not condition():
        time.sleep(0.02)


class Shell:
    """Starts processes in the test's own folder, and knows all that were started."""

    #: the command `pipistrelle` of the interpreter that runs the tests
    command = (sys.executable, "-m", "pipistrelle.cli")
    #: the program `pipistrelle-batsim` of this interpreter
    batsim_command = (sys.executable, str(TESTS / "forks" / "batsim.py"))

    def __init__(self, folder: Path, temporary: Path, forks: Any) -> None:
        #: starts commands of Python fast; None: all start from nothing
        self.forks = forks
        self.folder = folder
        #: where the processes put their temporary files
        self.temporary = temporary
        self.mark = uuid.uuid4().hex
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("PIPISTRELLE")}
        self.environment |= {MARK: self.mark, "TMPDIR": str(temporary), "COLUMNS": "200"}
        self._processes: list[Process] = []

    def start(self, *arguments: str | Path) -> Process:
        """Start the command `pipistrelle` in the background."""
        return self.spawn(*self.command, *arguments)

    def spawn(self, *words: str | Path) -> Process:
        """Start any program in the background."""
        process = Process([str(word) for word in words], self.folder, self.environment, self.forks)
        self._processes.append(process)
        return process

    def run(self, *arguments: str | Path) -> Outcome:
        """Run the command `pipistrelle` to its end."""
        return self.start(*arguments).finish()

    def batsim(self, *arguments: str | Path) -> Outcome:
        """Run the program `pipistrelle-batsim` to its end."""
        return self.spawn(*self.batsim_command, *arguments).finish()

    def simulate(self, peer: str, *arguments: str | Path, options: Sequence[str | Path] = ()) -> Outcome:
        """Run the small workload with a peer as the scheduler; outputs go to `out`."""
        return self.run(
            "run", "-p", "tiny", "-w", self.small(), "--out", "out", "--overwrite", *PATIENCE, *options,
            "--scheduler", *self.peer(peer, *arguments),
        )  # fmt: skip

    @staticmethod
    def peer(name: str, *arguments: str | Path, endpoint: str = "{endpoint}") -> list[str]:
        """Return the command of one of tests/peers."""
        return [sys.executable, str(PEERS / f"{name}.py"), endpoint, *map(str, arguments)]

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file into the test's folder."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def swf(self, name: str, rows: Sequence[tuple[float, ...]], units: int = 4) -> Path:
        """Write an SWF file with these rows: id, submit time, run time, size, requested time."""
        lines = [f"; MaxProcs: {units}"]
        for job, submit, run, size, wanted in rows:
            lines.append(f"{job} {submit} -1 {run} {size} -1 -1 {size} {wanted} -1 1 1 1 -1 -1 -1 -1 -1")
        return self.write(name, "\n".join(lines) + "\n")

    def small(self) -> Path:
        """Write the small workload, for the platform `tiny`."""
        return self.swf("small.swf", ROWS)

    def many(self, jobs: int = 3000) -> Path:
        """Write a workload of one-unit jobs that keeps two processes busy for some tenths of a second."""
        return self.swf("many.swf", [(n + 1, 10 * n, 25, 1, 30) for n in range(jobs)])

    def ended_jobs(self, out: str = "out") -> list[list[str]]:
        """Return the lines of the jobs file without its header; assert that the last one is whole."""
        text = (self.folder / out / "out_jobs.csv").read_text()
        assert text.endswith("\n")
        return list(csv.reader(io.StringIO(text, newline="")))[1:]

    def end_reason(self, out: str = "out") -> str:
        """Return the reason that the summary gives for the end of the run."""
        reason: str = json.loads((self.folder / out / "out_summary.json").read_text())["reason"]
        return reason

    def decisions(self, out: str = "out") -> list[list[str]]:
        """Return the lines of the decisions file without its header."""
        with (self.folder / out / "out_decisions.csv").open(newline="") as file:
            return list(csv.reader(file))[1:]

    def files(self, out: str) -> dict[str, bytes]:
        """Return the names and bytes of a run's results: all its files except the one that tells how it was called."""
        paths = sorted((self.folder / out).iterdir())
        return {path.name: path.read_bytes() for path in paths if path.name != "out_command.json"}

    def survivors(self) -> list[str]:
        """Return the command lines of the live processes that this test started, directly or indirectly."""
        return [words for _, words in self._marked()]

    def _marked(self) -> list[tuple[int, str]]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append((int(entry.name), words))
            except OSError:  # has ended meanwhile, or is a zombie
                continue
        return found

    def tidy(self) -> None:
        """Remove the temporary files that a killed process could not remove."""
        for folder in self.temporary.iterdir():
            shutil.rmtree(folder)

    def close(self) -> None:
        """End the processes that are left."""
        for process in self._processes:
            process.kill()
        for pid, _ in self._marked():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Clients:
    """Real clients of Batsim, in their own virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter that can import evalys."""
        return self.folder / "bin" / "python"

    def pybatsim(self, scheduler: str, endpoint: str) -> list[str | Path]:
        """Return the command that serves one of pybatsim's schedulers, or that of a file in tests/peers."""
        name = PEERS / scheduler if scheduler.endswith(".py") else scheduler
        return [self.folder / "bin" / "pybatsim", name, "-v", "error", "-s", endpoint, "-t", "0"]


@pytest.fixture(scope="session")
def clients() -> Clients:
    """Return the real clients, or skip."""
    named = os.environ.get("PIPISTRELLE_CLIENTS")
    if not named or not (Path(named) / "complete").is_file():
        pytest.skip("pybatsim and evalys are absent: install them (.ci/clients FOLDER), set PIPISTRELLE_CLIENTS=FOLDER")
    return Clients(Path(named).resolve())


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    """Return a function that returns as soon as a condition holds."""
    return _wait_until


@pytest.fixture(scope="session")
def forks(make_forks: Callable[..., Any]) -> Any:
    """Return the starter of forks, or None where forks do not work."""
    return make_forks()


@pytest.fixture
def shell(tmp_path: Path, forks: Any) -> Iterator[Shell]:
    """Yield a shell; afterwards no process and no temporary file of the test may be left."""
    # Not below tmp_path: a Unix socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="pp-") as temporary:
        a_shell = Shell(tmp_path, Path(temporary), forks)
        try:
            yield a_shell
            for _ in range(_LOOKS):
                if not a_shell.survivors():
                    break
                time.sleep(0.02)
            assert a_shell.survivors() == []
            assert list(a_shell.temporary.iterdir()) == []
        finally:
            a_shell.close()


@pytest.fixture
def free_endpoint():
    """Return an endpoint with a port that no process listens at."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"
