"""Run a conformance test: start the scheduler, record and change its messages."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Final

from msgspec.structs import replace

from pipistrelle.protocol.batsim.codec import encode_notice
from pipistrelle.protocol.batsim.session import BatsimServerSession
from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.events import DecisionRejectedData, SimulationEnds
from pipistrelle.protocol.fields import RefusalCode
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.protocol.sockets import AcceptedConnection
from pipistrelle.protocol.zmtp import ZmtpMessage
from pipistrelle.runs.conformance.script import Alter, Dialect, Meddling, Script
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.child import Child
from pipistrelle.runs.execution.connection import Interrupted, private_endpoint
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import SchedulerFailed
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.transport.batsim import BatsimTransport
from pipistrelle.server.transport.in_process import Transport
from pipistrelle.server.transport.native import NativeTransport
from pipistrelle.server.transport.peer import Peer

#: senders of messages, as logged
SERVER: Final = "server"
SCHEDULER: Final = "scheduler"


class LacksFeature(SchedulerFailed):
    """The scheduler's HELLO does not name a feature that the test needs."""


@dataclass(slots=True)
class Stage:
    """The messages of one conformance test between the server and the tested scheduler.

    Attributes:
        log: (sender, text) of every message.
        notice: the last notice sent to the scheduler.
        ended_as: how the process ended after the run; None: it was still running after the time limit.
    """

    script: Script
    dialect: Dialect
    log: list[tuple[str, str]] = field(default_factory=list)
    notice: Notice | None = None
    ended_as: SchedulerFailed | None = None
    #: each notice, and the scheduler's reply before any change
    exchanges: list[tuple[Notice, Reply]] = field(default_factory=list)
    #: whether the last notice gave the reason for the run's end that the test expects
    last_told: bool = False
    #: the object that changes replies; None: replies stay as they are
    meddling: Meddling | None = field(init=False)

    def __post_init__(self) -> None:
        self.meddling = None if self.script.meddle is None else self.script.meddle()

    def told(self, frame: bytes) -> bytes:
        """Return the server's message as the scheduler will get it: changed if the test changes it.

        The message is added to the log.
        """
        alter: Alter | None = self.script.alter.get(self.dialect)
        if alter is not None:
            frame = json.dumps(alter(json.loads(frame)), ensure_ascii=False).encode()
        self.log.append((SERVER, frame.decode()))
        return frame

    def ends(self, notice: Notice) -> None:
        """Store the run's last notice, and whether its reason for the end is the expected one."""
        self.notice = notice
        last = notice.events[-1]
        self.last_told = isinstance(last, SimulationEnds) and last.data.reason == self.script.ends

    def heard(self, frame: bytes) -> None:
        """Log a message from the scheduler."""
        self.log.append((SCHEDULER, frame.decode("utf-8", "backslashreplace")))

    def replied(self, reply: Reply) -> Reply:
        """Record the scheduler's reply; return the reply that the server carries out."""
        assert self.notice is not None, "a reply follows a notice"
        self.exchanges.append((self.notice, reply))
        return reply if self.meddling is None else self.meddling.apply(self.notice, reply)


class _Noted(Peer[Any]):
    """A mixin for transports: logs each message between server and scheduler, and changes some of them for a test."""

    def __init__(self, stage: Stage, endpoint: str, **waits: Any) -> None:
        self._stage = stage
        super().__init__(endpoint, **waits)

    def _take_frame(self, now: float) -> bytes | None:
        frame = super()._take_frame(now)  # type: ignore[safe-super]  # the dialect's
        if frame is not None:
            self._stage.heard(frame)
        return frame

    def send(self, notice: Notice) -> None:
        self._stage.notice = notice
        super().send(notice)  # type: ignore[safe-super]

    def receive(self) -> Reply:
        return self._stage.replied(super().receive())

    def farewell(self, notice: Notice) -> None:
        self._stage.ends(notice)
        super().farewell(notice)  # type: ignore[safe-super]


