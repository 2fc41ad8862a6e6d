"""Passes on large machines: the parts that cannot start a job are left out, and the starts stay the same."""

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, cluster, shared

from pipistrelle.schedulers.slurm.backfill.backfill_pass import backfill_pass
from pipistrelle.schedulers.slurm.backfill.memory import Memory
from pipistrelle.schedulers.slurm.cluster.jobs import CANCELLED, COMPLETED, SlurmJob
from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings
from pipistrelle.schedulers.slurm.config.parameters import PreemptSettings, PrioritySettings
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
        "qos": st.sampled_from(["low", "high"]),
        "partitions": st.sampled_from([("batch",), ("urgent",)]),
    },
)
#: clusters of whole nodes, of shared nodes without and with GPUs, and with preemption by partition or QOS
KINDS = st.sampled_from(["whole", "shared", "gpus", "apart", "partition", "qos"])
STEPS = st.lists(st.tuples(REQUESTS, st.integers(0, 6), st.integers(1, 90)), min_size=1, max_size=20)


def machine(*, gpus: bool) -> SlurmConfig:
    """Return a cluster of six shared nodes, some of them with GPUs."""
    config = shared(6)
    nodes = tuple(replace(one, gres={"gpu": 2} if gpus and at < 3 else {}) for at, one in enumerate(config.nodes))
    return replace(config, nodes=nodes)


def settings_of(kind: str) -> SlurmConfig:
    """Return a cluster of one of `KINDS`, with a second partition and two QOS.

    Jobs of the second partition may preempt those of the first, but if the kind is "apart", on other nodes.
    """
    config = cluster(6) if kind == "whole" else machine(gpus=kind in ("gpus", "apart"))
    batch = config.partitions[0]
    first, second = (batch.nodes[:4], batch.nodes[4:]) if kind == "apart" else (batch.nodes, batch.nodes[2:])
    urgent = replace(batch, name="urgent", nodes=second, default=False, priority_tier=2)
    types = {"partition": "preempt/partition_prio", "apart": "preempt/partition_prio", "qos": "preempt/qos"}
    return replace(
        config,
        partitions=(replace(batch, nodes=first), urgent),
        preempt=PreemptSettings(type=types.get(kind, "preempt/none"), mode=("CANCEL",), exempt_time=120.0),
        accounting_storage=True,
        qos=(QosSettings(name="low"), QosSettings(name="high", preempt=("low",))),
    )


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
@given(kind=KINDS, steps=STEPS)
def test_short_passes_start_the_same_jobs(kind: str, steps: list[Any]) -> None:
    """Starts are equal whether the end of the queue is tested, tested for expected starts only, or left out."""
    config = settings_of(kind)
    expected = starts(config, steps)
    assert starts(config, steps, complete=False, expects=False) == expected
    assert starts(config, steps, complete=False, expects=True) == expected


def many_steps(seed: int) -> list[Any]:
    """Return steps with random jobs, whose queue is longer than with most of `STEPS`."""
    draw = np.random.default_rng(seed)
    options = {
        "nodes": lambda: int(draw.integers(1, 5)),
        "cpus_per_task": lambda: int(draw.integers(1, 4)),
        "mem_per_cpu": lambda: (500, 3000, 9000)[draw.integers(3)],
        "exclusive": lambda: True,
        "gres": lambda: {"gpu": 1},
        "qos": lambda: ("low", "high")[draw.integers(2)],
        "partitions": lambda: (("batch", "urgent")[draw.integers(2)],),
    }
    steps = []
    for _ in range(20):
        job = {"tasks": int(draw.integers(1, 25)), "time_limit": 60.0 * draw.integers(1, 61)}
        job |= {name: value() for name, value in options.items() if draw.random() < 0.3}
        steps.append((job, int(draw.integers(7)), int(draw.integers(1, 91))))
    return steps


