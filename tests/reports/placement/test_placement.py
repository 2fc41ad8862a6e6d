"""Where jobs of a run were: its figures against counts by hand, other lists, pictures, and the paper's arithmetic."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms import catalogue
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.placement.pictures import busiest_time, cells, picture
from pipistrelle.reports.placement.report import job_figures, months, report, whatif
from pipistrelle.reports.placement.run import PlacedRun, list_order, node_numbers, read_placed_run
from pipistrelle.reports.placement.stability import (
    LEADERSHIP_HOURS,
    MORE_STABLE,
    STABLE_SHARE,
    TABLE_II,
    TABLE_II_RATIO,
    failure_share,
    rates_of,
    table_ii,
)
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions
from pipistrelle.runs.execution.run import run as run_it
from pipistrelle.traces.outages.load import load_outage_log
from pipistrelle.traces.outages.rows import unix_time

PLATFORM = """
name = "mesh"
[[pools]]
name = "all"
nodes = 20
[topology]
kind = "mesh"
shape = [5, 2]
nodes_per_router = 2
[[groups]]
nodes = "10-19"
node_class = "new"
"""
#: id, submit, runtime, size, walltime
ROWS = ((1, 0, 3600, 10, 4000), (2, 0, 7200, 6, 8000), (3, 100, 50, 2, 60), (4, 4000, 3600, 20, 4000))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the outputs of a run of four jobs, two of whose nodes fail."""
    here = tmp_path_factory.mktemp("placed")
    (here / "mesh.toml").write_text(PLATFORM)
    lines = [f"{n} {s} -1 {r} {p} -1 -1 {p} {w} -1 1 1 1 -1 1 -1 -1 -1" for n, s, r, p, w in ROWS]
    (here / "jobs.swf").write_text("\n".join(["; MaxProcs: 20", "; UnixStartTime: 1501545600", *lines, ""]))
    (here / "outages.csv").write_text("node,down,up,cause\n3,1000,1010,DBE\n19,2000,2010,DBE\n12,2678400,2678500,DBE\n")
    spec = RunSpec(
        platform=str(here / "mesh.toml"),
        workload=(str(here / "jobs.swf"),),
        outages=str(here / "outages.csv"),
        max_attempts=1,
    )
    run_it(spec, RunOptions(out=here / "out"))
    return here / "out"


@pytest.fixture(scope="module")
def placed(folder: Path) -> PlacedRun:
    """Return that run."""
    return read_placed_run(folder)


