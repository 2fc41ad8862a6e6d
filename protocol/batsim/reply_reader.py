"""Read a scheduler's replies in Batsim's form, for a server."""

from collections.abc import Callable
from typing import Any, Final, get_args

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.batsim.messages import (
    AnswerServer,
    BatsimExecuteJob,
    BatsimExecuteJobData,
    BatsimRegisterJob,
    BatsimRegisterJobData,
    ChangeJobState,
    NotifyServer,
    QueryServer,
    RegisterProfile,
    RegisterProfileData,
    SetResourceState,
    SetResourceStateData,
)
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CallMeLaterData,
    Decision,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    Malformed,
    RejectJob,
    SetJobMetadata,
)
from pipistrelle.protocol.fields import Allocation, Instant, JobId, LeaveReason, Why
from pipistrelle.protocol.frames import (
    ABSENT,
    MAX_FRAME_BYTES,
    UNREADABLE,
    check_decisions,
    few_malformed,
    malformed,
    placed,
    refuse_frame,
    too_long,
)
from pipistrelle.protocol.messages import Notice, Reply

#: a reply's time within this many seconds of the notice's time counts as equal, because clients print six decimals
ROUNDING: Final = 1e-6
#: maximum number of digits of ranks and positions, because long numbers are expensive to convert
_DIGITS: Final = 9


class _ExecuteData(Struct, gc=False):
    job_id: JobId
    alloc: Allocation
    why: Why | None = None
    mapping: dict[str, Any] | UnsetType = UNSET
    storage_mapping: Raw = ABSENT
    additional_io_job: Raw = ABSENT


class _Execute(Decision, frozen=True, tag="EXECUTE_JOB", gc=False):
    data: _ExecuteData


class _SwitchData(Struct, gc=False):
    resources: Allocation
    state: str | int


class _Switch(Decision, frozen=True, tag="SET_RESOURCE_STATE", gc=False):
    data: _SwitchData


class _CallData(Struct, gc=False):
    timestamp: Instant


class _Call(Decision, frozen=True, tag="CALL_ME_LATER", gc=False):
    data: _CallData


class _RegisterData(Struct, gc=False):
    job_id: JobId
    job: Raw
    profile: Raw = ABSENT


class _Register(Decision, frozen=True, tag="REGISTER_JOB", gc=False):
    data: _RegisterData


_Readable = (
    _Execute
    | RejectJob
    | KillJob
    | _Call
    | SetJobMetadata
    | _Switch
    | RegisterProfile
    | _Register
    | ChangeJobState
    | NotifyServer
    | QueryServer
    | AnswerServer
)


class _Read(Struct, gc=False):
    now: Instant
    events: list[_Readable]
    leaves: LeaveReason | None = None
    keeps: tuple[str, ...] = ()


class _Envelope(Struct):
    """A reply with its decisions still undecoded, used to find the invalid ones."""

    now: Instant
    events: list[Raw]


class _Wrong(Exception):
    """A decision could be decoded but is wrong."""


_read = msgspec.json.Decoder(_Read)
_envelope = msgspec.json.Decoder(_Envelope)
_decision: msgspec.json.Decoder[_Readable] = msgspec.json.Decoder(_Readable)

#: the decision types of the batsim dialect
DECISION_TYPES: Final = tuple(str(struct.__struct_config__.tag) for struct in get_args(_Readable))
#: {decision type before Batsim 3: its name now}
_RENAMED: Final = {"SUBMIT_JOB": "REGISTER_JOB", "SUBMIT_PROFILE": "REGISTER_PROFILE"}


def decode_reply(frame: bytes, notice: Notice) -> Reply:
    """Return the reply in a frame to ``notice``.

    A time within `ROUNDING` of the notice's time becomes the notice's time. A `Malformed` replaces each decision that
    is unreadable or needs an unsupported feature.

    Raises:
        RemoteProtocolError: if the frame is too long, or is not a reply in JSON. Also if it has too many decisions, or
            too many unreadable ones.
    """
    if len(frame) > MAX_FRAME_BYTES:
        too_long(len(frame), RemoteProtocolError)
    check_decisions(frame)
    now = notice.now
    try:
        read = _read.decode(frame)
    except UNREADABLE:
        return _reply_by_decisions(frame, notice)
    ready = read.now
    if ready != now:
        ready = _rounded(ready, now)
    events: list[Any] = read.events
    if events:
        taken, events = events, []
        for decision in taken:
            if type(decision) is _Execute and decision.timestamp == now:
                data = decision.data
                if data.mapping is UNSET and data.storage_mapping is ABSENT and data.additional_io_job is ABSENT:
                    events.append(ExecuteJob(now, ExecuteJobData(data.job_id, data.alloc, data.why)))
                    continue
            events.append(_taken(decision, len(events), now))
    return Reply(notice.seq, ready, events, None, read.leaves, read.keeps)


