"""The frames of the native dialect."""

from collections.abc import Sequence as SequenceOf
from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from pipistrelle.protocol.decisions import AnyDecision, Decision
from pipistrelle.protocol.events import AnyEvent
from pipistrelle.protocol.fields import (
    MAX_CONDITIONS,
    MAX_ENTRIES,
    MOST_UNITS,
    PROTOCOL_VERSION,
    Allocation,
    Feature,
    Instant,
    JobId,
    LeaveReason,
    Message,
    RefusalCode,
    Sequence,
    Version,
    WakeType,
)


class HelloData(Struct, frozen=True, omit_defaults=True):
    """The scheduler's name, its protocol versions and the features that it requests."""

    name: Annotated[str, Meta(description="the scheduler's name, for messages and outputs")]
    version: Annotated[str, Meta(description="the scheduler's own version, free text")] = ""
    protocol_min: Version = PROTOCOL_VERSION
    protocol_max: Version = PROTOCOL_VERSION
    features: Annotated[
        tuple[str, ...], Meta(description="optional parts of the protocol that the scheduler requests")
    ] = ()


class WelcomeData(Struct, frozen=True, omit_defaults=True):
    """The session's version and features; runs with equal inputs have the same ``run_id``."""

    protocol: Version
    features: Annotated[tuple[Feature, ...], Meta(description="the requested features that both sides will use")]
    run_id: Annotated[str, Meta(description="identifies the run; the same for equal platform, workload and settings")]
    server: Annotated[str, Meta(description="the server's name and version, free text")] = ""
    max_decisions: Annotated[int, Meta(ge=0, description="maximum number of decisions in one reply")] | None = None
    max_rejections: (
        Annotated[int, Meta(ge=0, description="maximum number of illegal decisions before the next notice")] | None
    ) = None
    max_texts: (
        Annotated[int, Meta(ge=0, description="maximum number of strings in a reply, without field names")] | None
    ) = None
    max_state: (
        Annotated[
            int,
            Meta(
                ge=0, description="maximum size of the scheduler's state in bytes; absent: the server asks for no state"
            ),
        ]
        | None
    ) = None


class RefusedData(Struct, frozen=True):
    """The reason for ending the session: a stable ``code`` and a text for people."""

    code: Annotated[RefusalCode, Meta(description="the cause, for programs")]
    message: Message


class Hello(Struct, frozen=True, tag_field="type", tag="HELLO"):
    """The first frame of a session, sent by the scheduler."""

    data: HelloData


class Welcome(Struct, frozen=True, tag_field="type", tag="WELCOME"):
    """The server's answer to HELLO, message 0; it needs an empty reply."""

    data: WelcomeData


class Refused(Struct, frozen=True, tag_field="type", tag="REFUSED"):
    """The server's last message: it refuses to begin or to continue the session."""

    data: RefusedData


class SaveData(Struct, frozen=True):
    """The number of the last notice that the scheduler has answered."""

    seq: Sequence


class Save(Struct, frozen=True, tag_field="type", tag="SAVE"):
    """The server asks for the scheduler's state; sent instead of a notice."""

    data: SaveData


class SavedData(Struct, frozen=True, omit_defaults=True):
    """A scheduler's state after its reply to a notice; the server never decodes the state."""

    reply_to: Sequence
    state: Annotated[Raw, Meta(description="any JSON that the scheduler understands; null: no state")]
    why: Annotated[str, Meta(description="why there is no state, free text")] = ""


class Saved(Struct, frozen=True, tag_field="type", tag="SAVED"):
    """The scheduler's answer to SAVE."""

    data: SavedData


class RestoreData(Struct, frozen=True):
    """A saved state, with the number and the time of the last notice before it was saved."""

    seq: Sequence
    now: Instant
    state: Annotated[Raw, Meta(description="the state as the scheduler gave it")]


