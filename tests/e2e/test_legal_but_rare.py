"""Legal but rare behaviour of schedulers: stop, reject, kill, own jobs, metadata, calls, wake filter."""


def test_stop_ends_the_run_well(shell):
    """Exit code 0; the summary, the terminal and the scheduler get the reason."""
    outcome = shell.simulate("special", "stop").ok()

    assert "peer ended stopped seen enough (1 waiting, 1 running" in outcome.out
    assert "ended early: stopped" in outcome.out
    assert "seen enough" in outcome.out.partition("ended early")[2]
    assert [job[0] for job in shell.ended_jobs()] == ["2"]
    assert b'"stopped"' in shell.files("out")["out_summary.json"]


def test_rejecting_every_job_is_a_normal_end(shell):
    """Exit code 0; each job has a line in the outputs."""
    outcome = shell.simulate("special", "reject-all").ok()

    assert "peer ended completed" in outcome.out
    assert [(job[0], job[7]) for job in shell.ended_jobs()] == [
        ("1", "REJECTED"),
        ("2", "REJECTED"),
        ("3", "REJECTED"),
        ("4", "REJECTED"),
    ]
    assert [line[5] for line in shell.decisions()] == ["no, thank you", "no, thank you", "", ""]


def test_a_kill_that_meets_a_job_at_its_own_end_is_no_error(shell):
    """The job ends by itself first; JOB_KILLED has progress only for jobs that it ended."""
    outcome = shell.simulate("special", "kill").ok()

    jobs = {job[0]: job for job in shell.ended_jobs()}
    assert (jobs["1"][7], jobs["1"][10]) == ("COMPLETED_KILLED", "20.000000")
    assert (jobs["2"][7], jobs["2"][10]) == ("COMPLETED_SUCCESSFULLY", "60.000000")
    assert "JOB_KILLED 20.0 [('job_ids', ['w0!1']), ('job_progress', {'w0!1': {'progress': 0.2}})]" in outcome.out
    assert "JOB_KILLED 60.0 [('job_ids', ['w0!2'])]" in outcome.out


def test_a_kill_dated_after_the_jobs_own_end_is_no_error(shell):
    """The reply is JOB_KILLED without progress."""
    outcome = shell.simulate("special", "kill-late").ok()

    assert "JOB_KILLED 90.0 [('job_ids', ['w0!2'])]" in outcome.out
    assert {"COMPLETED_SUCCESSFULLY"} == {job[7] for job in shell.ended_jobs()}


def test_registered_jobs_run_like_any_other(shell):
    """They are announced, started, ended at their walltime, and written under their own prefix."""
    shell.simulate("special", "dynamic").ok()

    jobs = {(job[1], job[0]): job for job in shell.ended_jobs()}
    assert len(jobs) == 6
    assert (
        jobs["dyn", "a"][3],
        jobs["dyn", "a"][9],
        jobs["dyn", "a"][7],
    ) == ("0.000000", "30.000000", "COMPLETED_SUCCESSFULLY")
    assert (
        jobs["dyn", "b"][3],
        jobs["dyn", "b"][9],
        jobs["dyn", "b"][7],
    ) == ("700.000000", "50.000000", "COMPLETED_WALLTIME_REACHED")


def test_astronomic_times_are_no_bug(shell):
    """Run times near the largest double give figures or a rejection, not an overflow."""
    outcome = shell.simulate("special", "astronomic")

    assert "a bug in pipistrelle" not in outcome.err
    assert outcome.code == 0
    assert {"1", "2", "3", "4"} <= {job[0] for job in shell.ended_jobs()}


def test_metadata_reaches_the_jobs_file(shell):
    """The CSV file returns any metadata text unchanged."""
    shell.simulate("special", "metadata").ok()

    jobs = {job[0]: job for job in shell.ended_jobs()}
    assert jobs["3"][-1] == 'quotes " and, commas\nand lines; \u00fcml\u00e4ut \U0001f987'


def test_calls_come_in_time_and_cancelled_ones_do_not(shell):
    """Calls come with their ids at their times; a cancelled call does not delay the end of the run."""
    outcome = shell.simulate("special", "calls").ok()

    calls = [line for line in outcome.out.splitlines() if line.startswith("peer REQUESTED_CALL")]
    assert calls == ["peer REQUESTED_CALL 5.0 [('id', 'a')]", "peer REQUESTED_CALL 6.0 []"]
    assert "505 s" in outcome.out
    assert "DECISION_REJECTED" not in outcome.out


def test_features_that_the_server_does_not_know_do_no_harm(shell):
    """WELCOME omits unknown features."""
    shell.simulate("special", "odd-features").ok()

    assert b'"wake_filter"\n' in shell.files("out")["out_config.json"]
    assert b"time_travel" not in shell.files("out")["out_config.json"]


def test_the_wake_filter_saves_round_trips_and_changes_nothing(shell):
    """Filtered events come later, in order, and the policy makes the same schedule."""
    filtered = shell.simulate("special", "wake").ok()
    with_filter = shell.ended_jobs()
    shell.simulate("good").ok()

    assert shell.ended_jobs() == with_filter
    types = [(line.split()[1], line.split()[2]) for line in filtered.out.splitlines() if line.startswith("peer ")]
    assert types[:8] == [
        ("SIMULATION_BEGINS", "0.0"),
        ("JOB_SUBMITTED", "0.0"),
        ("JOB_SUBMITTED", "10.0"),
        ("JOB_SUBMITTED", "20.0"),
        ("JOB_COMPLETED", "60.0"),
        ("JOB_COMPLETED", "100.0"),
        ("JOB_COMPLETED", "110.0"),
        ("JOB_SUBMITTED", "500.0"),
    ]
