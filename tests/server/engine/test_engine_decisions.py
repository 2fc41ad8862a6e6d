"""The effect of each decision at its instant, every rejection, and the strict engine."""

from collections.abc import Callable
from typing import Any, get_args

import pytest

from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.fields import RejectionCode
from pipistrelle.server.errors import DecisionRefused, SchedulerFailed

#: {what is tried: (decision, code, text of the message)}, with job 1 on units 0-1, job 2 waiting, job 3 ended,
#: job 9 not submitted yet, and a call 'x' pending, on 4 units at time 5
ILLEGAL: dict[str, tuple[Callable[[Any], Decision], str, str]] = {
    "unreadable": (lambda g: g.malformed(), "unknown_type", "no such type"),
    "start: no such job": (lambda g: g.execute("7", "2"), "unknown_job", "no job w0!7 was submitted"),
    "start: a job to come": (lambda g: g.execute("9", "2"), "unknown_job", "no job w0!9 was submitted"),
    "start: running": (lambda g: g.execute("1", "2-3"), "wrong_state", "w0!1 runs already"),
    "start: ended": (lambda g: g.execute("3", "2"), "wrong_state", "w0!3 has ended already"),
    "start: no units": (lambda g: g.execute("2", "two"), "bad_allocation", "no set of units"),
    "start: too few": (lambda g: g.execute("2", "2"), "wrong_size", "needs 2 units, 'alloc' has 1"),
    "start: too many": (lambda g: g.execute("2", "1-3"), "wrong_size", "needs 2 units, 'alloc' has 3"),
    "start: beyond": (lambda g: g.execute("2", "3-4"), "unknown_unit", "unit 4; the machine has 0-3"),
    "start: busy": (lambda g: g.execute("2", "1-2"), "busy_unit", "taken: 1"),
    "start: too late": (lambda g: g.execute("2", "2-3", at=4.5), "past_time", "dated 4.5, before"),
    "reject: no such job": (lambda g: g.reject("7"), "unknown_job", "no job w0!7"),
    "reject: running": (lambda g: g.reject("1"), "wrong_state", "runs already"),
    "reject: ended": (lambda g: g.reject("3"), "wrong_state", "has ended already"),
    "kill: waiting": (lambda g: g.kill("2"), "wrong_state", "w0!2 waits; only a running job"),
    "kill: no such job": (lambda g: g.kill("7"), "unknown_job", "no job w0!7"),
    "kill: one of two unknown": (lambda g: g.kill("1", "7"), "unknown_job", "no job w0!7"),
    "kill: one of two waits": (lambda g: g.kill("1", "2"), "wrong_state", "w0!2 waits"),
    "call: past": (lambda g: g.call(4.0, "y"), "past_time", "no call can be at 4.0: it is 5.0"),
    "call: pending": (lambda g: g.call(9.0, "x"), "duplicate_call", "'x' is pending already"),
    "cancel: unknown": (lambda g: g.cancel("y"), "unknown_call", "no call 'y'"),
    "cancel: without id": (lambda g: g.cancel(""), "unknown_call", "no call ''"),
    "metadata: no such job": (lambda g: g.metadata("7", "t"), "unknown_job", "no job w0!7"),
    "metadata: ended": (lambda g: g.metadata("3", "t"), "wrong_state", "its line is written"),
    "register: taken": (lambda g: g.register("dyn!1", 1, 1), "duplicate_job", "dyn!1 exists already"),
    "register: workload's": (lambda g: g.register("w0!7", 1, 1), "duplicate_job", "a prefix that no workload has"),
    "register: no prefix": (lambda g: g.register("7", 1, 1), "duplicate_job", "must be PREFIX!NAME"),
    "register: no name": (lambda g: g.register("dyn!", 1, 1), "duplicate_job", "must be PREFIX!NAME"),
    "register: empty prefix": (lambda g: g.register("!7", 1, 1), "duplicate_job", "must be PREFIX!NAME"),
    "register: two ids": (lambda g: g.register("dyn!2", 1, 1, inner="dyn!3"), "malformed", "job.id is dyn!3"),
    "register: too large": (lambda g: g.register("dyn!2", 5, 1), "too_large", "asks for 5 of 4 units"),
}


def prepared(play: Any, **options: Any) -> Any:
    """Return a game at time 5 in the state that `ILLEGAL` describes; the last notice is number 4."""
    rows = [("1", 0, 2, 50, 60), ("2", 0, 2, 10, 20), ("3", 0, 1, 5, 9), ("9", 99, 1, 1, 1)]
    game = play(4, rows, features=("dynamic_jobs",), **options)
    game.begin()
    game.say(game.execute("1", "0-1"), game.execute("3", "3"), game.call(50.0, "x"), game.register("dyn!1", 1, 1))
    assert game.say() == ["5 ended 3 SUCCESSFULLY"]
    assert game.notice.seq == 4
    return game


