"""The wake filter: which events wake the scheduler, and that nothing is lost."""

from typing import Any

import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
from pipistrelle.server.outages.reliability import Reliability

FILTER = ("wake_filter",)
#: two jobs at 0, one at 3, one at 8
ROWS = [("1", 0, 1, 5, 5), ("2", 0, 1, 20, 20), ("3", 3, 1, 5, 5), ("4", 8, 1, 5, 5)]


def started(
    play: Any, wake: tuple[str, ...] | None, *more: str, features: tuple[str, ...] = FILTER
) -> list[str] | None:
    """Return the lines of the notice after jobs 1 and 2 were started with this wake filter."""
    game = play(4, ROWS, features=features)
    game.begin()
    decisions = [game.execute("1", "0"), game.execute("2", "1")]
    decisions += [game.call(4, "x")] if "call" in more else []
    decisions += [game.kill("9")] if "illegal" in more else []
    decisions += [game.kill("2", at=2)] if "kill" in more else []
    lines: list[str] | None = game.say(*decisions, wake=wake)
    return lines


@pytest.mark.parametrize(
    ("wake", "expected"),
    [
        (None, ["3 submitted 3"]),
        (("JOB_SUBMITTED",), ["3 submitted 3"]),
        (("JOB_COMPLETED",), ["3 submitted 3", "5 ended 1 SUCCESSFULLY"]),
        (("NO_MORE_JOBS",), ["3 submitted 3", "5 ended 1 SUCCESSFULLY", "8 submitted 4", "8 no_more_jobs"]),
        (("NO_MORE_JOBS", "JOB_COMPLETED"), ["3 submitted 3", "5 ended 1 SUCCESSFULLY"]),
    ],
)
def test_the_listed_types_wake_and_the_others_come_along_in_order(
    play: Any, wake: tuple[str, ...] | None, expected: list[str]
) -> None:
    """The next notice is at the first event of a listed type, and includes all earlier unsent events."""
    assert started(play, wake) == expected


def test_kill_wakes_a_scheduler_that_lists_it(play: Any) -> None:
    """JOB_KILLED is a type of its own: with it alone the kill's JOB_COMPLETED comes along."""
    assert started(play, ("JOB_KILLED",), "kill") == ["2 ended 2 KILLED", "2 killed 2=0.1"]
    assert started(play, ("JOB_SUBMITTED",), "kill") == ["2 ended 2 KILLED", "2 killed 2=0.1", "3 submitted 3"]
    lines = started(play, ("JOB_KILLED",))
    assert lines is not None
    assert lines[-1] == "20 ended 2 SUCCESSFULLY"  # no end of another kind: no other event follows


def test_calls_and_rejections_always_wake(play: Any) -> None:
    """Requested calls and errors are sent at their time even with an empty filter."""
    assert started(play, (), "call") == ["3 submitted 3", "4 call 'x'"]
    assert started(play, (), "illegal") == ["0 rejected 2[2] unknown_job"]


def test_nodes_and_maintenance_always_wake(play: Any) -> None:
    """They are unforeseeable: each is sent at its time even with an empty filter."""
    machine = homogeneous(2, "m")
    rule = parse_maintenance("@50 +10s 1 announced @40 named m", machine, where="test", epoch=None, timezone=None)
    reliability = Reliability(outages=Outages.of([Outage(1, 10.0, 30.0)]), maintenance=MaintenancePlan((rule,)))
    game = play(2, [("1", 0, 1, 90, 90)], features=("wake_filter", "failures"), reliability=reliability)
    game.begin()

    assert game.say(game.execute("1", "0"), wake=()) == ["10 failed 1 (failure)"]
    assert [game.say(wake=()) for _ in range(4)] == [
        ["30 repaired 1"],
        ["40 announced m 50-60 1"],
        ["50 maintenance m begins 1"],
        ["60 maintenance m ends 1"],
    ]


def test_without_the_feature_every_event_wakes(play: Any) -> None:
    """A filter that was not agreed on is not applied."""
    assert started(play, ("NO_MORE_JOBS",), features=()) == ["3 submitted 3"]


