"""The interface between server and scheduler, and its in-process implementation."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.errors import LocalProtocolError, PipistrelleError
from pipistrelle.protocol.fields import Feature
from pipistrelle.protocol.messages import HelloData, Notice, Refused, Reply, WelcomeData
from pipistrelle.protocol.session import negotiate
from pipistrelle.server.errors import SchedulerFailed


class Transport(Protocol):
    """A connection to one scheduler, seen from the server."""

    @property
    def apart(self) -> bool:
        """Whether the scheduler is another process that works in parallel.

        If so, observers can run while it decides.
        """

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait for a scheduler, negotiate, and return the HELLO and the WELCOME.

        Raises SchedulerFailed if no scheduler with a supported protocol connects in time.
        """

    def send(self, notice: Notice) -> None:
        """Send a notice without waiting; raise SchedulerFailed if the scheduler is lost."""

    def receive(self) -> Reply:
        """Return the reply to the last notice.

        Raises SchedulerFailed if the scheduler dies, stays silent too long or breaks the protocol.
        """

    def farewell(self, notice: Notice) -> None:
        """Send the last notice, if the scheduler can still be reached.

        Never raise an error.
        """

    def close(self) -> None:
        """Release the connection."""


def bare(transport: Any) -> Any:
    """Return the innermost transport, without the wrappers that only observe messages."""
    return getattr(transport, "behind", transport)


class Busy(Protocol):
    """Interface of a lock, such as `threading.Lock`."""

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; return whether that worked."""

    def release(self) -> None:
        """Release the lock."""


class InProcessScheduler(Protocol):
    """A scheduler in the server's process (`pipistrelle.schedulers.runtime`)."""

    def hello(self) -> HelloData:
        """Return the scheduler's HELLO."""

    def welcome(self, data: WelcomeData) -> None:
        """Receive the features that both sides agreed on."""

    def answer(self, notice: Notice) -> Reply:
        """Return the decisions for a notice."""

    def state(self) -> Any:
        """Return the scheduler's state between two notices, as plain values."""

    def restore(self, state: Any) -> None:
        """Restore a saved state in a new scheduler of the same kind, after `welcome`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class InProcessTransport:
    """The transport to a scheduler in the server's process.

    Both sides exchange the messages that they would exchange over a socket. `receive` raises KeyboardInterrupt if
    ``interrupted`` returns True. A scheduler is refused if it lacks a feature in ``needed``, which is
    {feature: why it is needed}.
    """

    apart: Final = False

    def __init__(
        self,
        scheduler: InProcessScheduler,
        interrupted: Callable[[], bool] = lambda: False,
        needed: Mapping[Feature, str] | None = None,
    ) -> None:
        self.scheduler = scheduler
        self._interrupted = interrupted
        self._needed = needed or {}
        self._notice: Notice | None = None
        #: held by the run's thread unless the scheduler is at work; None: no other thread needs it
        self.busy: Busy | None = None

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Negotiate with the scheduler; raise SchedulerFailed if it is refused."""
        hello = self.scheduler.hello()
        answer = negotiate(hello, run_id=run_id, server=server, needed=self._needed)
        if isinstance(answer, Refused):
            raise SchedulerFailed(answer.data.message)
        self.scheduler.welcome(answer.data)
        return hello, answer.data

    def send(self, notice: Notice) -> None:
        """Store the notice until `receive` asks for the reply."""
        self._notice = notice

    def receive(self) -> Reply:
        """Return the scheduler's reply to the notice."""
        notice, self._notice = self._notice, None
        if notice is None:
            raise LocalProtocolError("no notice was sent, so there is no reply")
        if self._interrupted():  # checked before the reply, because a policy may take long
            raise KeyboardInterrupt
        busy = self.busy
        if busy is None:
            return self.scheduler.answer(notice)
        busy.release()
        try:
            return self.scheduler.answer(notice)
        finally:
            busy.acquire()

    def farewell(self, notice: Notice) -> None:
        """Pass on the last notice; errors of the scheduler are ignored."""
        with suppress(PipistrelleError):
            self.scheduler.answer(notice)

    def close(self) -> None:
        """Do nothing, because there is no connection."""
