"""The main loop of a run: the server sends notices and the scheduler replies."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from pipistrelle.protocol.base.errors import PipistrelleError, ProtocolError
from pipistrelle.protocol.fields import EndReason
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.errors import Interrupted, OutputFailed, RunError, SchedulerFailed
from pipistrelle.server.transport.in_process import Transport


@dataclass(slots=True)
class LoopTimes:
    """Measured wall-clock times of a run (s), which are never part of its outputs."""

    round_trips: int = 0
    total: float = 0.0
    #: time spent waiting for replies: transport and scheduler
    scheduler: float = 0.0


def run(
    engine: Engine,
    transport: Transport,
    clock: Callable[[], float],
    times: LoopTimes,
    meanwhile: Callable[[], None] | None = None,
    between: Callable[[], None] | None = None,
) -> None:
    """Run the engine to its end and report the end to scheduler and observers.

    Args:
        clock: returns seconds of a monotonic wall clock.
        times: updated even if the run fails.
        meanwhile: called while the scheduler works on a notice.
        between: called after a reply was carried out, before time advances.

    Raises:
        RunError: the run ended early; scheduler and observers know the reason. Ctrl-C raises `Interrupted`.
    """
    began, waited, trips = clock(), 0.0, 0
    try:
        while (notice := engine.advance()) is not None:
            transport.send(notice)
            if meanwhile is not None:
                meanwhile()
            waiting = clock()
            reply = transport.receive()
            waited += clock() - waiting
            trips += 1
            engine.apply(reply)
            if between is not None:
                between()
    except RunError as error:
        give_up(engine, transport, error)
    except PipistrelleError as error:
        reason: EndReason = "protocol_error" if isinstance(error, ProtocolError) else "scheduler_error"
        give_up(engine, transport, SchedulerFailed(str(error), reason=reason))
    except KeyboardInterrupt:
        give_up(engine, transport, Interrupted("interrupted", where=f"simulated time {engine.now!r}"))
    except BaseException as error:  # a bug: results so far are kept
        with suppress(RunError):
            give_up(engine, transport, RunError(f"{type(error).__name__}: {error}"))
        raise
    finally:
        times.total, times.scheduler, times.round_trips = clock() - began, waited, trips
    try:
        transport.farewell(engine.end("completed"))
    finally:
        engine.close()


def give_up(engine: Engine, transport: Transport, failure: RunError) -> NoReturn:
    """End a run early: notify scheduler and observers, then raise ``failure``."""
    try:
        transport.farewell(engine.end(failure.reason, str(failure)))
    finally:  # even if a second Ctrl-C interrupts the farewell
        with suppress(OutputFailed):  # an unwritable output must not hide the reason of the end
            engine.close()
    raise failure
