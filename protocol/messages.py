"""The frames of the native dialect: HELLO, WELCOME, REFUSED, and then notices and replies in strict turn."""

from collections.abc import Sequence as SequenceOf
from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from pipistrelle.protocol.decisions import AnyDecision, Decision
from pipistrelle.protocol.events import AnyEvent
from pipistrelle.protocol.fields import (
    MAX_ENTRIES,
    PROTOCOL_VERSION,
    Feature,
    Instant,
    LeaveReason,
    Message,
    RefusalCode,
    Sequence,
    Version,
    WakeType,
)


class HelloData(Struct, frozen=True, omit_defaults=True):
    """Who a scheduler is and what it speaks; ``features`` unknown to the server are left out of the WELCOME."""

    name: Annotated[str, Meta(description="what the scheduler is called, in messages and outputs")]
    version: Annotated[str, Meta(description="the scheduler's own version, free text")] = ""
    protocol_min: Version = PROTOCOL_VERSION
    protocol_max: Version = PROTOCOL_VERSION
    features: Annotated[tuple[str, ...], Meta(description="optional parts of the protocol that it wants")] = ()


class WelcomeData(Struct, frozen=True, omit_defaults=True):
    """What both sides will speak; ``run_id`` is the same for equal inputs."""

    protocol: Version
    features: Annotated[tuple[Feature, ...], Meta(description="what was wanted and is there: both sides use it")]
    run_id: Annotated[str, Meta(description="names the simulation; the same for equal platform, workload and settings")]
    server: Annotated[str, Meta(description="the server's name and version, free text")] = ""
    max_decisions: Annotated[int, Meta(ge=0, description="how many decisions one reply may have")] | None = None
    max_rejections: (
        Annotated[int, Meta(ge=0, description="how many illegal decisions there may be before the next notice")] | None
    ) = None
    max_texts: (
        Annotated[int, Meta(ge=0, description="how many texts a reply may have, names of fields apart")] | None
    ) = None
    max_state: (
        Annotated[int, Meta(ge=0, description="bytes of the scheduler's state, which it will be asked for")] | None
    ) = None


class RefusedData(Struct, frozen=True):
    """Why the server will not talk (any more): a stable ``code`` and a text for people."""

    code: Annotated[RefusalCode, Meta(description="the cause, for programs")]
    message: Message


class Hello(Struct, frozen=True, tag_field="type", tag="HELLO"):
    """First frame, from the scheduler."""

    data: HelloData


class Welcome(Struct, frozen=True, tag_field="type", tag="WELCOME"):
    """Answer to HELLO; it counts as message 0, and the scheduler's next frame is an empty reply to it."""

    data: WelcomeData


class Refused(Struct, frozen=True, tag_field="type", tag="REFUSED"):
    """The server's last word to a peer."""

    data: RefusedData


class SaveData(Struct, frozen=True):
    """Which notice the scheduler has answered last."""

    seq: Sequence


class Save(Struct, frozen=True, tag_field="type", tag="SAVE"):
    """Asks a scheduler for its state; from the server, in the place of a notice."""

    data: SaveData


class SavedData(Struct, frozen=True, omit_defaults=True):
    """A scheduler's state after its reply to a notice: any JSON, which the server does not read; ``null``: none."""

    reply_to: Sequence
    state: Annotated[Raw, Meta(description="the scheduler's own; any JSON, null if there is none")]
    why: Annotated[str, Meta(description="why there is none, free text")] = ""


class Saved(Struct, frozen=True, tag_field="type", tag="SAVED"):
    """Answer to SAVE."""

    data: SavedData


class RestoreData(Struct, frozen=True):
    """What a scheduler had said in its SAVED, and when that was."""

    seq: Sequence
    now: Instant
    state: Annotated[Raw, Meta(description="the scheduler's own, as it has given it")]


class Restore(Struct, frozen=True, tag_field="type", tag="RESTORE"):
    """Gives a scheduler its state back; from the server. It counts as message ``seq``, whose reply is empty."""

    data: RestoreData


class Notice(Struct, frozen=True):
    """What happened up to ``now``, in order; only SIMULATION_ENDS wants no reply."""

    seq: Sequence
    now: Instant
    events: Annotated[list[AnyEvent], Meta(description="what happened, in that order")]


class Reply(Struct, frozen=True, omit_defaults=True):
    """A scheduler's decisions, as the engine takes them.

    ``now`` is when the scheduler is ready again, in simulated time. ``wake`` lists the event types that shall wake it
    next; without it, all of them do. Events left out are not lost: they come, in order, with the next notice. One that
    ``leaves`` is the scheduler's last: the simulation ends, and none of its decisions is carried out. ``keeps`` is for
    people: should the run stall, its message names what keeps units from the jobs that wait.
    """

    reply_to: Sequence
    now: Instant
    events: SequenceOf[Decision] = field(default_factory=list)
    wake: (
        Annotated[
            tuple[WakeType, ...],
            Meta(max_length=MAX_ENTRIES, description="event types that shall wake the scheduler next"),
        ]
        | None
    ) = None
    leaves: Annotated[LeaveReason, Meta(description="why the scheduler ends before the simulation does")] | None = None
    keeps: Annotated[
        tuple[str, ...], Meta(max_length=MAX_ENTRIES, description="what keeps units from the jobs that wait, in words")
    ] = ()


class ReplyFrame(Reply, frozen=True, omit_defaults=True):
    """A reply as it stands on the wire."""

    events: Annotated[list[AnyDecision], Meta(description="decisions, carried out in that order")] = field(
        default_factory=list
    )