class Restore(Struct, frozen=True, tag_field="type", tag="RESTORE"):
    """The server gives the scheduler a saved state; the scheduler must send an empty reply.

    The RESTORE counts as message number ``seq`` of the session.
    """

    data: RestoreData


class Notice(Struct, frozen=True, omit_defaults=True):
    """The events up to ``now``; a notice with SIMULATION_ENDS needs no reply."""

    seq: Sequence
    now: Instant
    events: Annotated[list[AnyEvent], Meta(description="the events, in order")]
    next: (
        Annotated[
            Instant,
            Meta(description="time of the server's next event, in seconds, if the scheduler decides nothing"),
        ]
        | None
    ) = None


class WakeAtEnd(Struct, frozen=True, omit_defaults=True):
    """A condition under which the end of a job wakes the scheduler; all its fields must hold."""

    free: (
        Annotated[int, Meta(ge=0, le=MOST_UNITS, description="this many units are in service and held by no job")]
        | None
    ) = None
    units: Annotated[Allocation, Meta(description="only free units of this set count; absent: all units")] | None = None
    jobs: (
        Annotated[tuple[JobId, ...], Meta(max_length=MAX_ENTRIES, description="the event is about one of these jobs")]
        | None
    ) = None
    time: Annotated[Instant, Meta(description="this simulated time, in seconds, is reached")] | None = None


class WakeAtSubmission(WakeAtEnd, frozen=True, omit_defaults=True):
    """A condition under which a submission wakes the scheduler; all its fields must hold."""

    spare: (
        Annotated[int, Meta(ge=0, le=MOST_UNITS, description="this many units more than the job's are free")] | None
    ) = None
    ends_by: (
        Annotated[Instant, Meta(description="submission plus walltime of the job is at most this time, in seconds")]
        | None
    ) = None


class WakeWhen(Struct, frozen=True, omit_defaults=True):
    """Conditions on event types: an event wakes the scheduler only if one of its type's conditions holds."""

    submitted: (
        Annotated[
            tuple[WakeAtSubmission, ...],
            Meta(max_length=MAX_CONDITIONS, description="conditions on submissions; absent: each of them wakes"),
        ]
        | None
    ) = field(default=None, name="JOB_SUBMITTED")
    completed: (
        Annotated[
            tuple[WakeAtEnd, ...],
            Meta(max_length=MAX_CONDITIONS, description="conditions on ends of jobs; absent: each of them wakes"),
        ]
        | None
    ) = field(default=None, name="JOB_COMPLETED")


class Reply(Struct, frozen=True, omit_defaults=True):
    """A scheduler's decisions.

    ``now`` is the simulated time at which the scheduler is ready again. ``wake`` lists the event types that wake the
    scheduler next; without ``wake``, all events do. ``wake_when`` adds conditions. Other events are not lost: they
    come, in order, with the next notice. A reply with ``leaves`` is the scheduler's last: the simulation ends, and the
    server ignores the decisions. ``keeps`` is a text for people: if the run stalls, the error message quotes it.
    """

    reply_to: Sequence
    now: Instant
    events: SequenceOf[Decision] = field(default_factory=list)
    wake: (
        Annotated[
            tuple[WakeType, ...],
            Meta(max_length=MAX_ENTRIES, description="event types that wake the scheduler next"),
        ]
        | None
    ) = None
    leaves: Annotated[LeaveReason, Meta(description="why the scheduler ends before the simulation does")] | None = None
    keeps: Annotated[
        tuple[str, ...], Meta(max_length=MAX_ENTRIES, description="what keeps units from queued jobs, in words")
    ] = ()
    wake_when: Annotated[WakeWhen, Meta(description="conditions under which events wake the scheduler next")] | None = (
        None
    )


class ReplyFrame(Reply, frozen=True, omit_defaults=True):
    """A reply as decoded from a frame; unreadable decisions in it are `Malformed`."""

    events: Annotated[list[AnyDecision], Meta(description="decisions, carried out in this order")] = field(
        default_factory=list
    )