def state(game: Any) -> tuple[object, ...]:
    """Return all that a decision could change."""
    cluster, engine = game.engine.cluster, game.engine
    return (
        engine.now,
        {job.id: (job.state, job.metadata) for job in cluster.waiting.values()},
        {job.id: (job.state, job.start, str(job.alloc), job.metadata) for job in cluster.running.values()},
        set(cluster.finished),
        cluster.ledger.idle,
        cluster.steps,
        sorted(engine.verdicts.calls),
        list(engine.clockwork.agenda.entries()),
        engine.clockwork.stopped,
    )


def test_every_rejection_code_is_tried() -> None:
    """The table has each code of the protocol but those with their own tests."""
    others = {"feature_off", "wrong_units", "wrong_resources", "too_many"}
    assert {code for _, code, _ in ILLEGAL.values()} | others == set(get_args(RejectionCode))


@pytest.mark.parametrize("case", ILLEGAL)
def test_an_illegal_decision_is_rejected_at_once_and_does_nothing(play: Any, case: str) -> None:
    """DECISION_REJECTED is sent at the same instant with number, place, code and text; nothing else has changed."""
    decide, code, says = ILLEGAL[case]
    game = prepared(play)
    before = state(game)
    decision = decide(game)

    assert game.say(game.metadata("1", ""), decision) == [f"5 rejected 4[1] {code}"]
    assert state(game) == before
    data = game.notice.events[0].data
    assert says in data.message
    assert data.decision == getattr(decision, "decision", str(decision.__struct_config__.tag))
    assert data.job_id == getattr(getattr(decision, "data", None), "job_id", "")


@pytest.mark.parametrize("case", ILLEGAL)
def test_a_strict_engine_ends_the_run_instead(play: Any, case: str) -> None:
    """With strict the same decision raises: code, text, position in the reply; it changes nothing."""
    decide, code, says = ILLEGAL[case]
    game = prepared(play, strict=True)
    before = state(game)
    with pytest.raises(DecisionRefused) as caught:
        game.apply(game.metadata("1", ""), decide(game))

    assert state(game) == before
    assert caught.value.exit_code == 3
    assert caught.value.reason == "strict"
    assert f"({code})" in str(caught.value)
    assert says in str(caught.value)
    assert "decision 1 (" in str(caught.value)
    assert "reply to notice 4" in str(caught.value)