class _StagedNative(_Noted, NativeTransport):
    def _negotiate(
        self, stranger: AcceptedConnection, message: ZmtpMessage, run_id: str, server: str
    ) -> tuple[HelloData, WelcomeData] | None:
        if message.parts:
            self._stage.heard(message.parts[-1])
        if self._stage.script.refuses:
            self._turn_away(stranger, message, "version", "this server refuses every scheduler")
            return None
        return super()._negotiate(stranger, message, run_id, server)

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        hello, welcome = super().greet(run_id, server)
        if self._stage.script.preempts and "preemption" not in welcome.features:
            welcome = replace(welcome, features=(*welcome.features, "preemption"))  # only the server gets this feature
        return hello, welcome

    def _refused(self, code: RefusalCode, message: str) -> None:
        """Log no warning, because the test expects the refusal.

        Raise LacksFeature if the test does not apply.
        """
        if code == "feature":
            raise LacksFeature(message)

    def _hand_over(self, frame: bytes) -> None:
        super()._hand_over(self._stage.told(frame))


class _StagedBatsimSession(BatsimServerSession):
    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    def send_notice(self, notice: Notice) -> bytes:
        return self._stage.told(super().send_notice(notice))


class _StagedBatsim(_Noted, BatsimTransport):
    def __init__(self, stage: Stage, endpoint: str, **waits: Any) -> None:
        super().__init__(stage, endpoint, **waits)
        self._session = _StagedBatsimSession(stage)

    def farewell(self, notice: Notice) -> None:
        self._stage.log.append((SERVER, encode_notice(Notice(notice.seq, notice.now, notice.events[-1:])).decode()))
        super().farewell(notice)


@dataclass(frozen=True, slots=True)
class Staged:
    """A connection that starts a scheduler and runs a conformance test with it.

    Attributes:
        words: program and arguments, including ``{endpoint}``.
        limit: how long to wait for the scheduler, for each reply, and for its end (wall-clock s).
        printed: receives the output of the process.
    """

    stage: Stage
    words: Sequence[str]
    limit: float
    printed: IO[bytes]

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Start the process, yield its transport, and record how the process ends."""
        children: list[Child] = []

        def fate(patience: float) -> SchedulerFailed | None:
            return children[0].fate(patience) if children else None

        waits = {
            "hello_timeout": self.limit,
            "decision_timeout": self.limit,
            "interrupted": interrupted,
            "fate": fate,
        }
        with private_endpoint() as place, ExitStack() as stack:
            kind = _StagedBatsim if self.stage.dialect == "batsim" else _StagedNative
            transport = kind(self.stage, place, **waits)
            if isinstance(transport, _StagedNative):
                transport.needed = setup.needed
            stack.callback(transport.close)
            children.append(stack.enter_context(Child(self.words, transport.endpoint, printed=self.printed)))
            try:
                yield transport
            finally:
                self.stage.ended_as = fate(self.limit if self.stage.last_told else 0.0)
                if self.stage.ended_as is None:
                    children[0].terminate()


class Audience(Observer):
    """The observer that records what happens to the jobs of a conformance test.

    Attributes:
        begun: names of the jobs that have started at least once.
        over: {job id with its workload's prefix, such as ``w0!17``: final state}.
        rejections: (decision, error) of each decision that the server rejected.
    """

    def __init__(self) -> None:
        self.begun: set[str] = set()
        self.over: dict[str, str] = {}
        self.rejections: list[tuple[Decision, DecisionRejectedData]] = []

    def started(self, now: float, job: Job) -> None:
        """Record that a job started."""
        self.begun.add(job.id.partition("!")[2].partition("#")[0])

    def ended(self, now: float, job: Job) -> None:
        """Record that a job ended."""
        self.over[job.id] = str(job.state)

    def decided(self, now: float, decision: Decision, rejected: DecisionRejectedData | None) -> None:
        """Record a decision of the scheduler if the server rejected it."""
        if rejected is not None:
            self.rejections.append((decision, rejected))
