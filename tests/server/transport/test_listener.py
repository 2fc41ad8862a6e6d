"""Strangers at the server's socket: the server waits for none, and their resources are bounded."""

import os
import resource
import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
import zmq

from pipistrelle.protocol.zmtp import GREETING, framed
from pipistrelle.server.errors import EndpointError
from pipistrelle.server.transport.connection import LONGEST_HELLO
from pipistrelle.server.transport.listener import MOST_STRANGERS, Listener

READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
#: a timeout that never ends; the tests set the time themselves
NOW = 0.0


@pytest.fixture(params=["tcp", "ipc"])
def listener(request, tmp_path) -> Iterator[Listener]:
    """Return a listener at an address of each kind."""
    listener = Listener("tcp://127.0.0.1:*" if request.param == "tcp" else f"ipc://{tmp_path}/s")
    yield listener
    listener.close()


@pytest.fixture
def knock(listener) -> Iterator[Callable[..., socket.socket]]:
    """Return a function that connects, and sends something."""
    with ExitStack() as opened:

        def connect(said: bytes = b"") -> socket.socket:
            client = opened.enter_context(connected(listener.endpoint))
            client.sendall(said)
            return client

        yield connect


def connected(endpoint: str) -> socket.socket:
    """Return a plain socket that is connected."""
    if endpoint.startswith("ipc://"):
        client = socket.socket(socket.AF_UNIX)
        client.connect(endpoint.removeprefix("ipc://"))
        return client
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)))


def wait_for(listener: Listener, condition: Callable[[], bool], now: float = NOW) -> None:
    """Let the listener look until a condition holds."""
    while not condition():
        listener.look(now, 0.1)
        assert listener.message() is None


def is_over(client: socket.socket) -> bool:
    """Return whether the other end has closed a connection."""
    with suppress(BlockingIOError):
        try:
            while client.recv(1000, socket.MSG_DONTWAIT):
                pass
        except ConnectionError:
            pass
        return True
    return False


def is_greeted(client: socket.socket) -> bool:
    """Return whether the other end has announced its protocol and accepted this one's."""
    with suppress(BlockingIOError):
        return len(client.recv(100, socket.MSG_PEEK | socket.MSG_DONTWAIT)) > len(GREETING)
    return False


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "does not speak ZeroMQ's protocol"),
        (b"\x01\x00\x06\x00hello", "does not speak ZeroMQ's protocol"),
        (b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x05\x00\x00", "does not speak ZeroMQ's protocol"),
        (GREETING[:12] + b"PLAIN" + GREETING[17:], "does not speak ZeroMQ's protocol"),
        (GREETING + READY.replace(b"\x19", b"\x1a").replace(b"\x03REQ", b"\x04PUSH"), "is a socket of type 'PUSH'"),
        (GREETING + READY + b"\x02" + b"\xff" * 8, "announced a message of 18,446,744,073,709,551,615 bytes"),
        (GREETING + READY + b"\x01\x00" * 1000, "sent a message of more than 64 parts"),
    ],
    ids=["http", "zmtp 1", "zmtp 2", "plain", "push", "endless", "parts"],
)
def test_other_program_is_disconnected(listener, knock, said, fault):
    """The connection is closed as soon as that shows, and the listener knows why."""
    client = knock(said)
    wait_for(listener, lambda: is_over(client))
    assert fault in listener.fault
    assert len(listener) == 0


@pytest.mark.parametrize("said", [b"", b"\xff", GREETING[:40], GREETING, GREETING + READY[:9]], ids=len)
def test_half_a_handshake_has_its_time(tmp_path, said):
    """A silent peer is disconnected at the timeout; until then it only occupies a place."""
    listener = Listener(f"ipc://{tmp_path}/s", handshake_timeout=30.0)
    with connected(listener.endpoint) as half, connected(listener.endpoint) as whole:
        half.sendall(said)
        whole.sendall(GREETING + READY)
        wait_for(listener, lambda: len(listener) == 2)
        whole.sendall(framed(b"hello"))
        while listener.message() is None:  # earlier data was read as well
            listener.look(NOW, 0.1)
        listener.look(NOW + 29, 0.0)
        assert not is_over(half)
        listener.look(NOW + 31, 0.0)
        assert is_over(half)
        assert not is_over(whole)
    listener.close()


