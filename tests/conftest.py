"""Settings and fixtures for all tests: time limits, how processes start and end, fixtures that many files share."""

import importlib.util
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, groupby
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final

import pytest
from hypothesis import settings
from loguru import logger

from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload

ROOT = Path(__file__).resolve().parent.parent
#: time limit of a test in seconds; a test that takes longer hangs. It is the only use of the clock in tests
LIMIT_S = 900

settings.register_profile("pipistrelle", deadline=None, max_examples=50)
settings.load_profile("pipistrelle")

# A suite started in the background, or under nohup, ignores interrupts, and its children would inherit that.
# A handler of our own is not inherited: children start with the default dispositions.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
signal.pthread_sigmask(signal.SIG_SETMASK, ())

#: a file system in memory, where temporary files cost a fifth, and how much room there must be, in bytes
MEMORY = Path("/dev/shm")  # noqa: S108 - pytest and tempfile make private folders in it
ROOM = 2 << 30


def _fits(folder: Path) -> bool:
    """Return whether a folder allows the tests to create files and run programs there."""
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        return False
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize >= ROOM and not disk.f_flag & os.ST_NOEXEC


if "TMPDIR" not in os.environ and _fits(MEMORY):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # pytest has read it before

# The settings of the user's terminal for colours and capabilities must not change the tests.
for _name in ("TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
    os.environ.pop(_name, None)

#: marks the processes that tests start, directly or indirectly
MARK = "TESTS_OF_PIPISTRELLE"
os.environ[MARK] = uuid.uuid4().hex
_KEEPER = """
import os, signal, sys
from pathlib import Path
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.buffer.read()
for entry in Path("/proc").glob("[0-9]*"):
    try:
        if entry.name != str(os.getpid()) and sys.argv[1].encode() in (entry / "environ").read_bytes():
            os.kill(int(entry.name), signal.SIGKILL)
    except OSError:
        pass
"""


@pytest.fixture(scope="session", autouse=True)
def _keeper() -> Iterator[None]:
    """Start a process that waits for the end of this one, then kills every process that the tests started."""
    words = [sys.executable, "-c", _KEEPER, f"{MARK}={os.environ[MARK]}"]
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    keeper = subprocess.Popen(words, stdin=subprocess.PIPE, env=unmarked, start_new_session=True)
    yield
    assert keeper.stdin is not None
    keeper.stdin.close()
    keeper.wait()


class Fork:
    """A process that the server in tests/forks has started; it has the interface of `subprocess.Popen`."""

    def __init__(self, request: bytes, streams: Sequence[int], connection: socket.socket) -> None:
        socket.send_fds(connection, [b"%9d" % len(request)], streams)
        connection.sendall(request)
        self._connection = connection
        self._answers = connection.makefile("rb")
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it is running."""
        if self.returncode is None:
            self._connection.setblocking(False)
            try:
                answer = self._connection.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return None
            finally:
                self._connection.setblocking(True)
            assert answer, "the server of forks has gone"
        return self.wait()

    def wait(self) -> int:
        """Wait for its end. Return the exit code, or the negative number of the signal that killed it."""
        if self.returncode is None:
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal if it is alive."""
        if self.poll() is None:
            os.kill(self.pid, number)


class Forks:
    """Starts Python processes as forks of one that has imported what they need, in a tenth of the time."""

    SERVER: Final = ROOT / "tests" / "forks" / "server.py"
    COMMAND: Final = ROOT / "tests" / "forks" / "command.py"
    #: variables that an interpreter, or a library when it is imported, reads only once
    EARLY: Final = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "LOGURU", "OPENBLAS", "NUMPY", "MALLOC")

    def __init__(self, folder: Path, changes: dict[str, str | None]) -> None:
        self._path = str(folder / "forks")
        self._environment = {**os.environ, **{name: value for name, value in changes.items() if value is not None}}
        for name in [name for name, value in changes.items() if value is None]:
            self._environment.pop(name, None)
        room = {"PIPISTRELLE_TEST_MARK": uuid.uuid4().hex}
        self._server = subprocess.Popen(
            [sys.executable, self.SERVER, self._path],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self._environment | room, start_new_session=True,
        )  # fmt: skip

    def can(self, words: Sequence[str], environment: dict[str, str]) -> bool:
        """Return whether a command runs our interpreter with the environment in which it was started."""
        ours = words[0] == sys.executable and (words[1:3] == ["-m", "pipistrelle.cli"] or words[1].endswith(".py"))
        return ours and self._early(environment) == self._early(self._environment)

    def start(
        self, words: Sequence[str], folder: Path, environment: dict[str, str], out: IO[bytes], err: IO[bytes]
    ) -> Fork:
        """Start a command in its own session, with an empty standard input."""
        parts = [str(folder), str(len(words) - 1), *words[1:], *(f"{name}={environment[name]}" for name in environment)]
        with open(os.devnull, "rb") as nothing:
            request = b"\0".join(map(os.fsencode, parts))
            return Fork(request, [stream.fileno() for stream in (nothing, out, err)], self._connect())

    def write_commands(self, folder: Path) -> None:
        """Write executable files that do the same as the environment's ``pipistrelle`` and ``pipistrelle-batsim``."""
        self._write_command(folder / "pipistrelle", Path(sys.executable).with_name("pipistrelle"))
        self._write_command(folder / "pipistrelle-batsim", self.SERVER.with_name("batsim.py"))

    def _write_command(self, path: Path, script: Path) -> None:
        words = self.words(script)
        path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        path.chmod(0o755)

    def words(self, script: Path) -> list[str]:
        """Return the words of a command that runs a script as a fork, for tests that start it themselves."""
        self._connect().close()
        return [sys.executable, "-I", "-S", str(self.COMMAND), self._path, str(script)]

    def close(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.wait()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(self._path)
            except OSError:
                assert self._server.poll() is None, "the server of forks has not started"
                time.sleep(0.02)
            else:
                return connection

    def _early(self, environment: dict[str, str]) -> dict[str, str]:
        return {name: environment[name] for name in environment if name.startswith(self.EARLY)}


@pytest.fixture(scope="session")
def make_forks() -> Iterator[Callable[..., Forks | None]]:
    """Return a function that makes a server of forks with changes of our environment; None where forks do not work."""
    with tempfile.TemporaryDirectory(prefix="pp-") as temporary, ExitStack() as stack:

        def make(**changes: str | None) -> Forks | None:
            if not hasattr(os, "pidfd_open") or not Path("/proc/self/environ").is_file():
                return None
            forks = Forks(Path(tempfile.mkdtemp(dir=temporary)), changes)
            stack.callback(forks.close)
            return forks

        yield make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fail a test that hangs."""

    def over(*_: object) -> None:
        pytest.fail(f"{item.nodeid} hangs: it has taken {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(LIMIT_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# Many hundred processes are started. If Python may not write bytecode, each would compile all its imports.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".pytest_cache" / "bytecode")


@pytest.hookimpl(optionalhook=True)  # the hook does not exist without pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of ``-n auto``: three for two cores, because tests wait for a third of their time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (cores + 1) // 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Distribute the files so that each worker begins with some of the slow ones and none of them runs last."""
    hands: list[list[pytest.Item]] = [[] for _ in range(getattr(config, "workerinput", {}).get("workercount", 1))]
    for _, tests in groupby(items, key=lambda item: item.path):
        min(hands, key=len).extend(tests)
    items[:] = chain.from_iterable(hands)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let idle workers take over tests of busy ones; otherwise one worker would run all the slow tests."""
    if config.getoption("dist") != "load":  # the user has chosen another distribution
        return None
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]  # not there without xdist

    return WorkStealingScheduling(config, log)


def load_program(path: str) -> ModuleType:
    """Return a program of the project that is in no package, such as ``docs/make_api.py``, as a module."""
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend((ROOT / path).parent)  # as when it is run as a program
        patch.setitem(sys.modules, name, module)  # dataclasses look for their module there while they are created
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session", autouse=True)
def _quiet_log() -> None:
    """Disable the log: only the command line configures it, and by default it writes to the terminal."""
    logger.remove()


@pytest.fixture(scope="session")
def small_workload() -> Callable[[], Workload]:
    """Return a function that makes the same 300 jobs for 32 units each time."""
    return lambda: generate(jobs=300, units=32, seed=5, load=0.95, name="small")


@pytest.fixture(scope="session")
def project_root() -> Path:
    """Return the project's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def traces_dir() -> Path:
    """Return the folder of the real logs, or skip: we may not redistribute them."""
    folder = Path(os.environ.get("PIPISTRELLE_TRACES", ROOT.parent / "shared" / "traces"))
    if not (folder / "SHA256SUMS").is_file():
        pytest.skip(f"the real logs are absent: no {folder} (set PIPISTRELLE_TRACES)")
    return folder


@pytest.fixture(scope="session")
def batsim4_dir() -> Path:
    """Return the folder of the recordings of a real Batsim 4, or skip: we may not redistribute them."""
    folder = Path(os.environ.get("PIPISTRELLE_BATSIM4", ROOT.parent / "shared" / "batsim4"))
    if not (folder / "nonet4.xml").is_file():
        pytest.skip(f"the recordings of Batsim 4 are absent: no {folder} (set PIPISTRELLE_BATSIM4)")
    return folder


@pytest.fixture(scope="session")
def slurm22_dir() -> Path:
    """Return the folder of the recordings of a real slurmctld 22.05, or skip: we may not redistribute them."""
    folder = Path(os.environ.get("PIPISTRELLE_SLURM22", ROOT.parent / "shared" / "slurm22"))
    if not (folder / "a" / "jobs.events").is_file():
        pytest.skip(f"the recordings of Slurm 22.05 are absent: no {folder} (set PIPISTRELLE_SLURM22)")
    return folder


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a driver of a headless Chromium shared by all tests; skip if there is none, unless CI=true."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        reason = (
            f"there is no {' and no '.join(missing)} (Debian: chromium, chromium-driver; .ci/browser installs them)"
        )
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={profile}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # root cannot use the sandbox
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(60)
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def browser(chromium: Any) -> Any:
    """Return the driver of Chromium with a view of 1280 x 1000 and light colours, whatever the previous test set."""
    set_view(chromium)
    return chromium


def set_view(driver: Any, width: int = 1280, scheme: str = "light") -> None:
    """Set a browser's width in pixels and its preference for light or dark colours."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    view = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)
