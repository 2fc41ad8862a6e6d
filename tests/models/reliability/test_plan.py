"""The plan: classes of a log, stability, effects of partitions, rejected inputs; and the command."""

import json
from math import fsum

import numpy as np
import pytest
from click.testing import CliRunner

from pipistrelle.cli.inputs.reliability import plan_command as command
from pipistrelle.models.reliability.jobs import ReliabilityError
from pipistrelle.models.reliability.pictures import svg
from pipistrelle.models.reliability.plan import PlanOptions, make_plan
from pipistrelle.models.reliability.resources import described, logged
from pipistrelle.models.workloads.classes import get
from pipistrelle.platforms import catalogue
from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.inputs.demand import load_demand
from pipistrelle.traces.catalogue import load_bundled
from pipistrelle.traces.describe import offered_load

#: table 5.1's ranges of 500 hours as pools
INTREPID = catalogue.get("intrepid")


@pytest.fixture(scope="module")
def plan():
    """The plan of Intrepid's classes and the middles of table 5.1's ranges."""
    return make_plan(described(get("intrepid-classes")), Machine(40960, INTREPID.info), PlanOptions())


def test_an_overload_is_called_unstable(plan):
    """The offered load is 1.673; no queue has a figure then, let alone a negative one."""
    assert plan["load"] == pytest.approx(1.673, abs=6e-4)
    assert plan["stable"] is False
    assert json.dumps(plan, allow_nan=False)
    for one in plan["queueing"]:
        assert one["stable"] == (one["erlang"] < one["servers"])
        assert (one["exact"] is None) == (not one["stable"])
        assert one["exact"] is None or min(one["exact"].values()) >= 0
        assert min(one["printed"].values()) >= 0


def test_partitions_and_what_they_change(plan):
    """The first has the most reliable nodes; the largest classes take the whole machine; the last serves the rest."""
    first = plan["partitions"][0]

    assert first["whole"] == ["32768", "40960"]
    assert [one["class"] for one in first["partitions"]] == ["16384", "8192", "4096", "2048", "1024"]
    assert first["partitions"][0]["mttf"] == pytest.approx(12105.44, abs=0.005)
    assert first["partitions"][-1]["serves"] == ["64", "128", "256", "512", "1024"]
    assert plan["mttf"] == pytest.approx(10255.04, abs=0.005)
    served = {one["class"]: one for one in plan["served"]["classes"]}
    assert served["16384"]["reliability_after"] > served["16384"]["reliability_before"]
    assert served["64"]["reliability_after"] < served["64"]["reliability_before"]
    assert served["40960"]["ratio"] == 1.0
    assert served["40960"]["node"]["cost_change"] == 0.0
    net = fsum(one["node"]["cost_change"] for one in served.values())
    assert plan["served"]["net_cost_by_node"] == pytest.approx(net)


def test_blocking_exactly_and_by_the_linear_form(plan):
    """The class of 8192 nodes: one server, 58 % blocked, linear form none; as when sharing 640 units."""
    row = next(one for one in plan["blocking"] if one["class"] == "8192")

    assert (row["levels"][0]["servers"], row["levels"][0]["linear"]) == (1, 0.0)
    assert row["levels"][0]["exact"] == pytest.approx(0.580, abs=5e-4)
    assert row["shared"] == pytest.approx(0.3434, abs=5e-5)


def test_classes_of_a_log():
    """Bins are powers of two or user-defined; together they request what the log requests."""
    demo = load_bundled("demo")
    by_power, by_bin = logged(demo, 256), logged(demo, 256, [16, 100])
    power = by_power.classes[5]
    mine = (demo.size > 16) & (demo.size <= 32)

    assert [one.size for one in by_power.classes] == [1 << at for at in range(9)]
    assert [one.size for one in by_bin.classes] == [16, 100, 256]
    assert by_power.load == pytest.approx(by_bin.load) == pytest.approx(offered_load(demo, 256), rel=1e-3)
    assert power.jobs == mine.sum()
    assert power.sizes.service == pytest.approx(demo.runtime[mine].mean() / 3600)
    assert power.sizes.service_95 == pytest.approx(np.quantile(demo.runtime[mine], 0.95) / 3600)


def test_a_machine_without_times_to_failure():
    """Sizes and queues are known, reliability is not; --mttf sets it for nodes without a value of their own."""
    plan = make_plan(*load_demand("demo"))
    told = make_plan(*load_demand("demo", mttf="1y"))

    assert plan["mttf"] is None
    assert "ratio" not in plan["served"]["classes"][0]
    assert told["mttf"] == pytest.approx(8766)
    assert told["served"]["net_cost_by_node"] == 0.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"blocking": (0.0, 1.5)}, "blocking: a chance of blocking is out of range"),
        ({"blocking": (-0.1,)}, "blocking: a chance of blocking is out of range"),
        ({"probabilities": (1.0,)}, "a probability is out of range"),
        ({"beta": 0.0}, "beta: a shape is out of range"),
    ],
)
def test_what_cannot_be_is_refused(change, said):
    """By name."""
    demand, machine = load_demand("demo", mttf="1y")
    with pytest.raises(ReliabilityError, match=said):
        make_plan(demand, machine, PlanOptions(**change))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["intrepid-classes", "-p", "theta"],
            "class 8192: a class is larger than the machine: expected at most 4,360",
        ),
        (["intrepid-classes", "--bins", "3,4"], "--bins: the option applies to a workload"),
        (["demo", "--bins", "16,4"], "--bins: the bins do not ascend"),
        (["demo", "--mttf", "0h"], "--mttf"),
        (["demo", "--mttf", "-5h"], "--mttf"),
        (["demo", "--blocking", "2"], "a chance of blocking is out of range"),
        (["nothing"], "there is no workload 'nothing'"),
    ],
)
def test_the_command_refuses_by_name(arguments, said):
    """What is wrong, where, and what was expected."""
    result = CliRunner().invoke(command, [*arguments])

    assert isinstance(result.exception, PipistrelleError)
    assert said in str(result.exception)


def test_the_command_prints_tables_json_and_a_picture(tmp_path):
    """All of it, for the thesis's classes."""
    arguments = ["intrepid-classes", "--mttf", "10250.67h"]
    tables = CliRunner().invoke(command, arguments, catch_exceptions=False).output
    picture = tmp_path / "plan.svg"
    printed = CliRunner().invoke(command, [*arguments, "--json", "--picture", str(picture)], catch_exceptions=False)

    assert "unstable, a queue grows without end" in tables
    assert "16384  16,384   0.549       1.207    6.013   0.663  10,856.7  98,516.992     1" in tables
    assert json.loads(printed.output)["load"] == pytest.approx(1.6735, abs=1e-4)
    assert picture.read_text().startswith("<?xml")


def test_pictures_of_equal_plans_are_equal():
    """Results match byte for byte, also when no time to failure is known."""
    demand = logged(load_bundled("demo"), 256)
    plan = make_plan(demand, Machine(256, homogeneous(256, "x").info))

    assert svg(plan) == svg(plan)
