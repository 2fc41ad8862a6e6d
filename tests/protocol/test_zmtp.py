"""ZeroMQ's wire protocol: messages are reassembled from pieces, and other input is detected."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.zmtp import GREETING, ZmtpError, ZmtpMessage, ZmtpStream, framed, parts_before, sole_frame

LONGEST = 1000
FARTHEST = 100_000
READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
BODIES = st.one_of(st.binary(max_size=5), st.binary(min_size=250, max_size=260))
MESSAGES = st.lists(st.lists(BODIES, min_size=1, max_size=3), min_size=1, max_size=5)


def stream() -> ZmtpStream:
    """Return the stream of a peer that talks to a ROUTER."""
    return ZmtpStream(b"ROUTER", (b"REQ", b"DEALER"), longest=LONGEST, farthest=FARTHEST)


def heard(pieces: list[bytes], said: ZmtpStream | None = None) -> list[ZmtpMessage]:
    """Return the messages that come out."""
    said = said or stream()
    messages = []
    for piece in pieces:
        said.feed(piece)
        while (message := said.message()) is not None:
            messages.append(message)
        assert said.convenient > 0
    return messages


def on_wire(parts: list[bytes]) -> bytes:
    """Return a message's bytes."""
    return parts_before(parts[:-1]) + framed(parts[-1])


@settings(database=None, deadline=None)
@given(messages=MESSAGES, cuts=st.lists(st.integers(0, 3000), max_size=12))
def test_a_stream_may_come_in_any_pieces(messages, cuts):
    """It may be cut anywhere, from the first byte of the greeting on."""
    data = GREETING + READY + b"".join(map(on_wire, messages))
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    assert heard([data[begin:end] for begin, end in pairwise(places)]) == [ZmtpMessage(parts) for parts in messages]


@settings(database=None, deadline=None)
@given(first=st.binary(min_size=1001, max_size=5000), cut=st.integers(1, 5100), parts=st.lists(BODIES, max_size=2))
def test_a_message_over_the_limit_is_skipped(first, cut, parts):
    """Its length is reported in its place, and the next message is complete."""
    data = on_wire([*parts, first]) + on_wire([b"next"])
    said = stream()
    assert heard([GREETING + READY], said) == []
    assert said.at_rest
    assert heard([data[:cut], data[cut:]], said) == [ZmtpMessage([*parts, b""], len(first)), ZmtpMessage([b"next"])]
    assert said.at_rest


def test_the_limit_counts_all_parts_of_a_message():
    """The limit for a message of many parts is that for a single part."""
    (message,) = heard([GREETING + READY, on_wire([b"x" * 600, b"y" * 600])])
    assert message == ZmtpMessage([b"x" * 600, b""], 600)


@settings(database=None, deadline=None, max_examples=500)
@given(pieces=st.lists(st.binary(max_size=600), max_size=12), ready=st.booleans())
def test_any_bytes_are_read_or_raise_zmtp_error(pieces, ready):
    """Input that is not ZMTP raises ZmtpError and nothing else."""
    with suppress(ZmtpError):
        heard([GREETING + READY if ready else GREETING, *pieces])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"GET / HTTP/1.0", "does not speak ZeroMQ"),
        (b"\x01\x00\x00\x05hello", "does not speak ZeroMQ"),
        (GREETING[:10] + b"\x01\x05", "does not speak ZeroMQ"),
        (GREETING[:12] + b"CURVE" + GREETING[17:], "wants an encrypted connection"),
        (GREETING[:12] + b"PLAIN" + GREETING[17:], "does not speak ZeroMQ"),
        (GREETING + b"\x00\x01x", "does not speak ZeroMQ"),
        (GREETING + b"\x44\x00", "does not speak ZeroMQ"),
        (GREETING + b"\x06" + (70_000).to_bytes(8, "big"), "does not speak ZeroMQ"),
        (GREETING + b"\x04\x08\x05ERROR\x01x", "refuses the connection"),
        (GREETING + READY.replace(b"\x19", b"\x1a").replace(b"\x03REQ", b"\x04PUSH"), "type 'PUSH', not REQ or DEALER"),
        (GREETING + READY + b"\x02" + (1 << 62).to_bytes(8, "big"), "message of 4,611,686,018,427,387,904 bytes"),
        (GREETING + READY + b"\x01\x00" * 64, "more than 64 parts"),
    ],
    ids=["http", "zmtp 1", "zmtp 2", "curve", "plain", "message", "flags", "long", "error", "push", "far", "parts"],
)
def test_unsupported_peers_are_detected(said, reason):
    """An unsupported peer is detected at the first byte that shows it."""
    with pytest.raises(ZmtpError, match=reason):
        heard([said])


@pytest.mark.parametrize(
    "ready",
    [
        READY,
        READY.replace(b"Type", b"TYPE"),
        b"\x04\x06\x05READY",
        b"\x04\x2a" + READY[2:] + b"\x08Identity\x00\x00\x00\x04name",
    ],
    ids=["type", "capitals", "none", "identity"],
)
def test_properties_of_a_peer(ready):
    """Names of properties are case-insensitive; the type is optional; others are ignored."""
    said = stream()
    assert heard([GREETING + ready], said) == []
    assert said.ready


def test_greeting_and_ping_are_answered():
    """READY follows the greeting, and PONG with the same context each PING; other commands get no answer."""
    said = stream()
    said.feed(GREETING)
    assert said.message() is None
    answer = said.answers()
    assert answer[2:8] == b"\x05READY"
    assert b"\x0bSocket-Type\x00\x00\x00\x06ROUTER" in answer
    assert said.answers() == b""
    assert heard([READY + b"\x04\x0a\x04PING\x00\x00abc" + b"\x04\x06\x05OTHER" + on_wire([b"text"])], said) == [
        ZmtpMessage([b"text"])
    ]
    assert said.answers() == b"\x04\x08\x04PONGabc"


@settings(database=None, deadline=None)
@given(
    body=BODIES, before=st.lists(BODIES, max_size=2), cut=st.integers(1, 20), more=st.binary(min_size=1, max_size=20)
)
def test_the_fast_path_takes_one_complete_message(body, before, cut, more):
    """It accepts one complete message and nothing else."""
    head = parts_before(before)
    data = head + framed(body)
    assert sole_frame(data, head) == body
    assert sole_frame(data + more, head) is None
    assert sole_frame(data[:-cut], head) is None
    assert sole_frame(head + framed(body, 1), head) is None
    assert sole_frame(head + framed(body, 4), head) is None
