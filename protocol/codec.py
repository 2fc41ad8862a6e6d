"""Frames to messages and back, for the native dialect: one UTF-8 JSON object a frame.

Decoding validates everything that the structs declare. Encoding refuses what JSON cannot carry: NaN and infinities,
which the encoder would silently turn into ``null``.
"""

from typing import Final, get_args

import msgspec

from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.decisions import AnyDecision, Decision
from pipistrelle.protocol.frames import (
    MAX_FRAME_BYTES,
    UNREADABLE,
    check_decisions,
    encode_value,
    encoder,
    few_malformed,
    malformed,
    refuse_frame,
    too_long,
)
from pipistrelle.protocol.messages import Hello, Notice, Refused, Reply, ReplyFrame, Welcome


class _Envelope(msgspec.Struct):
    """A reply whose decisions are still undecoded, for finding out which of them is wrong."""

    reply_to: int
    now: float
    events: list[msgspec.Raw] = []
    wake: msgspec.Raw = msgspec.Raw(b"null")
    leaves: msgspec.Raw = msgspec.Raw(b"null")
    keeps: msgspec.Raw = msgspec.Raw(b"[]")


# Of one struct alone msgspec does not demand the `type` field; of a union it does.
_handshake: msgspec.json.Decoder[Hello | Welcome | Refused] = msgspec.json.Decoder(Hello | Welcome | Refused)
_notice = msgspec.json.Decoder(Notice)
_reply = msgspec.json.Decoder(ReplyFrame)
_envelope = msgspec.json.Decoder(_Envelope)
_decision: msgspec.json.Decoder[AnyDecision] = msgspec.json.Decoder(AnyDecision)

#: the types that a decision may have
DECISION_TYPES: Final = tuple(str(struct.__struct_config__.tag) for struct in get_args(AnyDecision))


def encode(message: Hello | Welcome | Refused | Notice | Reply) -> bytes:
    """Return the frame of a message.

    Raises
    ------
    LocalProtocolError
        when a number in it is NaN or infinite, when it holds what JSON has nothing for, or when a scheduler's frame
        would be longer than `MAX_FRAME_BYTES`: the caller computed nonsense, the frame must not leave.
    """
    frame = encode_value(message, type(message).__name__)
    if len(frame) > MAX_FRAME_BYTES and isinstance(message, Reply | Hello):
        too_long(len(frame), LocalProtocolError)
    return frame


def decode_hello(frame: bytes) -> Hello:
    """Return the HELLO in a frame; RemoteProtocolError if it is too long or is not one."""
    if len(frame) > MAX_FRAME_BYTES:
        too_long(len(frame), RemoteProtocolError)
    message = _decode(frame, "HELLO")
    if not isinstance(message, Hello):
        raise _unexpected(message, "HELLO")
    return message


def decode_greeting(frame: bytes) -> Welcome | Refused:
    """Return the server's answer to a HELLO; RemoteProtocolError if it is none."""
    message = _decode(frame, "WELCOME or REFUSED")
    if isinstance(message, Hello):
        raise _unexpected(message, "WELCOME or REFUSED")
    return message


def decode_notice(frame: bytes) -> Notice | Refused:
    """Return the notice in a frame, or the REFUSED that ends a session; RemoteProtocolError if it is neither."""
    try:
        return _notice.decode(frame)
    except UNREADABLE as error:
        try:
            message = _handshake.decode(frame)
        except UNREADABLE:
            refuse_frame(frame, "a notice", error)
        if not isinstance(message, Refused):
            raise _unexpected(message, "a notice") from None
        return message


def decode_reply(frame: bytes) -> Reply:
    """Return the reply in a frame.

    A decision that cannot be read does not spoil the others: a `Malformed` stands in its place.

    Raises
    ------
    RemoteProtocolError
        when the frame is too long, is not JSON, or is not a reply; when it has too many decisions, or too many of them
        cannot be read.
    """
    if len(frame) > MAX_FRAME_BYTES:
        too_long(len(frame), RemoteProtocolError)
    check_decisions(frame)
    try:
        return _reply.decode(frame)
    except UNREADABLE:
        try:
            frame.decode("utf-8")  # a frame in another encoding is no frame, wherever in it that shows
            envelope = _envelope.decode(frame)
            others = ("reply_to", "now", "wake", "leaves", "keeps")
            whole = _reply.decode(encoder.encode({name: getattr(envelope, name) for name in others}))
        except UNREADABLE as error:
            refuse_frame(frame, "a reply", error)
        events = few_malformed(_one_decision(raw, index, whole.now) for index, raw in enumerate(envelope.events))
        return Reply(whole.reply_to, whole.now, events, whole.wake, whole.leaves, whole.keeps)


def _one_decision(raw: msgspec.Raw, index: int, now: float) -> Decision:
    """Return a decision, or what stands for one that cannot be read; that is dated ``now`` if it has no usable date."""
    try:
        return _decision.decode(raw)
    except UNREADABLE as error:
        return malformed(raw, index, now, error, DECISION_TYPES)


def _decode(frame: bytes, what: str) -> Hello | Welcome | Refused:
    try:
        return _handshake.decode(frame)
    except UNREADABLE as error:
        refuse_frame(frame, what, error)


def _unexpected(message: Hello | Welcome | Refused, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        "this is another message than the one awaited", expected=what, found=str(message.__struct_config__.tag)
    )
