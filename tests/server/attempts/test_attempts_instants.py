"""Jobs on a machine that fails and is maintained: what happens when several things come at one instant."""

from math import inf
from typing import Any

import pytest

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.server.engine.dependencies import Condition
from pipistrelle.server.errors import Stalled
from pipistrelle.traces.resilience import parse_resilience

SLOW = Platform(name="m", pools=(Pool(name="a", nodes=2, prologue=5.0, epilogue=5.0),))


def play_on(game: Any, end: float) -> None:
    """Decide nothing up to a time."""
    while game.now < end:
        game.say()


# -- maintenance -----------------------------------------------------------------------------------------------------


def test_maintenance_begins_at_a_node_that_has_failed(failing_game: Any) -> None:
    """The node is up when neither keeps it down; both are announced at their times."""
    game = failing_game(2, [("1", 0, 1, 90, 90)], [(0, 10, 30)], rules=["@20 +20s 0 named m"])
    game.begin()

    assert game.say(game.execute("1", "1")) == ["10 failed 0 (failure)"]
    assert [game.say()[0] for _ in range(3)] == [
        "20 maintenance m begins 0",
        "30 repaired 0",
        "40 maintenance m ends 0",
    ]
    assert game.engine.lives.attempts.down == type(game.engine.lives.attempts.down).EMPTY


def test_a_node_fails_during_its_maintenance(failing_game: Any) -> None:
    """It stays down after the maintenance until its repair."""
    game = failing_game(2, [("1", 0, 1, 90, 90), ("2", 0, 1, 5, 9)], [(0, 30, 60)], rules=["@20 +20s 0 named m"])
    game.begin()
    game.say(game.execute("1", "1"))

    assert game.notice.now == 20
    assert game.say() == ["30 failed 0 (failure)"]
    assert game.say() == ["40 maintenance m ends 0"]
    assert game.say(game.execute("2", "0")) == ["40 rejected 5[0] busy_unit"]
    assert game.say() == ["60 repaired 0"]
    assert game.say(game.execute("2", "0")) == ["65 ended 2 SUCCESSFULLY"]


def test_maintenance_takes_the_nodes_of_a_job(failing_game: Any, attempts: Any) -> None:
    """A job that still runs loses them, for the cause that the rule tells."""
    game = failing_game(1, [("1", 0, 1, 50, 60)], rules=["@20 +20s all named m cause pumps"], observers=[attempts])
    game.begin()

    assert game.say(game.execute("1", "0")) == ["20 ended 1 FAILED", "20 maintenance m begins 0", "20 submitted 1#1"]
    assert attempts.of("cause", "nodes_lost", "unit_seconds_lost") == [("pumps", 1, 20)]


@pytest.mark.parametrize(
    ("outages", "rules"),
    [
        ([], ["@3 +17s all named a", "@20 +10s all announced @10 named b"]),
        ([], ["@3 +17s all announced @2 named a", "@20 +10s all named b"]),
        ([(0, 3, 20)], ["@20 +10s all"]),
        ([(0, 3, 20), (0, 20, 30)], []),
    ],
    ids=["end, begin", "begin, end", "repair, begin", "repair, failure"],
)
def test_who_waits_for_a_node_waits_on_if_it_goes_down_as_it_comes_up(
    failing_game: Any, attempts: Any, outages: Any, rules: Any
) -> None:
    """A job is not begun for no time at all, to be lost again in the same instant."""
    game = failing_game(1, [("1", 5, 1, 50, 60)], outages, rules=rules, aware=False, observers=[attempts])
    game.begin()

    assert game.say(game.execute("1", "0")) == ["80 ended 1 SUCCESSFULLY"]
    assert attempts.of("starting_time", "begin_time", "unit_seconds_waiting") == [(5, 30, 25)]


def test_maintenance_of_many_kinds_of_jobs_that_wait(failing_game: Any, attempts: Any) -> None:
    """The same for a job with dumps and a prologue; the work then begins normally."""
    game = failing_game(
        2,
        [("1", 5, 2, 20, 40)],
        [(0, 3, 20)],
        rules=["@20 +10s 1"],
        aware=False,
        observers=[attempts],
        platform=SLOW,
        resilience=parse_resilience(checkpoint="10", dump="2", read="1"),
    )
    game.begin()

    assert game.say(game.execute("1", "0-1")) == ["62 ended 1 SUCCESSFULLY"]
    assert attempts.of("begin_time", "dumps", "unit_seconds_waiting", "unit_seconds_overhead") == [(35, 1, 50, 20)]


# -- one instant -----------------------------------------------------------------------------------------------------


def test_everything_at_one_instant(failing_game: Any) -> None:
    """Ends, failures, repairs, maintenance, new attempts, new jobs, calls: in this order, in one notice."""
    game = failing_game(
        5,
        [("1", 0, 1, 50, 60), ("2", 0, 1, 50, 60), ("3", 50, 1, 1, 9)],
        [(1, 50, 60), (2, 40, 50)],
        rules=["@50 +5s 3 named m"],
    )
    game.begin()
    game.say(game.execute("1", "0"), game.execute("2", "1", at=5), game.call(50, "late"))

    assert game.say() == [
        "50 ended 1 SUCCESSFULLY",
        "50 ended 2 FAILED",
        "50 failed 1 (failure)",
        "50 repaired 2",
        "50 maintenance m begins 3",
        "50 submitted 2#1",
        "50 submitted 3",
        "50 no_more_jobs",
        "50 call 'late'",
    ]
    assert game.say(game.kill("2")) == ["50 killed 2"]


