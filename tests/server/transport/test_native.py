"""The server's end of the native dialect, against peers that send arbitrary bytes."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from pipistrelle.protocol.events import RequestedCall, RequestedCallData, SimulationEnds, SimulationEndsData
from pipistrelle.protocol.messages import Notice
from pipistrelle.protocol.zmtp import GREETING, ZmtpStream, framed, parts_before
from pipistrelle.server.errors import SchedulerFailed
from pipistrelle.server.transport import native
from pipistrelle.server.transport.connection import LONGEST_HELLO
from pipistrelle.server.transport.listener import MOST_STRANGERS
from pipistrelle.server.transport.native import NativeTransport

READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
EMPTY = parts_before([b""])
HELLO = json.dumps({"type": "HELLO", "data": {"name": "peer"}}).encode()
PING = b"\x04\x0a\x04PING\x00\x00abc"
PATIENCE = {"hello_timeout": 600.0, "decision_timeout": 600.0}


def reply(seq: int) -> bytes:
    """Return an empty reply."""
    return json.dumps({"reply_to": seq, "now": 0, "events": []}).encode()


def notice(seq: int, size: int = 0) -> Notice:
    """Return a notice with a text of this length in it."""
    return Notice(seq, 0.0, [RequestedCall(0.0, RequestedCallData("x" * size))])


def last(seq: int) -> Notice:
    """Return the last notice."""
    return Notice(seq, 0.0, [SimulationEnds(0.0, SimulationEndsData())])


class Client:
    """A plain socket that is connected to a server."""

    def __init__(self, endpoint: str) -> None:
        if endpoint.startswith("ipc://"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(endpoint.removeprefix("ipc://"))
        else:
            self.socket = socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2])))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.heard = b""
        self._stream = ZmtpStream(b"DEALER", (b"ROUTER",), longest=1 << 30, farthest=1 << 30)

    def close(self) -> None:
        """Close the connection, whichever peer waits there."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def say(self, *frames: bytes, before: bytes = EMPTY) -> None:
        """Send frames, each as a message."""
        self.socket.sendall(b"".join(before + framed(frame) for frame in frames))

    def listen(self, flags: int = 0) -> Any:
        """Return the next frame; None if the connection is closed."""
        while (message := self._stream.message()) is None:
            try:
                data = self.socket.recv(65536, flags)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self.heard += data[:1000]
            self._stream.feed(data)
        return json.loads(message.parts[-1])

    def listen_at_all(self) -> Any:
        """Return the next frame; None if there is none now."""
        with suppress(BlockingIOError):
            return self.listen(socket.MSG_DONTWAIT)
        return None


@pytest.fixture(params=["tcp", "ipc"])
def listening(request, tmp_path) -> Iterator[Callable[..., NativeTransport]]:
    """Return a function that makes a server."""
    with ExitStack() as opened:

        def make(**waits: Any) -> NativeTransport:
            endpoint = "tcp://127.0.0.1:*" if request.param == "tcp" else f"ipc://{tmp_path}/s"
            transport = NativeTransport(endpoint, **{**PATIENCE, **waits})
            opened.callback(transport.close)
            return transport

        yield make


@pytest.fixture
def beside() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Return a function that does something in a thread, which must end by itself."""
    threads = []

    def start(work: Callable[[], object]) -> threading.Thread:
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.join()


@pytest.fixture
def client(beside) -> Iterator[Callable[..., Client]]:
    """Return a function that connects; errors in its thread at the end of the connection are ignored."""
    with ExitStack() as opened:

        def make(transport: NativeTransport, *said: bytes, before: bytes = EMPTY) -> Client:
            made = Client(transport.endpoint)
            opened.callback(made.close)
            made.socket.sendall(GREETING + READY)
            made.say(*said, before=before)
            return made

        yield make


@pytest.fixture
def served(listening, client) -> Callable[..., tuple[NativeTransport, Client]]:
    """Return a function that makes a server and a scheduler whose HELLO and first reply were received."""

    def make(before: bytes = EMPTY, **waits: Any) -> tuple[NativeTransport, Client]:
        transport = listening(**waits)
        scheduler = client(transport, HELLO, reply(0), before=before)
        assert transport.greet("run", "server")[0].name == "peer"
        assert scheduler.listen()["type"] == "WELCOME"
        return transport, scheduler

    return make


@pytest.mark.parametrize("size", [0, 200, 20_000, 3_000_000])
def test_frames_of_every_length_go_both_ways(served, beside, size):
    """They come whole, however long they are."""
    transport, scheduler = served()
    for seq in (1, 2, 3):
        heard: list[Any] = []
        thread = beside(lambda heard=heard: heard.append(scheduler.listen()))
        transport.send(notice(seq, size))
        thread.join()
        assert heard[0]["seq"] == seq
        assert len(heard[0]["events"][0]["data"].get("id", "")) == size
        frame = reply(seq)[:-1] + b" " * size + b"}"
        thread = beside(lambda frame=frame: scheduler.say(frame))
        assert transport.receive().reply_to == seq


@pytest.mark.parametrize("before", [b"", EMPTY, parts_before([b"a", b"", b"b" * 300])], ids=["none", "empty", "more"])
def test_parts_before_the_frame_are_returned(served, before):
    """The server's messages have those that the HELLO had; a reply without them is taken all the same."""
    transport, scheduler = served(before)
    assert before + b"\x00" in scheduler.heard
    for seq, parts in ((1, before), (2, b""), (3, before)):
        transport.send(notice(seq))
        scheduler.say(reply(seq), before=parts)
        assert transport.receive().reply_to == seq
    transport.send(notice(4))
    scheduler.socket.sendall(before + framed(reply(4), 1) + framed(b"and more"))
    assert transport.receive().reply_to == 4


