"""What every transport to another process does alike: it waits for one scheduler's frames, and knows when to stop."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, Protocol, Required, TypedDict, TypeVar

from pipistrelle.protocol.base.errors import RemoteProtocolError, printable
from pipistrelle.protocol.fields import EndReason, LeaveReason
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.errors import SchedulerFailed

#: how often a waiting server looks at whether the scheduler still lives and whether its time is over
TICK_MS: Final = 100
#: how long the last notice may take to leave, in seconds
LINGER_S: Final = 2.0
#: how long a run that is over waits for a reply that the scheduler still owes, or for what became of one that has left
GRACE_S: Final = 1.0
#: {what a scheduler says: (that in words, the end of the run)}
_LEFT: Final[dict[LeaveReason, tuple[str, EndReason]]] = {
    "interrupted": ("was interrupted", "scheduler_interrupted"),
    "error": ("failed", "scheduler_error"),
}
#: characters of a scheduler's name that messages show
_SHOWN_NAME: Final = 60


class Session(Protocol):
    """A dialect's state machine, from the server's side."""

    def send_notice(self, notice: Notice) -> bytes:
        """Return a notice's frame."""

    def receive_reply(self, frame: bytes) -> Reply:
        """Return the reply in a frame; RemoteProtocolError if there is none that is allowed now."""

    def pass_on(self, seq: int, frame: bytes) -> None:
        """Take note that another session's notice is sent."""

    def answered(self) -> None:
        """Take note that its reply has come."""


class Waits(TypedDict, total=False):
    """How long to wait for a scheduler, and when not: the arguments by name of `Peer`."""

    hello_timeout: Required[float]
    decision_timeout: Required[float]
    fate: Callable[[float], SchedulerFailed | None]
    interrupted: Callable[[], bool]


_S = TypeVar("_S", bound=Session)


class Peer(ABC, Generic[_S]):
    """A conversation with one scheduler; how its bytes go to and fro is a dialect's matter.

    Parameters
    ----------
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
    #: whether the dialect is Batsim's
    batsim = False
    #: whether the run is kept, so that the scheduler is asked for its state if it can give it
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
        #: the address that schedulers connect to, or that the server connects to
        self.endpoint = endpoint
        self._session = session
        self._hello_timeout = hello_timeout
        self._decision_timeout = decision_timeout
        self._fate = fate
        self._interrupted = interrupted
        self._who = "the scheduler"
        self._peer_left = False
        #: the last notice and the last reply as they were on the wire
        self.sent = b""
        self.received = b""
        #: whether the last message to the scheduler still waits for its reply
        self._owed_reply = False

    # -- what a dialect does in its own way -------------------------------------------------------------------------

    @abstractmethod
    def send(self, notice: Notice) -> None:
        """Send a notice; SchedulerFailed if that cannot be done."""

    @abstractmethod
    def farewell(self, notice: Notice) -> None:
        """Send the last notice, as far as the scheduler can still be reached; never raises."""

    @abstractmethod
    def _take_frame(self, now: float) -> bytes | None:
        """Return a frame of the scheduler; None if something else came, or nothing within a tick.

        RemoteProtocolError if what came can be no frame. ``now`` is the time of `time.monotonic`.
        """

    @abstractmethod
    def _note_connections(self, now: float) -> None:
        """Learn whether the scheduler's connection was closed: `_peer_left`."""

    @abstractmethod
    def _holds_more(self) -> bool:
        """Return whether something has come that was not taken."""

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
        assert reply is not None
        if self._interrupted():
            raise KeyboardInterrupt
        return reply

    def _reply(self, expected: bytes | None = None) -> Reply | None:
        """Wait for a reply; None if its frame is as expected, so that nobody need read it."""
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
        """Tell the scheduler what it did wrong, and return what that ends the run with."""
        what = f"{self._who} broke the protocol after {self._last_sent()}: {error}"
        self._broke(error)
        return SchedulerFailed(what, where=self.endpoint)

    def save(self) -> str | None:
        """Return the scheduler's state between its reply and the next notice, as JSON; None if it gives none.

        A dialect without a message for it has none. An interrupt ends the waiting without one, too.

        Raises
        ------
        SchedulerFailed
            as `receive` does.
        """
        return None

    def relay(self, seq: int, frame: bytes) -> None:
        """Send the ``seq``-th notice of another session as it was there; its reply comes by `relayed`.

        Raises
        ------
        SchedulerFailed
            as `send` does.
        """
        self._session.pass_on(seq, frame)
        self._owed_reply = True
        self._hand_over(frame)

    def relayed(self, expected: bytes) -> Reply | None:
        """Return the reply to it, as `receive` does; None if its frame is as expected: nobody need read it then."""
        reply = self._reply(expected)
        if self._interrupted():
            raise KeyboardInterrupt
        return reply

    @abstractmethod
    def _hand_over(self, frame: bytes) -> None:
        """Send a notice's frame; SchedulerFailed if that cannot be done."""

    def _left(self, why: LeaveReason) -> SchedulerFailed:
        """Return what became of a scheduler that says it ends: how its process did, if that was launched here."""
        gone = self._fate(GRACE_S)
        if gone is None:
            what, reason = _LEFT[why]
            gone = SchedulerFailed(f"{self._who} {what} after {self._last_sent()}, as it said", reason=reason)
        return SchedulerFailed(gone.what, reason=gone.reason, where=self.endpoint, found=self._lost())

    def _await_frame(self) -> bytes:
        """Return the scheduler's next frame, which it owes."""
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
        """Return the time; raise if there is no reason to wait on: user or scheduler are gone, or its time is over."""
        if self._interrupted():
            raise KeyboardInterrupt
        now = time.monotonic()
        self._note_connections(now)
        gone = self._fate(GRACE_S if self._peer_left else 0.0)
        if gone is None and self._peer_left:
            gone = SchedulerFailed(f"{self._who} disconnected after {self._last_sent()}", reason="scheduler_left")
        if gone is not None and not self._holds_more():  # what it sent with its last breath counts
            raise SchedulerFailed(gone.what, reason=gone.reason, where=self.endpoint, found=self._lost())
        if now >= deadline:
            raise too_late()
        return now

    @abstractmethod
    def close(self) -> None:
        """Let go of everything; what was sent last still leaves, within two seconds."""


def scheduler_named(name: str) -> str:
    """Return how messages call a scheduler of this name."""
    return f"scheduler '{shown(name, _SHOWN_NAME)}'"


def shown(text: str, length: int) -> str:
    """Return a peer's text for a message: it can neither fill nor steer a terminal."""
    return printable(text if len(text) <= length else f"{text[:length]}...")
