"""The page of a run on shared nodes in a browser: lanes of jobs, and the use of each resource, against the files."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest

from pipistrelle.platforms.read import parse_platform
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.workload import Workload

MACHINE = """
name = "mixed"
[[pools]]
name = "std"
nodes = 5
resources = { cores = 16, memory = "64 GiB" }
[[pools]]
name = "gpu"
nodes = 2
resources = { cores = 16, memory = "128 GiB", gpu = { count = 4, model = "a100" } }
"""
UNTIL = 60_000.0
#: {unit in a text of the page: its size in the files}
UNITS = {"": 1.0, "MiB": 1.0, "GiB": 1024.0}


def request(random):
    """Return what some job asks for."""
    kind = random.integers(0, 5)
    if kind == 0:
        return Request(nodes=1, most_nodes=1, tasks=4, gpus_per_node=1, gpu_share=500)
    if kind == 1:
        return Request(nodes=3, most_nodes=3, tasks=int(random.integers(4, 20)), memory_per_node=8192)
    if kind == 2:
        return Request(nodes=2, most_nodes=2, exclusive=True)
    return Request(nodes=1, most_nodes=1, tasks=int(random.integers(1, 12)), memory_per_core=3000)


@pytest.fixture(scope="module")
def shared_run(tmp_path_factory):
    """Return the outputs of 300 jobs on nodes with cores, memory and GPUs, of which some run at the end."""
    random = np.random.Generator(np.random.PCG64(3))
    length = np.ceil(random.lognormal(6.5, 1.2, 300).clip(30, 20_000))
    workload = Workload(
        name="some",
        source="test",
        ids=list(map(str, range(300))),
        submit=np.sort(np.floor(random.random(300) * UNTIL)),
        size=np.ones(300, dtype=np.int64),
        walltime=2 * length,
        runtime=length,
        requests=[request(random) for _ in range(300)],
    )
    folder = tmp_path_factory.mktemp("runs") / "shared"
    setup = replace(Setup.of(parse_platform(MACHINE, "mixed.toml"), workload), until=UNTIL)
    run(RunSpec(), RunOptions(setup=setup, connection=InProcess(make_policy("easy")), out=folder))
    return folder


@pytest.fixture(scope="module")
def held(shared_run):
    """Return a function of a time (s), a resource and a node: what jobs hold, as the files say."""
    with (shared_run / "out_jobs.csv").open(newline="") as file:
        ends = {f"w0!{row['job_id']}": float(row["finish_time"]) for row in csv.DictReader(file)}
    with (shared_run / "out_takes.csv").open(newline="") as file:
        rows = [
            (float(row["time"]), ends.get(row["job_id"], UNTIL), list(NodeSet.parse(row["nodes"])), row)
            for row in csv.DictReader(file)
        ]
    assert any(end == UNTIL for _, end, _, _ in rows)

    def amount(time, resource, node):
        return sum(float(row[f"node_{resource}"]) for start, end, on, row in rows if start <= time < end and node in on)

    return amount


def choose(page, value):
    """Choose the resource by which lanes are drawn, and wait until they are."""
    page.driver.execute_async_script(
        """
        const list = document.getElementById("gantt-resource"), done = arguments[1];
        list.value = arguments[0];
        list.dispatchEvent(new Event("change"));
        setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 60);
        """,
        value,
    )


def hover(page, places):
    """Return what the page says at positions of the machine, each the shares of its width and height."""
    return page.run(
        """
        const canvas = document.getElementById("gantt-0"), box = canvas.getBoundingClientRect();
        return arguments[0].map(([x, y]) => {
          const at = {clientX: box.left + 58 + x * (box.width - 70), clientY: box.top + 4 + y * 330};
          canvas.dispatchEvent(new PointerEvent("pointermove", at));
          return document.querySelector("#machine .tip").textContent;
        });
        """,
        places,
    )


@pytest.mark.parametrize("resource", ["cores", "memory", "gpu"])
def test_lanes_show_what_jobs_hold_of_each_node(show, shared_run, held, resource):
    """At any place the page names the node and what jobs hold of it; the caption says what a height is."""
    page = show(shared_run)
    choose(page, resource)
    named = {"gpu": "GPUs"}.get(resource, resource)
    assert (
        page.text("#machine figcaption")
        == f"Nodes of mixed over time; height of a job: its share of the node's {named}"
    )
    first, last = (5, 7) if resource == "gpu" else (0, 7)
    rows = [(node - first + 0.5) / (last - first) for node in range(first, last)]
    places = [(x, y) for x in (0.21, 0.5, 0.77, 0.93) for y in rows]
    for said, (_, y) in zip(hover(page, places), places, strict=True):
        node = first + int(y * (last - first))
        found = re.match(r"day 0, (\d\d):(\d\d):(\d\d), node (\d+) of \w+ \((.+) of (.+) held\): .+", said)
        assert found, said
        assert int(found[4]) == node
        hours, minutes, seconds = map(int, found.group(1, 2, 3))
        time = 3600.0 * hours + 60.0 * minutes + seconds
        number, _, unit = found[5].partition(" ")
        near = [held(time + late, resource, node) for late in (0.0, 0.5, 0.999)]  # the page cuts the time to seconds
        assert any(abs(float(number.replace(",", "")) * UNITS[unit] - one) <= 0.006 * UNITS[unit] for one in near), said


def test_a_selected_job_tells_what_it_takes(show, shared_run):
    """The details of a job have what it takes of all its nodes together."""
    page = show(shared_run)
    choose(page, "cores")
    told = page.run(
        """
        const canvas = document.getElementById("gantt-0");
        for (let time = 0; time < 40; time++) canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "n"}));
        const parts = [...document.querySelectorAll("#machine .detail div")];
        return parts.map((one) => [...one.children].map((part) => part.textContent));
        """
    )
    facts = dict(told)
    with (shared_run / "out_takes.csv").open(newline="") as file:
        takes = [row for row in csv.DictReader(file) if row["job_id"] == facts["Job"]]
    cores = sum(float(row["node_cores"]) * len(NodeSet.parse(row["nodes"])) for row in takes)
    assert facts["Takes"].startswith(f"{cores:g} core")


def test_the_use_of_each_resource_over_time(show, shared_run, held):
    """Each resource has a curve; its mean over the whole time is that of the files."""
    page = show(shared_run)
    charts = page.run("return [...document.querySelectorAll('#time figure > .chart')].map((one) => one.id)")
    assert charts[:3] == ["chart-utilisation", "chart-utilisation-memory", "chart-utilisation-gpu"]
    for chart, resource in zip(charts, ("cores", "memory", "gpu"), strict=False):
        label = page.run("return document.getElementById(arguments[0]).getAttribute('aria-label')", chart)
        mean = float(re.search(r"on average ([\d.]+)", label)[1])
        with (shared_run / "out_takes.csv").open(newline="") as file:
            first = min(float(row["time"]) for row in csv.DictReader(file))
        times = np.linspace(first, UNTIL, 4001)[:-1]
        whole = {"cores": 112, "memory": 5 * 65_536 + 2 * 131_072, "gpu": 8}[resource]
        wanted = np.mean([sum(held(time, resource, node) for node in range(7)) for time in times[::20]]) / whole
        assert mean == pytest.approx(100 * wanted, abs=2)


def test_all_parts_count_cores(show, shared_run):
    """Sizes, filters and tables are in cores; nothing is logged as an error."""
    page = show(shared_run)
    assert "Cores from" in page.text("form.bar")
    assert "7 nodes, 112 cores, 576 GiB memory, 8 GPUs" in page.text("header .lead, #top .lead")
    assert page.text("#heat th") == "Cores"
    assert page.text("#resources-0 tbody tr").startswith("Cores112 cores")
    assert [one for one in page.driver.get_log("browser") if one["level"] != "INFO"] == []
