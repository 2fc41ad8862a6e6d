"""The server's side of the native dialect: it serves exactly one scheduler.

The protocol is that of a ZeroMQ ROUTER (protocol/zmtp.py), on plain sockets. libzmq would pass each message between
threads, which is most of the cost of a round trip (docs/explanation/design.md, "Parts we do not write").
"""

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Raw
from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.errors import ProtocolError, RemoteProtocolError, legible
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.fields import Feature, RefusalCode
from pipistrelle.protocol.frames import MAX_FRAME_BYTES, too_long
from pipistrelle.protocol.messages import (
    HelloData,
    Notice,
    Refused,
    RefusedData,
    Reply,
    RestoreData,
    SavedData,
    WelcomeData,
)
from pipistrelle.protocol.session import ServerSession, negotiate
from pipistrelle.protocol.sockets import AcceptedConnection, ListenerKeys, ListeningSocket
from pipistrelle.protocol.zmtp import ZmtpError, ZmtpMessage
from pipistrelle.server.errors import SchedulerFailed
from pipistrelle.server.transport.endpoint import check_endpoint
from pipistrelle.server.transport.listener import Listener
from pipistrelle.server.transport.peer import GRACE_S, LINGER_S, TICK_MS, Peer, scheduler_named

_TICK_S: Final = TICK_MS / 1000
#: time until unknown peers are checked again after some came (s)
_SOON_S: Final = 0.01
_ANSWERED_AT_ONCE: Final = 64
_SHOWN_REFUSAL: Final = 500
#: options of an encrypted socket, besides the endpoint
_WITH_KEYS: Final = " --curve OWN.key --server-key SERVER.pub"


