"""Decisions dated ahead, and the time that deciding takes."""

from typing import Any

import pytest

from pipistrelle.protocol.messages import Reply
from pipistrelle.server.errors import DecisionRefused
from pipistrelle.server.outputs.metrics import Metrics
from pipistrelle.server.outputs.recorder import Recorder


def test_a_dated_decision_is_carried_out_at_its_time(play: Any, diary: Any) -> None:
    """A start dated ahead happens then, and the job's end counts from there."""
    game = play(1, [("1", 0, 1, 5, 5)], observers=[diary])
    game.begin()

    assert game.say(game.execute("1", "0", at=3)) == ["8 ended 1 SUCCESSFULLY"]
    assert "3 started 1 0" in diary.lines


def test_nothing_is_sent_before_the_scheduler_is_ready(play: Any) -> None:
    """What happens up to the last decision's time is merged into one notice, dated when the scheduler is ready."""
    game = play(2, [("1", 0, 1, 2, 5), ("2", 1, 1, 9, 9), ("3", 4, 1, 9, 9), ("4", 6, 1, 9, 9)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.call(1.5), game.metadata("2", "x", at=5)) == [
        "1 submitted 2",
        "1.5 call ''",
        "2 ended 1 SUCCESSFULLY",
        "4 submitted 3",
    ]
    assert game.notice.now == 5.0
    assert game.say() == ["6 submitted 4", "6 no_more_jobs"]


def test_thinking_without_a_decision_delays_the_next_notice(play: Any) -> None:
    """A reply's ``now`` alone keeps the scheduler busy; with nothing to tell, the next event wakes it as usual."""
    game = play(2, [("1", 0, 1, 2, 5), ("2", 1, 1, 9, 9), ("3", 8, 1, 9, 9)])
    game.begin()

    assert game.say(now=4.5) == ["1 submitted 2"]
    assert game.notice.now == 4.5
    assert game.say(now=5.0) == ["8 submitted 3", "8 no_more_jobs"]
    assert game.notice.now == 8.0


def test_an_event_at_the_end_of_the_thinking_time_is_part_of_the_notice(play: Any) -> None:
    """Readiness comes last in its instant: the scheduler sees all that happens at that time."""
    game = play(2, [("1", 0, 1, 9, 9), ("2", 4, 1, 9, 9)])
    game.begin()

    assert game.say(now=4.0) == ["4 submitted 2", "4 no_more_jobs"]


def test_dated_decision_applies_to_the_instants_final_state(play: Any) -> None:
    """At its time it comes after ends and submissions: it may use units freed, and jobs submitted, just then."""
    game = play(1, [("1", 0, 1, 5, 5), ("2", 5, 1, 3, 3)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.execute("2", "0", at=5)) == [
        "5 ended 1 SUCCESSFULLY",
        "5 submitted 2",
        "5 no_more_jobs",
    ]
    assert list(game.engine.cluster.running) == ["w0!2"]


def test_dated_decisions_of_one_time_keep_the_replys_order(play: Any, diary: Any) -> None:
    """Those dated alike are carried out in the order in which they stand; others in the order of their times."""
    game = play(3, [(name, 0, 1, 50, 50) for name in "123"], observers=[diary])
    game.begin()
    game.say(
        game.execute("3", "0", at=4),
        game.execute("2", "1", at=2),
        game.execute("1", "2", at=2),
    )

    assert [text for text in diary.lines if "started" in text] == ["2 started 2 1", "2 started 1 2", "4 started 3 0"]


def test_a_kill_race_is_won_by_the_end(play: Any) -> None:
    """A kill dated at the very time at which the job ends finds it ended: no error, no progress, no second end."""
    game = play(2, [("1", 0, 1, 10, 10), ("2", 0, 1, 20, 40)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.execute("2", "1"), game.kill("1", "2", at=10)) == [
        "10 ended 1 SUCCESSFULLY",
        "10 ended 2 KILLED",
        "10 killed 1 2=0.5",
    ]


def test_a_kill_dated_beyond_the_end_is_too_late(play: Any) -> None:
    """By then the job is known and gone."""
    game = play(1, [("1", 0, 1, 10, 10), ("2", 0, 1, 1, 1)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.kill("1", at=12)) == ["10 ended 1 SUCCESSFULLY", "12 killed 1"]
    assert game.notice.now == 12.0


def test_a_dated_decision_is_judged_at_its_time(play: Any) -> None:
    """It is rejected, with the number and place of its reply, when it comes up, whatever was right when it was sent."""
    game = play(1, [("1", 0, 1, 10, 10), ("2", 0, 1, 5, 5)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.execute("2", "0", at=3)) == ["3 rejected 2[1] busy_unit"]
    assert game.notice.now == 3.0


def test_a_rejection_at_now_waits_for_the_scheduler_to_be_ready(play: Any) -> None:
    """A reply that is partly illegal and takes time is answered when its time is over, dated when it was judged."""
    game = play(1, [("1", 0, 1, 10, 10)])
    game.begin()

    assert game.say(game.kill("7"), now=2.0) == ["0 rejected 2[0] unknown_job"]
    assert game.notice.now == 2.0


def test_a_strict_engine_stops_at_a_dated_decision_too(play: Any) -> None:
    """The run ends at the decision's time, from within `advance`."""
    game = play(1, [("1", 0, 1, 10, 10)], strict=True)
    game.begin()
    with pytest.raises(DecisionRefused, match="unknown_job"):
        game.say(game.kill("7", at=6))

    assert game.now == 6.0


def test_a_call_may_lie_inside_the_thinking_time(play: Any) -> None:
    """It is sent with the notice at the end of that time, with its own timestamp."""
    game = play(1, [("1", 0, 1, 10, 10)])
    game.begin()

    assert game.say(game.call(1.0, "x"), now=3.0) == ["1 call 'x'"]
    assert game.notice.now == 3.0


def test_a_call_wanted_before_its_decisions_time_is_past(play: Any) -> None:
    """A CALL_ME_LATER dated ahead cannot want a time before its own."""
    game = play(1, [("1", 0, 1, 10, 10)])
    game.begin()

    assert game.say(game.call(2.0, "x", at=3)) == ["3 rejected 2[0] past_time"]


def test_a_dated_stop_ends_the_run_at_its_time(play: Any) -> None:
    """Nothing after it happens, and no further notice is sent; earlier events are in the last one."""
    game = play(1, [("1", 0, 1, 10, 10), ("2", 1, 1, 1, 1), ("3", 9, 1, 1, 1)])
    game.begin()

    assert game.say(game.execute("1", "0"), game.stop("late", at=5)) is None
    assert game.now == 5.0
    assert game.end() == ["1 submitted 2", "5 ends stopped"]


def test_a_registration_dated_ahead_submits_then(play: Any) -> None:
    """The job's submit time is when the decision is carried out."""
    game = play(1, [("1", 0, 1, 10, 10)], features=("dynamic_jobs",))
    game.begin()

    assert game.say(game.register("dyn!1", 1, 5, at=4)) == ["4 submitted dyn!1"]
    assert game.engine.cluster.waiting["dyn!1"].submit == 4.0


def test_thinking_past_the_last_event_ends_the_run_then(play: Any) -> None:
    """With nothing left to tell, the run ends when the reply's decisions are done."""
    game = play(1, [("1", 0, 1, 10, 10)])
    game.begin()

    assert game.say(game.reject("1", at=30)) is None
    assert game.end() == ["30 ends completed"]


def test_decision_dated_beyond_the_last_job_is_dropped(play: Any, diary: Any) -> None:
    """Nothing can come of it: the run ends at the last job. With dynamic_jobs it can, so it is carried out first."""
    ends = []
    for features in ((), ("dynamic_jobs",)):
        game = play(1, [("1", 3, 1, 10, 10)], features=features, observers=[diary])
        game.begin()
        assert game.say(game.reject("1"), game.call(60, at=50)) is None or features
        while game.notice is not None:
            game.say()
        ends.append(game.end())

    assert ends == [["3 ends completed"], ["60 ends completed"]]
    assert [text for text in diary.lines if "CALL" in text] == ["50 decided CALL_ME_LATER done"]


def test_batsims_killer(play: Any, tmp_path: Any) -> None:
    """A scheduler that starts a job and kills it ten seconds later gets what Batsim 4 recorded, line by line."""
    rows = [
        ("1", 10, 2, 100, 200),
        ("2", 15, 4, 50, 300),
        ("3", 20, 1, 60, 90),
        ("4", 20, 1, 60, 40),
        ("5", 30, 8, 60, 100),
        ("6", 500, 3, 60, 100),
    ]
    metrics = Metrics()
    game = play(4, rows, observers=[Recorder(f"{tmp_path}/"), metrics])
    game.begin()
    while game.notice is not None:
        waiting, decisions, now = game.engine.cluster.waiting.values(), [], game.now
        decisions += [game.reject(job.id) for job in waiting if job.size > 4]
        first = next((job for job in waiting if job.size <= 4), None)
        if first is not None:
            alloc = f"0-{first.size - 1}" if first.size > 1 else "0"
            decisions += [game.execute(first.id, alloc), game.kill(first.id, at=now + 10)]
        game.engine.apply(Reply(game.notice.seq, now, decisions))
        game.advance()
    game.end()

    lines = (tmp_path / "jobs.csv").read_text().splitlines()[1:]
    recorded = """\
1,w0,p1,10.000000,2,200.000000,0,COMPLETED_KILLED,10.000000,10.000000,20.000000,0.000000,10.000000,1.000000,0-1,-1.000000,""
2,w0,p2,15.000000,4,300.000000,0,COMPLETED_KILLED,20.000000,10.000000,30.000000,5.000000,15.000000,1.500000,0-3,-1.000000,""
5,w0,p5,30.000000,8,100.000000,0,REJECTED,,,,,,,,,""
3,w0,p3,20.000000,1,90.000000,0,COMPLETED_KILLED,30.000000,10.000000,40.000000,10.000000,20.000000,2.000000,0,-1.000000,""
4,w0,p4,20.000000,1,40.000000,0,COMPLETED_KILLED,40.000000,10.000000,50.000000,20.000000,30.000000,3.000000,0,-1.000000,""
6,w0,p6,500.000000,3,100.000000,0,COMPLETED_KILLED,500.000000,10.000000,510.000000,0.000000,10.000000,1.000000,0-2,-1.000000,""
"""
    assert lines == recorded.splitlines()
    assert metrics.summary().computing == 110.0
