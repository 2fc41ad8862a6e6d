"""Nodes that fail and are repaired under an engine: notices, effects on jobs, and their order."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.durations import Exponential, Fixed
from pipistrelle.platforms.failures.models import FailureModel
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.failures.plan import FailurePlan, Source
from pipistrelle.server.errors import Stalled
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.resilience import parse_resilience

#: (node, down, up) or (node, down, up, cause); times in seconds
Row = tuple[Any, ...]


@pytest.fixture
def failing(play: Any) -> Callable[..., Any]:
    """Return a function that makes a game on a machine with these outages, with the failures feature."""

    def make(units: int, rows: list[Any], outages: list[Row], *, aware: bool = True, **options: Any) -> Any:
        named = {key: options.pop(key) for key in ("observers", "platform") if key in options}
        reliability = Reliability(outages=Outages.of(Outage(*row) for row in outages), **options)
        return play(units, rows, features=("failures",) if aware else (), reliability=reliability, **named)

    return make


def test_failure_ends_the_job_there_and_requeues_it(failing: Any) -> None:
    """The job's end, the node, then the new attempt are announced in this order; repair returns the units."""
    game = failing(2, [("1", 0, 1, 50, 60)], [(0, 10, 30, "fan")])
    game.begin()

    assert game.say(game.execute("1", "0")) == ["10 ended 1 FAILED", "10 failed 0 (fan)", "10 submitted 1#1"]
    ended, _, again = game.notice.events
    assert (ended.data.cause, ended.data.return_code) == ("fan", -1)
    assert (again.data.job.attempt, again.data.job.subtime, again.data.job.remaining) == (1, 0.0, 1.0)
    assert game.say(game.execute("1#1", "0")) == ["10 rejected 3[0] busy_unit"]
    assert game.say(game.execute("1#1", "1")) == ["30 repaired 0"]
    assert game.say() == ["60 ended 1#1 SUCCESSFULLY"]


def test_idle_node_fails_and_others_continue(failing: Any) -> None:
    """Jobs on other nodes are not hurt, and a unit that is down cannot be had until its repair."""
    game = failing(2, [("1", 0, 1, 50, 60), ("2", 0, 1, 5, 60)], [(1, 10, 20)])
    game.begin()

    assert game.say(game.execute("1", "0")) == ["10 failed 1 (failure)"]
    assert game.say(game.execute("2", "1")) == ["10 rejected 3[0] busy_unit"]
    assert game.say() == ["20 repaired 1"]
    assert game.say(game.execute("2", "1")) == ["25 ended 2 SUCCESSFULLY"]


def test_completion_wins(failing: Any) -> None:
    """A job that is done at the very time its node fails is done."""
    game = failing(1, [("1", 0, 1, 10, 60)], [(0, 10, 20)])
    game.begin()

    assert game.say(game.execute("1", "0")) == ["10 ended 1 SUCCESSFULLY", "10 failed 0 (failure)"]


def test_a_failure_and_a_repair_at_one_time(failing: Any) -> None:
    """A node that fails as another is repaired: failures come first; touching outages of a node leave it down."""
    game = failing(3, [("1", 0, 1, 50, 60)], [(0, 10, 20), (1, 20, 25), (2, 20, 30), (0, 20, 40)])
    game.begin()

    assert game.say() == ["10 failed 0 (failure)"]
    assert game.say() == ["20 failed 1-2 (failure)"]
    assert game.say() == ["25 repaired 1"]
    assert game.say() == ["30 repaired 2"]
    assert game.say() == ["40 repaired 0"]


def test_several_nodes_at_once_end_a_job_once(failing: Any) -> None:
    """Nodes that fail together end their job once; each cause is reported separately."""
    game = failing(4, [("1", 0, 3, 50, 60), ("2", 0, 1, 50, 60)], [(0, 10, 30, "fan"), (1, 10, 20, "fan"), (3, 10, 20)])
    game.begin()

    assert game.say(game.execute("1", "0-2"), game.execute("2", "3")) == [
        "10 ended 1 FAILED",
        "10 ended 2 FAILED",
        "10 failed 0-1 (fan)",
        "10 failed 3 (failure)",
        "10 submitted 1#1",
        "10 submitted 2#1",
    ]


