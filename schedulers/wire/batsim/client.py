"""The scheduler's listening socket in the batsim dialect, for one simulation.

To its peers it behaves like ZeroMQ's REP socket, but it uses plain sockets (protocol/zmtp.py). The work that unknown
peers can cause is bounded and does not delay the simulation.
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

#: interval at which a waiting scheduler checks for input of the server and unknown peers, s
_TICK_S: Final = 0.1
#: longest time for sending the last message, s
_LINGER_S: Final = 0.5
#: most messages of unknown peers answered at a time
_ANSWERED_AT_ONCE: Final = 64
#: reply to a second server; it is not a message of Batsim, so that server stops at once instead of waiting
_BUSY: Final = b"this scheduler serves another simulation"


_C = TypeVar("_C", bound=AcceptedConnection)


def serve_batsim(
    runtime: BatsimRuntime, listener: ListeningSocket[_C], *, hello_timeout: float, report: Callable[[str], None]
) -> None:
    """Serve the first server that sends a message, until its simulation ends.

    Other servers are refused without disturbing the simulation.

    Args:
        listener: a listening socket, closed by the caller.
        hello_timeout: longest wait for the first message, in seconds of the wall clock.
        report: called with a line of text when the socket listens and when a server has connected.

    Raises:
        ServerGone: no server connects in time, or it disconnects before the simulation ends.
        RemoteProtocolError: the server sends an invalid message.
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
    """Return the first message from any peer, and the connection that it came from."""
    now = time.monotonic()
    deadline = now + timeout
    while (came := listener.message()) is None:
        if now >= deadline:
            raise ServerGone(
                f"no server connected within {timeout:g} s",
                where=listener.endpoint,
                hint="Start Batsim, or 'pipistrelle serve --dialect batsim --connect' with this endpoint, "
                "or raise --hello-timeout.",
            )
        listener.look(now, _TICK_S)
        now = time.monotonic()
    return came


class _Conversation(Generic[_C]):
    def __init__(
        self, runtime: BatsimRuntime, listener: ListeningSocket[_C], connection: _C, route: list[bytes]
    ) -> None:
        self._runtime = runtime
        self._listener = listener
        self._connection = connection
        self._session = BatsimSchedulerSession()
        #: message parts that precede each frame
        self._route = route
        listener.release(connection)
        listener.unwatch(connection)
        connection.serve(route, LONGEST_NOTICE)

    def hold(self, first: ZmtpMessage) -> None:
        """Answer every message of the server, from ``first`` to the end of the simulation."""
        frame = self._frame_of(first)
        session, runtime = self._session, self._runtime
        with Interrupts() as interrupts:
            try:
                while True:
                    notice = session.receive_notice(frame)
                    interrupts.let_strike()  # no message is in transit while the policy decides
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
        """Tell the server why the scheduler leaves, if the server is Pipistrelle's.

        The reason is sent in reply to the server's next message.
        """
        session = self._session
        if session.state == "SERVER_TURN" and self._comes_soon():
            session.receive_notice(self._next_frame(interrupts))
        if session.ours and session.state == "SCHEDULER_TURN":
            self._send(session.send_reply(leaving(session.seq, error)), _LINGER_S)

    def _comes_soon(self) -> bool:
        """Return whether the server's next message arrives within `_LINGER_S`."""
        deadline = time.monotonic() + _LINGER_S
        while not self._connection.holds_more():
            if self._connection.lost or time.monotonic() >= deadline:
                return False
            time.sleep(_TICK_S / 10)
        return True

    def _send(self, frame: bytes, patience: float | None) -> None:
        """Send a frame; give up if the server is gone or blocks for ``patience`` seconds.

        ``patience`` None means no limit.
        """
        if self._connection.send_frame(frame):
            return
        deadline = None if patience is None else time.monotonic() + patience
        while not self._connection.flush():
            if deadline is not None and time.monotonic() >= deadline:
                return

    def _next_frame(self, interrupts: Interrupts) -> bytes:
        """Return the server's next message; refuse other servers while waiting for it.

        Raises:
            KeyboardInterrupt: an interrupt was received and no message has arrived.
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
        """Return the content of a message, without the parts in front that route it.

        The first message of the server shows which parts these are.
        """
        if message.left_out:
            raise RemoteProtocolError(
                "a message is too long", expected=f"at most {LONGEST_NOTICE:,} bytes", found=f"{message.left_out:,}"
            )
        for part, expected in zip(message.parts, self._route, strict=False):
            if part != expected:  # this message lacks the empty part that the first message had
                return part
        return message.parts[min(len(self._route), len(message.parts) - 1)]

    def _turn_away(self) -> None:
        self._listener.look(time.monotonic(), 0.0)
        for _ in range(_ANSWERED_AT_ONCE):
            came = self._listener.message()
            if came is None:
                return
            logger().warning("turned a second server away")
            self._listener.answer(came[0], came[1].parts[:-1], _BUSY)
