"""Jobs on a machine that fails: handling of failures, notices, and new attempts."""

from math import inf
from typing import Any

import pytest

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.server.engine.dependencies import Condition
from pipistrelle.traces.resilience import parse_resilience

CORES = Platform(name="m", pools=(Pool(name="a", nodes=4, units_per_node=4, unit="core"),))
SLOW = Platform(name="m", pools=(Pool(name="a", nodes=2, prologue=5.0, epilogue=5.0),))


# -- handling of failures ----------------------------------------------------------------------------------------------


def test_spares_are_used_up(failing_game: Any, attempts: Any) -> None:
    """With F spares the allocation is given up at failure F + 1; the next attempt keeps the saved work."""
    game = failing_game(
        3,
        [("1", 0, 3, 40, 200)],
        [(0, 15, 16), (0, 20, 21), (1, 40, 41)],
        resilience=parse_resilience(checkpoint="15", dump="1", read="2", spares="1"),
        observers=[attempts],
    )
    game.begin()
    game.say(game.execute("1", "0-2"))
    assert game.now == 15
    lines: list[str] = []
    while game.now < 40:  # repairs and the second failure of a node that is lost already change nothing
        lines = game.say()
    assert lines == ["40 ended 1 FAILED", "40 failed 1 (failure)", "40 submitted 1#1"]
    assert attempts.of("failures_survived", "nodes_lost", "dumps", "saved", "reads") == [(1, 2, 1, 10, 0)]
    assert game.notice.events[-1].data.job.remaining == 0.75


def test_moldable_job_continues_to_its_last_node(failing_game: Any, attempts: Any) -> None:
    """Without a number of spares it is lost with its last node."""
    game = failing_game(
        3,
        [("1", 0, 3, 100, inf)],
        [(0, 10, 500), (2, 20, 500), (1, 30, 500)],
        resilience=parse_resilience(resilience="moldable"),
        observers=[attempts],
    )
    game.begin()
    game.say(game.execute("1", "0-2"))
    game.say()

    assert game.say() == ["30 ended 1 FAILED", "30 failed 1 (failure)", "30 submitted 1#1"]
    assert attempts.of("failures_survived", "nodes_lost", "unit_seconds_lost", "unit_seconds_down") == [(2, 3, 60, 30)]


def test_a_grid_on_nodes_that_make_no_square(failing_game: Any, attempts: Any) -> None:
    """Of five nodes four work and one is spare; the second failure takes a row, the third a column."""
    game = failing_game(
        5,
        [("1", 0, 5, 8, inf)],
        [(0, 1, 500), (4, 2, 500), (1, 3, 500)],
        resilience=parse_resilience(resilience="grid"),
        observers=[attempts],
    )
    game.begin()
    game.say(game.execute("1", "0-4"))
    while not attempts.lines:
        game.say()

    # Spare 1 s; after the second failure 1 x 2 of 3 nodes; the third has its spare, and 1 x 2 remain: 20 s for all.
    assert attempts.of("final_state", "finish_time", "failures_survived") == [("COMPLETED_SUCCESSFULLY", 23, 3)]
    assert attempts.of("unit_seconds_spare", "unit_seconds_down") == [(1 + 0 + 1, 1 + 2 + 60)]


def test_all_nodes_at_once(failing_game: Any) -> None:
    """No resilience survives the loss of all nodes."""
    for kind in ("moldable", "grid"):
        game = failing_game(
            4,
            [("1", 0, 4, 50, inf)],
            [(node, 10, 20) for node in range(4)],
            resilience=parse_resilience(resilience=kind),
        )
        game.begin()
        assert game.say(game.execute("1", "0-3")) == [
            "10 ended 1 FAILED",
            "10 failed 0-3 (failure)",
            "10 submitted 1#1",
        ]


@pytest.mark.parametrize(
    ("options", "walltimes"),
    [
        ({}, (60, 60)),
        ({"restart_walltime": "rest"}, (60, 40)),
        ({"walltime": "extended"}, (60 + 5 * 2, 60 + 5 * 2 + 1)),
        ({"walltime": "extended", "restart_walltime": "rest"}, (60 + 5 * 2, 40 + 3 * 2 + 1)),
    ],
    ids=["full", "rest", "extended", "both"],
)
def test_walltimes_of_attempts(failing_game: Any, options: Any, walltimes: tuple[float, float]) -> None:
    """The new attempt has the full or the remaining walltime, plus the time of its dumps and its read if configured."""
    game = failing_game(
        1,
        [("1", 0, 1, 55, 60)],
        [(0, 25, 26)],
        resilience=parse_resilience(checkpoint="10", dump="2", read="1"),
        **options,
    )
    game.advance()
    game.say()
    first = game.notice.events[0].data.job.walltime
    game.say(game.execute("1", "0"))

    assert (first, game.notice.events[-1].data.job.walltime) == walltimes


