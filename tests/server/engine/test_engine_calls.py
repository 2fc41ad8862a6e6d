"""CALL_ME_LATER and CANCEL_CALL."""

from typing import Any


def waiting_game(play: Any, **options: Any) -> Any:
    """Return a game at time 0 with one job that waits and another to come at 100."""
    game = play(1, [("1", 0, 1, 10, 10), ("2", 100, 1, 10, 10)], **options)
    game.begin()
    return game


def test_call_happens_at_its_time_with_its_id(play: Any) -> None:
    """REQUESTED_CALL wakes the scheduler alone; its id is returned."""
    game = waiting_game(play)

    assert game.say(game.call(7.25, "tick")) == ["7.25 call 'tick'"]


def test_calls_of_one_time_come_in_the_order_asked_for(play: Any) -> None:
    """One notice holds all calls of its instant."""
    game = waiting_game(play)

    assert game.say(game.call(7, "b"), game.call(7, "a"), game.call(6, "c")) == ["6 call 'c'"]
    assert game.say() == ["7 call 'b'", "7 call 'a'"]


def test_call_at_now_happens_at_once(play: Any) -> None:
    """Time does not advance in between."""
    game = waiting_game(play)

    assert game.say(game.call(0, "now")) == ["0 call 'now'"]
    assert game.now == 0.0


def test_calls_without_id_may_repeat_and_cannot_be_cancelled(play: Any) -> None:
    """The empty id names nothing."""
    game = waiting_game(play)
    game.apply(game.call(5), game.call(5), game.cancel(""))

    assert game.advance() == ["0 rejected 2[2] unknown_call"]
    assert game.say() == ["5 call ''", "5 call ''"]


def test_cancelled_call_and_its_time_do_not_happen(play: Any) -> None:
    """Cancelling works in the same reply and later, once."""
    game = waiting_game(play)
    game.apply(game.call(5, "x"), game.cancel("x"), game.call(6, "y"), game.call(3, "z"))

    assert game.advance() == ["3 call 'z'"]
    assert game.say(game.cancel("y"), game.cancel("y")) == ["3 rejected 3[1] unknown_call"]
    assert game.say() == ["100 submitted 2", "100 no_more_jobs"]


def test_a_call_for_now_can_still_be_cancelled(play: Any) -> None:
    """In the reply that asks for it: it has not come yet."""
    game = play(1, [("1", 7, 1, 1, 1)])
    game.advance()

    assert game.say(game.call(0, "x"), game.cancel("x")) == ["7 submitted 1", "7 no_more_jobs"]


def test_an_id_is_free_again_after_its_call_or_its_cancelling(play: Any) -> None:
    """Only a pending id is a duplicate."""
    game = waiting_game(play)
    game.apply(game.call(5, "x"), game.cancel("x"), game.call(6, "x"))

    assert game.advance() == ["6 call 'x'"]
    assert game.say(game.call(8, "x")) == ["8 call 'x'"]
    assert game.say(game.cancel("x")) == ["8 rejected 4[0] unknown_call"]


def test_a_duplicate_leaves_the_first_call_alone(play: Any) -> None:
    """The pending call keeps its time."""
    game = waiting_game(play)

    assert game.say(game.call(5, "x"), game.call(4, "x")) == ["0 rejected 2[1] duplicate_call"]
    assert game.say() == ["5 call 'x'"]


def test_calls_left_over_when_all_jobs_are_done_are_dropped(play: Any) -> None:
    """Without jobs of the scheduler's own nothing can come of a call: the run ends at the last job."""
    game = play(1, [("1", 0, 1, 10, 10)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.call(500, "x")) == ["10 ended 1 SUCCESSFULLY"]
    assert game.say() is None
    assert game.end() == ["10 ends completed"]


def test_calls_left_over_are_kept_for_a_scheduler_that_may_register(play: Any) -> None:
    """With dynamic_jobs a call may lead to another job, so it comes before the run can end."""
    game = play(1, [("1", 0, 1, 10, 10)], features=("dynamic_jobs",))
    game.begin()

    assert game.say(game.execute("1", "0"), game.call(500, "x")) == ["10 ended 1 SUCCESSFULLY"]
    assert game.say() == ["500 call 'x'"]
    assert game.say() is None
    assert game.end() == ["500 ends completed"]


def test_a_call_after_the_last_job_may_be_cancelled_and_the_run_ends_then(play: Any) -> None:
    """A cancelled call does not keep the run alive."""
    game = play(1, [("1", 0, 1, 10, 10)], features=("dynamic_jobs",))
    game.begin()
    game.say(game.execute("1", "0"), game.call(500, "x"))

    assert game.say(game.cancel("x")) is None
    assert game.end() == ["10 ends completed"]


def test_pending_calls_are_limited(play: Any, monkeypatch: Any) -> None:
    """One more is rejected, with an id or without; past and cancelled calls make room."""
    monkeypatch.setattr("pipistrelle.server.engine.verdicts.MAX_CALLS", 2)
    game = waiting_game(play)

    assert game.say(game.call(5, "a"), game.call(7), game.call(8, "b")) == ["0 rejected 2[2] too_many"]
    assert game.say(game.cancel("a"), game.call(6)) == ["6 call ''"]
    assert game.say(game.call(9), game.call(10)) == ["6 rejected 4[1] too_many"]
