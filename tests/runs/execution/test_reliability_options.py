"""Failure options of the user: warnings before a run, and options without effect."""

from pathlib import Path

import numpy as np
import pytest
from loguru import logger

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.outage import OutageError
from pipistrelle.platforms.read import parse_platform
from pipistrelle.platforms.simgrid.platform_file import parse_simgrid
from pipistrelle.protocol.base.errors import InputError
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.traces.workload import Workload

MACHINE = Platform(name="m", pools=(Pool(name="a", nodes=4), Pool(name="b", nodes=2, unit="core", units_per_node=4)))
DAY = 86400.0


@pytest.fixture
def warned():
    """Return the list that warnings go to."""
    lines = []
    number = logger.add(lambda line: lines.append(line.rstrip()), level="WARNING", format="{message}")
    yield lines
    logger.remove(number)


def jobs(*rows):
    """Return a workload of jobs (submit time, size, walltime) that take half of their walltimes, 1 s without one."""
    submit, size, walltime = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Workload(
        name="w",
        source="w.json",
        ids=[str(number) for number in range(1, len(rows) + 1)],
        submit=submit,
        size=size.astype(np.int64),
        walltime=walltime,
        runtime=np.where(np.isinf(walltime), 1.0, walltime / 2),
    )


@pytest.mark.parametrize(
    ("rows", "rule", "said"),
    [
        ([(0, 12, 12 * 3600.0)], "@12h +12h all daily", []),
        ([(0, 12, 12 * 3600.0 + 1)], "@12h +12h all daily", ["job 1 can hardly finish"]),
        ([(0, 12, np.inf)], "@12h +12h all daily", ["job 1 can hardly finish"]),
        ([(0, 12, 5 * DAY)], "@12h +12h all daily 3 times", []),
        ([(0, 12, 5 * DAY)], "@6d +12h all daily", []),
        ([(0, 8, 5 * DAY), (0, 9, 5 * DAY)], "@12h +12h 0-3 daily", ["job 2 can hardly finish"]),
        ([(0, 8, 5 * DAY), (0, 9, 5 * DAY)], "@12h +12h 5 daily", ["job 2 can hardly finish"]),
        ([(0, 12, 5 * DAY)] * 4, "@12h +12h all daily", ["4 jobs (1, 2, 3 and others) can hardly finish"]),
    ],
)
def test_walltimes_that_fit_between_no_two_occurrences(warned, rows, rule, said):
    """A warning names jobs that need nodes whose maintenance recurs more often than their walltime."""
    load_reliability(RunSpec(maintenance=(rule,)), MACHINE, jobs(*rows))

    assert [line.partition(" between")[0] for line in warned] == said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(99, 12, 60.0)], []),
        ([(100, 12, 60.0)], ["job 1 can never start, because nodes are never repaired"]),
        ([(100, 8, 60.0), (199, 8, 60.0), (200, 8, 60.0)], ["job 3 can never start, because nodes are never repaired"]),
        ([(300, 13, 60.0)], []),
    ],
)
def test_jobs_for_which_too_many_nodes_are_gone(warned, tmp_path, rows, said):
    """A warning names a job that is submitted after the nodes that it needs are gone for good."""
    file = tmp_path / "o.csv"
    file.write_text("node,down,up,cause\n5,100,,scrapped\n0,10,20,fan\n1,200,,sold\n")
    load_reliability(RunSpec(outages=str(file)), MACHINE, jobs(*rows))

    assert warned == said


HOSTS = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full">
<host id="master_host" speed="1Gf"/><host id="beta" speed="1Gf"/><host id="alpha" speed="1Gf"/>
<host id="gamma" speed="1Gf"/></zone></platform>"""


@pytest.mark.parametrize(("name", "node"), [("gamma", 2), ("alpha", 0), ("1", 1)])
def test_outages_name_the_hosts_of_a_machine(tmp_path, name, node):
    """Hosts of a machine in SimGrid's XML are found by their names, and by their numbers."""
    file = tmp_path / "o.csv"
    file.write_text(f"node,down,up,cause\n{name},10,20,fan\n")
    happens = load_reliability(RunSpec(outages=str(file)), parse_simgrid(HOSTS, "c.xml"), jobs((0, 1, 60.0)))

    assert happens is not None
    assert happens.outages is not None
    assert happens.outages.node.tolist() == [node]


@pytest.mark.parametrize(("name", "node"), [("n2", 1), ("n4", 3), ("5", 5), ("2", 2)])
def test_outages_name_the_nodes_of_a_platform(tmp_path, name, node):
    """They go by the names that pools give their nodes, and by numbers where the log has numbers alone."""
    named = Platform(name="m", pools=(Pool(name="a", nodes=4, names="n[1-4]"), Pool(name="b", nodes=2)))
    file = tmp_path / "outages.csv"
    file.write_text(f"node,down,up\n{name},1,2\n", encoding="utf-8")
    happens = load_reliability(RunSpec(outages=str(file)), named, jobs((0, 1, 60.0)))

    assert happens is not None
    assert happens.outages is not None
    assert happens.outages.node.tolist() == [node]


