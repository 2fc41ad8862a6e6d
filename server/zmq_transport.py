"""The server's socket: a ROUTER that serves exactly one scheduler and turns every other one away."""

import contextlib
import errno
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import zmq
from loguru import logger
from zmq.utils.monitor import parse_monitor_message

from pipistrelle.protocol.codec import MAX_FRAME_BYTES
from pipistrelle.protocol.errors import RemoteProtocolError
from pipistrelle.protocol.fields import RefusalCode
from pipistrelle.protocol.messages import HelloData, Notice, Refused, RefusedData, Reply, WelcomeData
from pipistrelle.protocol.session import ServerSession, negotiate
from pipistrelle.server.endpoint import check_endpoint
from pipistrelle.server.errors import EndpointError, SchedulerFailed

#: how often a waiting server looks at whether the scheduler still lives and whether its time is over
_TICK_MS: Final = 100
#: how long the last notice may take to leave the socket
_LINGER_MS: Final = 2000
_GRACE_S: Final = 1.0
#: the socket takes frames somewhat beyond the protocol's limit, so that their sender gets a text, not a silence
_SOCKET_MAX_BYTES: Final = 16 * MAX_FRAME_BYTES


class ZmqTransport:
    """Binds an endpoint and speaks the native dialect with the first scheduler that says HELLO.

    Parameters
    ----------
    endpoint
        ``tcp://127.0.0.1:28000``, ``tcp://127.0.0.1:*`` (any free port) or ``ipc://PATH``.
    hello_timeout, decision_timeout
        how long to wait for a scheduler and for each of its replies, in seconds of the wall clock.
    alive
        returns None as long as there is reason to wait for the scheduler, else a text that says what became of it;
        a launcher passes a look at its child process.
    allow_remote
        whether the endpoint may be reachable from other machines.

    Raises
    ------
    EndpointError
        when the endpoint is malformed, in use, or cannot be bound.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        hello_timeout: float,
        decision_timeout: float,
        alive: Callable[[], str | None] = lambda: None,
        allow_remote: bool = False,
    ) -> None:
        check_endpoint(endpoint, allow_remote=allow_remote)
        self._hello_timeout = hello_timeout
        self._decision_timeout = decision_timeout
        self._alive = alive
        self._session = ServerSession()
        self._who = "the scheduler"
        self._route: list[bytes] = []
        self._connections = 0
        self._last_sent = "WELCOME"
        self._owed_reply = False
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, _SOCKET_MAX_BYTES)
        self._socket.setsockopt(zmq.RCVTIMEO, _TICK_MS)
        self._socket.setsockopt(zmq.SNDTIMEO, int(decision_timeout * 1000))
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        try:
            self._bind(endpoint)
        except BaseException:
            self.close()
            raise
        #: the address that schedulers connect to, with the real port
        self.endpoint: str = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def _bind(self, endpoint: str) -> None:
        if endpoint.startswith("ipc://"):
            _free_ipc_path(Path(endpoint.removeprefix("ipc://")), endpoint)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            if error.errno == errno.EADDRINUSE:
                raise _in_use(endpoint) from None
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
        refusals: list[str] = []
        while True:
            parts = self._receive(deadline, lambda: self._nobody_came(refusals))
            self._session = ServerSession()
            try:
                hello = self._session.receive_hello(parts[-1]).data
            except RemoteProtocolError as error:
                refusals.append(str(error))
                self._turn_away(parts, "malformed", str(error))
                continue
            answer = negotiate(hello, run_id=run_id, server=server)
            frame = self._session.greet(answer)
            self._send(parts[:-1], frame)
            if isinstance(answer, Refused):
                refusals.append(answer.data.message)
                logger.warning("refused a scheduler: {}", answer.data.message)
                continue
            self._route = parts[:-1]
            self._who = f"scheduler '{hello.name}'"
            # The empty reply to WELCOME asks for the first notice.
            self._owed_reply = True
            self._reply()
            return hello, answer.data

    def _nobody_came(self, refusals: list[str]) -> SchedulerFailed:
        return SchedulerFailed(
            f"no scheduler connected within {self._hello_timeout:g} s",
            where=self.endpoint,
            found=f"{len(refusals)} refused, the last one because: {refusals[-1]}" if refusals else None,
            hint=f"Start one with 'pipistrelle schedule easy --connect {self.endpoint}'.",
        )

    # -- the run ----------------------------------------------------------------------------------------------------

    def send(self, notice: Notice) -> None:
        """Send a notice."""
        frame = self._session.send_notice(notice)
        self._last_sent = f"notice {notice.seq}"
        self._owed_reply = True
        self._send(self._route, frame)

    def receive(self) -> Reply:
        """Wait for the reply to the notice that was sent.

        Raises
        ------
        SchedulerFailed
            when the scheduler disconnects, its process ends, it stays silent for ``decision_timeout``, or it sends
            what is not a reply to the notice; it is told why, if it can be.
        """
        return self._reply()

    def _reply(self) -> Reply:
        while True:
            try:  # the common case first, without a look at the clock
                parts = self._take()
            except zmq.Again:
                deadline = time.monotonic() + self._decision_timeout - _TICK_MS / 1000
                parts = self._receive(deadline, self._silent)
            if parts[:-1] == self._route:
                break
            self._turn_away(parts, "busy", f"the server is serving {self._who} already")
        self._owed_reply = False
        try:
            return self._session.receive_reply(parts[-1])
        except RemoteProtocolError as error:
            text = f"{self._who} broke the protocol after {self._last_sent}: {error}"
            refused = Refused(RefusedData("protocol_error", str(error)))
            self._send(self._route, self._session.refuse(refused))
            self._route = []
            raise SchedulerFailed(text, where=self.endpoint) from None

    def _silent(self) -> SchedulerFailed:
        return SchedulerFailed(
            f"{self._who} did not answer {self._last_sent} within {self._decision_timeout:g} s",
            where=self.endpoint,
            hint="If it needs longer, raise --decision-timeout.",
        )

    def _receive(self, deadline: float, too_late: Callable[[], SchedulerFailed]) -> list[bytes]:
        while True:
            try:
                return self._take()
            except zmq.Again:
                pass
            self._look_at_peers()
            if time.monotonic() >= deadline:
                raise too_late()

    def _look_at_peers(self) -> None:
        """Raise if the scheduler is gone; a socket alone would wait for ever."""
        while True:
            try:
                event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                break
            self._connections += 1 if event["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED else -1
        gone = self._alive()
        if gone is None and self._route and self._connections <= 0:
            gone = f"{self._who} disconnected after {self._last_sent}"
        if gone is not None:
            # What it sent with its last breath counts.
            try:
                pending = self._socket.poll(0)
            except zmq.ZMQError:
                pending = 0
            if not pending:
                self._route = []
                raise SchedulerFailed(gone, where=self.endpoint)

    def _turn_away(self, parts: list[bytes], code: RefusalCode, message: str) -> None:
        logger.warning("refused a scheduler: {}", message)
        frame = ServerSession().refuse(Refused(RefusedData(code, message)))
        self._send(parts[:-1], frame)

    # Part by part: pyzmq's send_multipart and recv_multipart take twice as long.

    def _send(self, route: list[bytes], frame: bytes) -> None:
        send = self._socket.send
        for part in route:
            send(part, zmq.SNDMORE)
        send(frame)

    def _take(self) -> list[bytes]:
        """Return the parts of one message; the first names its sender, the last is the frame."""
        receive = self._socket.recv
        parts = [receive()]
        while True:
            part = receive(copy=False)
            parts.append(part.bytes)
            if not part.more:
                return parts

    # -- the end ----------------------------------------------------------------------------------------------------

    def farewell(self, notice: Notice) -> None:
        """Send the last notice, after a short wait for the reply that the scheduler may still owe."""
        if not self._route:
            return
        with contextlib.suppress(SchedulerFailed, zmq.ZMQError):
            if self._owed_reply:
                self._decision_timeout = _GRACE_S
                self._reply()
            frame = self._session.send_notice(notice)
            self._send(self._route, frame)

    def close(self) -> None:
        """Close the socket; what was sent last still leaves, within two seconds."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()
        self._context.term()


def _free_ipc_path(path: Path, endpoint: str) -> None:
    """Remove a dead socket file; ZeroMQ itself would silently take the path from a living server."""
    if not path.parent.is_dir():
        raise EndpointError("the folder does not exist", where=endpoint, hint=f"Create {path.parent} first.")
    if not path.exists():
        return
    if not path.is_socket():
        raise EndpointError("a file that is no socket is in the way", where=endpoint, hint="Choose another path.")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise EndpointError(f"cannot listen here ({error.strerror})", where=endpoint) from None
    raise _in_use(endpoint)


def _in_use(endpoint: str) -> EndpointError:
    return EndpointError(
        "the endpoint is in use",
        where=endpoint,
        hint="Another server listens there: end it, or choose another with --endpoint; "
        "tcp://127.0.0.1:* takes any free port.",
    )
