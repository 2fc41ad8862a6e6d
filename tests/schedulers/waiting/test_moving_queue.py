"""The waiting queue under orders that move waiting jobs, against a list that is sorted each time."""

from collections.abc import Callable, Sequence
from math import inf, nan
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.schedulers.catalogue.parts import make_backfill
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Floats
from pipistrelle.schedulers.policy.waiting import Staircase
from pipistrelle.schedulers.waiting.moving import MovingQueue, queue_of
from pipistrelle.schedulers.waiting.ranked import WaitingQueue

MakeJob = Callable[..., SchedulerJob]
RunPolicy = Callable[..., Any]


class Drift:
    """Every job has a pace: rank = submit - pace x time, so that fast ones pass slow ones."""

    dynamic: Literal[True] = True

    def __init__(self) -> None:
        self.asked = 0

    def begin(self) -> None:
        """Recount."""
        self.asked = 0

    def attributes(self, job: SchedulerJob) -> Sequence[float]:
        """Return submit time and pace."""
        return (job.submit, job.number % 4)

    def ranks(self, table: Floats, now: float) -> Floats:
        """Return the ranks."""
        self.asked += 1
        submit, pace = table
        return np.where(pace == 3, inf, submit - pace * now)

    @staticmethod
    def of(job: SchedulerJob, now: float) -> float:
        """Return the rank of one job."""
        pace = job.number % 4
        return inf if pace == 3 else job.submit - pace * now


def test_a_dynamic_order_gets_a_moving_queue(waiting_job: MakeJob) -> None:
    """It is empty at first and contains no job; a fixed order has the other class."""
    queue = queue_of(Drift())

    assert type(queue) is MovingQueue
    assert type(queue_of(Fcfs())) is WaitingQueue
    assert (len(queue), bool(queue), queue.first, list(queue), queue.arrivals_last) == (0, False, None, [], False)
    with pytest.raises(KeyError, match="w0!3"):
        queue.remove(waiting_job(3))
    with pytest.raises(TypeError):
        MovingQueue(Fcfs())


def test_ranks_are_asked_for_once_a_decision_and_only_if_somebody_looks(waiting_job: MakeJob) -> None:
    """Joining, leaving and time alone ask nothing."""
    order = Drift()
    queue = queue_of(order)
    for number in range(300):
        queue.add(waiting_job(number))
        queue.rerank(float(number))
    assert order.asked == 0
    for _ in range(5):
        assert queue.first is not None
        queue.remove(queue.first)
        list(queue)
        queue.leading(3)
    assert order.asked == 1


def test_an_order_that_gives_nonsense_is_an_error(waiting_job: MakeJob) -> None:
    """NaN, or not a number a job."""
    for wrong in (np.array([nan, 1.0]), np.array([1.0])):

        class Wrong(Drift):
            result = wrong

            def ranks(self, table: Floats, now: float) -> Floats:
                """Return nonsense."""
                return self.result.copy()

        queue = queue_of(Wrong())
        queue.add(waiting_job(0))
        queue.add(waiting_job(1))
        with pytest.raises(ValueError, match="Wrong must return a number for each job"):
            queue.first  # noqa: B018


