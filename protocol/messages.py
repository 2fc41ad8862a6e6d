"""The frames of the native dialect: HELLO, WELCOME, REFUSED, and then notices and replies in strict turn."""

from collections.abc import Sequence as SequenceOf

from msgspec import Struct, field

from pipistrelle.protocol.decisions import AnyDecision, Decision
from pipistrelle.protocol.events import AnyEvent
from pipistrelle.protocol.fields import PROTOCOL_VERSION, Feature, Instant, RefusalCode, Sequence, WakeType


class HelloData(Struct, frozen=True, omit_defaults=True):
    """Who a scheduler is and what it speaks; ``features`` unknown to the server are left out of the WELCOME."""

    name: str
    version: str = ""
    protocol_min: int = PROTOCOL_VERSION
    protocol_max: int = PROTOCOL_VERSION
    features: tuple[str, ...] = ()


class WelcomeData(Struct, frozen=True, omit_defaults=True):
    """What both sides will speak; ``run_id`` is the same for equal inputs."""

    protocol: int
    features: tuple[Feature, ...]
    run_id: str
    server: str = ""


class RefusedData(Struct, frozen=True):
    """Why the server will not talk (any more): a stable ``code`` and a text for people."""

    code: RefusalCode
    message: str


class Hello(Struct, frozen=True, tag_field="type", tag="HELLO"):
    """First frame, from the scheduler."""

    data: HelloData


class Welcome(Struct, frozen=True, tag_field="type", tag="WELCOME"):
    """Answer to HELLO; it counts as message 0, and the scheduler's next frame is an empty reply to it."""

    data: WelcomeData


class Refused(Struct, frozen=True, tag_field="type", tag="REFUSED"):
    """The server's last word to a peer."""

    data: RefusedData


class Notice(Struct, frozen=True):
    """What happened up to ``now``, in order; only SIMULATION_ENDS wants no reply."""

    seq: Sequence
    now: Instant
    events: list[AnyEvent]


class Reply(Struct, frozen=True, omit_defaults=True):
    """A scheduler's decisions, as the engine takes them.

    ``now`` is when the scheduler is ready again, at or after its last decision. ``wake`` lists the event types that
    shall wake it next; None means all of them. Events left out are not lost: they come, in order, with the next notice.
    """

    reply_to: Sequence
    now: Instant
    events: SequenceOf[Decision] = field(default_factory=list)
    wake: tuple[WakeType, ...] | None = None


class ReplyFrame(Reply, frozen=True, omit_defaults=True):
    """A reply as it stands on the wire."""

    events: list[AnyDecision] = field(default_factory=list)
