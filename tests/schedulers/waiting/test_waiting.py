"""The waiting queue, against a list that is sorted each time."""

from collections.abc import Callable
from math import inf
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pipistrelle.schedulers.orders.fixed import Fcfs, Sjf
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import FixedOrder
from pipistrelle.schedulers.waiting import ranked
from pipistrelle.schedulers.waiting.ranked import GONE, WaitingQueue

MakeJob = Callable[..., SchedulerJob]

sizes = st.integers(1, 6)
walltimes = st.sampled_from([1.0, 2.0, 3.0, 5.0, inf])
shadows = st.sampled_from([0.0, 3.0, 4.0, inf])


def test_an_empty_queue(waiting_job: MakeJob) -> None:
    """It is false, has no first and contains no job."""
    queue = WaitingQueue(Fcfs())

    assert (len(queue), bool(queue), queue.first, list(queue)) == (0, False, None, [])
    with pytest.raises(KeyError, match="w0!3"):
        queue.remove(waiting_job(3))


def test_ranks_decide_and_ties_go_to_the_job_submitted_first(waiting_job: MakeJob) -> None:
    """Jobs may join in any order."""
    queue = WaitingQueue(Sjf())
    for number, walltime in ((4, 2.0), (1, 2.0), (3, 1.0), (2, inf), (5, 2.0), (0, inf)):
        queue.add(waiting_job(number, walltime=walltime))

    assert [job.number for job in queue] == [3, 1, 4, 5, 0, 2]


def test_a_job_that_left_or_never_came_cannot_leave(waiting_job: MakeJob) -> None:
    """An equal copy of a waiting job is not in the queue either."""
    queue = WaitingQueue(Fcfs())
    jobs = [waiting_job(number) for number in range(3)]
    for job in jobs:
        queue.add(job)
    queue.remove(jobs[1])

    for stranger in (jobs[1], waiting_job(0), waiting_job(7)):
        with pytest.raises(KeyError):
            queue.remove(stranger)
    assert list(queue) == [jobs[0], jobs[2]]


def test_jobs_may_leave_during_iteration(waiting_job: MakeJob) -> None:
    """A policy may start jobs while it iterates over the queue."""
    queue = WaitingQueue(Fcfs())
    for number in range(200):
        queue.add(waiting_job(number))
    for job in queue:
        if job.number % 3:
            queue.remove(job)

    assert [job.number for job in queue] == list(range(0, 200, 3))


def test_orders_by_name() -> None:
    """fcfs ranks by submit time, sjf by walltime; no walltime is the longest."""
    early, short = SchedulerJob("a", 0, 1, inf, 3.0), SchedulerJob("b", 1, 1, 5.0, 4.0)

    assert [Fcfs().rank(job) for job in (early, short)] == [3.0, 4.0]
    assert [Sjf().rank(job) for job in (early, short)] == [inf, 5.0]


