"""Calls, notices of external events, questions, and replies with a later timestamp than the notice."""

import pytest


def outside(what: str, time: float, resources: str) -> dict[str, object]:
    """Return an event of an events file: machines become available or unavailable."""
    return {"type": f"machine_{what}", "timestamp": time, "resources": resources}


# -- calls ------------------------------------------------------------------------------------------------------------


def test_call_happens_at_its_time_and_keeps_the_run_alive(play, job, say) -> None:
    """The run ends after the last call that was asked for, though every job is done."""
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, {1: [say.call(5.5), say.call(99)]})
    assert run.story[3:] == [
        "5.5: requested_call",
        "11: SUCCESSFULLY w0!1 (0) on 0",
        "99: requested_call",
        "99: simulation_ends",
    ]
    assert run.events("REQUESTED_CALL") == [{}, {}]


def test_simultaneous_calls_are_all_sent(play, job, say) -> None:
    """Calls have no names: as many come as were asked for."""
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, {1: [say.call(5), say.call(5), say.call(5)]})
    assert run.story[3] == "5: requested_call, requested_call, requested_call"


@pytest.mark.parametrize(("time", "legal"), [(0.5, False), (-1, False), (1, True)])
def test_a_call_lies_not_in_the_past(play, job, say, time, legal) -> None:
    """One in the past ends the run; one now comes now."""
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, {1: [say.call(time)]})
    assert (run.failure == "") == legal
    assert legal or "CALL_ME_LATER" in run.failure
    assert not legal or run.story[2] == "1: notify no_more_static_job_to_submit, requested_call"


# -- questions and unknown words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("NOTIFY", {"type": "submission_finished"}, "registration_finished or continue_registration"),
        ("NOTIFY", {"type": ""}, "registration_finished or continue_registration"),
        ("NOTIFY", {}, "type"),
        ("ANSWER", {"estimate_waiting_time": 3}, "has not asked"),
        ("QUERY", {"requests": {"consumed_energy": {}}}, "--energy"),
        ("QUERY", {"requests": {"weather": {}}}, "consumed_energy"),
        ("QUERY", {"requests": {}}, "request"),
        ("QUERY", {}, "request"),
        ("SET_RESOURCE_STATE", {"resources": "0", "state": "1"}, "--energy"),
        ("DANCE", {}, "DANCE"),
        ("SUBMIT_JOB", {"job_id": "dyn!1"}, "REGISTER_JOB"),
        ("EXECUTE_JOB", {"job_id": "w0!1"}, "alloc"),
        ("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0", "storage_mapping": {"a": 1}}, "storage"),
    ],
)
def test_what_a_scheduler_cannot_say_ends_the_run(play, job, say, kind, data, text) -> None:
    """Exit code 3, with the expected value; the results so far are in the files."""
    run = play([job("1", "d10", at=1), job("2", "d10", at=20)], {"w0!1": "0"}, {11: [say.any(kind, **data)]})
    assert run.failure.startswith(f"3: decision 0 ({kind}) of the reply to notice 3: illegal decision")
    assert text in run.failure
    assert run.story[-1] == "11: simulation_ends"
    assert run.job("1")["final_state"] == "COMPLETED_SUCCESSFULLY"


def test_decisions_before_an_illegal_one_are_carried_out(play, job, say) -> None:
    """In their order, up to the one that ends the run."""
    run = play([job("1", "d10", at=1), job("2", "d10", at=1)], {}, {1: [say.reject("w0!1"), say.reject("w0!1")]})
    assert "w0!1 has ended already" in run.failure
    assert [row["job_id"] for row in run.rows("jobs")] == ["1"]


# -- what happens outside ---------------------------------------------------------------------------------------------


