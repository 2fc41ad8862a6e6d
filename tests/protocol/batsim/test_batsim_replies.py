"""A scheduler's messages in Batsim's dialect: what a server reads, and what is sent."""

import json
from typing import Any

import pytest

from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.batsim import codec
from pipistrelle.protocol.batsim.messages import (
    AnswerServer,
    BatsimExecuteJob,
    BatsimExecuteJobData,
    BatsimRegisterJob,
    ChangeJobState,
    ChangeJobStateData,
    NotifyServer,
    QueryServer,
    RegisterProfile,
    SetResourceState,
    SetResourceStateData,
)
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CallMeLaterData,
    CancelCall,
    CancelCallData,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    KillJobData,
    Malformed,
    RegisterJob,
    RegisterJobData,
    RejectJob,
    RejectJobData,
    SetJobMetadata,
    SetJobMetadataData,
    Stop,
    StopData,
)
from pipistrelle.protocol.events import (
    JobDescription,
)
from pipistrelle.protocol.messages import Notice, Reply

NOTICE = Notice(7, 10.0, [])


def wire(kind: str, data: Any, at: Any = 10.0) -> dict[str, Any]:
    """Return an event or decision as JSON on the wire."""
    return {"timestamp": at, "type": kind, "data": data}


def decided(*decisions: Any, now: Any = 10.0) -> Reply:
    """Return what the server gets from a client's message, in answer to a notice at 10 s."""
    return codec.decode_reply(json.dumps({"now": now, "events": decisions}).encode(), NOTICE)


def one(kind: str, data: Any) -> Any:
    """Return the one decision that the server gets."""
    (decision,) = decided(wire(kind, data)).events
    return decision


def sent(*decisions: Any, now: float = 10.0, why: bool = False) -> dict[str, Any]:
    """Return a scheduler's message as Batsim receives it."""
    message = json.loads(codec.encode_reply(Reply(7, now, list(decisions)), why=why))
    assert isinstance(message, dict)
    return message


def test_decisions_become_the_engines() -> None:
    """Each decision that the dialect has becomes the struct that the engine's tables know."""
    assert one("EXECUTE_JOB", {"job_id": "a", "alloc": "0"}) == ExecuteJob(10.0, ExecuteJobData("a", "0"))
    assert one("REJECT_JOB", {"job_id": "a"}) == RejectJob(10.0, RejectJobData("a"))
    assert one("KILL_JOB", {"job_ids": ["a"]}) == KillJob(10.0, KillJobData(("a",)))
    assert one("CALL_ME_LATER", {"timestamp": 12}) == CallMeLater(10.0, CallMeLaterData(12.0))
    metadata = SetJobMetadata(10.0, SetJobMetadataData("a", "text"))
    assert one("SET_JOB_METADATA", {"job_id": "a", "metadata": "text"}) == metadata
    change = ChangeJobState(10.0, ChangeJobStateData("a", "COMPLETED_KILLED", "why"))
    assert one("CHANGE_JOB_STATE", {"job_id": "a", "job_state": "COMPLETED_KILLED", "kill_reason": "why"}) == change
    assert one("NOTIFY", {"type": "registration_finished"}) == NotifyServer(10.0, {"type": "registration_finished"})
    query: dict[str, Any] = {"requests": {"consumed_energy": {}}}
    assert one("QUERY", query) == QueryServer(10.0, query)
    assert one("ANSWER", {"estimate_waiting_time": {}}) == AnswerServer(10.0, {"estimate_waiting_time": {}})


@pytest.mark.parametrize("state", ["13", 13])
def test_power_states_are_numbers_or_texts(state: Any) -> None:
    """Clients send either; the engine gets a text."""
    switch = SetResourceState(10.0, SetResourceStateData("0-3", "13"))

    assert one("SET_RESOURCE_STATE", {"resources": "0-3", "state": state}) == switch