def test_a_filter_holds_for_one_reply(play: Any) -> None:
    """The next reply without a filter is woken by everything again."""
    game = play(4, ROWS, features=FILTER)
    game.begin()

    lines = game.say(game.execute("1", "0"), game.execute("2", "1"), wake=("JOB_COMPLETED",))
    assert lines == ["3 submitted 3", "5 ended 1 SUCCESSFULLY"]
    assert game.say() == ["8 submitted 4", "8 no_more_jobs"]


def test_held_events_are_delivered_when_nothing_else_can_happen(play: Any) -> None:
    """With jobs waiting and an empty agenda the scheduler is woken, for any filter, before a stall is declared."""
    game = play(1, [("1", 0, 1, 5, 5), ("2", 2, 1, 5, 5)], features=FILTER)
    game.begin()

    assert game.say(game.execute("1", "0"), wake=()) == [
        "2 submitted 2",
        "2 no_more_jobs",
        "5 ended 1 SUCCESSFULLY",
    ]
    assert game.notice.now == 5.0
    assert game.say(game.execute("2", "0"), wake=()) is None
    assert game.now == 10.0


def test_what_the_filter_held_back_at_the_very_end_comes_with_the_end(play: Any) -> None:
    """The last notice holds it, before SIMULATION_ENDS: no event is ever lost."""
    game = play(1, [("1", 0, 1, 5, 5)], features=FILTER)
    game.begin()

    assert game.say(game.execute("1", "0"), wake=()) is None
    assert game.end() == ["5 ended 1 SUCCESSFULLY", "5 ends completed"]


def test_the_filter_applies_to_what_its_own_reply_brings_about(play: Any) -> None:
    """A kill at now whose events are not listed is sent with the next listed event."""
    game = play(2, [("1", 0, 1, 50, 50), ("2", 7, 1, 5, 5)], features=FILTER)
    game.begin()

    assert game.say(game.execute("1", "0"), game.kill("1"), wake=("JOB_SUBMITTED",)) == [
        "0 ended 1 KILLED",
        "0 killed 1=0",
        "7 submitted 2",
        "7 no_more_jobs",
    ]
    assert game.notice.now == 7.0


def test_a_filter_and_thinking_time_go_together(play: Any) -> None:
    """A listed event inside the thinking time is sent at its end; unlisted ones alone do not wake even then."""
    game = play(4, ROWS, features=FILTER)
    game.begin()

    assert game.say(game.execute("1", "0"), now=4.0, wake=("JOB_COMPLETED",)) == [
        "3 submitted 3",
        "5 ended 1 SUCCESSFULLY",
    ]
    assert game.say(game.execute("3", "0"), now=9.0, wake=("NO_MORE_JOBS",)) == ["8 submitted 4", "8 no_more_jobs"]
    assert game.notice.now == 9.0


def test_a_scheduler_that_may_register_is_told_before_the_end_whatever_its_filter(play: Any) -> None:
    """With dynamic_jobs the last end, though filtered out, comes in a notice that can still be answered."""
    game = play(1, [("1", 0, 1, 5, 5)], features=("wake_filter", "dynamic_jobs"))
    game.begin()

    assert game.say(game.execute("1", "0"), wake=()) == ["5 ended 1 SUCCESSFULLY"]
    assert game.say(game.register("dyn!a", 1, 2), wake=()) == ["5 submitted dyn!a"]
    assert game.say(game.execute("dyn!a", "0"), wake=()) == ["7 ended dyn!a SUCCESSFULLY"]
    assert game.say(wake=()) is None
    assert game.end() == ["7 ends completed"]


def test_no_more_jobs_of_an_empty_workload_comes_before_the_first_filter(play: Any) -> None:
    """A filter does not apply to the past: that event is already pending when the first reply arrives."""
    game = play(1, features=FILTER)
    game.advance()

    assert game.say(wake=()) == ["0 no_more_jobs"]


def test_interrupts_are_checked_while_no_notice_is_sent(play: Any) -> None:
    """Time that passes without a word to the scheduler can be ended, between two things that happen."""
    game = play(4, [(str(number), float(number), 1, 5, 5) for number in range(1, 10_000)], features=FILTER)
    looks: list[float] = []
    game.engine.regularly = lambda: looks.append(game.engine.now) or len(looks) == 3
    game.begin()
    with pytest.raises(KeyboardInterrupt):
        game.say(wake=())
    assert len(looks) == 3
    assert 0 < looks[0] < looks[1] < looks[2] < 10_000
    game.engine.check_invariants()