def test_the_shortest_walltime_of_an_attempt(failing_game: Any) -> None:
    """A job that has saved work for nearly all of its walltime, or for more, still gets a second."""
    game = failing_game(
        1,
        [("1", 0, 1, 55, 20)],
        [(0, 19.7, 20)],
        resilience=parse_resilience(checkpoint="19.5"),
        restart_walltime="rest",
    )
    game.begin()
    game.say(game.execute("1", "0"))

    assert game.notice.events[-1].data.job.walltime == 1.0


# -- nodes of several units ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [{"spares": "1"}, {"resilience": "grid", "spares": "1"}, {"resilience": "moldable"}])
def test_extended_walltimes_count_nodes_not_units(failing_game: Any, attempts: Any, kind: dict[str, str]) -> None:
    """On nodes of several units a job's walltime is its run time on these nodes, and it ends in time."""
    game = failing_game(
        16,
        [("1", 0, 8, 300, 300)],
        [(3, 10_000, 10_001)],
        platform=CORES,
        walltime="extended",
        resilience=parse_resilience(checkpoint="50", dump="5", read="5", **kind),
        observers=[attempts],
    )
    game.begin()

    assert game.say(game.execute("1", "0-7"))[0].endswith("ended 1 SUCCESSFULLY")


def test_jobs_on_parts_of_nodes(failing_game: Any, attempts: Any) -> None:
    """Each job with units of a node loses the node, and continues if it can; its units are shared out evenly."""
    game = failing_game(
        16,
        [("1", 0, 6, 100, inf), ("2", 0, 2, 100, inf), ("3", 0, 1, 100, inf)],
        [(1, 10, 20)],
        platform=CORES,
        resilience=parse_resilience(spares="1"),
        observers=[attempts],
    )
    game.begin()
    lines = game.say(game.execute("1", "0-5"), game.execute("2", "6-7"), game.execute("3", "8"))

    assert lines == ["10 ended 2 FAILED", "10 failed 1 (failure)", "10 submitted 2#1"]
    while len(attempts.lines) < 3:
        game.say()
    assert attempts.of("job_id", "finish_time", "unit_seconds_down", "unit_seconds_spare") == [
        ("2", 10, 0, 0),
        ("3", 100, 0, 0),
        ("1", 200, 3 * 190, 3 * 10),
    ]


# -- before the begin, and after the end -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"checkpoint": "10", "dump": "1", "read": "1"}])
def test_what_is_told_of_prologues_and_epilogues(failing_game: Any, attempts: Any, options: dict[str, str]) -> None:
    """Nodes lost at that time are announced, with or without dumps; no read has begun, and the work is done."""
    game = failing_game(
        2,
        [("1", 0, 2, 10, 60)],
        [(0, 3, 4), (1, 20, 21)],
        platform=SLOW,
        resilience=parse_resilience(**options),
        observers=[attempts],
    )
    game.begin()
    game.say(game.execute("1", "0-1"))
    game.say()
    game.say(game.execute("1#1", "0-1"))

    assert attempts.of("job_id", "final_state", "nodes_lost", "reads", "saved") == [
        ("1", "COMPLETED_FAILED", 1, 0, 0),
        ("1#1", "COMPLETED_SUCCESSFULLY", 1, 0, 10),
    ]


def test_no_read_has_begun_in_a_prologue(failing_game: Any, attempts: Any) -> None:
    """An attempt that has something to read, and is lost in its prologue, has read nothing."""
    game = failing_game(
        2,
        [("1", 0, 1, 30, 60)],
        [(0, 20, 21), (0, 24, 25)],
        platform=SLOW,
        resilience=parse_resilience(checkpoint="10", dump="1", read="1"),
        observers=[attempts],
    )
    game.begin()
    game.say(game.execute("1", "0"))
    game.say()
    game.say(game.execute("1#1", "0"))

    assert attempts.of("job_id", "saved_before", "reads", "time_reading") == [("1", 0, 0, 0), ("1#1", 10, 0, 0)]


