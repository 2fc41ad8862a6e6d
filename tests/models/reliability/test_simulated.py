"""Chapter 5 with the simulator, at a smaller size; a simulated loss system beside the exact one."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from pipistrelle.cli.inputs.reliability import partitions_command as command
from pipistrelle.models.reliability.jobs import ReliabilityError
from pipistrelle.models.reliability.loss import kaufman_roberts
from pipistrelle.models.workloads.classes import get, parse_classes
from pipistrelle.platforms import catalogue
from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import partition, partition_sizes
from pipistrelle.reports.placement.partitions import PRINTED, closed_change, compare, drawn_outages, simulated_loss

SMALL = """
name = "small"
machine_size = 64
duration = "1000h"
[[classes]]
size = 24
rate = 0.5
service = "1h"
[[classes]]
size = 12
rate = 0.6
service = "1h"
[[classes]]
size = 2
rate = 5
service = "40min"
"""
UNEQUAL = Platform(
    name="u",
    pools=(
        Pool(name="a", nodes=24, mttf="14000h"),
        Pool(name="b", nodes=20, mttf="9000h"),
        Pool(name="c", nodes=20, mttf="7000h"),
    ),
)


def test_where_all_nodes_are_equally_busy(printed, classes):
    """The closed form for Intrepid: -17.2, +1.3, +11.3, +22.7, +31.0 %; the thesis prints other values."""
    machine = Machine(40960, catalogue.get("intrepid").info)
    mttf = machine.nodes.mttf / 3600
    parts, _ = partition(partition_sizes(classes, 40960, 0.0, printed.most)[0], mttf, machine)

    assert [round(100 * closed_change(part, mttf), 1) for part in parts] == [-17.2, 1.3, 11.3, 22.7, 31.0]
    thesis = [round(100 * (after / before - 1), 1) for before, after, _, _ in PRINTED.values()]
    assert thesis == [-15.5, -21.2, 8.8, 6.2, 101.5]
    failed = np.array(list(PRINTED.values()))[:, 2:].sum(axis=0)
    assert failed[1] / failed[0] == pytest.approx(1.80, abs=0.005)


def test_victims_are_drawn_by_their_rates():
    """One failure per hour, one hour of repair, nodes chosen by 1 / MTTF; equal seeds give equal failures."""
    mttf = np.repeat([1.0, 3.0], 50)
    found = drawn_outages(mttf, 20_000.0, 7, 1.0, 1.0)

    assert found.down.tolist() == [3600.0 * hour for hour in range(1, 20_001)]
    assert set(found.up - found.down) == {3600.0}
    assert np.mean(found.node < 50) == pytest.approx(0.75, abs=0.01)
    assert np.array_equal(found.node, drawn_outages(mttf, 20_000.0, 7, 1.0, 1.0).node)
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ReliabilityError, match="MTTF: the mean time to failure of a node is unknown"):
            drawn_outages(np.array([1.0, wrong]), 10.0, 1, 1.0, 1.0)


@pytest.mark.slow
def test_partitions_against_random_nodes():
    """The same jobs and outages: large jobs are hit less, small ones more, each within its interval of the form."""
    found = compare(parse_classes(SMALL, "x"), UNEQUAL, seed=3, duration="1500h")
    first, *_, last = [one for one in found["partitions"] if one["partition"] is not None]

    assert found["stable"] is True
    assert found["failures"] == 1500
    assert all(one["came"][0] == one["came"][1] for one in found["partitions"])
    assert found["all"]["failed"][0] + found["idle"][0] <= 1500
    assert first["classes"] == ["24"]
    assert first["closed"] < 0 < last["closed"]
    assert first["change"] < last["change"]
    assert first["low"] <= first["closed"] <= first["high"]
    assert last["low"] <= last["closed"] <= last["high"]


def test_an_overload_is_reported():
    """Table 4.2's rates offer 1.673 times the machine: unstable, here as everywhere."""
    found = compare(get("intrepid-classes"), catalogue.get("intrepid"), duration="2h")

    assert found["load"] == pytest.approx(1.673, abs=6e-4)
    assert found["stable"] is False
    assert [one.get("printed") for one in found["partitions"]] == [*PRINTED.values(), None]


def test_only_the_run_of_the_thesis_has_its_figures():
    """Another blocking probability gives no row of table 5.2."""
    found = compare(get("intrepid-classes"), catalogue.get("intrepid"), duration="2h", blocking=0.1)

    assert not any(one.get("printed") for one in found["partitions"])


@pytest.mark.slow
def test_complete_sharing_is_within_the_simulation_s_interval():
    """640 units of 64 nodes, all classes, no queueing: exact probabilities lie within the simulated intervals."""
    thesis = get("intrepid-classes")
    units = tuple(replace(one, size=int(one.size) // 64) for one in thesis.classes)
    simulated = simulated_loss(replace(thesis, machine_size=640, classes=units), 1, duration="1500h")
    loads = [one.rate * one.mean_service / 3600 for one in units]
    exact = kaufman_roberts(640, [int(one.size) for one in units], loads)

    for place in (3, 6, 7, 8):  # 512, 4096, 8192 and 16384 nodes
        assert abs(simulated.blocking[place] - exact.blocking[place]) <= simulated.width[place]
    assert np.all(np.abs(simulated.blocking - exact.blocking) <= 2.5 * simulated.width + 1e-3)
    assert simulated.utilisation == pytest.approx(exact.utilisation, abs=0.02)


def test_the_command(tmp_path):
    """Output as tables and as JSON; a platform without node reliability is rejected."""
    (tmp_path / "c.toml").write_text(SMALL)
    (tmp_path / "p.toml").write_text('name = "p"\n[[pools]]\nname = "a"\nnodes = 64\nmttf = "900h"\n')
    arguments = [str(tmp_path / "c.toml"), "-p", str(tmp_path / "p.toml"), "--duration", "60h"]
    table = CliRunner().invoke(command, arguments, catch_exceptions=False).output
    printed = json.loads(CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False).output)

    assert "failures                60, the same in both runs" in table
    assert printed["failures"] == 60
    assert printed["partitions"][0]["closed"] == pytest.approx(0.0)
    with pytest.raises(ReliabilityError, match="the mean time to failure of a node is unknown"):
        compare(parse_classes(SMALL, "x"), homogeneous(64, "h"))
