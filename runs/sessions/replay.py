"""Replay a session to a scheduler or to the server, up to the first difference."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Raw, Struct

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.decisions import Decision, ExecuteJob, RejectJob
from pipistrelle.protocol.events import DecisionRejected, JobSubmitted
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import recorded_spec
from pipistrelle.runs.execution import seldom_collected
from pipistrelle.runs.execution.connection import Connection, InProcess
from pipistrelle.runs.sessions.recording import ReplayTransport, ServerDiffers
from pipistrelle.runs.sessions.session_file import Exchange, SessionError, SessionHeader, SessionReader
from pipistrelle.schedulers.wire.interrupts import Interrupts
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import Transport
from pipistrelle.server.transport.peer import Peer

#: beginnings of events that are only sent to schedulers with the feature ``failures``
_NODES: Final = (b'"type":"NODES_', b'"type":"MAINTENANCE_')


class _Counted(Struct):
    events: list[Raw] = []


_counted: Final = msgspec.json.Decoder(_Counted)


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job in the queue when a replayed scheduler decides differently.

    Times are in seconds.
    """

    id: str
    units: int
    walltime: float | None
    submitted: float


@dataclass(frozen=True, slots=True)
class Parting:
    """The first notice whose reply differs from the recorded reply.

    The reply is that of the replayed scheduler.

    Attributes:
        place: index of the first different decision; the number of decisions if only other fields differ.
        queue: the queued jobs at that time.
    """

    notice: Notice
    recorded: Reply
    found: Reply
    place: int
    queue: list[WaitingJob]


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """The result of a replay of a session to a scheduler.

    Attributes:
        scheduler: the name in the scheduler's HELLO.
        notices, decisions: how many were equal to the recorded ones.
        parting: the first difference; None: there is none.
    """

    scheduler: str
    notices: int
    decisions: int
    parting: Parting | None


def replay(reader: SessionReader, connection: Connection, spec: RunSpec) -> PlayedSession:
    """Send the recorded notices to a scheduler until its decisions differ.

    The reasons of decisions (``why``, ``keeps``) are not compared.

    Args:
        connection: how to reach the scheduler.
        spec: names the scheduler; its other fields are ignored.

    Raises:
        PipistrelleError: the session is wrong, or the scheduler needs unrecorded features, does not connect, or fails.
        KeyboardInterrupt: the user interrupted the replay.
    """
    header = reader.header
    batsim = BatsimOptions() if header.dialect == "batsim" else None
    nothing = Setup(homogeneous(1, "session"), {}, {}, batsim=batsim)
    if batsim is not None and isinstance(connection, InProcess):
        raise SessionError("the session is in Batsim's dialect, which a scheduler in this process does not support")
    notices = decisions = 0
    last: Exchange | None = None
    with (
        seldom_collected(),
        Interrupts() as interrupts,
        connection.open(spec, nothing, lambda: interrupts.struck) as transport,
        closing(reader.exchanges()) as exchanges,
    ):
        hello, welcome = transport.greet(header.run_id, f"pipistrelle {package_version()}")
        told = "failures" in welcome.features or batsim is not None
        missing = {*welcome.features} - {*header.welcome.features, "wake_filter", "wake_when"}
        if missing:
            raise _untold(f"the scheduler needs features that were not recorded: {', '.join(sorted(missing))}")
        play = Played(reader.header, transport)
        for exchange in exchanges:
            if exchange.reply is None:
                last = exchange
                break
            if not told and any(mark in exchange.notice for mark in _NODES):
                raise _untold(f"notice {exchange.seq} is about nodes, and the scheduler lacks the feature 'failures'")
            parted = play(exchange)
            if parted is not None:
                notice, recorded, found, place = parted
                queue = waiting_at(reader, notice.seq)
                return PlayedSession(hello.name, notices, decisions, Parting(notice, recorded, found, place, queue))
            notices += 1
            decisions += len(_counted.decode(exchange.reply).events)
        if last is not None:
            transport.farewell(reader.header.read_notice(last.notice, last.seq))
    return PlayedSession(hello.name, notices, decisions, None)