def test_future_start_fails_on_a_failed_node(failing_game: Any) -> None:
    """A start at the instant of a failure finds the node down."""
    game = failing_game(1, [("1", 0, 1, 50, 60)], [(0, 10, 20)])
    game.begin()

    assert game.say(game.execute("1", "0", at=10)) == ["10 failed 0 (failure)", "10 rejected 2[0] busy_unit"]


def test_jobs_of_no_length_are_done_before_anything_fails(failing_game: Any) -> None:
    """A job that waits for a node and takes no time is done as soon as that is up, whatever comes next."""
    game = failing_game(1, [("1", 5, 1, 0, 60)], [(0, 3, 20)], rules=["@20 +10s all"], aware=False)
    game.begin()

    assert game.say(game.execute("1", "0")) == ["20 ended 1 SUCCESSFULLY"]


@pytest.mark.parametrize("options", [{}, {"checkpoint": "100", "dump": "1", "read": "1"}, {"spares": "1"}])
@pytest.mark.parametrize(
    ("runtime", "walltime", "fails", "state"),
    [
        (10, 60, 15, "SUCCESSFULLY"),
        (10, 60, 17, "SUCCESSFULLY"),
        (20, 10, 15, "WALLTIME_REACHED"),
        (20, 10, 17, "WALLTIME_REACHED"),
    ],
)
def test_work_has_ended_before_the_epilogue(
    failing_game: Any, options: dict[str, str], runtime: float, walltime: float, fails: float, state: str
) -> None:
    """A node that fails at the very end of the work, or in the epilogue, ends the job as it would have ended."""
    runtime /= 1 + ("spares" in options)  # one of two nodes works
    game = failing_game(
        2, [("1", 0, 2, runtime, walltime)], [(0, fails, 90)], platform=SLOW, resilience=parse_resilience(**options)
    )
    game.begin()

    assert game.say(game.execute("1", "0-1"))[0] == f"{fails} ended 1 {state}"
    assert game.say() is None


@pytest.mark.parametrize("kind", [{"spares": "1"}, {"resilience": "moldable"}, {"resilience": "grid", "spares": "1"}])
@pytest.mark.parametrize(("fails", "ended"), [(4, ["4 ended 1 FAILED"]), (5, [])])
def test_no_job_survives_a_failure_in_the_prologue(
    failing_game: Any, kind: dict[str, str], fails: float, ended: list[str]
) -> None:
    """Before the work begins the job cannot continue with fewer nodes; from the start of the work it can."""
    game = failing_game(2, [("1", 0, 2, 50, inf)], [(1, fails, 90)], platform=SLOW, resilience=parse_resilience(**kind))
    game.begin()

    lines = game.say(game.execute("1", "0-1"))
    assert [text for text in lines if "ended" in text] == ended


# -- jobs that wait for nodes that are down ----------------------------------------------------------------------------


def test_a_job_that_waits_is_killed(failing_game: Any, attempts: Any) -> None:
    """It has done nothing, and its nodes have waited; so have those of a job that was never ended."""
    game = failing_game(2, [("1", 5, 2, 50, 60)], [(0, 1, 30), (1, 20, 40)], aware=False, observers=[attempts])
    game.begin()
    game.say(game.execute("1", "0-1"), game.call(25))

    assert game.say(game.kill("1")) == ["25 ended 1 KILLED", "25 killed 1=0"]
    assert attempts.of("begin_time", "unit_seconds_waiting", "nodes_lost") == [("", 40, 0)]


def test_a_job_is_lost_after_it_has_waited(failing_game: Any, attempts: Any) -> None:
    """Waiting time is not lost time."""
    game = failing_game(1, [("1", 5, 1, 50, 60)], [(0, 1, 30), (0, 40, 50)], aware=False, observers=[attempts])
    game.begin()

    assert game.say(game.execute("1", "0")) == ["40 ended 1 FAILED", "40 submitted 1#1"]
    assert attempts.of("begin_time", "unit_seconds_waiting", "unit_seconds_lost") == [(30, 25, 10)]


@pytest.mark.parametrize("aware", [True, False])
def test_jobs_that_are_kept_back_do_not_hide_a_stall(
    failing_game: Any, monkeypatch: pytest.MonkeyPatch, aware: bool
) -> None:
    """A scheduler that starts nothing while nodes keep failing is detected, even if jobs depend on waiting ones."""
    monkeypatch.setattr("pipistrelle.server.outages.failures.MAX_FRUITLESS", 5)
    outages = [(0, at, at + 1) for at in range(10, 1000, 2)]
    conditions = {"w0!2": (Condition("afterok", "w0!1"),)}
    game = failing_game(1, [("1", 0, 1, 50, 60), ("2", 0, 1, 5, 9)], outages, conditions=conditions, aware=aware)
    game.begin()

    with pytest.raises(Stalled, match="50 outages passed, and no job made a step"):
        play_on(game, outages[-1][1])
