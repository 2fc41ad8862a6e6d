"""Wake conditions: which submissions and ends of jobs wake the scheduler, when, and that nothing is lost."""

from typing import Any

import pytest

from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.messages import WakeAtEnd, WakeAtSubmission, WakeWhen

FEATURES = ("wake_filter", "wake_when")
#: three jobs at 0, which end at 5, 9 and 20; then jobs of 2, 1 and 3 units
ROWS = [
    ("1", 0, 1, 5, 5),
    ("2", 0, 1, 9, 9),
    ("3", 0, 1, 20, 20),
    ("4", 2, 2, 5, 5),
    ("5", 3, 1, 5, 50),
    ("6", 7, 3, 5, 5),
]


def ends(*conditions: WakeAtEnd) -> WakeWhen:
    """Return conditions on ends of jobs alone."""
    return WakeWhen((), conditions)


def submissions(*conditions: WakeAtSubmission) -> WakeWhen:
    """Return conditions on submissions alone."""
    return WakeWhen(conditions, ())


def begun(play: Any, units: int = 3, **more: Any) -> Any:
    """Return the game after the beginning; the jobs 1 to 3 are about to start on the units 0 to 2."""
    game = play(units, ROWS, **{"features": FEATURES, **more})
    game.begin()
    return game


def starts(game: Any) -> list[Any]:
    """Return the decisions that start the jobs 1 to 3."""
    return [game.execute(str(number), str(number - 1)) for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("when", "wakes_at", "last"),
    [
        (WakeWhen(), 2, "2 submitted 4"),
        (ends(WakeAtEnd()), 5, "5 ended 1 SUCCESSFULLY"),
        (ends(WakeAtEnd(free=1)), 5, "5 ended 1 SUCCESSFULLY"),
        (ends(WakeAtEnd(free=2)), 9, "9 ended 2 SUCCESSFULLY"),
        (ends(WakeAtEnd(free=3)), 20, "20 ended 3 SUCCESSFULLY"),
        (ends(WakeAtEnd(free=1, units="1-2")), 9, "9 ended 2 SUCCESSFULLY"),
        (ends(WakeAtEnd(free=2, units="0 2")), 20, "20 ended 3 SUCCESSFULLY"),
        (ends(WakeAtEnd(jobs=("w0!2", "w0!3"))), 9, "9 ended 2 SUCCESSFULLY"),
        (ends(WakeAtEnd(jobs=("w0!2",), free=3)), 20, "20 ended 3 SUCCESSFULLY"),
        (ends(WakeAtEnd(free=3), WakeAtEnd(jobs=("w0!2",))), 9, "9 ended 2 SUCCESSFULLY"),
        (ends(WakeAtEnd(time=6.5)), 6.5, "5 ended 1 SUCCESSFULLY"),
        (ends(WakeAtEnd(time=6.5, free=2)), 9, "9 ended 2 SUCCESSFULLY"),
        (ends(WakeAtEnd(time=30.0), WakeAtEnd(time=8.0)), 8, "7 no_more_jobs"),
        (submissions(WakeAtSubmission(spare=0)), 5, "5 ended 1 SUCCESSFULLY"),
        (submissions(WakeAtSubmission(spare=1)), 9, "9 ended 2 SUCCESSFULLY"),
        (submissions(WakeAtSubmission(free=2)), 9, "9 ended 2 SUCCESSFULLY"),
        (submissions(WakeAtSubmission(spare=0, ends_by=7.0)), 9, "9 ended 2 SUCCESSFULLY"),
        (submissions(WakeAtSubmission(ends_by=12.0, jobs=("w0!6",))), 7, "7 no_more_jobs"),
        (submissions(WakeAtSubmission(time=4.0)), 4, "3 submitted 5"),
    ],
)
def test_an_event_wakes_when_one_of_its_conditions_holds(play: Any, when: WakeWhen, wakes_at: float, last: str) -> None:
    """The notice comes when the condition holds, and has all events until then, in order."""
    game = begun(play)

    lines = game.say(*starts(game), wake=("JOB_SUBMITTED", "JOB_COMPLETED"), when=when)

    assert (game.now, lines[-1]) == (wakes_at, last)
    times = [0, *(float(one.split()[0]) for one in lines)]
    assert times == sorted(times)


