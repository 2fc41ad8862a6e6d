"""The choice of nodes of select/linear and select/cons_tres, and constraints."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, cluster, shared

from pipistrelle.schedulers.slurm.backfill.backfill_pass import backfill_pass
from pipistrelle.schedulers.slurm.backfill.space import Space
from pipistrelle.schedulers.slurm.cluster.bits import indices_of, lowest, mask_of, runs_of
from pipistrelle.schedulers.slurm.cluster.features import parse_constraint
from pipistrelle.schedulers.slurm.config.machine import NodeSettings, SwitchSettings
from pipistrelle.schedulers.slurm.config.parameters import SelectSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.nodes.asked import NodesAsked
from pipistrelle.schedulers.slurm.nodes.cons_tres import fill
from pipistrelle.schedulers.slurm.nodes.runs import Able, EqualRuns, Runs, WeightedRuns, make_runs, pick_equal
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass


def nodes_of(queue: Queue, number: int) -> list[str]:
    """Return the names of the nodes that a job runs on."""
    return queue.controller.machine.names_of(queue.controller.by_number[number][0].nodes)


@given(st.sets(st.integers(0, 200)))
def test_runs_and_indices_describe_the_set(nodes: set[int]) -> None:
    """Runs cover exactly the set, without touching each other."""
    mask = mask_of(nodes)
    assert indices_of(mask) == sorted(nodes)
    runs = runs_of(mask)
    assert {at for first, length in runs for at in range(first, first + length)} == nodes
    assert all(one[0] + one[1] < other[0] for one, other in pairwise(runs))
    assert lowest(mask, min(3, len(nodes))) == mask_of(sorted(nodes)[:3])


@given(st.sets(st.integers(0, 30)), st.integers(1, 12))
def test_picked_nodes_are_open_and_as_many_as_asked(nodes: set[int], count: int) -> None:
    """The pick is a part of the open nodes, or nothing if these are too few."""
    mask = mask_of(nodes)
    picked = pick_equal(mask, count)
    assert picked & ~mask == 0
    assert picked.bit_count() == (count if len(nodes) >= count else 0)


def test_linear_takes_the_smallest_run_that_is_large_enough() -> None:
    """Of the runs 0-1, 3-5 and 7-9 a job of 3 nodes gets 3-5, a job of 2 gets 0-1."""
    mask = mask_of([0, 1, 3, 4, 5, 7, 8, 9])
    assert pick_equal(mask, 3) == mask_of([3, 4, 5])
    assert pick_equal(mask, 2) == mask_of([0, 1])
    assert pick_equal(mask, 4) == mask_of([3, 4, 5, 0])


def test_lower_weight_comes_first() -> None:
    """Nodes of lower weight are taken first even if they come later by name."""
    config = cluster()
    nodes = tuple(replace(one, weight=5 if one.name < "n03" else 1) for one in config.nodes)
    queue = Queue(replace(config, nodes=nodes))
    queue.add(nodes=2)
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 1) == ["n03", "n04"]


def test_required_and_excluded_nodes() -> None:
    """-w nodes are among those allocated, -x nodes are not. Nodes behind those named come first."""
    queue = Queue(cluster())
    queue.add(nodes=2, required=("n03",), excluded=("n01",))
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 1) == ["n03", "n04"]


def test_tree_keeps_a_job_below_one_switch() -> None:
    """With topology/tree the job gets the switch with just enough idle nodes."""
    switches = (
        SwitchSettings(name="s1", nodes=("n01", "n02", "n03")),
        SwitchSettings(name="s2", nodes=("n04", "n05")),
        SwitchSettings(name="top", switches=("s1", "s2")),
    )
    select = SelectSettings(type="select/linear", topology_plugin="topology/tree")
    queue = Queue(cluster(5, select=select, switches=switches))
    queue.add(nodes=2)
    queue.add(nodes=3)
    main_pass(queue.controller, 1, full=True)
    assert (nodes_of(queue, 1), nodes_of(queue, 2)) == (["n04", "n05"], ["n01", "n02", "n03"])


def test_cons_tres_fills_nodes_and_then_uses_the_best_fit() -> None:
    """A task fits the node with the fewest free CPUs."""
    queue = Queue(shared())
    queue.add(cpus_per_task=3)
    queue.add(cpus_per_task=2)
    queue.add(cpus_per_task=1)
    main_pass(queue.controller, 1, full=True)
    assert [nodes_of(queue, at) for at in (1, 2, 3)] == [["n01"], ["n02"], ["n01"]]


def test_tasks_fill_node_by_node_and_each_node_keeps_one() -> None:
    """6 tasks on 3 nodes of 4 CPUs are 4 + 1 + 1."""
    queue = Queue(shared())
    queue.add(nodes=3, tasks=6)
    main_pass(queue.controller, 1, full=True)
    alloc = queue.controller.by_number[1][0].alloc
    assert [cpus for cpus, _, _ in alloc.values()] == [4, 1, 1]


@pytest.mark.parametrize("memory", [{"mem_per_cpu": 100}, {"mem_per_node": 100}])
def test_each_node_gets_cpus_for_whole_tasks(memory: dict[str, int]) -> None:
    """Three nodes have the 12 CPUs, but hold only three tasks of 3 CPUs."""
    queue = Queue(shared(5))
    job = queue.add(tasks=4, cpus_per_task=3, **memory)
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 1) == ["n01", "n02", "n03", "n04"]
    assert [cpus for cpus, _, _ in job.alloc.values()] == [3, 3, 3, 3]


def test_a_job_waits_for_the_node_that_it_requires() -> None:
    """It does not start on another node if no CPU of its node is free."""
    queue = Queue(shared(3))
    queue.add(tasks=4, required=("n02",))
    queue.add(tasks=2, required=("n02",))
    assert [job.ids for job in main_pass(queue.controller, 1, full=True).started] == [["1"]]


def test_memory_limits_the_cpus_of_a_node() -> None:
    """8 GB per CPU leave two tasks per node of 16 GB."""
    queue = Queue(shared())
    queue.add(tasks=4, mem_per_cpu=8000)
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 1) == ["n01", "n02"]
    assert queue.controller.machine.free_memory[:2].tolist() == [0, 0]


def test_exclusive_job_takes_whole_nodes() -> None:
    """--exclusive needs idle nodes and takes all their CPUs."""
    queue = Queue(shared())
    queue.add(cpus_per_task=1)
    queue.add(nodes=1, exclusive=True)
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 2) == ["n02"]
    assert queue.controller.machine.free_cpus.tolist() == [3, 0, 4, 4]


def with_gpus() -> SlurmConfig:
    """Return two nodes, the second with four GPUs of one model."""
    config = shared(2)
    nodes = (config.nodes[0], replace(config.nodes[1], gres={"gpu:a100": 4}, features=("gpu", "new")))
    return replace(config, nodes=nodes)


def test_gpus_are_counted_whatever_their_model() -> None:
    """A request for gpu:2 finds GPUs of a model, and two such jobs use all four."""
    queue = Queue(with_gpus())
    for _ in range(3):
        queue.add(gres={"gpu": 2})
    main_pass(queue.controller, 1, full=True)
    assert [nodes_of(queue, at) for at in (1, 2, 3)] == [["n02"], ["n02"], []]


def test_impossible_request_is_refused() -> None:
    """A job that the empty cluster could not run is refused at submission."""
    queue = Queue(with_gpus())
    queue.add(gres={"gpu": 5})
    assert queue.refused == "requested node configuration is not available"


def test_least_loaded_nodes_first() -> None:
    """With CR_LLN a task goes to the node with the most free CPUs."""
    select = SelectSettings(type="select/cons_tres", parameters=frozenset({"CR_Core", "CR_LLN"}))
    queue = Queue(shared(select=select))
    queue.add(cpus_per_task=1)
    queue.add(cpus_per_task=1)
    main_pass(queue.controller, 1, full=True)
    assert [nodes_of(queue, at) for at in (1, 2)] == [["n01"], ["n02"]]


def test_least_loaded_nodes_are_those_of_the_lowest_weight_with_the_most_idle_cpus() -> None:
    """Idle CPUs count even if the job has no memory for them, as seen with slurmctld 22.05.8."""
    select = SelectSettings(type="select/cons_tres", parameters=frozenset({"CR_Core_Memory", "CR_LLN"}))
    config = shared(4, select=select)
    weights = (2, 2, 2, 1)
    nodes = tuple(replace(node, weight=weight) for node, weight in zip(config.nodes, weights, strict=True))
    queue = Queue(replace(config, nodes=nodes))
    queue.add(tasks=1, cpus_per_task=2, mem_per_node=2000)
    queue.add(tasks=1, mem_per_node=12000, excluded=("n04",))
    queue.add(tasks=1, cpus_per_task=2, excluded=("n04", "n01"))
    queue.add(tasks=6, mem_per_cpu=3500, excluded=("n04",))
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 1) == ["n04"]
    assert nodes_of(queue, 2) == ["n01"]
    assert nodes_of(queue, 3) == ["n02"]
    assert {at: cpus for at, (cpus, _, _) in queue.controller.by_number[4][0].alloc.items()} == {0: 1, 1: 1, 2: 4}


def test_as_many_nodes_with_few_cpus_stay_as_the_job_needs_nodes() -> None:
    """3 nodes and 6 CPUs of 1, 1, 3 and 3 idle ones: slurmctld 22.05.8 leaves out only the first node."""
    queue = Queue(shared(4))
    for node, held in (("n01", 3), ("n02", 3), ("n03", 1), ("n04", 1)):
        queue.add(tasks=1, cpus_per_task=held, required=(node,))
    queue.add(nodes=3, tasks=6)
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 5) == ["n02", "n03", "n04"]


def test_oversubscribed_partition_lets_jobs_share_cpus() -> None:
    """With OverSubscribe=FORCE:2 two jobs may hold each CPU, and free CPUs are used first."""
    config = shared(1)
    parts = tuple(replace(one, over_subscribe="FORCE", max_share=2) for one in config.partitions)
    queue = Queue(replace(config, partitions=parts))
    for _ in range(3):
        queue.add(cpus_per_task=4)
    started = main_pass(queue.controller, 1, full=True).started
    assert [job.ids[0] for job in started] == ["1", "2"]


def two_partitions(*over: tuple[str, int, int]) -> SlurmConfig:
    """Return a node with partitions p0, p1 of the given OverSubscribe, n of ``:n``, and tier."""
    config = shared(1)
    parts = tuple(
        replace(config.partitions[0], name=f"p{at}", over_subscribe=one, max_share=most, priority_tier=tier)
        for at, (one, most, tier) in enumerate(over)
    )
    return replace(config, partitions=parts)


@pytest.mark.parametrize(
    ("over", "jobs", "begun"),
    [
        # only jobs with --oversubscribe share CPUs, and not those of a job without
        ([("YES", 2, 1)], [(0, 4, True), (0, 4, True), (0, 1, True)], ["1", "2"]),
        ([("YES", 2, 1)], [(0, 1, False), (0, 1, True)], ["1"]),
        ([("YES", 2, 1)], [(0, 1, True), (0, 1, False)], ["1", "2"]),
        ([("YES", 2, 1)], [(0, 4, True), (0, 1, False)], ["1"]),
        # no CPU of a node is for jobs that do not share if another partition shares it
        ([("YES", 2, 1), ("NO", 1, 1)], [(0, 1, True), (1, 1, False)], ["1"]),
        ([("YES", 2, 1), ("NO", 1, 1)], [(1, 1, False), (0, 1, False)], ["1", "2"]),
        # the third job does not fit beside the second, so it shares the CPUs of the first; the fourth beside the second
        ([("FORCE", 2, 1)], [(0, 2, False), (0, 3, False), (0, 2, False), (0, 1, False)], ["1", "2", "3", "4"]),
        # with FORCE, jobs of both partitions hold the same CPUs
        ([("FORCE", 2, 1), ("FORCE", 2, 1)], [(0, 4, False), (1, 4, False), (1, 4, False)], ["1", "2", "3"]),
    ],
)
def test_jobs_share_cpus_where_oversubscribe_lets_them(
    over: list[tuple[str, int, int]], jobs: list[tuple[int, int, bool]], begun: list[str]
) -> None:
    """As in recordings of slurmctld with YES:n, FORCE:n and NO."""
    queue = Queue(two_partitions(*over))
    started: list[str] = []
    for now, (part, cpus, shares) in enumerate(jobs, 1):
        queue.add(tasks=1, cpus_per_task=cpus, partitions=(f"p{part}",), oversubscribe=shares, mem_per_cpu=100)
        started += [job.ids[0] for job in main_pass(queue.controller, now, full=True).started]
    assert started == begun


def test_the_rows_of_shared_cores_come_back_from_a_state() -> None:
    """After a restore, the same jobs may still share."""
    queue = Queue(two_partitions(("FORCE", 2, 1)))
    for _ in range(2):
        queue.add(tasks=1, cpus_per_task=3, mem_per_cpu=100)
    main_pass(queue.controller, 1, full=True)
    queue.add(tasks=1, cpus_per_task=2, mem_per_cpu=100)
    queue.add(tasks=1, cpus_per_task=1, mem_per_cpu=100)
    other = Controller(queue.controller.config)
    other.restore(json.loads(json.dumps(queue.controller.state())))
    found = [[job.ids for job in main_pass(one, 2, full=True).started] for one in (queue.controller, other)]
    assert found[0] == found[1]
    assert json.dumps(other.state()) == json.dumps(queue.controller.state())


def test_backfill_first_searches_as_if_a_job_did_not_share() -> None:
    """Beside a job that does not share CPUs, it expects a start at once, which then fails."""
    queue = Queue(two_partitions(("YES", 2, 1)))
    queue.add(tasks=1, cpus_per_task=1, mem_per_cpu=100)
    main_pass(queue.controller, 1, full=True)
    queue.add(tasks=1, cpus_per_task=1, oversubscribe=True, mem_per_cpu=100)
    (outcome,) = backfill_pass(queue.controller, 60).outcomes
    assert (outcome.kind, outcome.start) == ("reserve", 60)


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("a", [{0, 1}]),
        ("a&b", [{1}]),
        ("a|b", [{0, 1, 2}]),
        ("a,b", [{1}]),
        ("[a|b]", [{0, 1}, {1, 2}]),
        ("(a|c)&b", [{1}]),
        ("nowhere", [set()]),
        ("[(a&b)*1&c*1]", [{1, 3}]),
    ],
)
def test_constraints_name_nodes(text: str, ways: list[set[int]]) -> None:
    """And, or, brackets and unknown features."""
    features = {"a": 0b011, "b": 0b110, "c": 0b1000}
    assert [set(indices_of(one.allowed)) for one in parse_constraint(text, features, 0b1111)] == ways


def test_constraint_with_counts_takes_so_many_of_each() -> None:
    """[a*1&b*2] takes one node with a and two with b."""
    nodes = tuple(
        NodeSettings(name=f"n{at}", cpus=4, cores=4, real_memory=1000, features=("a" if at < 2 else "b",))
        for at in range(5)
    )
    config = cluster(1)
    parts = (replace(config.partitions[0], nodes=tuple(one.name for one in nodes)),)
    queue = Queue(replace(config, nodes=nodes, partitions=parts))
    queue.add(nodes=3, constraint="[a*1&b*2]")
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 1) == ["n0", "n2", "n3"]


@pytest.mark.parametrize("constraint", ["[x*1&y*2]", "x"])
def test_whole_nodes_of_counted_features_come_from_the_last_line_first(constraint: str) -> None:
    """slurmctld then adds nodes of the first line; without counts, it begins there."""
    lines = {"n1": ("x",), "n2": ("y",), "n3": ("x", "y")}
    nodes = tuple(
        NodeSettings(name=f"{name}{at}", cpus=4, cores=4, real_memory=1000, features=features, line=line)
        for line, (name, features) in enumerate(lines.items())
        for at in range(3)
    )
    config = cluster(1)
    parts = (replace(config.partitions[0], nodes=tuple(one.name for one in nodes)),)
    queue = Queue(replace(config, nodes=nodes, partitions=parts))
    queue.add(nodes=3, constraint=constraint)
    main_pass(queue.controller, 1, full=True)
    assert nodes_of(queue, 1) == (["n10", "n11", "n12"] if constraint == "x" else ["n10", "n30", "n31"])


@pytest.mark.parametrize("text", ["a&", "(a", "a*x", "a)", "[a*1|b*2]", "(a*1&b)*2"])
def test_malformed_constraints_raise(text: str) -> None:
    """A constraint that cannot be read raises an error."""
    with pytest.raises(ValueError, match="constraint"):
        parse_constraint(text, {"a": 1}, 1)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(1, 255)), max_size=12))
def test_space_keeps_what_was_reserved(reservations: list[tuple[int, int, int]]) -> None:
    """After each reservation its nodes are taken throughout its time, and records cover the window."""
    space = Space(0, 3600, 255, 60)
    for begin, length, nodes in reservations:
        start, end = 60 * begin, 60 * (begin + length)
        space.reserve(start, end, nodes)
        assert space.overlaps(start, end, nodes)
        assert space.open_between(start, end - 1 - start, nodes)[0] == 0
    at, last = 0, 0
    while True:
        assert space.begin[at] == last
        last = space.end[at]
        at = space.after[at]
        if not at:
            break
    assert last == 3600


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 10), st.integers(1, 255)), max_size=12),
    st.integers(1, 255),
    st.integers(1, 1800),
    st.integers(0, 3600),
)
def test_space_skips_times_as_if_each_was_tried(
    reservations: list[tuple[int, int, int]], nodes: int, limit: int, time: int
) -> None:
    """Skipping leads to the last time to try from which the next one is not before the given time."""
    space = Space(0, 3600, 255, 60)
    for begin, length, some in reservations:
        space.reserve(60 * begin, 60 * (begin + length), some)
    start = 0
    while (later := space.open_between(start, limit, nodes)[1]) and later < time:
        start = later
    assert space.skip(0, limit, nodes, time) == start


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(1, 8), st.integers(0, 4), st.integers(1, 40))
def test_a_run_is_filled_as_if_node_by_node(cpus: list[int], least: int, more: int, need: int) -> None:
    """The first nodes are taken at once; the result is that of the rule for one node after the other."""
    asked = NodesAsked(nodes=0, min_nodes=least, want_nodes=least, max_nodes=least + more, cpus=need)
    nodes = Able(np.arange(len(cpus)), np.array(cpus))
    run = EqualRuns(nodes).take_best(least, need)
    assert run is not None
    filled = fill(Runs([run]), asked, least, max(cpus))
    got: dict[int, int] = {}
    for at, usable in enumerate(cpus):
        left, missing = least - len(got), need - sum(got.values())
        if len(got) == least + more or (left <= 0 and missing <= 0):
            break
        if at == 0 and least == 1 and max(cpus) >= need:  # the best fit
            got[min(range(len(cpus)), key=lambda one: (cpus[one] < need, cpus[one]))] = need
            break
        if len(got) < least + more - 1 or usable >= missing:
            got[at] = min(usable, max(1, missing - max(left - 1, 0)))
    complete = len(got) >= least and sum(got.values()) >= need
    assert filled == (got if complete else None)


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 3)), max_size=6), st.integers(1, 16), st.integers(1, 4))
def test_a_job_that_fits_on_some_nodes_may_fit(running: list[tuple[int, int]], tasks: int, nodes: int) -> None:
    """If `may_fit` says no, the job fits on no set of the nodes."""
    queue = Queue(shared(4))
    for count, wide in running:
        queue.add(tasks=count, nodes=min(count, wide))
        main_pass(queue.controller, 1, full=True)
    controller = queue.controller
    job = queue.add(tasks=tasks, nodes=min(nodes, tasks), time_limit=60.0)
    for way in controller.requests.asked(job, controller.machine.partitions[0]):
        fits = any(controller.selector.now(way, some) is not None for some in range(1, 16))
        assert controller.selector.may_fit(way, 15) or not fits


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 8)), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 60)), min_size=1, max_size=8),
    st.sampled_from([80, 5, 1]),
)
def test_fast_runs_are_taken_in_the_same_order(
    steps: list[tuple[int, int]], requests: list[tuple[int, int]], every: int
) -> None:
    """The fast choice among runs is that of Slurm's rule, whatever is needed next."""
    at = np.cumsum([1 + gap for gap, _ in steps]).astype(np.intp)
    nodes = Able(at, np.array([cpus for _, cpus in steps], np.int64))
    weights = np.arange(80, dtype=np.int64) // every % 3
    fast = EqualRuns(nodes) if every == 80 else WeightedRuns(nodes, weights)
    slow = Runs(make_runs(nodes, weights))
    for count, cpus in requests:
        one, other = slow.take_best(count, cpus), fast.take_best(count, cpus)
        assert (one and one.nodes.pairs()) == (other and other.nodes.pairs())
        assert (one and (one.size, one.cpus)) == (other and (other.size, other.cpus))


def test_tasks_with_gres_need_not_be_spread_evenly() -> None:
    """3 tasks on 2 nodes with a GPU each take 2 CPUs and 1 CPU, as with an unmodified slurmctld."""
    config = shared(3)
    config = replace(config, nodes=tuple(replace(one, gres={"gpu": 2}) for one in config.nodes))
    queue = Queue(config)
    job = queue.add(nodes=2, tasks=3, gres={"gpu": 1})
    main_pass(queue.controller, 1, full=True)
    assert [cpus for cpus, _, _ in job.alloc.values()] == [2, 1]
