"""Fixtures of the tests of studies, with a browser for all tests of pages."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

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


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a driver of a headless Chromium, the same for all tests; skip where there is none, unless CI=true."""
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
        options.add_argument("--no-sandbox")  # which root cannot have
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(60)
        yield driver
    finally:
        driver.quit()