@mypyc_attr(allow_interpreted_subclasses=True)
class NativeTransport(Peer[ServerSession]):
    """A connection to the first scheduler that sends a valid HELLO.

    Args:
        endpoint: ``tcp://127.0.0.1:28000``, ``tcp://127.0.0.1:*`` (any free port) or ``ipc://PATH``.
        keys: own key and known peers' keys, for an encrypted socket; None: not encrypted, open to all peers.
        waits: keyword arguments of `Peer`, as in `Waits`. Their type is not ``Unpack[Waits]``, because mypyc could
            not compile the call that passes them on.

    Raises:
        EndpointError: the endpoint is malformed, in use, or unusable.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        hello_timeout: float,
        decision_timeout: float,
        fate: Callable[[float], SchedulerFailed | None] = lambda patience: None,
        interrupted: Callable[[], bool] = lambda: False,
        allow_remote: bool = False,
        keys: ListenerKeys | None = None,
    ) -> None:
        endpoint = check_endpoint(endpoint, allow_remote=allow_remote)
        if endpoint.startswith("ipc://"):  # schedulers may be started in other folders
            endpoint = f"ipc://{Path(endpoint.removeprefix('ipc://')).absolute()}"
            check_endpoint(endpoint)
        self._listener: ListeningSocket[Any] = Listener(endpoint) if keys is None else _encrypted(endpoint, keys)
        self._encrypted = keys is not None
        #: {feature: why the run needs it}: a scheduler without one of these features is refused
        self.needed: Mapping[Feature, str] = {}
        super().__init__(
            self._listener.endpoint,
            ServerSession(),
            hello_timeout=hello_timeout,
            decision_timeout=decision_timeout,
            fate=fate,
            interrupted=interrupted,
        )
        #: the scheduler's connection; None before its HELLO and after the last message to it
        self._connection: AcceptedConnection | None = None
        #: parts before the frame in the scheduler's messages
        self._route: list[bytes] = []
        #: whether the scheduler is silent, so that unknown peers are served as well
        self._idle = False
        self._next_look = 0.0
        self._refusals = 0
        self._last_refusal = ""
        #: whether the log already says why the scheduler does not save its state
        self._said_why = False

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait for a scheduler that speaks the protocol.

        Other peers are refused with a message.

        Raises:
            SchedulerFailed: no scheduler came within ``hello_timeout``, or the launched scheduler ended.
        """
        now = time.monotonic()
        deadline = now + self._hello_timeout
        while True:
            came = self._listener.message()
            if came is None:
                self._listener.look(now, _TICK_S)
                came = self._listener.message()
            if came is not None:
                stranger, message = came
                answer = self._negotiate(stranger, message, run_id, server)
                if answer is not None:
                    return answer
            now = self._look_around(deadline, self._nobody_came)

    def _negotiate(
        self, stranger: AcceptedConnection, message: ZmtpMessage, run_id: str, server: str
    ) -> tuple[HelloData, WelcomeData] | None:
        """Serve the sender of a valid HELLO; refuse any other message and return None."""
        *route, frame = message.parts
        self._session = ServerSession()
        try:
            if message.left_out:
                too_long(message.left_out, RemoteProtocolError)
            hello = self._session.receive_hello(frame).data
        except RemoteProtocolError as error:
            self._turn_away(stranger, message, "malformed", str(error))
            return None
        answer = negotiate(hello, run_id=run_id, server=server, saves=self.saves, needed=self.needed)
        greeting = self._session.greet(answer)
        if isinstance(answer, Refused):
            self._listener.answer(stranger, route, greeting)
            self._refused(answer.data.code, answer.data.message)
            return None
        self._take_on(stranger, route, hello.name)
        self._hand_over(greeting)
        self._owed_reply = True
        self._reply()  # the empty reply to WELCOME asks for the first notice
        return hello, answer.data

    def _take_on(self, stranger: AcceptedConnection, route: list[bytes], name: str) -> None:
        self._listener.release(stranger)
        stranger.serve(route, MAX_FRAME_BYTES)
        self._connection = stranger
        self._route = route
        self._who = scheduler_named(name)

    def _nobody_came(self) -> SchedulerFailed:
        return SchedulerFailed(
            f"no scheduler connected within {self._hello_timeout:g} s",
            where=self.endpoint,
            found=self._refused_so_far(),
            hint="A scheduler connects there and says HELLO, as this one does: "
            f"'pipistrelle schedule easy --connect {self.endpoint}{_WITH_KEYS if self._encrypted else ''}'.",
        )

    def _refused_so_far(self) -> str | None:
        if self._refusals:
            return f"{self._refusals} refused, the last one because: {self._last_refusal}"
        return self._listener.fault or None

    def let_go(self, patience: float) -> None:
        """Disconnect the scheduler; another one may then connect within ``patience`` s."""
        self._leave()
        self._hello_timeout = patience
        self._session, self._route, self._who = ServerSession(), [], "the scheduler"
        self._peer_left = self._idle = self._owed_reply = False

    def send(self, notice: Notice) -> None:
        """Send a notice.

        Raise SchedulerFailed if it is not sent within ``decision_timeout``.
        """
        self.sent = frame = self._session.send_notice(notice)
        self._owed_reply = True
        self._hand_over(frame)

    def save(self) -> str | None:
        """Ask the scheduler for its state (JSON) and return it; None if it gives none.

        The scheduler is asked only if it supports that, and once between two notices.
        """
        session = self._session
        if session.welcome is None or session.welcome.max_state is None or session.state != "SERVER_TURN":
            return None
        self._hand_over(session.send_save())
        try:
            saved = self._saved()
        except KeyboardInterrupt:  # no time left for an answer: a resumed run replays all notices
            return None
        state = bytes(saved.state).decode()
        if state != "null":
            return state
        if not self._said_why:  # logged once
            self._said_why = True
            logger().warning(
                "{} gives no state: {}", self._who, legible(saved.why, _SHOWN_REFUSAL) or "it does not say why"
            )
        return None

    def _saved(self) -> SavedData:
        try:
            answer = self._session.receive_saved(self._await_frame())
        except RemoteProtocolError as error:
            raise self._broken(error) from None
        if isinstance(answer, Reply):
            assert answer.leaves is not None
            raise self._left(answer.leaves)
        return answer

    def restore(self, seq: int, now: float, state: str) -> None:
        """Send a newly connected scheduler the state that it had after notice ``seq``.

        The notice's time was ``now`` (s). Raise SchedulerFailed like `receive`; the scheduler reports what is wrong
        with its state.
        """
        frame = self._session.send_restore(RestoreData(seq, now, Raw(state.encode())))
        self._owed_reply = True
        self._hand_over(frame)
        self._reply()

    def _hand_over(self, frame: bytes) -> None:
        if self._connection is not None and not self._connection.send_frame(frame):
            self._flush(self._connection)

    def _flush(self, connection: AcceptedConnection) -> None:
        deadline = time.monotonic() + self._decision_timeout
        while not connection.flush():
            self._look_around(deadline, self._not_taken)

    def _not_taken(self) -> SchedulerFailed:
        return SchedulerFailed(
            f"{self._who} did not take {self._last_sent()} within {self._decision_timeout:g} s",
            reason="scheduler_timeout",
            where=self.endpoint,
            hint="If it needs longer, raise --decision-timeout.",
        )

    def _take_frame(self, now: float) -> bytes | None:
        connection = self._connection
        assert connection is not None  # only a connected scheduler owes a frame
        try:
            if self._idle:
                self._look_at_strangers(now, _TICK_S)  # returns when the scheduler sends something
                message = connection.frame(socket.MSG_DONTWAIT)
            else:
                if now >= self._next_look:
                    self._look_at_strangers(now, 0.0)
                message = connection.frame(0)
        except ZmtpError as error:
            raise RemoteProtocolError(f"it {error}") from None
        self._idle = message is None
        if isinstance(message, ZmtpMessage):
            return self._frame_of(message)
        self._peer_left = connection.lost
        return message

    def _frame_of(self, message: ZmtpMessage) -> bytes:
        """Return the content of a scheduler's message: the first frame after the route.

        The route is the frames with which the scheduler's HELLO began.
        """
        if message.left_out:
            too_long(message.left_out, RemoteProtocolError)
        parts = message.parts
        for part, expected in zip(parts, self._route, strict=False):
            if part != expected:  # the empty part before the frame is missing
                return part
        return parts[min(len(self._route), len(parts) - 1)]

    def _last_sent(self) -> str:
        session = self._session
        if session.state == "SAVING":
            return f"SAVE after notice {session.seq}"
        if not session.seq:
            return "WELCOME"
        return f"RESTORE of notice {session.seq}" if session.seq == session.quiet else f"notice {session.seq}"

    def _lost(self) -> str | None:
        if self._connection is None:
            return self._refused_so_far()
        self._leave()
        return None

    def _leave(self) -> None:
        if self._connection is not None:
            self._listener.unwatch(self._connection)
            self._connection.close()
            self._connection = None

    def _broke(self, error: RemoteProtocolError) -> None:
        self._last_words()
        with contextlib.suppress(SchedulerFailed):
            self._hand_over(self._session.refuse(Refused(RefusedData("protocol_error", str(error)))))
        self._leave()

    def _last_words(self) -> None:
        """Limit the time for sending all further messages to `LINGER_S` seconds.

        The limit holds even if the user presses Ctrl-C.
        """
        self._interrupted = lambda: False
        self._decision_timeout = LINGER_S

    def _holds_more(self) -> bool:
        return self._listener.holds_more() if self._connection is None else self._connection.holds_more()

    def _note_connections(self, now: float) -> None:
        """Check for unknown peers; reads detect whether the scheduler has disconnected."""
        if self._connection is not None and now >= self._next_look:
            self._look_at_strangers(now, 0.0)

    def _look_at_strangers(self, now: float, patience: float) -> None:
        """Accept and refuse unknown peers while the scheduler is served."""
        listener = self._listener
        anybody = listener.look(now, patience)
        for _ in range(_ANSWERED_AT_ONCE):
            came = listener.message()
            if came is None:
                break
            self._turn_away(*came, "busy", f"the server is serving {self._who} already")
        self._next_look = now + (_SOON_S if anybody else _TICK_S)

    def _turn_away(self, stranger: AcceptedConnection, message: ZmtpMessage, code: RefusalCode, why: str) -> None:
        self._refused(code, why)
        frame = ServerSession().refuse(Refused(RefusedData(code, why)))
        self._listener.answer(stranger, message.parts[:-1], frame)

    def _refused(self, code: RefusalCode, message: str) -> None:
        self._refusals += 1
        self._last_refusal = legible(message, _SHOWN_REFUSAL)
        logger().warning("refused a scheduler: {}", self._last_refusal)

    def farewell(self, notice: Notice) -> None:
        """Send the last notice, after a short wait for a reply that the scheduler owes."""
        if self._connection is None:
            return
        self._last_words()  # the run is over
        with contextlib.suppress(SchedulerFailed, ProtocolError):
            self._flush(self._connection)  # an interrupt may have come in the middle of a notice
            self._decision_timeout = GRACE_S
            if self._session.state == "SAVING":
                self._saved()
            elif self._owed_reply:
                self._reply()
            self._decision_timeout = LINGER_S
            self.sent = self._session.send_notice(notice)
            self._hand_over(self.sent)

    def close(self) -> None:
        """Close all connections; the last message has already been sent."""
        self._leave()
        self._listener.close()


def _encrypted(endpoint: str, keys: ListenerKeys) -> ListeningSocket[Any]:
    from pipistrelle.server.transport.curve import CurveListener  # most runs do not need libzmq

    return CurveListener(endpoint, keys)
