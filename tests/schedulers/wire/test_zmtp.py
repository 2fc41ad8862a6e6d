"""Messages on the scheduler's connection, against libzmq's sockets and byte by byte."""

import errno
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from math import inf
from typing import Any

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.schedulers.wire.zmtp import ConnectionLost, ZmtpConnection

#: the first bytes of a ROUTER: its greeting and READY
HELLO = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48) + b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"


@pytest.fixture(scope="module")
def in_pieces(saying, peer, connected):
    """Return a function that makes a connection to which these pieces of a stream come, one after the other."""

    class Stream:
        def __init__(self, pieces: list[bytes]) -> None:
            self._pieces = deque(pieces)

        def recv(self, most: int) -> bytes:
            piece = self._pieces.popleft()
            if len(piece) > most:
                self._pieces.appendleft(piece[most:])
            return piece[:most]

        def close(self) -> None:
            assert not self._pieces

    @contextmanager
    def made(pieces: list[bytes]) -> Iterator[ZmtpConnection]:
        with peer(saying(HELLO)) as endpoint, connected(endpoint) as connection:
            connection.close()
            connection._socket = Stream(pieces)
            yield connection

    return made


@pytest.mark.parametrize("kind", ["ipc", "tcp", "tcp6"])
@pytest.mark.parametrize("size", [0, 1, 255, 256, 16_384, 3_000_000])
def test_messages_of_every_length_go_both_ways(connected, router, tmp_path, kind, size):
    """Each side receives what the other sends, over every kind of endpoint."""
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


def test_several_messages_at_once_arrive_one_by_one(connected, router):
    """Messages that arrive together, long and short, are separated."""
    router.bind("tcp://127.0.0.1:*")
    texts = [b"a" * 300, b"", b"b", b"c" * 40_000, b"d"]
    with connected(router.getsockopt_string(zmq.LAST_ENDPOINT)) as connection:
        connection.send(b"go")
        identity = router.recv_multipart()[0]
        for text in texts:
            router.send_multipart([identity, b"", text])
        assert [connection.receive() for _ in texts] == texts


def test_heartbeats_are_answered(connected, router):
    """A peer that sends heartbeats continues the conversation."""
    router.setsockopt(zmq.HEARTBEAT_IVL, 20)
    router.bind("tcp://127.0.0.1:*")
    with connected(router.getsockopt_string(zmq.LAST_ENDPOINT)) as connection:
        inner, pings = connection._socket, threading.Event()

        class Watched:
            """The socket; it reports the third heartbeat that is answered."""

            def __init__(self) -> None:
                self.recv, self.close, self.settimeout, self.pongs = inner.recv, inner.close, inner.settimeout, 0

            def sendall(self, said: bytes) -> None:
                inner.sendall(said)
                self.pongs += said[2:7] == b"\x04PONG"
                if self.pongs == 3:
                    pings.set()

        connection._socket = Watched()
        connection.send(b"hello")
        identity = router.recv_multipart()[0]
        waiting = threading.Thread(target=lambda: received.append(connection.receive()))
        received: list[bytes] = []
        waiting.start()
        pings.wait()
        router.send_multipart([identity, b"", b"still there"])
        waiting.join()
        assert received == [b"still there"]


def test_commands_without_end_are_no_message(peer, connected):
    """A wait with a deadline is not extended by a peer that sends other frames."""

    def serve(taken: socket.socket) -> None:
        taken.sendall(HELLO)
        while True:
            taken.sendall(b"\x04\x07\x04PING\x00\x00" * 10)

    with peer(serve) as endpoint, connected(endpoint) as connection:
        connection.limit(time.monotonic() + 0.2)
        with pytest.raises(TimeoutError):
            connection.receive()


