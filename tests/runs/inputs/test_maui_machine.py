"""Platforms built from Maui's resource traces."""

from pathlib import Path

import pytest

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.read import parse_platform, to_toml
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.inputs.maui_machine import maui_platform
from pipistrelle.runs.inputs.named import load_machine, load_platform
from pipistrelle.traces.logs.maui_nodes import MauiNode, read_maui_resources


def node(name: str, *, features: tuple[str, ...] = (), classes: tuple[str, ...] = ("batch",), **changes) -> MauiNode:
    """Return a node of 24 processors."""
    values = {"processors": 24, "memory": 131000, "disk": 1, "swap": 1, "system": "", "architecture": "", **changes}
    return MauiNode(name=name, manager="", state="AVAILABLE", features=features, classes=classes, **values)


def test_pools_and_classes():
    """Alike nodes are a pool, wherever they stand; a class may have the pools whose nodes list it."""
    mic = {"features": ("mic", "ib"), "classes": ("batch", "qmic")}
    platform = maui_platform([node("a"), node("b", **mic), node("c"), node("d", **mic)], "x")
    assert [(pool.name, pool.nodes, pool.unit) for pool in platform.pools] == [
        ("nodes", 2, "node"),
        ("mic-ib", 2, "node"),
    ]
    assert platform.pools[1].properties == {"processors_per_node": 24, "memory_mb": 131000, "features": "mic ib"}
    assert [(one.name, one.pools) for one in platform.classes] == [("batch", ()), ("qmic", ("mic-ib",))]
    assert parse_platform(to_toml(platform), "x") == platform


def test_processors():
    """With processors, each is a unit."""
    platform = maui_platform([node("a"), node("b", processors=12)], "x", units="processors")
    assert [(pool.units, pool.units_per_node, pool.unit) for pool in platform.pools] == [
        (24, 24, "core"),
        (12, 12, "core"),
    ]


def test_names_of_pools():
    """Pools have names of their own, whatever their features are called."""
    platform = maui_platform([node("a", features=("ä b",)), node("b", features=("b",)), node("c", system="x")], "x")
    assert [pool.name for pool in platform.pools] == ["b", "b-2", "nodes"]
    many = maui_platform([node("a", features=("f" * 99,)), node("b", features=("f" * 98,))], "x")
    assert len({pool.name for pool in many.pools}) == 2


def test_too_large():
    """A machine that is too large is refused."""
    with pytest.raises(PlatformError):
        maui_platform([node("a", processors=10**12)], "x", units="processors")


TRACE = "".join(
    f"COMPUTENODE AVAILABLE 0 {name} PBS1 0 131072 204800 24 1 1 1 LINUX HSW [{feature}] [qprod:1]"
    " [NONE] 1 [NONE] [NONE] [NONE]\n"
    for name, feature in (("r1i0n0", "NONE"), ("r1i0n1", "NONE"), ("r21u01n577", "mic"))
)


@pytest.mark.parametrize(("units", "count"), [("nodes", 3), ("processors", 72)])
def test_a_run_takes_a_resource_trace_as_it_is(tmp_path, monkeypatch, units, count):
    """The machine that `validate` shows and `workload convert` writes, in the requested units, with its names."""
    monkeypatch.chdir(tmp_path)
    Path("Resource.Trace1").write_text(TRACE, encoding="utf-8")
    machine = load_machine("Resource.Trace1", units=units)
    setup = load_setup(RunSpec(workload=("seven-jobs",), platform="Resource.Trace1"))
    counted = load_setup(RunSpec(workload=("seven-jobs",), platform="Resource.Trace1", units=units))

    assert counted.platform == machine  # the machine's units can be chosen for jobs of any kind
    assert machine == maui_platform(read_maui_resources("Resource.Trace1"), "Resource.Trace1", units=units)
    assert machine.units == count
    assert [pool.names for pool in machine.pools] == ["r1i0n[0-1]", "r21u01n577"]
    assert setup.platform == load_platform("Resource.Trace1")
    assert (setup.platform == machine) == (units == "nodes")
