"""Jobs and profiles that a scheduler registers while the simulation runs."""

from typing import Any

import pytest

DONE = "registration_finished"
DELAY = {"type": "delay", "delay": 7}


def test_a_registered_job_runs_like_another(play, job, say) -> None:
    """Profile, job, start and the end of registering, in one reply; acknowledgements only on request."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        {1: [say.register_profile("dyn", "p", **DELAY), say.register("dyn!1", "p", walltime=20),
             say.execute("dyn!1", "3"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.story == [
        "0: simulation_begins",
        "1: submitted w0!1",
        "1: notify no_more_static_job_to_submit",
        "8: SUCCESSFULLY dyn!1 (0) on 3",
        "11: SUCCESSFULLY w0!1 (0) on 0",
        "11: simulation_ends",
    ]
    assert run.job("dyn!1") == run.job("dyn!1") | {"submission_time": "0.000000", "requested_time": "20.000000"}


@pytest.mark.parametrize("forward", [False, True])
def test_an_acknowledged_job_is_announced_with_its_fields(play, job, say, forward) -> None:
    """It returns as JOB_SUBMITTED, at once; its profile, too, if profiles are forwarded."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0", "dyn!a": "1"},
        {1: [say.register_profile("dyn", "p", **DELAY), say.register("dyn!a", "p", note={"x": [1.50]}, subtime=1),
             say.notify(DONE)]},
        dynamic_jobs=True, acknowledge_dynamic_jobs=True, forward_profiles=forward,
    )  # fmt: skip
    assert run.story[2] == "1: notify no_more_static_job_to_submit, submitted dyn!a"
    told: dict[str, Any] = {
        "job_id": "dyn!a",
        "job": {"id": "dyn!a", "subtime": 1, "res": 1, "profile": "p", "note": {"x": [1.5]}},
    }
    assert run.events("JOB_SUBMITTED")[1] == told | ({"profile": DELAY} if forward else {})
    assert run.story[-1] == "11: simulation_ends"


