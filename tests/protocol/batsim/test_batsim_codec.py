"""The batsim dialect's codec: recordings of a real Batsim, round trips, and invalid frames."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.batsim import codec
from pipistrelle.protocol.batsim.messages import (
    Answer,
    AnswerServer,
    ChangeJobState,
    ChangeJobStateData,
    Notify,
    NotifyServer,
    Query,
    ResourceStateChanged,
    ResourceStateChangedData,
    SetResourceState,
    SetResourceStateData,
    TaskProgress,
)
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CallMeLaterData,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    KillJobData,
    Malformed,
    RejectJob,
    RejectJobData,
    SetJobMetadata,
    SetJobMetadataData,
)
from pipistrelle.protocol.events import (
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobKilled,
    JobKilledData,
    JobSubmitted,
    JobSubmittedData,
    NoMoreJobs,
    Progress,
    RequestedCall,
    SimulationBegins,
    SimulationEnds,
)
from pipistrelle.protocol.fields import LATEST, LONGEST, MOST_UNITS
from pipistrelle.protocol.messages import Notice, Reply

unhurried = settings(suppress_health_check=[HealthCheck.too_slow])
NOTICE = Notice(7, 10.0, [])
FILES = (
    "batsched_conservative_bf",
    "batsched_easy_bf",
    "batsched_easy_bf_fast",
    "batsched_energy_bf_monitoring.first60",
    "batsched_filler",
    "batsched_killer",
    "batsched_submitter",
    "pybatsim_easyBackfill",
    "pybatsim_fillerSched",
)


def wire(kind: str, data: Any, at: Any = 10.0) -> dict[str, Any]:
    """Return an event or decision as JSON on the wire."""
    return {"timestamp": at, "type": kind, "data": data}


def decided(*decisions: Any, now: Any = 10.0) -> Reply:
    """Return what the server gets from a client's message, in answer to a notice at 10 s."""
    return codec.decode_reply(json.dumps({"now": now, "events": decisions}).encode(), NOTICE)


@pytest.mark.parametrize("name", FILES)
def test_recorded_messages_survive(batsim4_dir: Path, name: str) -> None:
    """Every recorded frame can be decoded by its receiver, and encoded again with equal data."""
    notice, forwarded = NOTICE, False
    for number, line in enumerate((batsim4_dir / f"wire_{name}.jsonl").read_text().splitlines()):
        direction, text = json.loads(line)
        if direction == "batsim->sched":
            notice = codec.decode_notice(text.encode(), number + 1, profiles=forwarded)
            first = notice.events[0]
            if isinstance(first, SimulationBegins):
                forwarded = first.data.config["profiles-forwarded-on-submission"]
            again = json.loads(codec.encode_notice(notice))
            again.pop("server", None)
        else:
            reply = codec.decode_reply(text.encode(), notice)
            assert not [decision for decision in reply.events if isinstance(decision, Malformed)]
            assert reply.reply_to == notice.seq
            again = json.loads(codec.encode_reply(reply))
        assert again == json.loads(text)


BAD_FRAMES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b'{"events":[]}',
    b'{"now":1}',
    b'{"now":"1","events":[]}',
    b'{"now":-1,"events":[]}',
    b'{"now":1e400,"events":[]}',
    b'{"now":1,"events":{}}',
    b'{"now":1,"events":[{"timestamp":1,"type":"NOTIFY","data":{"type":"\xff"}}]}',
    b'{"now":1,"events":' + b"[" * 100_000,
]


@pytest.mark.parametrize("frame", BAD_FRAMES, ids=lambda frame: repr(frame[:40]))
def test_invalid_frames_are_rejected(frame: bytes) -> None:
    """Both sides reject them with one text that quotes their beginning."""
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        codec.decode_notice(frame, 1)
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        codec.decode_reply(frame, NOTICE)


TIMES = st.floats(0, LATEST)
NAMES = st.text(min_size=1)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.text()),
    lambda values: st.lists(values, max_size=2) | st.dictionaries(st.text(), values, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=2)
