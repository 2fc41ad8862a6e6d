"""The scheduler's socket in the batsim dialect: it listens, and serves one simulation to the server that connects.

On the wire it is what a REP of ZeroMQ would be, on plain sockets (protocol/zmtp.py): what strangers do to those is
bounded, and nothing of ours waits for it.
"""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.batsim.session import BatsimSchedulerSession
from pipistrelle.protocol.sockets import AcceptedConnection, ListeningSocket
from pipistrelle.protocol.zmtp import LONGEST_NOTICE, ZmtpError, ZmtpMessage
from pipistrelle.schedulers.policy.errors import PolicyFailed, ServerGone
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime
from pipistrelle.schedulers.wire.interrupts import Interrupts
from pipistrelle.schedulers.wire.native import leaving

#: how often a waiting scheduler looks at whether the server is still there, in seconds, and at who else has come
_TICK_S: Final = 0.1
#: how long the last message may take to leave the socket, in seconds
_LINGER_S: Final = 0.5
#: messages of strangers that are answered at one look
_ANSWERED_AT_ONCE: Final = 64
#: what a second server gets; it is no message of Batsim's, so that the server ends at once instead of waiting
_BUSY: Final = b"this scheduler serves another simulation"


_C = TypeVar("_C", bound=AcceptedConnection)


def serve_batsim(
    runtime: BatsimRuntime, listener: ListeningSocket[_C], *, hello_timeout: float, report: Callable[[str], None]
) -> None:
    """Answer the messages of the first server that says something until its simulation ends.

    Further servers are turned away, and do not disturb the simulation.

    Parameters
    ----------
    listener
        where to listen, which the caller closes; whether others may reach it has been decided by the caller.
    hello_timeout
        how long to wait for the server's first message, in seconds of the wall clock.
    report
        called with a line of text when a server can connect, and when one has.

    Raises
    ------
    ServerGone
        when no server comes in time, or it disconnects before the simulation ends.
    RemoteProtocolError
        when what the server sends is no message of Batsim's.
    """
    report(f"listening at {listener.endpoint}; waiting for Batsim or 'pipistrelle serve --dialect batsim'")
    stranger, first = _first_message(listener, hello_timeout)
    report(f"a server has connected to {listener.endpoint}")
    conversation = _Conversation(runtime, listener, stranger, first.parts[:-1])
    try:
        conversation.hold(first)
    finally:
        stranger.close()


def _first_message(listener: ListeningSocket[_C], timeout: float) -> tuple[_C, ZmtpMessage]:
    """Return the first message that anybody sends, and whose it is."""
    now = time.monotonic()
    deadline = now + timeout
    while (came := listener.message()) is None:
        if now >= deadline:
            raise ServerGone(
                f"no server came within {timeout:g} s",
                where=listener.endpoint,
                hint="Start Batsim, or 'pipistrelle serve --dialect batsim --connect' with this endpoint, "
                "or raise --hello-timeout.",
            )
        listener.look(now, _TICK_S)
        now = time.monotonic()
    return came


class _Conversation(Generic[_C]):
    """One simulation, and the connection to its server."""

    def __init__(
        self, runtime: BatsimRuntime, listener: ListeningSocket[_C], connection: _C, route: list[bytes]
    ) -> None:
        self._runtime = runtime
        self._listener = listener
        self._connection = connection
        self._session = BatsimSchedulerSession()
        #: parts that come before each frame
        self._route = route
        listener.release(connection)
        listener.unwatch(connection)
        connection.serve(route, LONGEST_NOTICE)

    def hold(self, first: ZmtpMessage) -> None:
        """Answer every message until the simulation has ended."""
        frame = self._frame_of(first)
        session, runtime = self._session, self._runtime
        with Interrupts() as interrupts:
            try:
                while True:
                    notice = session.receive_notice(frame)
                    interrupts.let_strike()  # whatever it thinks about, the server waits for a whole message
                    reply = runtime.answer(notice)
                    interrupts.held = True
                    self._send(session.send_reply(reply), None if runtime.ended is None else _LINGER_S)
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
        if session.state == "SERVER_TURN" and self._comes_soon():
            session.receive_notice(self._next_frame(interrupts))
        if session.ours and session.state == "SCHEDULER_TURN":
            self._send(session.send_reply(leaving(session.seq, error)), _LINGER_S)

    def _comes_soon(self) -> bool:
        """Tell whether the server's next message comes within the time that a last one may take."""
        deadline = time.monotonic() + _LINGER_S
        while not self._connection.holds_more():
            if self._connection.lost or time.monotonic() >= deadline:
                return False
            time.sleep(_TICK_S / 10)
        return True

    def _send(self, frame: bytes, patience: float | None) -> None:
        """Send a frame, all of it unless the server has gone or does not take it within ``patience`` seconds."""
        if self._connection.send_frame(frame):
            return
        deadline = None if patience is None else time.monotonic() + patience
        while not self._connection.flush():
            if deadline is not None and time.monotonic() >= deadline:
                return

    def _next_frame(self, interrupts: Interrupts) -> bytes:
        """Return the server's next message; others that come meanwhile are turned away.

        KeyboardInterrupt if there is none and an interrupt has struck.
        """
        while True:
            try:
                message = self._connection.frame(0)
            except ZmtpError as error:
                raise RemoteProtocolError(f"the server {error}", where=self._listener.endpoint) from None
            if message is not None:
                return self._frame_of(message) if isinstance(message, ZmtpMessage) else message
            if self._connection.lost:
                raise ServerGone(
                    "the server disconnected before the simulation was over", where=self._listener.endpoint
                )
            interrupts.let_strike()
            interrupts.held = True
            self._turn_away()

    def _frame_of(self, message: ZmtpMessage) -> bytes:
        """Return the part that counts: the first that is not as in the first message, or comes after all that are."""
        if message.left_out:
            raise RemoteProtocolError(
                "a message is too long", expected=f"at most {LONGEST_NOTICE:,} bytes", found=f"{message.left_out:,}"
            )
        for part, expected in zip(message.parts, self._route, strict=False):
            if part != expected:  # without the empty part before the frame that its first message had
                return part
        return message.parts[min(len(self._route), len(message.parts) - 1)]

    def _turn_away(self) -> None:
        """Answer those who have said something meanwhile."""
        self._listener.look(time.monotonic(), 0.0)
        for _ in range(_ANSWERED_AT_ONCE):
            came = self._listener.message()
            if came is None:
                return
            logger().warning("turned a second server away")
            self._listener.answer(came[0], came[1].parts[:-1], _BUSY)
