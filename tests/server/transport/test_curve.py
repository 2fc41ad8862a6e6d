"""An encrypted socket: accepted keys, and that strangers delay nothing."""

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq

from pipistrelle.protocol.events import RequestedCall, RequestedCallData, SimulationEnds, SimulationEndsData
from pipistrelle.protocol.messages import Notice
from pipistrelle.protocol.sockets import KeyPair, ListenerKeys
from pipistrelle.protocol.zmtp import GREETING
from pipistrelle.server.errors import EndpointError, SchedulerFailed
from pipistrelle.server.transport import native
from pipistrelle.server.transport.connection import LONGEST_HELLO
from pipistrelle.server.transport.curve import CurveListener
from pipistrelle.server.transport.native import NativeTransport

SERVER, KNOWN, UNKNOWN = (KeyPair(*zmq.curve_keypair()) for _ in range(3))
HELLO = json.dumps({"type": "HELLO", "data": {"name": "peer"}}).encode()
PATIENCE = {"hello_timeout": 600.0, "decision_timeout": 600.0}


def reply(seq: int, **more: Any) -> bytes:
    """Return a reply."""
    return json.dumps({"reply_to": seq, "now": 0, "events": [], **more}).encode()


def notice(seq: int, size: int = 0) -> Notice:
    """Return a notice with a text of this length in it."""
    return Notice(seq, 0.0, [RequestedCall(0.0, RequestedCallData("x" * size))])


@pytest.fixture
def come() -> Iterator[Callable[..., zmq.Socket]]:
    """Yield a function that connects to an endpoint with some keys."""
    context, peers = zmq.Context(), []

    def connected(endpoint: str, own: KeyPair = KNOWN, server: KeyPair = SERVER, kind: int = zmq.REQ) -> zmq.Socket:
        peers.append(peer := context.socket(kind))
        peer.setsockopt(zmq.LINGER, 0)
        peer.setsockopt(zmq.RCVTIMEO, 600_000)
        peer.setsockopt(zmq.CURVE_SERVERKEY, server.public)
        peer.setsockopt(zmq.CURVE_PUBLICKEY, own.public)
        peer.setsockopt(zmq.CURVE_SECRETKEY, own.secret)
        peer.connect(endpoint)
        return peer

    yield connected
    context.destroy(linger=0)


@pytest.fixture
def make() -> Iterator[Callable[..., NativeTransport]]:
    """Return a function that makes servers, which are closed afterwards."""
    made = []

    def server(endpoint: str = "tcp://127.0.0.1:*", known: bool = True, **waits: Any) -> NativeTransport:
        keys = ListenerKeys(SERVER, frozenset([KNOWN.public]) if known else None)
        made.append(NativeTransport(endpoint, keys=keys, **{**PATIENCE, **waits}))
        return made[-1]

    yield server
    for one in made:
        one.close()


def greeted(server: NativeTransport, peer: zmq.Socket) -> None:
    """Let a peer introduce itself; its requests wait in its socket, as each side is this thread."""
    peer.send(HELLO)
    # The reply to WELCOME cannot be sent before WELCOME arrives: the interrupt check sends it.
    server._interrupted = lambda: _answer(peer, 0)  # type: ignore[attr-defined,method-assign]
    server.greet("run", "server")
    server._interrupted = lambda: False  # type: ignore[attr-defined,method-assign]


def _answer(peer: zmq.Socket, seq: int) -> bool:
    if peer.poll(0):
        peer.recv()
        peer.send(reply(seq))
    return False


@pytest.mark.parametrize("scheme", ["tcp", "ipc"])
def test_a_conversation_is_that_of_any_socket(make, come, tmp_path, scheme):
    """Long notices, a rejected stranger, the last notice; the endpoint is free again afterwards."""
    server = make("tcp://127.0.0.1:*" if scheme == "tcp" else f"ipc://{tmp_path}/s")
    peer = come(server.endpoint)
    greeted(server, peer)
    stranger = come(server.endpoint)
    stranger.send(HELLO)
    for seq, size in ((1, 0), (2, 5_000_000)):
        server.send(notice(seq, size))
        assert len(peer.recv()) > size
        peer.send(reply(seq))
        assert server.receive().reply_to == seq
    server.send(notice(3))
    peer.recv()
    while not stranger.poll(0):  # the scheduler thinks, and strangers are handled meanwhile
        server._take_frame(0.0)
    assert json.loads(stranger.recv())["data"]["code"] == "busy"
    peer.send(reply(3))
    server.receive()
    server.farewell(Notice(4, 0.0, [SimulationEnds(0.0, SimulationEndsData())]))
    server.close()
    assert b"SIMULATION_ENDS" in peer.recv()

    again = make(server.endpoint)
    assert again.endpoint == server.endpoint


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"own": UNKNOWN}, "found a peer whose key is not among the known ones"),
        ({"server": UNKNOWN}, "found a peer that has another key of this side"),
    ],
)
def test_client_with_the_wrong_key_is_ignored(make, come, keys, fault):
    """If the scheduler never connects, the error names the peers that did."""
    servers = []
    server = make(fate=lambda _: SchedulerFailed("none") if servers and servers[0]._listener.fault else None)
    servers.append(server)
    come(server.endpoint, **keys).send(HELLO)
    with pytest.raises(SchedulerFailed, match=fault):
        server.greet("run", "server")