@settings(max_examples=300, database=None)
@given(
    texts=st.lists(st.one_of(st.binary(max_size=5), st.binary(min_size=250, max_size=260)), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_messages_may_arrive_in_any_pieces(in_pieces, texts, cuts):
    """Wherever the stream of bytes is cut, the same messages come out."""
    stream = b""
    for text in texts:
        long = len(text) > 255
        stream += b"\x01\x00" + (b"\x02" + len(text).to_bytes(8, "big") if long else bytes((0, len(text)))) + text
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    with in_pieces([stream[begin:end] for begin, end in pairwise(places)]) as connection:
        assert [connection.receive() for _ in texts] == texts


@pytest.mark.parametrize("size", [5, 300])
def test_a_message_may_be_cut_at_any_byte(in_pieces, size):
    """Whatever part of its head comes first, a message is the same."""
    text = b"x" * size
    head = b"\x02" + size.to_bytes(8, "big") if size > 255 else bytes((0, size))
    stream = b"\x01\x00" + head + text
    pieces = [piece for cut in range(1, len(stream)) for piece in (stream[:cut], stream[cut:])]
    with in_pieces(pieces) as connection:
        assert [connection.receive() for _ in range(1, len(stream))] == [text] * (len(stream) - 1)


@pytest.mark.parametrize("after", [b"", b"\x01\x00\x00\x09half"], ids=["between", "within"])
def test_an_end_is_noticed_at_once(saying, peer, connected, after):
    """A peer that closes its connection, even in the middle of a message, is gone."""
    with peer(saying(HELLO + after)) as endpoint, connected(endpoint) as connection:
        connection.limit(inf)
        with pytest.raises(ConnectionLost, match="was closed"):
            connection.receive()
        connection.send(b"too late")
        connection.send(b"much too late")


def test_a_message_of_several_parts_is_none_of_ours(saying, peer, connected):
    """Frames after the first part of a message are not taken for messages."""
    with (
        peer(saying(HELLO + b"\x01\x00\x01\x01a\x00\x01b")) as endpoint,
        connected(endpoint) as connection,
        pytest.raises(ConnectionLost, match="several parts"),
    ):
        connection.receive()


def test_a_message_that_is_too_long_is_not_awaited(saying, peer, connected):
    """The length of an oversized message is rejected before memory is allocated."""
    said = HELLO + b"\x01\x00\x02" + (1 << 62).to_bytes(8, "big")
    with (
        peer(saying(said + b"x" * 100)) as endpoint,
        connected(endpoint) as connection,
        pytest.raises(ConnectionLost, match=r"announced a message of 4,611,686,018,427,387,904 bytes"),
    ):
        connection.receive()


def test_a_peer_that_asks_and_goes(peer, connected, router):
    """A peer that is gone when its heartbeat is answered has closed the connection."""

    def serve(taken: socket.socket) -> None:
        taken.sendall(HELLO + b"\x04\x07\x04PING\x00\x00" * 50)
        there.wait()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        taken.close()
        gone.set()

    there, gone = threading.Event(), threading.Event()
    with peer(serve) as endpoint, connected(endpoint) as connection:
        there.set()
        gone.wait()
        with pytest.raises(ConnectionLost, match="was closed"):
            connection.receive()


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.ENETDOWN])
def test_a_network_that_is_gone(saying, peer, connected, number):
    """The system's error on a broken connection is reported, and not taken for a timeout."""

    class Broken:
        def fail(self, *_: Any) -> Any:
            raise OSError(number, "no route")

        recv = sendall = fail

        def close(self) -> None:
            pass

    with peer(saying(HELLO)) as endpoint, connected(endpoint) as connection:
        connection.close()
        connection._socket = Broken()
        with suppress(ConnectionLost):  # a send that timed out may have been preceded by an answer
            connection.send(b"hello")
        with pytest.raises(ConnectionLost, match="is broken: no route"):
            connection.receive()


def test_signals_while_waiting(connected, router):
    """A signal that is handled changes nothing; Ctrl-C ends the wait at once."""
    router.bind("tcp://127.0.0.1:*")
    main = threading.get_ident()
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        with connected(router.getsockopt_string(zmq.LAST_ENDPOINT)) as connection:
            connection.limit(inf)
            connection.send(b"hello")
            identity = router.recv_multipart()[0]

            def disturb() -> None:
                signal.pthread_kill(main, signal.SIGUSR1)
                router.send_multipart([identity, b"", b"answer"])

            thread = threading.Thread(target=disturb)
            thread.start()
            assert connection.receive() == b"answer"
            thread.join()
            assert heard == [signal.SIGUSR1]

            def receive_and_interrupt() -> None:
                threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT)).start()
                connection.receive()

            with pytest.raises(KeyboardInterrupt):
                receive_and_interrupt()
    finally:
        signal.signal(signal.SIGUSR1, before)
