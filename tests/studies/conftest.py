"""Fixtures of the tests of studies."""

from collections.abc import Callable

import pytest
from loguru import logger

from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload


@pytest.fixture(scope="session", autouse=True)
def _quiet_log() -> None:
    """Send the log nowhere: the command line alone configures it, and by default it writes to the terminal."""
    logger.remove()


@pytest.fixture(scope="session")
def small_workload() -> Callable[[], Workload]:
    """Return a function that makes the same 300 jobs for 32 units each time."""
    return lambda: generate(jobs=300, units=32, seed=5, load=0.95, name="small")
