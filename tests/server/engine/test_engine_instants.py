"""Time: one notice an instant, its order, ends by themselves, and the end of the run."""

from collections.abc import Iterator
from typing import Any

import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.events import JobSubmitted, SimulationBegins, SimulationBeginsData
from pipistrelle.protocol.messages import Reply
from pipistrelle.server.engine.engine import table_of
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.errors import SchedulerFailed
from pipistrelle.server.simulation.assembly import native_engine


def test_the_beginning_stands_alone(play: Any) -> None:
    """The first notice is SIMULATION_BEGINS and nothing else, even when jobs are submitted at time 0."""
    game = play(4, [("1", 0, 1, 10, 20)])

    assert game.advance() == ["0 begins 4"]
    assert game.notice.seq == 1
    assert isinstance(game.notice.events[0], SimulationBegins)
    assert game.say() == ["0 submitted 1", "0 no_more_jobs"]
    assert game.notice.seq == 2


def test_job_is_described_by_its_request(play: Any) -> None:
    """A scheduler learns id, size and walltime, never the run time; no walltime is no field."""
    game = play(4, [("1", 3, 2, 10, 20), ("2", 3, 1, 10, float("inf"))])
    game.begin()
    events = [event for event in game.notice.events if isinstance(event, JobSubmitted)]

    described = [(event.data.job.id, event.data.job.res, event.data.job.walltime) for event in events]
    assert described == [("w0!1", 2, 20.0), ("w0!2", 1, None)]


def test_a_rejection_does_not_part_an_instant(play: Any) -> None:
    """Events at the very time of a rejected decision are in the same notice: here the jobs of time 0."""
    game = play(4, [("1", 0, 1, 10, 20)])
    game.advance()

    assert game.say(game.execute("7", "0")) == ["0 rejected 1[0] unknown_job", "0 submitted 1", "0 no_more_jobs"]


def test_an_empty_workload_says_so_and_ends(play: Any) -> None:
    """Without jobs there are two notices, the beginning and NO_MORE_JOBS, and a completed run."""
    game = play(4)

    assert game.begin() == ["0 no_more_jobs"]
    assert game.say() is None
    assert game.end() == ["0 ends completed"]


def test_all_of_an_instant_is_in_one_notice_ends_first(play: Any) -> None:
    """Completions, then submissions, then calls, each in the order in which they occurred."""
    rows = [("1", 0, 1, 10, 20), ("2", 0, 1, 10, 20), ("3", 10, 1, 5, 9), ("4", 10, 1, 5, 9)]
    game = play(4, rows)
    game.begin()
    game.apply(game.call(10.0, "b"), game.call(10.0, "a"), game.execute("2", "3"), game.execute("1", "0"))

    assert game.advance() == [
        "10 ended 2 SUCCESSFULLY",
        "10 ended 1 SUCCESSFULLY",
        "10 submitted 3",
        "10 submitted 4",
        "10 no_more_jobs",
        "10 call 'b'",
        "10 call 'a'",
    ]


def test_the_last_submission_brings_no_more_jobs_along(play: Any) -> None:
    """NO_MORE_JOBS is in the notice of the last submission, right behind it, and nowhere else."""
    game = play(4, [("1", 1, 1, 1, 1), ("2", 2, 1, 1, 1)])

    assert game.begin() == ["1 submitted 1"]
    assert game.say(game.execute("1", "0")) == ["2 ended 1 SUCCESSFULLY", "2 submitted 2", "2 no_more_jobs"]
    assert game.say(game.execute("2", "0")) == ["3 ended 2 SUCCESSFULLY"]
    assert game.say() is None


def test_times_that_differ_in_the_last_bit_are_two_instants(play: Any) -> None:
    """Instants are equal when the doubles are equal, and only then."""
    later = 1.0 + 2**-52
    game = play(4, [("1", 1, 1, 1, 1), ("2", later, 1, 1, 1)])

    game.begin()
    assert [event.timestamp for event in game.notice.events] == [1.0]
    game.say()
    assert [event.timestamp for event in game.notice.events] == [later, later]


@pytest.mark.parametrize(
    ("runtime", "walltime", "expected"),
    [
        (10, 20, "10 ended 1 SUCCESSFULLY"),
        (20, 20, "20 ended 1 SUCCESSFULLY"),
        (21, 20, "20 ended 1 WALLTIME_REACHED"),
        (20.000000000000004, 20, "20 ended 1 WALLTIME_REACHED"),
        (1e9, float("inf"), "1e+09 ended 1 SUCCESSFULLY"),
        (0, 20, "0 ended 1 SUCCESSFULLY"),
    ],
)
def test_a_job_ends_at_its_runtime_or_is_killed_at_its_walltime(
    play: Any, runtime: float, walltime: float, expected: str
) -> None:
    """Ending exactly at the walltime is a success; a job that would run longer is killed there."""
    game = play(1, [("1", 0, 1, runtime, walltime)])
    game.begin()

    assert game.say(game.execute("1", "0")) == [expected]