def test_the_figures_of_jobs(placed: PlacedRun) -> None:
    """Hops as of all pairs, stable nodes, node-hours, and the failures that struck."""
    jobs = job_figures(placed)
    rows = dict(zip(jobs["job_id"], range(len(jobs["job_id"])), strict=True))
    first, second = rows["w0!1"], rows["w0!2"]

    assert [placed.nodes[first].tolist(), placed.nodes[second].tolist()] == [list(range(10)), list(range(10, 16))]
    pairs = list(combinations(range(10), 2))
    hops = [abs(a // 4 - b // 4) + abs(a // 2 % 2 - b // 2 % 2) for a, b in pairs]
    assert jobs["mean_hops"][first] == sum(hops) / len(pairs)
    assert (jobs["stable_nodes"][first], jobs["stable_nodes"][second]) == (0, 6)
    assert jobs["node_hours"][second] == 12.0
    assert (jobs["failures"][first], jobs["failures"][second]) == (1, 0)
    assert jobs["finish_time"][first] == 1000.0


def test_the_report(placed: PlacedRun, folder: Path) -> None:
    """By share of the machine, by position, by month; JSON as it stands."""
    told = report(placed, job_figures(placed), "id", False)
    sizes = {one["sizes"]: one for one in told["sizes"]}

    assert json.loads(json.dumps(told)) == told
    assert (told["run"], told["nodes"], told["topology"], told["stable_nodes"]) == (str(folder), 20, "mesh", 10)
    assert (sizes["all"]["jobs"], sizes["over 40 %"]["jobs"], sizes["20 to 40 %"]["jobs"]) == (4, 2, 1)
    assert sizes["20 to 40 %"]["stable_nodes"] == {"min": 6, "mean": 6.0, "max": 6}
    assert sizes["20 to 40 %"]["stable_node_hours"] == 12.0
    assert sizes["over 60 %"]["stable_nodes"] == {"min": 10, "mean": 10.0, "max": 10}
    assert [one["hours_per_node"] for one in told["positions"]][10:12] == [2.0 + 1.0, 2.0 + 1.0]
    assert sum(one["hours_per_node"] for one in told["positions"]) == pytest.approx(told["node_hours"])
    assert told["months"] == [
        {"month": "2017-08", "failures": 2, "of_jobs": 1, "of_leadership_jobs": 1, "leadership_share": 1.0},
    ]


def test_hours_by_position_follow_the_list(placed: PlacedRun) -> None:
    """Stable nodes first: the second job's nodes head the list, in their order."""
    told = report(placed, job_figures(placed), "id", True)

    assert list_order(placed.machine, "id", True).tolist() == [*range(10, 20), *range(10)]
    assert [one["stable_share"] for one in told["positions"]] == [1.0] * 10 + [0.0] * 10
    assert told["positions"][0]["hours_per_node"] == 3.0


def test_another_list_strikes_others(placed: PlacedRun) -> None:
    """The failed node's position in the other order is that of the node whose job is hit."""
    told = whatif(placed, "id", True, own=("id", False))
    # Node 3 is at position 13 of the other list, where job 2's node 13 is; node 19 at 9, but job 1 has ended.
    assert told["months"] == [
        {
            "month": "2017-08",
            "failures": 2,
            "of_jobs": 1,
            "of_leadership_jobs": 1,
            "leadership_share": 1.0,
            "other_of_jobs": 1,
            "other_of_leadership_jobs": 1,
            "other_leadership_share": 1.0,
        }
    ]
    assert placed.running_on(np.array([13, 9, 9, 9]), np.array([1000.0, 2000.0, 1000.0, 0.0])).tolist() == [
        *(placed.ids.index("w0!2"), -1, placed.ids.index("w0!1"), -1),
    ]


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_jobs_by_node_equal_a_search(data: st.DataObject) -> None:
    """One after the other on each node; the one that ran just before counts."""
    machine = Machine(4)
    nodes, start, end = [], [], []
    clock = [0.0] * 4
    for _ in range(data.draw(st.integers(0, 8))):
        some = sorted(data.draw(st.sets(st.integers(0, 3), min_size=1)))
        begin = max(clock[node] for node in some) + data.draw(st.integers(0, 2))
        over = begin + data.draw(st.integers(1, 3))
        for node in some:
            clock[node] = over
        nodes.append(np.array(some, dtype=np.intp))
        start.append(float(begin))
        end.append(float(over))
    failed = [(node, at) for node in range(4) for at in np.arange(0, 20, 0.5).tolist()]
    run = PlacedRun(
        folder=Path(),
        machine=machine,
        order="id",
        age_aware=False,
        epoch=None,
        timezone=None,
        ids=[str(index) for index in range(len(nodes))],
        nodes=nodes,
        start=np.array(start),
        end=np.array(end),
        failed=np.array([node for node, _ in failed], dtype=np.intp),
        failed_at=np.array([at for _, at in failed]),
    )
    wanted = [
        next((j for j in range(len(nodes)) if node in nodes[j].tolist() and start[j] < at <= end[j]), -1)
        for node, at in failed
    ]
    assert run.struck.tolist() == wanted
    assert [row["month"] for row in months(run, run.struck)] == ["day 0000 to 0029"]


def test_units_are_those_of_nodes() -> None:
    """A node with at least one unit of a job is the job's."""
    platform = Platform(name="m", pools=(Pool(name="a", nodes=4, units_per_node=6, unit="gpu"),))
    machine = Machine(platform.units, platform.info)

    assert node_numbers(machine, "5-6 23").tolist() == [0, 1, 3]
    assert node_numbers(machine, "").tolist() == []


def test_runs_that_are_none(tmp_path: Path, placed: PlacedRun) -> None:
    """A folder without outputs, a list that cannot be."""
    with pytest.raises(PipistrelleError, match=r"the folder has no out_config\.json"):
        read_placed_run(tmp_path)
    (tmp_path / "out_config.json").write_text('{"scheduler": {}, "workloads": {}, "platform": 3}')
    with pytest.raises(PipistrelleError, match="the machine cannot be read"):
        read_placed_run(tmp_path)
    with pytest.raises(PipistrelleError, match=r"alps needs three dimensions"):
        list_order(placed.machine, "alps", False)
    with pytest.raises(PipistrelleError, match="the machine's stable nodes are unknown"):
        list_order(Machine(3), "id", True)


def test_a_picture(placed: PlacedRun) -> None:
    """Equal bytes, SVG or PNG; a cell for each node, tiles apart from each other."""
    pytest.importorskip("matplotlib")
    image = picture(placed, busiest_time(placed), ".svg")

    assert image == picture(placed, busiest_time(placed), ".svg")
    assert b"3 jobs at 100 s" in image
    assert b"class: 1 new" in image
    assert picture(placed, 0.0, ".png").startswith(b"\x89PNG")


def test_how_a_machine_is_drawn() -> None:
    """x across, a router's nodes side by side, y down; a tile for each z."""
    rule = TopologyRule(kind="torus", shape=(2, 2, 2), nodes_per_router=2)
    platform = Platform(name="m", pools=(Pool(name="all", nodes=16),), topology=rule)
    machine = Machine(16, platform.info)
    table = cells(machine, np.arange(16, dtype=np.float64))

    assert np.nan_to_num(table, nan=-1).tolist() == [
        [0, 1, 8, 9, -1, 2, 3, 10, 11],
        [4, 5, 12, 13, -1, 6, 7, 14, 15],
    ]
    assert np.nan_to_num(cells(Machine(5), np.arange(5.0)), nan=-1).tolist() == [[0, 1, 2, 3], [4, -1, -1, -1]]


def test_means_of_large_jobs() -> None:
    """Jobs of up to all of Titan's nodes, anywhere: near the mean of the machine; all pairs would take minutes."""
    platform = catalogue.get("titan")
    machine = Machine(platform.units, platform.info)
    random = np.random.default_rng(1)
    sizes = random.integers(1, 18_689, 400)
    nodes = [np.sort(random.permutation(18_688)[:size]) for size in sizes.tolist()]
    means = [machine.topology.mean_hops(some) for some in nodes]

    assert means[int(np.argmax(sizes))] == pytest.approx(16.24, abs=0.05)


def test_table_ii() -> None:
    """Rates add up: the five MTBFs of a job on 4,000 nodes, as the paper prints them."""
    assert [round(hours, 3) for hours in table_ii().values()] == [11.026, 13.810, 18.477, 27.908, 57.000]
    for new, hours in table_ii().items():
        assert hours == pytest.approx(TABLE_II[new], abs=0.05)


def test_leadership_jobs_share_of_failures() -> None:
    """44.4 % at Table II's rates; nothing changes without more stable hours, nor where all fail alike."""
    assert round(100 * failure_share(LEADERSHIP_HOURS, STABLE_SHARE, MORE_STABLE, TABLE_II_RATIO), 1) == 44.4
    assert failure_share(0.55, 0.4, 1.0, 7.0) == pytest.approx(0.55)
    assert failure_share(0.55, 0.4, 4 / 3, 1.0) == pytest.approx(0.55)


def test_leadership_jobs_share_at_the_rates_of_the_lives(traces_dir: Path) -> None:
    """An old GPU fails 15 times as often; 41.5 % with the simulation's 8,500 stable GPUs, 41.7 % with 8,434."""
    log = load_outage_log(next(traces_dir.glob("Titan-GPU-lives*")))
    rates = rates_of(log, unix_time(2017, 8, 1), unix_time(2017, 12, 1))

    assert (rates.old_failures, rates.new_failures) == (325, 23)
    assert round(rates.ratio) == 15
    shares = [failure_share(0.55, stable / 18_688, 4 / 3, rates.ratio) for stable in (8_500, 8_434)]
    assert [round(100 * share, 1) for share in shares] == [41.5, 41.7]


def test_rates_of_logs_that_have_none(traces_dir: Path, folder: Path) -> None:
    """Lives of old and new are needed, and failures of both."""
    with pytest.raises(PipistrelleError, match="does not have the lives of old and new GPUs"):
        rates_of(load_outage_log(folder / "out_outages.csv"), 0.0, 1.0)
    log = load_outage_log(next(traces_dir.glob("Titan-GPU-lives*")))
    with pytest.raises(PipistrelleError, match="none of them failed then"):
        rates_of(log, unix_time(2014, 6, 1), unix_time(2014, 6, 2))


def test_a_run_without_jobs(placed: PlacedRun) -> None:
    """All figures are present and empty."""
    empty = np.zeros(0)
    nothing = replace(placed, ids=[], nodes=[], start=empty, end=empty, failed=np.zeros(0, np.intp), failed_at=empty)
    told = report(nothing, job_figures(nothing), "snake", False)

    assert (told["jobs"], told["weeks"], told["months"]) == (0, 0.0, [])
    assert busiest_time(nothing) == 0.0