def test_reply_may_arrive_byte_by_byte(served, beside):
    """What counts is the whole."""
    transport, scheduler = served()
    transport.send(notice(1))

    def dribble() -> None:
        for byte in EMPTY + PING + framed(reply(1)):
            scheduler.socket.sendall(bytes((byte,)))

    beside(dribble)
    assert transport.receive().reply_to == 1


def test_who_asks_whether_the_server_lives_is_answered(served):
    """A PING gets its PONG, before the reply comes and together with it."""
    transport, scheduler = served()
    transport.send(notice(1))
    scheduler.socket.sendall(PING + EMPTY + framed(reply(1)) + PING)
    assert transport.receive().reply_to == 1
    transport.send(notice(2))
    scheduler.say(reply(2))
    assert transport.receive().reply_to == 2
    assert [scheduler.listen()["seq"], scheduler.listen()["seq"]] == [1, 2]
    assert scheduler.heard.count(b"\x04\x08\x04PONGabc") == 2


@pytest.mark.parametrize("said", [b"", EMPTY, b"\x01", EMPTY + b"\x00\x20half"], ids=len)
def test_disconnection_is_noticed_at_once(served, said):
    """The end of the connection is reported, even in the middle of a message."""
    transport, scheduler = served()
    scheduler.socket.sendall(said)
    scheduler.socket.close()
    transport.send(notice(1))
    with pytest.raises(SchedulerFailed, match="scheduler 'peer' disconnected after notice 1") as caught:
        transport.receive()
    assert caught.value.reason == "scheduler_left"
    transport.farewell(last(2))


def test_the_last_breath_counts(served):
    """Data sent before the end is read."""
    transport, scheduler = served()
    scheduler.say(reply(1), b'{"reply_to": 1, "now": 0, "leaves": "error"}')
    scheduler.socket.close()
    transport.send(notice(1))
    assert transport.receive().reply_to == 1
    transport.send(notice(2))
    with pytest.raises(SchedulerFailed, match="failed after notice 2, as it said"):
        transport.receive()


@pytest.mark.parametrize(
    "said", [b"", EMPTY, EMPTY + b"\x02" + (60_000_000).to_bytes(8, "big") + b"x" * 100_000], ids=len
)
def test_silent_peer_times_out(served, said):
    """Half a reply is none."""
    transport, scheduler = served(decision_timeout=0.2)
    transport.send(notice(1))
    scheduler.socket.sendall(said)
    with pytest.raises(SchedulerFailed, match=r"did not answer notice 1 within 0\.2 s") as caught:
        transport.receive()
    assert caught.value.reason == "scheduler_timeout"


@pytest.mark.parametrize("piece", [b"x", PING], ids=["drip", "ping"])
def test_endless_reply_times_out(served, beside, piece):
    """However little each piece is late, the reply is."""
    transport, scheduler = served(decision_timeout=0.2)
    transport.send(notice(1))
    if piece == b"x":
        scheduler.socket.sendall(EMPTY + b"\x02" + (60_000_000).to_bytes(8, "big"))

    def go_on() -> None:
        scheduler.socket.settimeout(600)
        with suppress(OSError):
            while True:
                scheduler.socket.sendall(piece)

    beside(go_on)
    with pytest.raises(SchedulerFailed, match=r"did not answer notice 1 within 0\.2 s"):
        transport.receive()
    transport.close()


def test_peer_that_does_not_read_times_out(served):
    """A notice that is not taken is not waited for without end."""
    transport, scheduler = served(decision_timeout=0.2)
    with pytest.raises(SchedulerFailed, match=r"did not take notice 1 within 0\.2 s") as caught:
        transport.send(notice(1, 30_000_000))
    assert caught.value.reason == "scheduler_timeout"
    transport.farewell(last(2))
    transport.close()
    assert scheduler.listen() is None  # not the half of it


@pytest.mark.skipif(not str(native.__file__).endswith(".py"), reason="a compiled module has fixed constants")
def test_an_interrupt_strikes_while_a_notice_leaves(served, beside, monkeypatch):
    """A peer that does not read is not waited for; the notice is complete in the end, and the last one follows."""
    monkeypatch.setattr(native, "GRACE_S", 600.0)  # the machine may be slow
    monkeypatch.setattr(native, "LINGER_S", 600.0)
    pressed = threading.Event()
    transport, scheduler = served(interrupted=pressed.is_set)
    pressed.set()
    with pytest.raises(KeyboardInterrupt):
        transport.send(notice(1, 10_000_000))
    heard: list[Any] = []

    def answer() -> None:
        heard.append(scheduler.listen())
        scheduler.say(reply(1))
        heard.append(scheduler.listen())
        heard.append(scheduler.listen())

    thread = beside(answer)
    transport.farewell(last(2))
    transport.close()
    thread.join()
    assert [message and message["seq"] for message in heard] == [1, 2, None]


