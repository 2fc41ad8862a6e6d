"""One whole run: platform and workload in, a scheduler at the other end of a transport, figures and files out."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import msgspec

from pipistrelle.protocol.fields import PROTOCOL_VERSION, package_version
from pipistrelle.protocol.messages import HelloData, WelcomeData
from pipistrelle.server.assembly import make_engine
from pipistrelle.server.begin import describe_run
from pipistrelle.server.engine.observers import Deferred, Observer
from pipistrelle.server.errors import Interrupted, OutputFailed, RunError
from pipistrelle.server.loop import LoopTimes, give_up, run
from pipistrelle.server.outputs.folder import FolderOutputs, Outputs
from pipistrelle.server.outputs.metrics import Metrics, Summary
from pipistrelle.server.outputs.node_book import NodeBook
from pipistrelle.server.outputs.reliability_book import ReliabilityBook
from pipistrelle.server.setup import Setup
from pipistrelle.server.transport.in_process import Transport


@dataclass(frozen=True, slots=True)
class Result:
    """What came out; ``failure`` is what ended the run early, None if nothing did."""

    summary: Summary
    times: LoopTimes
    scheduler: HelloData
    failure: RunError | None


def simulate(
    setup: Setup,
    transport: Transport,
    *,
    clock: Callable[[], float],
    out: Path | None = None,
    outputs: Outputs | None = None,
    observers: Sequence[Observer] = (),
    asked: Mapping[str, Any] | None = None,
) -> Result:
    """Run a simulation to its end, whatever the end is, and write its outputs.

    Parameters
    ----------
    transport
        leads to the scheduler; the caller closes it.
    clock
        seconds of a monotonic wall clock, for the times in the result only.
    out
        existing folder for the usual outputs; None for none.
    outputs
        other outputs than those.
    asked
        what the user asked for, JSON values, for a file beside the outputs: with it the run can be repeated.

    Raises
    ------
    PipistrelleError
        when no scheduler came: nothing was begun then, and nothing written.
    """
    package = package_version()
    config = describe_run(setup)
    digest = hashlib.sha256(msgspec.json.encode(config)).hexdigest()[:16]
    hello, welcome = transport.greet(digest, f"pipistrelle {package}")
    nodes = None if setup.reliability is None else NodeBook(setup.platform)
    reliability = None if nodes is None else ReliabilityBook(nodes)
    shared = setup.batsim is not None and setup.batsim.compute_sharing
    metrics = Metrics(setup.dropped, shared=shared, reliability=reliability)
    if outputs is None and out is not None:
        outputs = FolderOutputs(out, nodes, asked)
    books = [book for book in (nodes, reliability) if book is not None]
    watching = [*books, metrics, *observers, *(() if outputs is None else outputs.observers())]
    deferred = Deferred(watching)
    told = [deferred] if transport.apart else watching
    engine = make_engine(setup, welcome.features, told, None if outputs is None else outputs.metered)
    times = LoopTimes()
    failure: RunError | None = None
    try:
        if outputs is not None:
            try:
                outputs.before(_whole_config(config, digest, hello, welcome))
            except OutputFailed as error:
                give_up(engine, transport, error)
        run(engine, transport, clock, times, deferred.flush)
    except RunError as error:
        failure = error
    except KeyboardInterrupt:  # a second one, while the scheduler was being told of the first
        failure = Interrupted("interrupted again", where=f"simulated time {engine.now!r}")
    summary = metrics.summary()
    if outputs is not None:
        try:
            outputs.after(summary)
        except OutputFailed as error:
            failure = failure or error
    return Result(summary, times, hello, failure)


def _whole_config(config: dict[str, Any], run_id: str, hello: HelloData, welcome: WelcomeData) -> dict[str, Any]:
    return {
        "run_id": run_id,
        **config,
        "scheduler": {"name": hello.name, "version": hello.version, "features": list(welcome.features)},
        "versions": {
            "pipistrelle": package_version(),
            "protocol": PROTOCOL_VERSION,
            "python": python_version(),
            "msgspec": version("msgspec"),
            "numpy": version("numpy"),
        },
    }
