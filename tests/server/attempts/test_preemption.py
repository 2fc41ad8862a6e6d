"""Preempted jobs: times, saved work, notices, and new attempts."""

from collections.abc import Iterator
from math import fsum, inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.fields import FEATURES
from pipistrelle.server.attempts.attempt import spending_of
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.reliability_book import PreemptionBook
from pipistrelle.traces.resilience import NONE, Resilience, parse_resilience

DUMPS = parse_resilience(checkpoint="10", dump="2", read="1")
AWARE = ("failures", "preemption")


def game_of(play: Any, rows: list[Any], outages: Any = (), units: int = 2, **options: Any) -> Any:
    """Return a begun game whose first job runs, on all the units that it needs."""
    named = {key: options.pop(key) for key in ("observers", "platform", "features") if key in options}
    drawn = Outages.of(Outage(*row) for row in outages) if outages else None
    game = play(units, rows, **{"features": AWARE, **named}, reliability=Reliability(outages=drawn, **options))
    game.begin()
    name, _, size = rows[0][:3]
    game.apply(game.execute(name, f"0-{size - 1}"), game.call(25))
    return game


# -- options of a preemption -------------------------------------------------------------------------------------------


def test_without_grace_a_job_is_requeued_at_once(play: Any, attempts: Any) -> None:
    """Its units are free, its work is lost, and it queues again, all at this instant; then it does all of it again."""
    game = game_of(play, [("1", 0, 2, 40, 100)], observers=[attempts])
    assert game.advance() == ["25 call ''"]

    assert game.say(game.preempt("1")) == ["25 ended 1 KILLED", "25 submitted 1#1"]
    ended, again = game.notice.events
    assert (ended.data.cause, again.data.job.remaining, again.data.job.subtime) == ("preempted", 1.0, 0.0)
    assert game.say(game.execute("1#1", "0-1")) == ["65 ended 1#1 SUCCESSFULLY"]
    assert attempts.of("job_id", "final_state", "cause", "retried", "unit_seconds_lost", "unit_seconds_useful") == [
        ("1", "COMPLETED_KILLED", "preempted", 1, 50, 0),
        ("1#1", "COMPLETED_SUCCESSFULLY", "", 0, 0, 80),
    ]


def test_its_units_are_available_in_the_same_reply(play: Any) -> None:
    """The decisions of one reply see each other's effects."""
    game = game_of(play, [("1", 0, 2, 40, 100), ("2", 20, 2, 5, 9)])
    game.advance()
    game.say()
    assert game.say(game.preempt("1"), game.execute("2", "0-1")) == ["25 ended 1 KILLED", "25 submitted 1#1"]
    assert game.say() == ["30 ended 2 SUCCESSFULLY"]


def test_cancelled_job_is_not_requeued(play: Any, attempts: Any) -> None:
    """The mode cancel ends it for good, and the run."""
    game = game_of(play, [("1", 0, 2, 40, 100)], observers=[attempts])
    game.advance()
    assert game.say(game.preempt("1", "cancel")) == ["25 ended 1 KILLED"]
    assert game.say() is None
    assert attempts.of("cause", "retried", "unit_seconds_lost") == [("preempted", 0, 50)]


def test_a_job_goes_when_its_grace_is_over(play: Any) -> None:
    """It works on until then, and no notice is sent in between."""
    game = game_of(play, [("1", 0, 2, 60, 100)])
    game.advance()
    assert game.say(game.preempt("1", grace=10)) == ["35 ended 1 KILLED", "35 submitted 1#1"]


@pytest.mark.parametrize("grace", [15, 20], ids=["at its end", "within"])
def test_a_job_that_ends_in_its_grace_is_done(play: Any, attempts: Any, grace: float) -> None:
    """Also at its very end: it is not preempted, and not requeued."""
    game = game_of(play, [("1", 0, 2, 40, 100)], observers=[attempts])
    game.advance()
    assert game.say(game.preempt("1", grace=grace)) == ["40 ended 1 SUCCESSFULLY"]
    assert game.say() is None
    assert attempts.of("cause", "retried", "unit_seconds_useful") == [("", 0, 80)]


