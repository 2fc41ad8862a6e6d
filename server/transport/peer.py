"""The base class of connections over sockets.

It waits for messages with time limits.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, Protocol, Required, TypedDict, TypeVar

from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.errors import RemoteProtocolError, legible
from pipistrelle.protocol.fields import EndReason, LeaveReason
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.errors import SchedulerFailed

#: interval at which a waiting server checks its limits and the scheduler's process
TICK_MS: Final = 100
#: time limit for sending the last notice (s)
LINGER_S: Final = 2.0
#: time limit at the end (s): for an owed reply, or to learn why a scheduler was lost
GRACE_S: Final = 1.0
#: {reason why a scheduler leaves: (text, reason of the run's end)}
_LEFT: Final[dict[LeaveReason, tuple[str, EndReason]]] = {
    "interrupted": ("was interrupted", "scheduler_interrupted"),
    "error": ("failed", "scheduler_error"),
}
_SHOWN_NAME: Final = 60


class Session(Protocol):
    """The protocol of a connection in one dialect, seen from the server."""

    def send_notice(self, notice: Notice) -> bytes:
        """Return the frame of a notice."""

    def receive_reply(self, frame: bytes) -> Reply:
        """Return the reply in a frame; raise RemoteProtocolError if none is allowed now."""

    def pass_on(self, seq: int, frame: bytes) -> None:
        """Record that a notice recorded in another session is sent to the scheduler."""

    def answered(self) -> None:
        """Record that the scheduler has replied to the notice that `pass_on` sent."""


class Waits(TypedDict, total=False):
    """Keyword arguments of `Peer`: how long to wait for a scheduler."""

    hello_timeout: Required[float]
    decision_timeout: Required[float]
    fate: Callable[[float], SchedulerFailed | None]
    interrupted: Callable[[], bool]


_S = TypeVar("_S", bound=Session)


@mypyc_attr(allow_interpreted_subclasses=True)
class Peer(ABC, Generic[_S]):
    """A connection to one scheduler over a socket; subclasses implement the dialects.

    Args:
        hello_timeout: how long to wait for a scheduler (wall-clock s).
        decision_timeout: how long to wait for each reply (wall-clock s).
        fate: a function that waits up to a given time (s) for the end of the launched scheduler, and returns why it
            ended; None if it still runs.
        interrupted: returns whether the user wants to stop; then `KeyboardInterrupt` is raised, but not in mid-message.
    """

    apart: Final = True
    batsim = False
    #: whether the run is saved, so that the scheduler is asked for its state
    saves = False

    def __init__(
        self,
        endpoint: str,
        session: _S,
        *,
        hello_timeout: float,
        decision_timeout: float,
        fate: Callable[[float], SchedulerFailed | None] = lambda patience: None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        #: the endpoint at which the server listens or to which it connects
        self.endpoint = endpoint
        self._session = session
        self._hello_timeout = hello_timeout
        self._decision_timeout = decision_timeout
        self._fate = fate
        self._interrupted = interrupted
        self._who = "the scheduler"
        self._peer_left = False
        #: frames of the last notice and of the last reply
        self.sent = b""
        self.received = b""
        self._owed_reply = False

    @abstractmethod
    def send(self, notice: Notice) -> None:
        """Send a notice; raise SchedulerFailed if that is impossible."""

    @abstractmethod
    def farewell(self, notice: Notice) -> None:
        """Send the last notice, if the scheduler can still be reached.

        Never raise an error.
        """

    @abstractmethod
    def _take_frame(self, now: float) -> bytes | None:
        """Return a frame of the scheduler; None if none arrived within 0.1 s.

        Raises RemoteProtocolError if a message cannot be a frame. ``now`` is the time of `time.monotonic`.
        """

    @abstractmethod
    def _note_connections(self, now: float) -> None:
        """Set `_peer_left` if the scheduler's connection was closed."""

    @abstractmethod
    def _holds_more(self) -> bool:
        """Return whether unread data from the scheduler has arrived."""

    @abstractmethod
    def _lost(self) -> str | None:
        """Close the scheduler's connection; return what is known about why it was lost."""

    @abstractmethod
    def _broke(self, error: RemoteProtocolError) -> None:
        """Tell the scheduler how it broke the protocol.

        Do nothing if the dialect has no message for that.
        """

    @abstractmethod
    def _last_sent(self) -> str:
        """Return the name of the last message sent to the scheduler."""

    def receive(self) -> Reply:
        """Wait for the reply to the last notice.

        Raises:
            SchedulerFailed: the scheduler left, was silent for ``decision_timeout`` or broke the protocol.
        """
        reply = self._reply()
        assert reply is not None
        if self._interrupted():
            raise KeyboardInterrupt
        return reply

    def _reply(self, expected: bytes | None = None) -> Reply | None:
        """Wait for a reply and decode it; return None if its frame is ``expected``."""
        try:
            self.received = frame = self._await_frame()
            if frame == expected:
                self._session.answered()
                return None
            reply = self._session.receive_reply(frame)
        except RemoteProtocolError as error:
            raise self._broken(error) from None
        if reply.leaves is not None:
            raise self._left(reply.leaves)
        return reply

    def _broken(self, error: RemoteProtocolError) -> SchedulerFailed:
        """Tell the scheduler how it broke the protocol.

        Return the error that ends the run.
        """
        what = f"{self._who} broke the protocol after {self._last_sent()}: {error}"
        self._broke(error)
        return SchedulerFailed(what, where=self.endpoint)

    def save(self) -> str | None:
        """Return the scheduler's state (JSON) between two notices; None if it has none.

        The result is also None after an interrupt, and in the batsim dialect. Raises SchedulerFailed like `receive`.
        """
        return None

    def relay(self, seq: int, frame: bytes) -> None:
        """Send a notice that was recorded in another session, unchanged.

        `relayed` returns the reply.
        """
        self._session.pass_on(seq, frame)
        self._owed_reply = True
        self._hand_over(frame)

    def relayed(self, expected: bytes) -> Reply | None:
        """Wait for the reply like `receive`; return None if its frame equals ``expected``."""
        reply = self._reply(expected)
        if self._interrupted():
            raise KeyboardInterrupt
        return reply

    @abstractmethod
    def _hand_over(self, frame: bytes) -> None:
        """Send a notice's frame; raise SchedulerFailed if that is impossible."""

    def _left(self, why: LeaveReason) -> SchedulerFailed:
        """Return the error for a scheduler that said that it leaves the run.

        ``why`` is its reason.
        """
        gone = self._fate(GRACE_S)
        if gone is None:
            what, reason = _LEFT[why]
            gone = SchedulerFailed(f"{self._who} {what} after {self._last_sent()}, as it said", reason=reason)
        return SchedulerFailed(gone.what, reason=gone.reason, where=self.endpoint, found=self._lost())

    def _await_frame(self) -> bytes:
        now = time.monotonic()
        deadline = now + self._decision_timeout
        while (frame := self._take_frame(now)) is None:
            now = self._look_around(deadline, self._silent)
        self._owed_reply = False
        return frame

    def _silent(self) -> SchedulerFailed:
        return SchedulerFailed(
            f"{self._who} did not answer {self._last_sent()} within {self._decision_timeout:g} s",
            reason="scheduler_timeout",
            where=self.endpoint,
            hint="If it needs longer, raise --decision-timeout.",
        )

    def _look_around(self, deadline: float, too_late: Callable[[], SchedulerFailed]) -> float:
        """Return the current time, unless the server must stop waiting.

        Raise an error if the run is interrupted, the scheduler is lost or ``deadline`` has passed.
        """
        if self._interrupted():
            raise KeyboardInterrupt
        now = time.monotonic()
        self._note_connections(now)
        gone = self._fate(GRACE_S if self._peer_left else 0.0)
        if gone is None and self._peer_left:
            gone = SchedulerFailed(f"{self._who} disconnected after {self._last_sent()}", reason="scheduler_left")
        if gone is not None and not self._holds_more():  # messages that it sent before still count
            raise SchedulerFailed(gone.what, reason=gone.reason, where=self.endpoint, found=self._lost())
        if now >= deadline:
            raise too_late()
        return now

    @abstractmethod
    def close(self) -> None:
        """Release all resources; the last message is still sent, within two seconds."""


def scheduler_named(name: str) -> str:
    """Return ``name`` as error messages show it, such as ``scheduler 'easy'``."""
    return f"scheduler '{legible(name, _SHOWN_NAME)}'"
