"""Encode and decode frames of the native dialect: one UTF-8 JSON object per frame.

Decoding validates everything that the structs declare. Encoding refuses NaN and infinities, which msgspec would
silently turn into ``null``.
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
    """A reply with its decisions still undecoded, used to find the invalid ones."""

    reply_to: int
    now: float
    events: list[msgspec.Raw] = []
    wake: msgspec.Raw = msgspec.Raw(b"null")
    leaves: msgspec.Raw = msgspec.Raw(b"null")
    keeps: msgspec.Raw = msgspec.Raw(b"[]")
    wake_when: msgspec.Raw = msgspec.Raw(b"null")


# With a single struct msgspec does not require the `type` field; with a union it does.
_handshake: msgspec.json.Decoder[Hello | Welcome | Refused] = msgspec.json.Decoder(Hello | Welcome | Refused)
_notice = msgspec.json.Decoder(Notice)
#: frames that a server may send instead of a notice; HELLO and WELCOME are listed so that errors can name them
_instead: msgspec.json.Decoder[Hello | Welcome | Refused | Save | Restore] = msgspec.json.Decoder(
    Hello | Welcome | Refused | Save | Restore
)
_saved: msgspec.json.Decoder[Hello | Saved] = msgspec.json.Decoder(Hello | Saved)
_reply = msgspec.json.Decoder(ReplyFrame)
_envelope = msgspec.json.Decoder(_Envelope)
_decision: msgspec.json.Decoder[AnyDecision] = msgspec.json.Decoder(AnyDecision)

#: the types of decisions
DECISION_TYPES: Final = tuple(str(struct.__struct_config__.tag) for struct in get_args(AnyDecision))


def encode(message: Hello | Welcome | Refused | Notice | Reply | Save | Saved | Restore) -> bytes:
    """Return the frame of a message.

    Raises:
        LocalProtocolError: if a number is NaN or infinite, a value has no JSON form, or a scheduler's frame is longer
            than `MAX_FRAME_BYTES`.
    """
    frame = encode_value(message, type(message).__name__)
    if len(frame) > MAX_FRAME_BYTES and isinstance(message, Reply | Hello | Saved):
        too_long(len(frame), LocalProtocolError)
    return frame


def decode_hello(frame: bytes) -> Hello:
    """Return the HELLO in a frame.

    Raise RemoteProtocolError if there is none or the frame is too long.
    """
    if len(frame) > MAX_FRAME_BYTES:
        too_long(len(frame), RemoteProtocolError)
    message = _decode(frame, "HELLO")
    if not isinstance(message, Hello):
        raise _unexpected(message, "HELLO")
    return message


def decode_greeting(frame: bytes) -> Welcome | Refused:
    """Return the WELCOME or REFUSED in a frame; RemoteProtocolError if it is neither."""
    message = _decode(frame, "WELCOME or REFUSED")
    if isinstance(message, Hello):
        raise _unexpected(message, "WELCOME or REFUSED")
    return message


def decode_notice(frame: bytes) -> Notice | Refused | Save | Restore:
    """Return the notice in a frame, or the SAVE, RESTORE or REFUSED sent instead.

    Raises:
        RemoteProtocolError: if the frame is another message.
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
    """Return the data of a SAVED frame, or the last reply of a scheduler that leaves.

    The scheduler's state may be any JSON of at most `MAX_STATE` bytes. It is not decoded.

    Raises:
        RemoteProtocolError: if the frame is another message.
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
            raise RemoteProtocolError("this is not the expected message", expected="SAVED", found="a reply") from None
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
    """Raise RemoteProtocolError unless a scheduler's state is UTF-8.

    It is known to be JSON.
    """
    try:
        state.decode("utf-8")
    except UNREADABLE as error:
        refuse_frame(frame, what, error)


def decode_reply(frame: bytes) -> Reply:
    """Return the reply in a frame, with a `Malformed` for each unreadable decision.

    Raises:
        RemoteProtocolError: if the frame is too long, or is not a reply in JSON. Also if it has too many decisions, or
            too many unreadable ones.
    """
    if len(frame) > MAX_FRAME_BYTES:
        too_long(len(frame), RemoteProtocolError)
    check_decisions(frame)
    try:
        return _reply.decode(frame)
    except UNREADABLE:
        try:
            frame.decode("utf-8")  # the decoders check only the parts that they decode
            envelope = _envelope.decode(frame)
            others = ("reply_to", "now", "wake", "leaves", "keeps", "wake_when")
            whole = _reply.decode(encoder.encode({name: getattr(envelope, name) for name in others}))
        except UNREADABLE as error:
            refuse_frame(frame, "a reply", error)
        events = few_malformed(_one_decision(raw, index, whole.now) for index, raw in enumerate(envelope.events))
        return Reply(whole.reply_to, whole.now, events, whole.wake, whole.leaves, whole.keeps, whole.wake_when)


def _one_decision(raw: msgspec.Raw, index: int, now: float) -> Decision:
    """Return a decision, or a `Malformed` if it cannot be read.

    A decision without a readable time gets the time ``now`` (s). ``index`` is the decision's number in the reply, from
    0.
    """
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
        "this is not the expected message", expected=what, found=str(message.__struct_config__.tag)
    )
