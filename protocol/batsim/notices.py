"""Read and write the server's messages in Batsim's form.

In Batsim's form, failures, repairs and maintenance make machines unavailable or available, without a cause. Batsim has
no announcements: MAINTENANCE_ANNOUNCED is omitted, and a notice with nothing else becomes a message without events.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, Generic, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pipistrelle.protocol.base.errors import LocalProtocolError
from pipistrelle.protocol.batsim.begins import BeginsFrame, begins_of, begins_on_wire
from pipistrelle.protocol.batsim.messages import (
    Answer,
    BatsimJob,
    BatsimSubmittedData,
    Notify,
    Query,
    ResourceStateChanged,
    TaskProgress,
)
from pipistrelle.protocol.events import (
    DecisionRejected,
    Event,
    JobCompleted,
    JobDescription,
    JobKilled,
    JobKilledData,
    JobSubmitted,
    JobSubmittedData,
    MaintenanceAnnounced,
    MaintenanceBegins,
    MaintenanceEnds,
    NodesFailed,
    NodesRepaired,
    NoMoreJobs,
    Progress,
    RequestedCall,
    SimulationBegins,
    SimulationEnds,
)
from pipistrelle.protocol.fields import LATEST, LONGEST, Constraint, Instant, JobId, Units, UnitsPerNode
from pipistrelle.protocol.frames import (
    ABSENT,
    UNREADABLE,
    UNWRITABLE,
    Stamped,
    encode_value,
    encoder,
    name_of,
    placed,
    refuse_frame,
    shortened,
)
from pipistrelle.protocol.messages import Notice

#: the sender in our server's first notice, by which our scheduler recognises the server
SERVER: Final = "pipistrelle"
_T = TypeVar("_T")
_NO_MORE_JOBS: Final = "no_more_static_job_to_submit"

# -- writing ----------------------------------------------------------------------------------------------------------


class _Written(Struct, gc=False):
    now: float
    events: list[Any]


class _WrittenFirst(_Written, gc=False):
    """The first notice of our server, with a field ``server`` that Batsim's clients ignore."""

    server: str


class _WrittenEvent(Struct, gc=False):
    """An event in Batsim's form, with the type first for fast readers."""

    type: str
    timestamp: float
    data: Any


class _CompletedData(Struct, gc=False):
    """The data of a JOB_COMPLETED with all fields, because clients require them."""

    job_id: str
    job_state: str
    return_code: int
    alloc: str


class _Completed(Struct, tag_field="type", tag="JOB_COMPLETED", gc=False):
    timestamp: float
    data: _CompletedData


class _SubmittedData(Struct, omit_defaults=True, gc=False):
    job_id: str
    job: Raw | JobDescription
    profile: Raw | UnsetType = UNSET


def encode_notice(notice: Notice) -> bytes:
    """Return the frame of a notice.

    Raises:
        LocalProtocolError: if Batsim has no form for an event or value, or a number is NaN or infinite.
    """
    now = notice.now
    events: list[Any] = []
    finite = 0 <= now <= LATEST
    for event in notice.events:
        # Nearly every event is of the first two kinds. Their only number that can be invalid is the time.
        if type(event) is JobCompleted:
            data = event.data
            told = _CompletedData(data.job_id, data.job_state, data.return_code, data.alloc)
            events.append(_Completed(event.timestamp, told))
        else:
            one = _WRITERS.get(type(event), _untellable)(event)
            if one is not None:
                events.append(one)
            finite = finite and type(event) is JobSubmitted and type(event.data.job) is BatsimJob
        finite = finite and event.timestamp == now
    if finite:
        try:
            return encoder.encode(_Written(now, events))
        except UNWRITABLE:
            pass  # reported below
    first = notice.events and type(notice.events[0]) is SimulationBegins
    written = _WrittenFirst(now, events, SERVER) if first else _Written(now, events)
    return encode_value(written, "a notice of the batsim dialect")


def _submitted(event: JobSubmitted) -> Any:
    data = event.data
    job = data.job
    told: Raw | JobDescription = job.raw if type(job) is BatsimJob else job
    if type(data) is BatsimSubmittedData and data.profile_raw is not None:
        return _WrittenEvent("JOB_SUBMITTED", event.timestamp, _SubmittedData(data.job_id, told, data.profile_raw))
    if told is job:
        return event
    return _WrittenEvent("JOB_SUBMITTED", event.timestamp, _SubmittedData(data.job_id, told))


