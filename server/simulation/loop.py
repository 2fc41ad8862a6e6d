"""The run itself: server and scheduler in turn until the end, whatever the end is."""

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
    """What a run took on the wall clock, in seconds; it is measured, hence never part of a run's outputs."""

    round_trips: int = 0
    total: float = 0.0
    #: waiting for replies: transport and scheduler
    scheduler: float = 0.0


def run(
    engine: Engine,
    transport: Transport,
    clock: Callable[[], float],
    times: LoopTimes,
    meanwhile: Callable[[], None] | None = None,
    between: Callable[[], None] | None = None,
) -> None:
    """Drive the engine to its end and tell everybody.

    Parameters
    ----------
    clock
        returns seconds of a monotonic wall clock.
    times
        filled in while the run goes on, so that a run that fails has its times too.
    meanwhile
        called while the scheduler is at work on a notice: what need not be done before it is told.
    between
        called when a reply was carried out, before time goes on.

    Raises
    ------
    RunError
        what ended the run early, after the scheduler and the observers were told; Ctrl-C comes as `Interrupted`.
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
    except BaseException as error:  # a bug of ours: what was computed is kept all the same
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
    """End a run early: tell the scheduler and the observers, then raise ``failure``."""
    try:
        transport.farewell(engine.end(failure.reason, str(failure)))
    finally:  # a second Ctrl-C may strike while the scheduler is told; what was computed is kept all the same
        with suppress(OutputFailed):  # an output that cannot be written must not hide what ended the run
            engine.close()
    raise failure
