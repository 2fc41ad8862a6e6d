"""The server's socket in the batsim dialect.

It is a REQ socket that connects to a scheduler.
"""

import contextlib
import re
import time
from typing import Final, Unpack

import zmq
from zmq.backend import Socket as RawSocket

from pipistrelle.protocol.base.errors import ProtocolError, RemoteProtocolError
from pipistrelle.protocol.batsim.codec import encode_notice
from pipistrelle.protocol.batsim.session import BatsimServerSession
from pipistrelle.protocol.fields import PROTOCOL_VERSION
from pipistrelle.protocol.frames import MAX_FRAME_BYTES, socket_event
from pipistrelle.protocol.messages import HelloData, Notice, WelcomeData
from pipistrelle.protocol.sockets import ZMQ_DESCRIPTORS, CallerKeys, check_descriptors
from pipistrelle.server.errors import EndpointError, SchedulerFailed
from pipistrelle.server.transport.endpoint import check_endpoint
from pipistrelle.server.transport.peer import GRACE_S, LINGER_S, TICK_MS, Peer, Waits, scheduler_named

_raw_send: Final = RawSocket.send
#: name of each scheduler, because this dialect has no HELLO
UNNAMED: Final = "a Batsim scheduler"
#: no reconnection: another program may listen there by then, and a lost scheduler must stay lost
_NEVER_MS: Final = 24 * 3600 * 1000
#: the socket accepts frames somewhat longer than the protocol's limit, so that errors can be reported
_SOCKET_MAX_BYTES: Final = 16 * MAX_FRAME_BYTES
#: time between attempts to connect, and limit for an attempt without progress (s)
_RETRY_S: Final = 0.02
_ATTEMPT_S: Final = 1.0
_WATCHED: Final = zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_CLOSED | zmq.EVENT_DISCONNECTED
_NOWHERE: Final = re.compile(r"tcp://\*:.*|tcp://.*:\*")