def _killed(event: JobKilled) -> _WrittenEvent:
    progress = {job_id: _task(done) for job_id, done in event.data.job_progress.items()}
    return _told(event, {"job_ids": event.data.job_ids, "job_progress": progress})


def _task(done: Progress | None) -> Any:
    if not isinstance(done, TaskProgress):
        return done
    told: dict[str, Any] = {"profile_name": done.profile_name, "current_task_index": done.current_task_index}
    return told if done.current_task is None else told | {"current_task": _task(done.current_task)}


def _told(event: Event, data: dict[str, Any]) -> _WrittenEvent:
    return _WrittenEvent(str(event.__struct_config__.tag), event.timestamp, data)


def _machines(kind: str, event: NodesFailed | NodesRepaired | MaintenanceBegins | MaintenanceEnds) -> Notify:
    return Notify(event.timestamp, {"type": f"event_machine_{kind}", "resources": event.data.units})


def _untellable(event: Any) -> Any:
    raise LocalProtocolError(
        f"the batsim dialect has no event {event.__struct_config__.tag}",
        found=event.data.message if isinstance(event, DecisionRejected) else None,
        hint="In the batsim dialect an illegal decision ends the run." if isinstance(event, DecisionRejected) else None,
    )


_WRITERS: Final[dict[type[Any], Callable[[Any], Any]]] = {
    JobSubmitted: _submitted,
    JobKilled: _killed,
    RequestedCall: lambda event: _told(event, {}) if event.data.id else event,
    NoMoreJobs: lambda event: Notify(event.timestamp, {"type": _NO_MORE_JOBS}),
    SimulationBegins: lambda event: _told(event, begins_on_wire(event.data)),
    SimulationEnds: lambda event: _told(event, {}),
    **dict.fromkeys((ResourceStateChanged, Notify, Answer, Query), lambda event: event),
    **dict.fromkeys((NodesFailed, MaintenanceBegins), partial(_machines, "unavailable")),
    **dict.fromkeys((NodesRepaired, MaintenanceEnds), partial(_machines, "available")),
    MaintenanceAnnounced: lambda event: None,
}

# -- reading ----------------------------------------------------------------------------------------------------------

#: events that need no conversion after decoding; all others are rare
_PlainEvent = JobSubmitted | JobCompleted | JobKilled | RequestedCall | ResourceStateChanged | Query | Answer


class _Read(Struct, gc=False):
    now: Instant
    events: list[_PlainEvent]


class _Envelope(Struct):
    now: Instant
    events: list[Raw]


class _Sender(Struct):
    server: str = ""


class _Job(Struct):
    """A job in Batsim's form; a walltime of -1 means that it has none."""

    id: JobId
    res: Units
    walltime: Annotated[float, Meta(le=LONGEST)] | None = None
    subtime: Instant | None = None
    profile: str | None = None
    constraint: Constraint | None = None
    units_per_node: UnitsPerNode | None = None
    whole_nodes: bool = False


class _ReadSubmittedData(Struct):
    job_id: JobId
    job: _Job
    profile: Raw = ABSENT


class _Task(Struct):
    """The progress of a job or of a part of a job.

    ``progress`` is None if this job or part is itself divided into parts.
    """

    profile_name: str | None = None
    progress: float | None = None
    current_task_index: int | None = None
    current_task: "_Task | None" = None


class _ReadKilledData(Struct):
    job_ids: tuple[JobId, ...]
    job_progress: dict[str, _Task] = {}


class _Dated(Struct, Generic[_T]):
    timestamp: Instant
    data: _T


class _ReadUnknown(Struct):
    timestamp: Instant
    type: str
    data: Any = None


_read = msgspec.json.Decoder(_Read)
_envelope = msgspec.json.Decoder(_Envelope)
_plain_event: msgspec.json.Decoder[_PlainEvent] = msgspec.json.Decoder(_PlainEvent)
_sender = msgspec.json.Decoder(_Sender)
_begins = msgspec.json.Decoder(BeginsFrame)
_ends = msgspec.json.Decoder(Stamped)
_notify = msgspec.json.Decoder(Notify)
_read_submitted = msgspec.json.Decoder(_Dated[_ReadSubmittedData])
_read_killed = msgspec.json.Decoder(_Dated[_ReadKilledData])
_unknown = msgspec.json.Decoder(_ReadUnknown)