def test_completion_has_the_jobs_units_and_final_state(play: Any) -> None:
    """JOB_COMPLETED carries the allocation in canonical form and a return code: 0 for success, -1 otherwise."""
    game = play(4, [("1", 0, 2, 10, 20), ("2", 0, 2, 30, 10)])
    game.begin()
    game.say(game.execute("1", "3 0"), game.execute("2", "1 2"))
    told = [(event.data.job_id, event.data.alloc, event.data.return_code) for event in game.notice.events]

    assert told == [("w0!1", "0 3", 0), ("w0!2", "1-2", -1)]


def test_units_freed_now_are_available_now(play: Any) -> None:
    """The scheduler is asked after all ends of its instant: no unit is busy then that is free at that time."""
    game = play(1, [("1", 0, 1, 5, 5), ("2", 0, 1, 5, 5)])
    game.begin()
    game.say(game.execute("1", "0"))

    assert game.say(game.execute("2", "0")) == ["10 ended 2 SUCCESSFULLY"]


def test_a_run_ends_when_every_job_has(play: Any) -> None:
    """After the last end and its reply nothing follows but SIMULATION_ENDS at the same time."""
    game = play(2, [("1", 0, 1, 5, 5), ("2", 4, 1, 5, 5)])
    game.begin()
    game.say(game.execute("1", "0"))
    game.say(game.reject("2"))

    assert game.now == 5.0
    assert game.say() is None
    assert game.end() == ["5 ends completed"]
    assert game.engine.cluster.finished == {"w0!1", "w0!2"}


def test_rejecting_the_last_job_ends_the_run_without_another_notice(play: Any) -> None:
    """A rejection is not announced to the scheduler that decided it."""
    game = play(1, [("1", 7, 1, 5, 5)])
    game.begin()

    assert game.say(game.reject("1")) is None
    assert game.end() == ["7 ends completed"]


def test_a_reply_may_not_be_dated_before_its_notice(play: Any) -> None:
    """Time in a reply comes from the notice; an earlier one is the scheduler's failure, named as such."""
    game = play(1, [("1", 7, 1, 5, 5)])
    game.begin()

    with pytest.raises(SchedulerFailed, match=r"expected at least 7\.0, found 6\.5.*never from a clock"):
        game.apply(now=6.5)


def test_jobs_are_taken_one_at_a_time(make_job: Any) -> None:
    """The engine reads one job ahead, no more: a log of any length needs no memory."""
    taken: list[int] = []

    def jobs() -> Iterator[Job]:
        for number in range(3):
            taken.append(number)
            yield make_job(str(number), submit=10.0 * number)

    engine = native_engine(SimulationBeginsData(1), homogeneous(1, "m"), jobs())
    read = [list(taken)]
    for seq in range(1, 4):
        engine.advance()
        engine.apply(Reply(seq, engine.now))
        read.append(list(taken))

    assert read == [[], [0], [0, 1], [0, 1, 2]]


def test_observers_hear_an_instant_in_order(play: Any, diary: Any) -> None:
    """Every step is reported when it happens, followed by the resulting number of free units."""
    game = play(2, [("1", 1, 1, 2, 2)], observers=[diary])
    game.begin()
    game.say(game.execute("1", "5"), game.execute("1", "0"))
    game.say()
    assert game.say() is None
    game.end()
    happened = [text for text in diary.lines if "settled" not in text]
    settled = {text.split()[0]: text for text in diary.lines if "settled" in text}

    assert happened == [
        "0 begins 2",
        "1 submitted 1",
        "1 decided EXECUTE_JOB unknown_unit",
        "1 started 1 0",
        "1 decided EXECUTE_JOB done",
        "3 ended 1 COMPLETED_SUCCESSFULLY",
        "3 ends completed",
    ]
    assert list(settled.values()) == ["0 settled 2", "1 settled 1", "3 settled 2"]
    assert diary.lines[-2:] == ["3 settled 2", "3 ends completed"]


def test_a_class_of_the_agenda_has_one_handler() -> None:
    """Tables of handlers are joined; two handlers for one class are a bug, and none of them wins."""
    assert table_of({1: print}, {2: repr}) == {1: print, 2: repr}
    with pytest.raises(RuntimeError, match="class 2 on the agenda has two handlers"):
        table_of({1: print, 2: print}, {2: repr})
