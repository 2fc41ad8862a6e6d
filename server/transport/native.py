"""The server's socket: a ROUTER that serves exactly one scheduler and turns every other one away."""

import contextlib
import errno
import time
from pathlib import Path
from typing import Final, Unpack

import zmq
from zmq.backend import Socket as RawSocket

from pipistrelle.protocol.base.errors import ProtocolError, RemoteProtocolError
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.fields import RefusalCode
from pipistrelle.protocol.frames import socket_event
from pipistrelle.protocol.messages import HelloData, Notice, Refused, RefusedData, Welcome, WelcomeData
from pipistrelle.protocol.session import ServerSession, negotiate
from pipistrelle.server.errors import EndpointError, SchedulerFailed
from pipistrelle.server.transport.endpoint import check_endpoint
from pipistrelle.server.transport.ipc_path import free_ipc_path, in_use
from pipistrelle.server.transport.peer import GRACE_S, Waits, ZmqPeer, scheduler_named, shown

_raw_send: Final = RawSocket.send
_SNDMORE: Final = int(zmq.SNDMORE)
_WATCHED: Final = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED
#: characters of what a scheduler is refused for that messages show
_SHOWN_REFUSAL: Final = 500


class ZmqTransport(ZmqPeer[ServerSession]):
    """Binds an endpoint and speaks the native dialect with the first scheduler that says HELLO.

    Parameters
    ----------
    endpoint
        ``tcp://127.0.0.1:28000``, ``tcp://127.0.0.1:*`` (any free port) or ``ipc://PATH``.
    allow_remote
        whether the endpoint may be reachable from other machines.
    waits
        as of `ZmqPeer`.

    Raises
    ------
    EndpointError
        when the endpoint is malformed, in use, or cannot be bound.
    """

    def __init__(self, endpoint: str, *, allow_remote: bool = False, **waits: Unpack[Waits]) -> None:
        endpoint = check_endpoint(endpoint, allow_remote=allow_remote)
        if endpoint.startswith("ipc://"):  # schedulers may be started in other folders
            endpoint = f"ipc://{Path(endpoint.removeprefix('ipc://')).absolute()}"
            check_endpoint(endpoint)
        super().__init__(zmq.ROUTER, _WATCHED, endpoint, ServerSession(), **waits)
        #: frames that lead to the scheduler, the first of them its identity; empty while there is none
        self._route: list[bytes] = []
        #: how many were refused, and why the last one was
        self._refusals = 0
        self._last_refusal = ""
        #: file descriptor of the scheduler's connection, and of those that are closed and not taken again
        self._peer: int | None = None
        self._closed: set[int] = set()
        #: socket file to remove at the end; ZeroMQ leaves it behind
        self._socket_file: Path | None = None
        try:
            self._bind(endpoint)
        except BaseException:
            self.close()
            raise
        # With the real port.
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def _bind(self, endpoint: str) -> None:
        path = free_ipc_path(endpoint)
        try:
            self._socket.bind(endpoint)
            self._socket_file = path
        except zmq.ZMQError as error:
            if error.errno == errno.EADDRINUSE:
                raise in_use(endpoint) from None
            raise EndpointError(
                f"cannot listen here ({error})", where=endpoint, hint="Choose another with --endpoint."
            ) from None

    # -- handshake --------------------------------------------------------------------------------------------------

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait for a scheduler that speaks our protocol; others are refused with a text.

        Raises
        ------
        SchedulerFailed
            when none came within ``hello_timeout``, or the launched one died.
        """
        deadline = time.monotonic() + self._hello_timeout
        while True:
            try:
                frames = self._socket.recv_multipart(copy=False)
            except zmq.Again:
                self._look_around(deadline, self._nobody_came)
                continue
            parts = [frame.bytes for frame in frames]
            self._session = ServerSession()
            try:
                hello = self._session.receive_hello(parts[-1]).data
            except RemoteProtocolError as error:
                self._turn_away(parts, "malformed", str(error))
                self._look_around(deadline, self._nobody_came)
                continue
            answer = negotiate(hello, run_id=run_id, server=server)
            self._send(parts[:-1], self._session.greet(answer))
            if isinstance(answer, Welcome):
                self._take_on(parts[:-1], frames[-1].get(zmq.SRCFD), hello.name)
                return hello, answer.data
            self._refused(answer.data.message)
            self._look_around(deadline, self._nobody_came)

    def _take_on(self, route: list[bytes], connection: int, name: str) -> None:
        """Serve this scheduler from now on, and take its empty reply to WELCOME, which asks for the first notice."""
        self._route = route
        self._note_connections()
        self._peer = connection
        self._peer_left = connection in self._closed
        self._who = scheduler_named(name)
        self._owed_reply = True
        self._reply()

    def _nobody_came(self) -> SchedulerFailed:
        return SchedulerFailed(
            f"no scheduler connected within {self._hello_timeout:g} s",
            where=self.endpoint,
            found=self._refused_so_far(),
            hint="A scheduler connects there and says HELLO, as this one does: "
            f"'pipistrelle schedule easy --connect {self.endpoint}'.",
        )

    def _refused_so_far(self) -> str | None:
        return f"{self._refusals} refused, the last one because: {self._last_refusal}" if self._refusals else None

    # -- the run ----------------------------------------------------------------------------------------------------

    def send(self, notice: Notice) -> None:
        """Send a notice."""
        frame = self._session.send_notice(notice)
        self._owed_reply = True
        self._send(self._route, frame)

    def _last_sent(self) -> str:
        return f"notice {self._session.seq}" if self._session.seq else "WELCOME"

    def _lost(self) -> str | None:
        found = None if self._route else self._refused_so_far()
        self._route = []
        return found

    def _broke(self, error: RemoteProtocolError) -> None:
        refused = Refused(RefusedData("protocol_error", str(error)))
        self._send(self._route, self._session.refuse(refused))
        self._route = []

    def _note_connections(self) -> None:
        """Learn which connections were closed; a socket alone would wait for ever for a scheduler that is gone.

        Descriptors tell whose connection it was: anything may connect to an endpoint and leave again.
        """
        while True:
            try:
                event, connection = socket_event(self._monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return
            if event == zmq.EVENT_ACCEPTED:
                self._closed.discard(connection)
            else:
                self._closed.add(connection)
                self._peer_left |= connection == self._peer

    def _turn_away(self, parts: list[bytes], code: RefusalCode, message: str) -> None:
        self._refused(message)
        frame = ServerSession().refuse(Refused(RefusedData(code, message)))
        self._send(parts[:-1], frame)

    # Part by part, and by the compiled class beneath pyzmq's own: that takes half of the time of send_multipart and
    # recv_multipart, and these are a good part of what a round trip costs.

    def _send(self, route: list[bytes], frame: bytes) -> None:
        sock = self._socket
        for part in route:
            _raw_send(sock, part, _SNDMORE)
        _raw_send(sock, frame)

    def _take_frame(self) -> bytes | None:
        """Return a frame of the scheduler that is served; None after a message of another peer, which is refused.

        The scheduler's messages have the parts of its first, so that none is asked whether more follow. zmq.Again if
        nothing came within a tick.
        """
        receive = self._socket.recv
        part = receive()
        if part == self._route[0]:
            for expected in self._route[1:]:
                part = receive()
                if part != expected:  # without the empty part before the frame that its first message had
                    return part
            return receive()
        parts = [part]
        while self._socket.getsockopt(zmq.RCVMORE):
            parts.append(receive())
        self._turn_away(parts, "busy", f"the server is serving {self._who} already")
        return None

    def _refused(self, message: str) -> None:
        self._refusals += 1
        self._last_refusal = shown(message, _SHOWN_REFUSAL)
        logger().warning("refused a scheduler: {}", self._last_refusal)

    # -- the end ----------------------------------------------------------------------------------------------------

    def farewell(self, notice: Notice) -> None:
        """Send the last notice, after a short wait for the reply that the scheduler may still owe."""
        if not self._route:
            return
        self._interrupted = lambda: False  # it has done its work
        with contextlib.suppress(SchedulerFailed, ProtocolError, zmq.ZMQError):
            if self._owed_reply:
                self._decision_timeout = GRACE_S
                self._reply()
            frame = self._session.send_notice(notice)
            self._send(self._route, frame)

    def close(self) -> None:
        """Close the socket; what was sent last still leaves, within two seconds."""
        if self._socket_file is not None:
            with contextlib.suppress(OSError):
                self._socket_file.unlink()
        super().close()
