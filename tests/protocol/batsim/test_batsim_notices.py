"""A server's messages in Batsim's dialect: what it sends, and what a scheduler reads."""

import json
from typing import Any

import msgspec
import pytest

from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.batsim import codec
from pipistrelle.protocol.batsim.messages import (
    Answer,
    BatsimBeginsData,
    BatsimJob,
    BatsimSubmittedData,
    Notify,
    Query,
    ResourceStateChanged,
    ResourceStateChangedData,
    TaskProgress,
)
from pipistrelle.protocol.events import (
    DecisionRejected,
    DecisionRejectedData,
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobKilled,
    JobKilledData,
    JobSubmitted,
    JobSubmittedData,
    MaintenanceAnnounced,
    MaintenanceAnnouncedData,
    MaintenanceBegins,
    MaintenanceBeginsData,
    MaintenanceEnds,
    MaintenanceEndsData,
    NodesFailed,
    NodesFailedData,
    NodesRepaired,
    NodesRepairedData,
    NoMoreJobs,
    Progress,
    RequestedCall,
    RequestedCallData,
    SimulationBegins,
    SimulationBeginsData,
    SimulationEnds,
    SimulationEndsData,
)
from pipistrelle.protocol.fields import LONGEST
from pipistrelle.protocol.messages import Notice


def told(*events: Any, now: float = 10.0) -> list[Any]:
    """Return the events of a notice as a client sees them."""
    message = json.loads(codec.encode_notice(Notice(1, now, list(events))))
    assert message["now"] == now
    return list(message["events"])


def heard(*events: Any, now: Any = 10.0) -> list[Any]:
    """Return the events that a scheduler gets from a Batsim's message."""
    return list(codec.decode_notice(json.dumps({"now": now, "events": events}).encode(), 7).events)


def wire(kind: str, data: Any, at: Any = 10.0) -> dict[str, Any]:
    """Return an event or decision as JSON on the wire."""
    return {"timestamp": at, "type": kind, "data": data}