class Forgetful(Memory):
    """A memory that never recalls anything."""

    def recall(self, *asked: Any) -> Any:
        """Return None."""
        return None

    def recall_pass(self, *_: Any, **how: bool) -> None:
        """Return None."""


def remembered(config: SlurmConfig, steps: list[Any], memory: Memory, **how: bool) -> list[Any]:
    """Submit and end jobs, and run backfill often in between; return all that the passes did to the jobs."""
    queue, found = Queue(config), []
    controller = queue.controller
    if isinstance(memory, Forgetful):  # and try every time at which nodes open
        setattr(controller.selector, "starts_later", lambda *_: False)  # noqa: B010
        setattr(controller.selector, "soonest", lambda *_: -inf)  # noqa: B010

    def cancel(victim: SlurmJob, _: SlurmJob) -> None:
        controller.release(victim, CANCELLED, now)

    for now, at in moments(queue, steps, 6):
        if at == 3:
            controller.recalculate(now)
        result = backfill_pass(controller, now, preempt=cancel, memory=memory, **how)
        jobs = controller.pending.values()
        found.append(
            (
                now,
                [(one.job.serial, one.kind, one.start, one.end, one.nodes) for one in result.outcomes],
                (
                    result.note,
                    result.changed,
                    result.planned,
                    [(one.serial, by.serial) for one, by in result.preempted],
                ),
                [(job.part, job.cpus or job.min_cpus, job.expected, job.reason) for job in jobs],
            )
        )
    return found


@settings(max_examples=60, deadline=None)
@given(kind=KINDS, seed=st.integers(0, 1 << 32))
def test_a_queue_that_follows_the_changes_equals_a_new_one(kind: str, seed: int) -> None:
    """Jobs start, end, are requeued, cancelled and get new priorities; some are arrays or wait for others."""
    draw = np.random.default_rng(seed)
    priority = PrioritySettings(type="priority/multifactor", weight_age=1000, weight_job_size=3, max_age=100.0)
    queue = Queue(replace(settings_of(kind), priority=priority))
    controller = queue.controller
    for now, (options, _, _) in enumerate(many_steps(seed)):
        array = tuple(range(int(draw.integers(2, 4)))) if draw.random() < 0.2 else ()
        queue.add(now, array, **options, **({"dependency": "singleton"} if draw.random() < 0.05 else {}))
        kept = build_queue(controller, now)
        running, pending = controller.running_jobs(), list(controller.pending.values())
        chance = draw.random()
        if chance < 0.3:
            main_pass(controller, now, full=True)
        elif chance < 0.5 and running:
            controller.release(running[0], CANCELLED, now)
            if draw.random() < 0.5:
                controller.requeue(running[0], now - 200)
        elif chance < 0.6:
            controller.recalculate(now)
        elif chance < 0.7 and pending:
            controller.cancel(pending[0], now)
        kept = build_queue(controller, now)
        controller.queue = None
        assert kept == build_queue(controller, now)


def test_a_job_that_may_preempt_is_tested_again() -> None:
    """A main pass is not left out if the time alone may let a job preempt another one."""
    queue = Queue(replace(settings_of("partition"), scheduler_type="sched/builtin"))
    daemon = Daemon(queue.controller, complete=False)
    started = []
    for submit, until, options in ((0, 10, {}), (10, 250, {"partitions": ("urgent",)})):
        queue.add(submit, nodes=4, tasks=16, time_limit=3600.0, exclusive=True, **options)
        daemon.submitted(float(submit))
        while (due := daemon.next_time()) < until:
            started += [(job.ids[0], int(due)) for job in daemon.advance(due).started]
    assert [job for job, _ in started] == ["1", "2"]
    assert started[1][1] - started[0][1] >= 120  # the time that the first job may run undisturbed


