"""What every transport over ZeroMQ does alike: it waits for one scheduler's frames, and knows when to stop waiting."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, Protocol, Required, TypedDict, TypeVar

import zmq

from pipistrelle.protocol.base.errors import RemoteProtocolError, printable
from pipistrelle.protocol.fields import EndReason, LeaveReason
from pipistrelle.protocol.frames import MAX_FRAME_BYTES
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.errors import SchedulerFailed

#: how often a waiting server looks at whether the scheduler still lives and whether its time is over
TICK_MS: Final = 100
#: how long the last notice may take to leave the socket
_LINGER_MS: Final = 2000
#: how long a run that is over waits for a reply that the scheduler still owes, or for what became of one that has left
GRACE_S: Final = 1.0
#: {what a scheduler says: (that in words, the end of the run)}
_LEFT: Final[dict[LeaveReason, tuple[str, EndReason]]] = {
    "interrupted": ("was interrupted", "scheduler_interrupted"),
    "error": ("failed", "scheduler_error"),
}
#: the socket takes frames somewhat beyond the protocol's limit, so that their sender gets a text, not a silence
_SOCKET_MAX_BYTES: Final = 16 * MAX_FRAME_BYTES
#: characters of a scheduler's name that messages show
_SHOWN_NAME: Final = 60


class Session(Protocol):
    """A dialect's state machine, from the server's side."""

    def send_notice(self, notice: Notice) -> bytes:
        """Return a notice's frame."""

    def receive_reply(self, frame: bytes) -> Reply:
        """Return the reply in a frame; RemoteProtocolError if there is none that is allowed now."""


class Waits(TypedDict, total=False):
    """How long to wait for a scheduler, and when not: the arguments by name of `ZmqPeer`."""

    hello_timeout: Required[float]
    decision_timeout: Required[float]
    fate: Callable[[float], SchedulerFailed | None]
    interrupted: Callable[[], bool]


_S = TypeVar("_S", bound=Session)


