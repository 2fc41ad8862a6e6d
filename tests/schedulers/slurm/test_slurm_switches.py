"""topology/tree: few switches, nodes of low weight first, and the time for which a job waits for its switches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, cluster, shared

from pipistrelle.protocol.events import JobDescription
from pipistrelle.schedulers.slurm.cluster.bits import mask_of
from pipistrelle.schedulers.slurm.config.machine import SwitchSettings
from pipistrelle.schedulers.slurm.config.parameters import SchedulerParameters
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.schedulers.slurm.nodes.asked import NodesAsked
from pipistrelle.schedulers.slurm.nodes.tree import Tree
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass


def with_tree(config: SlurmConfig, leaves: tuple[tuple[int, ...], ...], weights: tuple[int, ...] = ()) -> SlurmConfig:
    """Return the cluster with leaf switches, which are below one switch, and weights of its nodes."""
    names = [node.name for node in config.nodes]
    below = tuple(
        SwitchSettings(name=f"s{at}", nodes=tuple(names[one] for one in leaf)) for at, leaf in enumerate(leaves)
    )
    top = SwitchSettings(name="top", switches=tuple(one.name for one in below))
    nodes = tuple(replace(node, weight=weight) for node, weight in zip(config.nodes, weights, strict=False))
    return replace(
        config,
        switches=(*below, top),
        select=replace(config.select, topology_plugin="topology/tree"),
        nodes=nodes or config.nodes,
    )


def place(queue: Queue, now: int = 1) -> list[list[int]]:
    """Run a pass and return the numbers of the nodes of each started job."""
    started = main_pass(queue.controller, now, full=True).started
    return [[at for at in range(queue.controller.machine.count) if job.nodes >> at & 1] for job in started]


@pytest.mark.parametrize("make", [cluster, shared])
def test_nodes_of_low_weight_come_before_a_smaller_switch(make) -> None:
    """The first leaf switch has just enough nodes, but they are heavier."""
    heavy_first = with_tree(make(8), ((0, 1, 2), (3, 4, 5, 6, 7)), (9, 9, 9, 1, 1, 1, 1, 1))
    queue = Queue(heavy_first)
    queue.add(nodes=3, max_nodes=3)

    assert place(queue) == [[3, 4, 5]]


@pytest.mark.parametrize("make", [cluster, shared])
def test_heavier_nodes_are_added_if_the_light_ones_do_not_suffice(make) -> None:
    """The light nodes 0 and 1 are below the first switch, so that the third node is from there, too."""
    queue = Queue(with_tree(make(6), ((0, 1, 2), (3, 4, 5)), (1, 1, 9, 9, 9, 9)))
    queue.add(nodes=3, max_nodes=3)

    assert place(queue) == [[0, 1, 2]]


def test_all_light_nodes_of_shared_nodes_are_taken_before_heavier_ones() -> None:
    """select/cons_tres takes the light nodes 0 and 3 below two switches, and then one more below the first."""
    queue = Queue(with_tree(shared(6), ((0, 1, 2), (3, 4, 5)), (1, 9, 9, 1, 9, 9)))
    queue.add(nodes=3, max_nodes=3)

    assert place(queue) == [[0, 1, 3]]


@pytest.mark.parametrize("make", [cluster, shared])
def test_the_leaf_switch_with_just_enough_nodes_is_used(make) -> None:
    """The first leaf switch has four nodes, the second two."""
    queue = Queue(with_tree(make(6), ((0, 1, 2, 3), (4, 5))))
    queue.add(nodes=2, max_nodes=2)
    queue.add(nodes=3, max_nodes=3)

    assert place(queue) == [[4, 5], [0, 1, 2]]


def test_of_several_leaf_switches_those_with_the_fewest_idle_cpus_are_used_up_first() -> None:
    """select/linear uses many leaf switches, and takes no more nodes of the last one than it needs."""
    queue = Queue(with_tree(cluster(9), ((0, 1, 2, 3), (4, 5, 6), (7, 8))))
    queue.add(nodes=6, max_nodes=6)

    assert place(queue) == [[0, 4, 5, 6, 7, 8]]


def test_whole_nodes_that_a_job_names_bring_others_of_their_leaf_switch() -> None:
    """The job needs two more nodes than it names; a switch that has not all of its nodes is not used."""
    queue = Queue(with_tree(cluster(8), ((0, 1, 2, 3), (4, 5), (6, 7))))
    queue.add(nodes=3, max_nodes=3, required=("n02",))
    queue.add(nodes=3, max_nodes=3, required=("n05",))

    assert place(queue) == [[0, 1, 2], [3, 4, 5]]


def test_whole_nodes_of_different_size_are_counted_by_their_cpus() -> None:
    """The second leaf switch has fewer nodes, but enough CPUs."""
    config = with_tree(cluster(5), ((0, 1, 2), (3, 4)))
    nodes = tuple(replace(node, cpus=8, cores=8) if at > 2 else node for at, node in enumerate(config.nodes))
    queue = Queue(replace(config, nodes=nodes))
    queue.add(tasks=16)

    assert place(queue) == [[3, 4]]


@pytest.mark.parametrize("make", [cluster, shared])
@pytest.mark.parametrize(("wait", "starts"), [(60.0, 60), (0.0, 0), (None, 300), (9000.0, 300)])
def test_a_job_waits_for_its_switches_at_most_as_long_as_it_says(make, wait, starts) -> None:
    """Only two nodes of each leaf switch are idle; `max_switch_wait` is 300 s unless it is set."""
    queue = Queue(with_tree(make(6), ((0, 1, 2), (3, 4, 5))))
    queue.add(required=("n01",), nodes=1, max_nodes=1, exclusive=True)
    queue.add(required=("n04",), nodes=1, max_nodes=1, exclusive=True)
    assert place(queue, 0) == [[0], [3]]
    queue.add(nodes=3, max_nodes=3, switches=1, switch_wait=wait)

    assert place(queue, max(0, starts - 1)) == ([] if starts else [[1, 2, 4]])
    assert place(queue, starts) == ([[1, 2, 4]] if starts else [])


def test_max_switch_wait_limits_the_wait() -> None:
    """A job of more nodes than a leaf switch has waits in vain."""
    config = replace(shared(4), scheduler_parameters=SchedulerParameters(max_switch_wait=10.0))
    queue = Queue(with_tree(config, ((0, 1), (2, 3))))
    queue.add(nodes=4, max_nodes=4, switches=1)

    assert queue.refused == ""
    assert place(queue, 9) == []
    assert place(queue, 10) == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "switches", "wait"), [("1", 1, None), ("2@10", 2, 600.0), ("1@0:01:30", 1, 90.0), ("", 0, None)]
)
def test_switches_of_sbatch(text, switches, wait) -> None:
    """The time is in minutes, or has colons."""
    found = submission_of(JobDescription("w0!1", 1, options={"switches": text}), 0.0)

    assert (found.switches, found.switch_wait) == (switches, wait)


@given(st.data())
def test_whole_nodes_are_those_of_the_lowest_weights_that_suffice(data: st.DataObject) -> None:
    """No heavier group of nodes is used if lighter ones suffice below one switch."""
    weights = tuple(data.draw(st.lists(st.integers(1, 3), min_size=8, max_size=8)))
    idle = data.draw(st.integers(0, 255))
    count = data.draw(st.integers(1, 8))
    queue = Queue(with_tree(cluster(8), ((0, 1, 2, 3), (4, 5), (6, 7)), weights))
    machine = queue.controller.machine
    asked = NodesAsked(min_nodes=count, want_nodes=count, max_nodes=count, cpus=count, nodes=idle)
    nodes = Tree(machine, queue.controller.config.switches).pick(asked, idle, machine.cpus)
    mine = [at for at in range(8) if nodes >> at & 1]

    assert len(mine) == (count if idle.bit_count() >= count else 0)
    assert nodes & ~idle == 0
    lighter = mask_of(at for at in range(8) if mine and weights[at] < max(weights[one] for one in mine))
    assert not mine or (lighter & idle).bit_count() < count


def test_a_job_below_too_many_leaf_switches_is_not_tried_without_the_nodes_with_few_cpus() -> None:
    """As in slurmctld, the free CPU of the first leaf switch comes first, though the second has enough idle nodes."""
    queue = Queue(with_tree(shared(4), ((0,), (1, 2, 3))))
    queue.add(tasks=3, required=("n01",), nodes=1, max_nodes=1)
    assert place(queue, 0) == [[0]]
    queue.add(tasks=5, switches=1, switch_wait=60.0)

    assert place(queue, 1) == []
    assert place(queue, 60) == [[0, 1]]


def test_lighter_nodes_of_a_leaf_switch_may_bring_a_job_more_nodes_than_it_may_have() -> None:
    """slurmctld counts wrongly then, and the job does not start, although nodes 2 and 3 would do."""
    queue = Queue(with_tree(shared(4), ((0, 1, 2, 3),), (1, 9, 9, 9)))
    queue.add(tasks=3, required=("n01",), nodes=1, max_nodes=1)
    queue.add(tasks=2, required=("n02",), nodes=1, max_nodes=1)
    assert place(queue, 0) == [[0], [1]]
    queue.add(tasks=6, nodes=2, max_nodes=2)

    assert place(queue, 1) == []
