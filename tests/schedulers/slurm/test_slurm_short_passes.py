"""Passes on large machines: the parts that cannot start a job are left out, and the starts stay the same."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, cluster, shared

from pipistrelle.schedulers.slurm.backfill.backfill_pass import backfill_pass
from pipistrelle.schedulers.slurm.backfill.memory import Memory
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.daemon import Daemon
from pipistrelle.schedulers.slurm.passes.job_order import build_queue
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass

MINUTES = st.integers(1, 60).map(lambda minutes: 60.0 * minutes)
REQUESTS = st.fixed_dictionaries(
    {"tasks": st.integers(1, 24), "time_limit": MINUTES},
    optional={
        "nodes": st.integers(1, 4),
        "cpus_per_task": st.integers(1, 3),
        "mem_per_cpu": st.sampled_from([500, 3000, 9000]),
        "exclusive": st.booleans(),
        "gres": st.just({"gpu": 1}),
        "nice": st.integers(0, 3),
    },
)
STEPS = st.lists(st.tuples(REQUESTS, st.integers(0, 6), st.integers(1, 90)), min_size=1, max_size=20)


def machine(*, gpus: bool) -> SlurmConfig:
    """Return a cluster of six shared nodes, some of them with GPUs."""
    config = shared(6)
    nodes = tuple(replace(one, gres={"gpu": 2} if gpus and at < 3 else {}) for at, one in enumerate(config.nodes))
    return replace(config, nodes=nodes)


def moments(queue: Queue, steps: list[Any], passes: int) -> Iterator[tuple[int, int]]:
    """Submit a job and end one at each step; yield (time, number of the pass) of the passes after it."""
    now = 0
    for options, ends, seconds in steps:
        queue.add(now, **options)
        for _, _, job in queue.controller.running[ends : ends + 1]:
            queue.controller.release(job, COMPLETED, now)
        for at in range(passes):
            now += seconds
            yield now, at


def starts(config: SlurmConfig, steps: list[Any], **how: bool) -> list[tuple[int, str, int]]:
    """Submit a job at each step, end one, and run passes; return (time, job, nodes) of all starts."""
    queue, found = Queue(config), []
    for now, _ in moments(queue, steps, 2):
        started = main_pass(queue.controller, now, full=True).started
        started += backfill_pass(queue.controller, now, **how).started
        found += [(now, job.ids[0], job.nodes) for job in started]
    return found


@settings(max_examples=80, deadline=None)
@given(gpus=st.booleans(), whole=st.booleans(), steps=STEPS)
def test_short_passes_start_the_same_jobs(gpus: bool, whole: bool, steps: list[Any]) -> None:
    """Starts are equal whether the end of the queue is tested, tested for expected starts only, or left out."""
    config = cluster(6) if whole else machine(gpus=gpus)
    expected = starts(config, steps)
    assert starts(config, steps, complete=False, expects=False) == expected
    assert starts(config, steps, complete=False, expects=True) == expected


def remembered(config: SlurmConfig, steps: list[Any], memory: Memory | None, **how: bool) -> list[Any]:
    """Submit and end jobs, and run backfill often in between; return all that the passes did to the jobs."""
    queue, found = Queue(config), []
    controller = queue.controller
    for now, at in moments(queue, steps, 6):
        if at == 3:
            controller.recalculate(now)
        result = backfill_pass(controller, now, memory=memory, **how)
        jobs = controller.pending.values()
        found.append(
            (
                now,
                [(one.job.serial, one.kind, one.start, one.end, one.nodes) for one in result.outcomes],
                (result.note, result.changed, result.planned),
                [(job.part, job.cpus or job.min_cpus, job.expected, job.reason) for job in jobs],
            )
        )
    return found


@settings(max_examples=80, deadline=None)
@given(whole=st.booleans(), complete=st.booleans(), resolution=st.sampled_from([60, 300]), steps=STEPS)
def test_what_passes_remember_changes_nothing(
    *, whole: bool, complete: bool, resolution: int, steps: list[Any]
) -> None:
    """Passes that use the results of earlier ones do the same as passes that find out everything again."""
    config = cluster(6) if whole else machine(gpus=False)
    parameters = replace(config.scheduler_parameters, bf_resolution=resolution, bf_window=40)
    config = replace(config, scheduler_parameters=parameters)
    how = {"complete": complete, "expects": complete}
    assert remembered(config, steps, Memory(), **how) == remembered(config, steps, None, **how)


def test_a_pass_over_an_unchanged_queue_repeats_the_last_one() -> None:
    """The second pass makes no search, and its result equals the first one's."""
    queue = waiting()
    memory = Memory()
    first = backfill_pass(queue.controller, 60, memory=memory)
    assert memory.recall_pass(build_queue(queue.controller, 60, backfill=True), complete=True, expects=True) is not None
    assert backfill_pass(queue.controller, 90, memory=memory) == first
    memory.begin(queue.controller, 601)
    assert memory.recall_pass(build_queue(queue.controller, 601, backfill=True), complete=True, expects=True) is None


def waiting() -> Queue:
    """Return a queue of one job that runs on all nodes and two that wait for them."""
    queue = Queue(shared(2))
    for _ in range(3):
        queue.add(nodes=2, tasks=8, time_limit=600.0)
    main_pass(queue.controller, 1, full=True)
    return queue


def test_a_short_pass_leaves_expected_starts_out() -> None:
    """No job can start, so no job is tested."""
    queue = waiting()
    result = backfill_pass(queue.controller, 2, complete=False, expects=False)
    assert not result.outcomes
    assert result.changed
    assert [job.expected for job in queue.controller.pending.values()] == [0, 0]


def test_expected_starts_are_renewed_when_somebody_asks() -> None:
    """The first request renews them at once, without starting a job; later passes renew them, too."""
    queue = waiting()
    daemon = Daemon(queue.controller, complete=False)
    changed = queue.controller.changed
    daemon.expect(2.0)
    assert [job.expected for job in queue.controller.pending.values()] == [601, 1200]
    assert queue.controller.changed == changed
    assert daemon.expects


def test_quiet_main_passes_end_with_the_next_change() -> None:
    """A pass over an unchanged queue is left out; a node that comes back is noticed."""
    config = cluster(2)
    queue = Queue(config)
    queue.controller.machine.down = 3
    queue.add(nodes=2)
    daemon = Daemon(queue.controller, complete=False)
    daemon.submitted(0.0)
    times, started = [], []
    while len(times) < 20 and not started:
        now = daemon.next_time()
        if len(times) == 15:
            queue.controller.machine.down = 0
            daemon.touch(now)
            daemon.request(now)
        started = daemon.advance(now).started
        times.append(now)
    assert len(times) > 15
    assert [job.ids[0] for job in started] == ["1"]
