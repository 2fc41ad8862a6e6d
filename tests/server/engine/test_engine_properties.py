"""Any decision maker, legal or not: what must hold at every step of every run."""

from collections import Counter
from collections.abc import Iterator
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import JobCompleted, JobSubmitted
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import Stalled

UNITS = 4
MOST_NOTICES = 80
NAMES = ("w0!0", "w0!1", "w0!2", "w0!3", "w0!9", "dyn!0", "dyn!1", "nobody")
TEXTS = ("0", "1-2", "3", "0-3", "2-1", "", "4", "x", "0 2", "3 1")
WAKES = (None, (), ("JOB_SUBMITTED",), ("JOB_COMPLETED",), ("JOB_KILLED", "NO_MORE_JOBS"))

rows = st.lists(
    st.tuples(
        st.integers(0, 6),  # submit
        st.integers(1, UNITS),  # size
        st.sampled_from([0, 1, 2, 3, 7]),  # runtime
        st.sampled_from([1, 2, 3, inf]),  # walltime
    ),
    max_size=7,
)
#: (seed, number) of the random numbers that a decision maker's moves are made from
moves = st.tuples(st.integers(0, 2**32), st.integers(0, 250))


def numbers(seed: int, count: int) -> Iterator[int]:
    """Return random numbers below 1000."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    return (chance.randrange(1000) for _ in range(count))


class Witness(Observer):
    """Keeps a second account of the machine from the observers' calls, and compares it at every step."""

    def __init__(self) -> None:
        self.now = 0.0
        self.busy: dict[str, set[int]] = {}
        self.jobs: dict[str, Job] = {}
        self.ended_jobs: list[Job] = []
        #: ("submitted" or "ended", job id), as it happened
        self.story: list[tuple[str, str]] = []
        self.decisions: list[tuple[float, Decision, Any]] = []

    def _at(self, now: float) -> None:
        assert now >= self.now, "time goes back"
        self.now = now

    def submitted(self, now: float, job: Job) -> None:
        """Note a submission: at its time, once."""
        self._at(now)
        assert job.submit == now
        assert job.id not in self.jobs
        self.jobs[job.id] = job
        self.story.append(("submitted", job.id))

    def started(self, now: float, job: Job) -> None:
        """Record a start: of a known job, on free units."""
        self._at(now)
        units = set(job.alloc)
        assert self.jobs[job.id] is job
        assert len(units) == job.size
        assert units <= set(range(UNITS))
        assert not units & set().union(*self.busy.values())
        self.busy[job.id] = units
        assert job.start == now

    def ended(self, now: float, job: Job) -> None:
        """Record an end: of a running job, at the time and in the state that its run time and walltime imply."""
        self._at(now)
        assert job not in self.ended_jobs
        self.ended_jobs.append(job)
        if job.state == "REJECTED":
            assert job.id not in self.busy
            return
        self.story.append(("ended", job.id))
        del self.busy[job.id]
        assert job.end == now
        due = job.start + min(job.runtime, job.walltime)
        if job.state == "COMPLETED_KILLED":
            assert job.start <= now <= due
        else:
            assert now == due
            assert (job.state == "COMPLETED_SUCCESSFULLY") == (job.runtime <= job.walltime)

    def decided(self, now: float, decision: Decision, rejected: Any) -> None:
        """Note a decision: judged at its time, or at once if that is past, and then refused."""
        self._at(now)
        assert now == decision.timestamp or (now > decision.timestamp and rejected is not None)
        self.decisions.append((now, decision, rejected))

    def settled(self, now: float, idle: int, down: int) -> None:
        """Compare the number of free units."""
        self._at(now)
        assert idle == UNITS - sum(map(len, self.busy.values()))


def decide(game: Any, dice: Iterator[int], *, lazy: bool = False) -> Reply:
    """Return a reply made from numbers, as long as there are any; then start every job that fits, or be lazy."""

    def pick(count: int, at_last: int = 0) -> int:
        return next(dice, at_last) % count

    now, decisions = game.now, []
    free = sorted(set(range(UNITS)) - {unit for job in game.engine.cluster.running.values() for unit in job.alloc})
    for job in game.engine.cluster.waiting.values():
        if job.size <= len(free) and pick(4, int(lazy)) == 0:
            decisions.append(game.execute(job.id, " ".join(map(str, free[: job.size]))))
            free = free[job.size :]
    for _ in range(pick(4)):
        at = now + (0, 0, 0, 1, 2.5, -1)[pick(6)]
        name, other = NAMES[pick(8)], NAMES[pick(8)]
        decisions.append(
            (
                lambda at, name, other: game.execute(name, TEXTS[pick(10)], at=at),
                lambda at, name, other: game.reject(name, at=at),
                lambda at, name, other: game.kill(name, other, at=at),
                lambda at, name, other: game.kill(name, at=at),
                lambda at, name, other: game.call(at + (0, 1, 4, -1)[pick(4)], ("", "a", "b")[pick(3)], at=at),
                lambda at, name, other: game.cancel(("a", "b")[pick(2)], at=at),
                lambda at, name, other: game.register(name, 1 + pick(UNITS + 1), pick(4), 1.0 + pick(3), at=at),
                lambda at, name, other: game.metadata(name, "text", at=at),
                lambda at, name, other: game.malformed(at=at),
                lambda at, name, other: game.stop(at=at) if pick(3) == 2 else game.call(at, "", at=at),
            )[pick(10)](at, name, other)
        )
    later = (0.0, 0.0, 0.0, 0.5, 3.0)[pick(5)]
    return Reply(game.notice.seq, now + later, decisions, WAKES[pick(5)])  # type: ignore[arg-type]