def test_client_without_keys_is_ignored(make):
    """A plain scheduler's greeting is enough."""
    servers = []
    server = make(fate=lambda _: SchedulerFailed("none") if servers and servers[0]._listener.fault else None)
    servers.append(server)
    with socket.create_connection(("127.0.0.1", int(server.endpoint.rpartition(":")[2]))) as plain:
        plain.sendall(GREETING)
        with pytest.raises(SchedulerFailed, match="found a peer that uses no CURVE"):
            server.greet("run", "server")


def test_without_known_keys_the_servers_own_is_enough(make, come):
    """Every client with the server's public key may connect."""
    server = make(known=False)
    greeted(server, come(server.endpoint, own=UNKNOWN))


def test_a_scheduler_that_disconnects_is_missed(make, come):
    """Its earlier messages still count; then its end is noticed, though libzmq reports none."""
    server = make()
    peer = come(server.endpoint)
    greeted(server, peer)
    server.send(notice(1))
    peer.recv()
    peer.send(reply(1))
    assert server.receive().reply_to == 1
    server.send(notice(2))
    peer.recv()
    peer.close()
    with pytest.raises(SchedulerFailed, match="disconnected after notice 2"):
        server.receive()


@pytest.mark.skipif(not str(native.__file__).endswith(".py"), reason="a compiled module has fixed constants")
def test_frames_have_their_limits(make, come, monkeypatch):
    """A long HELLO is rejected with a text, and so is a long reply."""
    server = make()
    peer = come(server.endpoint)
    peer.send(b" " * (LONGEST_HELLO + 1))
    while not peer.poll(0):
        server._listener.look(0.0, 0.01)
        while (came := server._listener.message()) is not None:
            assert server._negotiate(*came, "run", "server") is None
    refused = json.loads(peer.recv())["data"]
    assert (refused["code"], "too long" in refused["message"]) == ("malformed", True)

    monkeypatch.setattr(native, "MAX_FRAME_BYTES", 1000)
    greeted(server, peer)
    server.send(notice(1))
    peer.recv()
    peer.send(reply(1) + b" " * 1000)
    with pytest.raises(SchedulerFailed, match="the frame is too long"):
        server.receive()
    assert json.loads(peer.recv())["data"]["code"] == "protocol_error"


def test_a_frame_far_beyond_its_limit_ends_the_connection(come):
    """Nothing of it is kept."""
    listener = CurveListener("tcp://127.0.0.1:*", ListenerKeys(SERVER), longest=1000)
    peer = come(listener.endpoint, kind=zmq.DEALER)
    watch = peer.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    peer.send_multipart([b"", HELLO])
    while (came := listener.message()) is None:
        listener.look(0.0, 0.1)
    assert came[1].parts == [b"", HELLO]
    peer.send_multipart([b"", bytes(3000)])
    assert watch.poll(600_000)
    listener.look(0.0, 0.0)
    assert listener.message() is None
    listener.close()


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "during"])
def test_short_connections_delay_nothing(make, come, when):
    """Hundreds of strangers, silent, loud or disconnected, neither block the scheduler nor delay the end."""
    server = make()
    address = ("127.0.0.1", int(server.endpoint.rpartition(":")[2]))
    peer = come(server.endpoint)
    if when == "during":
        greeted(server, peer)
    silent = [socket.create_connection(address) for _ in range(50)]
    for _ in range(1500):
        with socket.create_connection(address) as loud:
            loud.sendall(b"GET / HTTP/1.0\r\n\r\n")
    if when == "before":
        greeted(server, peer)
    server.send(notice(1))
    peer.recv()
    peer.send(reply(1))
    assert server.receive().reply_to == 1
    server.close()
    for one in silent:
        one.close()


@pytest.mark.parametrize("taken", [True, False])
def test_unavailable_endpoint_is_reported(make, taken):
    """In use, or no address of this machine."""
    if taken:
        with pytest.raises(EndpointError, match="the endpoint is in use"):
            make(make().endpoint)
    else:
        with pytest.raises(EndpointError, match="cannot listen here"):
            make("tcp://192.0.2.1:28000", allow_remote=True)
