"""Frames to messages and back, for the native dialect: one UTF-8 JSON object a frame.

Decoding validates everything that the structs declare. Encoding refuses what JSON cannot carry: NaN and infinities,
which the encoder would silently turn into ``null``.
"""

import math
from typing import Any, Final, NoReturn, SupportsFloat, SupportsIndex, TypeVar, get_args

import msgspec

from pipistrelle.protocol.decisions import AnyDecision, Decision, Malformed
from pipistrelle.protocol.errors import LocalProtocolError, RemoteProtocolError, did_you_mean, printable
from pipistrelle.protocol.fields import Instant
from pipistrelle.protocol.messages import Hello, Notice, Refused, Reply, ReplyFrame, Welcome

#: the longest frame that a scheduler may send, in bytes: the largest honest reply, 100,000 decisions, has about 12 MB.
#: What the server sends has no limit, since a notice may carry the submissions of a whole log.
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
_STAND_IN: Final = "\N{REPLACEMENT CHARACTER}"
_EXCERPT_BYTES: Final = 80
#: a peer's text is quoted in our messages up to this many characters
_QUOTED: Final = 80

#: what the decoder raises for a frame that it cannot read; deep nesting is one of those.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_M = TypeVar("_M")


class _Envelope(msgspec.Struct):
    """A reply whose decisions are still undecoded, for finding out which of them is wrong."""

    reply_to: int
    now: float
    events: list[msgspec.Raw] = []
    wake: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct):
    type: str


class _Stamped(msgspec.Struct):
    timestamp: Instant


def _plain(value: Any) -> Any:
    """Return a value of another library's, such as numpy's, as Python's own; a policy may well compute with those."""
    if isinstance(value, str):
        return "".join(value)
    if isinstance(value, SupportsIndex):
        return value.__index__()
    if isinstance(value, SupportsFloat):
        return float(value)
    raise TypeError(f"JSON has nothing for a value of type {type(value).__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
# Of one struct alone msgspec does not demand the `type` field; of a union it does.
_handshake: msgspec.json.Decoder[Hello | Welcome | Refused] = msgspec.json.Decoder(Hello | Welcome | Refused)
_notice = msgspec.json.Decoder(Notice)
_reply = msgspec.json.Decoder(ReplyFrame)
_envelope = msgspec.json.Decoder(_Envelope)
_named = msgspec.json.Decoder(_Named)
_stamped = msgspec.json.Decoder(_Stamped)
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
    try:
        frame = _encoder.encode(message)
        # A number that is not finite becomes `null`; nothing else does, since absent fields are left out.
        if b"null" in frame:
            _require_finite(msgspec.to_builtins(message, enc_hook=_plain), "$")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalProtocolError(
            f"a message cannot be written as JSON ({error})", where=type(message).__name__
        ) from error
    if len(frame) > MAX_FRAME_BYTES and isinstance(message, Reply | Hello):
        _too_long(frame, LocalProtocolError)
    return frame


def decode_hello(frame: bytes) -> Hello:
    """Return the HELLO in a frame; RemoteProtocolError if it is too long or is not one."""
    if len(frame) > MAX_FRAME_BYTES:
        _too_long(frame, RemoteProtocolError)
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
    except _UNREADABLE as error:
        try:
            message = _handshake.decode(frame)
        except _UNREADABLE:
            _refuse(frame, "a notice", error)
        if not isinstance(message, Refused):
            raise _unexpected(message, "a notice") from None
        return message


def decode_reply(frame: bytes) -> Reply:
    """Return the reply in a frame.

    A decision that cannot be read does not spoil the others: a `Malformed` stands in its place.

    Raises
    ------
    RemoteProtocolError
        when the frame is too long, is not JSON, or is not a reply.
    """
    if len(frame) > MAX_FRAME_BYTES:
        _too_long(frame, RemoteProtocolError)
    try:
        return _reply.decode(frame)
    except _UNREADABLE:
        try:
            frame.decode("utf-8")  # a frame in another encoding is no frame, wherever in it that shows
            envelope = _envelope.decode(frame)
            whole = _reply.decode(
                _encoder.encode({"reply_to": envelope.reply_to, "now": envelope.now, "wake": envelope.wake})
            )
        except _UNREADABLE as error:
            _refuse(frame, "a reply", error)
        events = [_one_decision(raw, index, whole.now) for index, raw in enumerate(envelope.events)]
        return Reply(whole.reply_to, whole.now, events, whole.wake)


def _one_decision(raw: msgspec.Raw, index: int, now: float) -> Decision:
    """Return a decision, or what stands for one that cannot be read; that is dated ``now`` if it has no usable date."""
    try:
        return _decision.decode(raw)
    except _UNREADABLE as error:
        named, stamped = _part(_named, raw), _part(_stamped, raw)
        name = "" if named is None else _shortened(named.type)
        unknown = named is not None and named.type not in DECISION_TYPES
        if unknown:
            text = f"no decision has the type '{name}' - at `$.events[{index}].type`. " + did_you_mean(
                name.upper(), list(DECISION_TYPES)
            )
        else:
            text = str(error)
            text = text.replace("`$", f"`$.events[{index}]") if "`$" in text else f"{text} - at `$.events[{index}]`"
        return Malformed(
            now if stamped is None else stamped.timestamp,
            decision=name,
            code="unknown_type" if unknown else "malformed",
            message=text,
        )


def _part(decoder: "msgspec.json.Decoder[_M]", raw: msgspec.Raw) -> _M | None:
    try:
        return decoder.decode(raw)
    except _UNREADABLE:
        return None


def _decode(frame: bytes, what: str) -> Hello | Welcome | Refused:
    try:
        return _handshake.decode(frame)
    except _UNREADABLE as error:
        _refuse(frame, what, error)


def _unexpected(message: Hello | Welcome | Refused, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        "this is another message than the one awaited", expected=what, found=str(message.__struct_config__.tag)
    )


def _refuse(frame: bytes, what: str, error: Exception) -> NoReturn:
    excerpt = " ".join(frame[:_EXCERPT_BYTES].decode("utf-8", "replace").split())
    more = "..." if len(frame) > _EXCERPT_BYTES else ""
    # The error quotes the peer, and so does the excerpt: neither may fill or steer a terminal.
    raise RemoteProtocolError(
        f"the frame cannot be read ({_shortened(str(error))})",
        expected=what,
        found=f"{printable(excerpt, _STAND_IN)}{more}" if excerpt else "an empty frame",
    ) from None


def _too_long(frame: bytes, error: type[LocalProtocolError | RemoteProtocolError]) -> NoReturn:
    raise error(
        "the frame is too long",
        expected=f"at most {MAX_FRAME_BYTES:,} bytes",
        found=f"{len(frame):,}",
        hint="Send fewer decisions in one reply.",
    )


def _shortened(text: str) -> str:
    """Return a text that quotes the peer without its middle if it is long: what counts is said at its ends."""
    return printable(text if len(text) <= 2 * _QUOTED else f"{text[:_QUOTED]}...{text[-_QUOTED:]}", _STAND_IN)


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