class BatsimTransport(Peer[BatsimServerSession]):
    """A connection to a scheduler that speaks Batsim's protocol.

    The scheduler listens at an endpoint.

    Args:
        endpoint: ``tcp://localhost:28000`` or ``ipc://PATH``; the scheduler may start later.
        allow_remote: whether the endpoint may be on another machine.
        keys: keys for an encrypted connection; None: not encrypted.

    Raises:
        EndpointError: the server cannot connect to the endpoint.
    """

    batsim = True

    def __init__(
        self,
        endpoint: str,
        *,
        name: str = UNNAMED,
        allow_remote: bool = False,
        keys: CallerKeys | None = None,
        **waits: Unpack[Waits],
    ) -> None:
        check_endpoint(endpoint, allow_remote=allow_remote or _NOWHERE.fullmatch(endpoint) is not None)
        if _NOWHERE.fullmatch(endpoint):
            raise EndpointError(
                "cannot connect to *; a server can only listen there",
                where=endpoint,
                expected="the host and the port where the scheduler listens",
                hint="For example tcp://localhost:28000.",
            )
        super().__init__(endpoint, BatsimServerSession(), **waits)
        check_descriptors(ZMQ_DESCRIPTORS)
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, int(1000 * LINGER_S))
        self._socket.setsockopt(zmq.MAXMSGSIZE, _SOCKET_MAX_BYTES)
        self._socket.setsockopt(zmq.RCVTIMEO, TICK_MS)
        self._socket.setsockopt(zmq.RECONNECT_IVL, _NEVER_MS)
        self._socket.setsockopt(zmq.IPV6, int("[" in endpoint))
        if keys is not None:
            self._socket.setsockopt(zmq.CURVE_SERVERKEY, keys.listener)
            self._socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.own.public)
            self._socket.setsockopt(zmq.CURVE_SECRETKEY, keys.own.secret)
        self._monitor = self._socket.get_monitor_socket(_WATCHED)
        self._name = name
        self._told_at: float | None = None
        #: whether a scheduler is connected, so that messages can be sent
        self._reachable = False
        self._unanswered = "no program listens there"

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait until a scheduler listens; this dialect has no handshake.

        Raises:
            SchedulerFailed: no scheduler listens within ``hello_timeout``, or the launched scheduler ended.
            EndpointError: ZeroMQ cannot connect to the endpoint.
        """
        deadline = time.monotonic() + self._hello_timeout
        while not self._attempt(deadline):
            self._look_around(deadline, self._nobody_there)
            time.sleep(_RETRY_S)
        self._reachable = True
        if self._name != UNNAMED:
            self._who = scheduler_named(self._name)
        return HelloData(self._name), WelcomeData(PROTOCOL_VERSION, (), run_id, server)

    def _attempt(self, deadline: float) -> bool:
        try:
            self._socket.connect(self.endpoint)
        except zmq.ZMQError as error:
            raise EndpointError(f"cannot connect ({error})", where=self.endpoint) from None
        patience = time.monotonic() + _ATTEMPT_S
        while (event := self._next_event(TICK_MS)) != zmq.EVENT_HANDSHAKE_SUCCEEDED:
            if event == zmq.EVENT_CONNECTED:  # a listening program may be starting; the handshake has its own limit
                patience = deadline
                self._unanswered = "something that is no ZeroMQ socket of the kind REP, or of other keys (--curve)"
            elif event is not None or time.monotonic() >= patience:
                with contextlib.suppress(zmq.ZMQError):  # a name that cannot be resolved has no connection to close
                    self._socket.disconnect(self.endpoint)
                return False
            else:
                self._look_around(deadline, self._nobody_there)
        return True

    def _next_event(self, patience_ms: int) -> int | None:
        if not self._monitor.poll(patience_ms):
            return None
        return socket_event(self._monitor.recv_multipart())[0]

    def _nobody_there(self) -> SchedulerFailed:
        return SchedulerFailed(
            f"no scheduler was there within {self._hello_timeout:g} s",
            where=self.endpoint,
            found=self._unanswered,
            hint=f"Start one with 'pipistrelle schedule easy --dialect batsim --bind {self.endpoint}'.",
        )

    def send(self, notice: Notice) -> None:
        """Send a notice; raise SchedulerFailed if the last reply had several parts."""
        self.sent = frame = self._session.send_notice(notice)
        self._owed_reply = True
        self._hand_over(frame)
        self._told_at = notice.now

    def _hand_over(self, frame: bytes) -> None:
        try:
            _raw_send(self._socket, frame)
        except zmq.ZMQError as error:  # a part of the last reply is still unread
            self._reachable = False
            raise SchedulerFailed(
                f"{self._who} broke the protocol after {self._last_sent()}: its reply has several parts ({error})",
                where=self.endpoint,
                expected="a message of one part",
            ) from None

    def _take_frame(self, now: float) -> bytes | None:
        try:
            return self._socket.recv()
        except zmq.Again:
            return None

    def _holds_more(self) -> bool:
        return bool(self._socket.poll(0))

    def _last_sent(self) -> str:
        return "connecting" if self._told_at is None else f"the message of time {self._told_at!r}"

    def _note_connections(self, now: float) -> None:
        """Detect a closed connection; the socket alone would wait forever."""
        while self._reachable and (event := self._next_event(0)) is not None:
            self._peer_left |= event == zmq.EVENT_DISCONNECTED

    def _lost(self) -> str | None:
        self._reachable = False
        return None

    def _broke(self, error: RemoteProtocolError) -> None:
        """Do nothing: Batsim has no error message, and the last notice can still be sent."""

    def farewell(self, notice: Notice) -> None:
        """Send the last notice.

        First wait briefly for a reply that is still missing. After sending the last notice, wait for its reply. Other
        pending events are not sent: schedulers expect only SIMULATION_ENDS.
        """
        if not self._reachable:
            return
        self._interrupted = lambda: False  # the interrupt has already ended the run
        self._decision_timeout = GRACE_S
        with contextlib.suppress(SchedulerFailed, ProtocolError, zmq.ZMQError):
            if self._owed_reply:
                self._await_frame()
            self.sent = encode_notice(Notice(notice.seq, notice.now, notice.events[-1:]))
            _raw_send(self._socket, self.sent)
            self._await_frame()

    def close(self) -> None:
        """Close the socket; the last message is still sent, within two seconds."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()
        self._context.term()
