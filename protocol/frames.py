"""Helpers of both dialects: JSON encoding, errors about frames, socket monitors."""

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

#: maximum length of a scheduler's frame in bytes (100,000 decisions take about 12 MB); a server's may hold a whole log
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
_STAND_IN: Final = "\N{REPLACEMENT CHARACTER}"
_EXCERPT_BYTES: Final = 80
#: maximum number of characters quoted from each end of a peer's text
_QUOTED: Final = 80

#: errors that the decoder raises for an unreadable frame, for example one that is nested too deep
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
#: errors that the encoder raises for a value without a JSON form
UNWRITABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)

#: placeholder for missing JSON, because the decoder does not support `Raw | None`
ABSENT: Final = msgspec.Raw(b"")

_M = TypeVar("_M")


class _Events(msgspec.Struct):
    events: msgspec.Raw


class _Named(msgspec.Struct):
    type: str


class Stamped(msgspec.Struct):
    """The time of an undecoded event or decision."""

    timestamp: Instant


def plain(value: Any) -> Any:
    """Convert a value of another library, such as a numpy number, to a Python value."""
    if isinstance(value, str):
        return "".join(value)
    if isinstance(value, SupportsIndex):
        return value.__index__()
    if isinstance(value, SupportsFloat):
        return float(value)
    raise TypeError(f"values of type {type(value).__name__} have no JSON form")


encoder: Final = msgspec.json.Encoder(enc_hook=plain)
_named = msgspec.json.Decoder(_Named)
_events = msgspec.json.Decoder(_Events)
#: matches each string in JSON, even an unterminated one; group 1 matches if the string is a field's name
_text: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+(\s*+:)?', re.DOTALL).finditer
_scan: Final = json.JSONDecoder().raw_decode
_stamped = msgspec.json.Decoder(Stamped)


def name_of(raw: msgspec.Raw) -> str | None:
    """Return the type of an undecoded event or decision; None if the type is missing."""
    named = _part(_named, raw)
    return None if named is None else named.type


def malformed(raw: msgspec.Raw, index: int, now: float, error: Exception, known: tuple[str, ...]) -> Malformed:
    """Return a `Malformed` for the reply's unreadable ``index``-th decision.

    Its timestamp is ``now`` (s) if the decision has no usable timestamp. ``known`` lists the decision types that exist.
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
    """Return an error's text, with the index of its decision added to its JSON path.

    The path then begins with ``$.events[index]``. If the text has no path, this beginning is appended as the path.
    """
    text = str(error)
    return text.replace("`$", f"`$.events[{index}]") if "`$" in text else f"{text} - at `$.events[{index}]`"


def _part(decoder: "msgspec.json.Decoder[_M]", raw: msgspec.Raw) -> _M | None:
    try:
        return decoder.decode(raw)
    except UNREADABLE:
        return None


def refuse_frame(frame: bytes, what: str, error: object) -> NoReturn:
    """Raise RemoteProtocolError for a frame that is not the expected ``what``.

    ``error`` says why.
    """
    excerpt = " ".join(frame[:_EXCERPT_BYTES].decode("utf-8", "replace").split())
    more = "..." if len(frame) > _EXCERPT_BYTES else ""
    # Both the error and the excerpt quote the peer: limit their length and remove control characters.
    raise RemoteProtocolError(
        f"the frame cannot be read ({shortened(str(error))})",
        expected=what,
        found=f"{printable(excerpt, _STAND_IN)}{more}" if excerpt else "an empty frame",
    ) from None


def too_long(size: int, error: type[LocalProtocolError | RemoteProtocolError]) -> NoReturn:
    """Raise ``error`` because a frame of ``size`` bytes exceeds `MAX_FRAME_BYTES`."""
    raise error(
        "the frame is too long",
        expected=f"at most {MAX_FRAME_BYTES:,} bytes",
        found=f"{size:,}",
        hint="Send fewer decisions in one reply.",
    )


def check_decisions(frame: bytes) -> None:
    """Raise RemoteProtocolError if a reply exceeds `MAX_DECISIONS` or `MAX_TEXTS`.

    The check comes before decoding, because decoding takes memory. Unreadable frames pass; the decoder reports them.
    """
    _check_texts(frame)
    if len(frame) < 2 * MAX_DECISIONS or frame.count(b",") < MAX_DECISIONS:  # nearly always
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
    if len(frame) < 2 * MAX_TEXTS or frame.count(b'"') < 2 * MAX_TEXTS:  # nearly always
        return
    texts = (None for found in _text(frame) if found.lastindex is None)
    if next(islice(texts, MAX_TEXTS, None), texts) is None:
        raise RemoteProtocolError(
            "the reply has too many texts",
            expected=f"at most {MAX_TEXTS:,}, without field names",
            hint="Send the rest in the reply to the next notice, which CALL_ME_LATER brings at once.",
        )


def _blank(text: str, at: int) -> int:
    while text[at] in " \t\n\r":
        at += 1
    return at


def few_malformed(decisions: Iterable[Decision]) -> list[Decision]:
    """Return a reply's decisions unchanged.

    Raise RemoteProtocolError if too many are `Malformed`.
    """
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
    """Return a peer's text in printable form, with its middle cut out if it is long."""
    return printable(text if len(text) <= 2 * _QUOTED else f"{text[:_QUOTED]}...{text[-_QUOTED:]}", _STAND_IN)


def encode_value(value: Any, what: str) -> bytes:
    """Return a value as JSON.

    Raises:
        LocalProtocolError: naming ``what``, if the value has no JSON form or a number is not finite.
    """
    try:
        frame = encoder.encode(value)
        # Only numbers that are not finite become `null`, with few exceptions, because absent fields are omitted.
        if frame.find(b"null") >= 0:  # twice as fast as `in`
            require_finite(msgspec.to_builtins(value, enc_hook=_decoded), "$")
    except UNWRITABLE as error:
        raise LocalProtocolError(f"a message cannot be written as JSON ({error})", where=what) from error
    return frame


def _decoded(value: Any) -> Any:
    """Return ``value`` as a plain Python value.

    Return "" for undecoded JSON. So a null in it counts as no error.
    """
    return "" if isinstance(value, msgspec.Raw) else plain(value)


def require_finite(value: Any, path: str) -> None:
    """Raise LocalProtocolError if ``value``, at ``path``, contains NaN or an infinity."""
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
    """Return the event number and the event value of a socket monitor's message.

    The value is usually a file descriptor. The manual page zmq_socket_monitor defines the format. pyzmq's own function
    for this is in a module that imports asyncio. Importing asyncio takes longer than all other imports of a server.
    """
    event, value = _EVENT.unpack(frames[0])
    return event, value
