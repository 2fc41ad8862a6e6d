"""How jobs end in Batsim: by themselves, at the walltime, rejected, killed, or in a declared state."""

import pytest

FAILS = {"p": {"type": "delay", "delay": 10, "ret": 3}}


def test_a_job_that_returns_another_code_than_0_has_failed(play, job) -> None:
    """The profile's code comes with the completion, and the job counts as no success."""
    run = play([job("1", "p", walltime=20)], {"w0!1": "0"}, profiles=FAILS)
    assert run.story[-2:] == ["10: FAILED w0!1 (3) on 0", "10: simulation_ends"]
    assert run.job("1")["final_state"] == "COMPLETED_FAILED"
    assert run.job("1")["success"] == "0"
    schedule = run.rows("schedule")[0]
    assert (schedule["nb_jobs_success"], schedule["nb_jobs_killed"], schedule["success_rate"]) == ("0", "1", "0.000000")


def test_a_part_that_fails_ends_the_whole(play, job) -> None:
    """A composed profile stops in its first round at a part with a return code, and returns that."""
    profiles = {
        "ok": {"type": "delay", "delay": 1},
        "bad": {"type": "delay", "delay": 2, "ret": 7},
        "all": {"type": "composed", "repeat": 5, "seq": ["ok", "bad", "ok"]},
    }
    run = play([job("1", "all")], {"w0!1": "0"}, profiles=profiles)
    assert run.story[-2] == "3: FAILED w0!1 (7) on 0"


@pytest.mark.parametrize(("walltime", "end"), [(9.5, "9.5"), (10, "10")])
def test_a_walltime_that_is_reached_ends_a_job(play, job, walltime, end) -> None:
    """A delay of just the walltime has reached it, as in Batsim; return code -1 whatever the profile's is."""
    run = play([job("1", "p", walltime=walltime)], {"w0!1": "0"}, profiles=FAILS)
    assert run.story[-2] == f"{end}: WALLTIME_REACHED w0!1 (-1) on 0"
    assert run.job("1")["execution_time"] == f"{walltime:.6f}"


def test_a_job_larger_than_the_machine_is_for_the_scheduler_to_reject(play, job, say) -> None:
    """It is submitted like others; a rejected job has no completion, but a row without times."""
    run = play([job("1", "d60", res=5, at=1)], {}, {1: [say.reject("w0!1")]})
    assert run.story == [
        "0: simulation_begins",
        "1: submitted w0!1",
        "1: notify no_more_static_job_to_submit",
        "1: simulation_ends",
    ]
    row = run.job("1")
    assert (row["final_state"], row["starting_time"], row["allocated_resources"]) == ("REJECTED", "", "")


@pytest.mark.parametrize("alloc", ["0-3", "0-4", "0-3 0", "", "0-", "4"])
def test_an_allocation_that_cannot_be_is_illegal(play, job, say, alloc) -> None:
    """Too few, unknown or unreadable hosts end the run, with exit code 3 and the job's name."""
    run = play([job("1", "d60", res=5, at=1)], {"w0!1": alloc})
    assert run.failure.startswith("3: decision 0 (EXECUTE_JOB) of the reply to notice 2: illegal decision")
    assert "w0!1" in run.failure
    assert run.story[-1].endswith("simulation_ends")


def test_a_job_cannot_start_twice_nor_where_another_runs(play, job, say) -> None:
    """The text names which, and the position of the decision."""
    twice = play([job("1", "d60"), job("2", "d60", at=1)], {"w0!1": "0"}, {1: [say.execute("w0!1", "1")]})
    assert "w0!1 runs already" in twice.failure
    shared = play([job("1", "d60"), job("2", "d60", at=1)], {"w0!1": "0", "w0!2": "0"})
    assert "units that are taken: 0" in shared.failure
    assert "decision 0 (EXECUTE_JOB) of the reply to notice" in shared.failure


