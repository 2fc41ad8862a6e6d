"""Partitions by reliability: the partition of each job, under every order, rule and placement, with failures."""

from itertools import count
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.schedulers.pairs import PAIRS

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import (
    RankedClass,
    Sized,
    declared,
    first_partition,
    partition,
    partition_sizes,
)
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.catalogue.names import ON_UNITS
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.catalogue.presets import parse_preset
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.partitions import jobs_seen as partitions
from pipistrelle.schedulers.partitions.placement import ByPartition, PartitionOptions
from pipistrelle.schedulers.partitions.policy import PartitionedPolicy
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result, simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

#: nodes 0 to 3 fail least, 4 to 7 most
MIXED = Platform(
    name="m",
    pools=(
        Pool(name="best", nodes=4, mttf="400h"),
        Pool(name="worst", nodes=4, mttf="100h"),
        Pool(name="middle", nodes=6, mttf="200h"),
    ),
)


def one(size: int, rate: float, service: float, most: float | None = None) -> RankedClass:
    """Return a class."""
    return RankedClass(size=size, rate=rate, service=service, service_95=3 * service if most is None else most)


#: by rank: 4 units of load 5, 2 of load 6, then 1 of load 2, which gets what is left; 14 takes the whole machine
CLASSES = (one(1, 2, 1), one(2, 3, 1), one(4, 1.25, 1, 9), one(14, 0.1, 1, 0.1))


NUMBERS = count()


@pytest.fixture
def placed():
    """Return a placement with the partitions of `CLASSES`: 0-3 and 8, 9-13 and 4, 5-6; unit 7 is extra."""
    machine = Machine(14, MIXED.info)
    sized, extra = partition_sizes(CLASSES, 14, 0.0)
    assert ([each.units for each in sized], extra) == ([5, 6, 2], 1)
    found, left = partition(sized, machine.nodes.mttf, machine)
    assert [str(each.units) for each in found] == ["0-3 8", "4 9-13", "5-6"]
    assert str(left) == "7"
    placement = ByPartition(LowestIds())
    placement.divide(CLASSES, found)

    def pick(size: int, units: str = "0-13", **more: Any) -> str | None:
        job = make_job(size, **more)
        chosen = placement.pick(job, NodeSet.parse(units) if units else NodeSet.EMPTY, machine)
        return None if chosen is None else str(chosen)

    return pick


def make_job(size, qos=None):
    """Return a waiting job."""
    return SchedulerJob("w0!1", next(NUMBERS), size, 60.0, 0.0, description=JobDescription("w0!1", size, 60.0, qos=qos))


def test_a_job_goes_to_its_own_partition(placed):
    """Each class has its own, however much is free above and below."""
    assert [placed(size) for size in (4, 2, 1)] == ["0-3", "4 9", "5"]


def test_then_upwards(placed):
    """When its own partition is full, a job takes the next above with room; no job is in two partitions."""
    assert placed(1, "0-4 8-13") == "4"
    assert placed(1, "0-3 8") == "0"
    assert placed(2, "0-3 5-8 13") == "0-1"


def test_never_down(placed):
    """Free units below are available to others."""
    assert placed(4, "3-7 9-13") is None
    assert placed(2, "5-7") is None


def test_a_size_between_is_of_the_next_larger_class(placed):
    """Three units are of the class of four."""
    assert placed(3) == "0-2"


def test_the_whole_machine(placed):
    """A job larger than all partitions takes from all, the most reliable first, extra units last."""
    assert placed(14) == "0-13"
    assert placed(12) == "0-6 8-12" or placed(12) == "0-4 8-13 5"
    assert placed(14, "0-12") is None


def test_a_job_can_name_its_partition(placed):
    """The QOS of Haizea's leases: 1 is the most reliable; a number beyond the last is the last."""
    assert placed(1, qos="reliability-1") == "0"
    assert placed(1, qos="reliability-2") == "4"
    assert placed(1, qos="reliability-9") == "5"
    assert placed(2, "9-13", qos="reliability-1") is None
    assert placed(1, qos="reliability-none") == placed(1, qos="reliability-0") == placed(1, qos="gold") == "5"


def test_a_class_without_a_partition_starts_at_the_lowest():
    """The last partition takes all that is left; the classes of lower rank begin there, and go up."""
    classes = (one(1, 1, 1), one(4, 1, 1), one(8, 1, 1))
    sized, extra = partition_sizes(classes, 12, 0.0)
    machine = Machine(12, Platform(name="m", pools=(Pool(name="all", nodes=12),)).info)
    found, _ = partition(sized, machine.nodes.mttf, machine)

    assert ([each.units for each in sized], extra) == ([8, 4], 0)
    assert [first_partition(found, at, each.size) for at, each in enumerate(classes)] == [1, 1, 0]


