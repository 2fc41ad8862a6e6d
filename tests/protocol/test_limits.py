"""How much one reply may contain: too much is rejected before it takes memory."""

import json
import tracemalloc

import pytest

from pipistrelle.protocol import codec
from pipistrelle.protocol.base.errors import RemoteProtocolError, cut
from pipistrelle.protocol.batsim import codec as batsim
from pipistrelle.protocol.decisions import Malformed
from pipistrelle.protocol.fields import MAX_DECISIONS, MAX_REJECTIONS
from pipistrelle.protocol.messages import Notice


def native(frame: bytes):
    """Return the reply that a frame of the native dialect holds."""
    return codec.decode_reply(frame)


def of_batsim(frame: bytes):
    """Return the reply that a frame of Batsim's dialect holds."""
    return batsim.decode_reply(frame, Notice(1, 0.0, []))


both = pytest.mark.parametrize("decode", [native, of_batsim])


def reply(events: str) -> bytes:
    """Return a reply with these decisions."""
    return f'{{"reply_to":1,"now":0.0,"events":[{events}]}}'.encode()


@pytest.mark.slow
@both
@pytest.mark.parametrize("separator", [",", " ,\n "])
def test_too_many_decisions_are_refused_at_little_cost(decode, separator):
    """However short they are, no more than the limit is read."""
    frame = reply(separator.join(["0"] * (MAX_DECISIONS + MAX_DECISIONS // 8)))
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError, match="too many decisions: expected at most 1,000,000"):
            decode(frame)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(frame)
    finally:
        tracemalloc.stop()


@both
@pytest.mark.parametrize("one", ["0", '"a,b"', "{}", '{"timestamp":0.0,"type":"START","data":{}}'])
def test_too_many_that_cannot_be_read_are_refused(decode, one):
    """The limit counts unreadable decisions only, and the last one is quoted."""
    assert len(decode(reply(",".join([one] * MAX_REJECTIONS))).events) == MAX_REJECTIONS
    with pytest.raises(RemoteProtocolError, match="cannot be read: expected at most 10,000, found one more"):
        decode(reply(",".join([one] * (MAX_REJECTIONS + 1))))


@both
def test_commas_do_not_count_as_decisions(decode):
    """A long text, or a decision of many fields, is one decision."""
    texts = [",]" * MAX_DECISIONS, "\\" * 3, '"']
    stops = [{"timestamp": 0.0, "type": "NOTHING", "data": {"reason": text}} for text in texts]
    frame = reply(",".join(map(json.dumps, stops)))
    assert [type(decision) for decision in decode(frame).events] == [Malformed] * 3


def test_invalid_json_is_reported_as_such():
    """Counting accepts what cannot be read, so that the decoder reports it."""
    for frame in (b"[" + b"," * (2 * MAX_DECISIONS), reply("0," * (2 * MAX_DECISIONS))[:-5]):
        with pytest.raises(RemoteProtocolError, match=r"too many decisions|cannot be read"):
            codec.decode_reply(frame)


@pytest.mark.parametrize(
    ("events", "more"),
    [('{"timestamp":0.0,"type":"KILL_JOB","data":{"job_ids":[%s]}}', ""), ("", ',"keeps":[%s]')],
    ids=["job_ids", "keeps"],
)
def test_other_lists_have_the_same_limit(events, more):
    """A list that is too long is wrong like any other wrong value."""
    names = ",".join(['"j"'] * (MAX_DECISIONS + 1))
    frame = reply(events.replace("%s", names))[:-1] + more.replace("%s", names).encode() + b"}"
    if events:
        (decision,) = codec.decode_reply(frame).events
        assert "length <= 1000000" in decision.message
    else:
        with pytest.raises(RemoteProtocolError, match="length <= 1000000"):
            codec.decode_reply(frame)


def test_long_texts_lose_their_middle():
    """Both ends are kept, and short texts are unchanged."""
    assert cut("short", 5) == "short"
    assert cut("a" * 50 + "z" * 50, 20) == "a" * 15 + " ... " + "z" * 5


@both
def test_too_many_texts_are_refused_before_they_take_memory(decode, monkeypatch):
    """The limit is one of the whole frame, whatever else is wrong with it."""
    monkeypatch.setattr("pipistrelle.protocol.frames.MAX_TEXTS", 20_000)
    frame = reply("").replace(b'"now"', b'"keeps":[%b"ab"],"now"' % (b'"ab",' * 20_000))
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError, match="too many texts: expected at most 20,000, without field names"):
            decode(frame)
        assert tracemalloc.get_traced_memory()[1] < len(frame)
    finally:
        tracemalloc.stop()


def test_many_quotes_are_not_many_texts(monkeypatch):
    """Names and escaped quotes do not count, whatever they contain; an unterminated text counts as one."""
    monkeypatch.setattr("pipistrelle.protocol.frames.MAX_TEXTS", 5)
    names, quoted, escaped = '{"a" :1,"b":2,"c"\n:3}', '"\\"\\"\\"\\"\\"\\"\\":"', '"\\\\","\\\\\\"","","d"'
    for inner in (names, quoted, escaped):
        frame = f'{{"reply_to":1,"now":0.0,"events":[],"more":[{inner}]}}'.encode()
        assert native(frame).events == []
    with pytest.raises(RemoteProtocolError, match="too many texts"):
        native(b'{"reply_to":1,"now":0.0,"events":[],"more":["1","2","3","4" ,"5","6"]}')
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        native(b'{"reply_to":1,"now":0.0,"events":[],"more":["1","2","3","' + b'\\"' * 50)
