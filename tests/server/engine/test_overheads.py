"""When a job's units become free: prologue and epilogue beside its work, and checks of its walltime."""

from typing import Any

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.server.engine.lives import LimitChecks, Overheads
from pipistrelle.server.outages.reliability import Reliability

SLOW = Platform(
    name="m",
    pools=(Pool(name="a", nodes=2, prologue=3.0, epilogue=1.0), Pool(name="b", nodes=2, prologue=5.0)),
    classes=(JobClass(name="big", epilogue=10.0),),
)


def test_units_are_taken_before_and_after_the_work(play: Any) -> None:
    """A job ends its prologue, run time and epilogue after its start; a walltime counts for its work alone."""
    game = play(4, [("1", 0, 1, 10, 20), ("2", 0, 1, 30, 20)], platform=SLOW)
    game.begin()

    assert game.say(game.execute("1", "0"), game.execute("2", "1")) == ["14 ended 1 SUCCESSFULLY"]
    assert game.say() == ["24 ended 2 WALLTIME_REACHED"]


def test_the_slowest_pool_counts_and_the_class_is_added(make_job: Any) -> None:
    """A job on two pools takes the longest prologue and the longest epilogue, and what its queue asks for."""
    overheads = Overheads(SLOW)
    job = make_job()
    job.alloc = type(job.alloc).parse("1-2")

    assert overheads.of(job) == (5.0, 1.0)
    job.labels = (None, None, None, "big", None)
    assert overheads.of(job) == (5.0, 11.0)


def test_a_check_of_limits_counts_whole_seconds(make_job: Any) -> None:
    """A job that began within a second is killed at the check at which its walltime in whole seconds is over."""
    checks, job = LimitChecks(30.0, 0.0, 0.0, {}), make_job()
    job.walltime = 60.0

    assert checks.deadline(job, 120.0) == (180.0, 180.0)
    assert checks.deadline(job, 120.02) == (180.0, 180.0)
    assert checks.deadline(job, 121.25) == (181.25, 210.0)


def test_a_job_in_its_prologue_has_done_nothing(play: Any) -> None:
    """Its progress is none when it is killed then."""
    game = play(4, [("1", 0, 1, 10, 20)], platform=SLOW)
    game.begin()
    game.say(game.execute("1", "0"), game.call(2))

    assert game.say(game.kill("1")) == ["2 ended 1 KILLED", "2 killed 1=0"]


def test_failures_in_prologue_and_epilogue(play: Any) -> None:
    """A node that fails in the prologue costs the job its start; in the epilogue the work is done."""
    outages = Outages.of([Outage(0, 2.0, 4.0), Outage(2, 16.0, 20.0), Outage(1, 13.5, 20.0)])
    rows = [("1", 0, 1, 10, 20), ("2", 0, 1, 10, 20)]
    game = play(4, rows, platform=SLOW, features=("failures",), reliability=Reliability(outages=outages))
    game.begin()

    assert game.say(game.execute("1", "0"), game.execute("2", "1")) == [
        "2 ended 1 FAILED",
        "2 failed 0 (failure)",
        "2 submitted 1#1",
    ]
    assert game.say() == ["4 repaired 0"]
    assert game.say() == ["13.5 ended 2 SUCCESSFULLY", "13.5 failed 1 (failure)"]