def test_machines_leave_and_come_back(play, job, say) -> None:
    """Each change is announced with its machines; the run lasts until the last event, which is announced separately."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        events=[outside("unavailable", 4, "1-2"), outside("available", 30, "2 1")],
    )  # fmt: skip
    assert run.story[3:] == [
        "4: notify event_machine_unavailable 1-2",
        "11: SUCCESSFULLY w0!1 (0) on 0",
        "30: notify event_machine_available 1-2",
        "30: notify no_more_external_event_to_occur",
        "30: simulation_ends",
    ]
    assert run.events("NOTIFY")[1] == {"type": "event_machine_unavailable", "resources": "1-2"}


def test_job_on_a_leaving_machine_continues(play, job, say) -> None:
    """As in Batsim it ends as it would have; then the machine is not free before it is back."""
    events = [outside("unavailable", 4, "0"), outside("available", 30, "0")]
    jobs = [job("1", "d10", at=1), job("2", "d10", at=12)]
    run = play(jobs, {"w0!1": "0"}, {30: [say.execute("w0!2", "0")]}, events=events)
    assert run.job("1")["finish_time"] == "11.000000"
    assert run.job("2")["starting_time"] == "30.000000"
    early = play(jobs, {"w0!1": "0", "w0!2": "0"}, events=events)
    assert early.failure.startswith("3: ")
    assert "units that are down, switched off, switching or unavailable: 0" in early.failure


def test_a_machine_can_leave_and_return_while_its_job_runs(play, job, say) -> None:
    """It is the job's all the time, and free after it."""
    run = play(
        [job("1", "d10", at=1), job("2", "d10", at=5)], {"w0!1": "0"}, {11: [say.execute("w0!2", "0")]},
        events=[outside("unavailable", 3, "0"), outside("available", 4, "0")],
    )  # fmt: skip
    assert run.job("2")["starting_time"] == "11.000000"
    too_early = play(
        [job("1", "d10", at=1), job("2", "d10", at=5)], {"w0!1": "0", "w0!2": "0"},
        events=[outside("unavailable", 3, "0"), outside("available", 4, "0")],
    )  # fmt: skip
    assert "units that are taken: 0" in too_early.failure


def test_events_at_the_time_of_a_submission_come_before_it(play, job, say) -> None:
    """Ends, then events, then submissions, in one notice; coming back before leaving."""
    run = play(
        [job("1", "d10", at=1), job("2", "d10", at=11)], {"w0!1": "0", "w0!2": "3"},
        events=[outside("unavailable", 11, "0"), outside("available", 11, "1"), outside("unavailable", 1, "1")],
    )  # fmt: skip
    assert run.story[1:4] == [
        "1: notify event_machine_unavailable 1, submitted w0!1",
        "11: SUCCESSFULLY w0!1 (0) on 0, notify event_machine_available 1, notify event_machine_unavailable 0, "
        "submitted w0!2",
        "11: notify no_more_external_event_to_occur, notify no_more_static_job_to_submit",
    ]


@pytest.mark.parametrize("forward", [False, True])
def test_unknown_events_are_forwarded_if_wanted(play, job, forward) -> None:
    """With all of their fields, or not at all; they count among the events that are to occur."""
    event = {"type": "power_cap", "timestamp": 20, "watts": [1.5, None]}
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, events=[event], forward_unknown_events=forward)
    notices = ["20: notify power_cap 20 [1.5, None]"] if forward else []
    assert run.story[4:] == [*notices, "20: notify no_more_external_event_to_occur", "20: simulation_ends"]
    assert not forward or run.events("NOTIFY")[1] == event


def test_events_without_any_job_are_played(play) -> None:
    """Files of events alone make a run, too."""
    run = play([], events=[outside("unavailable", 4, "0-3")])
    assert run.story == [
        "0: simulation_begins",
        "0: notify no_more_static_job_to_submit",
        "4: notify event_machine_unavailable 0-3",
        "4: notify no_more_external_event_to_occur",
        "4: simulation_ends",
    ]


def test_machines_that_do_not_exist_or_are_gone_already_are_no_news(play, job) -> None:
    """Only changes are announced; Batsim would abort."""
    run = play(
        [job("1", "d10", at=1)], {"w0!1": "0"},
        events=[outside("unavailable", 2, "3-9"), outside("unavailable", 3, "2-3"), outside("unavailable", 4, "9"),
                outside("available", 5, "0-2")],
    )  # fmt: skip
    assert [data.get("resources") for data in run.events("NOTIFY")[1:-1]] == ["3", "2", "2"]