def test_registrations_keep_their_json() -> None:
    """The JSON of jobs and profiles is passed on undecoded, with or without a profile next to the job."""
    job = {"id": "dyn!1", "res": 1, "profile": "p", "mine": None}
    alone, both = (
        one("REGISTER_JOB", {"job_id": "dyn!1", "job": job}),
        one("REGISTER_JOB", {"job_id": "dyn!1", "job": job, "profile": {"type": "delay"}}),
    )
    profile = one("REGISTER_PROFILE", {"workload_name": "dyn", "profile_name": "p", "profile": {"type": "delay"}})

    assert isinstance(alone, BatsimRegisterJob)
    assert alone.data.profile is None
    assert json.loads(bytes(alone.data.job)) == job
    assert json.loads(bytes(both.data.profile)) == {"type": "delay"}
    assert isinstance(profile, RegisterProfile)
    assert json.loads(bytes(profile.data.profile)) == {"type": "delay"}


def test_mappings_are_normalised() -> None:
    """Ranks and places may be texts or numbers with leading zeros; the engine gets plain decimals."""
    decision = one("EXECUTE_JOB", {"job_id": "a", "alloc": "4-5", "mapping": {"0": 1, "01": "00"}})

    assert decision == BatsimExecuteJob(10.0, BatsimExecuteJobData("a", "4-5", mapping={"0": "1", "1": "0"}))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"mapping": {}}, "every rank"),
        ({"mapping": {"0": 0, "2": 1}}, "every rank"),
        ({"mapping": {"0": 0, "00": 1}}, "every rank"),
        ({"mapping": {"x": 0}}, "whole numbers"),
        ({"mapping": {"0": -1}}, "whole numbers"),
        ({"mapping": {"0": True}}, "whole numbers"),
        ({"mapping": {"0": 0.0}}, "whole numbers"),
        ({"mapping": {"0": "9" * 5000}}, "whole numbers"),
        ({"mapping": {"0": "²"}}, "whole numbers"),
        ({"mapping": None}, "object"),
        ({"storage_mapping": {"pfs": 2}}, "storage is not simulated"),
        ({"additional_io_job": {"alloc": "0"}}, "storage is not simulated"),
        ({"mapping": {"0": "0"}, "storage_mapping": {"pfs": 2}}, "storage is not simulated"),
    ],
)
def test_impossible_executions_are_malformed(data: dict[str, Any], text: str) -> None:
    """An execution with a wrong mapping, or on storage, is malformed with its place."""
    good = wire("EXECUTE_JOB", {"job_id": "b", "alloc": "1"})
    first, second = decided(good, wire("EXECUTE_JOB", {"job_id": "a", "alloc": "0", **data})).events

    assert first == ExecuteJob(10.0, ExecuteJobData("b", "1"))
    assert isinstance(second, Malformed)
    assert (second.decision, second.code, second.timestamp) == ("EXECUTE_JOB", "malformed", 10.0)
    assert text in second.message
    assert "$.events[1].data" in second.message


@pytest.mark.parametrize(
    ("decision", "code", "text"),
    [
        (wire("EXECUTE_JOB", {"job_id": "a"}), "malformed", "alloc"),
        (wire("EXECUTE_JOB", {"job_id": "", "alloc": "0"}), "malformed", "job_id"),
        (wire("KILL_JOB", {"job_ids": "a"}), "malformed", "job_ids"),
        (wire("CALL_ME_LATER", {}), "malformed", "timestamp"),
        (wire("CALL_ME_LATER", {"timestamp": -1}), "malformed", "timestamp"),
        (wire("SET_RESOURCE_STATE", {"resources": "0", "state": None}), "malformed", "state"),
        (wire("REGISTER_JOB", {"job_id": "a!1"}), "malformed", "job"),
        (wire("REGISTER_JOB", {"job_id": "a!1", "job": 3}), "malformed", "$.events[0].data.job"),
        (wire("REGISTER_JOB", {"job_id": "a!1", "job": {}, "profile": 1}), "malformed", "$.events[0].data.profile"),
        (wire("REGISTER_PROFILE", {"workload_name": "w", "profile_name": "p", "profile": []}), "malformed", "profile"),
        (wire("NOTIFY", {}), "malformed", "$.events[0].data.type"),
        (wire("NOTIFY", {"type": 1}), "malformed", "$.events[0].data.type"),
        (wire("QUERY", {"requests": {}}), "malformed", "$.events[0].data.requests"),
        (wire("QUERY", {}), "malformed", "$.events[0].data.requests"),
        (wire("QUERY", []), "malformed", "$.events[0].data"),
        (wire("STOP", {}), "unknown_type", "no decision has the type 'STOP'"),
        (wire("CANCEL_CALL", {"id": "a"}), "unknown_type", "CALL_ME_LATER"),
        (wire("SUBMIT_JOB", {}), "unknown_type", "It is REGISTER_JOB now."),
        (wire("EXECUTE_JOB", {"job_id": "a", "alloc": "0"}, "soon"), "malformed", "timestamp"),
        (3, "malformed", "$.events[0]"),
    ],
)
def test_decisions_that_cannot_be_read(decision: Any, code: str, text: str) -> None:
    """An unreadable decision keeps its place, with a code and the place of the error; the next one is read."""
    first, second = decided(decision, wire("REJECT_JOB", {"job_id": "a"})).events

    assert isinstance(first, Malformed)
    assert (first.code, first.timestamp) == (code, 10.0)
    assert text in first.message
    assert second == RejectJob(10.0, RejectJobData("a"))