def test_a_profile_can_come_with_the_job(play, job, say) -> None:
    """REGISTER_JOB may carry its profile; a second job names it alone."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        {1: [say.register("dyn!1", "p", inside=DELAY), say.register("dyn!2", "p"),
             say.execute("dyn!1", "1"), say.execute("dyn!2", "2"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.story[3] == "8: SUCCESSFULLY dyn!1 (0) on 1, SUCCESSFULLY dyn!2 (0) on 2"


def test_a_job_can_join_a_workload_of_the_files(play, job, say) -> None:
    """Under a name of its own there, as when a job that was killed is submitted again; it has the file's profiles."""
    run = play(
        [job("17", "d10", at=1)], {"w0!17": "0"},
        {1: [say.call(5)], 5: [say.kill("w0!17"), say.register("w0!17#1", "d10", subtime=1),
                                       say.execute("w0!17#1", "0"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.story[3:] == [
        "5: requested_call",
        "5: KILLED w0!17 (-1) on 0, killed w0!17=0.4",
        "15: SUCCESSFULLY w0!17#1 (0) on 0",
        "15: simulation_ends",
    ]
    assert run.job("w0!17#1")["submission_time"] == "1.000000"


def test_parts_of_a_composed_profile_are_registered_before_it(play, job, say) -> None:
    """A composed profile names profiles of its own workload."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        {1: [say.register_profile("dyn", "a", **DELAY),
             say.register_profile("dyn", "twice", type="composed", repeat=2, seq=["a"]),
             say.register("dyn!1", "twice"), say.execute("dyn!1", "1"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.story[-2] == "15: SUCCESSFULLY dyn!1 (0) on 1"


def test_the_first_of_two_profiles_of_one_name_is_kept(play, job, say) -> None:
    """A second one of the same workload and name changes nothing; another workload's is another profile."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        {1: [say.register_profile("dyn", "p", **DELAY), say.register_profile("dyn", "p", type="delay", delay=99),
             say.register_profile("other", "p", type="delay", delay=3), say.register("dyn!1", "p"),
             say.register("other!1", "p"), say.execute("dyn!1", "1"), say.execute("other!1", "2"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.story[3:5] == ["4: SUCCESSFULLY other!1 (0) on 2", "8: SUCCESSFULLY dyn!1 (0) on 1"]


def test_a_registered_delay_of_just_its_walltime_has_reached_it(play, job, say) -> None:
    """The rule of the files' jobs holds for registered ones; return codes do, too."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        {1: [say.register("dyn!1", "p", inside=DELAY, walltime=7),
             say.register("dyn!2", "bad", inside=DELAY | {"ret": 4}),
             say.execute("dyn!1", "1"), say.execute("dyn!2", "2"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.story[3] == "8: WALLTIME_REACHED dyn!1 (-1) on 1, FAILED dyn!2 (4) on 2"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"job_id": "w0!1", "profile": "d10"}, "a job w0!1 exists already"),
        ({"job_id": "w0!2", "profile": "d10"}, "a job w0!2 exists already"),  # it is still to come
        ({"job_id": "dyn!0", "profile": "p"}, "a job dyn!0 exists already"),
        ({"job_id": "dyn!1", "profile": "q"}, "no profile 'q'"),
        ({"job_id": "none!1", "profile": "p"}, "workload 'none' has no profile 'p'"),
        ({"job_id": "dyn!1", "profile": "p", "id": "2"}, "two jobs"),
        ({"job_id": "dyn!1", "profile": "p", "id": "other!1"}, "two jobs"),
        ({"job_id": "dyn", "profile": "p"}, "is no job id"),
        ({"job_id": "!1", "profile": "p"}, "is no job id"),
        ({"job_id": "dyn!", "profile": "p"}, "is no job id"),
        ({"job_id": "dyn!1", "profile": "p", "subtime": 2}, "the subtime of dyn!1 is 2.0; it is 1.0"),
        ({"job_id": "dyn!1", "profile": "p", "subtime": -1}, "submit time"),
        ({"job_id": "dyn!1", "profile": "p", "res": 0}, "size"),
        ({"job_id": "dyn!1", "profile": "p", "walltime": 0}, "walltime"),
        ({"job_id": "dyn!1", "profile": "p", "walltime": -3}, "walltime"),
        ({"job_id": "dyn!1", "profile": "p", "res": "2"}, "res"),
        ({"job_id": "dyn!1", "profile": 3}, "profile"),
    ],
)
def test_a_job_that_cannot_be_registered_is_illegal(play, job, say, data, text) -> None:
    """Exit code 3 with the error and the job's name."""
    job_id, profile = data.pop("job_id"), data.pop("profile")
    first = say.register("dyn!0", "p", inside=DELAY)
    run = play(
        [job("1", "d10", at=1), job("2", "d10", at=30)], {"w0!1": "0"},
        {1: [first, say.register(job_id, profile, **data)]}, dynamic_jobs=True,
    )  # fmt: skip
    assert run.failure.startswith("3: decision 2 (REGISTER_JOB) of the reply to notice 2: illegal decision")
    assert text in run.failure
    assert job_id in run.failure


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        ({"type": "delay"}, "delay"),
        ({"type": "delay", "delay": -1}, "delay"),
        ({"type": "dance"}, "dance"),
        ({"type": "smpi", "trace": "x"}, "smpi"),
        ({"type": "usage_trace", "trace": "/etc/passwd"}, "trace"),
        ({"type": "composed", "repeat": 1, "seq": ["nothing"]}, "nothing"),
        ({"type": "composed", "repeat": 1, "seq": ["p"]}, "p"),
        ({"type": "parallel_homogeneous", "cpu": 1, "com": 5}, "bandwidth"),
        ({}, "type"),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_profile_that_cannot_be_registered_is_illegal(play, job, say, profile, text, inside) -> None:
    """Exit code 3 with the error and the profile's name."""
    decision = say.register("dyn!1", "p", inside=profile) if inside else say.any(
        "REGISTER_PROFILE", workload_name="dyn", profile_name="p", profile=profile
    )  # fmt: skip
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, {1: [decision]}, dynamic_jobs=True)
    assert run.failure.startswith("3: decision 1 (REGISTER_")
    assert text in run.failure
    assert "dyn!p" in run.failure


def test_what_computes_needs_hosts_with_a_speed(play, job, say) -> None:
    """On a platform that does not tell speeds, a profile that computes cannot be registered."""
    from pipistrelle.platforms.description import Platform, Pool

    platform = Platform(name="nodes", description="", pools=(Pool(name="a", nodes=4),))
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        {1: [say.register_profile("dyn", "p", type="parallel_homogeneous", cpu=5, com=0)]},
        dynamic_jobs=True, hosts=platform,
    )  # fmt: skip
    assert "gives no speed" in run.failure


@pytest.mark.parametrize("what", ["register_profile", "register", "notify"])
def test_without_the_option_registering_is_illegal(play, job, say, what) -> None:
    """Exit code 3, with the option's name."""
    decision = {
        "register_profile": say.register_profile("dyn", "p", **DELAY),
        "register": say.register("dyn!1", "d10", inside=DELAY),
        "notify": say.notify(DONE),
    }[what]
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, {1: [decision]})
    assert run.failure.startswith("3: ")
    assert "--enable-dynamic-jobs" in run.failure


def test_a_scheduler_that_never_finishes_registering_stalls_the_run(play, job) -> None:
    """Exit code 5, when all jobs are done: the text names the missing event."""
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, dynamic_jobs=True)
    assert run.failure.startswith("5: ")
    assert "registration_finished" in run.failure
    assert run.story[-1] == "11: simulation_ends"
    assert run.job("1")["final_state"] == "COMPLETED_SUCCESSFULLY"


def test_a_subtime_that_was_rounded_up_is_now(play, job, say) -> None:
    """Clients that print six decimals may be a little ahead of the time; no job waits for less than no time."""
    run = play(
        [job("1", "d10", at=1 / 3)], {"w0!1": "0"},
        {1 / 3: [say.register("dyn!1", "p", inside=DELAY, subtime=0.333334), say.execute("dyn!1", "1"),
                 say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.failure == ""
    assert run.job("dyn!1")["waiting_time"] == "0.000000"


def test_names_with_commas_and_breaks_stay_in_their_column(play, job, say) -> None:
    """Whatever a scheduler calls its workloads and profiles, the files can be read."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        {1: [say.register('a\n"b,!1', 'p,\n"', inside=DELAY, id="1"), say.execute('a\n"b,!1', "1"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.failure == ""
    lines = run.prefix.with_name("out_jobs.csv").read_text()
    assert '1,"a\n""b,","p,\n""",0.000000' in lines


def test_registering_can_resume_after_it_was_finished(play, job, say) -> None:
    """With continue_registration the run waits again for the end of it."""
    answers = {
        1: [say.notify(DONE), say.call(20), say.notify("continue_registration"), say.call(30)],
        20: [say.register("dyn!1", "p", inside=DELAY)],
        30: [say.execute("dyn!1", "0"), say.notify(DONE)],
    }
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, answers, dynamic_jobs=True)
    assert run.story[3:] == [
        "11: SUCCESSFULLY w0!1 (0) on 0",
        "20: requested_call",
        "30: requested_call",
        "37: SUCCESSFULLY dyn!1 (0) on 0",
        "37: simulation_ends",
    ]
    del answers[30]
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, answers, dynamic_jobs=True)
    assert run.failure.startswith("5: ")


def reusing(say) -> dict[float, list[Any]]:
    """Return answers that use a profile of the file after its only job has ended."""
    return {40: [say.register("w0!1#1", "d10"), say.execute("w0!1#1", "0"), say.notify(DONE)]}


def test_a_profile_of_the_files_is_gone_with_its_last_job(play, job, say) -> None:
    """Without the option it cannot be used any more, nor can one that no job of the file has."""
    jobs = [job("1", "d10"), job("2", "d60", at=40)]
    run = play(jobs, {"w0!1": "0"}, reusing(say), dynamic_jobs=True)
    assert run.failure.startswith("3: ")
    assert "profile 'd10' of workload 'w0' is gone" in run.failure
    assert "--enable-profile-reuse" in run.failure


def test_a_profile_is_gone_when_the_end_of_its_last_job_was_told(play, job, say) -> None:
    """In the reply that kills the job it can still be used; in the one to the news of that it cannot, as in Batsim."""
    again = [say.register("w0!1#1", "d10"), say.execute("w0!1#1", "1")]
    jobs = [job("1", "d10"), job("2", "d60")]
    starts = {"w0!1": "0", "w0!2": "2"}
    kept = play(
        jobs, starts, {0: [], 5: [say.kill("w0!1"), *again, say.notify(DONE)]},
        dynamic_jobs=True, events=[{"timestamp": 5, "type": "x"}], forward_unknown_events=True,
    )  # fmt: skip
    assert kept.job("w0!1#1")["finish_time"] == "15.000000"
    gone = play(
        jobs, starts, {0: [], 5: [say.kill("w0!1"), say.call(6)], 6: again},
        dynamic_jobs=True, events=[{"timestamp": 5, "type": "x"}], forward_unknown_events=True,
    )  # fmt: skip
    assert "is gone" in gone.failure


def test_with_the_option_profiles_stay(play, job, say) -> None:
    """A profile of the file stays usable."""
    jobs = [job("1", "d10"), job("2", "d60", at=40)]
    run = play(jobs, {"w0!1": "0", "w0!2": "1"}, reusing(say), dynamic_jobs=True, profile_reuse=True)
    assert run.failure == ""
    assert run.job("w0!1#1")["finish_time"] == "50.000000"


def test_a_profile_stays_as_long_as_a_job_has_it_or_will_have_it(play, job, say) -> None:
    """Jobs that run, wait, are still to come, or were registered keep a profile of the file alive."""
    jobs = [job("1", "d10"), job("2", "d10", at=30)]
    run = play(
        jobs, {"w0!1": "0", "w0!2": "1"},
        {10: [say.register("w0!a", "d10")], 30: [say.call(45)],
         45: [say.register("w0!b", "d10"), say.execute("w0!a", "0"), say.execute("w0!b", "1"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.failure == ""
    assert run.job("w0!b")["finish_time"] == "55.000000"


def test_registered_profiles_of_other_workloads_stay(play, job, say) -> None:
    """Only profiles of the files are removed with their jobs; a scheduler's own workload keeps its profiles."""
    run = play(
        [job("1", "d60", at=1)], {"w0!1": "0"},
        {1: [say.register("dyn!1", "p", inside=DELAY), say.execute("dyn!1", "1")],
         8: [say.register("dyn!2", "p"), say.execute("dyn!2", "1"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.failure == ""
    assert run.job("dyn!2")["finish_time"] == "15.000000"


def test_a_job_larger_than_the_machine_can_be_registered_and_rejected(play, job, say) -> None:
    """As with jobs of the files that is the scheduler's business."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        {1: [say.register("dyn!1", "p", inside=DELAY, res=9), say.reject("dyn!1"), say.notify(DONE)]},
        dynamic_jobs=True,
    )  # fmt: skip
    assert run.failure == ""
    assert run.job("dyn!1")["final_state"] == "REJECTED"
