"""SRCFG HOSTLIST: numbers, names, ranges and regular expressions against the machine's table of nodes."""

import pytest

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.simgrid.platform_file import parse_simgrid
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.batsim.messages import BatsimBeginsData
from pipistrelle.protocol.events import SimulationBegins
from pipistrelle.protocol.messages import Notice
from pipistrelle.runs.inputs.maui_machine import maui_platform
from pipistrelle.runs.inputs.named import load_workload
from pipistrelle.schedulers.maui.config.hosts import units_of_hosts
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.logs.maui_nodes import MauiNode


def machine_of(platform: Platform) -> Machine:
    """Return a scheduler's view of it."""
    return Machine(platform.units, platform.info)


MACHINE = machine_of(
    Platform(
        name="m",
        pools=(
            Pool(name="login", nodes=1, names="login"),
            Pool(name="fat", nodes=12, units_per_node=2, unit="core", names="n[01-12]"),
        ),
    )
)


@pytest.mark.parametrize(
    ("hosts", "units"),
    [
        ("login", "0"),
        ("n01,n12", "1-2 23-24"),
        ("n[03-05]", "5-10"),
        ("n0[1-3]$", "1-6"),
        ("N0[1-3]", "1-6"),
        ("0$", "19-20"),
        ("^n1[[:digit:]]", "19-24"),
        ("n0[12],login", "0-4"),
        ("5", "5"),
        ("0-3,24", "0-3 24"),
        (".", "0-24"),
    ],
)
def test_hosts_are_units(hosts: str, units: str) -> None:
    """All units of a node, by name, range or part of a name; numbers are units."""
    assert str(units_of_hosts(hosts.split(","), MACHINE, "here")) == units


@pytest.mark.parametrize(
    ("hosts", "part"),
    [
        ("n13", "here: no node has this name: found 'n13'. Did you mean"),
        ("n[10-13]", "here: there is no node 'n13'"),
        ("^x", "no node has this name"),
        ("25", "here: a host is beyond the machine: expected units 0 to 24, found 25"),
        ("3-99", "found 3-99"),
    ],
)
def test_missing_host_is_an_error(hosts: str, part: str) -> None:
    """Never the whole machine, and never only a part of the request."""
    with pytest.raises(PlatformError) as caught:
        units_of_hosts(["login", hosts], MACHINE, "here")
    assert part in str(caught.value)


def test_a_machine_without_names_says_so() -> None:
    """With what helps: numbers, or names in the platform's file."""
    with pytest.raises(PlatformError, match="the machine's nodes have no names: expected units by number, 0 to 3"):
        units_of_hosts(["node1"], Machine(4), "here")


def test_names_that_are_numbers_go_before_units() -> None:
    """If nodes have numeric names of their own, a number is a node; else it is a unit."""
    named = machine_of(
        Platform(name="m", pools=(Pool(name="p", nodes=3, units_per_node=2, unit="core", names="[1-3]"),))
    )

    assert str(units_of_hosts(["1"], named, "here")) == "0-1"
    assert str(units_of_hosts(["0", "5"], named, "here")) == "0 5"


def test_hosts_of_simgrid_and_of_a_resource_trace() -> None:
    """Their nodes have the same names."""
    cluster = '<cluster id="c" prefix="h" suffix=".lan" radical="0-11" speed="1Gf"/>'
    xml = f'<platform version="4.1"><zone id="z" routing="Full">{cluster}</zone></platform>'
    hosts = machine_of(parse_simgrid(xml, "p.xml").to_platform())
    nodes = [
        MauiNode(name, "", "AVAILABLE", 2, 1, 1, 1, "", "", features, ())
        for name, features in (("a7", ("x",)), ("b", ()), ("a8", ("x",)))
    ]
    traced = machine_of(maui_platform(nodes, "t", units="processors"))

    assert hosts.nodes.names[:4] == ("h0.lan", "h1.lan", "h10.lan", "h11.lan")
    assert str(units_of_hosts(["h1[01].lan", "h9.lan"], hosts, "here")) == "2-3 11"
    assert str(units_of_hosts(["a8", "b"], traced, "here")) == "2-5"


def test_a_run_keeps_the_named_units_and_refuses_an_unknown_name() -> None:
    """A reservation for no user on named nodes leaves the others; an unknown one ends the run, with file and line."""
    platform = Platform(name="m", pools=(Pool(name="p", nodes=8, names="n[1-8]"),))
    setup = Setup.of(platform, load_workload("seven-jobs"))

    def failure(text: str) -> str:
        policy = MauiPolicy(parse_maui_config(text)[0])
        result = simulate(setup, InProcessTransport(Runtime(policy)), clock=lambda: 0.0)
        return str(result.failure)

    assert failure("SRCFG[keep] PERIOD=INFINITY HOSTLIST=n[5-8]") == "None"
    assert "maui.cfg:2, SRCFG[keep] HOSTLIST: no node has this name" in failure("\nSRCFG[keep] HOSTLIST=node5")


@pytest.mark.parametrize(("names", "known"), [(("b", "a1"), ("a1", "b")), (("b", "b"), None), (("b", "no name"), None)])
def test_batsim_hosts_are_nodes(names: tuple[str, str], known: tuple[str, str] | None) -> None:
    """In the order of their numbers, unless nodes cannot have such names."""
    hosts = [{"id": 1 - place, "name": name} for place, name in enumerate(names)]
    begins = SimulationBegins(0.0, BatsimBeginsData(nb_resources=2, nb_compute_resources=2, compute_resources=hosts))
    runtime = BatsimRuntime(MauiPolicy())
    runtime.answer(Notice(0, 0.0, [begins]))
    assert runtime.view is not None
    machine = runtime.view.machine

    assert machine.named == (known is not None)
    assert known is None or machine.nodes.names == known