def test_jobs_that_share_a_node_all_lose_it(failing: Any) -> None:
    """On a machine whose units are cores a node takes down all jobs that have some of its cores."""
    platform = Platform(name="m", pools=(Pool(name="a", nodes=2, units_per_node=2, unit="core"),))
    rows = [("1", 0, 1, 50, 60), ("2", 0, 2, 50, 60), ("3", 0, 1, 50, 60)]
    game = failing(4, rows, [(0, 10, 20)], platform=platform)
    game.begin()

    lines = game.say(game.execute("1", "0"), game.execute("2", "1-2"), game.execute("3", "3"))
    assert lines[:3] == ["10 ended 1 FAILED", "10 ended 2 FAILED", "10 failed 0 (failure)"]
    assert game.notice.events[2].data.units == "0-1"


@pytest.mark.parametrize(("policy", "subtime"), [("original", 0.0), ("back", None)])
def test_where_a_job_queues_again(failing: Any, policy: str, subtime: float | None) -> None:
    """By its original submit time, or as a job that is submitted now."""
    game = failing(1, [("1", 0, 1, 50, 60)], [(0, 10, 20)], requeue=policy)
    game.begin()
    game.say(game.execute("1", "0"))

    assert game.notice.events[-1].data.job.subtime == subtime


def test_a_job_that_is_not_queued_again_has_failed(failing: Any) -> None:
    """With requeue "never" a job ends with its nodes."""
    game = failing(2, [("1", 0, 1, 50, 60)], [(0, 10, 20)], requeue="never")
    game.begin()

    assert game.say(game.execute("1", "0")) == ["10 ended 1 FAILED", "10 failed 0 (failure)"]
    assert game.say() is None


def test_the_number_of_attempts_is_limited(failing: Any) -> None:
    """The job fails for good when its last attempt does."""
    game = failing(1, [("1", 0, 1, 50, 60)], [(0, 10, 20), (0, 30, 40)], max_attempts=2)
    game.begin()
    assert game.say(game.execute("1", "0"))[-1] == "10 submitted 1#1"
    game.say()

    assert game.say(game.execute("1#1", "0")) == ["30 ended 1#1 FAILED", "30 failed 0 (failure)"]
    assert game.say() is None


def test_scheduler_without_the_feature_gets_job_events_only(failing: Any) -> None:
    """It may start a job on a node that is down: the job begins when the node is up, with its whole walltime."""
    game = failing(1, [("1", 0, 1, 50, 60)], [(0, 10, 30)], aware=False)
    game.begin()

    assert game.say(game.execute("1", "0")) == ["10 ended 1 FAILED", "10 submitted 1#1"]
    assert game.say(game.execute("1#1", "0")) == ["80 ended 1#1 SUCCESSFULLY"]


def test_a_held_job_meets_more_failures_and_a_kill(failing: Any) -> None:
    """A job that waits on its units for a repair can lose more of them, and can be killed."""
    game = failing(2, [("1", 5, 2, 50, 60)], [(0, 1, 30), (1, 20, 40)], aware=False)
    game.begin()

    assert game.say(game.execute("1", "0-1"), game.call(45)) == ["45 call ''"]
    assert game.say(game.kill("1")) == ["45 ended 1 KILLED", "45 killed 1=0.1"]


def test_node_that_is_never_repaired_is_unusable(failing: Any) -> None:
    """A job is neither started on it nor held for it, even for a scheduler without the feature."""
    game = failing(2, [("1", 5, 2, 50, 60)], [(0, 1, 30), (1, 20, inf)], aware=False)
    game.begin()

    assert game.say(game.execute("1", "0-1")) == ["20 ended 1 FAILED", "20 submitted 1#1"]
    assert game.say(game.execute("1#1", "0-1")) == ["20 rejected 3[0] busy_unit"]


def test_endless_failures_do_not_hide_a_stall(play: Any) -> None:
    """A scheduler that starts nothing is detected although nodes keep failing."""
    from pipistrelle.platforms.failures.durations import Exponential, Fixed
    from pipistrelle.platforms.failures.models import FailureModel
    from pipistrelle.platforms.failures.plan import FailurePlan, Source

    plan = FailurePlan((Source(FailureModel(Exponential(100.0), Fixed(10.0)), range(2)),))
    game = play(2, [("1", 0, 1, 50, 60)], reliability=Reliability(failures=plan))
    game.begin()

    with pytest.raises(Stalled, match="no job made a step"):
        game.say()


def test_states_of_the_machine_add_up(failing: Any, diary: Any) -> None:
    """Free units and units down are counted apart; those that are down and held are the job's."""
    game = failing(3, [("1", 0, 1, 50, 60)], [(0, 10, 20), (2, 10, 20)], observers=[diary], requeue="never")
    game.begin()
    game.say(game.execute("1", "0"))
    game.say()
    game.end()
    settled = [text for text in diary.lines if "settled" in text]

    assert settled == ["0 settled 2", "10 settled 1 down 2"]