def decode_notice(frame: bytes, seq: int, *, profiles: bool = False) -> Notice:
    """Return the notice in a frame, with the number ``seq``.

    SIMULATION_BEGINS has a `BatsimBeginsData`; jobs are native JobDescriptions. With ``profiles``, which is slower, the
    profiles that Batsim sends with jobs are read into `BatsimSubmittedData`. An event of an unknown type, from an
    extended Batsim, becomes a `Notify` of ``{"type": its type, "data": its data}``.

    Raises:
        RemoteProtocolError: if the frame is not a message of Batsim, or Batsim keeps its jobs in Redis.
    """
    if profiles:
        return _notice_by_events(frame, seq)
    try:
        read = _read.decode(frame)
    except UNREADABLE:
        return _notice_by_events(frame, seq)
    return Notice(seq, read.now, read.events)  # type: ignore[arg-type]


def is_ours(frame: bytes) -> bool:
    """Return whether the first notice comes from our server rather than from Batsim."""
    try:
        return _sender.decode(frame).server == SERVER
    except UNREADABLE:
        return False


def _notice_by_events(frame: bytes, seq: int) -> Notice:
    try:
        frame.decode("utf-8")  # the decoders check only the parts that they decode
        envelope = _envelope.decode(frame)
    except UNREADABLE as error:
        refuse_frame(frame, "a message of Batsim's", error)
    events: list[Any] = []
    for index, raw in enumerate(envelope.events):
        name = name_of(raw)
        try:
            events.append(_READERS.get(name or "", _read_other)(raw))
        except UNREADABLE as error:
            refuse_frame(
                bytes(raw), f"an event {shortened(name)} of Batsim's" if name else "an event", placed(error, index)
            )
    return Notice(seq, envelope.now, events)


def _read_notify(raw: Raw) -> Event:
    event = _notify.decode(raw)
    return NoMoreJobs(event.timestamp) if event.data.get("type") == _NO_MORE_JOBS else event


def _read_submission(raw: Raw) -> Event:
    event = _read_submitted.decode(raw)
    data, job = event.data, event.data.job
    walltime = None if job.walltime == -1 else job.walltime
    if walltime is not None and walltime <= 0:
        raise msgspec.ValidationError("Expected a walltime above 0, or -1 for none - at `$.data.job.walltime`")
    description = JobDescription(job.id, job.res, walltime, job.subtime, job.profile)
    if job.constraint is not None or job.units_per_node is not None:
        asks = {"constraint": job.constraint, "units_per_node": job.units_per_node, "whole_nodes": job.whole_nodes}
        description = msgspec.structs.replace(description, **asks)
    if data.profile is ABSENT:
        return JobSubmitted(event.timestamp, JobSubmittedData(data.job_id, description))
    return JobSubmitted(event.timestamp, BatsimSubmittedData(data.job_id, description, data.profile))


def _read_kill(raw: Raw) -> Event:
    event = _read_killed.decode(raw)
    progress = {job_id: _progress(task) for job_id, task in event.data.job_progress.items()}
    return JobKilled(event.timestamp, JobKilledData(event.data.job_ids, progress))


def _progress(task: _Task) -> Progress:
    # Printed with six decimals, a share may slightly exceed 1. A part that has not begun has no share.
    share = min(max(task.progress or 0.0, 0.0), 1.0)
    if task.current_task_index is None:
        return Progress(share, task.profile_name)
    part = None if task.current_task is None else _progress(task.current_task)
    return TaskProgress(share, task.profile_name, current_task_index=task.current_task_index, current_task=part)


def _read_other(raw: Raw) -> Event:
    event = _unknown.decode(raw)
    return Notify(event.timestamp, {"type": event.type, "data": event.data})


_READERS: Final[dict[str, Callable[[Raw], Event]]] = {
    **{str(struct.__struct_config__.tag): _plain_event.decode for struct in get_args(_PlainEvent)},
    "SIMULATION_BEGINS": lambda raw: begins_of(_begins.decode(raw)),
    "SIMULATION_ENDS": lambda raw: SimulationEnds(_ends.decode(raw).timestamp),
    "NOTIFY": _read_notify,
    "JOB_SUBMITTED": _read_submission,
    "JOB_KILLED": _read_kill,
}
#: known types of events; others are read as a NOTIFY
EVENT_TYPES: Final = tuple(_READERS)
