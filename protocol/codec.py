"""Frames to messages and back, for the native dialect: one UTF-8 JSON object a frame.

Decoding validates everything that the structs declare. Encoding refuses what JSON cannot carry: NaN and infinities,
which the encoder would silently turn into ``null``.
"""

import math
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from pipistrelle.protocol.decisions import AnyDecision, Decision, Malformed
from pipistrelle.protocol.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.messages import Hello, Notice, Refused, Reply, ReplyFrame, Welcome

#: a longer frame is refused: the largest honest reply, 100,000 decisions, has about 12 MB.
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
_EXCERPT_BYTES: Final = 80

#: what the decoder raises for a frame that it cannot read; deep nesting is one of those.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_M = TypeVar("_M")


class _Envelope(msgspec.Struct):
    """A reply whose decisions are still undecoded, for finding out which of them is wrong."""

    reply_to: int
    now: float
    events: list[msgspec.Raw] = []
    wake: msgspec.Raw = msgspec.Raw(b"null")


class _Typed(msgspec.Struct):
    type: Any = None
    timestamp: Any = None


_encoder = msgspec.json.Encoder()
_hello = msgspec.json.Decoder(Hello)
_greeting: msgspec.json.Decoder[Welcome | Refused] = msgspec.json.Decoder(Welcome | Refused)
_refused = msgspec.json.Decoder(Refused)
_notice = msgspec.json.Decoder(Notice)
_reply = msgspec.json.Decoder(ReplyFrame)
_envelope = msgspec.json.Decoder(_Envelope)
_typed = msgspec.json.Decoder(_Typed)
_decision: msgspec.json.Decoder[AnyDecision] = msgspec.json.Decoder(AnyDecision)


def encode(message: Hello | Welcome | Refused | Notice | Reply) -> bytes:
    """Return the frame of a message.

    Raises
    ------
    LocalProtocolError
        when a number in it is NaN or infinite: the caller computed nonsense, the frame must not leave.
    """
    frame = _encoder.encode(message)
    # A number that is not finite becomes `null`; nothing else does, since absent fields are left out.
    if b"null" in frame:
        _require_finite(msgspec.to_builtins(message, builtin_types=(float,)), "$")
    return frame


def decode_hello(frame: bytes) -> Hello:
    """Return the HELLO in a frame; RemoteProtocolError if it is not one."""
    return _decode(_hello, frame, "HELLO")


def decode_greeting(frame: bytes) -> Welcome | Refused:
    """Return the server's answer to a HELLO; RemoteProtocolError if it is none."""
    return _decode(_greeting, frame, "WELCOME or REFUSED")


def decode_notice(frame: bytes) -> Notice | Refused:
    """Return the notice in a frame, or the REFUSED that ends a session; RemoteProtocolError if it is neither."""
    try:
        return _notice.decode(frame)
    except _UNREADABLE as error:
        try:
            return _refused.decode(frame)
        except _UNREADABLE:
            _refuse(frame, "a notice", error)


def decode_reply(frame: bytes) -> Reply:
    """Return the reply in a frame.

    A decision that cannot be read does not spoil the others: a `Malformed` stands in its place.

    Raises
    ------
    RemoteProtocolError
        when the frame is too long, is not JSON, or is not a reply.
    """
    if len(frame) > MAX_FRAME_BYTES:
        raise RemoteProtocolError(
            "the frame is too long",
            expected=f"at most {MAX_FRAME_BYTES:,} bytes",
            found=f"{len(frame):,}",
            hint="Send fewer decisions in one reply.",
        )
    try:
        return _reply.decode(frame)
    except _UNREADABLE as error:
        try:
            envelope = _envelope.decode(frame)
            whole = _reply.decode(
                _encoder.encode({"reply_to": envelope.reply_to, "now": envelope.now, "wake": envelope.wake})
            )
        except _UNREADABLE:
            _refuse(frame, "a reply", error)
        events = [_one_decision(raw, index, whole.now) for index, raw in enumerate(envelope.events)]
        return Reply(whole.reply_to, whole.now, events, whole.wake)


def _one_decision(raw: msgspec.Raw, index: int, now: float) -> Decision:
    try:
        return _decision.decode(raw)
    except _UNREADABLE as error:
        text = str(error)
        try:
            typed = _typed.decode(raw)
        except _UNREADABLE:
            typed = _Typed()
        name = typed.type if isinstance(typed.type, str) else ""
        unknown = text.startswith("Invalid value") and "`$.type`" in text
        where = text.replace("`$", f"`$.events[{index}]") if "`$" in text else f"{text} - at `$.events[{index}]`"
        stamp = typed.timestamp
        usable = isinstance(stamp, int | float) and not isinstance(stamp, bool) and math.isfinite(stamp)
        return Malformed(
            float(stamp) if usable else now,
            decision=name,
            code="unknown_type" if unknown else "malformed",
            message=where,
        )


def _decode(decoder: "msgspec.json.Decoder[_M]", frame: bytes, what: str) -> _M:
    try:
        return decoder.decode(frame)
    except _UNREADABLE as error:
        _refuse(frame, what, error)


def _refuse(frame: bytes, what: str, error: Exception) -> NoReturn:
    excerpt = frame[:_EXCERPT_BYTES].decode("utf-8", "replace")
    more = "..." if len(frame) > _EXCERPT_BYTES else ""
    raise RemoteProtocolError(
        f"the frame cannot be read ({error})", expected=what, found=f"{excerpt}{more}" if frame else "an empty frame"
    ) from None


def _require_finite(value: Any, path: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise LocalProtocolError("a number is not finite", where=path, expected="a finite number", found=str(value))
    elif isinstance(value, dict):
        for key, item in value.items():
            _require_finite(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _require_finite(item, f"{path}[{index}]")