@pytest.mark.parametrize("end", [10, 20, 30])
def test_states_of_a_machine_whose_scheduler_knows_nothing(failing: Any, diary: Any, end: int) -> None:
    """An idle node that fails or returns is a new state, although any unit may be allocated at any time.

    So it is if it was the last thing that happened.
    """
    game = failing(2, [("1", 0, 1, 50, 60)], [(1, 10, 20)], aware=False, observers=[diary])
    game.begin()
    game.say(game.execute("1", "0"), game.call(end))
    game.end()
    settled = {text for text in diary.lines if "settled" in text}

    assert settled - {"30 settled 1"} == {"0 settled 1", "10 settled 0 down 1", *(["20 settled 1"] if end > 10 else [])}


def test_a_job_that_will_never_be_done_ends_the_run(failing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that loses attempt after attempt with nothing saved is found out, and named."""
    monkeypatch.setattr("pipistrelle.server.attempts.accounting.MOST_FRUITLESS", 5)
    game = failing(1, [("1", 0, 1, 50, 60)], [(0, at, at + 1) for at in range(10, 400, 10)])
    game.begin()
    for attempt in ("1", "1#1", "1#2", "1#3"):
        game.say(game.execute(attempt, "0"))
        game.say()
    with pytest.raises(Stalled, match="1 has lost its nodes 5 times, and has saved none of its work"):
        game.say(game.execute("1#4", "0"))


def endless(failing: Any, runtime: float, walltime: float = 1e9, **options: Any) -> int:
    """Requeue a job of 4 nodes, one of which fails every 5 s, repeatedly, and return the number of attempts."""
    plan = FailurePlan((Source(FailureModel(Exponential(20.0), Fixed(1.0)), range(4)),))
    game = failing(4, [("1", 0, 4, runtime, walltime)], [], failures=plan, **options)
    game.begin()
    for tries in range(100):
        if not game.engine.cluster.waiting:
            return tries
        (job,) = game.engine.cluster.waiting
        game.say(game.execute(job.partition("!")[2], "0-3"))
        while game.engine.cluster.running or game.engine.lives.attempts.down:
            game.say()
    return 100


@pytest.mark.parametrize(
    ("runtime", "options", "attempts"),
    [
        (60.0, {}, 5),
        (200.0, {"expected_attempts": 10**17}, 17),
        (100.0, {"resilience": parse_resilience(checkpoint="55", dump="5", read="5")}, 5),
    ],
)
def test_a_job_of_which_too_many_attempts_are_to_be_expected_ends_the_run(
    failing: Any, runtime: float, options: dict[str, Any], attempts: int
) -> None:
    """After ten that saved nothing: e^12 or more are expected before it is done or has its first dump."""
    says = rf"1 has lost its nodes 10 times, .* at least 10\^{attempts} attempts .* --expected-attempts 0"
    with pytest.raises(Stalled, match=says):
        endless(failing, runtime, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"expected_attempts": 0},
        {"expected_attempts": 10**9},
        {"max_attempts": 200},
        {"walltime": 50.0},
        {"resilience": parse_resilience(checkpoint="50", dump="1", read="1")},
        {"resilience": parse_resilience(spares="1")},
    ],
)
def test_a_job_that_may_be_done_is_tried_on(failing: Any, options: dict[str, Any]) -> None:
    """The limit is lifted, or too high; or the job's walltime, its first dump or a spare node gives it a chance."""
    assert endless(failing, 75.0, **options) > 20


def test_a_job_that_saves_work_may_lose_any_number_of_attempts(failing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only attempts one after the other that save nothing are counted: it will be done."""
    monkeypatch.setattr("pipistrelle.server.attempts.accounting.MOST_FRUITLESS", 3)
    outages = [(0, 5, 6), (0, 18, 19), (0, 31, 32), (0, 44, 45), (0, 50, 51)]
    game = failing(1, [("1", 0, 1, 40, 60)], outages, resilience=parse_resilience(checkpoint="10"))
    game.begin()
    for attempt in ("1", "1#1", "1#2", "1#3", "1#4"):
        assert game.say(game.execute(attempt, "0"))[0].endswith(f"ended {attempt} FAILED")
        game.say()

    assert game.say(game.execute("1#5", "0")) == ["61 ended 1#5 SUCCESSFULLY"]