def test_completions_have_every_field() -> None:
    """A return code of 0 is also written, because clients read it without a check."""
    event = JobCompleted(9.0, JobCompletedData("w0!1", "COMPLETED_SUCCESSFULLY", "0-1"))
    data = {"job_id": "w0!1", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0-1"}

    assert told(event) == [wire("JOB_COMPLETED", data, 9.0)]


def test_a_job_is_sent_as_its_own_json() -> None:
    """Unknown fields reach the scheduler, and the profile if profiles are forwarded."""
    raw = msgspec.Raw(b'{"id": "w0!1", "res": 2, "mine": [1, null]}')
    job = BatsimJob("w0!1", 2, None, 5.0, "p", raw=raw)
    profile = msgspec.Raw(b'{"type":"delay","delay":3}')
    alone, both = told(
        JobSubmitted(9.0, BatsimSubmittedData("w0!1", job)),
        JobSubmitted(9.0, BatsimSubmittedData("w0!1", job, profile)),
    )

    assert alone == wire("JOB_SUBMITTED", {"job_id": "w0!1", "job": json.loads(bytes(raw))}, 9.0)
    assert both["data"] == {**alone["data"], "profile": {"type": "delay", "delay": 3}}


def test_a_native_job_is_also_sent_with_a_profile() -> None:
    """A profile can be forwarded with a job that has no JSON."""
    data = BatsimSubmittedData("w0!1", JobDescription("w0!1", 2), msgspec.Raw(b"{}"))

    assert told(JobSubmitted(9.0, data))[0]["data"] == {
        "job_id": "w0!1",
        "job": {"id": "w0!1", "res": 2},
        "profile": {},
    }


def test_kills_always_have_progress() -> None:
    """The object is there when no job was really killed; a composed profile's progress is nested and has no share."""
    inner = TaskProgress(0.1, "seq", current_task_index=1, current_task=Progress(0.25, "d"))
    outer = TaskProgress(0.2, "all", current_task_index=0, current_task=inner)
    none, some = told(
        JobKilled(9.0, JobKilledData(("w0!1",))), JobKilled(9.0, JobKilledData(("w0!1",), {"w0!1": outer}))
    )

    assert none["data"] == {"job_ids": ["w0!1"], "job_progress": {}}
    assert some["data"]["job_progress"]["w0!1"] == {
        "profile_name": "all",
        "current_task_index": 0,
        "current_task": {
            "profile_name": "seq",
            "current_task_index": 1,
            "current_task": {"profile_name": "d", "progress": 0.25},
        },
    }


def test_a_kill_before_the_first_part_has_index_minus_1() -> None:
    """A composed job killed before its first part has the index -1 and no part."""
    progress = TaskProgress(0.0, "all", current_task_index=-1)
    data = told(JobKilled(9.0, JobKilledData(("w0!1",), {"w0!1": progress})))[0]["data"]

    assert data["job_progress"] == {"w0!1": {"profile_name": "all", "current_task_index": -1}}
    assert heard(wire("JOB_KILLED", data))[0].data.job_progress == {"w0!1": progress}


def test_events_with_other_names_in_the_dialect() -> None:
    """The end of the workloads is a NOTIFY; the simulation's end has no reason; calls have no names."""
    ends = SimulationEnds(9.0, SimulationEndsData("stalled", "jobs wait"))
    events = told(NoMoreJobs(9.0), RequestedCall(9.0, RequestedCallData("mine")), RequestedCall(9.0), ends)

    assert events == [
        wire("NOTIFY", {"type": "no_more_static_job_to_submit"}, 9.0),
        wire("REQUESTED_CALL", {}, 9.0),
        wire("REQUESTED_CALL", {}, 9.0),
        wire("SIMULATION_ENDS", {}, 9.0),
    ]


def test_batsims_own_events_are_sent_unchanged() -> None:
    """Power states, notifications, answers and queries have the same form in both dialects."""
    events = [
        ResourceStateChanged(9.0, ResourceStateChangedData("0-3", "13")),
        Notify(9.0, {"type": "event_machine_available", "resources": "1"}),
        Answer(9.0, {"consumed_energy": 12500.0}),
        Query(9.0, {"requests": {"estimate_waiting_time": {"job_id": "w0!1", "job": {"res": 1}}}}),
    ]

    assert told(*events) == [msgspec.to_builtins(event) for event in events]
    assert heard(*told(*events)) == events


def test_node_failures_are_sent_as_machine_events() -> None:
    """Failures and maintenance are Batsim's events of machines, by their units; planned maintenance is not sent."""
    nodes: dict[str, Any] = {"nodes": "1-2", "units": "4-11"}
    events = told(
        NodesFailed(9.0, NodesFailedData(**nodes, cause="fan")),
        NodesRepaired(9.0, NodesRepairedData(**nodes)),
        MaintenanceAnnounced(9.5, MaintenanceAnnouncedData("m1", 20.0, 30.0, **nodes)),
        MaintenanceBegins(10.0, MaintenanceBeginsData("m1", **nodes)),
        MaintenanceEnds(10.0, MaintenanceEndsData("m1", **nodes)),
    )
    gone: dict[str, Any] = {"type": "event_machine_unavailable", "resources": "4-11"}
    back: dict[str, Any] = {"type": "event_machine_available", "resources": "4-11"}

    assert events == [
        wire("NOTIFY", gone, 9.0),
        wire("NOTIFY", back, 9.0),
        wire("NOTIFY", gone, 10.0),
        wire("NOTIFY", back, 10.0),
    ]
    assert heard(*events) == [Notify(9.0, gone), Notify(9.0, back), Notify(10.0, gone), Notify(10.0, back)]


def test_a_job_that_lost_its_nodes_is_sent_as_failed() -> None:
    """The dialect has no cause; the new attempt has its own JSON, whose id is the attempt's."""
    lost = JobCompletedData("w0!1", "COMPLETED_FAILED", "0-1", -1, "fan")
    raw = msgspec.Raw(b'{"id":"w0!1#1","res":2,"subtime":5,"walltime":60,"profile":"p","mine":1}')
    again = BatsimJob("w0!1#1", 2, 60.0, 5.0, "p", attempt=1, remaining=0.5, raw=raw)
    events = told(JobCompleted(9.0, lost), JobSubmitted(9.0, BatsimSubmittedData("w0!1#1", again)))

    assert events == [
        wire(
            "JOB_COMPLETED",
            {"job_id": "w0!1", "job_state": "COMPLETED_FAILED", "return_code": -1, "alloc": "0-1"},
            9.0,
        ),
        wire("JOB_SUBMITTED", {"job_id": "w0!1#1", "job": json.loads(bytes(raw))}, 9.0),
    ]


def test_a_plain_machine_is_sent_with_all_fields_for_clients() -> None:
    """Without Batsim's own data, hosts are bare ones and settings Batsim's defaults; given settings stay."""
    data = SimulationBeginsData(2, workloads={"w0": "log"}, config={"sched-config": "x"})
    (begins,) = told(SimulationBegins(0.0, data), now=0.0)
    begins = begins["data"]

    assert (begins["nb_resources"], begins["nb_compute_resources"], begins["nb_storage_resources"]) == (2, 2, 0)
    assert [host["id"] for host in begins["compute_resources"]] == [0, 1]
    assert begins["storage_resources"] == []
    assert begins["profiles"] == {"w0": {}}
    assert begins["config"]["redis-enabled"] is False
    assert begins["config"]["sched-config"] == "x"


def test_storage_counts_as_a_resource_in_messages_only() -> None:
    """Batsim's number of resources includes storage; ours is the number of hosts that compute."""
    host = {"id": 0, "name": "h", "state": "idle", "properties": {}}
    data = BatsimBeginsData(
        nb_resources=1,
        nb_compute_resources=1,
        nb_storage_resources=2,
        allow_compute_sharing=True,
        compute_resources=[host],
        storage_resources=[{**host, "id": 1}, {**host, "id": 2}],
        profiles={"w0": {"p": msgspec.Raw(b'{"type":"delay","delay":1}')}},
        config={"redis-enabled": False},
    )
    (begins,) = told(SimulationBegins(0.0, data), now=0.0)
    (again,) = heard(begins)

    assert begins["data"]["nb_resources"] == 3
    assert (again.data.nb_resources, again.data.nb_storage_resources) == (1, 2)
    assert again.data.allow_compute_sharing
    assert bytes(again.data.profiles["w0"]["p"]) == b'{"type": "delay", "delay": 1}'


def test_our_server_is_known_by_its_first_message() -> None:
    """It names itself with the first events only; neither a Batsim nor garbage is taken for it."""
    first = codec.encode_notice(Notice(1, 0.0, [SimulationBegins(0.0, SimulationBeginsData(1))]))

    assert codec.is_ours(first)
    assert not codec.is_ours(codec.encode_notice(Notice(2, 0.0, [NoMoreJobs(0.0)])))
    assert not codec.is_ours(b"\xff{")


def test_a_rejected_decision_cannot_be_sent() -> None:
    """The dialect has no such event, so the run has to end."""
    rejected = DecisionRejected(9.0, DecisionRejectedData("unknown_job", "no such job", 1, 0, "KILL_JOB"))

    with pytest.raises(LocalProtocolError, match=r"no event DECISION_REJECTED.*no such job"):
        told(rejected)


@pytest.mark.parametrize("time", [float("nan"), float("inf")])
def test_notices_are_finite(time: float) -> None:
    """No notice with a number that JSON cannot represent is sent, wherever the number is."""
    completed = JobCompletedData("w0!1", "COMPLETED_SUCCESSFULLY", "0")
    for notice in (
        Notice(1, time, []),
        Notice(1, time, [JobCompleted(time, completed)]),
        Notice(1, 10.0, [JobCompleted(time, completed)]),
        Notice(1, time, [JobCompleted(1.0, completed)]),
        Notice(1, 10.0, [JobSubmitted(10.0, JobSubmittedData("w0!1", JobDescription("w0!1", 1, subtime=time)))]),
        Notice(1, 10.0, [Answer(10.0, {"consumed_energy": time})]),  # type: ignore[list-item]
    ):
        with pytest.raises(LocalProtocolError, match="not finite"):
            codec.encode_notice(notice)


def test_null_inside_a_workload_is_accepted() -> None:
    """What looks like a lost number may occur in a job's own fields, or in a text."""
    job = BatsimJob("w0!1", 1, raw=msgspec.Raw(b'{"id":"w0!1","note":null}'))

    assert told(JobSubmitted(9.0, BatsimSubmittedData("w0!1", job)))[0]["data"]["job"]["note"] is None


def test_a_lone_surrogate_cannot_be_sent() -> None:
    """Text that UTF-8 cannot encode is rejected with the package's own error."""
    completed = JobCompletedData("\ud800", "COMPLETED_SUCCESSFULLY", "0")

    with pytest.raises(LocalProtocolError, match="cannot be written as JSON"):
        told(JobCompleted(9.0, completed))


def test_no_walltime_has_two_spellings() -> None:
    """Batsim's -1 means no walltime; other walltimes must be above 0."""
    job = {"id": "w0!1", "res": 1, "subtime": 3, "profile": "p"}
    none: list[dict[str, Any]] = [{}, {"walltime": -1}, {"walltime": -1.0}, {"walltime": None}]
    bad: list[dict[str, Any]] = [{"walltime": 0}, {"walltime": -2}, {"walltime": "1"}, {"walltime": 2 * LONGEST}]
    for walltime in none:
        (event,) = heard(wire("JOB_SUBMITTED", {"job_id": "w0!1", "job": {**job, **walltime}}))
        assert event == JobSubmitted(10.0, JobSubmittedData("w0!1", JobDescription("w0!1", 1, None, 3.0, "p")))
    for walltime in bad:
        with pytest.raises(RemoteProtocolError, match="walltime"):
            heard(wire("JOB_SUBMITTED", {"job_id": "w0!1", "job": {**job, **walltime}}))


def test_forwarded_profiles_are_read_on_request() -> None:
    """Without the request they are skipped, at no cost; with it they are kept unchanged."""
    event = wire("JOB_SUBMITTED", {"job_id": "w0!1", "job": {"id": "w0!1", "res": 1}, "profile": {"type": "delay"}})
    frame = json.dumps({"now": 10.0, "events": [event]}).encode()
    (plain,) = codec.decode_notice(frame, 1).events
    (full,) = codec.decode_notice(frame, 1, profiles=True).events

    assert plain == JobSubmitted(10.0, JobSubmittedData("w0!1", JobDescription("w0!1", 1)))
    assert isinstance(full.data, BatsimSubmittedData)
    assert full.data.profile_raw is not None
    assert json.loads(bytes(full.data.profile_raw)) == {"type": "delay"}


def test_events_of_extended_batsims_are_kept() -> None:
    """An event type that Batsim 4 does not have becomes a notification with all its data."""
    (event,) = heard(wire("FROM_JOB_MSG", {"job_id": "w0!1", "msg": "hello"}))

    assert event == Notify(10.0, {"type": "FROM_JOB_MSG", "data": {"job_id": "w0!1", "msg": "hello"}})


def test_shares_are_rounded_back_into_range() -> None:
    """Six printed decimals may exceed 1, which is still a share of 1."""
    (event,) = heard(wire("JOB_KILLED", {"job_ids": ["w0!1"], "job_progress": {"w0!1": {"progress": 1.000001}}}))

    assert event.data.job_progress == {"w0!1": Progress(1.0)}


@pytest.mark.parametrize("config", [{"redis-enabled": True}, {"redis": {"enabled": True}}, {"redis-enabled": "yes"}])
def test_redis_is_refused(config: dict[str, Any]) -> None:
    """Jobs in Redis cannot be read: the text says which option to leave out."""
    with pytest.raises(RemoteProtocolError, match=r"Redis.*--enable-redis"):
        heard(wire("SIMULATION_BEGINS", {"nb_compute_resources": 1, "config": config}))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({}, "there are no compute hosts"),
        ({"nb_resources": 0}, "there are no compute hosts"),
        ({"nb_resources": 2, "compute_resources": [{"id": 0}]}, "not numbered from 0"),
        ({"nb_resources": 1, "compute_resources": [{"id": 1}]}, "not numbered from 0"),
        ({"nb_resources": 1, "compute_resources": [{"id": "0"}]}, "not numbered from 0"),
        ({"nb_resources": 1, "compute_resources": [{"id": False}]}, "not numbered from 0"),
        ({"nb_resources": 1, "compute_resources": [{}]}, "not numbered from 0"),
        ({"nb_resources": "1"}, "nb_resources"),
        ({"nb_resources": 1, "config": []}, "config"),
    ],
)
def test_bad_machines_are_refused(data: dict[str, Any], text: str) -> None:
    """A machine that cannot be scheduled on, or that units cannot represent, is rejected with a reason."""
    with pytest.raises(RemoteProtocolError, match=text):
        heard(wire("SIMULATION_BEGINS", data))


@pytest.mark.parametrize(
    "event",
    [
        1,
        {},
        {"timestamp": 1.0, "type": "JOB_SUBMITTED"},
        {"type": "NOTIFY", "data": {}},
        wire("JOB_SUBMITTED", {"job_id": "w0!1"}),
        wire("JOB_COMPLETED", {"job_id": "w0!1"}),
        wire("JOB_COMPLETED", {"job_id": "w0!1", "job_state": "DONE", "return_code": 0, "alloc": ""}),
        wire("JOB_KILLED", {"job_ids": "w0!1"}),
        wire("NOTIFY", []),
        wire("SIMULATION_ENDS", {}, -1.0),
        wire("NEW", {}, "now"),
    ],
    ids=str,
)
def test_events_that_cannot_be_read(event: Any) -> None:
    """A server whose events cannot be read is rejected; the message says where."""
    with pytest.raises(RemoteProtocolError, match=r"\$\.events\[1\]"):
        heard(wire("REQUESTED_CALL", {}), event)
