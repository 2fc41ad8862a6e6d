"""Transports around a session: one that records another's frames, one that plays recorded replies to the server."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipistrelle.protocol.base.errors import PipistrelleError, cut
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.frames import encoder
from pipistrelle.protocol.messages import HelloData, Notice, Refused, Reply, WelcomeData
from pipistrelle.protocol.session import negotiate
from pipistrelle.server.errors import RunError
from pipistrelle.server.setup import Setup
from pipistrelle.server.transport.in_process import Transport
from pipistrelle.studies.inputs.named import InputError
from pipistrelle.studies.runs.connection import Connection, Interrupted
from pipistrelle.studies.runs.spec import RunSpec
from pipistrelle.studies.sessions.session_file import Exchange, SessionError, SessionHeader, SessionWriter

#: characters of an event that a message shows
_SHOWN = 400


class RecordingTransport:
    """Another transport, with all that both sides say written to a session."""

    def __init__(self, transport: Transport, writer: SessionWriter, spec: RunSpec, epoch: float | None) -> None:
        self._transport = transport
        self._writer = writer
        self._spec = spec
        self._epoch = epoch
        self._owed = False
        self.apart = transport.apart

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait for a scheduler, and write what was agreed."""
        hello, welcome = self._transport.greet(run_id, server)
        self._writer.begin(run_id, hello, welcome, msgspec.to_builtins(self._spec), self._epoch)
        return hello, welcome

    def send(self, notice: Notice) -> None:
        """Send a notice, and write it while the scheduler is at work."""
        self._owed = True
        self._transport.send(notice)
        self._writer.notice(notice)

    def receive(self) -> Reply:
        """Return the reply, after it was written."""
        reply = self._transport.receive()
        self._owed = False
        self._writer.reply(reply)
        return reply

    def farewell(self, notice: Notice) -> None:
        """Send and write the last notice; a session ends with a notice that nobody has answered."""
        self._transport.farewell(notice)
        if not self._owed:
            self._writer.notice(notice)

    def close(self) -> None:
        """Close the other one."""
        self._transport.close()


@dataclass(frozen=True, slots=True)
class Recorded:
    """A connection whose frames are recorded in a file.

    Raises
    ------
    InputError
        when the run speaks Batsim's dialect, whose frames are not of the native kind.
    """

    connection: Connection
    path: Path

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Yield what leads to the scheduler, and writes."""
        if setup.batsim is not None:
            raise InputError("a session is one of the native dialect", where="--record", found="batsim")
        with self.connection.open(spec, setup, interrupted) as transport:
            writer = SessionWriter(self.path)
            try:
                yield RecordingTransport(transport, writer, spec, setup.epoch)
            finally:
                writer.close()


class ServerDiffers(RunError):
    """The server says something else than it did when the session was recorded."""

    exit_code = 1
    reason: EndReason = "stopped"


class ReplayTransport:
    """Answers the server as a session's scheduler did, and compares what the server says.

    Parameters
    ----------
    header, exchanges
        of the session.
    """

    apart = False

    def __init__(self, header: SessionHeader, exchanges: Iterator[Exchange]) -> None:
        self._header = header
        self._exchanges = exchanges
        self._reply: Reply | None = None
        #: how many notices were the same
        self.same = 0
        #: where the last notice is not what was recorded
        self.differs: PipistrelleError | None = None
        self._over = False

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Return what was said; SessionError if it was said of another run."""
        header = self._header
        if run_id != header.run_id:
            raise SessionError(
                "the session is of another run",
                expected=f"run {run_id}, as its description gives it now",
                found=header.run_id,
                hint="Platform, workload and options decide it; the session's first line has them.",
            )
        answer = negotiate(header.hello, run_id=run_id, server=server)
        if isinstance(answer, Refused):
            raise SessionError(answer.data.message)
        return header.hello, answer.data

    def send(self, notice: Notice) -> None:
        """Compare a notice; ServerDiffers if it is another one."""
        self._over = True
        try:
            exchange = next(self._exchanges, None)
        except SessionError as error:
            self.differs = error
            raise
        if exchange is None:
            raise ServerDiffers("the session ends here", where=f"notice {notice.seq}, simulated time {notice.now!r}")
        self._compare(exchange.notice, notice)
        self._over = False
        self._reply = exchange.reply

    def _compare(self, recorded: Notice, notice: Notice) -> None:
        if recorded == notice:
            self.same += 1
            return
        where = f"notice {notice.seq}, simulated time {notice.now!r}"
        pairs = zip([*recorded.events, None], [*notice.events, None], strict=False)
        place = next((number for number, (one, other) in enumerate(pairs) if one != other), len(notice.events))
        if (recorded.seq, recorded.now) != (notice.seq, notice.now):
            expected, found = f"notice {recorded.seq} at {recorded.now!r}", f"notice {notice.seq} at {notice.now!r}"
        else:
            where = f"{where}, $.events[{place}]"
            expected, found = _shown(recorded.events, place), _shown(notice.events, place)
        raise ServerDiffers("the server says something else now", where=where, expected=expected, found=found)

    def receive(self) -> Reply:
        """Return the recorded reply; ServerDiffers if the session ends without one: the run went no further."""
        if self._reply is None:
            self._over = True
            raise ServerDiffers("the session ends with this notice, which nobody has answered")
        return self._reply

    def farewell(self, notice: Notice) -> None:
        """Compare the last notice, too, if the run has come to its own end."""
        exchange = None if self._over else next(self._exchanges, None)
        if exchange is not None:
            try:
                self._compare(exchange.notice, notice)
            except ServerDiffers as differs:
                self.differs = differs

    def close(self) -> None:
        """Do nothing."""


def _shown(events: Sequence[object], place: int) -> str:
    if place >= len(events):
        return "nothing more"
    return cut(encoder.encode(events[place]).decode(), _SHOWN)