def test_a_main_pass_with_gpus_is_left_out_if_nothing_happened() -> None:
    """GPU counts of earlier tests do not make the next pass different."""
    queue = Queue(settings_of("gpus"))
    daemon = Daemon(queue.controller, complete=False)
    for _ in range(4):
        queue.add(gres={"gpu": 2}, time_limit=3600.0)
    main_pass(queue.controller, 1, full=True)
    counted = queue.controller.selector.left(-1)
    assert len(queue.controller.pending) == 1
    assert daemon._timeless(2.0)
    main_pass(queue.controller, 2, full=True)
    assert queue.controller.selector.left(-1) == counted


@settings(max_examples=80, deadline=None)
@given(kind=KINDS, complete=st.booleans(), resolution=st.sampled_from([60, 300]), seed=st.integers(0, 1 << 32))
def test_what_passes_remember_changes_nothing(*, kind: str, complete: bool, resolution: int, seed: int) -> None:
    """Passes that use the results of earlier searches do the same as passes that search again each time."""
    config = settings_of(kind)
    parameters = replace(config.scheduler_parameters, bf_resolution=resolution, bf_window=40)
    config = replace(config, scheduler_parameters=parameters)
    how = {"complete": complete, "expects": complete}
    steps = many_steps(seed)
    assert remembered(config, steps, Memory(), **how) == remembered(config, steps, Forgetful(), **how)


@given(kind=st.sampled_from(["apart", "partition", "qos"]), seed=st.integers(0, 1 << 32), now=st.integers(0, 2000))
def test_a_job_preempts_those_that_the_rules_allow(kind: str, seed: int, now: int) -> None:
    """Candidates are the running jobs below a job on its nodes; if a job may preempt none, there are none."""
    queue = Queue(settings_of(kind))
    controller = queue.controller
    preemption = controller.preemption
    for options, _, _ in many_steps(seed):
        job = queue.add(**{"time_limit": 600.0, "qos": "low"} | options)
        if job.serial in controller.pending:
            main_pass(controller, 0, full=True)
    running = controller.running_jobs()
    for job in controller.pending.values():
        mask = controller.machine.partitions[job.part].mask
        expected = {
            one.serial
            for one in running
            if one.nodes & mask and preemption.allows(job, job.part, one, one.part) and now - one.start >= 120
        }
        assert {one.serial for one in preemption.candidates(job, job.part, running, now)} == expected
        assert not expected or preemption.may_preempt(job, job.part, running)


def test_limits_of_submissions_hold_no_queued_job() -> None:
    """Such a limit refuses submissions; another limit may also hold queued jobs."""
    user = AssociationSettings(account="bio", user="ann", parent="root", max_submit_jobs=1)
    config = shared(2, accounting_storage=True, accounting_storage_enforce=frozenset({"limits"}))
    for association, holds in ((user, False), (replace(user, max_jobs=5), True)):
        queue = Queue(replace(config, associations=(AssociationSettings(account="bio"), association)))
        assert queue.controller.limits.idle != holds
        queue.add(account="bio")
        assert not queue.refused
        queue.add(account="bio")
        assert queue.refused == "AssocMaxSubmitJobLimit"


def test_a_pass_over_an_unchanged_queue_repeats_the_last_one() -> None:
    """The second pass makes no search, and its result equals the first one's."""
    queue = waiting()
    memory = Memory()
    first = backfill_pass(queue.controller, 60, memory=memory)
    assert memory.recall_pass(build_queue(queue.controller, 60), complete=True, expects=True) is not None
    assert backfill_pass(queue.controller, 90, memory=memory) == first
    memory.begin(queue.controller, 601)
    assert memory.recall_pass(build_queue(queue.controller, 601), complete=True, expects=True) is None


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


def test_overdue_backfill_looks_before_or_after_the_main_loop() -> None:
    """If the main loop changes something at a full second, the look of this second comes too early or sees it."""
    for looks_last, seen in ((False, 601.0), (True, 600.0)):
        daemon = Daemon(waiting().controller, looks_last=looks_last)
        daemon.last_full, daemon.last_backfill, daemon.work = 600.0, 500.0, inf
        daemon.touch(600.0)
        assert daemon.next_time() == seen