@settings(max_examples=100, deadline=None)
@given(
    classes=st.lists(
        st.tuples(st.integers(1, 40), st.floats(0, 5), st.floats(0, 5)),
        min_size=1,
        max_size=6,
        unique_by=lambda each: each[0],
    ),
    blocking=st.floats(0, 1),
)
def test_sizes_add_up(classes, blocking):
    """No unit is given twice, each partition holds a job of its class, and only the last has less than it needs."""
    known = tuple(one(size, rate, service) for size, rate, service in classes)
    sized, extra = partition_sizes(known, 40, blocking)

    assert sum(each.units for each in sized) + extra == 40
    assert all(each.units >= known[each.owner].size for each in sized)
    assert all(extra == 0 or each.units >= (1 - blocking) * known[each.owner].load - 0.5 for each in sized)


def test_nodes_are_never_split():
    """A node is in one partition with all its units; the next one has fewer then."""
    machine = Machine(12, Platform(name="m", pools=(Pool(name="all", nodes=3, units_per_node=4, unit="core"),)).info)
    found, extra = partition([Sized(0, 5), Sized(1, 3), Sized(2, 4)], np.array([1.0, 3.0, 2.0]), machine)

    assert [str(each.units) for each in found] == ["4-11", "0-3"]
    assert not extra


def test_a_class_larger_than_the_machine_is_refused():
    """The message names it."""
    with pytest.raises(PlatformError, match="class 16: a class is larger than the machine: expected at most 8 units"):
        partition_sizes([one(16, 1, 1)], 8, 0.0)
    with pytest.raises(PlatformError, match="a chance of blocking is out of range"):
        partition_sizes([one(4, 1, 1)], 8, 1.5)


class Watch(Observer):
    """Checks at each start that the job is in one partition, its class's own or one above, or in the whole machine."""

    def __init__(self, placement: ByPartition, classes: tuple[RankedClass, ...]) -> None:
        self._placement, self._classes = placement, classes
        self.starts = 0

    def started(self, now: float, job: Job) -> None:
        """Check it."""
        self.starts += 1
        parts = self._placement.parts
        at = min((each.size, at) for at, each in enumerate(self._classes) if each.size >= job.size)[1]
        place = first_partition(parts, at, job.size)
        if place is not None:
            assert any(job.alloc <= part.units for part in parts[: place + 1]), (str(job.alloc), parts)


lengths = st.integers(1, 9).map(float)
rows = st.lists(
    st.tuples(st.integers(0, 30).map(float), st.integers(1, 14), lengths, st.just(9.0) | st.just(inf)),
    min_size=1,
    max_size=25,
).map(sorted)


def run(policy: PartitionedPolicy, jobs: Any, broken: Any, watch: Watch | None = None) -> Result:
    """Simulate under ``strict``, and check that server and scheduler agree at each instant."""
    submit, size, runtime, walltime = zip(*jobs, strict=True)
    trace = Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(jobs))],
        submit=np.array(submit),
        size=np.array(size, dtype=np.int64),
        walltime=np.array(walltime),
        runtime=np.array(runtime),
    )
    outages = Outages.of([Outage(node, down, down + 2.5) for node, down in sorted(broken.items())])
    runtime_of = Runtime(policy)
    result = simulate(
        Setup.of(MIXED, trace, strict=True, reliability=Reliability(outages=outages)),
        InProcessTransport(runtime_of),
        clock=lambda: 0.0,
        observers=[] if watch is None else [watch],
        between=lambda simulation: check_invariants(simulation.engine, runtime_of.view),
    )
    if result.failure is not None:
        raise result.failure
    return result


COMBINED = [pytest.param(*pair.values, "lowest", marks=pair.marks) for pair in PAIRS]
COMBINED += [("fcfs", "easy", placement) for placement in ON_UNITS]
COMBINED += [pytest.param("fcfs", "conservative", placement, marks=pytest.mark.slow) for placement in ON_UNITS]


