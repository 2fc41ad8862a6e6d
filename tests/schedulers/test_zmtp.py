"""The scheduler's connection against libzmq's sockets, and against peers that are none."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from math import inf

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.schedulers.zmtp import AddressError, Connection, ConnectionLost

#: what a ROUTER says first: its greeting and READY
HELLO = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48) + b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"


@pytest.fixture
def router() -> Iterator["zmq.Socket[bytes]"]:
    """Return a ROUTER that is not bound yet."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.RCVTIMEO, 10_000)
    router.setsockopt(zmq.LINGER, 0)
    router.setsockopt(zmq.IPV6, 1)
    yield router
    router.close()
    context.term()


@contextmanager
def connected(endpoint: str) -> Iterator[Connection]:
    """Connect, and close at the end; nothing is waited for longer than ten seconds."""
    connection = Connection(endpoint)
    connection.connect(time.monotonic() + 10)
    try:
        yield connection
    finally:
        connection.close()


def saying(said: bytes) -> Callable[[socket.socket], None]:
    """Return what says something and then no more, and listens to the end."""

    def serve(taken: socket.socket) -> None:
        taken.sendall(said)
        taken.shutdown(socket.SHUT_WR)
        while taken.recv(1000):
            pass

    return serve


@contextmanager
def peer(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """Listen, and let ``serve`` do with each connection what it likes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                taken, _ = listener.accept()
            except OSError:
                return
            with taken, suppress(OSError):
                serve(taken)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("kind", ["ipc", "tcp", "tcp6"])
@pytest.mark.parametrize("size", [0, 1, 255, 256, 16_384, 3_000_000])
def test_messages_of_every_length_go_both_ways(router, tmp_path, kind, size):
    """What one side sends is what the other receives, over every kind of endpoint."""
    router.bind({"ipc": f"ipc://{tmp_path}/s", "tcp": "tcp://127.0.0.1:*", "tcp6": "tcp://[::1]:*"}[kind])
    text = bytes(at % 251 for at in range(size))
    with connected(router.getsockopt_string(zmq.LAST_ENDPOINT)) as connection:
        for _ in range(3):
            sending = threading.Thread(target=connection.send, args=(text,))
            sending.start()
            identity, delimiter, received = router.recv_multipart()
            sending.join()
            assert (delimiter, received) == (b"", text)
            router.send_multipart([identity, b"", text])
            assert connection.receive() == text


def test_several_messages_at_once_come_one_after_the_other(router):
    """Messages that arrive together, long and short, are told apart."""
    router.bind("tcp://127.0.0.1:*")
    texts = [b"a" * 300, b"", b"b", b"c" * 40_000, b"d"]
    with connected(router.getsockopt_string(zmq.LAST_ENDPOINT)) as connection:
        connection.send(b"go")
        identity = router.recv_multipart()[0]
        for text in texts:
            router.send_multipart([identity, b"", text])
        time.sleep(0.2)
        assert [connection.receive() for _ in texts] == texts


def test_heartbeats_are_answered(router):
    """A peer that asks whether we are alive goes on talking to us."""
    router.setsockopt(zmq.HEARTBEAT_IVL, 50)
    router.setsockopt(zmq.HEARTBEAT_TIMEOUT, 150)
    router.bind("tcp://127.0.0.1:*")
    with connected(router.getsockopt_string(zmq.LAST_ENDPOINT)) as connection:
        connection.send(b"hello")
        identity = router.recv_multipart()[0]
        waiting = threading.Thread(target=lambda: received.append(connection.receive()))
        received: list[bytes] = []
        waiting.start()
        time.sleep(0.6)
        router.send_multipart([identity, b"", b"still there"])
        waiting.join(10)
        assert received == [b"still there"]


def test_who_listens_later_is_waited_for(router, tmp_path):
    """Either side may begin."""
    connection = Connection(f"ipc://{tmp_path}/s")
    timer = threading.Timer(0.2, router.bind, [connection.endpoint])
    timer.start()
    connection.connect(time.monotonic() + 10)
    timer.join()
    connection.send(b"hello")
    assert router.recv_multipart()[1:] == [b"", b"hello"]
    connection.close()


def test_nobody_and_silence(tmp_path):
    """Waiting ends at the deadline, and says what became of the last attempt."""
    with pytest.raises(ConnectionLost, match="No such file"):
        Connection(f"ipc://{tmp_path}/nobody").connect(time.monotonic() + 0.1)
    with (
        peer(lambda taken: taken.recv(1) and time.sleep(0.5)) as endpoint,
        pytest.raises(ConnectionLost, match="timed out"),
    ):
        Connection(endpoint).connect(time.monotonic() + 0.2)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" + b" " * 64, "does not speak ZeroMQ"),
        (HELLO[:10] + b"\x01" + bytes(53), "does not speak ZeroMQ"),
        (HELLO[:12] + b"PLAIN" + HELLO[17:], "does not speak ZeroMQ"),
        (HELLO[:64] + b"\x04\x08\x05ERROR\x01x", "refuses the connection"),
        (HELLO[:64] + b"\x06\xff\xff\xff\xff\xff\xff\xff\xff", "does not speak ZeroMQ"),
        (HELLO[:40], "was closed"),
        (b"", "was closed"),
    ],
    ids=["http", "zmtp 1", "plain", "error", "endless", "cut off", "silent"],
)
def test_what_is_no_peer_is_named(said, reason):
    """Another program at the other end is told from a server, and nothing hangs."""
    with peer(saying(said)) as endpoint, pytest.raises(ConnectionLost, match=reason):
        Connection(endpoint).connect(time.monotonic() + 0.3)


@settings(max_examples=40, deadline=None, database=None)
@given(
    texts=st.lists(st.one_of(st.binary(max_size=5), st.binary(min_size=250, max_size=260)), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_messages_may_come_in_any_pieces(texts, cuts):
    """Wherever the stream of bytes is cut, the same messages come out."""
    stream = HELLO
    for text in texts:
        long = len(text) > 255
        stream += b"\x01\x00" + (b"\x02" + len(text).to_bytes(8, "big") if long else bytes((0, len(text)))) + text
    places = sorted({0, len(stream), *(len(HELLO) - 5 + cut for cut in cuts)})
    pieces = [stream[begin:end] for begin, end in pairwise(places)]

    def serve(taken: socket.socket) -> None:
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            taken.sendall(piece)
            time.sleep(1e-3)
        taken.recv(1000)

    with peer(serve) as endpoint, connected(endpoint) as connection:
        assert [connection.receive() for _ in texts] == texts


@pytest.mark.parametrize("after", [b"", b"\x01\x00\x00\x09half"], ids=["between", "within"])
def test_an_end_is_noticed_at_once(after):
    """A peer that closes its connection, be it in the middle of a message, is gone."""
    with peer(saying(HELLO + after)) as endpoint, connected(endpoint) as connection:
        connection.limit(inf)
        with pytest.raises(ConnectionLost, match="was closed"):
            connection.receive()
        connection.send(b"too late")
        connection.send(b"much too late")


def test_a_message_of_several_parts_is_none_of_ours():
    """Frames after the first part of a message are not taken for messages."""
    with (
        peer(saying(HELLO + b"\x01\x00\x01\x01a\x00\x01b")) as endpoint,
        connected(endpoint) as connection,
        pytest.raises(ConnectionLost, match="several parts"),
    ):
        connection.receive()


@pytest.mark.parametrize(
    "endpoint", ["tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://h:99999", "tcp://*:1", "ipc://", "udp://h:1", "x"]
)
def test_what_is_no_endpoint(endpoint):
    """An endpoint that nobody can listen at is refused before anything is tried."""
    with pytest.raises(AddressError, match="cannot connect to this"):
        Connection(endpoint)


def test_a_path_that_is_too_long():
    """A path that no socket can have is not waited for."""
    with pytest.raises(AddressError, match="too long"):
        Connection(f"ipc:///{'x' * 200}").connect(time.monotonic() + 60)
