"""Jobs that wait for others: when they are submitted, and when they never are."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.server.engine.dependencies import Condition
from pipistrelle.server.errors import SetupError, Stalled
from pipistrelle.server.setup.conditions import conditions_of, dependency_remarks
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.traces.workload import Workload


def after(kind: str, name: str, delay: float = 0.0) -> tuple[Condition, ...]:
    """Return one condition on a job of the workload."""
    return (Condition(kind, f"w0!{name}", delay),)


def test_a_job_waits_for_anothers_start(play: Any) -> None:
    """With "after" a job is submitted when the other starts, or the given number of seconds later."""
    rows = [("1", 0, 1, 9, 9), ("2", 0, 1, 9, 9), ("3", 0, 1, 9, 9)]
    game = play(4, rows, conditions={"w0!2": after("after", "1"), "w0!3": after("after", "1", 2.0)})

    assert game.begin() == ["0 submitted 1"]
    assert game.say(game.execute("1", "0")) == ["0 submitted 2"]
    assert game.say(game.execute("2", "1")) == ["2 submitted 3", "2 no_more_jobs"]


def test_success_lets_its_followers_go(play: Any) -> None:
    """With "afterok" and "afterany" a job follows a success; with "afternotok" it is rejected, unseen."""
    rows = [(name, 0, 1, 5, 9) for name in "1234"]
    kinds = {"w0!2": "afterok", "w0!3": "afterany", "w0!4": "afternotok"}
    game = play(4, rows, conditions={job: after(kind, "1") for job, kind in kinds.items()})
    game.begin()

    assert game.say(game.execute("1", "0")) == [
        "5 ended 1 SUCCESSFULLY",
        "5 submitted 2",
        "5 submitted 3",
        "5 no_more_jobs",
    ]
    assert game.engine.cluster.finished == {"w0!1", "w0!4"}


def test_a_failure_rejects_a_whole_chain(play: Any, diary: Any) -> None:
    """A job that can never start is rejected, and so are jobs that depend on it; "afterany" jobs proceed."""
    rows = [("1", 0, 1, 99, 5), *((str(name), 0, 1, 5, 9) for name in range(2, 2000)), ("x", 0, 1, 5, 9)]
    chain = {f"w0!{name}": after("afterok", str(name - 1)) for name in range(2, 2000)}
    game = play(4, rows, conditions={**chain, "w0!x": after("afterany", "1999")}, observers=[diary])
    game.begin()

    assert game.say(game.execute("1", "0")) == ["5 ended 1 WALLTIME_REACHED", "5 submitted x", "5 no_more_jobs"]
    assert diary.lines.count("5 ended 2 REJECTED") == diary.lines.count("5 ended 1999 REJECTED") == 1


def test_a_rejected_job_counts_as_ended_without_success(play: Any) -> None:
    """A rejection lets those go that wait for an end, and the others never start."""
    rows = [(name, 0, 1, 5, 9) for name in "123"]
    game = play(4, rows, conditions={"w0!2": after("afterany", "1"), "w0!3": after("afterok", "1")})
    game.begin()

    assert game.say(game.reject("1")) == ["0 submitted 2", "0 no_more_jobs"]


def test_one_condition_that_can_no_longer_hold_is_enough(play: Any, diary: Any) -> None:
    """The job is rejected as soon as the first job fails, and NO_MORE_JOBS is sent if it was the last."""
    rows = [("1", 0, 1, 9, 5), ("2", 0, 1, 7, 9), ("3", 0, 1, 5, 9)]
    conditions = {"w0!3": after("afterany", "2") + after("afterok", "1")}
    game = play(4, rows, conditions=conditions, observers=[diary])
    game.begin()

    told = game.say(game.execute("1", "0"), game.execute("2", "1"))
    assert told == ["5 ended 1 WALLTIME_REACHED", "5 no_more_jobs"]
    assert "5 ended 3 REJECTED" in diary.lines


def test_several_conditions_must_all_hold(play: Any) -> None:
    """The last of them decides."""
    rows = [("1", 0, 1, 5, 9), ("2", 0, 1, 7, 9), ("3", 0, 1, 5, 9)]
    game = play(4, rows, conditions={"w0!3": after("afterok", "1") + after("afterany", "2", 1.0)})
    game.begin()

    assert game.say(game.execute("1", "0"), game.execute("2", "1")) == ["5 ended 1 SUCCESSFULLY"]
    assert game.say() == ["7 ended 2 SUCCESSFULLY"]
    assert game.say() == ["8 submitted 3", "8 no_more_jobs"]


def test_a_condition_that_holds_already_is_no_wait(play: Any) -> None:
    """A job whose predecessor is already done is submitted at its time in the workload."""
    game = play(4, [("1", 0, 1, 5, 9), ("2", 8, 1, 5, 9)], conditions={"w0!2": after("afterok", "1")})
    game.begin()

    assert game.say(game.execute("1", "0")) == ["5 ended 1 SUCCESSFULLY"]
    assert game.say() == ["8 submitted 2", "8 no_more_jobs"]


def test_a_scheduler_that_forgets_the_first_is_found_out(play: Any) -> None:
    """Held jobs do not hide a stall."""
    game = play(4, [("1", 0, 1, 5, 9), ("2", 0, 1, 5, 9)], conditions={"w0!2": after("afterok", "1")})
    game.begin()

    with pytest.raises(Stalled, match="first w0!1"):
        game.say()


def workload(dependencies: list[str], **columns: list[int]) -> Workload:
    """Return a workload of jobs 1, 2, ... with these dependency texts."""
    count = len(dependencies)
    ones = np.ones(count)
    return Workload(
        name="w",
        source="w.swf",
        ids=[str(number) for number in range(1, count + 1)],
        submit=np.zeros(count),
        size=np.ones(count, dtype=np.int64),
        walltime=ones,
        runtime=ones,
        columns={name: np.array(values, dtype=np.int64) for name, values in columns.items()},
        measures={"think_time": np.array([0.0, 30.0, -1.0])} if columns else {},
        labels={} if columns else {"dependency": dependencies},
    )


def test_texts_become_conditions() -> None:
    """Several jobs and kinds in one text; jobs that are not there, and kinds that are not known, count for nothing."""
    read = conditions_of({"w0": workload(["", "afterok:1:9,after:1", "singleton,afterany:2"])})

    assert read == {
        "w0!2": (Condition("afterok", "w0!1"), Condition("after", "w0!1")),
        "w0!3": (Condition("afterany", "w0!2"),),
    }


def test_swf_names_a_preceding_job_and_a_think_time() -> None:
    """The job is submitted this many seconds after the preceding one's end; a missing time is none."""
    read = conditions_of({"w0": workload(["", "", ""], preceding=[-1, 1, 2])})

    assert read == {"w0!2": (Condition("afterany", "w0!1", 30.0),), "w0!3": (Condition("afterany", "w0!2", 0.0),)}