def _reply_by_decisions(frame: bytes, notice: Notice) -> Reply:
    try:
        frame.decode("utf-8")  # the decoders check only the parts that they decode
        envelope = _envelope.decode(frame)
    except UNREADABLE as error:
        refuse_frame(frame, "a reply", error)
    ready = _rounded(envelope.now, notice.now)
    events = few_malformed(_one_decision(raw, index, notice.now, ready) for index, raw in enumerate(envelope.events))
    return Reply(notice.seq, ready, events)


def _one_decision(raw: Raw, index: int, now: float, ready: float) -> Decision:
    """Return a decision, or a `Malformed` if it cannot be read.

    Args:
        index: the decision's number in the reply, from 0.
        now: the time of the notice, in seconds.
        ready: the time of the reply, in seconds. A decision without a readable time gets this time.
    """
    try:
        decision = _decision.decode(raw)
    except UNREADABLE as error:
        wrong = malformed(raw, index, ready, error, DECISION_TYPES)
        text = wrong.message
        if wrong.decision in _RENAMED:
            text = (
                f"{wrong.decision} is the name before Batsim 3 - at `$.events[{index}].type`. "
                f"It is {_RENAMED[wrong.decision]} now."
            )
        return Malformed(_rounded(wrong.timestamp, now), decision=wrong.decision, code=wrong.code, message=text)
    return _taken(decision, index, now)


def _taken(decision: Any, index: int, now: float) -> Decision:
    at = _rounded(decision.timestamp, now)
    try:
        return _READERS.get(type(decision), _dated)(decision, at, now)
    except _Wrong as error:
        name = str(decision.__struct_config__.tag)
        return Malformed(at, decision=name, code="malformed", message=placed(error, index))


def _rounded(time: float, now: float) -> float:
    return now if abs(time - now) <= ROUNDING else time


def _dated(decision: Any, at: float, _now: float) -> Decision:
    return decision if at == decision.timestamp else type(decision)(at, decision.data)  # type: ignore[no-any-return]


def _read_execute(decision: _Execute, at: float, _now: float) -> Decision:
    data = decision.data
    for name in ("storage_mapping", "additional_io_job"):
        if getattr(data, name) is not ABSENT:
            raise _Wrong(f"storage is not simulated - at `$.data.{name}`")
    if data.mapping is UNSET:
        return ExecuteJob(at, ExecuteJobData(data.job_id, data.alloc, data.why))
    mapping: dict[str, str] = {}
    for rank, place in data.mapping.items():
        where = place if isinstance(place, str) else str(place) if type(place) is int else ""
        if not (_is_number(rank) and _is_number(where)):
            raise _Wrong("ranks and places are whole numbers from 0 - at `$.data.mapping`")
        mapping[str(int(rank))] = str(int(where))
    # If two spellings name the same rank, another rank has no position.
    if not data.mapping or any(str(rank) not in mapping for rank in range(len(data.mapping))):
        raise _Wrong("every rank from 0 must have its place - at `$.data.mapping`")
    return BatsimExecuteJob(at, BatsimExecuteJobData(data.job_id, data.alloc, data.why, mapping=mapping))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def _read_switch(decision: _Switch, at: float, _now: float) -> Decision:
    return SetResourceState(at, SetResourceStateData(decision.data.resources, str(decision.data.state)))


def _read_call(decision: _Call, at: float, now: float) -> Decision:
    due = decision.data.timestamp
    return CallMeLater(at, CallMeLaterData(now if now - ROUNDING <= due < now else due))


def _read_register(decision: _Register, at: float, _now: float) -> Decision:
    data = decision.data
    profile = None if data.profile is ABSENT else _object(data.profile, "profile")
    return BatsimRegisterJob(at, BatsimRegisterJobData(data.job_id, _object(data.job, "job"), profile))


def _read_profile(decision: RegisterProfile, at: float, _now: float) -> Decision:
    data = decision.data
    profile = _object(data.profile, "profile")
    return RegisterProfile(at, RegisterProfileData(data.workload_name, data.profile_name, profile))


def _object(raw: Raw, name: str) -> Raw:
    """Return a copy of an undecoded JSON object.

    Its frame then need not stay in memory.
    """
    try:
        text = bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not text.startswith("{"):
        raise _Wrong(f"Expected `object` - at `$.data.{name}`")
    return Raw(text)


def _read_notify(decision: NotifyServer, at: float, now: float) -> Decision:
    if not isinstance(decision.data.get("type"), str):
        raise _Wrong("a NOTIFY needs a type, a text - at `$.data.type`")
    return _dated(decision, at, now)


def _read_query(decision: QueryServer, at: float, now: float) -> Decision:
    requests = decision.data.get("requests")
    if not (requests and isinstance(requests, dict)):
        raise _Wrong("a QUERY needs requests, an object that is not empty - at `$.data.requests`")
    return _dated(decision, at, now)


_READERS: Final[dict[type[Any], Callable[[Any, float, float], Decision]]] = {
    _Execute: _read_execute,
    _Switch: _read_switch,
    _Call: _read_call,
    RegisterProfile: _read_profile,
    _Register: _read_register,
    NotifyServer: _read_notify,
    QueryServer: _read_query,
}