@pytest.mark.parametrize(("order", "backfill", "placement"), COMBINED)
def test_every_order_rule_and_placement_keeps_to_them(order, backfill, placement):
    """With failures that change the partitions: no illegal decision, no job below its partition, no starvation."""
    options = {"bins": {"bins": [{"name": "large", "smallest": 4}]}}.get(order)

    @settings(max_examples=8, deadline=None)
    @given(
        jobs=rows,
        broken=st.dictionaries(st.integers(0, 13), st.integers(0, 40).map(float), max_size=5),
        admission=st.sampled_from(["queue", "block"]),
    )
    @example([(0.0, 1, 9.0, 9.0), (1.0, 1, 9.0, 9.0), (1.0, 14, 9.0, 9.0), (1.0, 14, 9.0, 9.0)], {}, "block")
    def check(jobs, broken, admission):
        composed = compose(order=order, backfill=backfill, placement=placement, order_options=options)
        policy = PartitionedPolicy(composed, PartitionOptions(classes=CLASSES, admission=admission))
        watch = Watch(composed.placement, CLASSES) if placement == "lowest" else None
        result = run(policy, jobs, broken, watch)

        assert result.summary.unfinished == 0

    check()


def test_outages_move_nodes_to_lower_partitions():
    """The most reliable node fails again and again: in the end it is in no partition of its former class."""
    composed = compose(backfill="easy")
    policy = PartitionedPolicy(composed, PartitionOptions(classes=CLASSES))
    seen = []

    class Look(Observer):
        """Keeps the partitions at each start."""

        def started(self, now: float, job: Job) -> None:
            """Keep them."""
            seen.append(str(composed.placement.parts[0].units))

    jobs = [(1.0, 4, 9.0, 9.0), (50.0, 4, 9.0, 9.0)]
    watch = Look()
    run(policy, jobs, {0: 20.0}, watch)

    assert seen == ["0-3 8", "1-3 8-9"]


def test_admission_rejects_jobs_that_cannot_start():
    """Type I: no queue at all; type IV: all wait."""
    jobs = [(float(number), 4, 50.0, 50.0) for number in range(5)]
    policy = PartitionedPolicy(compose(backfill="easy"), PartitionOptions(classes=CLASSES, admission="block"))
    blocked = run(policy, jobs, {})
    policy = PartitionedPolicy(compose(backfill="easy"), PartitionOptions(classes=CLASSES))
    queued = run(policy, jobs, {})

    assert blocked.summary.rejected == 4
    assert queued.summary.rejected == 0


def test_classes_of_the_jobs_seen(monkeypatch):
    """Powers of two with the rates and times of ended jobs; until then the machine is one partition."""
    monkeypatch.setattr(partitions, "FIRST_CLASSES", 8)
    composed = compose(backfill="easy")
    policy = PartitionedPolicy(composed, PartitionOptions())
    jobs = [(3600.0 * number, (1, 2, 3, 4)[number % 4], 1800.0, inf) for number in range(24)]
    run(policy, jobs, {})
    sizes = {each.size: each for each in policy.classes}

    assert sorted(sizes) == [1, 2, 4]
    assert sizes[4].service == pytest.approx(0.5)
    assert sizes[4].fill == pytest.approx(3.5 / 4)
    assert sizes[4].rate == pytest.approx(0.5, rel=0.2)
    assert composed.placement.parts


def test_a_preset_has_partitions():
    """The table reliability; options of the command line change single ones of it."""
    text = 'backfill = "easy"\n[reliability]\nblocking = 0.2\nadmission = "block"\n'
    text += "[[reliability.classes]]\nsize = 4\nrate = 1.5\nservice = 1.0\nservice-95 = 3.0\n"
    preset = parse_preset(text, "x.toml")

    assert preset.reliability is not None
    assert preset.reliability.classes[0].load == 6.0
    with pytest.raises(PolicyError, match=r"x.toml: reliability.blocking"):
        parse_preset("[reliability]\nblocking = 1.2\n", "x.toml")
    assert make_policy("easy", reliability=preset.reliability).name == "easy+reliability"
    with pytest.raises(PolicyError, match="'maui' does not support partitions by reliability"):
        make_policy("maui", reliability=preset.reliability)
    with pytest.raises(PolicyError, match="--blocking: the scheduler has no partitions by reliability"):
        make_policy("easy", blocking=0.1)


def test_a_site_that_is_divided_already():
    """Nodes of classes reliability-1, -2, ... are the partitions; classes of jobs have them by rank."""
    pools = (
        Pool(name="a", nodes=2, node_class="reliability-2"),
        Pool(name="b", nodes=4, node_class="reliability-1"),
        Pool(name="c", nodes=2, node_class="reliability-3"),
    )
    machine = Machine(8, Platform(name="site", pools=pools).info)
    found = declared(machine, [1, 0])

    assert [(each.owner, str(each.units)) for each in found] == [(1, "2-5"), (0, "0-1"), (-1, "6-7")]
    assert declared(Machine(14, MIXED.info), [0]) is None
