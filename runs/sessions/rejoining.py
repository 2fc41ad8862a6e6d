"""Continue a run with a new scheduler process.

This happens if the scheduler has died or disconnected.
"""

from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from pipistrelle.protocol.base.errors import legible
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.fields import STATE
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.runs.sessions.recording import HeaderMaker, RecordingTransport
from pipistrelle.runs.sessions.replay import Played
from pipistrelle.runs.sessions.session_file import SessionReader, SessionWriter
from pipistrelle.server.errors import SchedulerFailed
from pipistrelle.server.transport.native import NativeTransport

#: errors after which a new scheduler may continue; a scheduler that failed would fail again
_GONE: Final = ("scheduler_left", "scheduler_interrupted", "scheduler_killed")
#: maximum characters shown of a scheduler's name
_SHOWN: Final = 100


class Rejoining(RecordingTransport):
    """A recording transport that waits for a new scheduler process.

    It waits if the scheduler is lost. The new process must send an equal HELLO. It receives the last saved state, if
    there is one, and all notices since then. It must make the same decisions as the first process.

    Args:
        path: the session file.
        patience: how long to wait for a new process (wall-clock s).
    """

    def __init__(
        self, transport: NativeTransport, writer: SessionWriter, header: HeaderMaker, path: Path, patience: float
    ) -> None:
        super().__init__(transport, writer, header)
        self._native = transport
        self._path = path
        self._patience = patience
        self._greeting = ("", "")
        #: number and simulated time of the last notice
        self._last = (0, 0.0)
        #: the last saved state, with number and time of the last notice before it
        self._saved: tuple[int, float, str] | None = None

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait until a scheduler connects; return both greetings."""
        self._greeting = (run_id, server)
        return super().greet(run_id, server)

    def send(self, notice: Notice) -> None:
        """Send a notice; if the scheduler is gone, wait for a new scheduler."""
        self._last = (notice.seq, notice.now)
        try:
            super().send(notice)
        except SchedulerFailed as failure:
            self._check(failure)
            self.writer.notice(self._native.sent)
            self._wait(failure)

    def receive(self) -> Reply:
        """Return the reply; if the scheduler is gone, wait for a new scheduler."""
        while True:
            try:
                return super().receive()
            except SchedulerFailed as failure:
                self._check(failure)
                self._wait(failure)

    def save(self) -> str | None:
        """Return the scheduler's saved state.

        Return None if it saves no state, or was just replaced.
        """
        try:
            saved = super().save()
        except SchedulerFailed as failure:
            self._check(failure)
            self._wait(failure)
            return None
        if saved is not None:
            self._saved = (*self._last, saved)
        return saved

    @staticmethod
    def _check(failure: SchedulerFailed) -> None:
        if failure.reason not in _GONE:
            raise failure

    def _wait(self, failure: SchedulerFailed) -> None:
        """Wait until a new scheduler has caught up.

        Raise SchedulerFailed if none connects.
        """
        while True:
            logger().warning("{} Waiting for another scheduler for {:g} s.", failure, self._patience)
            try:
                self._bring_up()
            except SchedulerFailed as again:
                self._check(again)
                failure = again
            else:
                return

    def _bring_up(self) -> None:
        """Send a new scheduler process all that it needs to continue.

        These are the saved state, the notices since then, and the unanswered notice.
        """
        self.writer.flush()
        reader = SessionReader(self._path)
        self._native.let_go(self._patience)
        hello, welcome = self._native.greet(*self._greeting)
        header, done = reader.header, 0
        if (apart_from_state(hello), welcome.features) != (apart_from_state(header.hello), header.welcome.features):
            raise SchedulerFailed(
                "another scheduler has connected instead of the run's own",
                expected=named(header.hello),
                found=named(hello),
            )
        if self._saved is not None and STATE in hello.features:
            self._native.restore(*self._saved)
            done = self._saved[0]
        play = Played(header, self._native)
        with closing(reader.exchanges()) as exchanges:
            for exchange in exchanges:
                if exchange.reply is None:
                    self._native.relay(exchange.seq, exchange.notice)
                elif exchange.seq > done and (parted := play(exchange)) is not None:
                    raise SchedulerFailed(
                        "the new scheduler decides differently than the one before",
                        where=f"notice {parted[0].seq}, simulated time {parted[0].now!r}",
                    )
        logger().warning("{} has connected, and the run continues.", named(hello))


def apart_from_state(hello: HelloData) -> HelloData:
    """Return a HELLO without the feature for saving state.

    Two HELLOs can then be compared.
    """
    return replace(hello, features=tuple(name for name in hello.features if name != STATE))


def named(hello: HelloData) -> str:
    """Return a scheduler's name, version and features, for a message."""
    return legible(f"{hello.name} {hello.version} ({' '.join(hello.features)})", _SHOWN)
