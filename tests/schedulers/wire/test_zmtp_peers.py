"""How the scheduler connects: to libzmq's sockets, and to peers that are none."""

import socket
import time
from math import inf

import pytest
import zmq

from pipistrelle.protocol.messages import Refused, RefusedData
from pipistrelle.protocol.session import ServerSession
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.errors import ServerGone
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.native import ServerAddress, serve_simulation
from pipistrelle.schedulers.wire.zmtp import AddressError, ConnectionLost, ZmtpConnection

#: the first bytes of a ROUTER: its greeting and READY
HELLO = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48) + b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"


def listen_to_the_end(taken: socket.socket) -> None:
    """Receive everything, and send nothing."""
    while taken.recv(1000):
        pass


def test_late_listener_is_reached_later(router, tmp_path):
    """A connection can be tried again."""
    connection = ZmtpConnection(f"ipc://{tmp_path}/s")
    with pytest.raises(ConnectionLost, match="No such file"):
        connection.connect(inf)
    router.bind(connection.endpoint)
    connection.connect(inf)
    connection.send(b"hello")
    assert router.recv_multipart()[1:] == [b"", b"hello"]
    connection.close()


def test_silence(peer):
    """Waiting for a peer to identify itself ends at the deadline."""
    with peer(listen_to_the_end) as endpoint, pytest.raises(TimeoutError, match="timed out"):
        ZmtpConnection(endpoint).connect(time.monotonic() + 0.1)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" + b" " * 64, "does not speak ZeroMQ"),
        (HELLO[:10] + b"\x01" + bytes(53), "does not speak ZeroMQ"),
        (HELLO[:12] + b"PLAIN" + HELLO[17:], "does not speak ZeroMQ"),
        (HELLO[:64] + b"\x04\x08\x05ERROR\x01x", "refuses the connection"),
        (HELLO[:64] + b"\x06\xff\xff\xff\xff\xff\xff\xff\xff", "does not speak ZeroMQ"),
        (HELLO[:64] + b"\x04\x1a\x05READY\x0bSOCKET-TYPE\x00\x00\x00\x04PULL", "a socket of type 'PULL'"),
        (HELLO[:40], "was closed"),
        (b"", "was closed"),
    ],
    ids=["http", "zmtp 1", "plain", "error", "endless", "pull", "cut off", "silent"],
)
def test_other_program_is_named(saying, peer, said, reason):
    """Another program at the other end is distinguished from a server, and nothing hangs."""
    with peer(saying(said)) as endpoint, pytest.raises(ConnectionLost, match=reason):
        ZmtpConnection(endpoint).connect(inf)


@pytest.mark.parametrize(
    "said", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\xff" + bytes(8) + b"\x7f\x01\x00"], ids=["ssh", "zmtp 2"]
)
def test_peer_that_sends_little_and_waits_is_named(peer, said):
    """A peer that is none need not be silent, nor close its connection, to be found out."""

    def serve(taken: socket.socket) -> None:
        taken.sendall(said)
        listen_to_the_end(taken)

    with peer(serve) as endpoint, pytest.raises(ConnectionLost, match="does not speak ZeroMQ"):
        ZmtpConnection(endpoint).connect(inf)


@pytest.mark.parametrize("kind", ["PUB", "PULL", "DEALER", "PAIR", "SUB"])
def test_sockets_that_never_answer_are_named(kind):
    """Of libzmq's sockets only ROUTER and REP are servers."""
    context = zmq.Context()
    other = context.socket(getattr(zmq, kind))
    port = other.bind_to_random_port("tcp://127.0.0.1")
    with pytest.raises(ConnectionLost, match=f"a socket of type '{kind}', not ROUTER or REP"):
        ZmtpConnection(f"tcp://127.0.0.1:{port}").connect(inf)
    other.close(0)
    context.term()


@pytest.mark.parametrize("begun", [b"", HELLO[:64]], ids=["greeting", "commands"])
def test_slow_or_endless_peer_times_out(peer, begun):
    """The deadline applies to the whole conversation, not to each piece."""

    def serve(taken: socket.socket) -> None:
        taken.sendall(begun or HELLO[:1])
        while True:
            taken.sendall(b"\x04\x07\x04PING\x00\x00" if begun else b"\x00")

    with peer(serve) as endpoint, pytest.raises((ConnectionLost, TimeoutError)):
        ZmtpConnection(endpoint).connect(time.monotonic() + 0.3)


def test_a_name_with_several_addresses(connected, router, monkeypatch):
    """The server may listen at any address that its host's name has."""
    router.bind("tcp://127.0.0.1:*")
    port = int(router.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])
    dead = socket.create_server(("127.0.0.1", 0))
    refusing = dead.getsockname()
    dead.close()
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in (refusing, ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
    with connected(f"tcp://somewhere:{port}") as connection:
        connection.send(b"hello")
        assert router.recv_multipart()[1:] == [b"", b"hello"]


def test_a_server_whose_queue_is_full_is_waited_for(tmp_path):
    """A Unix socket that takes no connection now may take one later."""
    endpoint = f"ipc://{tmp_path}/s"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{tmp_path}/s")
    listener.listen(0)
    other = socket.socket(socket.AF_UNIX)
    other.connect(f"{tmp_path}/s")
    with pytest.raises(ConnectionLost, match="temporarily unavailable"):
        ZmtpConnection(endpoint).connect(time.monotonic() + 600)
    other.close()
    listener.close()


@pytest.mark.parametrize(
    "endpoint", ["tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://h:99999", "tcp://*:1", "ipc://", "udp://h:1", "x"]
)
def test_invalid_endpoint(endpoint):
    """An endpoint that cannot be listened on is rejected before anything is tried."""
    with pytest.raises(AddressError, match="cannot connect to this"):
        ZmtpConnection(endpoint)


def test_a_path_that_is_too_long():
    """A path that no socket can have is not waited for."""
    with pytest.raises(AddressError, match="too long"):
        ZmtpConnection(f"ipc:///{'x' * 200}").connect(inf)


def test_a_server_that_goes_before_its_welcome_may_be_followed_by_another(peer):
    """A scheduler sends HELLO again to the next listener at the endpoint."""
    hellos: list[bytes] = []
    refused = ServerSession().refuse(Refused(RefusedData("version", "too old")))
    assert len(refused) < 256

    def serve(taken: socket.socket) -> None:
        taken.sendall(HELLO)
        said = b""
        while not said.endswith(b"}}"):
            said += taken.recv(1000)
        hellos.append(said)
        if len(hellos) == 2:
            taken.sendall(b"\x01\x00\x00" + bytes((len(refused),)) + refused)

    runtime = Runtime(make_policy("fcfs"))
    with peer(serve) as endpoint, pytest.raises(ServerGone, match="too old"):
        serve_simulation(runtime, ServerAddress(endpoint), hello_timeout=600.0, report=lambda _: None)
    assert len(hellos) == 2
    assert hellos[0] == hellos[1]
