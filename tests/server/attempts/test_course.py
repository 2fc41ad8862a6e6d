"""The course of an attempt between failures, against a simulation of every step of work, dump and read."""

from math import inf, isqrt, nextafter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.failures.checkpointing import daly_interval, failure_rate, mtbf_of, young_interval
from pipistrelle.server.attempts.progress import AttemptProgress, RigidProgress
from pipistrelle.server.attempts.segment import Segment
from pipistrelle.traces.resilience import NONE, Resilience


class StepByStep:
    """A job on its allocation, one phase after the other; only fixed intervals, only counts of nodes."""

    def __init__(self, resilience: Resilience, nodes: int, work: float, saved: float, start: float) -> None:
        self.resilience, self.nodes, self.work, self.saved = resilience, nodes, work, saved
        self.tolerated = resilience.tolerated(nodes)
        self.now = start
        self.spare = self.down = 0
        self.rows = self.columns = 0
        self.team = nodes
        if resilience.kind == "spares":
            self.team, self.spare = nodes - self.tolerated, self.tolerated
        if resilience.kind == "grid":
            self.rows = self.columns = isqrt(nodes)
            self.team = self.rows * self.columns
            self.spare = nodes - self.team
        self.unsaved = 0.0
        self.times = dict.fromkeys(("work", "dump", "read", "spare", "down"), 0.0)
        self.lost = 0.0
        self.dumps = self.reads = 0
        self.done = False
        self._restart()

    def _restart(self) -> None:
        self.unsaved = 0.0
        self.phase = "read" if self.saved > 0 else "work"
        self.reads += self.phase == "read"
        self.into = 0.0

    def _length(self) -> float:
        """Return the duration of the present phase."""
        slower = self.nodes / self.team
        if self.phase == "read":
            return self.resilience.read * slower
        if self.phase == "dump":
            return self.resilience.dump * slower
        rest = (self.work - self.saved) * slower
        interval = inf if self.resilience.interval is None else float(self.resilience.interval)
        return min(rest, interval)

    def until(self, time: float) -> None:
        """Advance to a time; a phase that ends at exactly that time is complete."""
        while not self.done and self.now + (self._length() - self.into) <= time + 1e-9:
            self._spend(self._length() - self.into)
            slower = self.nodes / self.team
            if self.phase == "work":
                if self.saved + self.into / slower >= self.work - 1e-9:
                    self.saved, self.unsaved, self.done = self.work, 0.0, True
                    break
                self.phase = "dump"
            elif self.phase == "dump":
                self.saved += self.unsaved
                self.unsaved = 0.0
                self.dumps += 1
                self.phase = "work"
            else:
                self.phase = "work"
            self.into = 0.0
        if time > self.now:
            self._spend(time - self.now)

    def _spend(self, time: float) -> None:
        self.into += time
        self.now += time
        self.times["spare"] += self.spare * time
        self.times["down"] += self.down * time
        if self.done:
            return
        self.times[self.phase] += self.team * time
        if self.phase == "work":
            self.unsaved += time / (self.nodes / self.team)

    def strike(self, time: float, idle: bool) -> bool:
        """Let one node fail: one that is idle, or one that works."""
        self.until(time)
        self.down += 1
        if idle:
            self.spare -= 1
            if self.down <= self.tolerated:
                return True
        if self.down > self.tolerated:
            self.lost += self.unsaved * self.nodes
            self.unsaved = 0.0
            return False
        self.lost += self.unsaved * self.nodes
        if self.spare:
            self.spare -= 1
        elif self.resilience.kind == "moldable":
            self.team -= 1
        elif self.rows == self.columns:
            self.rows -= 1
            self.spare += self.team - 1 - self.rows * self.columns
        else:
            self.columns -= 1
            self.spare += self.team - 1 - self.rows * self.columns
        if self.resilience.kind == "grid":
            self.team = self.rows * self.columns
        self._restart()
        return True


def course_of(resilience: Resilience, nodes: int, **options: Any) -> AttemptProgress:
    """Return a course that begins at time 5 on equal nodes."""
    rate = options.pop("rate", 0.0)
    return AttemptProgress(resilience, start=5.0, nodes=range(nodes), rates=[rate] * nodes, **options)


#: no phase ends at a multiple of this: completion at the very instant is tested separately
_BETWEEN = 0.01371

