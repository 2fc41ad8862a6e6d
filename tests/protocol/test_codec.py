"""The codec: exact round trips, rejection of all other input, and no output that JSON cannot represent."""

import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from pipistrelle.protocol import codec
from pipistrelle.protocol.base.errors import LocalProtocolError, RemoteProtocolError
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CallMeLaterData,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    KillJobData,
    Malformed,
    RejectJob,
    RejectJobData,
    Stop,
    StopData,
)
from pipistrelle.protocol.events import JobKilled, JobKilledData, Progress, SimulationBegins, SimulationBeginsData
from pipistrelle.protocol.fields import LATEST
from pipistrelle.protocol.messages import Hello, HelloData, Notice, Refused, Reply, ReplyFrame, Welcome

DECODERS: dict[Any, Any] = {
    Hello: codec.decode_hello,
    Welcome: codec.decode_greeting,
    Refused: codec.decode_greeting,
    Notice: codec.decode_notice,
    ReplyFrame: codec.decode_reply,
}
every_decoder = pytest.mark.parametrize("decode", list(dict.fromkeys(DECODERS.values())))

WHOLE, REAL = st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), WHOLE, REAL, st.text()),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=8,
)


#: hypothesis must not fail tests on a slow machine
unhurried = settings(suppress_health_check=[HealthCheck.too_slow])