def test_too_many_illegal_decisions_before_a_notice_end_the_run(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the limit rejections are sent; one more ends the run, and each notice resets the count."""
    monkeypatch.setattr("pipistrelle.server.engine.engine.MAX_REJECTIONS", 3)
    game = play(4, [("1", 0, 1, 5, 5)])
    game.begin()
    for _ in range(2):
        assert len(game.say(*[game.reject("no")] * 3)) == 3
    with pytest.raises(SchedulerFailed, match=r"too many decisions were illegal .* at most 3, found one more"):
        game.apply(*[game.reject("no")] * 4)


def test_without_the_feature_no_job_can_be_registered(play: Any) -> None:
    """REGISTER_JOB is rejected unless dynamic_jobs was agreed on."""
    game = play(4, [("1", 0, 1, 5, 5)])
    game.begin()

    assert game.say(game.register("dyn!1", 1, 1)) == ["0 rejected 2[0] feature_off"]


def test_the_legal_decisions_around_an_illegal_one_are_carried_out(play: Any) -> None:
    """Each decision of a reply is judged alone, in order; rejections keep their index."""
    game = play(4, [("1", 0, 1, 5, 5), ("2", 0, 1, 5, 5), ("3", 0, 1, 5, 5)])
    game.begin()
    answer = game.say(game.execute("1", "9"), game.execute("2", "0"), game.execute("3", "0"), game.execute("1", "1"))

    assert answer == ["0 rejected 2[0] unknown_unit", "0 rejected 2[2] busy_unit"]
    assert list(game.engine.cluster.running) == ["w0!2", "w0!1"]
    assert game.say(game.reject("3")) == ["5 ended 2 SUCCESSFULLY", "5 ended 1 SUCCESSFULLY"]


def test_a_job_killed_now_ends_now_with_its_progress(play: Any) -> None:
    """KILL_JOB is answered at the same instant: first each job's end, then the killed jobs and their progress."""
    game = play(4, [("1", 0, 1, 100, 200), ("2", 0, 1, 100, 50), ("3", 25, 1, 1, 1)])
    game.begin()
    game.say(game.execute("1", "0"), game.execute("2", "1"))

    assert game.say(game.kill("2", "1")) == [
        "25 ended 2 KILLED",
        "25 ended 1 KILLED",
        "25 killed 2=0.25 1=0.25",
    ]
    assert game.engine.cluster.ledger.idle == 4
    assert game.say(game.reject("3")) is None
    assert game.now == 25.0, "a killed job's old end does not come up"


def test_each_kill_decision_is_answered(play: Any) -> None:
    """Every legal KILL_JOB has its JOB_KILLED, in order, also with an empty list or a job listed twice."""
    game = play(2, [("1", 0, 1, 10, 20), ("2", 0, 1, 10, 20)])
    game.begin()
    answer = game.say(game.execute("1", "0"), game.execute("2", "1"), game.kill("1", "1"), game.kill(), game.kill("2"))

    assert answer == [
        "0 ended 1 KILLED",
        "0 killed 1=0 1=0",
        "0 killed ",
        "0 ended 2 KILLED",
        "0 killed 2=0",
    ]


def test_a_kill_that_comes_too_late_is_no_error(play: Any) -> None:
    """A job that has ended by itself, even at this very instant, is named in JOB_KILLED without progress."""
    game = play(2, [("1", 0, 1, 10, 20), ("2", 0, 1, 50, 60)])
    game.begin()
    game.say(game.execute("1", "0"), game.execute("2", "1"))

    assert game.say(game.kill("1", "2")) == ["10 ended 2 KILLED", "10 killed 1 2=0.2"]
    assert game.say(game.kill("2")) == ["10 killed 2"]


def test_a_kill_in_the_reply_that_starts_is_possible(play: Any) -> None:
    """Decisions of one reply see each other's effects, in their order."""
    game = play(1, [("1", 0, 1, 10, 20), ("2", 0, 1, 10, 20)])
    game.begin()
    answer = game.say(game.execute("1", "0"), game.kill("1"), game.execute("2", "0"))

    assert answer == ["0 ended 1 KILLED", "0 killed 1=0"]
    assert list(game.engine.cluster.running) == ["w0!2"]


def test_a_killed_job_of_no_length_was_done(play: Any) -> None:
    """The progress of a job without run time is 1, not a division by zero."""
    game = play(1, [("1", 0, 1, 0, 20)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.kill("1")) == ["0 ended 1 KILLED", "0 killed 1=1"]


def test_metadata_of_waiting_and_running_jobs_can_be_changed(play: Any) -> None:
    """The last text counts; no event reports it."""
    game = play(2, [("1", 0, 1, 10, 20), ("2", 0, 1, 10, 20)])
    game.begin()
    game.apply(game.metadata("1", "a"), game.execute("2", "1"), game.metadata("2", "b"), game.metadata("2", "c"))
    cluster = game.engine.cluster

    assert [cluster.waiting["w0!1"].metadata, cluster.running["w0!2"].metadata] == ["a", "c"]


@pytest.mark.parametrize(("reason", "told"), [("enough seen", "enough seen"), ("", "the scheduler asked for it")])
def test_stop_ends_the_run_now_and_counts_the_rest(play: Any, reason: str, told: str) -> None:
    """STOP keeps earlier effects; jobs that wait or run are counted in the last notice."""
    game = play(2, [("1", 0, 1, 10, 20), ("2", 0, 2, 10, 20), ("3", 50, 1, 1, 1)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.stop(reason)) is None
    assert game.now == 0.0
    assert game.end() == ["0 ends stopped"]
    message = game.notice.events[-1].data.message
    assert message == f"{told} (1 waiting, 1 running, 1 units free; first w0!2 (2 units))"


def test_stop_after_the_last_job_names_only_its_reason(play: Any) -> None:
    """A run that is stopped with nothing left reports no counts."""
    game = play(1, [("1", 0, 1, 10, 20)])
    game.begin()

    assert game.say(game.reject("1"), game.stop("bye")) is None
    assert game.end() == ["0 ends stopped"]
    assert game.notice.events[-1].data.message == "bye"


@pytest.mark.parametrize("cause", ["a kill", "a rejected decision"])
def test_stop_does_not_wait_for_another_reply(play: Any, cause: str) -> None:
    """Other effects of the reply are in the last notice: no decision follows a STOP."""
    game = play(2, [("1", 0, 1, 10, 20), ("2", 0, 1, 10, 20)])
    game.begin()
    other = game.kill("1") if cause == "a kill" else game.execute("1", "1")
    told = ["0 ended 1 KILLED", "0 killed 1=0"] if cause == "a kill" else ["0 rejected 2[1] wrong_state"]

    assert game.say(game.execute("1", "0"), other, game.stop()) is None
    assert game.end() == [*told, "0 ends stopped"]


def test_the_rest_of_a_reply_that_stops_is_carried_out_but_not_what_is_dated(play: Any) -> None:
    """Decisions at now behind a STOP still count; those dated later are dropped with everything else."""
    game = play(2, [("1", 0, 1, 10, 20), ("2", 0, 1, 10, 20)])
    game.begin()

    assert game.say(game.stop(), game.execute("1", "0"), game.kill("1", at=5), game.reject("2")) is None
    assert (list(game.engine.cluster.running), game.engine.cluster.finished) == (["w0!1"], {"w0!2"})
    assert game.end() == ["0 ends stopped"]