def test_a_job_that_is_killed_in_its_grace_is_gone(play: Any) -> None:
    """A kill still ends it, and the end of its grace brings nothing."""
    game = game_of(play, [("1", 0, 2, 60, 100)])
    game.advance()
    assert game.say(game.preempt("1", grace=10), game.call(30)) == ["30 call ''"]
    assert game.say(game.kill("1")) == ["30 ended 1 KILLED", "30 killed 1=0.5"]
    assert game.notice.events[0].data.cause == ""
    assert game.say() is None


def test_a_job_is_preempted_twice(play: Any, attempts: Any) -> None:
    """Each attempt has its number, and loses its work."""
    game = game_of(play, [("1", 0, 2, 40, 100)], observers=[attempts])
    game.advance()
    game.say(game.preempt("1"))
    assert game.say(game.execute("1#1", "0-1"), game.call(30)) == ["30 call ''"]
    assert game.say(game.preempt("1#1")) == ["30 ended 1#1 KILLED", "30 submitted 1#2"]
    assert game.say(game.execute("1#2", "0-1")) == ["70 ended 1#2 SUCCESSFULLY"]
    assert attempts.of("attempt", "unit_seconds_lost") == [(0, 50), (1, 10), (2, 0)]


def test_impossible_preemption_is_rejected(play: Any) -> None:
    """Unknown, waiting, ended, just started, or going already; each changes nothing."""
    slow = Platform(name="m", pools=(Pool(name="a", nodes=3, epilogue=5.0),))
    rows = [("1", 0, 2, 40, 100), ("2", 0, 1, 20, 100), ("3", 0, 1, 10, 100)]
    game = game_of(play, rows, units=3, platform=slow)
    game.apply(game.execute("2", "2"))
    assert game.advance() == ["25 ended 2 SUCCESSFULLY", "25 call ''"]
    asked = [*(game.preempt(name) for name in ("9", "3", "2")), game.execute("3", "2"), game.preempt("3")]
    rejected = game.say(*asked, game.preempt("1", grace=50), game.preempt("1"), game.call(37))
    assert rejected == [
        "25 rejected 3[0] unknown_job",
        "25 rejected 3[1] wrong_state",
        "25 rejected 3[2] wrong_state",
        "25 rejected 3[4] wrong_state",
        "25 rejected 3[6] wrong_state",
    ]
    assert "waits" in game.notice.events[1].data.message
    assert game.say() == ["37 call ''"]
    assert game.say() == ["40 ended 3 SUCCESSFULLY"]


@pytest.mark.parametrize("grace", [0.0, 2.0, 50.0])
@pytest.mark.parametrize("mode", ["requeue", "checkpoint", "cancel"])
def test_one_in_its_epilogue_ends_by_itself(play: Any, mode: str, grace: float) -> None:
    """Its scheduler cannot know that its work is done: the decision is legal, and nothing is lost."""
    slow = Platform(name="m", pools=(Pool(name="a", nodes=3, epilogue=5.0),))
    game = game_of(play, [("1", 0, 2, 23, 100)], units=3, platform=slow)
    game.advance()
    assert game.say(game.preempt("1", mode=mode, grace=grace)) == ["28 ended 1 SUCCESSFULLY"]


def test_without_the_feature_it_is_rejected(play: Any) -> None:
    """The rejection names the feature."""
    game = game_of(play, [("1", 0, 2, 40, 100)], features=())
    game.advance()
    assert game.say(game.preempt("1")) == ["25 rejected 3[0] feature_off"]
    assert game.say() == ["40 ended 1 SUCCESSFULLY"]


def test_no_server_offers_it_unasked() -> None:
    """It is one of the features that HELLO must want."""
    assert "preemption" in FEATURES