def test_killed_jobs_complete_with_their_progress(play, job, say) -> None:
    """JOB_COMPLETED for each, then one JOB_KILLED for all; names of profiles with the shares."""
    jobs = [job("1", "d100"), job("2", "d40", res=2), job("3", "d1", at=10)]
    run = play(jobs, {"w0!1": "0", "w0!2": "1-2", "w0!3": "3"}, {10: [say.kill("w0!1", "w0!2")]})
    assert run.story[3:] == [
        "10: notify no_more_static_job_to_submit, "
        "KILLED w0!1 (-1) on 0, KILLED w0!2 (-1) on 1-2, killed w0!1=0.1 w0!2=0.25",
        "11: SUCCESSFULLY w0!3 (0) on 3",
        "11: simulation_ends",
    ]
    assert run.events("JOB_KILLED")[0]["job_progress"] == {
        "w0!1": {"profile_name": "d100", "progress": 0.1},
        "w0!2": {"profile_name": "d40", "progress": 0.25},
    }
    assert run.job("1")["final_state"] == "COMPLETED_KILLED"


def test_kill_of_a_job_that_has_just_ended(play, job, say) -> None:
    """The race: the kill is acknowledged, without progress, and the job has one completion, its own."""
    run = play([job("1", "d10"), job("2", "d60")], {"w0!1": "0", "w0!2": "1"}, {10: [say.kill("w0!1", "w0!2")]})
    assert run.story[-3:] == [
        "10: SUCCESSFULLY w0!1 (0) on 0",
        "10: KILLED w0!2 (-1) on 1, killed w0!1 w0!2=0.166667",
        "10: simulation_ends",
    ]
    assert run.job("1")["final_state"] == "COMPLETED_SUCCESSFULLY"


def test_a_kill_dated_at_a_jobs_end_comes_after_it(play, job, say) -> None:
    """A kill that was sent ahead for the instant of the end finds the job ended."""
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, {1: [say.kill("w0!1", at=11)]})
    assert run.story[-2:] == [
        "11: @1 notify no_more_static_job_to_submit, SUCCESSFULLY w0!1 (0) on 0, killed w0!1",
        "11: simulation_ends",
    ]


def test_a_job_that_is_killed_twice_is_killed_once(play, job, say) -> None:
    """As in Batsim: a job being killed is left out of the next kill, which is answered if any job is left."""
    jobs = [job("1", "d60"), job("2", "d60", at=1), job("3", "d60", at=20)]
    run = play(
        jobs,
        {"w0!1": "0", "w0!2": "1", "w0!3": "2"},
        {1: [say.kill("w0!1", "w0!1")], 20: [say.kill("w0!1", "w0!2"), say.kill("w0!1")]},
    )
    killed = [(data["job_ids"], list(data["job_progress"])) for data in run.events("JOB_KILLED")]
    assert killed == [(["w0!1"], ["w0!1"]), (["w0!2"], ["w0!2"])]
    assert run.failure == ""


@pytest.mark.parametrize(
    ("ids", "text"),
    [(["w0!2"], "w0!2 waits"), (["w0!9"], "no job w0!9"), (["w0!1", "w1!1"], "no job w1!1"), ([], "job_ids")],
)
def test_only_jobs_that_were_started_can_be_killed(play, job, say, ids, text) -> None:
    """A waiting or unknown job ends the run, and none of the decision's jobs is killed."""
    run = play([job("1", "d60"), job("2", "d60", at=1)], {"w0!1": "0"}, {1: [say.kill(*ids)]})
    assert run.failure.startswith("3: ")
    assert text in run.failure
    assert run.events("JOB_KILLED") == []


@pytest.mark.parametrize("state", ["SUCCESSFULLY", "FAILED", "WALLTIME_REACHED", "KILLED"])
def test_a_running_job_can_be_declared_to_have_ended(play, job, say, state) -> None:
    """Its hosts are free from then on; nothing is announced, and nothing happens at its former end."""
    run = play(
        [job("1", "d60"), job("2", "d5", at=20)], {"w0!1": "0"},
        {20: [say.change("w0!1", f"COMPLETED_{state}"), say.execute("w0!2", "0")]},
    )  # fmt: skip
    assert run.story[-2:] == ["25: SUCCESSFULLY w0!2 (0) on 0", "25: simulation_ends"]
    row = run.job("1")
    assert (row["final_state"], row["execution_time"]) == (f"COMPLETED_{state}", "20.000000")