@pytest.mark.parametrize("options", [{}, {"checkpoint": "10", "dump": "1", "read": "1"}])
@pytest.mark.parametrize("how", ["killed", "failed"])
def test_work_that_is_done_is_useful(failing_game: Any, attempts: Any, options: dict[str, str], how: str) -> None:
    """Even if the job is killed in its epilogue, or returns a failure."""
    game = failing_game(
        2,
        [("1", 0, 1, 10, 60)],
        [(1, 900, 901)],
        platform=SLOW,
        resilience=parse_resilience(**options),
        observers=[attempts],
    )
    game.begin()
    game.engine.cluster.waiting["w0!1"].return_code = 3 * (how == "failed")
    game.say(game.execute("1", "0"), game.call(16))
    game.say(*([game.kill("1")] if how == "killed" else []))

    columns = ("final_state", "saved", "unit_seconds_useful", "unit_seconds_unsaved")
    assert attempts.of(*columns) == [(f"COMPLETED_{how.upper()}", 10, 10, 0)]


# -- new attempts ------------------------------------------------------------------------------------------------------


def test_dependencies_wait_for_the_last_attempt(failing_game: Any) -> None:
    """A requeued job has not ended: it has not failed, and it may still succeed."""
    conditions = {
        "w0!2": (Condition("afterok", "w0!1"),),
        "w0!3": (Condition("afternotok", "w0!1"),),
        "w0!4": (Condition("after", "w0!1"),),
    }
    rows = [("1", 0, 1, 50, 60), ("2", 0, 1, 5, 9), ("3", 0, 1, 5, 9), ("4", 0, 1, 5, 9)]
    game = failing_game(1, rows, [(0, 10, 20)], conditions=conditions)
    game.begin()

    assert game.say(game.execute("1", "0")) == ["0 submitted 4"]
    assert game.say(game.reject("4")) == ["10 ended 1 FAILED", "10 failed 0 (failure)", "10 submitted 1#1"]
    game.say()
    assert game.say(game.execute("1#1", "0")) == ["70 ended 1#1 SUCCESSFULLY", "70 submitted 2", "70 no_more_jobs"]
    assert "w0!3" in game.engine.cluster.finished


def test_dependencies_of_a_job_that_is_not_requeued(failing_game: Any) -> None:
    """With requeue "never" it has failed with its nodes."""
    conditions = {"w0!2": (Condition("afterok", "w0!1"),), "w0!3": (Condition("afternotok", "w0!1"),)}
    rows = [("1", 0, 1, 50, 60), ("2", 0, 1, 5, 9), ("3", 0, 1, 5, 9)]
    game = failing_game(2, rows, [(0, 10, 20)], conditions=conditions, requeue="never")
    game.begin()

    assert game.say(game.execute("1", "0")) == [
        "10 ended 1 FAILED",
        "10 failed 0 (failure)",
        "10 submitted 3",
        "10 no_more_jobs",
    ]
    assert "w0!2" in game.engine.cluster.finished


def test_an_attempt_that_is_rejected_was_the_last(failing_game: Any) -> None:
    """A scheduler may refuse a job that comes back."""
    game = failing_game(
        1,
        [("1", 0, 1, 50, 60), ("2", 0, 1, 5, 9)],
        [(0, 10, 20)],
        conditions={"w0!2": (Condition("afterany", "w0!1"),)},
    )
    game.begin()
    game.say(game.execute("1", "0"))

    assert game.say(game.reject("1#1")) == ["10 submitted 2", "10 no_more_jobs"]


def test_names_of_attempts_step_aside(failing_game: Any, attempts: Any) -> None:
    """A used name is not used again; the attempts' numbers and their limit do not depend on it."""
    rows = [("1#1", 0, 1, 5, 60), ("1", 0, 1, 50, 60)]
    game = failing_game(2, rows, [(0, 10, 11), (0, 20, 21), (0, 30, 31)], max_attempts=3, observers=[attempts])
    game.begin()
    game.say(game.execute("1#1", "1"), game.execute("1", "0"))
    assert game.say()[-1] == "10 submitted 1#2"
    game.say()
    assert game.say(game.execute("1#2", "0"))[-1] == "20 submitted 1#3"
    game.say()
    assert game.say(game.execute("1#3", "0")) == ["30 ended 1#3 FAILED", "30 failed 0 (failure)"]
    assert attempts.of("job_id", "attempt")[1:] == [("1", 0), ("1#2", 1), ("1#3", 2)]
