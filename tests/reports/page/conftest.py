"""Runs with everything that a page can show: hostile texts, failures, dumps, maintenance."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import set_view

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
from pipistrelle.platforms.read import parse_platform
from pipistrelle.reports.page.page import page_of
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.generator import generate
from pipistrelle.traces.resilience import parse_resilience
from pipistrelle.traces.workload import Workload

EVIL = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


class Talker:
    """First come, first served, with a reason that would like to be markup."""

    name = "talker"
    order = Fcfs()

    def decide(self, view: Any) -> None:
        """Start jobs in their order, as long as they fit."""
        for job in list(view.waiting):
            if not view.fits(job):
                return
            view.start(job, why=EVIL)


def hostile_workload() -> Workload:
    """Return 500 jobs for 64 units whose users, queues and ids are markup."""
    workload = generate(jobs=500, units=64, seed=3, load=0.9)
    users = [EVIL if job % 5 == 0 else f"user {job % 7}" for job in range(500)]
    labels = {"user": users, "queue": ["long" if runtime > 3600 else EVIL for runtime in workload.runtime.tolist()]}
    ids = [f"{EVIL} {name}" if name == "7" else name for name in workload.ids]
    return replace(workload, labels=labels, ids=ids, epoch=8e8, timezone="Europe/Stockholm", columns={})


@pytest.fixture(scope="session")
def failing_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the outputs of these jobs on nodes that fail and are maintained."""
    folder = tmp_path_factory.mktemp("runs") / "failing"
    workload = hostile_workload()
    span = float(workload.submit[-1])
    outages = Outages.of(
        Outage(node, span * (node + 1) / 40, span * (node + 1) / 40 + 7200.0, EVIL) for node in range(30)
    )
    line = f"@{span / 3:.0f} +86400s 0-15"
    rule = parse_maintenance(line, homogeneous(64, "m"), where="test", epoch=None, timezone=None)
    reliability = Reliability(
        outages=outages,
        maintenance=MaintenancePlan((rule,)),
        resilience=parse_resilience(checkpoint="2h", dump="60", read="30"),
    )
    run_in_process(workload, Talker(), reliability=reliability, options=RunOptions(out=folder))
    return folder


@pytest.fixture(scope="session")
def torus_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the outputs of 200 jobs on a torus of 4 x 3 x 2 routers of two nodes each, of two units each."""
    machine = """
    name = "cube"
    [[pools]]
    name = "all"
    nodes = 48
    units_per_node = 2
    unit = "core"
    [topology]
    kind = "torus"
    shape = [4, 3, 2]
    nodes_per_router = 2
    """
    folder = tmp_path_factory.mktemp("runs") / "cube"
    workload = generate(jobs=200, units=96, seed=4, load=0.9)
    run_in_process(workload, "easy", platform=parse_platform(machine, "cube.toml"), options=RunOptions(out=folder))
    return folder


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the outputs of the same jobs under fcfs and under easy."""
    folder = tmp_path_factory.mktemp("two")
    for policy in ("fcfs", "easy"):
        run_in_process(hostile_workload(), policy, options=RunOptions(out=folder / policy))
    return folder / "fcfs", folder / "easy"


@pytest.fixture(scope="session")
def show(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Return a function that opens a page of runs, made once, and waits until it has drawn itself."""
    made: dict[tuple[int, tuple[Path, ...]], Path] = {}

    def open_page(*folders: Path, scheme: str = "light", width: int = 1280, estimates_at: int = 0) -> Any:
        key = estimates_at, folders
        if key not in made:
            made[key] = tmp_path_factory.mktemp("pages") / "page.html"
            made[key].write_text(page_of(folders, estimates_at=estimates_at), encoding="utf-8")
        set_view(chromium, width, scheme)
        chromium.get(made[key].as_uri())
        chromium.execute_async_script(
            """
            const done = arguments[0], drawn = () => requestAnimationFrame(() => requestAnimationFrame(done));
            const is = () => document.documentElement.dataset.ready || document.querySelector("[role=alert]");
            const look = () => (is() ? drawn() : setTimeout(look, 10));
            look();
            """
        )
        return SimpleNamespace(
            driver=chromium, run=chromium.execute_script, file=made[key], text=lambda css: text_of(chromium, css)
        )

    return open_page


def text_of(driver: Any, css: str) -> str:
    """Return the text of the first element that a selector names."""
    found = driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? null", css)
    assert found is not None, f"there is no {css}"
    return str(found)