def test_a_circle_is_refused() -> None:
    """Jobs that wait for each other are named before the run."""
    with pytest.raises(SetupError, match="w0!1 after w0!3 after w0!2 after w0!1"):
        conditions_of({"w0": workload(["afterok:3", "afterok:1", "afterok:2"])})


def test_ignored_dependencies_are_reported() -> None:
    """Jobs that depend on absent jobs are counted, and three of them named with the job that is not there."""
    some = {"w0": workload(["afterok:7", "after:1,afterany:8:9", "", *(["afterany:10"] * 3)])}

    assert list(conditions_of(some)) == ["w0!2"]
    assert dependency_remarks(some) == [
        "5 jobs depend on jobs that are not in the workload, or cannot run, and will not wait for them: "
        "w0!1 (on 7), w0!2 (on 8), w0!4 (on 10) and others"
    ]
    assert dependency_remarks({"w0": workload(["", "afterok:1"])}) == []


def test_an_absent_preceding_job_is_told() -> None:
    """SWF's preceding jobs are looked for, too; -1 and 0 are none."""
    told = dependency_remarks({"w0": workload(["", "", ""], preceding=[-1, 12, 0])})

    assert told == [
        "1 job depends on jobs that are not in the workload, or cannot run, and will not wait for them: w0!2 (on 12)"
    ]


def test_unsupported_dependencies_are_reported() -> None:
    """Kinds that the server does not know are named, cut if they are long, as data of a log."""
    told = dependency_remarks({"w0": workload(["singleton", "aftercorr:1,after:1", "x\n" + 50 * "y"])})

    assert told == [
        f"3 jobs have dependencies that are not simulated (singleton, aftercorr, x?{28 * 'y'} ... {10 * 'y'}), and "
        "will not wait for them: w0!1, w0!2, w0!3"
    ]


def test_setup_reports_absent_jobs() -> None:
    """A job that is dropped, as one that is too large for the machine, counts as absent."""
    jobs = replace(workload(["", "afterok:1", ""]), size=np.array([9, 1, 1], dtype=np.int64))
    setup = Setup.of(homogeneous(4, "four"), jobs)

    assert setup.conditions == {}
    assert [text.rpartition(": ")[2] for text in setup.remarks] == ["w0!2 (on 1)"]


@pytest.mark.parametrize(
    ("queues", "remarks"),
    [
        (["a", "b", "a"], []),
        (["a", "", "a"], []),
        (["a", "c", "d"], ["2 jobs are in queues that are no class of m, without limits: c, d"]),
        (["a", "c", ""], ["1 job is in queues that are no class of m, without limits: c"]),
        (
            ["c", "c", ""],
            ["no job is in a class of m (a, b), so no limits apply: their queues are c"],
        ),
        (["", "", ""], ["no job is in a class of m (a, b), so no limits apply: they name no queue"]),
    ],
)
def test_jobs_without_limits_are_reported(queues: list[str], remarks: list[str]) -> None:
    """Where a machine has classes a warning names the queues that are none of them; jobs without a queue are usual."""
    machine = Platform(name="m", pools=(Pool(name="p", nodes=4),), classes=(JobClass(name="a"), JobClass(name="b")))
    jobs = replace(workload([""] * 3), labels={"queue": queues} if any(queues) else {})

    assert list(Setup.of(machine, jobs).remarks) == remarks
    assert Setup.of(homogeneous(4, "four"), jobs).remarks == ()
    assert Setup.of(machine, jobs, batsim=BatsimOptions()).remarks == ()