def test_libzmq_sockets_of_the_right_kinds_are_accepted(listener):
    """REQ puts its empty part before the text, DEALER any; both get the answer."""
    with zmq.Context() as context:
        for kind, parts in ((zmq.REQ, [b"hello"]), (zmq.DEALER, [b"a", b"", b"hello"]), (zmq.DEALER, [b""])):
            with context.socket(kind) as client:
                client.connect(listener.endpoint)
                client.send_multipart(parts)
                while (came := listener.message()) is None:
                    listener.look(NOW, 0.1)
                stranger, message = came
                assert message.parts == ([b"", *parts] if kind == zmq.REQ else parts)
                listener.answer(stranger, message.parts[:-1], b"answer")
                assert client.recv_multipart() == [*parts[:-1], b"answer"]


def test_old_and_foreign_sockets_of_libzmq(listener):
    """A socket of a kind that talks to no ROUTER tries again and again, and takes no room."""
    with zmq.Context() as context, context.socket(zmq.PUSH) as client:
        client.setsockopt(zmq.LINGER, 0)
        client.connect(listener.endpoint)
        wait_for(listener, lambda: "is a socket of type 'PUSH'" in listener.fault)


def test_the_silent_make_room_first(listener, knock):
    """Over the limit the oldest unidentified peer is disconnected after a while; an identified one stays."""
    whole = [knock(GREETING + READY) for _ in range(3)]
    wait_for(listener, lambda: all(map(is_greeted, whole)))
    silent = [knock() for _ in range(MOST_STRANGERS - 3)]
    wait_for(listener, lambda: len(listener) == MOST_STRANGERS)
    late = [knock() for _ in range(20)]
    listener.look(NOW, 0.0)
    assert not listener.look(NOW + 0.1, 0.0)  # nor is the waiting peer reported again and again
    assert not any(map(is_over, silent))
    wait_for(listener, lambda: is_over(silent[19]), NOW + 5)
    assert [is_over(client) for client in silent] == [True] * 20 + [False] * (MOST_STRANGERS - 23)
    assert len(listener) == MOST_STRANGERS
    assert not any(map(is_over, late))
    assert not any(map(is_over, whole))


def test_all_peers_may_be_identified(listener, knock):
    """If all have identified themselves, the one silent for longest is disconnected."""
    clients = []
    for _ in range(MOST_STRANGERS):
        clients.append(knock(GREETING + READY))
        listener.look(NOW, 0.1)
    wait_for(listener, lambda: all(map(is_greeted, clients)))
    clients[0].sendall(framed(b"still here"))
    while listener.message() is None:
        listener.look(NOW, 0.1)
    knock(GREETING + READY)
    wait_for(listener, lambda: is_over(clients[1]), NOW + 5)
    assert [is_over(client) for client in clients].count(True) == 1