STATES = st.sampled_from(["COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_KILLED"])
LEAVES = st.builds(Progress, st.floats(0, 1), st.none() | st.text())
TASKS = st.recursive(
    LEAVES,
    lambda parts: st.builds(
        lambda name, index, part: TaskProgress(0.0, name, current_task_index=index, current_task=part),
        st.text(),
        st.integers(-1, 9),
        parts,
    ),
    max_leaves=3,
)
WALLTIMES = st.none() | st.floats(0, LONGEST, exclude_min=True)
JOBS = st.builds(JobDescription, NAMES, st.integers(1, MOST_UNITS), WALLTIMES, st.none() | TIMES, st.none() | st.text())
EVENTS = st.one_of(
    st.builds(JobSubmitted, TIMES, st.builds(JobSubmittedData, NAMES, JOBS)),
    st.builds(JobCompleted, TIMES, st.builds(JobCompletedData, NAMES, STATES, st.text(), st.integers(-9, 9))),
    st.builds(
        JobKilled,
        TIMES,
        st.builds(JobKilledData, st.lists(NAMES, max_size=2).map(tuple), st.dictionaries(NAMES, TASKS, max_size=2)),
    ),
    st.builds(RequestedCall, TIMES),
    st.builds(NoMoreJobs, TIMES),
    st.builds(ResourceStateChanged, TIMES, st.builds(ResourceStateChangedData, st.text(), st.text())),
    st.builds(Notify, TIMES, OBJECTS),
    st.builds(Answer, TIMES, OBJECTS),
    st.builds(Query, TIMES, OBJECTS),
    st.builds(SimulationEnds, TIMES),
)
DECISIONS = st.one_of(
    st.builds(ExecuteJob, TIMES, st.builds(ExecuteJobData, NAMES, st.text(), st.none() | st.text())),
    st.builds(RejectJob, TIMES, st.builds(RejectJobData, NAMES, st.none() | st.text())),
    st.builds(KillJob, TIMES, st.builds(KillJobData, st.lists(NAMES, max_size=2).map(tuple))),
    st.builds(CallMeLater, TIMES, st.builds(CallMeLaterData, TIMES)),
    st.builds(SetJobMetadata, TIMES, st.builds(SetJobMetadataData, NAMES, st.text())),
    st.builds(SetResourceState, TIMES, st.builds(SetResourceStateData, st.text(), st.text())),
    st.builds(ChangeJobState, TIMES, st.builds(ChangeJobStateData, NAMES, st.text(), st.text())),
    st.builds(NotifyServer, TIMES, st.builds(lambda kind, more: {**more, "type": kind}, st.text(), OBJECTS)),
    st.builds(AnswerServer, TIMES, OBJECTS),
)


@unhurried
@given(TIMES, st.lists(EVENTS, max_size=4))
def test_notices_survive_a_round_trip(now: float, events: list[Any]) -> None:
    """Any notice of events that this dialect has is decoded as it was encoded, each float to the bit."""
    if any(isinstance(e, Notify) and e.data.get("type") == "no_more_static_job_to_submit" for e in events):
        return
    notice = Notice(3, now, events)

    assert repr(codec.decode_notice(codec.encode_notice(notice), 3)) == repr(notice)


@unhurried
@given(TIMES, st.lists(DECISIONS, max_size=4))
def test_replies_survive_a_round_trip(now: float, decisions: list[Any]) -> None:
    """Any reply whose times exceed its notice's by more than rounding is decoded as it was, ordered by time."""
    decisions.sort(key=lambda decision: decision.timestamp)
    latest = max([now, *[decision.timestamp for decision in decisions]])
    notice = Notice(3, 0.0, [])
    again = codec.decode_reply(codec.encode_reply(Reply(3, now, decisions), why=True), notice)

    assert again.now == (0.0 if latest <= codec.ROUNDING else latest)
    for came, went in zip(again.events, decisions, strict=True):
        at = 0.0 if went.timestamp <= codec.ROUNDING else went.timestamp
        assert came == type(went)(at, went.data)


@unhurried
@given(st.binary(max_size=60) | st.builds(lambda value: json.dumps(value).encode(), JSON))
def test_noise_is_refused(frame: bytes) -> None:
    """Arbitrary bytes raise no other error than the package's own."""
    for decode in (lambda: codec.decode_notice(frame, 1), lambda: codec.decode_reply(frame, NOTICE)):
        try:
            decode()
        except RemoteProtocolError:
            continue


@unhurried
@given(st.lists(JSON | st.builds(wire, st.sampled_from(codec.DECISION_TYPES), OBJECTS), max_size=3))
def test_nonsense_in_a_reply_is_malformed(decisions: list[Any]) -> None:
    """A reply with arbitrary JSON as decisions is decoded, with as many decisions."""
    assert len(decided(*decisions).events) == len(decisions)