def values_of(info: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a type, derived from msgspec's type information."""
    match info:
        case inspect.StructType():
            required = {f.name: values_of(f.type) for f in info.fields if f.required}
            optional = {f.name: values_of(f.type) for f in info.fields if not f.required}
            return st.fixed_dictionaries(required, optional=optional).map(lambda given: info.cls(**given))
        case inspect.Metadata():
            return values_of(info.type)
        case inspect.UnionType():
            return st.one_of([values_of(kind) for kind in info.types])
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.ListType():
            return st.lists(values_of(info.item_type), max_size=4)
        case inspect.VarTupleType():
            return st.lists(values_of(info.item_type), max_size=4).map(tuple)
        case inspect.TupleType():
            return st.tuples(*map(values_of, info.item_types))
        case inspect.DictType():
            return st.dictionaries(values_of(info.key_type), values_of(info.value_type), max_size=3)
        case inspect.StrType():
            return st.text(min_size=info.min_length or 0)
        case inspect.IntType():
            return st.integers(-(2**63) if info.ge is None else info.ge, 2**63 - 1 if info.le is None else info.le)
        case inspect.FloatType():
            low = info.ge if info.ge is not None else info.gt
            open_end = info.gt is not None
            return st.floats(low, info.le, exclude_min=open_end, allow_nan=False, allow_infinity=False)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.AnyType():
            return JSON
    raise AssertionError(f"no values for {info}")


def messages() -> st.SearchStrategy[Any]:
    """Return a strategy for well-formed messages of every kind."""
    return st.one_of([values_of(inspect.type_info(kind)) for kind in DECODERS])


def reply(*decisions: Any, now: float = 0.0) -> Reply:
    """Return a reply to message 1."""
    return Reply(1, now, list(decisions))


@unhurried
@given(messages())
def test_what_is_encoded_is_decoded(message: Any) -> None:
    """Any well-formed message comes back equal, each float to the bit (a repr tells -0.0 from 0.0)."""
    frame = codec.encode(message)
    again = DECODERS[type(message)](frame)

    assert again == message
    assert repr(again) == repr(message)
    assert codec.encode(again) == frame


@unhurried
@given(st.floats(0, LATEST))
def test_times_survive_any_json_library(time: float) -> None:
    """A time is printed so that the standard library also reads the same double, and the other way round."""
    frame = codec.encode(Reply(0, time))

    assert json.loads(frame)["now"] == time
    assert codec.decode_reply(json.dumps({"reply_to": 0, "now": time}).encode()).now == time


@pytest.mark.parametrize(("time", "text"), [(0.1 + 0.2, b"0.30000000000000004"), (1024.0, b"1024.0"), (0.1, b"0.1")])
def test_times_are_printed_shortest(time: float, text: bytes) -> None:
    """No digit is lost and none is superfluous."""
    assert codec.encode(Reply(0, time)) == b'{"reply_to":0,"now":' + text + b"}"


def test_fields_with_default_values_are_left_out() -> None:
    """Fields with their default value are left out: frames are short."""
    frame = codec.encode(reply(ExecuteJob(0.0, ExecuteJobData("w0!1", "0-3"))))

    assert json.loads(frame) == {
        "reply_to": 1,
        "now": 0.0,
        "events": [{"type": "EXECUTE_JOB", "timestamp": 0.0, "data": {"job_id": "w0!1", "alloc": "0-3"}}],
    }


def read(decode: Any, frame: bytes) -> Any:
    """Decode a frame that may be anything; a rejection is one readable line, any other exception fails the test."""
    try:
        return decode(frame)
    except RemoteProtocolError as refusal:
        text = str(refusal)
    assert text.isprintable()
    assert len(text) < 600
    return None


@every_decoder
@unhurried
@given(frame=st.binary())
def test_any_bytes_are_read_or_refused(decode: Any, frame: bytes) -> None:
    """Arbitrary bytes raise nothing but RemoteProtocolError."""
    read(decode, frame)


@every_decoder
@unhurried
@given(value=JSON)
def test_any_json_is_read_or_refused(decode: Any, value: Any) -> None:
    """Arbitrary JSON raises nothing but RemoteProtocolError."""
    read(decode, json.dumps(value).encode())


NAMES = st.sampled_from(
    ["type", "data", "seq", "reply_to", "now", "events", "wake", "timestamp", "job_id", "job_ids", "alloc", "job", "id"]
)
WORDS = st.sampled_from([*codec.DECISION_TYPES, "HELLO", "REFUSED", "JOB_SUBMITTED", "SIMULATION_BEGINS", "busy"])
NEARLY = st.recursive(
    JSON | WORDS | st.sampled_from([0, 1, 0.0, 10**400, -1, float("nan"), float("inf"), []]),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(NAMES, values, max_size=5),
    max_leaves=12,
)


@every_decoder
@unhurried
@given(value=st.dictionaries(NAMES, NEARLY), ascii_only=st.booleans())
def test_nearly_right_json_is_read_or_refused(decode: Any, value: Any, ascii_only: bool) -> None:
    """The right names with the wrong values raise nothing but RemoteProtocolError."""
    read(decode, json.dumps(value, ensure_ascii=ascii_only).encode())


@unhurried
@given(st.lists(NEARLY, max_size=4), st.floats(0, 1e9))
def test_any_decision_is_read_or_keeps_its_place(decisions: list[Any], now: float) -> None:
    """A reply with arbitrary decisions has as many as were sent, each with a usable time."""
    frame = json.dumps({"reply_to": 0, "now": now, "events": decisions}).encode()
    found = read(codec.decode_reply, frame)

    if found is not None:
        assert len(found.events) == len(decisions)
        assert all(0 <= item.timestamp < math.inf for item in found.events)


@unhurried
@given(messages(), st.data())
def test_damaged_frames_are_read_or_refused(message: Any, data: st.DataObject) -> None:
    """A good frame with a stretch replaced by other bytes raises nothing but RemoteProtocolError."""
    frame = codec.encode(message)
    start = data.draw(st.integers(0, len(frame)))
    stop = data.draw(st.integers(start, len(frame)))
    read(DECODERS[type(message)], frame[:start] + data.draw(st.binary(max_size=4)) + frame[stop:])


@every_decoder
@pytest.mark.parametrize(
    "opening",
    [b"[", b'{"reply_to":1,"now":0,"events":[', b'{"type":', b'{"seq":1,"now":0,"x":', b'{"reply_to":1,"now":0,"x":'],
)
@pytest.mark.parametrize("closing", [b"", b"]"], ids=["open", "closed"])
def test_deep_nesting_is_refused(decode: Any, opening: bytes, closing: bytes) -> None:
    """A hundred thousand brackets are rejected without a crash."""
    depth = 100_000
    tail = b"}" if opening.startswith(b"{") and closing else b""
    assert read(decode, opening + b"[" * depth + closing * depth + tail) is None


def test_a_hundred_levels_are_fine() -> None:
    """The depth that SPEC.md promises is read, in unknown fields and in those that may hold any JSON."""
    nest = b"[" * 100 + b"]" * 100
    begins = b'{"timestamp":0,"type":"SIMULATION_BEGINS","data":{"nb_resources":1,"config":{"deep":' + nest + b"}}}"

    assert codec.decode_reply(b'{"reply_to":1,"now":0,"x":' + nest + b"}") == ReplyFrame(1, 0.0)
    assert isinstance(codec.decode_notice(b'{"seq":1,"now":0,"events":[' + begins + b"]}"), Notice)


@pytest.mark.parametrize(
    "number",
    ["1" + "0" * 400, "1" + "0" * 5000, "1e999", "-1e999"],
    ids=["400 digits", "5000 digits", "1e999", "-1e999"],
)
def test_numbers_beyond_a_double_are_no_times(number: str) -> None:
    """A decision dated beyond what a double holds is malformed, whatever its type, and gets the reply's time."""
    bad = f'{{"reply_to":1,"now":7.5,"events":[{{"timestamp":{number},"type":"STOP","data":{{}}}}]}}'
    unknown = bad.replace("STOP", "PAUSE")

    first, second = (codec.decode_reply(text.encode()).events[0] for text in (bad, unknown))
    assert isinstance(first, Malformed)
    assert isinstance(second, Malformed)
    assert (first.timestamp, first.decision, first.code) == (7.5, "STOP", "malformed")
    assert (second.timestamp, second.decision, second.code) == (7.5, "PAUSE", "unknown_type")


def test_a_malformed_decision_keeps_its_own_time() -> None:
    """A malformed decision with a usable timestamp is rejected at that time, so that rejections are in order."""
    found = codec.decode_reply(b'{"reply_to":1,"now":9,"events":[{"timestamp":12.5,"type":"REJECT_JOB","data":{}}]}')

    assert found.events == [
        Malformed(12.5, "REJECT_JOB", "malformed", "Object missing required field `job_id` - at `$.events[0].data`")
    ]


def test_an_unknown_decision_gets_a_suggestion() -> None:
    """The text of a rejection suggests the type that was probably meant."""
    found = codec.decode_reply(b'{"reply_to":1,"now":9,"events":[{"timestamp":9,"type":"execute_jobs","data":{}}]}')

    assert isinstance(found.events[0], Malformed)
    assert found.events[0].message == (
        "no decision has the type 'execute_jobs' - at `$.events[0].type`. Did you mean 'EXECUTE_JOB'?"
    )


def test_an_error_in_the_envelope_is_reported_first() -> None:
    """If both a decision and the reply around it are wrong, the message names the reply."""
    with pytest.raises(RemoteProtocolError, match=r"\$\.wake\[0\]"):
        codec.decode_reply(b'{"reply_to":1,"now":9,"events":[{}],"wake":["SUNRISE"]}')


def test_long_and_wild_texts_of_a_peer_are_cut() -> None:
    """A peer's text can neither fill a log nor control a terminal: quotations are short and printable."""
    wild = "\x1b[2J" + "A" * 100_000
    frame = json.dumps({"reply_to": 1, "now": 0, "events": [{"timestamp": 0, "type": wild, "data": {}}]}).encode()
    bad = codec.decode_reply(frame).events[0]

    assert isinstance(bad, Malformed)
    assert len(bad.decision) < 200
    assert len(bad.message) < 600
    assert (bad.decision + bad.message).isprintable()
    assert read(codec.decode_hello, wild.encode()) is None
    assert read(codec.decode_reply, json.dumps({"reply_to": 1, "now": 0, "wake": [wild]}).encode()) is None


def test_another_message_than_awaited_is_named() -> None:
    """HELLO, WELCOME and REFUSED in the wrong place are refused by name."""
    hello = codec.encode(Hello(HelloData("x")))
    for decode in (codec.decode_greeting, codec.decode_notice):
        with pytest.raises(RemoteProtocolError, match="found HELLO"):
            decode(hello)
    with pytest.raises(RemoteProtocolError, match="found REFUSED"):
        codec.decode_hello(b'{"type":"REFUSED","data":{"code":"busy","message":""}}')


def test_a_handshake_needs_its_type() -> None:
    """A handshake without its type is rejected, even if everything else is right."""
    assert read(codec.decode_hello, b'{"data":{"name":"x"}}') is None
    assert read(codec.decode_notice, b'{"data":{"code":"busy","message":"x"}}') is None


def test_the_limit_is_64_mib() -> None:
    """A frame of exactly the limit is read; one byte more is refused, unread, by its size."""
    limit = 64 * 1024 * 1024
    assert limit == codec.MAX_FRAME_BYTES
    frame = b'{"reply_to":1,"now":0}'.ljust(limit)

    assert codec.decode_reply(frame) == ReplyFrame(1, 0.0)
    for decode in (codec.decode_reply, codec.decode_hello):
        with pytest.raises(RemoteProtocolError, match="too long: expected at most 67,108,864 bytes, found 67,108,865"):
            decode(frame + b" ")


def test_only_a_scheduler_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler's frame that would be rejected is not sent; a notice may have any length."""
    monkeypatch.setattr(codec, "MAX_FRAME_BYTES", 1000)
    text = "x" * 1000
    begins = SimulationBegins(0.0, SimulationBeginsData(1, config={"text": text}))
    notice = Notice(1, 0.0, [begins])

    assert codec.decode_notice(codec.encode(notice)) == notice
    for message in (reply(Stop(0.0, StopData(text))), Hello(HelloData(text))):
        with pytest.raises(LocalProtocolError, match="too long"):
            codec.encode(message)


def with_floats_replaced(value: Any, bad: float) -> Iterator[Any]:
    """Yield a value once for each float in it, with that float replaced."""
    if isinstance(value, float):
        yield bad
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            for item in with_floats_replaced(getattr(value, name), bad):
                yield msgspec.structs.replace(value, **{name: item})
    elif isinstance(value, dict):
        for key in value:
            yield from ({**value, key: item} for item in with_floats_replaced(value[key], bad))
    elif isinstance(value, list | tuple):
        for place in range(len(value)):
            for item in with_floats_replaced(value[place], bad):
                yield type(value)([*value[:place], item, *value[place + 1 :]])


@unhurried
@given(messages(), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_numbers_that_are_not_finite_are_not_sent(message: Any, bad: float) -> None:
    """NaN and infinities are rejected wherever in a message they are."""
    for poisoned in with_floats_replaced(message, bad):
        with pytest.raises(LocalProtocolError, match="not finite"):
            codec.encode(poisoned)


def test_the_refusal_says_where() -> None:
    """The error names the path of the number."""
    bad = reply(Stop(0.0, StopData()), CallMeLater(0.0, CallMeLaterData(math.nan)))

    with pytest.raises(LocalProtocolError, match=r"\$\.events\[1\]\.data\.timestamp: .* found nan"):
        codec.encode(bad)


def test_the_word_null_in_a_text_is_sent() -> None:
    """Texts that contain `null`, and real nulls where any JSON is allowed, are sent."""
    decision = RejectJob(0.0, RejectJobData("w0!null", "null"))
    begins = SimulationBegins(0.0, SimulationBeginsData(1, config={"null": None, "x": [None, 1.5]}))
    notice = Notice(1, 0.0, [begins, JobKilled(0.0, JobKilledData(("null",), {"null": Progress(0.5)}))])

    assert codec.decode_reply(codec.encode(reply(decision))).events == [decision]
    assert codec.decode_notice(codec.encode(notice)) == notice


def test_other_libraries_numbers_and_texts_are_sent_as_ours() -> None:
    """A policy may compute with numpy: its scalars are sent as plain numbers and strings; NaN in them is found."""
    half: Any = np.float32(2.5)
    three: Any = np.int64(3)
    call = CallMeLater(np.float64(1.5), CallMeLaterData(half, np.str_("a")))
    kill = KillJob(three, KillJobData((np.str_("w0!1"),)))

    assert codec.decode_reply(codec.encode(reply(call, kill))).events == [
        CallMeLater(1.5, CallMeLaterData(2.5, "a")),
        KillJob(3.0, KillJobData(("w0!1",))),
    ]
    with pytest.raises(LocalProtocolError, match="not finite"):
        codec.encode(reply(Stop(np.float64("nan"), StopData())))


@pytest.mark.parametrize(
    "thing", [object(), {1, object()}, "\ud800", [[]] * 2], ids=["object", "set", "surrogate", "recursion"]
)
def test_values_that_json_cannot_represent_are_not_sent(thing: Any) -> None:
    """Objects, broken texts and endless structures are reported as the caller's error."""
    if isinstance(thing, list):
        thing[0].append(thing)
    notice = Notice(1, 0.0, [SimulationBegins(0.0, SimulationBeginsData(1, config={"thing": thing}))])

    with pytest.raises(LocalProtocolError, match="cannot be written as JSON"):
        codec.encode(notice)