def test_registered_json_must_be_utf8() -> None:
    """The undecoded JSON is valid text, so its readers need to handle JSON errors only."""
    frame = b'{"now":10,"events":[{"timestamp":10,"type":"REGISTER_JOB","data":{"job_id":"a!1","job":{"x":"\xff"}}}]}'
    (decision,) = codec.decode_reply(frame, NOTICE).events

    assert isinstance(decision, Malformed)


def test_times_are_compared_as_they_are_printed() -> None:
    """Times within a millionth of a second of the notice's are the notice's; others are unchanged."""
    job = {"job_id": "a", "alloc": "0"}
    early, late = 10.0 - 9e-7, 10.0 + 9e-7
    reply = decided(
        wire("EXECUTE_JOB", job, early),
        wire("EXECUTE_JOB", job, late),
        wire("REJECT_JOB", {"job_id": "a"}, early),
        wire("CALL_ME_LATER", {"timestamp": early}, early),
        wire("CALL_ME_LATER", {"timestamp": late}, early),
        wire("EXECUTE_JOB", {**job, "mapping": {"0": 0}}, early),
        wire("STOP", {}, early),
        wire("EXECUTE_JOB", job, 9.99),
        wire("EXECUTE_JOB", job, 10.005),
        now=late,
    )

    assert reply.now == 10.0
    assert [decision.timestamp for decision in reply.events] == [10.0] * 7 + [9.99, 10.005]
    calls = [decision.data.timestamp for decision in reply.events if isinstance(decision, CallMeLater)]
    assert calls == [10.0, late]
    assert decided(now=10.005).now == 10.005
    assert decided(now=9.9).now == 9.9


def test_replies_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither side handles a scheduler's frame beyond the limit."""
    monkeypatch.setattr("pipistrelle.protocol.batsim.reply_reader.MAX_FRAME_BYTES", 10)
    monkeypatch.setattr("pipistrelle.protocol.batsim.reply_writer.MAX_FRAME_BYTES", 10)

    with pytest.raises(RemoteProtocolError, match="too long"):
        decided()
    with pytest.raises(LocalProtocolError, match="too long"):
        sent()


def test_batsim_gets_no_unknown_field() -> None:
    """Reasons and names of calls are not sent; our own server gets the reasons."""
    decisions = [
        ExecuteJob(10.0, ExecuteJobData("a", "0", "backfilled")),
        BatsimExecuteJob(10.0, BatsimExecuteJobData("a", "0", "by hand", mapping={"0": "0"})),
        RejectJob(10.0, RejectJobData("a", "too large")),
        KillJob(10.0, KillJobData(("a",), "late")),
        CallMeLater(10.0, CallMeLaterData(12.0, "mine")),
    ]
    plain = [event["data"] for event in sent(*decisions)["events"]]
    ours = [event["data"] for event in sent(*decisions, why=True)["events"]]

    assert plain == [
        {"job_id": "a", "alloc": "0"},
        {"job_id": "a", "alloc": "0", "mapping": {"0": "0"}},
        {"job_id": "a"},
        {"job_ids": ["a"]},
        {"timestamp": 12.0},
    ]
    assert [data.get("why") for data in ours] == ["backfilled", "by hand", "too large", "late", None]
    assert [event["data"] for event in sent(decisions[0], why=True)["events"]] == ours[:1]