def check_notice(game: Any, notice: Notice, reply: Reply | None) -> None:
    """Assert what holds for every notice; `Play` has checked its times and numbers."""
    if reply is None or reply.wake is None or "wake_filter" not in game.engine.clockwork.features:
        return
    wanted = {"REQUESTED_CALL", "DECISION_REJECTED", *reply.wake}
    told = {str(event.__struct_config__.tag) for event in notice.events}
    first_of_an_empty_workload = notice.seq == 2 and "NO_MORE_JOBS" in told  # events before the first filter
    assert told & wanted or not game.engine.clockwork.agenda.entries() or first_of_an_empty_workload


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=rows,
    script=moves,
    lazy=st.booleans(),
    features=st.sampled_from([(), ("wake_filter",), ("dynamic_jobs",), ("dynamic_jobs", "wake_filter")]),
)
def test_whatever_a_scheduler_does_the_rules_hold(
    play: Any, rows: list[tuple[int, int, int, float]], script: tuple[int, int], lazy: bool, features: tuple[Any, ...]
) -> None:
    """Time never decreases, units agree at every step, each job ends once or is left, every event is sent once."""
    witness, dice = Witness(), numbers(*script)
    ordered = [(str(number), *row) for number, row in enumerate(sorted(rows))]
    game = play(UNITS, ordered, features=features, observers=[witness])
    told, reply, stalled = [], None, False
    try:
        while game.advance() is not None and game.notice.seq < MOST_NOTICES:
            check_notice(game, game.notice, reply)
            told += game.notice.events
            reply = decide(game, dice, lazy=lazy)
            game.apply(*reply.events, now=reply.now, wake=reply.wake)
    except Stalled:
        stalled = True
    game.end()
    told += game.notice.events

    cluster = game.engine.cluster
    left = {**cluster.waiting, **cluster.running}
    assert Counter(list(witness.jobs)) == Counter([job.id for job in witness.ended_jobs] + list(left))
    assert cluster.finished == {job.id for job in witness.ended_jobs}
    assert set(cluster.running) == set(witness.busy)
    lives = [
        ("submitted" if isinstance(event, JobSubmitted) else "ended", event.data.job_id)
        for event in told
        if isinstance(event, JobSubmitted | JobCompleted)
    ]
    assert lives == witness.story
    refusals = [(event.timestamp, event.data.code) for event in told if hasattr(event.data, "code")]
    judged = [(now, rejected.code) for now, _, rejected in witness.decisions if rejected is not None]
    assert refusals == judged
    if stalled:
        assert cluster.waiting
        assert not cluster.running
        assert not game.engine.clockwork.agenda.entries()
    elif game.engine.clockwork.stopped is None and game.notice.seq < MOST_NOTICES:
        assert not left, "a run that is over has no job left"
        assert len(ordered) == sum(name.startswith("w0!") for name in witness.jobs)
    event("stalled" if stalled else "stopped" if game.engine.clockwork.stopped is not None else "over")
    event(f"{len(judged) // 5 * 5}+ rejections")


def test_a_script_of_zeros_runs_every_job(play: Any) -> None:
    """The decision maker's default is a working scheduler, so that the property is not only about broken ones."""
    jobs = [(str(number), number // 3, 1 + number % UNITS, 3, 3) for number in range(20)]
    witness = Witness()
    game = play(UNITS, jobs, observers=[witness])
    while game.advance() is not None:
        reply = decide(game, iter(()))
        game.apply(*reply.events)

    assert len(witness.ended_jobs) == 20
    assert game.end() == [f"{game.now:g} ends completed"]


@pytest.mark.parametrize("seed", range(4))
def test_longer_games(play: Any, seed: int) -> None:
    """The same with a hundred jobs and a random script of thousands of moves."""
    chance, dice = Random(seed), numbers(seed, 2000)  # noqa: S311 - a test's dice
    jobs = [
        (str(number), number // 4, chance.randint(1, UNITS), chance.choice([1, 2, 3, 7]), chance.choice([2, 3, inf]))
        for number in range(100)
    ]
    witness = Witness()
    game = play(UNITS, jobs, features=("dynamic_jobs", "wake_filter"), observers=[witness])
    while game.advance() is not None:
        reply = decide(game, dice)
        decisions = [decision for decision in reply.events if str(decision.__struct_config__.tag) != "STOP"]
        alarm = [game.call(game.now + 5)] if game.engine.cluster.waiting else []
        game.apply(*decisions, *alarm, now=reply.now, wake=reply.wake)

    ended = {job.id for job in witness.ended_jobs}
    assert {f"w0!{number}" for number in range(100)} <= ended == set(witness.jobs)