def test_a_waiting_job_can_be_declared_to_run_and_to_have_ended(play, job, say) -> None:
    """It runs on no host of the machine, whichever jobs run there, and takes its time."""
    run = play(
        [job("1", "d60", res=4, at=1), job("2", "d30", res=4, at=1)], {"w0!2": "0-3"},
        {1: [say.change("w0!1", "RUNNING")], 31: [say.change("w0!1", "COMPLETED_SUCCESSFULLY")]},
    )  # fmt: skip
    assert run.story[2:] == [
        "1: notify no_more_static_job_to_submit",
        "31: SUCCESSFULLY w0!2 (0) on 0-3",
        "31: simulation_ends",
    ]
    row = run.job("1")
    assert (row["starting_time"], row["execution_time"], row["allocated_resources"]) == ("1.000000", "30.000000", "")
    assert run.rows("schedule")[0]["nb_jobs_success"] == "2"


def test_a_waiting_job_can_be_declared_to_be_rejected(play, job, say) -> None:
    """That has the same effect as rejecting it."""
    run = play([job("1", "d60", at=1)], {}, {1: [say.change("w0!1", "REJECTED")]})
    assert run.job("1")["final_state"] == "REJECTED"
    assert run.failure == ""


def test_a_job_that_runs_elsewhere_can_be_killed(play, job, say) -> None:
    """It completes like another, on no host."""
    run = play(
        [job("1", "d60", at=1), job("2", "d30", at=1)], {"w0!2": "0"},
        {1: [say.change("w0!1", "RUNNING")], 31: [say.kill("w0!1")]},
    )  # fmt: skip
    assert run.story[-2] == "31: KILLED w0!1 (-1) on , killed w0!1=0.5"


def test_a_job_that_runs_elsewhere_for_ever_stalls_the_run(play, job, say) -> None:
    """Only the scheduler could end it, and it is silent: exit code 5, not a completed run."""
    run = play([job("1", "d60", at=1)], {}, {1: [say.change("w0!1", "RUNNING")]})
    assert run.failure.startswith("5: ")
    assert "w0!1" in run.failure


@pytest.mark.parametrize(
    ("job_id", "state", "text"),
    [
        ("w0!1", "RUNNING", "its last one"),
        ("w0!1", "COMPLETED_KILLED", "its last one"),
        ("w0!2", "REJECTED", "is RUNNING; it cannot become 'REJECTED'"),
        ("w0!2", "RUNNING", "is RUNNING; it cannot become 'RUNNING'"),
        ("w0!2", "SUBMITTED", "is RUNNING; it cannot become 'SUBMITTED'"),
        ("w0!3", "COMPLETED_SUCCESSFULLY", "is SUBMITTED; it cannot become 'COMPLETED_SUCCESSFULLY'"),
        ("w0!3", "SUBMITTED", "is SUBMITTED; it cannot become 'SUBMITTED'"),
        ("w0!3", "DANCING", "is SUBMITTED; it cannot become 'DANCING'"),
        ("w0!4", "RUNNING", "no job w0!4 was submitted"),
    ],
)
def test_other_changes_of_state_are_illegal(play, job, say, job_id, state, text) -> None:
    """The text tells the state and which others could be declared."""
    jobs = [job("1", "d10"), job("2", "d60"), job("3", "d60", at=20), job("4", "d60", at=30)]
    run = play(jobs, {"w0!1": "0", "w0!2": "1"}, {20: [say.change(job_id, state)]})
    assert run.failure.startswith("3: ")
    assert text in run.failure


def test_metadata_stand_in_the_row_of_the_job(play, job, say) -> None:
    """The last text counts, given while the job waits or runs."""
    run = play(
        [job("1", "d60"), job("2", "d60", at=5)], {"w0!1": "0"},
        {5: [say.metadata("w0!1", "first"), say.metadata("w0!2", 'a "b", c')],
         60: [say.execute("w0!2", "1"), say.metadata("w0!2", "last; ü")]},
    )  # fmt: skip
    assert (run.job("1")["metadata"], run.job("2")["metadata"]) == ("first", "last; ü")


def test_metadata_of_unknown_jobs_is_illegal(play, job, say) -> None:
    """Of a job that is not yet submitted, never will be, or whose row is written."""
    for name, text in (("w0!2", "no job"), ("w0!9", "no job"), ("w0!1", "has ended")):
        run = play([job("1", "d60"), job("2", "d60", at=99)], {"w0!1": "0"}, {60: [say.metadata(name, "x")]})
        assert run.failure.startswith("3: ")
        assert text in run.failure
