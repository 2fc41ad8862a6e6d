"""Recording of the messages between server and scheduler.

Recorded replies can be replayed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipistrelle.protocol.base.errors import PipistrelleError, cut
from pipistrelle.protocol.batsim.codec import encode_notice
from pipistrelle.protocol.fields import EndReason, package_version
from pipistrelle.protocol.frames import encoder
from pipistrelle.protocol.messages import HelloData, Notice, Refused, Reply, WelcomeData
from pipistrelle.protocol.session import negotiate
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import Connection, Interrupted
from pipistrelle.runs.sessions.session_file import FORMAT, Exchange, SessionError, SessionHeader, SessionWriter
from pipistrelle.server.errors import RunError
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.transport.in_process import Transport, bare
from pipistrelle.server.transport.peer import Peer

#: maximum characters shown of an event
_SHOWN = 400
HeaderMaker = Callable[[str, HelloData, WelcomeData], SessionHeader]


class RecordingTransport:
    """A wrapper around a transport that writes all messages to a session file.

    Args:
        header: makes the first line of the file from the HELLO and WELCOME messages.
    """

    def __init__(
        self,
        transport: Transport,
        writer: SessionWriter,
        header: HeaderMaker,
    ) -> None:
        self.transport = transport
        self.writer = writer
        self._header = header
        peer = bare(transport)
        self._peer = peer if isinstance(peer, Peer) else None
        self._owed = False
        self.apart = transport.apart

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait until a scheduler connects.

        Write its HELLO and the server's WELCOME to the session file, and return both.
        """
        hello, welcome = self.transport.greet(run_id, server)
        self.writer.begin(self._header(run_id, hello, welcome))
        return hello, welcome

    def send(self, notice: Notice) -> None:
        """Send a notice, and write it to the session while the scheduler is deciding."""
        self._owed = True
        self.transport.send(notice)
        self.writer.notice(encoder.encode(notice) if self._peer is None else self._peer.sent)

    def receive(self) -> Reply:
        """Write the reply to the session and return it."""
        reply = self.transport.receive()
        self._owed = False
        self.writer.reply(encoder.encode(reply) if self._peer is None else self._peer.received)
        return reply

    def save(self) -> str | None:
        """Ask the scheduler process for its state and return it as JSON.

        Return None if the scheduler saves no state.
        """
        return None if self._peer is None else self._peer.save()

    def farewell(self, notice: Notice) -> None:
        """Send the last notice; record it if the scheduler answered the notice before it."""
        self.transport.farewell(notice)
        if not self._owed:
            batsim = self._peer is not None and self._peer.batsim
            self.writer.notice(encode_notice(_last_of(notice)) if batsim else encoder.encode(notice))

    def close(self) -> None:
        """Close the wrapped transport."""
        self.transport.close()


def header_of(spec: RunSpec, setup: Setup) -> HeaderMaker:
    """Return a function that makes the first line of a run's session file."""

    def header(run_id: str, hello: HelloData, welcome: WelcomeData) -> SessionHeader:
        return SessionHeader(
            session=FORMAT,
            pipistrelle=package_version(),
            run_id=run_id,
            hello=hello,
            welcome=welcome,
            spec=msgspec.to_builtins(spec),
            epoch=setup.epoch,
            dialect="native" if setup.batsim is None else "batsim",
        )

    return header


@dataclass(frozen=True, slots=True)
class Recorded:
    """A connection that records its messages in a session file."""

    connection: Connection
    path: Path

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Open the connection; yield a transport that records its messages."""
        with self.connection.open(spec, setup, interrupted) as transport:
            writer = SessionWriter(self.path, replaces=True)
            try:
                yield RecordingTransport(transport, writer, header_of(spec, setup))
            finally:
                writer.close()


class ServerDiffers(RunError):
    """The server sent a message that differs from the recorded session."""

    exit_code = 1
    reason: EndReason = "stopped"


class ReplayTransport:
    """The stand-in for a scheduler that sends recorded replies.

    It checks the server's notices.
    """

    apart = False

    def __init__(self, header: SessionHeader, exchanges: Iterator[Exchange]) -> None:
        self._header = header
        self._exchanges = exchanges
        self._reply: Reply | None = None
        #: number of notices that matched the recorded notices
        self.same = 0
        #: description of how the last notice differs from the recorded notice
        self.differs: PipistrelleError | None = None
        self._over = False

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Return the recorded HELLO and WELCOME.

        Raise SessionError if the session file is of another run.
        """
        header = self._header
        if run_id != header.run_id:
            raise SessionError(
                "the session is of another run",
                expected=f"run {run_id}, from its present description",
                found=header.run_id,
                hint="Platform, workload or options differ; the session's first line has them.",
            )
        if header.dialect == "batsim":  # Batsim's dialect has no negotiation
            return header.hello, header.welcome
        answer = negotiate(header.hello, run_id=run_id, server=server)
        if isinstance(answer, Refused):
            raise SessionError(answer.data.message)
        return header.hello, answer.data

    def send(self, notice: Notice) -> None:
        """Compare a notice with the recorded notice; raise ServerDiffers if they differ."""
        self._over = True
        try:
            exchange = next(self._exchanges, None)
            if exchange is None:
                where = f"notice {notice.seq}, simulated time {notice.now!r}"
                raise ServerDiffers("the session ends here", where=where)
            self._compare(exchange, notice)
            self._reply = None if exchange.reply is None else self._header.read_reply(exchange.reply, notice)
        except SessionError as error:
            self.differs = error
            raise
        self._over = False

    def _compare(self, exchange: Exchange, notice: Notice) -> None:
        encode = encode_notice if self._header.dialect == "batsim" else encoder.encode
        if exchange.notice == encode(notice):
            self.same += 1
            return
        recorded, notice = (self._header.read_notice(frame, notice.seq) for frame in (exchange.notice, encode(notice)))
        where = f"notice {notice.seq}, simulated time {notice.now!r}"
        pairs = zip([*recorded.events, None], [*notice.events, None], strict=False)
        place = next((number for number, (one, other) in enumerate(pairs) if one != other), len(notice.events))
        if recorded.now != notice.now:
            expected, found = f"notice {exchange.seq} at {recorded.now!r}", f"notice {notice.seq} at {notice.now!r}"
        else:
            where = f"{where}, $.events[{place}]"
            expected, found = _shown(recorded.events, place), _shown(notice.events, place)
        raise ServerDiffers(
            "the server sends another message than the recorded one", where=where, expected=expected, found=found
        )

    def receive(self) -> Reply:
        """Return the recorded reply; raise ServerDiffers if the session ends without one."""
        if self._reply is None:
            self._over = True
            raise ServerDiffers("the session ends with this notice, which has no reply")
        return self._reply

    def farewell(self, notice: Notice) -> None:
        """Compare the last notice with the recorded notice, if the run ended normally."""
        exchange = None if self._over else next(self._exchanges, None)
        if exchange is not None:
            try:
                self._compare(exchange, notice if self._header.dialect == "native" else _last_of(notice))
            except ServerDiffers as differs:
                self.differs = differs

    def close(self) -> None:
        """Do nothing, because a replay has no connection."""


def _last_of(notice: Notice) -> Notice:
    return Notice(notice.seq, notice.now, notice.events[-1:])


def _shown(events: Sequence[object], place: int) -> str:
    if place >= len(events):
        return "nothing more"
    return cut(encoder.encode(events[place]).decode(), _SHOWN)