RESILIENCES = st.builds(
    Resilience,
    kind=st.sampled_from(["checkpoint", "spares", "moldable", "grid"]),
    interval=st.one_of(st.none(), st.integers(1, 30).map(float)),
    dump=st.integers(0, 6).map(float),
    read=st.integers(0, 6).map(float),
    spares=st.integers(1, 5),
)


@given(
    resilience=RESILIENCES,
    nodes=st.integers(2, 12),
    work=st.integers(0, 120),
    saved=st.integers(0, 50),
    strikes=st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=6),
    rest=st.integers(0, 300),
)
@settings(max_examples=400)
def test_course_equals_a_step_by_step_simulation(
    resilience: Resilience, nodes: int, work: int, saved: int, strikes: list[tuple[int, bool]], rest: int
) -> None:
    """Whatever fails when, in whichever phase: the same work, dumps, times and end; node-seconds add up."""
    saved = min(saved, work)
    course = course_of(resilience, nodes, work=float(work), saved=float(saved))
    slow = StepByStep(resilience, nodes, float(work), float(saved), 5.0)
    now, dead = 5.0, set[int]()
    for gap, wants_idle in strikes:
        now += gap + _BETWEEN
        if now >= course.finish:
            break
        idle = wants_idle and slow.spare > 0
        candidates = set(range(nodes)) - dead
        node = min(candidates & set(course._spare) if idle else candidates & (course._active or candidates))
        dead.add(node)
        goes_on = course.strike(now, [node])
        assert goes_on == slow.strike(now, idle)
        if not goes_on:
            break
    else:
        now += rest + _BETWEEN
    slow.until(now)
    account = course.account(now)

    assert account.saved == pytest.approx(slow.saved)
    assert account.unsaved == pytest.approx(slow.unsaved)
    assert (account.dumps, account.reads) == (slow.dumps, slow.reads)
    working = account.node_useful + account.node_unsaved + account.node_lost
    assert working == pytest.approx(slow.times["work"])
    assert account.node_lost == pytest.approx(slow.lost)
    assert account.node_dumping == pytest.approx(slow.times["dump"])
    assert account.node_reading == pytest.approx(slow.times["read"])
    assert account.node_useful == pytest.approx((account.saved - saved) * nodes)
    if now <= course.finish:
        assert account.node_spare == pytest.approx(slow.times["spare"])
        assert account.node_down == pytest.approx(slow.times["down"])
        spent = working + account.node_dumping + account.node_reading + account.node_spare + account.node_down
        assert spent == pytest.approx(nodes * (now - 5.0))


@given(
    interval=st.one_of(st.just(inf), st.integers(1, 30).map(float)),
    dump=st.integers(0, 6).map(float),
    read=st.integers(0, 6).map(float),
    work=st.integers(0, 120).map(float),
    saved=st.integers(0, 50).map(float),
    passed=st.integers(0, 200).map(float),
    strikes=st.booleans(),
)
def test_the_quick_course_is_the_general_one(
    interval: float, dump: float, read: float, work: float, saved: float, passed: float, strikes: bool
) -> None:
    """Both report the same for a job that ends with its first failure."""
    resilience = Resilience("checkpoint", None if interval == inf else interval, dump, read)
    saved = min(saved, work)
    quick = RigidProgress(start=5.0, work=work, saved=saved, nodes=3, interval=interval, dump=dump, read=read)
    general = course_of(resilience, 3, work=work, saved=saved)
    assert quick.finish == general.finish

    now = 5.0 + passed
    if strikes and now < quick.finish:
        assert quick.strike(now, [2]) == general.strike(now, [2])
    assert quick.account(now) == pytest.approx(general.account(now))


def test_a_job_without_resilience_loses_all_its_work() -> None:
    """Its finish is its start and run time; a failure takes everything."""
    course = course_of(NONE, 4, work=100.0, saved=0.0)
    assert course.finish == 105.0

    assert not course.strike(50.0, [2])
    account = course.account(50.0)
    assert (account.saved, account.node_lost, account.nodes_lost) == (0.0, 180.0, 1)


def test_dumps_take_time_but_none_follows_the_last_work() -> None:
    """Three intervals need two dumps; a restart reads first."""
    resilience = Resilience("checkpoint", 10.0, 2.0, 3.0)

    assert course_of(resilience, 1, work=30.0, saved=0.0).finish == 5.0 + 30.0 + 2 * 2.0
    assert course_of(resilience, 1, work=30.0, saved=10.0).finish == 5.0 + 3.0 + 20.0 + 2.0


