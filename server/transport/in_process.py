"""How the engine reaches a scheduler: one small protocol, and its in-process form."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from mypy_extensions import mypyc_attr

from pipistrelle.protocol.base.errors import LocalProtocolError, PipistrelleError
from pipistrelle.protocol.messages import HelloData, Notice, Refused, Reply, WelcomeData
from pipistrelle.protocol.session import negotiate
from pipistrelle.server.errors import SchedulerFailed


class Transport(Protocol):
    """A connection to one scheduler, from the server's side."""

    @property
    def apart(self) -> bool:
        """Whether the scheduler works while the server goes on: the observers' work can hide behind its own then."""

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait for a scheduler, agree with it and return both sides' words.

        Raises
        ------
        SchedulerFailed
            when none comes in time, or none that the server can speak with.
        """

    def send(self, notice: Notice) -> None:
        """Send a notice; the scheduler may be at work on it when this returns.

        Raises
        ------
        SchedulerFailed
            when it cannot be reached any more.
        """

    def receive(self) -> Reply:
        """Return the reply to the notice that was sent.

        Raises
        ------
        SchedulerFailed
            when the scheduler dies, stays silent for too long or breaks the protocol.
        """

    def farewell(self, notice: Notice) -> None:
        """Send the last notice, as far as the scheduler can still be reached; never raises."""

    def close(self) -> None:
        """Release what the connection holds."""


def bare(transport: Any) -> Any:
    """Return what leads to the scheduler behind a transport that only looks at the messages, as its ``behind``."""
    return getattr(transport, "behind", transport)


class Busy(Protocol):
    """A lock, as `threading.Lock` makes one."""

    def acquire(self, blocking: bool = True) -> bool:
        """Take it; whether that could be done."""

    def release(self) -> None:
        """Let others take it."""


class InProcessScheduler(Protocol):
    """A scheduler in the server's own process; `pipistrelle.schedulers.runtime.runtime.Runtime` is one."""

    def hello(self) -> HelloData:
        """Return who the scheduler is."""

    def welcome(self, data: WelcomeData) -> None:
        """Take note of what was agreed."""

    def answer(self, notice: Notice) -> Reply:
        """Return the decisions for a notice."""

    def state(self) -> Any:
        """Return all that decides how it goes on, as plain values, between two notices."""

    def restore(self, state: Any) -> None:
        """Go on from such a state of a scheduler made alike, after `welcome`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class InProcessTransport:
    """Calls a scheduler directly: the same messages, without frames.

    ``interrupted`` is looked at before each message; when it returns True, `receive` raises KeyboardInterrupt.
    """

    apart: Final = False

    def __init__(self, scheduler: InProcessScheduler, interrupted: Callable[[], bool] = lambda: False) -> None:
        self.scheduler = scheduler
        self._interrupted = interrupted
        self._notice: Notice | None = None
        #: what the run's own thread holds whenever the scheduler is not at work; None: nobody else wants to work then
        self.busy: Busy | None = None

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Agree with the scheduler; SchedulerFailed if there is no common version."""
        hello = self.scheduler.hello()
        answer = negotiate(hello, run_id=run_id, server=server)
        if isinstance(answer, Refused):
            raise SchedulerFailed(answer.data.message)
        self.scheduler.welcome(answer.data)
        return hello, answer.data

    def send(self, notice: Notice) -> None:
        """Keep the notice until the reply is wanted."""
        self._notice = notice

    def receive(self) -> Reply:
        """Return the scheduler's reply to the notice."""
        notice, self._notice = self._notice, None
        if notice is None:
            raise LocalProtocolError("no notice was sent that could be replied to")
        if self._interrupted():  # before it, not after: a policy may take long
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
        """Hand over the last notice; a policy that fails at it changes nothing any more."""
        with suppress(PipistrelleError):
            self.scheduler.answer(notice)

    def close(self) -> None:
        """Do nothing: there is no connection."""
