"""The scheduler's socket in the batsim dialect: it listens, and serves one simulation to the server that connects."""

import time
from collections.abc import Callable
from typing import Final

import zmq
from zmq.backend import Socket as RawSocket

from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.batsim.session import BatsimSchedulerSession
from pipistrelle.protocol.frames import socket_event
from pipistrelle.schedulers.policy.batsim_runtime import BatsimRuntime
from pipistrelle.schedulers.policy.errors import PolicyFailed, ServerGone
from pipistrelle.schedulers.wire.interrupts import Interrupts
from pipistrelle.schedulers.wire.native import leaving
from pipistrelle.schedulers.wire.zmtp import AddressError

_raw_send: Final = RawSocket.send
_SNDMORE: Final = int(zmq.SNDMORE)
#: how often a waiting scheduler looks at whether the server is still there
_TICK_MS: Final = 100
#: how long the last message may take to leave the socket
_LINGER_MS: Final = 500
#: what a second server gets; it is no message of Batsim's, so that the server ends at once instead of waiting
_BUSY: Final = b"this scheduler serves another simulation"


def serve_batsim(runtime: BatsimRuntime, endpoint: str, *, hello_timeout: float, report: Callable[[str], None]) -> None:
    """Listen, and answer the messages of the first server that connects until its simulation ends.

    To that server the socket is what a REP would be. Unlike one, it knows whose message it has: further servers are
    turned away, and do not disturb the simulation.

    Parameters
    ----------
    endpoint
        ``tcp://HOST:PORT`` or ``ipc://PATH``; whether others may reach it has been decided by the caller.
    hello_timeout
        how long to wait for the server's first message, in seconds of the wall clock.
    report
        called with a line of text when a server can connect, and when one has.

    Raises
    ------
    ServerGone
        when no server comes in time, or it disconnects before the simulation ends.
    AddressError
        when the endpoint is none, or is in use.
    RemoteProtocolError
        when what the server sends is no message of Batsim's.
    """
    context = zmq.Context(io_threads=1)
    sock = context.socket(zmq.ROUTER)
    sock.setsockopt(zmq.LINGER, 0)
    sock.setsockopt(zmq.RCVTIMEO, _TICK_MS)
    sock.setsockopt(zmq.IPV6, int("[" in endpoint))
    monitor = sock.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
    try:
        try:
            sock.bind(endpoint)
        except zmq.ZMQError as error:
            raise AddressError(
                f"cannot listen here ({error})",
                where=endpoint,
                expected="a free tcp://HOST:PORT or ipc://PATH",
                hint="Choose another with --bind.",
            ) from None
        endpoint = sock.getsockopt_string(zmq.LAST_ENDPOINT)
        report(f"listening at {endpoint}; waiting for Batsim or 'pipistrelle serve --dialect batsim'")
        _Conversation(runtime, sock, monitor, endpoint).hold(hello_timeout, report)
        sock.setsockopt(zmq.LINGER, _LINGER_MS)
    finally:
        sock.disable_monitor()
        monitor.close(0)
        sock.close()
        context.term()


class _Conversation:
    """One simulation: whose it is, and what has become of the connection."""

    def __init__(
        self, runtime: BatsimRuntime, sock: "zmq.Socket[bytes]", monitor: "zmq.Socket[bytes]", endpoint: str
    ) -> None:
        self._runtime = runtime
        self._sock = sock
        self._monitor = monitor
        self._endpoint = endpoint
        self._session = BatsimSchedulerSession()
        #: frames that lead to the server; empty before its first message
        self._route: list[bytes] = []
        #: file descriptors of connections that are closed and not taken again
        self._closed: set[int] = set()
        self._peer: int | None = None
        self._server_left = False

    def hold(self, hello_timeout: float, report: Callable[[str], None]) -> None:
        """Answer every message until the simulation has ended."""
        frame = self._first_frame(hello_timeout)
        report(f"a server has connected to {self._endpoint}")
        session, runtime = self._session, self._runtime
        with Interrupts() as interrupts:
            try:
                while True:
                    notice = session.receive_notice(frame)
                    interrupts.let_strike()  # whatever it thinks about, the server waits for a whole message
                    reply = runtime.answer(notice)
                    interrupts.held = True
                    self._send(session.send_reply(reply))
                    if runtime.ended is not None:
                        return
                    frame = self._next_frame(interrupts)
            except (KeyboardInterrupt, PolicyFailed) as error:
                interrupts.held = True
                self._leave(error, interrupts)
                raise

    def _leave(self, error: KeyboardInterrupt | PolicyFailed, interrupts: Interrupts) -> None:
        """Tell a server of ours why this ends: in the reply to its next message, if it is its turn."""
        session = self._session
        if session.state == "SERVER_TURN" and self._sock.poll(_LINGER_MS):
            session.receive_notice(self._next_frame(interrupts))
        if session.ours and session.state == "SCHEDULER_TURN":
            self._send(session.send_reply(leaving(session.seq, error)))
            self._sock.setsockopt(zmq.LINGER, _LINGER_MS)

    def _send(self, frame: bytes) -> None:
        for part in self._route:
            _raw_send(self._sock, part, _SNDMORE)
        _raw_send(self._sock, frame)

    def _first_frame(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            try:
                frames = self._sock.recv_multipart(copy=False)
            except zmq.Again:
                if time.monotonic() >= deadline:
                    raise ServerGone(
                        f"no server came within {timeout:g} s",
                        where=self._endpoint,
                        hint="Start Batsim, or 'pipistrelle serve --dialect batsim --connect' with this endpoint, "
                        "or raise --hello-timeout.",
                    ) from None
                continue
            *route, last = frames
            self._route = [frame.bytes for frame in route]
            self._note_connections()
            self._peer = last.get(zmq.SRCFD)
            self._server_left = self._peer in self._closed
            return last.bytes

    def _next_frame(self, interrupts: Interrupts) -> bytes:
        """Return the server's next message; others that come meanwhile are turned away.

        The server's messages have the parts of its first, so that none is asked whether more follow. KeyboardInterrupt
        if there is none and an interrupt has struck.
        """
        receive, route = self._sock.recv, self._route
        while True:
            try:
                part = receive()
            except zmq.Again:
                interrupts.let_strike()
                interrupts.held = True
                self._require_connection()
                continue
            if part == route[0]:
                for expected in route[1:]:
                    part = receive()
                    if part != expected:  # without the empty part before the frame that its first message had
                        return part
                return receive()
            parts = [part]
            while self._sock.getsockopt(zmq.RCVMORE):
                parts.append(receive())
            logger().warning("turned a second server away")
            self._sock.send_multipart([*parts[:-1], _BUSY])

    def _require_connection(self) -> None:
        """Raise ServerGone if the server's connection was closed; the socket alone would wait for ever."""
        self._note_connections()
        if self._server_left and not self._sock.poll(0):  # what it sent with its last breath counts
            raise ServerGone("the server disconnected before the simulation was over", where=self._endpoint)

    def _note_connections(self) -> None:
        while True:
            try:
                event, connection = socket_event(self._monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return
            if event == zmq.EVENT_ACCEPTED:
                self._closed.discard(connection)
            else:
                self._closed.add(connection)
                self._server_left |= connection == self._peer