@pytest.mark.parametrize(("most", "told"), [(1, ["25 ended 1 KILLED"]), (2, ["25 ended 1 KILLED", "25 submitted 1#1"])])
def test_no_job_is_started_more_often_than_it_may_be(play: Any, most: int, told: list[str]) -> None:
    """The limit of attempts holds for preempted jobs, too."""
    game = game_of(play, [("1", 0, 2, 40, 100)], max_attempts=most)
    game.advance()
    assert game.say(game.preempt("1")) == told


def test_requeue_never_after_failures_does_not_affect_preemption(play: Any) -> None:
    """It is requeued in its old place."""
    game = game_of(play, [("1", 0, 2, 40, 100)], requeue="never")
    game.advance()
    assert game.say(game.preempt("1")) == ["25 ended 1 KILLED", "25 submitted 1#1"]
    assert game.notice.events[1].data.job.subtime == 0


# -- saved work --------------------------------------------------------------------------------------------------------


def test_requeued_job_keeps_its_dumps(play: Any, attempts: Any) -> None:
    """At 25 it has dumped twice, at 12 and 24: a second of work is lost."""
    game = game_of(play, [("1", 0, 2, 40, 100)], observers=[attempts], resilience=DUMPS)
    game.advance()
    assert game.say(game.preempt("1")) == ["25 ended 1 KILLED", "25 submitted 1#1"]
    assert game.notice.events[1].data.job.remaining == 0.5
    assert attempts.of("saved", "dumps", "unit_seconds_useful", "unit_seconds_lost") == [(20, 2, 40, 2)]


def test_a_job_with_dumps_writes_one_more(play: Any, attempts: Any) -> None:
    """Under checkpoint its units are free when the dump is complete, and nothing is lost."""
    book = PreemptionBook()
    game = game_of(play, [("1", 0, 2, 40, 100)], observers=[attempts, book], resilience=DUMPS)
    game.advance()
    assert game.say(game.preempt("1", "checkpoint", grace=5)) == ["32 ended 1 KILLED", "32 submitted 1#1"]
    assert game.notice.events[1].data.job.remaining == pytest.approx(14 / 40)
    columns = ("saved", "dumps", "time_dumping", "unit_seconds_useful", "unit_seconds_dumping", "unit_seconds_lost")
    assert attempts.of(*columns) == [(26, 3, 6, 52, 12, 0)]
    # A second of reading, ten of work, a dump, and the last four.
    assert game.say(game.execute("1#1", "0-1")) == ["49 ended 1#1 SUCCESSFULLY"]
    summary = book.summary()
    assert (summary.preempted, summary.requeued, summary.dumped, summary.lost, summary.kept) == (1, 1, 1, 0, 52)


def test_a_dump_that_is_being_written_will_do(play: Any, attempts: Any) -> None:
    """At 23 the second dump has a second left."""
    game = game_of(play, [("1", 0, 2, 40, 100), ("2", 23, 2, 1, 9)], observers=[attempts], resilience=DUMPS)
    assert game.advance() == ["23 submitted 2", "23 no_more_jobs"]
    assert game.say(game.preempt("1", "checkpoint")) == ["24 ended 1 KILLED", "24 submitted 1#1"]
    assert attempts.of("saved", "dumps", "unit_seconds_lost") == [(20, 2, 0)]


def test_nothing_is_dumped_where_nothing_was_done(play: Any) -> None:
    """At 24 the second dump is complete: the job is preempted at once."""
    game = game_of(play, [("1", 0, 2, 40, 100), ("2", 24, 2, 1, 9)], resilience=DUMPS)
    game.advance()
    assert game.say(game.preempt("1", "checkpoint")) == ["24 ended 1 KILLED", "24 submitted 1#1"]


def test_a_dump_that_takes_no_time_saves_all(play: Any) -> None:
    """The job is preempted at once, and keeps its work."""
    quick = parse_resilience(checkpoint="10", dump="0", read="1")
    game = game_of(play, [("1", 0, 2, 40, 100)], resilience=quick)
    game.advance()
    assert game.say(game.preempt("1", "checkpoint")) == ["25 ended 1 KILLED", "25 submitted 1#1"]
    assert game.notice.events[1].data.job.remaining == pytest.approx(15 / 40)