def test_an_interrupt_strikes_while_a_reply_is_awaited(served):
    """An interrupt does not wait for a scheduler that thinks."""
    pressed = threading.Event()
    transport, _ = served(interrupted=pressed.is_set)
    transport.send(notice(1))
    pressed.set()
    with pytest.raises(KeyboardInterrupt):
        transport.receive()


@pytest.mark.parametrize(
    ("said", "fragment"),
    [
        (EMPTY + b"\x02" + (1 << 40).to_bytes(8, "big"), "announced a message of 1,099,511,627,776 bytes"),
        (b"\x01\x00" * 100, "more than 64 parts"),
        (b"\xff\xff", "does not speak ZeroMQ's protocol"),
    ],
    ids=["endless", "parts", "noise"],
)
def test_invalid_message_ends_the_conversation(served, said, fragment):
    """It is reported as a protocol error, on both sides."""
    transport, scheduler = served()
    transport.send(notice(1))
    scheduler.socket.sendall(said)
    with pytest.raises(SchedulerFailed, match="scheduler 'peer' broke the protocol after notice 1: it ") as caught:
        transport.receive()
    assert fragment in str(caught.value)
    assert scheduler.listen()["seq"] == 1
    refused = scheduler.listen()
    assert (refused["type"], refused["data"]["code"]) == ("REFUSED", "protocol_error")
    assert fragment in refused["data"]["message"]
    assert scheduler.listen() is None


def test_a_frame_that_is_too_long_is_read_over(served, beside):
    """Its sender can finish the message and then gets the error."""
    transport, scheduler = served()
    transport.send(notice(1))
    heard: list[Any] = []

    def say() -> None:
        scheduler.say(b"x" * 70_000_000)
        heard.extend((scheduler.listen(), scheduler.listen()))

    thread = beside(say)
    with pytest.raises(SchedulerFailed, match=r"the frame is too long: .*found 70,000,000"):
        transport.receive()
    thread.join()
    assert heard[1]["data"]["message"].startswith("the frame is too long")


def test_strangers_are_turned_away_at_full_speed(served, client, beside):
    """A scheduler that always answers at once does not keep other peers from learning that the server is busy."""
    transport, scheduler = served()

    def answer() -> None:
        while (told := scheduler.listen())["events"][-1]["type"] != "SIMULATION_ENDS":
            scheduler.say(reply(told["seq"]))

    beside(answer)
    silent = [client(transport) for _ in range(MOST_STRANGERS - 10)]
    for said in (b"GET / HTTP/1.0\r\n\r\n", b"\x01\x00", b"\xff" * 100):
        silent.append(Client(transport.endpoint))
        silent[-1].socket.sendall(said)
    strangers = [client(transport, HELLO) for _ in range(5)]
    refusals: list[Any] = []
    seq = 0
    while strangers:
        seq += 1
        transport.send(notice(seq))
        assert transport.receive().reply_to == seq
        for stranger in list(strangers):
            if (told := stranger.listen_at_all()) is not None:
                refusals.append(told["data"])
                strangers.remove(stranger)
    transport.farewell(last(seq + 1))
    assert refusals == [{"code": "busy", "message": "the server is serving scheduler 'peer' already"}] * 5
    for one in silent:
        one.socket.close()


def test_strangers_before_the_scheduler(listening, client, beside):
    """Each peer with an invalid HELLO gets the reason, and the first with a valid one is served."""
    transport = listening()
    client(transport)
    said = [b"good evening", b"", b"y" * (LONGEST_HELLO + 1), HELLO.replace(b'"name"', b'"protocol_min": 99, "name"')]
    told: list[Any] = []

    def come() -> None:
        for frame in said:
            stranger = client(transport, frame)
            told.append(stranger.listen()["data"])
            stranger.say(b"again")
            assert stranger.listen()["data"]["code"] == "malformed"
        client(transport, HELLO, reply(0))

    beside(come)
    assert transport.greet("run", "server")[0].name == "peer"
    assert [refusal["code"] for refusal in told] == ["malformed"] * 4
    assert "the frame is too long" in told[2]["message"]
    assert "protocol_min is above protocol_max" in told[3]["message"]


def test_who_could_not_be_talked_to_is_told_when_nobody_came(listening):
    """The user learns that a peer connected with the wrong kind of socket."""
    transport = listening(hello_timeout=0.5)
    wrong = Client(transport.endpoint)
    wrong.socket.sendall(GREETING + READY.replace(b"DEALER", b"XPUB.."))
    with pytest.raises(SchedulerFailed, match=r"within 0\.5 s: found a peer that is a socket of type 'XPUB"):
        transport.greet("run", "server")
    wrong.close()
