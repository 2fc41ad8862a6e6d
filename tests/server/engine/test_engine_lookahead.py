"""Lookahead: notices tell the time of the next event, and come at each event."""

from typing import Any

import pytest

from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.codec import encode
from pipistrelle.protocol.messages import WakeWhen

FEATURES = ("lookahead", "wake_filter", "wake_when")
#: a job at 2 that is killed after its walltime of 5 s, and a job of 2 s at 4
ROWS = [("1", 2, 1, 50, 5), ("2", 4, 1, 2, 9)]


def begun(play: Any, **more: Any) -> Any:
    """Return the game with its first notice."""
    game = play(2, ROWS, **{"features": FEATURES, **more})
    game.advance()
    return game


def test_a_notice_tells_when_something_happens_next(play: Any) -> None:
    """Submissions, ends by themselves and ends at the walltime; nothing comes after the last."""
    game = begun(play)
    assert game.notice.next == 2

    seen = []
    for decisions in ([], [game.execute("1", "0", at=2)], [game.execute("2", "1", at=4)], []):
        assert game.say(*decisions) is not None
        seen.append((game.now, game.notice.next))

    assert seen == [(2, 4), (4, 7), (6, 7), (7, None)]


@pytest.mark.parametrize("features", [(), ("wake_filter", "wake_when", "failures")])
def test_without_the_feature_no_notice_tells_it(play: Any, features: tuple[str, ...]) -> None:
    """The field is absent."""
    game = begun(play, features=features)

    assert b"next" not in encode(game.notice)


def test_each_event_causes_a_notice_whatever_the_filter_says(play: Any) -> None:
    """Filters and conditions that let nothing through have no effect."""
    game = begun(play)

    assert game.say(wake=(), when=WakeWhen((), ())) == ["2 submitted 1"]


def test_a_dated_decision_is_followed_by_a_notice_at_its_time(play: Any) -> None:
    """The notice has no events, and tells the end of the job that the decision started."""
    game = begun(play)
    game.say()

    assert game.say(game.execute("1", "0", at=3.5), now=3.5) == []
    assert (game.now, game.notice.next) == (3.5, 4)
    game.say()
    assert game.notice.next == 8.5


def test_the_horizon_bounds_it(play: Any) -> None:
    """Nothing happens at or after the end of the run."""
    game = begun(play, until=3.0)
    game.say()

    assert game.notice.next == 3.0
    assert game.say() is None


def test_an_event_that_was_cancelled_is_not_told(play: Any) -> None:
    """Killing the only running job leaves nothing to come."""
    game = begun(play)
    game.say()
    game.say(game.execute("1", "0"))
    assert game.notice.next == 7

    game.say(game.kill("1"), game.reject("2"))

    assert (game.now, game.notice.next) == (4, None)


def test_a_restored_run_tells_the_same(play: Any) -> None:
    """What comes next follows from the state."""
    game, again = begun(play), play(2, ROWS, features=FEATURES)
    game.say()
    game.apply(game.execute("1", "0"))
    again.engine.restore(from_json(to_json(game.engine.state())))

    assert again.engine.advance() == game.engine.advance()
