"""Expected starts of select/cons_tres: what the selector remembers stays true while jobs start and end."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, shared

from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.nodes.asked import Alloc
from pipistrelle.schedulers.slurm.nodes.cons_tres import ConsTres, stops, timeline
from pipistrelle.schedulers.slurm.passes.controller import Controller

NODES = 8
REQUESTS = st.fixed_dictionaries(
    {"tasks": st.integers(1, 30), "time_limit": st.integers(1, 200).map(lambda minutes: 60.0 * minutes)},
    optional={
        "nodes": st.integers(1, 4),
        "cpus_per_task": st.integers(1, 4),
        "tasks_per_node": st.integers(1, 4),
        "mem_per_cpu": st.sampled_from([500, 3000, 5000, 9000]),
        "mem_per_node": st.sampled_from([1000, 9000]),
        "exclusive": st.booleans(),
        "oversubscribe": st.booleans(),
        "contiguous": st.booleans(),
        "required": st.sampled_from([("n02",), ("n03", "n07")]),
        "excluded": st.just(("n04", "n05")),
        "gres": st.just({"gpu": 1}),
    },
)


def machine(threads: int, *, sharing: bool) -> SlurmConfig:
    """Return a cluster with two weights, some GPUs, and a partition whose jobs may share CPUs or may not."""
    config = shared(NODES)
    nodes = tuple(
        replace(one, cpus=4 * threads, weight=1 + at % 5 // 4, gres={"gpu": 1} if at < 3 else {})
        for at, one in enumerate(config.nodes)
    )
    part = config.partitions[0]
    if sharing:
        part = replace(part, over_subscribe="YES", max_share=2)
    return replace(config, nodes=nodes, partitions=(part,))


def slowly(controller: Controller, asked: Any, usable: int, now: int) -> tuple[int, Alloc] | None:
    """Return the expected start with each test made on a new copy of the cluster."""
    selector = controller.selector
    assert isinstance(selector, ConsTres)
    usable &= asked.nodes
    running = controller.running_jobs()
    found = selector.without(asked, usable, [])
    if found is not None:
        return now, found
    held = [job for job in running if job.nodes & usable]
    for count, _, last, _ in stops(timeline(running), usable) if usable.bit_count() >= asked.min_nodes else ():
        found = selector.without(asked, usable, held[:count])
        if found is not None:
            return max(last.limit_end, now + 1), found
    return None


@settings(max_examples=60, deadline=None)
@given(
    threads=st.integers(1, 2),
    sharing=st.booleans(),
    jobs=st.lists(st.tuples(REQUESTS, st.integers(0, 2**NODES - 1), st.integers(0, 3)), min_size=1, max_size=25),
    waiting=st.lists(st.tuples(REQUESTS, st.integers(0, 2**NODES - 1)), min_size=1, max_size=3),
)
def test_expected_starts_follow_from_the_running_jobs_alone(
    threads: int, *, sharing: bool, jobs: list[Any], waiting: list[Any]
) -> None:
    """Jobs start and end; in between, expected starts equal those of a selector that remembers nothing."""
    queue = Queue(machine(threads, sharing=sharing))
    controller = queue.controller
    part = controller.machine.partitions[0]
    tests = [(controller.requests.asked(job, part), mask) for job, mask in ((queue.add(**o), m) for o, m in waiting)]
    for now, (options, mask, ends) in enumerate(jobs):
        job = queue.add(now, **options)
        if job.serial in controller.pending:
            alloc = controller.selector.now(controller.requests.asked(job, part)[0], mask)
            if alloc is not None:
                controller.start(job, alloc, now)
        for _, _, one in controller.running[ends : ends + 1]:
            controller.release(one, COMPLETED, now)
        for ways, usable in tests:
            for way in ways:
                for nodes in (usable, controller.machine.all):
                    found = controller.selector.expected(way, nodes, controller.running_jobs(), now)
                    slow = slowly(controller, way, nodes, now)
                    assert (found and (found[0], found[1].alloc)) == slow
