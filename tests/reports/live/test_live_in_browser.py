"""The page of a running simulation in a real browser: updates, the end of the run, escaped text."""

import json
import re
import threading
from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import set_view
from tests.reports.page.conftest import EVIL, Talker, hostile_workload

from pipistrelle.platforms.read import parse_platform
from pipistrelle.protocol.resources.request import Request
from pipistrelle.reports.live.page_view import PageView
from pipistrelle.reports.live.watch import LiveWatch
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.server.setup.setup import Setup

CUBE = """
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
SHARED = """
name = "shared"
[[pools]]
name = "all"
nodes = 4
resources = { cores = 2, memory = "4 GiB", gpu = 1 }
"""
WAIT = """
const done = arguments[arguments.length - 1], holds = new Function(`return ${arguments[0]}`);
const look = () => (holds() ? requestAnimationFrame(() => requestAnimationFrame(done)) : setTimeout(look, 10));
look();
"""


def never(simulation) -> bool:
    """Tell that it does not stand still."""
    return False


class Stage:
    """A run with hostile texts that pauses whenever a test wants to inspect it."""

    def __init__(self, setup, port=0) -> None:
        self.view = PageView(setup, port)
        self._setup = setup
        #: is it paused now; has it paused; may it continue
        self._stops, self.stopped, self.go = never, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        watch = LiveWatch(self._setup, [self.view])

        def look(simulation):
            watch._due = [0.0]  # whatever the page wants
            watch(simulation)
            if self._stops(simulation):
                self._stops = never
                self.go.clear()
                self.stopped.set()
                self.go.wait()
            return 0.0

        try:
            with self.view:
                run(
                    RunSpec(),
                    RunOptions(setup=self._setup, connection=InProcess(Talker()), observers=[watch], look=look),
                )
        finally:
            self.stopped.set()

    def until(self, time, also=lambda simulation: True):
        """Let the run continue until this time (s) and until a condition holds, or to its end."""
        self._stops = lambda simulation: simulation.engine.now >= time and also(simulation)
        self.stopped.clear()
        self.go.set()
        if not self._thread.is_alive():
            self._thread.start()
        self.stopped.wait()

    def end(self):
        """Let the run continue to its end."""
        self._stops = never
        self.go.set()
        if self._thread.is_alive():
            self._thread.join()


@pytest.fixture
def stage():
    """Yield a run of 500 jobs on a torus of 96 cores, which has not begun."""
    one = Stage(Setup.of(parse_platform(CUBE, "cube.toml"), replace(hostile_workload(), name=EVIL)))
    yield one
    one.end()


def wait(browser, condition):
    """Wait until a condition in the page holds."""
    browser.execute_async_script(WAIT, condition)


def opened(browser, stage):
    """Open the page of a run, and wait until it shows a state."""
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(stage.view.address)
    wait(browser, "document.querySelector('#clock')?.textContent")
    return browser.execute_script


def text(browser, css):
    """Return the text of an element."""
    return browser.execute_script("return document.querySelector(arguments[0]).textContent", css)


def test_the_page_follows_the_run_to_its_end(browser, stage):
    """Figures, map, curves and tables appear and change; at the end the page says so and keeps them."""
    stage.until(200_000.0)
    do = opened(browser, stage)
    sections = do("return [...document.querySelectorAll('main > section')].map((one) => one.id)")
    assert sections == ["now", "machine", "time", "decisions", "waiting"]
    wait(browser, "document.querySelectorAll('#decisions tbody tr').length > 5")
    assert text(browser, "#status") == "The run is in progress."
    ended, label = text(browser, "#jobs"), do("return document.getElementById('map').getAttribute('aria-label')")
    assert int(ended) > 0
    assert label.startswith("48 nodes: ")
    stage.until(400_000.0)
    wait(browser, f"document.getElementById('jobs').textContent !== {ended!r}")
    seen = do(
        """
        return [...document.querySelectorAll("canvas")].map((canvas) => {
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), seen = new Set();
          for (let at = 0; at < data.length; at += 4) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
          return seen.size;
        });
        """
    )
    assert len(seen) == 4
    assert min(seen) > 2
    stage.end()
    wait(browser, "document.documentElement.dataset.phase === 'over'")

    assert text(browser, "#status") == "The run has ended (completed)."
    assert text(browser, "#jobs") == "500"
    assert do("return document.getElementById('pause').disabled")
    assert [one for one in browser.get_log("browser") if one["level"] != "INFO"] == []
    events = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
    asked = {one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"}
    assert {one for one in asked if not one.startswith("data:")} == {stage.view.address, f"{stage.view.address}events"}


def test_no_text_becomes_markup(browser, stage):
    """Scripts in names of workload, user, queue and job, and in reasons, are shown as text, and none of them runs."""
    users = stage._setup.workloads["w0"].labels["user"]
    rows = {f"w0!{name}": row for row, name in enumerate(stage._setup.workloads["w0"].ids)}

    def hostile_job_waits(simulation) -> bool:
        return any(users[rows[name]] == EVIL for name in list(simulation.engine.cluster.waiting)[:9])

    stage.until(300_000.0, hostile_job_waits)
    do = opened(browser, stage)
    wait(browser, "document.querySelectorAll('#decisions tbody tr').length > 5")

    assert EVIL[:20] in text(browser, "#waiting")
    assert EVIL in text(browser, "h1")
    assert EVIL[:20] in text(browser, "#decisions")
    assert EVIL in do("return document.title")
    assert do("return window.hacked ?? null") is None
    assert do("return document.querySelectorAll('img, main script, header script').length") == 0
    refused = browser.execute_async_script(
        "const done = arguments[0]; fetch('data:text/plain,x').then(() => done(false), () => done(true));"
    )
    assert refused
    browser.get_log("browser")  # which has the refusal


def test_shared_nodes_show_the_use_of_each_resource(browser):
    """Cores, memory and GPUs have a tile and a curve each; a node is as full as the share of its cores in use."""
    nodes = parse_platform(SHARED, "shared.toml")
    requests = [
        Request(nodes=1, most_nodes=1, tasks=1, memory_per_node=1024, gpus_per_node=job % 2) for job in range(500)
    ]
    jobs = replace(hostile_workload(), size=np.ones(500, dtype=np.int64), requests=requests)
    stage = Stage(Setup.of(nodes, jobs))
    stage.until(200_000.0)
    try:
        do = opened(browser, stage)
        tiles = do("return [...document.querySelectorAll('.tile')].map((one) => one.textContent)")
        assert any(re.fullmatch(r"Nodes with jobs[\d.]+ %\d+ of 4", one) for one in tiles)
        shares = {}
        for name, total in (("Cores", "8 cores"), ("Memory", "16 GiB memory"), ("GPUs", "4 GPUs")):
            (found,) = (one for one in tiles if one.startswith(f"{name} held by jobs"))
            assert found.endswith(f" of {total}")
            shares[name] = found.removeprefix(f"{name} held by jobs").partition(" %")[0]
        curves = do("return [...document.querySelectorAll('#time figcaption')].map((one) => one.textContent)")
        assert [one.partition(":")[0] for one in curves[:3]] == [
            "Utilisation of cores",
            "Utilisation of memory",
            "Utilisation of GPUs",
        ]
        assert f"Utilisation of memory: {shares['Memory']} %" in curves
    finally:
        stage.end()


@pytest.mark.slow
def test_the_nodes_tell_their_jobs(browser, stage):
    """Hovering over a node shows its job, the job's size and its start."""
    stage.until(300_000.0)
    do = opened(browser, stage)
    said = do(
        """
        const canvas = document.getElementById("map"), {left, top} = canvas.getBoundingClientRect(), said = [];
        for (let x = 4; x < canvas.clientWidth; x += 6) for (let y = 4; y < canvas.clientHeight; y += 6) {
          canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: left + x, clientY: top + y}));
          if (!document.querySelector(".tip").hidden) said.push(document.querySelector(".tip").textContent);
        }
        return [...new Set(said)];
        """
    )

    assert {one.split(":")[0] for one in said} == {f"Node {node}" for node in range(48)}
    assert any(" units, for " in one for one in said)