class Played:
    """A function that sends recorded notices to a scheduler and compares its replies.

    A scheduler in another process gets the original messages. A reply is decoded only if its bytes differ from the
    recorded reply's bytes.
    """

    def __init__(self, header: SessionHeader, transport: Transport) -> None:
        self._header = header
        self._transport = transport
        self._peer = transport if isinstance(transport, Peer) else None

    def __call__(self, exchange: Exchange) -> tuple[Notice, Reply, Reply, int] | None:
        """Send one recorded notice and compare the replies.

        Return the notice, both replies and the index of the difference; None if the replies are equal.
        """
        seq, frame, expected = exchange
        assert expected is not None
        if self._peer is not None:
            self._peer.relay(seq, frame)
            found = self._peer.relayed(expected)
            if found is None:
                return None
            notice = self._header.read_notice(frame, seq)
        else:
            notice = self._header.read_notice(frame, seq)
            self._transport.send(notice)
            found = self._transport.receive()
        recorded = self._header.read_reply(expected, notice)
        place = parting(recorded, found)
        return None if place is None else (notice, recorded, found, place)


def _untold(what: str) -> SessionError:
    return SessionError(what, hint="Record a session with this scheduler.")


def parting(recorded: Reply, found: Reply) -> int | None:
    """Return the index of the first decision that differs between two replies.

    Return None if the replies match. If one reply only has more decisions, or only the requests for wake-ups differ,
    return the number of decisions that are equal. A reply still matches if it requests fewer wake-ups than recorded.

    Args:
        recorded: the reply in the session.
        found: the reply of the replayed scheduler.
    """
    for place, (one, other) in enumerate(zip(recorded.events, found.events, strict=False)):
        if one != other and _plain(one) != _plain(other):
            return place
    if recorded.now == found.now and not _misses(recorded, found) and len(recorded.events) == len(found.events):
        return None
    return min(len(recorded.events), len(found.events))


def _plain(decision: Decision) -> object:
    plain = msgspec.to_builtins(decision)
    if isinstance(plain.get("data"), dict):
        plain["data"].pop("why", None)
    return plain


def _misses(recorded: Reply, found: Reply) -> bool:
    """Return whether a reply requests wake-ups that are not in the recorded reply.

    ``found`` is the reply. The recording then lacks the notices for these wake-ups. Wake conditions are not compared:
    if the scheduler would have decided something at an event that was held back, it decides it at the next notice, and
    differs there.
    """
    if recorded.wake is None or recorded.wake_when is not None:
        return False
    return found.wake is None or not set(found.wake) <= set(recorded.wake)


def waiting_at(reader: SessionReader, seq: int) -> list[WaitingJob]:
    """Return the jobs that are in the queue after notice ``seq``.

    They are in order of submission.
    """
    waiting: dict[str, WaitingJob] = {}
    started: dict[tuple[int, int], WaitingJob] = {}
    with closing(reader.exchanges()) as exchanges:
        for number, frame, answer in exchanges:
            notice = reader.header.read_notice(frame, number)
            for event in notice.events:
                if isinstance(event, JobSubmitted):
                    job = event.data.job
                    waiting[job.id] = WaitingJob(job.id, job.res, job.walltime, event.timestamp)
                elif isinstance(event, DecisionRejected):
                    again = started.get((event.data.reply_to, event.data.index))
                    if again is not None:
                        waiting[again.id] = again
            if number == seq or answer is None:
                break
            for index, decision in enumerate(reader.header.read_reply(answer, notice).events):
                if isinstance(decision, ExecuteJob | RejectJob) and decision.data.job_id in waiting:
                    started[notice.seq, index] = waiting.pop(decision.data.job_id)
    return sorted(waiting.values(), key=lambda job: job.submitted)


def replay_server(reader: SessionReader) -> int:
    """Replay recorded replies to the server; return the number of matching notices.

    Raises:
        ServerDiffers: a notice differs from the recorded notice.
        PipistrelleError: the session is wrong, or the run's inputs have changed.
        KeyboardInterrupt: the user interrupted the replay.
    """
    with closing(reader.exchanges()) as exchanges:
        next(exchanges, None)  # checks the header's digest before any file that the header names is read
    spec = recorded_spec(reader.header.spec, "the session's description of its run")
    with seldom_collected(), Interrupts() as interrupts, closing(reader.exchanges()) as exchanges:
        transport = ReplayTransport(reader.header, exchanges)
        clock: Callable[[], float] = time.perf_counter
        result = simulate(load_setup(spec), transport, clock=clock, regularly=lambda: interrupts.struck)
        if interrupts.struck:
            raise KeyboardInterrupt
    failure = transport.differs or (result.failure if isinstance(result.failure, ServerDiffers) else None)
    if failure is not None:
        raise failure
    return transport.same
