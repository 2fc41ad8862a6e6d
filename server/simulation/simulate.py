"""A whole run: from platform, workload and scheduler to summary and output files."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from platform import python_version
from typing import Any

import msgspec
import numpy as np

from pipistrelle.platforms.resources.shared_nodes import shared_nodes_of
from pipistrelle.protocol.base.state import Kept, plain
from pipistrelle.protocol.fields import PROTOCOL_VERSION, package_version
from pipistrelle.protocol.messages import HelloData, WelcomeData
from pipistrelle.server.engine.observers import Deferred, Observer
from pipistrelle.server.errors import Interrupted, OutputFailed, RunError, SetupError
from pipistrelle.server.outputs.folder import FolderOutputs, Outputs
from pipistrelle.server.outputs.fragmentation_book import FragmentationBook
from pipistrelle.server.outputs.metrics import Metrics, Summary
from pipistrelle.server.outputs.node_book import NodeBook, SharedNodeBook
from pipistrelle.server.outputs.recorder import JobNames
from pipistrelle.server.outputs.reliability_book import PreemptionBook, ReliabilityBook
from pipistrelle.server.outputs.resource_book import ResourceBook
from pipistrelle.server.setup.described import describe_run
from pipistrelle.server.setup.recorded import RecordedBook
from pipistrelle.server.setup.resilience import refuse_attempts
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.assembly import make_engine
from pipistrelle.server.simulation.loop import LoopTimes, give_up, run
from pipistrelle.server.transport.in_process import Transport
from pipistrelle.traces.requests import asks


class Simulation(Kept):
    """A run with its scheduler connected: its engine, figures and outputs.

    Args:
        run_id: digest of everything that decides the run's result, except the scheduler.
        apart: whether observers are called later, by `flush`; see `Transport`.
    """

    _kept = ("engine", "metrics")

    def __init__(
        self,
        run_id: str,
        hello: HelloData,
        welcome: WelcomeData,
        setup: Setup,
        *,
        out: Path | None = None,
        outputs: Outputs | None = None,
        observers: Sequence[Observer] = (),
        asked: Mapping[str, Any] | None = None,
        apart: bool = False,
    ) -> None:
        self.run_id = run_id
        self.hello = hello
        self.welcome = welcome
        platform, preempts = setup.platform, "preemption" in welcome.features
        shared = setup.batsim is not None and setup.batsim.compute_sharing
        self._books = books = dict[str, Any]()
        nodes = None
        if setup.reliability is not None or preempts:
            nodes = SharedNodeBook(platform) if platform.shares_nodes else NodeBook(platform)
            books["reliability"] = ReliabilityBook(nodes)
        if any(map(asks, setup.workloads.values())) and FragmentationBook.suits(platform) and not shared:
            books["fragmentation"] = FragmentationBook(platform)
        cores = None
        if platform.shares_nodes:
            requests = chain.from_iterable(workload.requests or () for workload in setup.workloads.values())
            books["resources"] = book = ResourceBook(platform, requests)
            cores = book.cores
        if "recorded" in welcome.features:
            books["recorded"] = RecordedBook(platform, setup.workloads.values())
        if preempts:
            refuse_attempts(setup.workloads)
            books["preemption"] = PreemptionBook()
        self._nodes = nodes
        self.metrics = Metrics(
            setup.dropped, setup.jobs, shared=shared, cancels=setup.cancels, books=books, cores=cores
        )
        if outputs is None and out is not None:
            outputs = FolderOutputs(
                out,
                nodes,
                asked,
                workloads=setup.workloads,
                queue_lengths=setup.queue_lengths,
                names=JobNames(platform, setup.workloads) if setup.named else None,
                shared=shared_nodes_of(platform.info),
            )
        self.outputs = outputs
        writing = () if self.outputs is None else self.outputs.observers()
        watching = [*([] if nodes is None else [nodes]), *books.values(), self.metrics, *observers, *writing]
        deferred = Deferred(watching)
        #: delivers deferred calls to the observers; does nothing if no calls are deferred
        self.flush = deferred.flush
        metered = None if self.outputs is None else self.outputs.metered
        self.engine = make_engine(setup, welcome.features, [deferred] if apart else watching, metered)

    def keep(self) -> None:
        """Write all rows so far to the output files; raise OutputFailed if that fails."""
        self.flush()
        if self.outputs is not None:
            self.outputs.flush()

    def state(self) -> dict[str, Any]:
        """Return the state as plain values, between a reply and the next notice.

        The caller's own observers are not included. Raises OutputFailed if rows cannot be written.
        """
        self.flush()
        parts = {"books": plain(self._books), "nodes": plain(self._nodes), "outputs": plain(self.outputs)}
        return {**super().state(), **parts}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the saved state of a run with the same setup, and continue its outputs.

        Raises:
            OutputFailed: the saved run's outputs are missing.
            SetupError: the saved run has written no outputs.
        """
        if self.outputs is not None:
            if state["outputs"] is None:
                raise SetupError("the run has written no outputs so far", hint="Continue it without outputs, too.")
            self.outputs.restore(state["outputs"])
        super().restore(state)
        for name, book in self._books.items():
            book.restore(state["books"][name])
        if self._nodes is not None:
            self._nodes.restore(state["nodes"], self.engine.cluster.running)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    ``failure`` is the error that ended the run early; None if it completed.
    """

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
    resume: Callable[[Simulation], None] | None = None,
    between: Callable[[Simulation], None] | None = None,
    begun: Callable[[Simulation], None] | None = None,
    regularly: Callable[[], bool] | None = None,
) -> Result:
    """Run a simulation to its end and write its outputs, even if the run fails.

    Args:
        transport: connection to the scheduler; the caller closes it.
        clock: returns seconds of a monotonic wall clock, used only for the result's times.
        out: existing folder for the standard outputs; None writes no outputs.
        outputs: custom outputs, used instead of the standard ones.
        asked: the command line (JSON values), saved so that the run can be repeated.
        resume: restores the saved state of simulation and scheduler before a run continues.
        between: called after a reply was carried out, before time advances.
        begun: called once when the run is ready to begin.
        regularly: called now and then while time passes without a notice; True ends the run as Ctrl-C does.

    Raises:
        PipistrelleError: no scheduler connected, or the state cannot be restored; the run has not begun.
    """
    package = package_version()
    config = describe_run(setup)
    digest = hashlib.sha256(msgspec.json.encode(config)).hexdigest()[:16]
    hello, welcome = transport.greet(digest, f"pipistrelle {package}")
    simulation = Simulation(
        digest,
        hello,
        welcome,
        setup,
        out=out,
        outputs=outputs,
        observers=observers,
        asked=asked,
        apart=transport.apart,
    )
    engine, outputs = simulation.engine, simulation.outputs
    if resume is not None:
        resume(simulation)
    if regularly is not None:
        engine.regularly = regularly
    if begun is not None:
        begun(simulation)
    times = LoopTimes()
    failure: RunError | None = None
    try:
        if outputs is not None and resume is None:
            try:
                outputs.before(_whole_config(config, digest, hello, welcome))
            except OutputFailed as error:
                give_up(engine, transport, error)
        told = None if between is None else partial(between, simulation)
        run(engine, transport, clock, times, simulation.flush if transport.apart else None, told)
    except RunError as error:
        failure = error
    except KeyboardInterrupt:  # a second Ctrl-C, during the farewell after the first
        failure = Interrupted("interrupted again", where=f"simulated time {engine.now!r}")
    summary = simulation.metrics.summary(engine.cluster.running.values())
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
            "msgspec": msgspec.__version__,
            "numpy": np.__version__,
        },
    }