class AgainstList(RuleBasedStateMachine):
    """Whatever joins, leaves and passes, the queue is a sorted list."""

    @initialize(order=st.sampled_from([Fcfs, Sjf]))
    def begin(self, order: type[FixedOrder]) -> None:
        """Begin empty, in one of the orders."""
        self.rank = order().rank
        self.queue = WaitingQueue(order())
        self.model: list[SchedulerJob] = []
        self.number = 0

    def _sort(self) -> None:
        self.model.sort(key=lambda job: (self.rank(job), job.number))

    @rule(size=sizes, walltime=walltimes, submit=st.integers(0, 9), many=st.sampled_from([1, 1, 1, 30, 90]))
    def add(self, size: int, walltime: float, submit: int, many: int) -> None:
        """One job joins, or enough that the queue becomes deep."""
        for step in range(many):
            job = SchedulerJob(
                f"w0!{self.number}", self.number, 1 + (size + step) % 6, walltime + step % 4, float(submit + step % 3)
            )
            self.queue.add(job)
            self.model.append(job)
            self.number += 1
        self._sort()

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Any job leaves."""
        job = self.model.pop(data.draw(st.integers(0, len(self.model) - 1)))
        self.queue.remove(job)

    @precondition(lambda self: len(self.model) > 20)
    @rule(keep=st.integers(2, 9), front=st.booleans())
    def remove_many(self, keep: int, front: bool) -> None:
        """Most jobs leave, from the front or from all over, so that gaps outnumber jobs."""
        gone = self.model[: len(self.model) // 2] if front else [j for j in self.model if j.number % keep]
        for job in gone:
            self.queue.remove(job)
        self.model = [job for job in self.model if job not in gone]

    @rule(
        units=st.integers(0, 5) | st.integers(0, 30),
        spare=st.integers(0, 12),
        ends_by=shadows,
        now=st.sampled_from([0.0, 1.0]),
        shortest_first=st.booleans(),
    )
    def pass_over(self, units: int, spare: int, ends_by: float, now: float, shortest_first: bool) -> None:
        """The jobs behind the first that may start do, one after the other, as by looking at all of them each time."""
        expected, left, room, extra = [], self.model[1:], units, spare
        while True:
            able = [j for j in left if j.size <= room and (now + j.walltime <= ends_by or j.size <= extra)]
            if not able:
                break
            job = min(able, key=lambda job: job.walltime) if shortest_first else able[0]
            expected.append(job.number)
            left.remove(job)
            room -= job.size
            if now + job.walltime > ends_by:
                extra -= job.size
        started: list[int] = []
        state = [units, spare]

        def start(job: SchedulerJob) -> tuple[int, int]:
            started.append(job.number)
            self.queue.remove(job)
            state[0] -= job.size
            if now + job.walltime > ends_by:
                state[1] -= job.size
            return state[0], state[1]

        self.queue.pass_over(start, units, spare=spare, ends_by=ends_by, now=now, shortest_first=shortest_first)
        assert started == expected
        self.model = self.model[:1] + left

    @precondition(lambda self: self.model)
    @rule(free=st.integers(0, 5), spare=st.integers(0, 12), ends_by=shadows, now=st.sampled_from([0.0, 1.0]))
    def units_needed(self, free: int, spare: int, ends_by: float, now: float) -> None:
        """The first job needs its units; another that is late needs more than its own."""
        first, *others = self.model
        late = max(free - spare, 0)
        least = min([first.size, *(job.size + late * (now + job.walltime > ends_by) for job in others)])
        arrivals_last = self.queue.arrivals_last
        assert self.queue.units_needed(free, spare=spare, ends_by=ends_by, now=now) == (
            least if arrivals_last else None
        )

    @invariant()
    def same(self) -> None:
        """First, length and order are the list's."""
        if not hasattr(self, "model"):
            return
        assert len(self.queue) == len(self.model)
        assert bool(self.queue) == bool(self.model)
        assert self.queue.first is (self.model[0] if self.model else None)
        assert list(self.queue) == self.model
        assert self.queue.smallest == min([job.size for job in self.model], default=GONE)


class WithoutIndex(AgainstList):
    """The same with so many sizes that a deep queue uses arrays."""

    @initialize(order=st.sampled_from([Fcfs, Sjf]))
    def begin(self, order: type[FixedOrder]) -> None:
        """Begin empty, in one of the orders, without room for an index."""
        self.patch = patch.object(ranked, "MOST_SIZES", 0)
        self.patch.start()
        super().begin(order)

    @precondition(lambda self: False)
    @rule()
    def units_needed(self) -> None:  # type: ignore[override]
        """A deep queue does not know the units."""

    def teardown(self) -> None:
        """Allow an index again."""
        self.patch.stop()


TestAgainstList = AgainstList.TestCase
TestAgainstList.settings = settings(max_examples=120, stateful_step_count=40, database=None)
TestWithoutIndex = WithoutIndex.TestCase
TestWithoutIndex.settings = settings(max_examples=40, stateful_step_count=40, database=None)