class ZmqPeer(ABC, Generic[_S]):
    """A socket that leads to one scheduler.

    Parameters
    ----------
    kind
        the ZeroMQ type of the socket.
    watched
        the events of its monitor that it looks at.
    endpoint
        what it will listen at or connect to.
    session
        what the conversation is held to.
    hello_timeout, decision_timeout
        how long to wait for a scheduler and for each of its replies, in seconds of the wall clock.
    fate
        returns None as long as there is reason to wait for the scheduler, else what became of it; a launcher passes a
        look at its child process. It is given how long to wait for that (s): of a scheduler whose connection was
        closed there will soon be something to tell, if it was launched.
    interrupted
        tells whether the user wants the run to end. It is looked at between messages, where nothing is half done, and
        while a message is awaited; `KeyboardInterrupt` is raised then.
    """

    apart: Final = True

    def __init__(
        self,
        kind: int,
        watched: int,
        endpoint: str,
        session: _S,
        *,
        hello_timeout: float,
        decision_timeout: float,
        fate: Callable[[float], SchedulerFailed | None] = lambda patience: None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        #: the address that schedulers connect to, or that the server connects to
        self.endpoint = endpoint
        self._session = session
        self._hello_timeout = hello_timeout
        self._decision_timeout = decision_timeout
        self._fate = fate
        self._interrupted = interrupted
        self._who = "the scheduler"
        self._peer_left = False
        #: whether the last message to the scheduler still waits for its reply
        self._owed_reply = False
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(kind)
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, _SOCKET_MAX_BYTES)
        self._socket.setsockopt(zmq.RCVTIMEO, TICK_MS)
        self._socket.setsockopt(zmq.IPV6, int("[" in endpoint))
        self._monitor = self._socket.get_monitor_socket(watched)

    # -- what a dialect does in its own way -------------------------------------------------------------------------

    @abstractmethod
    def _take_frame(self) -> bytes | None:
        """Return a frame of the scheduler; None if something else came, `zmq.Again` if nothing did within a tick."""

    @abstractmethod
    def _note_connections(self) -> None:
        """Learn whether the scheduler's connection was closed: `_peer_left`."""

    @abstractmethod
    def _lost(self) -> str | None:
        """Never send to the scheduler again; return what else there is to say of its loss."""

    @abstractmethod
    def _broke(self, error: RemoteProtocolError) -> None:
        """Tell the scheduler, as far as the dialect can, that it broke the protocol."""

    @abstractmethod
    def _last_sent(self) -> str:
        """Return what the scheduler was sent last."""

    # -- waiting ----------------------------------------------------------------------------------------------------

    def receive(self) -> Reply:
        """Wait for the reply to the notice that was sent.

        Raises
        ------
        SchedulerFailed
            when the scheduler disconnects, its process ends, it stays silent for ``decision_timeout``, or it sends
            what is not a reply to the notice; it is told, if it can be.
        """
        reply = self._reply()
        if self._interrupted():
            raise KeyboardInterrupt
        return reply

    def _reply(self) -> Reply:
        frame = self._await_frame()
        try:
            reply = self._session.receive_reply(frame)
        except RemoteProtocolError as error:
            self._broke(error)
            raise SchedulerFailed(
                f"{self._who} broke the protocol after {self._last_sent()}: {error}", where=self.endpoint
            ) from None
        if reply.leaves is not None:
            raise self._left(reply.leaves)
        return reply

    def _left(self, why: LeaveReason) -> SchedulerFailed:
        """Return what became of a scheduler that says it ends: how its process did, if that was launched here."""
        gone = self._fate(GRACE_S)
        if gone is None:
            what, reason = _LEFT[why]
            gone = SchedulerFailed(f"{self._who} {what} after {self._last_sent()}, as it said", reason=reason)
        return SchedulerFailed(gone.what, reason=gone.reason, where=self.endpoint, found=self._lost())

    def _await_frame(self) -> bytes:
        """Return the scheduler's next frame, which it owes."""
        deadline: float | None = None
        while True:
            try:
                frame = self._take_frame()
            except zmq.Again:
                frame = None
            if frame is not None:  # the common case, without a look at the clock
                self._owed_reply = False
                return frame
            if deadline is None:
                deadline = time.monotonic() + self._decision_timeout - TICK_MS / 1000
            self._look_around(deadline, self._silent)

    def _silent(self) -> SchedulerFailed:
        return SchedulerFailed(
            f"{self._who} did not answer {self._last_sent()} within {self._decision_timeout:g} s",
            reason="scheduler_timeout",
            where=self.endpoint,
            hint="If it needs longer, raise --decision-timeout.",
        )

    def _look_around(self, deadline: float, too_late: Callable[[], SchedulerFailed]) -> None:
        """Raise if there is no reason to wait on: the user or the scheduler is gone, or its time is over."""
        if self._interrupted():
            raise KeyboardInterrupt
        self._note_connections()
        gone = self._fate(GRACE_S if self._peer_left else 0.0)
        if gone is None and self._peer_left:
            gone = SchedulerFailed(f"{self._who} disconnected after {self._last_sent()}", reason="scheduler_left")
        if gone is not None and not self._socket.poll(0):  # what it sent with its last breath counts
            raise SchedulerFailed(gone.what, reason=gone.reason, where=self.endpoint, found=self._lost())
        if time.monotonic() >= deadline:
            raise too_late()

    def close(self) -> None:
        """Close the socket; what was sent last still leaves, within two seconds."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()
        self._context.term()


def scheduler_named(name: str) -> str:
    """Return how messages call a scheduler of this name."""
    return f"scheduler '{shown(name, _SHOWN_NAME)}'"


def shown(text: str, length: int) -> str:
    """Return a peer's text for a message: it can neither fill nor steer a terminal."""
    return printable(text if len(text) <= length else f"{text[:length]}...")
