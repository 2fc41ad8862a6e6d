"""What both dialects share: how JSON is written, what is refused and how that is said, a socket's monitor."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from struct import Struct
from typing import Any, Final, NoReturn, SupportsFloat, SupportsIndex, TypeVar

import msgspec

from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError, did_you_mean, printable
from pipistrelle.protocol.decisions import Decision, Malformed
from pipistrelle.protocol.fields import MAX_DECISIONS, MAX_REJECTIONS, MAX_TEXTS, Instant

#: the longest frame that a scheduler may send, in bytes: the largest honest reply, 100,000 decisions, has about 12 MB.
#: What the server sends has no limit, since a notice may carry the submissions of a whole log.
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
_STAND_IN: Final = "\N{REPLACEMENT CHARACTER}"
_EXCERPT_BYTES: Final = 80
#: a peer's text is quoted in our messages up to this many characters
_QUOTED: Final = 80

#: what the decoder raises for a frame that it cannot read; deep nesting is one of those.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
#: what the encoder raises for a value that JSON has nothing for
UNWRITABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)

#: stands for JSON that is not there; the decoder knows no `Raw | None`
ABSENT: Final = msgspec.Raw(b"")

_M = TypeVar("_M")


class _Events(msgspec.Struct):
    events: msgspec.Raw


class _Named(msgspec.Struct):
    type: str


class Stamped(msgspec.Struct):
    """When an event or decision was, or ends a run; what else it says is left unread."""

    timestamp: Instant


def plain(value: Any) -> Any:
    """Return a value of another library's, such as numpy's, as Python's own; a policy may well compute with those."""
    if isinstance(value, str):
        return "".join(value)
    if isinstance(value, SupportsIndex):
        return value.__index__()
    if isinstance(value, SupportsFloat):
        return float(value)
    raise TypeError(f"JSON has nothing for a value of type {type(value).__name__}")


encoder: Final = msgspec.json.Encoder(enc_hook=plain)
_named = msgspec.json.Decoder(_Named)
_events = msgspec.json.Decoder(_Events)
#: finds each text in JSON, also one that does not end; its first group is there if it is the name of a field
_text: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+(\s*+:)?', re.DOTALL).finditer
_scan: Final = json.JSONDecoder().raw_decode
_stamped = msgspec.json.Decoder(Stamped)


def name_of(raw: msgspec.Raw) -> str | None:
    """Return the type of an event or decision that is otherwise unread; None if it has none."""
    named = _part(_named, raw)
    return None if named is None else named.type


def malformed(raw: msgspec.Raw, index: int, now: float, error: Exception, known: tuple[str, ...]) -> Malformed:
    """Return what stands for the reply's ``index``-th decision, which is not one of the ``known`` or cannot be read.

    It is dated ``now`` if it has no usable date.
    """
    name, stamped = name_of(raw), _part(_stamped, raw)
    at = now if stamped is None else stamped.timestamp
    quoted = "" if name is None else shortened(name)
    if name is None or name in known:
        return Malformed(at, decision=quoted, code="malformed", message=placed(error, index))
    hint = did_you_mean(quoted.upper(), list(known))
    text = f"no decision has the type '{quoted}' - at `$.events[{index}].type`. {hint}"
    return Malformed(at, decision=quoted, code="unknown_type", message=text)


def placed(error: Exception, index: int) -> str:
    """Return an error's text with the path in a message's ``index``-th event made a path in the message."""
    text = str(error)
    return text.replace("`$", f"`$.events[{index}]") if "`$" in text else f"{text} - at `$.events[{index}]`"


def _part(decoder: "msgspec.json.Decoder[_M]", raw: msgspec.Raw) -> _M | None:
    try:
        return decoder.decode(raw)
    except UNREADABLE:
        return None


def refuse_frame(frame: bytes, what: str, error: object) -> NoReturn:
    """Raise RemoteProtocolError: the frame is not ``what`` was awaited, as ``error`` says."""
    excerpt = " ".join(frame[:_EXCERPT_BYTES].decode("utf-8", "replace").split())
    more = "..." if len(frame) > _EXCERPT_BYTES else ""
    # The error quotes the peer, and so does the excerpt: neither may fill or steer a terminal.
    raise RemoteProtocolError(
        f"the frame cannot be read ({shortened(str(error))})",
        expected=what,
        found=f"{printable(excerpt, _STAND_IN)}{more}" if excerpt else "an empty frame",
    ) from None


def too_long(size: int, error: type[LocalProtocolError | RemoteProtocolError]) -> NoReturn:
    """Raise ``error``: a frame of a scheduler, of so many bytes, is longer than `MAX_FRAME_BYTES`."""
    raise error(
        "the frame is too long",
        expected=f"at most {MAX_FRAME_BYTES:,} bytes",
        found=f"{size:,}",
        hint="Send fewer decisions in one reply.",
    )