@pytest.mark.parametrize(("now", "saved"), [(16.9, 0.0), (17.0, 10.0), (28.999, 10.0), (29.0, 20.0)])
def test_a_dump_that_is_complete_at_the_failure_counts(now: float, saved: float) -> None:
    """To the very instant: a failure during a dump loses the interval, one at its end does not."""
    course = course_of(Resilience("checkpoint", 10.0, 2.0, 3.0), 1, work=30.0, saved=0.0)
    course.strike(now, [0])

    assert course.account(now).saved == saved


@given(
    resilience=st.builds(
        Resilience,
        kind=st.just("spares"),
        interval=st.integers(1, 8).map(float),
        dump=st.integers(0, 4).map(float),
        read=st.integers(0, 4).map(float),
        spares=st.just(4),
    ),
    work=st.integers(1, 40).map(float),
    saved=st.integers(0, 8).map(float),
    strikes=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 3)), max_size=4),
    together=st.booleans(),
)
@settings(max_examples=400)
def test_failures_to_the_very_instant(
    resilience: Resilience, work: float, saved: float, strikes: list[tuple[int, int]], together: bool
) -> None:
    """Whole seconds: at the ends of reads, dumps and the work, which win; several nodes, in one call or one by one."""
    saved = min(saved, work)
    course = course_of(resilience, 8, work=work, saved=saved)
    slow = StepByStep(resilience, 8, work, saved, 5.0)
    now, alive, goes_on = 5.0, list(range(8)), True
    for gap, number in strikes:
        if now + gap >= course.finish or not goes_on:
            break
        now += gap
        for _ in range(number):
            goes_on = goes_on and slow.strike(now, idle=False)
        nodes = sorted(alive, key=lambda node: node not in course._active)[:number]
        for hit in [nodes] if together else [[node] for node in nodes]:
            if not course.strike(now, hit):
                break
        alive = [node for node in alive if node not in nodes]
    slow.until(now)
    account = course.account(now)

    assert (account.saved, account.dumps, account.node_lost) == (slow.saved, slow.dumps, slow.lost)
    assert account.node_dumping == slow.times["dump"]
    assert account.node_reading == slow.times["read"]
    assert account.node_seconds == 8 * (now - 5.0)


def test_work_that_is_done_at_the_failure_is_done() -> None:
    """Completion wins, for either kind of course: nothing is rolled back."""
    general = course_of(Resilience("spares", 10.0, 2.0, 3.0, spares=1), 2, work=10.0, saved=0.0)
    quick = RigidProgress(start=5.0, work=10.0, saved=0.0, nodes=2, interval=10.0, dump=2.0, read=3.0)
    for course in (general, quick):
        assert course.strike(course.finish, [0, 1])
        account = course.account(course.finish)
        assert (account.saved, account.unsaved, account.node_lost, account.nodes_lost) == (10.0, 0.0, 0.0, 0)


def test_a_dump_is_complete_at_the_time_at_which_it_is_complete() -> None:
    """Not a rounding error later, nor earlier: at the double that its begin, read and cycles add up to."""
    chance = Random(1)  # noqa: S311 - a test's dice
    for _ in range(200):
        start, interval, dump, read = (chance.randrange(1, most) / 10 for most in (10**6, 5000, 300, 100))
        segment = Segment(start, read, 10 * interval, interval, dump)
        for number in (1, 2, 3, 7):
            complete = start + (read + number * (interval + dump))
            assert (segment.at(complete).dumps, segment.at(nextafter(complete, 0.0)).dumps) == (number, number - 1)