class AgainstList(RuleBasedStateMachine):
    """Whatever joins, leaves, passes, and however time moves, the queue is a list sorted by today's ranks."""

    @initialize()
    def begin(self) -> None:
        """Begin empty."""
        self.queue = queue_of(Drift())
        self.model: list[SchedulerJob] = []
        self.number = 0
        self.now = 0.0

    def _sort(self) -> None:
        self.model.sort(key=lambda job: (Drift.of(job, self.now), job.number))

    @rule(
        size=st.integers(1, 6),
        walltime=st.sampled_from([1.0, 2.0, 3.0, inf]),
        many=st.sampled_from([1, 1, 40, 120]),
        backwards=st.booleans(),
    )
    def add(self, size: int, walltime: float, many: int, backwards: bool) -> None:
        """One job joins, or many, not always in the order of their numbers."""
        numbers = list(range(self.number, self.number + many))
        for number in reversed(numbers) if backwards and many < 50 else numbers:
            job = SchedulerJob(
                f"w0!{number}", number, 1 + (size + number) % 6, walltime + number % 4, float(number % 9)
            )
            self.queue.add(job)
            self.model.append(job)
        self.number += many
        self._sort()

    @rule(wait=st.sampled_from([0.0, 0.5, 3.0, 100.0]))
    def decide(self, wait: float) -> None:
        """Advance the time and let the policy decide."""
        self.now += wait
        self.queue.rerank(self.now)
        self._sort()

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Any job leaves."""
        job = self.model.pop(data.draw(st.integers(0, len(self.model) - 1)))
        self.queue.remove(job)

    @precondition(lambda self: len(self.model) > 20)
    @rule(keep=st.integers(2, 9))
    def remove_many(self, keep: int) -> None:
        """Most jobs leave, from all over."""
        for job in [job for job in self.model if job.number % keep]:
            self.queue.remove(job)
            self.model.remove(job)

    @rule(
        units=st.integers(0, 30),
        spare=st.integers(0, 12),
        ends_by=st.sampled_from([0.0, 3.0, 4.0, inf]),
        shortest_first=st.booleans(),
    )
    def pass_over(self, units: int, spare: int, ends_by: float, shortest_first: bool) -> None:
        """The jobs behind the first that may start do, one after the other, as by looking at all of them each time."""
        expected, left, room, extra = [], self.model[1:], units, spare
        while True:
            able = [j for j in left if j.size <= room and (j.walltime <= ends_by or j.size <= extra)]
            if not able:
                break
            job = min(able, key=lambda job: job.walltime) if shortest_first else able[0]
            expected.append(job)
            left.remove(job)
            room -= job.size
            extra -= job.size if job.walltime > ends_by else 0
        started: list[SchedulerJob] = []
        state = [units, spare]

        def start(job: SchedulerJob) -> tuple[int, int]:
            started.append(job)
            self.queue.remove(job)
            state[0] -= job.size
            state[1] -= job.size if job.walltime > ends_by else 0
            return state[0], state[1]

        self.queue.pass_over(start, units, spare=spare, ends_by=ends_by, shortest_first=shortest_first)
        assert started == expected
        self.model = self.model[:1] + left

    @rule(stairs=st.lists(st.integers(0, 12), min_size=1, max_size=3))
    def pass_under(self, stairs: list[int]) -> None:
        """The jobs that fit under a staircase start, in order, while it sinks."""
        times = np.array([2.0, 4.0][: len(stairs) - 1])
        heights = sorted(stairs, reverse=True)

        def fits(job: SchedulerJob) -> bool:
            return job.size <= heights[sum(job.walltime > time for time in times)]

        expected = []
        for job in self.model:
            if fits(job):
                expected.append(job)
                heights = [height - job.size for height in heights]
        room = sorted(stairs, reverse=True)
        started: list[SchedulerJob] = []

        def start(job: SchedulerJob) -> Staircase:
            started.append(job)
            self.queue.remove(job)
            room[:] = [height - job.size for height in room]
            return Staircase(times, np.array(room, dtype=np.int64))

        self.queue.pass_under(start, Staircase(times, np.array(room, dtype=np.int64)), now=0.0)
        assert started == expected
        self.model = [job for job in self.model if job not in started]

    @invariant()
    def same(self) -> None:
        """First, length, order and prefixes equal those of the list."""
        if not hasattr(self, "model"):
            return
        assert len(self.queue) == len(self.model)
        assert self.queue.first is (self.model[0] if self.model else None)
        assert list(self.queue) == self.model
        for count in (1, 3, 40):
            assert self.queue.leading(count) == self.model[:count]
        some = sorted(self.model[::7], key=lambda job: job.number)
        assert self.queue.in_order(some) == self.model[::7]


TestAgainstList = AgainstList.TestCase
TestAgainstList.settings = settings(max_examples=80, stateful_step_count=30, database=None)


class Slow(Drift):
    """First come, first served, spelled as a dynamic order."""

    def ranks(self, table: Floats, now: float) -> Floats:
        """Return the submit times."""
        return table[0].copy()


def rows(seed: int, jobs: int = 150) -> list[tuple[float, int, float, float]]:
    """Return a random workload for 16 units."""
    chance = np.random.default_rng(seed)
    size = chance.choice([1, 1, 2, 3, 4, 8, 12, 16], jobs)
    runtime = chance.choice([10.0, 10.0, 20.0, 30.0, 60.0], jobs)
    walltime = runtime * chance.choice([1.0, 1.0, 2.0, 0.5], jobs)
    submit = np.cumsum(chance.choice([0.0, 0.0, 5.0, 10.0, 20.0], jobs))
    return list(zip(submit.tolist(), size.tolist(), runtime.tolist(), walltime.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rule_name", PARTS["backfill"])
def test_a_dynamic_order_that_never_moves_is_the_fixed_one(run_policy: RunPolicy, rule_name: str, seed: int) -> None:
    """Every backfilling rule starts the same jobs at the same times on the same units."""
    fixed, moving = (
        run_policy(ComposedPolicy("p", order, make_backfill(rule_name), LowestIds()), 16, rows(seed))
        for order in (Fcfs(), Slow())
    )
    assert fixed.starts == moving.starts


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule_name", PARTS["backfill"])
def test_moving_order_loses_no_job(run_policy: RunPolicy, rule_name: str, seed: int) -> None:
    """Every job runs once under every rule, with and without the wake filter, and a policy can be used again."""
    policy = ComposedPolicy("p", Drift(), make_backfill(rule_name), LowestIds())
    first = run_policy(policy, 16, rows(seed))
    again = run_policy(policy, 16, rows(seed))

    assert sorted(number for number, _, _ in first.starts) == list(range(150))
    assert first.starts == again.starts


class Told(Drift):
    """Records its notices."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, int, float]] = []

    def started(self, job: SchedulerJob, now: float) -> None:
        """Write it down."""
        self.told.append(("started", job.number, now))

    def ended(self, job: SchedulerJob, now: float) -> None:
        """Write it down."""
        self.told.append(("ended", job.number, now))


def test_order_is_notified_of_starts_and_ends(run_policy: RunPolicy) -> None:
    """Each once, at its time, ends before the starts that they make possible."""
    order = Told()
    jobs = [(0.0, 10, 50.0, 60.0), (1.0, 10, 20.0, 20.0), (2.0, 6, 5.0, 5.0)]
    run_policy(ComposedPolicy("p", order, make_backfill("easy"), LowestIds()), 16, jobs)

    assert order.told == [
        ("started", 0, 0.0),
        ("started", 2, 2.0),
        ("ended", 2, 7.0),
        ("ended", 0, 50.0),
        ("started", 1, 50.0),
        ("ended", 1, 70.0),
    ]