# -- dated replies --------------------------------------------------------------------------------------------------


def test_a_decision_dated_later_is_carried_out_then(play, job, say) -> None:
    """The scheduler is busy until its last decision: events in between are sent after it, with their own timestamps."""
    run = play(
        [job("1", "d10", at=1), job("2", "d10", at=3), job("3", "d5", at=12)], {"w0!3": "2"},
        {1: [say.execute("w0!1", "0", at=2.5), say.call(7, at=6)], 6: [say.execute("w0!2", "1")]},
    )  # fmt: skip
    assert run.story == [
        "0: simulation_begins",
        "1: submitted w0!1",
        "6: @3 submitted w0!2",
        "7: requested_call",
        "12: submitted w0!3",
        "12: notify no_more_static_job_to_submit",
        "12.5: SUCCESSFULLY w0!1 (0) on 0",
        "16: SUCCESSFULLY w0!2 (0) on 1",
        "17: SUCCESSFULLY w0!3 (0) on 2",
        "17: simulation_ends",
    ]
    assert run.job("1")["starting_time"] == "2.500000"
    assert run.job("2")["starting_time"] == "6.000000"


def test_dated_decision_applies_to_the_state_of_its_time(play, job, say) -> None:
    """It can start a job on the unit that is free only then, and is illegal if it is not."""
    jobs = [job("1", "d10", at=1), job("2", "d10", at=1)]
    run = play(jobs, {"w0!1": "0"}, {1: [say.execute("w0!2", "0", at=11)]})
    assert run.story[2:] == [
        "11: @1 notify no_more_static_job_to_submit, SUCCESSFULLY w0!1 (0) on 0",
        "21: SUCCESSFULLY w0!2 (0) on 0",
        "21: simulation_ends",
    ]
    early = play(jobs, {"w0!1": "0"}, {1: [say.execute("w0!2", "0", at=10.5)]})
    assert "decision 1 (EXECUTE_JOB) of the reply to notice 2" in early.failure
    assert "units that are taken: 0" in early.failure


def test_the_end_waits_for_a_busy_scheduler(play, job, say) -> None:
    """A reply that lasts longer than all the jobs moves the end of the run."""
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, {11: [say.query(at=50, consumed_energy={})]})
    assert "--energy" in run.failure
    run = play([job("1", "d10", at=1)], {"w0!1": "0"}, {1: [say.call(30, at=20)], 30: [say.call(31, at=30)]})
    assert run.story[2:] == [
        "20: @1 notify no_more_static_job_to_submit, @11 SUCCESSFULLY w0!1 (0) on 0",
        "30: requested_call",
        "31: requested_call",
        "31: simulation_ends",
    ]


def test_a_decision_in_the_past_is_illegal(play, job, say) -> None:
    """Beyond the rounding of six decimals, which is forgiven."""
    run = play([job("1", "d10", at=1)], {}, {1: [say.execute("w0!1", "0", at=0.9999995)]})
    assert run.failure == ""
    assert run.job("1")["starting_time"] == "1.000000"
    run = play([job("1", "d10", at=1)], {}, {1: [say.execute("w0!1", "0", at=0.99)]})
    assert run.failure.startswith("3: ")
    assert "before the notice's now" in run.failure


def test_external_event_during_thinking_is_sent_afterwards(play, job, say) -> None:
    """The machine is gone at once; an earlier decision with a later timestamp fails because of it."""
    events = [outside("unavailable", 3, "0")]
    run = play([job("1", "d10", at=1)], {}, {1: [say.execute("w0!1", "0", at=2)]}, events=events)
    assert run.job("1")["final_state"] == "COMPLETED_SUCCESSFULLY"
    run = play([job("1", "d10", at=1)], {}, {1: [say.execute("w0!1", "0", at=4)]}, events=events)
    assert "unavailable: 0" in run.failure
