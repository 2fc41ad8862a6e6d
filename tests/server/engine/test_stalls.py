"""The stall detector: each cause, the text that names it, and cases that are not a stall."""

from collections.abc import Callable
from typing import Any

import pytest

from pipistrelle.server.engine import stalls
from pipistrelle.server.errors import Stalled


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let 20 fruitless notices be too many, instead of 10,000."""
    monkeypatch.setattr(stalls, "MAX_FRUITLESS", 20)
    return 20


def repeat(times: int, act: Callable[[], Any]) -> None:
    """Do something again and again."""
    for _ in range(times):
        act()


def test_jobs_never_started_are_a_stall(play: Any) -> None:
    """Nothing runs, nothing is coming, jobs wait: the run ends and names the time, the number and the jobs."""
    rows = [(str(number), 0, number, 5, 5) for number in range(1, 6)]
    game = play(8, rows)
    game.begin()
    with pytest.raises(Stalled) as caught:
        game.say()

    assert caught.value.exit_code == 5
    assert str(caught.value) == (
        "simulated time 0.0: the run stalled: jobs wait, nothing runs, and no event is left: expected the scheduler "
        "to start or reject every job, found 5 waiting, 0 running, 8 units free; first w0!1 (1 units), w0!2 (2 units), "
        "w0!3 (3 units) and 2 more. The scheduler replied to the last notice without starting or rejecting them. "
        "It must start a job as soon as it fits, reject a job that never will, or ask to be called later."
    )


def test_stall_is_detected_only_when_nothing_follows(play: Any) -> None:
    """While a job runs, a submission or a call is to come, or a decision is dated ahead, waiting is legal."""
    game = play(1, [("1", 0, 1, 5, 5), ("2", 20, 1, 5, 5)])
    game.begin()

    assert game.say(game.call(7)) == ["7 call ''"]
    assert game.say() == ["20 submitted 2", "20 no_more_jobs"]
    assert game.say(game.execute("1", "0", at=30)) == ["35 ended 1 SUCCESSFULLY"]
    with pytest.raises(Stalled, match=r"simulated time 35\.0.*1 waiting, 0 running, 1 units free; first w0!2"):
        game.say()


def test_an_illegal_start_repeated_at_one_instant_is_a_stall(play: Any, impatient: int) -> None:
    """A scheduler that insists on a rejected decision does not hang the run."""
    game = play(1, [("1", 3, 1, 5, 5), ("2", 90, 1, 5, 5)])
    game.begin()
    with pytest.raises(Stalled, match=r"20 notices were sent at simulated time 3\.0 without time advancing"):
        repeat(impatient + 2, lambda: game.say(game.execute("1", "7")))


def test_calls_at_now_without_end_are_a_stall(play: Any, impatient: int) -> None:
    """Repeated calls at once keep time from advancing even while jobs run."""
    game = play(1, [("1", 3, 1, 5, 5)])
    game.begin()
    game.say(game.execute("1", "0"), game.call(game.now))
    with pytest.raises(Stalled, match="found 0 waiting, 1 running, 0 units free"):
        repeat(impatient + 2, lambda: game.say(game.call(game.now)))


def test_calls_without_effect_on_an_idle_machine_are_a_stall(play: Any, impatient: int) -> None:
    """Time advances, but nothing else happens: the run ends and names the pattern."""
    game = play(1, [("1", 0, 1, 5, 5)])
    game.begin()
    with pytest.raises(Stalled, match=r"20 notices had no effect while the machine is idle"):
        repeat(impatient + 2, lambda: game.say(game.call(game.now + 1)))


def test_illegal_decisions_dated_ahead_without_end_are_a_stall(play: Any, impatient: int) -> None:
    """The same pattern with thinking time: each try is rejected a little later, and nothing else happens."""
    game = play(1, [("1", 0, 1, 5, 5)])
    game.begin()
    with pytest.raises(Stalled):
        repeat(3 * impatient, lambda: game.say(game.execute("1", "7", at=game.now + 1)))


def test_calls_while_a_job_runs_or_is_to_come_are_patience(play: Any, impatient: int) -> None:
    """A scheduler that ticks through a long job, or a long gap, is not stalled."""
    game = play(1, [("1", 0, 1, 100, 100), ("2", 300, 1, 5, 5)])
    game.begin()
    game.say(game.execute("1", "0"), game.call(1))
    while game.now < 300:
        game.say(game.call(game.now + 1))

    assert game.now == 300.0


def test_a_job_that_moves_starts_the_count_again(play: Any, impatient: int) -> None:
    """Only notices in a row without any step count."""
    rows = [(str(number), 0, 1, 5, 5) for number in range(5)]
    game = play(1, rows)
    game.begin()
    for name in "0123":
        for _ in range(impatient - 2):
            game.say(game.call(game.now + 1))
        game.say(game.reject(name), game.call(game.now + 1))

    assert game.now == 4.0 * (impatient - 1)


def test_many_notices_at_one_instant_are_legal_up_to_the_limit(play: Any, impatient: int) -> None:
    """Instants with several notices happen, as when each rejection is answered by another try."""
    game = play(1, [("1", 3, 1, 5, 5)])
    game.begin()
    for _ in range(impatient - 2):
        game.say(game.call(3.0))

    assert game.say(game.execute("1", "0")) == ["8 ended 1 SUCCESSFULLY"]


def test_the_real_limit_is_far_from_honest_schedulers() -> None:
    """Ten thousand fruitless notices."""
    assert stalls.MAX_FRUITLESS == 10_000