@pytest.mark.parametrize("announced", [LONGEST_HELLO, LONGEST_HELLO + 1, 500_000_000])
def test_messages_that_never_end_share_a_bound(listener, knock, announced):
    """The maximum number of peers takes less than 64 MiB together, whatever they announce."""
    clients = [knock() for _ in range(MOST_STRANGERS)]
    wait_for(listener, lambda: len(listener) == MOST_STRANGERS)
    tracemalloc.start()
    piece = b"x" * 30_000
    for client in clients:
        client.setblocking(False)
        client.sendall(GREETING + READY + b"\x02" + announced.to_bytes(8, "big"))
    for _ in range(LONGEST_HELLO // len(piece)):
        for client in clients:
            client.sendall(piece)
        while listener.look(NOW, 0.0):
            assert listener.message() is None
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    assert len(listener) == MOST_STRANGERS


def test_peer_that_reads_no_answers_is_disconnected(listener, knock):
    """Data that cannot be sent at once is not kept for a stranger."""
    client = knock(GREETING + READY)
    message = framed(b"again")
    client.setblocking(False)
    while len(listener) or not listener.fault:
        with suppress(OSError):
            client.send(message)
        listener.look(NOW, 0.0)
        if (came := listener.message()) is not None:
            listener.answer(*came[:1], [], b"no " * 10_000)
    assert "does not read its messages" in listener.fault


def test_no_more_is_read_than_is_looked_at(listener, knock):
    """A peer that sends much is paused until its data is consumed: nothing is buffered."""

    def fill(client: socket.socket) -> int:
        sent = 0
        with suppress(BlockingIOError):
            while True:
                sent += client.send(framed(b"again") * 1000)
        return sent

    client = knock(GREETING + READY)
    client.setblocking(False)
    fill(client)
    while listener.message() is None:
        listener.look(NOW, 0.1)
    fill(client)
    for _ in range(300):
        listener.look(NOW, 0.0)
    assert fill(client) < 300 * 16384
    assert listener.message() is not None


def test_thousands_connect_and_leave(listener):
    """A port scanner leaves nothing behind, and blocks no other peer."""
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(3000):
        with connected(listener.endpoint) as client:
            if turn % 3:
                client.sendall(b"\xff" if turn % 3 == 1 else b"SSH-2.0-scan\r\n")
        listener.look(NOW, 0.0)
        assert listener.message() is None
    wait_for(listener, lambda: len(listener) == 0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_descriptors_no_peer_is_accepted_and_nothing_spins(listener, knock):
    """Waiting peers are accepted when descriptors are free; meanwhile the listener is not woken repeatedly."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 60, limits[1]))
    taken = []
    try:
        clients = [knock(GREETING + READY), knock(GREETING + READY)]
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        assert listener.look(NOW, 0.0)
        assert not listener.look(NOW + 0.1, 0.0)
        assert len(listener) == 0
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    while not all(map(is_greeted, clients)):
        listener.look(NOW + 10, 0.1)
        assert listener.message() is None


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("tcp://127.0.0.1:*", "tcp://127.0.0.1:"),
        ("tcp://localhost:*", "tcp://127.0.0.1:"),
        ("tcp://lo:*", "tcp://127.0.0.1:"),
        ("tcp://*:*", "tcp://0.0.0.0:"),
        ("tcp://[::1]:*", "tcp://[::1]:"),
        ("tcp://[::]:*", "tcp://[::]:"),
    ],
)
def test_listening_address_is_reported(endpoint, told):
    """The endpoint has a numeric address and port, and a peer that connects there is accepted."""
    if "[" in endpoint:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
    listener = Listener(endpoint)
    assert listener.endpoint.startswith(told)
    assert listener.endpoint.removeprefix(told).isdecimal()
    with connected(listener.endpoint):
        wait_for(listener, lambda: len(listener) == 1)
    with pytest.raises(EndpointError, match="the endpoint is in use"):
        Listener(listener.endpoint)
    listener.close()
    Listener(listener.endpoint).close()  # at once, although a connection was there


def test_data_of_all_strangers_is_bounded_together(tmp_path, monkeypatch):
    """If each may send much, the one that sent most is disconnected when the total is too large."""
    monkeypatch.setattr("pipistrelle.server.transport.listener.MOST_BYTES", 1 << 20)
    listener = Listener(f"ipc://{tmp_path}/s", longest=1 << 20)
    begun = GREETING + READY + b"\x02" + (1 << 20).to_bytes(8, "big")
    with ExitStack() as opened:
        opened.callback(listener.close)
        clients = [opened.enter_context(connected(listener.endpoint)) for _ in range(3)]
        for client, more in zip(clients, (300, 100, 700), strict=True):
            client.setblocking(False)
            for part in (begun, *[b"x" * 1024] * more):
                sent = 0
                while sent < len(part) and not listener.fault:
                    with suppress(BlockingIOError):
                        sent += client.send(part[sent:])
                    listener.look(NOW, 0.0)
                    assert listener.message() is None
        wait_for(listener, lambda: len(listener) == 2)
        assert listener.fault == "a peer that says too much"
