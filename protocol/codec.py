"""Frames to messages and back, for the native dialect: one UTF-8 JSON object a frame.

Decoding validates everything that the structs declare. Encoding refuses what JSON cannot carry: NaN and infinities,
which the encoder would silently turn into ``null``.
"""

from typing import Final, get_args

import msgspec

from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.decisions import AnyDecision, Decision
from pipistrelle.protocol.fields import MAX_STATE
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
from pipistrelle.protocol.messages import (
    Hello,
    Notice,
    Refused,
    Reply,
    ReplyFrame,
    Restore,
    Save,
    Saved,
    SavedData,
    Welcome,
)


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
#: what a server may say instead; a HELLO and a WELCOME only so that it is told what came in its place
_instead: msgspec.json.Decoder[Hello | Welcome | Refused | Save | Restore] = msgspec.json.Decoder(
    Hello | Welcome | Refused | Save | Restore
)
_saved: msgspec.json.Decoder[Hello | Saved] = msgspec.json.Decoder(Hello | Saved)
_reply = msgspec.json.Decoder(ReplyFrame)
_envelope = msgspec.json.Decoder(_Envelope)
_decision: msgspec.json.Decoder[AnyDecision] = msgspec.json.Decoder(AnyDecision)

#: the types that a decision may have
DECISION_TYPES: Final = tuple(str(struct.__struct_config__.tag) for struct in get_args(AnyDecision))


def encode(message: Hello | Welcome | Refused | Notice | Reply | Save | Saved | Restore) -> bytes:
    """Return the frame of a message.

    Raises
    ------
    LocalProtocolError
        when a number in it is NaN or infinite, when it holds what JSON has nothing for, or when a scheduler's frame
        would be longer than `MAX_FRAME_BYTES`: the caller computed nonsense, the frame must not leave.
    """
    frame = encode_value(message, type(message).__name__)
    if len(frame) > MAX_FRAME_BYTES and isinstance(message, Reply | Hello | Saved):
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


def decode_notice(frame: bytes) -> Notice | Refused | Save | Restore:
    """Return the notice in a frame, or what a server may say in its place; RemoteProtocolError if it is neither.

    That is SAVE, RESTORE, or the REFUSED that ends a session.
    """
    try:
        return _notice.decode(frame)
    except UNREADABLE as error:
        try:
            message = _instead.decode(frame)
        except UNREADABLE:
            refuse_frame(frame, "a notice", error)
        if isinstance(message, Hello | Welcome):
            raise _unexpected(message, "a notice") from None
        if isinstance(message, Restore):
            _check_text(frame, bytes(message.data.state), "a notice")
        return message


def decode_saved(frame: bytes) -> SavedData | Reply:
    """Return what is in a scheduler's answer to SAVE, or the reply by which it leaves; RemoteProtocolError if neither.

    The state, any JSON, is not read, but no longer than `MAX_STATE`.
    """
    if len(frame) > MAX_FRAME_BYTES:
        too_long(len(frame), RemoteProtocolError)
    try:
        message = _saved.decode(frame)
    except UNREADABLE as error:
        try:
            reply = _reply.decode(frame)
        except UNREADABLE:
            refuse_frame(frame, "SAVED", error)
        if reply.leaves is None:
            raise RemoteProtocolError(
                "this is another message than the one awaited", expected="SAVED", found="a reply"
            ) from None
        return reply
    if isinstance(message, Hello):
        raise _unexpected(message, "SAVED")
    state = bytes(message.data.state)
    if len(state) > MAX_STATE:
        raise RemoteProtocolError(
            "the scheduler's state is too long",
            where="$.data.state",
            expected=f"at most {MAX_STATE:,} bytes",
            found=f"{len(state):,}",
        )
    _check_text(frame, state, "SAVED")
    return message.data


def _check_text(frame: bytes, state: bytes, what: str) -> None:
    """Raise RemoteProtocolError if a state, of which the decoder has seen that it is JSON, is no UTF-8."""
    try:
        state.decode("utf-8")
    except UNREADABLE as error:
        refuse_frame(frame, what, error)


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


def _unexpected(message: msgspec.Struct, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        "this is another message than the one awaited", expected=what, found=str(message.__struct_config__.tag)
    )
