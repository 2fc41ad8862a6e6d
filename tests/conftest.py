"""Fixtures that more than one test file needs."""

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

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
