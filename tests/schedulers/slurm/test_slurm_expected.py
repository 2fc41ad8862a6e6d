"""Expected starts of select/cons_tres: what the selector remembers stays true while jobs start and end."""

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, shared

from pipistrelle.schedulers.slurm.cluster.bits import indices_of
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.nodes.asked import Alloc
from pipistrelle.schedulers.slurm.nodes.cons_tres import ConsTres
from pipistrelle.schedulers.slurm.nodes.timeline import Timeline
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


def machine(threads: int, *, sharing: bool, mixed: bool) -> SlurmConfig:
    """Return a cluster with a partition whose jobs may share CPUs or may not.

    If it is mixed, nodes have two weights, and some have GPUs.
    """
    config = shared(NODES)
    nodes = tuple(
        replace(
            one,
            cpus=4 * threads,
            weight=1 + at % 5 // 4 if mixed else 1,
            gres={"gpu": 1} if mixed and at < 3 else {},
        )
        for at, one in enumerate(config.nodes)
    )
    part = config.partitions[0]
    if sharing:
        part = replace(part, over_subscribe="YES", max_share=2)
    return replace(config, nodes=nodes, partitions=(part,))


def one_by_one(running: Sequence[SlurmJob], usable: int) -> Iterator[tuple[int, int, SlurmJob]]:
    """Yield the points at which an expected start is tested, found job by job as slurmctld does."""
    window, end, gone, away = 30, 0, 0, 0
    last: SlurmJob | None = None
    for place, job in enumerate(running, 1):
        if not job.nodes & usable:
            continue
        end = end or job.limit_end + window - job.limit_end % window
        last = job
        gone += 1
        following = running[place].limit_end if place < len(running) else -1
        if following >= 0 and following <= end + window:
            away += 1
            if away > 200:
                last, away = None, 0
            continue
        window *= 2
        while following > end + window:
            window *= 2
        yield gone, place, job
        last, away = None, 0
    if last is not None:
        yield gone, len(running), last


@given(
    jobs=st.lists(st.tuples(st.integers(1, 2**NODES - 1), st.integers(1, 9000)), max_size=30),
    usable=st.integers(0, 2**NODES - 1),
    crowd=st.sampled_from([0, 0, 0, 200, 201, 202, 402]),
)
def test_expected_starts_are_tested_at_slurms_times(jobs: list[Any], usable: int, crowd: int) -> None:
    """The times follow from the ends of all jobs, also if many jobs end together."""
    running = []
    for serial, (nodes, end) in enumerate(sorted([*jobs, *[(1, 20)] * crowd], key=lambda one: one[1])):
        job = SlurmJob(serial, Submission(number=serial, submit=0.0))
        job.nodes, job.limit_end = nodes, end
        job.alloc = {at: (1, 0, {}) for at in indices_of(nodes)}
        running.append(job)
    timeline = Timeline(SlurmMachine(machine(1, sharing=False, mixed=False)), running)
    expected = [(place, job) for _, place, job in one_by_one(running, usable)]
    for least in (0, 1, 5, 300):
        kept = [one for one in expected if one[0] >= least]
        assert list(timeline.stops(usable, least)) == kept


def slowly(controller: Controller, asked: Any, usable: int, now: int) -> tuple[int, Alloc] | None:
    """Return the expected start with each test made on a new copy of the cluster."""
    selector = controller.selector
    assert isinstance(selector, ConsTres)
    if asked.share:  # first as if the job did not share CPUs
        alone = slowly(controller, replace(asked, share=0), usable, now)
        if alone is not None and alone[0] <= now:
            return alone
    usable &= asked.nodes
    running = controller.running_jobs()
    found = selector.without(asked, usable, [])
    if found is not None:
        return now, found
    held = [job for job in running if job.nodes & usable]
    for count, _, last in one_by_one(running, usable) if usable.bit_count() >= asked.min_nodes else ():
        found = selector.without(asked, usable, held[:count])
        if found is not None:
            return max(last.limit_end, now + 1), found
    return None


@settings(max_examples=100, deadline=None)
@given(
    threads=st.integers(1, 2),
    sharing=st.booleans(),
    mixed=st.booleans(),
    jobs=st.lists(st.tuples(REQUESTS, st.integers(0, 2**NODES - 1), st.integers(0, 3)), min_size=1, max_size=25),
    waiting=st.lists(st.tuples(REQUESTS, st.integers(0, 2**NODES - 1)), min_size=1, max_size=3),
)
def test_expected_starts_follow_from_the_running_jobs_alone(
    threads: int, *, sharing: bool, mixed: bool, jobs: list[Any], waiting: list[Any]
) -> None:
    """Jobs start and end; in between, expected starts equal those of a selector that remembers nothing."""
    queue = Queue(machine(threads, sharing=sharing, mixed=mixed))
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
                    running = controller.running_jobs()
                    for time in (now, now + 1800, now + 9000):
                        if controller.selector.starts_later(way, nodes, running, time):
                            assert slow is None or slow[0] > time
                    assert slow is None or slow[0] >= controller.selector.soonest(way, nodes, running)