def test_outages_of_a_node_that_a_platform_has_not(tmp_path):
    """A name that no node has is refused, with those there are."""
    file = tmp_path / "outages.csv"
    file.write_text("node,down,up\nn5,1,2\n", encoding="utf-8")
    with pytest.raises(OutageError, match=r"'n5'.*Known: n1, n2"):
        load_reliability(
            RunSpec(outages=str(file)),
            Platform(name="m", pools=(Pool(name="a", nodes=4, names="n[1-4]"),)),
            jobs((0, 1, 60.0)),
        )


def test_outages_of_a_host_that_a_machine_has_not(tmp_path):
    """A name that is none of the hosts is refused, not counted."""
    file = tmp_path / "o.csv"
    file.write_text("node,down,up,cause\ngama,10,20,fan\n")
    with pytest.raises(OutageError, match="Did you mean 'gamma'"):
        load_reliability(RunSpec(outages=str(file)), parse_simgrid(HOSTS, "c.xml"), jobs((0, 1, 60.0)))


@pytest.mark.parametrize(
    ("mtbf", "repair", "size", "said"),
    [
        ("1000h", "1h", 12, []),
        ("1000h", "2d", 12, ["a repair takes 172,800 s on average"]),
        ("5min", "1h", 12, ["0.923077 of 12 units are up on average: job 1 of 12 units"]),
        ("20min", "1h", 4, []),
    ],
)
def test_repairs_and_machines_that_a_workload_can_hardly_bear(warned, mtbf, repair, size, said):
    """A mean repair longer than the workload; a job larger than what is ever up together."""
    spec = RunSpec(failures=(f"exponential,mtbf={mtbf}",), repair=repair)
    load_reliability(spec, MACHINE, jobs((0, size, 60.0), (DAY, 1, 60.0)))

    assert [line[: len(text)] for line, text in zip(warned, said, strict=True)] == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, ["job 2 will hardly ever finish: more than 1,000 attempts are expected"]),
        ({"max_attempts": 5}, []),
        ({"requeue": "never"}, []),
        ({"checkpoint": "600", "dump": "60"}, []),
        ({"checkpoint": "300000", "dump": "60"}, ["job 2 will hardly ever finish"]),
        ({"checkpoint": "daly", "dump": "60"}, []),
        ({"resilience": "moldable", "checkpoint": "600", "dump": "60"}, []),
    ],
)
def test_jobs_that_fail_again_and_again(warned, options, said):
    """A job of 3 nodes that works for 4 days on nodes that fail once a day: e^12 attempts are expected."""
    spec = RunSpec(failures=("exponential,mtbf=1d",), repair="1h", **options)
    load_reliability(spec, MACHINE, jobs((0, 4, 2 * DAY), (0, 12, 8 * DAY), (0, 4, 2 * DAY)))

    assert [line[: len(text)] for line, text in zip(warned, said, strict=True)] == said


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"seed": 2}, "--seed has no effect: there are no failure models"),
        ({"reliability_factor": 2.0}, "--reliability-factor has no effect: there are no failure models"),
        ({"checkpoint_walltime": "extended"}, "--checkpoint-walltime has no effect: nothing fails"),
        ({"maintenance": ("@1d +1h all",), "repair": "1h"}, "--repair has no effect: nothing fails"),
        ({"maintenance": ("@1d +1h all",), "requeue": "never", "max_attempts": 2}, "--max-attempts has no effect"),
        ({"maintenance": ("@1d +1h all",), "expected_attempts": 2}, "--expected-attempts has no effect: there are no"),
        (
            {"failures": ("lanl-20",), "max_attempts": 3, "expected_attempts": 2},
            "no effect: --max-attempts limits attempts",
        ),
        ({"maintenance": ("nothing.txt",)}, "'nothing.txt', and there is no such file"),
        ({"maintenance": (".",)}, "'.', a folder"),
        ({"maintenance": ("@1d +1h all",), "checkpoint_walltime": "extended"}, "no effect: no job has dumps or spares"),
        (
            {"maintenance": ("@1d +1h all",), "restart_walltime": "rest", "resilience": "moldable"},
            "--restart-walltime has no effect: no job saves work",
        ),
        ({"failures": ("none", "lanl-20")}, "--failures none cannot be combined with a model"),
    ],
)
def test_option_without_effect_is_rejected(options, fragment):
    """No option is ignored silently."""
    with pytest.raises(InputError, match=fragment):
        load_reliability(RunSpec(**options), MACHINE, jobs((0, 1, 60.0)))


def test_the_configuration_tells_files_of_models_apart(tmp_path, monkeypatch):
    """Two models in files of one name lead to different configurations, named by an option or by the platform."""
    monkeypatch.chdir(tmp_path)
    platform = parse_platform(
        'name = "m"\n[[pools]]\nname = "a"\nnodes = 4\n[[failures]]\nmodel = "mine.toml,factor=2"\n', "m.toml"
    )
    said = []
    for mean in (1e6, 2e6):
        table = f'distribution = "exponential"\nmean = {mean}\n'
        Path("mine.toml").write_text(f'name = "mine"\nnodes = 4\n[failures]\n{table}[repair]\n{table}')
        for spec in (RunSpec(failures=("mine.toml,factor=2",)), RunSpec()):
            happens = load_reliability(spec, platform, jobs((0, 1, 1e8)))
            assert happens is not None
            said.append(happens.describe()["failures"][0])

    assert [one["model"] for one in said] == ["mine.toml,factor=2"] * 4
    assert said[0]["sha256"] == said[1]["sha256"] != said[2]["sha256"] == said[3]["sha256"]
