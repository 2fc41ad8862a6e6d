"""Jobs that the scheduler registers itself."""

from typing import Any

DYNAMIC = ("dynamic_jobs",)


def test_a_registered_job_is_submitted_at_once(play: Any) -> None:
    """JOB_SUBMITTED answers REGISTER_JOB at the same instant; the job then is one like any other."""
    game = play(2, [("1", 3, 1, 10, 10)], features=DYNAMIC)
    game.begin()

    assert game.say(game.register("dyn!a", 2, 4, walltime=3)) == ["3 submitted dyn!a"]
    assert game.say(game.execute("dyn!a", "0-1")) == ["6 ended dyn!a WALLTIME_REACHED"]


def test_chain_of_jobs_continues_after_no_more_jobs(play: Any) -> None:
    """A job registered when the last one ends keeps the run alive; it ends when nothing is left."""
    game = play(1, [("1", 0, 1, 5, 5)], features=DYNAMIC)
    game.begin()
    told = [game.say(game.execute("1", "0"))]
    for number in range(3):
        name = f"dyn!{number}"
        told += [game.say(game.register(name, 1, 5)), game.say(game.execute(name, "0"))]

    assert told == [
        ["5 ended 1 SUCCESSFULLY"],
        ["5 submitted dyn!0"],
        ["10 ended dyn!0 SUCCESSFULLY"],
        ["10 submitted dyn!1"],
        ["15 ended dyn!1 SUCCESSFULLY"],
        ["15 submitted dyn!2"],
        ["20 ended dyn!2 SUCCESSFULLY"],
    ]
    assert game.say() is None
    assert game.end() == ["20 ends completed"]


def test_an_empty_workload_can_be_filled_by_the_scheduler(play: Any) -> None:
    """Even without any job of a workload the scheduler gets its chance, with NO_MORE_JOBS."""
    game = play(1, features=DYNAMIC)

    assert game.begin() == ["0 no_more_jobs"]
    assert game.say(game.register("dyn!a", 1, 2)) == ["0 submitted dyn!a"]
    assert game.say(game.execute("dyn!a", "0")) == ["2 ended dyn!a SUCCESSFULLY"]
    assert game.say() is None


def test_a_job_can_be_registered_in_the_first_reply(play: Any) -> None:
    """The reply to the beginning is a reply like any other."""
    game = play(1, [("1", 0, 1, 5, 5)], features=DYNAMIC)
    game.advance()

    told = game.say(game.register("dyn!a", 1, 2))
    while game.engine.cluster.waiting.keys() != {"w0!1", "dyn!a"}:
        told += game.say()

    assert told == ["0 submitted dyn!a", "0 submitted 1", "0 no_more_jobs"]


def test_register_start_and_kill_fit_into_one_reply(play: Any) -> None:
    """A registered job exists for later decisions of the same reply."""
    game = play(1, [("1", 0, 1, 5, 5)], features=DYNAMIC)
    game.begin()
    answer = game.say(game.register("dyn!a", 1, 2), game.execute("dyn!a", "0"), game.kill("dyn!a"))

    assert answer == ["0 submitted dyn!a", "0 ended dyn!a KILLED", "0 killed dyn!a=0"]


def test_the_profile_of_a_registered_job_names_its_run_time(play: Any) -> None:
    """Outputs show the source of the run time; a missing walltime stays empty."""
    game = play(1, [("1", 0, 1, 5, 5)], features=DYNAMIC)
    game.begin()
    game.apply(game.register("dyn!a", 1, 2.5), game.register("dyn!b", 1, 3600))
    waiting = game.engine.cluster.waiting

    assert [(job.profile, job.walltime) for job in waiting.values()] == [
        ("p1", 5.0),
        ("2.5", float("inf")),
        ("3600", float("inf")),
    ]


def test_ids_stay_taken_after_a_registered_job_has_ended(play: Any) -> None:
    """An id is used once in a run."""
    game = play(1, [("1", 9, 1, 5, 5)], features=DYNAMIC)
    game.advance()
    game.apply(game.register("dyn!a", 1, 2), game.reject("dyn!a"), game.register("dyn!a", 1, 2))

    assert game.advance() == ["0 submitted dyn!a", "0 rejected 1[2] duplicate_job"]


def test_registered_jobs_are_limited(play: Any, monkeypatch: Any) -> None:
    """One more is rejected, also when others have ended."""
    monkeypatch.setattr("pipistrelle.server.engine.verdicts.MAX_REGISTERED", 1)
    game = play(2, [("1", 3, 1, 10, 10)], features=DYNAMIC)
    game.begin()

    assert game.say(game.register("dyn!a", 1, 1)) == ["3 submitted dyn!a"]
    assert game.say(game.reject("dyn!a"), game.register("dyn!b", 1, 1)) == ["3 rejected 3[1] too_many"]
