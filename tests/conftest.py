"""What holds for all tests: how long one may take, how processes start and end; fixtures that many files need."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
#: a test that takes longer hangs, in seconds; the only time limit of the tests' own: none of them looks at a clock
LIMIT_S = 900

settings.register_profile("pipistrelle", deadline=None)
settings.load_profile("pipistrelle")

# A suite started in the background, or under nohup, is told to ignore interrupts, and its children would inherit that.
# A handler of ours is none of theirs: they start with the usual dispositions.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
signal.pthread_sigmask(signal.SIG_SETMASK, ())

#: marks the processes that tests start, however indirectly
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
    """Let a process wait for the end of this one, however it ends, and then end all that it started and that lives."""
    words = [sys.executable, "-c", _KEEPER, f"{MARK}={os.environ[MARK]}"]
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    keeper = subprocess.Popen(words, stdin=subprocess.PIPE, env=unmarked, start_new_session=True)
    yield
    assert keeper.stdin is not None
    keeper.stdin.close()
    keeper.wait()


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


# Many hundred processes are started: where Python is told to keep no bytecode, each would compile all that it imports.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".pytest_cache" / "bytecode")


@pytest.hookimpl(optionalhook=True)  # there is no such hook without pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers ``-n auto`` stands for: three for two cores, as a third of the time tests only wait."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (cores + 1) // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let idle workers take over tests of busy ones: the slow ones come first, and would all be one worker's."""
    if config.getoption("dist") != "load":  # somebody has asked for another way
        return None
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]  # not there without xdist

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session")
def project_root() -> Path:
    """Return the project's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def traces_dir() -> Path:
    """Return the folder of the real logs, or skip: they are not ours to redistribute."""
    folder = Path(os.environ.get("PIPISTRELLE_TRACES", ROOT.parent / "shared" / "traces"))
    if not (folder / "SHA256SUMS").is_file():
        pytest.skip(f"the real logs are absent: no {folder} (set PIPISTRELLE_TRACES)")
    return folder


@pytest.fixture(scope="session")
def batsim4_dir() -> Path:
    """Return the folder of the recordings of a real Batsim 4, or skip: they are not ours to redistribute."""
    folder = Path(os.environ.get("PIPISTRELLE_BATSIM4", ROOT.parent / "shared" / "batsim4"))
    if not (folder / "nonet4.xml").is_file():
        pytest.skip(f"the recordings of Batsim 4 are absent: no {folder} (set PIPISTRELLE_BATSIM4)")
    return folder
