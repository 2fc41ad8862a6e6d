"""A run whose scheduler may go and come again: the new one is brought to where the old one was, and the run goes on."""

from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from pipistrelle.protocol.base.errors import legible
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.fields import STATE
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.runs.sessions.recording import RecordingTransport
from pipistrelle.runs.sessions.replay import Played
from pipistrelle.runs.sessions.session_file import SessionReader
from pipistrelle.server.errors import SchedulerFailed
from pipistrelle.server.transport.native import NativeTransport

#: ends of a scheduler after which another may come; one that has failed would fail again
_GONE: Final = ("scheduler_left", "scheduler_interrupted", "scheduler_killed")
#: characters of a scheduler's name that a message shows
_SHOWN: Final = 100


class Rejoining:
    """A transport whose session is written, and which lets another scheduler come when the first has gone.

    That one must be the same, by its HELLO. It is given the last state that the first has given, if any, and told again
    what that was told since; it must decide as the first did.

    Parameters
    ----------
    transport
        leads to the scheduler, and writes; over a socket of the native dialect.
    path
        the session's file.
    patience
        how long another is waited for, in seconds of the wall clock.
    """

    apart = True

    def __init__(self, transport: RecordingTransport, path: Path, patience: float) -> None:
        assert isinstance(transport.transport, NativeTransport)
        self._transport = transport
        self._peer: NativeTransport = transport.transport
        self._path = path
        self._patience = patience
        self._greeting = ("", "")
        #: number and time of the last notice
        self._last = (0, 0.0)
        #: the last state that was given, with number and time of the notice before
        self._saved: tuple[int, float, str] | None = None

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait for a scheduler."""
        self._greeting = (run_id, server)
        return self._transport.greet(run_id, server)

    def send(self, notice: Notice) -> None:
        """Send a notice, if need be to another scheduler."""
        self._last = (notice.seq, notice.now)
        try:
            self._transport.send(notice)
        except SchedulerFailed as failure:
            self._check(failure)
            self._transport.writer.notice(self._peer.sent)
            self._wait(failure)

    def receive(self) -> Reply:
        """Return the reply, if need be another scheduler's."""
        while True:
            try:
                return self._transport.receive()
            except SchedulerFailed as failure:
                self._check(failure)
                self._wait(failure)

    def save(self) -> str | None:
        """Return the scheduler's state; None if it gives none, or has gone instead."""
        try:
            saved = self._transport.save()
        except SchedulerFailed as failure:
            self._check(failure)
            self._wait(failure)
            return None
        if saved is not None:
            self._saved = (*self._last, saved)
        return saved

    def farewell(self, notice: Notice) -> None:
        """Send the last notice."""
        self._transport.farewell(notice)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    @staticmethod
    def _check(failure: SchedulerFailed) -> None:
        if failure.reason not in _GONE:
            raise failure

    def _wait(self, failure: SchedulerFailed) -> None:
        """Wait for another scheduler and bring it up, until one is; SchedulerFailed if none comes, or not the same."""
        while True:
            logger().warning("{} Another is waited for, for {:g} s.", failure, self._patience)
            try:
                self._bring_up()
            except SchedulerFailed as again:
                self._check(again)
                failure = again
            else:
                return

    def _bring_up(self) -> None:
        """Bring another scheduler to where the one before was, and tell it the notice that waits for its reply."""
        self._transport.writer.flush()
        reader = SessionReader(self._path)
        self._peer.let_go(self._patience)
        hello, welcome = self._peer.greet(*self._greeting)
        header, done = reader.header, 0
        if (apart_from_state(hello), welcome.features) != (apart_from_state(header.hello), header.welcome.features):
            raise SchedulerFailed(
                "another scheduler has come in the place of the run's own",
                expected=named(header.hello),
                found=named(hello),
            )
        if self._saved is not None and STATE in hello.features:
            self._peer.restore(*self._saved)
            done = self._saved[0]
        play = Played(header, self._peer)
        with closing(reader.exchanges()) as exchanges:
            for exchange in exchanges:
                if exchange.reply is None:
                    self._peer.relay(exchange.seq, exchange.notice)
                elif exchange.seq > done and (parted := play(exchange)) is not None:
                    raise SchedulerFailed(
                        "the scheduler that has come decides otherwise than the one before",
                        where=f"notice {parted[0].seq}, simulated time {parted[0].now!r}",
                    )
        logger().warning("{} has come, and the run goes on.", named(hello))


def apart_from_state(hello: HelloData) -> HelloData:
    """Return what a scheduler has said, whether or not it can give its state: that changes no decision."""
    return replace(hello, features=tuple(name for name in hello.features if name != STATE))


def named(hello: HelloData) -> str:
    """Return who a scheduler says it is, for a message."""
    return legible(f"{hello.name} {hello.version} ({' '.join(hello.features)})", _SHOWN)
