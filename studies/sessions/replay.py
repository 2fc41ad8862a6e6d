"""A session played again: its notices to a live scheduler, or its replies to the server, up to the first difference."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import msgspec

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.decisions import Decision, ExecuteJob, RejectJob
from pipistrelle.protocol.events import (
    DecisionRejected,
    JobSubmitted,
    MaintenanceAnnounced,
    MaintenanceBegins,
    MaintenanceEnds,
    NodesFailed,
    NodesRepaired,
)
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.schedulers.wire.interrupts import Interrupts
from pipistrelle.server.setup import Setup
from pipistrelle.server.simulation import simulate
from pipistrelle.studies.runs import seldom_collected
from pipistrelle.studies.runs.connection import Connection
from pipistrelle.studies.runs.setup import load_setup
from pipistrelle.studies.runs.spec import RunSpec
from pipistrelle.studies.runs.spec_file import convert_spec, with_digests
from pipistrelle.studies.sessions.recording import ReplayTransport, ServerDiffers
from pipistrelle.studies.sessions.session_file import SessionError, SessionReader

#: events that only schedulers with the feature ``failures`` are told of
_NODES: Final = (NodesFailed, NodesRepaired, MaintenanceAnnounced, MaintenanceBegins, MaintenanceEnds)


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits when two schedulers part: its id, units, walltime and time of submission, in seconds."""

    id: str
    units: int
    walltime: float | None
    submitted: float


@dataclass(frozen=True, slots=True)
class Parting:
    """Where a scheduler first decides otherwise than the recorded one.

    Parameters
    ----------
    notice
        to which both answer.
    recorded, found
        what they answer.
    place
        of the first decision that differs; that behind the last one if a reply's other fields do.
    queue
        who waits then.
    """

    notice: Notice
    recorded: Reply
    found: Reply
    place: int
    queue: list[WaitingJob]


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """What came of it: how many notices and decisions were the same, and where they part; None: nowhere."""

    scheduler: str
    notices: int
    decisions: int
    parting: Parting | None


def replay(reader: SessionReader, connection: Connection, spec: RunSpec) -> PlayedSession:
    """Play the recorded notices to a scheduler until it first decides otherwise.

    Reasons (``why``, ``keeps``) are no decisions.

    Parameters
    ----------
    connection, spec
        how the scheduler is reached, and who it is; nothing else of the description counts.

    Raises
    ------
    PipistrelleError
        when the session is wrong, the scheduler wants features that were not recorded, does not come or fails.
    KeyboardInterrupt
        when the user wants it to end.
    """
    header = reader.header
    nothing = Setup(homogeneous(1, "session"), {}, {})
    notices = decisions = 0
    last: Notice | None = None
    with (
        seldom_collected(),
        Interrupts() as interrupts,
        connection.open(spec, nothing, lambda: interrupts.struck) as transport,
        closing(reader.exchanges()) as exchanges,
    ):
        hello, welcome = transport.greet(header.run_id, f"pipistrelle {package_version()}")
        missing = {*welcome.features} - {*header.welcome.features, "wake_filter"}
        if missing:
            raise _untold(f"the scheduler wants features that were not recorded: {', '.join(sorted(missing))}")
        for notice, recorded in exchanges:
            if recorded is None:
                last = notice
                break
            if "failures" not in welcome.features and any(isinstance(event, _NODES) for event in notice.events):
                raise _untold(f"notice {notice.seq} tells of nodes, and the scheduler has not the feature 'failures'")
            transport.send(notice)
            found = transport.receive()
            place = parting(recorded, found)
            if place is not None:
                queue = waiting_at(reader, notice.seq)
                return PlayedSession(hello.name, notices, decisions, Parting(notice, recorded, found, place, queue))
            notices += 1
            decisions += len(recorded.events)
        if last is not None:
            transport.farewell(last)
    return PlayedSession(hello.name, notices, decisions, None)


def _untold(what: str) -> SessionError:
    return SessionError(what, hint="Record a session with this scheduler.")


def parting(recorded: Reply, found: Reply) -> int | None:
    """Return the place of the first decision that differs, that behind the last if another field does, None if none.

    A scheduler that would be woken more seldom has not decided otherwise.
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
    """Tell whether a scheduler wants to be woken by what the recorded one was not: it would be told too late."""
    if recorded.wake is None:
        return False
    return found.wake is None or not set(found.wake) <= set(recorded.wake)


def waiting_at(reader: SessionReader, seq: int) -> list[WaitingJob]:
    """Return who waits when the notice of this number has been told, in the order of submission."""
    waiting: dict[str, WaitingJob] = {}
    started: dict[tuple[int, int], WaitingJob] = {}
    with closing(reader.exchanges()) as exchanges:
        for notice, reply in exchanges:
            for event in notice.events:
                if isinstance(event, JobSubmitted):
                    job = event.data.job
                    waiting[job.id] = WaitingJob(job.id, job.res, job.walltime, event.timestamp)
                elif isinstance(event, DecisionRejected):
                    again = started.get((event.data.reply_to, event.data.index))
                    if again is not None:
                        waiting[again.id] = again
            if notice.seq == seq or reply is None:
                break
            for index, decision in enumerate(reply.events):
                if isinstance(decision, ExecuteJob | RejectJob) and decision.data.job_id in waiting:
                    started[notice.seq, index] = waiting.pop(decision.data.job_id)
    return sorted(waiting.values(), key=lambda job: job.submitted)


def replay_server(reader: SessionReader) -> int:
    """Play the recorded replies to the server, and return how many of its notices are the same: all.

    Raises
    ------
    ServerDiffers
        at the first notice that is not what was recorded.
    PipistrelleError
        when the session is wrong, or the run's inputs are not what they were.
    KeyboardInterrupt
        when the user wants it to end.
    """
    spec = with_digests(convert_spec(reader.header.spec, "the session's description of its run"))
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