def check_decisions(frame: bytes) -> None:
    """Raise RemoteProtocolError if a reply has too many decisions, or texts, before each takes memory.

    These are `MAX_DECISIONS` and `MAX_TEXTS`. A frame that cannot be read is let pass: who reads it says so.
    """
    _check_texts(frame)
    if len(frame) < 2 * MAX_DECISIONS or frame.count(b",") < MAX_DECISIONS:  # as nearly all have
        return
    try:
        text = bytes(_events.decode(frame).events).decode()
        at, found = _blank(text, 1), 0
        while text[at] != "]":
            _, at = _scan(text, at)
            found += 1
            at = _blank(text, at)
            if found > MAX_DECISIONS:
                raise RemoteProtocolError(
                    "the reply has too many decisions",
                    where="$.events",
                    expected=f"at most {MAX_DECISIONS:,}",
                    hint="Send the rest in the reply to the next notice, which CALL_ME_LATER brings at once.",
                )
            if text[at] == ",":
                at = _blank(text, at + 1)
    except (*UNREADABLE, ValueError, IndexError):
        return


def _check_texts(frame: bytes) -> None:
    if len(frame) < 2 * MAX_TEXTS or frame.count(b'"') < 2 * MAX_TEXTS:  # as nearly all have
        return
    texts = (None for found in _text(frame) if found.lastindex is None)
    if next(islice(texts, MAX_TEXTS, None), texts) is None:
        raise RemoteProtocolError(
            "the reply has too many texts",
            expected=f"at most {MAX_TEXTS:,}, names of fields apart",
            hint="Send the rest in the reply to the next notice, which CALL_ME_LATER brings at once.",
        )


def _blank(text: str, at: int) -> int:
    """Return the place of the next character that is no white space."""
    while text[at] in " \t\n\r":
        at += 1
    return at


def few_malformed(decisions: Iterable[Decision]) -> list[Decision]:
    """Return a reply's decisions; RemoteProtocolError as soon as more than `MAX_REJECTIONS` could not be read."""
    taken: list[Decision] = []
    wrong = 0
    for decision in decisions:
        wrong += isinstance(decision, Malformed)
        if wrong > MAX_REJECTIONS:
            assert isinstance(decision, Malformed)
            raise RemoteProtocolError(
                "too many decisions of one reply cannot be read",
                where="$.events",
                expected=f"at most {MAX_REJECTIONS:,}",
                found=f"one more, {decision.message}",
            )
        taken.append(decision)
    return taken


def shortened(text: str) -> str:
    """Return a text that quotes the peer without its middle if it is long: what counts is said at its ends."""
    return printable(text if len(text) <= 2 * _QUOTED else f"{text[:_QUOTED]}...{text[-_QUOTED:]}", _STAND_IN)


def encode_value(value: Any, what: str) -> bytes:
    """Return a value as JSON.

    Raises
    ------
    LocalProtocolError
        when a number in it is NaN or infinite, or when it holds what JSON has nothing for; ``what`` says where.
    """
    try:
        frame = encoder.encode(value)
        # A number that is not finite becomes `null`; hardly anything else does, since absent fields are left out.
        if frame.find(b"null") >= 0:  # `in` takes twice as long: it tries it as a number first
            require_finite(msgspec.to_builtins(value, enc_hook=_decoded), "$")
    except UNWRITABLE as error:
        raise LocalProtocolError(f"a message cannot be written as JSON ({error})", where=what) from error
    return frame


def _decoded(value: Any) -> Any:
    """Return another library's value as Python's own, and nothing for JSON: a ``null`` in that is meant."""
    return "" if isinstance(value, msgspec.Raw) else plain(value)


def require_finite(value: Any, path: str) -> None:
    """Raise LocalProtocolError if there is a NaN or an infinity in a value made of builtins; ``path`` names it."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise LocalProtocolError("a number is not finite", where=path, expected="a finite number", found=str(value))
    elif isinstance(value, dict):
        for key, item in value.items():
            require_finite(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            require_finite(item, f"{path}[{index}]")


_EVENT: Final = Struct("=Hi")


def socket_event(frames: Sequence[bytes]) -> tuple[int, int]:
    """Return the event in a message of a socket's monitor and its value, for a connection its file descriptor.

    The format: zmq_socket_monitor. pyzmq's own function is in a module that imports asyncio: more than all else that a
    server starts with.
    """
    event, value = _EVENT.unpack(frames[0])
    return event, value