@pytest.mark.parametrize("kind", ["checkpoint", "spares", "moldable", "grid"])
def test_durations_without_failures_are_those_of_courses(kind: Any) -> None:
    """For all works at once, in the middle of an interval or at its end: dumps of fewer nodes than all take longer."""
    resilience = Resilience(kind, 10.0, 3.0, 0.0, spares=2 if kind == "spares" else None)
    works = np.array([0.0, 4.0, 20.0, 33.0, 60.0])
    finishes = [course_of(resilience, 6, work=work, saved=0.0).finish - 5.0 for work in works.tolist()]

    assert course_of(resilience, 6, work=0.0, saved=0.0).duration(works).tolist() == pytest.approx(finishes)
    slower = {"spares": 6 / 4, "grid": 6 / 4}.get(kind, 1.0)
    assert finishes[-1] == pytest.approx((60.0 + 3.0 * (60.0 * slower // 10 - 1)) * slower)


def test_spares_take_the_place_of_nodes_that_fail() -> None:
    """Work resumes from the last dump, at the same speed, until no spare is left; several nodes may fail at once."""
    resilience = Resilience("spares", 8.0, 0.0, 0.0, spares=3)
    course = course_of(resilience, 4, work=4.0, saved=0.0)
    assert course.finish == 5.0 + 4.0 * 4

    assert course.strike(15.0, [0, 3])
    assert course.finish == 15.0 + 8.0
    assert course.strike(16.0, [1])
    assert not course.strike(17.0, [2])
    account = course.account(17.0)
    assert (account.survived, account.nodes_lost, account.saved) == (2, 4, 2.0)


def test_an_idle_spare_that_fails_rolls_nothing_back() -> None:
    """The work continues; the spare is used up, and that counts as a survived failure."""
    course = course_of(Resilience("spares", None, spares=1), 4, work=30.0, saved=0.0)
    finish = course.finish

    assert course.strike(10.0, [3])
    assert (course.finish, course.account(10.0).survived) == (finish, 1)
    assert not course.strike(11.0, [0])


def test_moldable_job_continues_with_fewer_nodes() -> None:
    """Three of four nodes take four thirds of the time, dumps and reads included."""
    course = course_of(Resilience("moldable", 9.0, 3.0, 3.0), 4, work=18.0, saved=0.0)

    assert course.strike(5.0 + 9.0 + 3.0 + 1.0, [2])
    assert course.finish == pytest.approx(18.0 + (3.0 + 9.0) * 4 / 3 + 3.0 * 4 / 3)


def test_a_grid_loses_a_row_then_a_column() -> None:
    """3 x 3 continues as 2 x 3 with two spares, then as 2 x 2 with two."""
    course = course_of(Resilience("grid", None), 9, work=36.0, saved=0.0)
    sizes = []
    for number in range(5):
        assert course.strike(6.0 + number, [min(course._active)])
        sizes.append(len(course._active))

    assert sizes == [6, 6, 6, 4, 4]


def test_a_grid_whose_row_fails_at_once() -> None:
    """Nodes that fail together are replaced together, whichever row leaves."""
    course = course_of(Resilience("grid", None), 9, work=36.0, saved=0.0)

    assert course.strike(6.0, [6, 7, 8, 0])
    assert len(course._active) == 4
    assert course._active.isdisjoint({6, 7, 8, 0})


@pytest.mark.parametrize(("wanted", "formula"), [("young", young_interval), ("daly", daly_interval)])
def test_optimal_intervals_know_the_allocations_own_nodes(wanted: Any, formula: Any) -> None:
    """The interval comes from the rates of the nodes that work, unequal as they are; without failures no dumps."""
    resilience = Resilience("checkpoint", wanted, 60.0, 60.0)
    interval = formula(60.0, 1 / 4e-6)
    course = AttemptProgress(resilience, start=0.0, work=1e5, saved=0.0, nodes=[3, 9], rates=[1e-6, 3e-6])
    dumps = -(-1e5 // interval) - 1

    assert course.finish == pytest.approx(1e5 + dumps * 60.0)
    assert AttemptProgress(resilience, start=0.0, work=1e5, saved=0.0, nodes=[3], rates=[0.0]).finish == 1e5


@pytest.mark.parametrize("rate", [1 / 6.3e8, 1e-7 / 3, 3e-9])
def test_equal_rates_are_added_up_to_the_last_bit(rate: float) -> None:
    """A product replaces the correctly rounded sum of equal rates, before and after a failure."""
    resilience = Resilience("moldable", "daly", 60.0, 60.0)
    nodes = 1001
    course = course_of(resilience, nodes, work=1e9, saved=0.0, rate=rate)
    for number in range(5):
        mtbf = mtbf_of(failure_rate([rate] * (nodes - number)))
        dump = 60.0 * (nodes / (nodes - number))
        assert course.interval == daly_interval(dump, mtbf)
        course.strike(6.0 + number, [number])