@pytest.mark.slow
def test_a_pause_stops_the_page_alone(browser, stage):
    """The view stays until the reader continues; the run does not wait."""
    stage.until(200_000.0)
    do = opened(browser, stage)
    do("document.getElementById('pause').click()")
    before = text(browser, "#clock")
    stage.until(400_000.0)
    wait(browser, "document.getElementById('pause').getAttribute('aria-pressed') === 'true'")
    assert text(browser, "#clock") == before
    do("document.getElementById('pause').click()")
    wait(browser, f"document.getElementById('clock').textContent !== {before!r}")


@pytest.mark.slow
def test_a_run_that_is_gone_stays_readable(browser, stage):
    """When updates stop, the page shows the last state; another run at its address is recognised."""
    stage.until(200_000.0)
    do = opened(browser, stage)
    clock, port = text(browser, "#clock"), stage.view._server.port
    do("window.kept = 1")
    stage.view._over = True  # so that no end is announced
    stage.view._server.publish = lambda state: None
    stage.end()
    wait(browser, "document.getElementById('status').dataset.phase === 'lost'")
    assert text(browser, "#status").startswith("No connection to the run")
    assert text(browser, "#clock") == clock
    other = Stage(stage._setup, port)
    other.until(100_000.0)
    wait(browser, "document.getElementById('status').dataset.phase === 'other'")
    assert text(browser, "#status") == "Another run is at this address now. Show it"
    assert text(browser, "#clock") == clock
    assert do("return window.kept") == 1
    other.end()


@pytest.mark.slow
def test_dark_and_narrow(browser, stage):
    """It has two sets of colours, and no part of it is wider than a telephone."""
    stage.until(300_000.0)
    do = opened(browser, stage)
    papers = set()
    for scheme in ("light", "dark"):
        set_view(browser, 390, scheme)
        papers.add(do("return getComputedStyle(document.body).backgroundColor"))
    assert len(papers) == 2
    assert do("return document.documentElement.scrollWidth") <= 390