def test_decisions_go_out_by_time() -> None:
    """Batsim requires ascending times, equal ones in their order, and none after the message's own time."""
    late = ExecuteJob(12.0, ExecuteJobData("late", "0"))
    soon = [RejectJob(11.0, RejectJobData("a")), RejectJob(11.0, RejectJobData("b"))]
    message = sent(late, *soon)

    assert message["now"] == 12.0
    assert [event["data"]["job_id"] for event in message["events"]] == ["a", "b", "late"]


def test_native_registrations_are_translated() -> None:
    """A job with a run time becomes a job with its own delay profile."""
    limited = RegisterJob(10.0, RegisterJobData("dyn!a", JobDescription("dyn!a", 2, 60.0), 30.0))
    free = RegisterJob(10.0, RegisterJobData("dyn!b", JobDescription("dyn!b", 1), 0.0))
    events = sent(limited, free)["events"]
    again = decided(*events).events

    assert [event["type"] for event in events] == ["REGISTER_PROFILE", "REGISTER_JOB"] * 2
    assert events[0]["data"]["profile"] == {"type": "delay", "delay": 30.0}
    profile = events[0]["data"]["profile_name"]
    job = {"id": "dyn!a", "subtime": 10.0, "res": 2, "walltime": 60.0, "profile": profile}
    assert events[1]["data"] == {"job_id": "dyn!a", "job": job}
    assert "walltime" not in events[3]["data"]["job"]
    assert profile != events[2]["data"]["profile_name"]
    assert [type(decision) for decision in again] == [RegisterProfile, BatsimRegisterJob] * 2


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (CancelCall(10.0, CancelCallData("a")), "no decision CANCEL_CALL"),
        (Stop(10.0, StopData()), "no decision STOP"),
        (RegisterJob(10.0, RegisterJobData("a", JobDescription("a", 1), 1.0)), "WORKLOAD!NAME"),
        (RegisterJob(10.0, RegisterJobData("!a", JobDescription("!a", 1), 1.0)), "WORKLOAD!NAME"),
        (RegisterJob(10.0, RegisterJobData("d!a", JobDescription("d!a", 1), float("nan"))), "not finite"),
        (ExecuteJob(float("nan"), ExecuteJobData("a", "0")), "not finite"),
        (CallMeLater(10.0, CallMeLaterData(float("inf"))), "not finite"),
        (ExecuteJob(10.0, ExecuteJobData("\ud800", "0")), "cannot be written as JSON"),
    ],
)
def test_decisions_that_cannot_be_sent(decision: Any, text: str) -> None:
    """Decisions that the dialect lacks, and numbers that JSON cannot represent, are not sent."""
    with pytest.raises(LocalProtocolError, match=text):
        sent(decision)


@pytest.mark.parametrize("now", [float("nan"), float("inf"), float("-inf")])
def test_replies_are_finite(now: float) -> None:
    """The reply's own time is also checked, with and without decisions."""
    with pytest.raises(LocalProtocolError, match="not finite"):
        sent(now=now)
    with pytest.raises(LocalProtocolError, match="not finite"):
        sent(ExecuteJob(now, ExecuteJobData("a", "0")), now=now)


def test_a_wake_filter_cannot_be_sent() -> None:
    """It would have no effect, and the policy relies on it."""
    with pytest.raises(LocalProtocolError, match="wake filter"):
        codec.encode_reply(Reply(7, 10.0, [], ("JOB_COMPLETED",)))


def test_only_our_own_server_gets_the_reason_for_leaving() -> None:
    """They receive the reason why the scheduler leaves; Batsim lacks such a field and gets an empty reply."""
    leaving = Reply(7, 0.0, leaves="interrupted")

    assert json.loads(codec.encode_reply(leaving)) == {"now": 0.0, "events": []}
    assert codec.decode_reply(codec.encode_reply(leaving, why=True), NOTICE) == leaving