def test_without_conditions_on_it_a_type_wakes_as_the_filter_says(play: Any) -> None:
    """Conditions restrict the types that they name; the filter comes first."""
    game = begun(play)

    assert game.say(*starts(game), when=WakeWhen(completed=())) == ["2 submitted 4"]
    assert game.say(wake=("JOB_COMPLETED",), when=WakeWhen((WakeAtSubmission(),)))[-1] == "5 ended 1 SUCCESSFULLY"
    assert game.say() == ["7 submitted 6", "7 no_more_jobs"]


def test_without_the_feature_conditions_have_no_effect(play: Any) -> None:
    """Every event wakes, even with conditions that never hold."""
    game = begun(play, features=("wake_filter",))

    assert game.say(*starts(game), when=WakeWhen((), ())) == ["2 submitted 4"]


def test_conditions_last_until_the_next_reply(play: Any) -> None:
    """Held events and their conditions are gone with the notice that tells them."""
    game = begun(play)
    both = ("JOB_SUBMITTED", "JOB_COMPLETED")

    assert game.say(*starts(game), wake=both, when=ends(WakeAtEnd(free=1)))[-1] == "5 ended 1 SUCCESSFULLY"
    assert game.say(wake=both, when=ends(WakeAtEnd(free=3)))[-1] == "20 ended 3 SUCCESSFULLY"


def test_what_is_held_at_the_end_comes_when_nothing_else_can_happen(play: Any) -> None:
    """Jobs wait, and no condition can hold any more."""
    game = begun(play)

    lines = game.say(*starts(game), wake=("JOB_SUBMITTED", "JOB_COMPLETED"), when=WakeWhen((), ()))
    assert lines[-1] == "20 ended 3 SUCCESSFULLY"
    assert len(lines) == 7


def test_jobs_that_may_have_to_be_rejected_always_wake(play: Any) -> None:
    """A job larger than the machine does not wait for units."""
    game = play(2, [("1", 0, 1, 5, 5), ("2", 3, 9, 5, 5)], features=FEATURES)
    game.begin()

    assert game.say(game.execute("1", "0"), when=WakeWhen((), ())) == ["3 submitted 2", "3 no_more_jobs"]


@pytest.mark.parametrize("text", ["0-3", "2-1", "x"])
def test_units_that_do_not_exist_are_an_error(play: Any, text: str) -> None:
    """The machine has the units 0 to 2."""
    game = begun(play)

    with pytest.raises(RemoteProtocolError, match="'units' of a wake condition"):
        game.say(*starts(game), when=ends(WakeAtEnd(free=1, units=text)))


@pytest.mark.parametrize(
    "when",
    [
        WakeWhen((WakeAtSubmission(spare=1),), (WakeAtEnd(free=3),)),
        WakeWhen((WakeAtSubmission(time=8.0),), ()),
        WakeWhen((WakeAtSubmission(spare=0, units="1-2"),), ()),
    ],
)
def test_a_run_continues_with_held_events(play: Any, when: WakeWhen) -> None:
    """Conditions, held events and the time at which they wake are part of the state."""
    both = ("JOB_SUBMITTED", "JOB_COMPLETED")
    game, again = begun(play), play(3, ROWS, features=FEATURES)
    game.apply(*starts(game), game.kill("2"), wake=both, when=when)
    assert game.engine.clockwork.outbox
    again.engine.restore(from_json(to_json(game.engine.state())))

    assert again.engine.advance() == game.engine.advance()
    assert again.now == game.now