def test_a_job_without_dumps_keeps_nothing(play: Any) -> None:
    """Under checkpoint it ends as under requeue."""
    game = game_of(play, [("1", 0, 2, 40, 100)])
    game.advance()
    assert game.say(game.preempt("1", "checkpoint")) == ["25 ended 1 KILLED", "25 submitted 1#1"]
    assert game.notice.events[1].data.job.remaining == 1.0


def test_a_walltime_ends_a_last_dump(play: Any, attempts: Any) -> None:
    """It is over at its walltime, for good."""
    game = game_of(play, [("1", 0, 2, 100, 26)], observers=[attempts], resilience=DUMPS)
    game.advance()
    assert game.say(game.preempt("1", "checkpoint")) == ["26 ended 1 WALLTIME_REACHED"]
    assert game.say() is None
    assert attempts.of("cause", "dumps", "unit_seconds_dumping") == [("", 2, 10)]


# -- together with failures -------------------------------------------------------------------------------------------


def test_a_failure_at_the_end_of_the_grace_comes_first(play: Any) -> None:
    """The job has lost its node by then, and is requeued once."""
    game = game_of(play, [("1", 0, 2, 100, 200)], [(0, 35.0, 50.0)])
    game.advance()
    told = game.say(game.preempt("1", grace=10))
    assert told == ["35 ended 1 FAILED", "35 failed 0 (failure)", "35 submitted 1#1"]
    assert game.notice.events[0].data.cause == "failure"


def test_a_failure_spoils_a_last_dump(play: Any, attempts: Any) -> None:
    """The unfinished dump is lost; if it completes at the very instant, it is saved."""
    game = game_of(play, [("1", 0, 2, 100, 200)], [(0, 26.0, 50.0)], observers=[attempts], resilience=DUMPS)
    game.advance()
    assert game.say(game.preempt("1", "checkpoint"))[0] == "26 ended 1 FAILED"
    assert attempts.of("saved", "dumps", "unit_seconds_lost", "unit_seconds_dumping") == [(20, 2, 2, 10)]

    game = game_of(play, [("1", 0, 2, 100, 200)], [(0, 27.0, 50.0)], resilience=DUMPS)
    game.advance()
    told = game.say(game.preempt("1", "checkpoint"))
    assert told == ["27 failed 0 (failure)", "27 ended 1 KILLED", "27 submitted 1#1"]
    assert game.notice.events[2].data.job.remaining == pytest.approx(0.79)


def test_a_job_that_waits_for_its_nodes_goes_at_once(play: Any, attempts: Any) -> None:
    """It has nothing to lose, nor to dump."""
    game = game_of(
        play,
        [("1", 0, 2, 100, 200), ("2", 5, 1, 9, 9)],
        [(0, 0.0, 50.0)],
        observers=[attempts],
        features=("preemption",),
        resilience=DUMPS,
    )
    game.advance()
    assert game.say(game.preempt("1", "checkpoint")) == ["5 ended 1 KILLED", "5 submitted 1#1"]
    assert attempts.of("unit_seconds_waiting", "unit_seconds_lost") == [(10, 0)]


# -- whatever happens -------------------------------------------------------------------------------------------------

UNITS = 4
JOBS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, UNITS), st.integers(1, 30), st.integers(1, 40)), min_size=1, max_size=5
)
MOVES = st.lists(st.integers(0, 999), max_size=60)
RESILIENCES = st.sampled_from(
    [
        NONE,
        DUMPS,
        Resilience("checkpoint", 3.0, 0.0, 1.0),
        Resilience("spares", 4.0, 1.0, 1.0, 1),
        Resilience("moldable"),
        Resilience("grid", 5.0, 2.0, 2.0),
    ]
)


class Auditor(Observer):
    """Adds up the time spent by each attempt and the work done by each job."""

    def __init__(self) -> None:
        self.done: dict[str, float] = {}
        self.ended_jobs: list[Job] = []

    def ended(self, now: float, job: Job) -> None:
        """Compare the time of an attempt with the sum of its uses."""
        self.ended_jobs.append(job)
        spent = spending_of(job)
        total = fsum(getattr(spent, kind) for kind in spent.__struct_fields__)
        assert total == pytest.approx(len(job.alloc) * (job.end - job.start))
        attempt = job.attempt
        assert attempt is not None
        assert attempt.preempted == (attempt.cause == "preempted" and job.state == "COMPLETED_KILLED")
        assert not attempt.preempted or attempt.preempting is not None
        assert spent.unsaved == 0 or not attempt.preempted
        self.done[attempt.root] = self.done.get(attempt.root, 0.0) + spent.useful / len(job.alloc)


def decide(game: Any, dice: Iterator[int]) -> list[Any]:
    """Return decisions derived from numbers: start what fits, preempt what runs; without numbers, only start."""
    decisions: list[Any] = []
    free = sorted(set(range(UNITS)) - {unit for job in game.engine.cluster.running.values() for unit in job.alloc})
    for job in game.engine.cluster.running.values():
        if (number := next(dice, 0)) % 3 == 1:
            mode = ("requeue", "checkpoint", "cancel")[number // 3 % 3]
            decisions.append(game.preempt(job.id, mode, grace=(0, 0, 1, 4)[number // 9 % 4]))
    for job in game.engine.cluster.waiting.values():
        if job.size <= len(free):
            decisions.append(game.execute(job.id, " ".join(map(str, free[: job.size]))))
            free = free[job.size :]
    if (number := next(dice, 0)) % 2:
        decisions.append(game.call(game.now + 1 + number % 5))
    return decisions


@settings(deadline=None, max_examples=60)
@given(rows=JOBS, moves=MOVES, resilience=RESILIENCES, failing=st.booleans())
def test_preemption_keeps_the_books_balanced(
    play: Any, rows: Any, moves: list[int], resilience: Resilience, failing: bool
) -> None:
    """At each step the engine's parts agree; a completed job has done its work; restored states continue alike."""
    dice, auditor = iter(moves), Auditor()
    named = [(str(n), float(s), size, float(t), float(w)) for n, (s, size, t, w) in enumerate(sorted(rows))]
    outages = Outages.of([Outage(1, 7.0, 12.0), Outage(3, 20.0, 21.0)]) if failing else None

    def make(observers: Any = ()) -> Any:
        reliability = Reliability(outages=outages, resilience=resilience)
        return play(UNITS, named, features=("preemption",), reliability=reliability, observers=observers)

    game = make([auditor])
    lines, other = game.advance(), None
    while lines is not None:
        decisions = decide(game, dice) if game.notice.seq > 1 else []
        lines = game.say(*decisions)
        if other is not None:
            assert other.say(*decisions) == lines
        elif game.notice is not None and game.notice.seq == 4:
            other = make()
            other.engine.restore(from_json(to_json(game.engine.state())))
            other.notice, other.not_before = game.notice, game.not_before
    for job in auditor.ended_jobs:
        if job.state == "COMPLETED_SUCCESSFULLY" and job.attempt is not None:
            assert auditor.done[job.attempt.root] == pytest.approx(job.runtime)


def test_grace_ends_are_sent_in_the_order_of_their_begins(play: Any) -> None:
    """Of two that end at one instant, the one preempted first ends first."""
    game = game_of(play, [("1", 0, 1, 90, inf), ("2", 0, 1, 90, inf)])
    game.apply(game.execute("2", "1"))
    game.advance()
    told = game.say(game.preempt("2", grace=5), game.preempt("1", grace=5))
    assert told == ["30 ended 2 KILLED", "30 ended 1 KILLED", "30 submitted 2#1", "30 submitted 1#1"]
