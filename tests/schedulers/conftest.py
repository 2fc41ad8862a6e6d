"""Fixtures of the tests of the schedulers: small workloads, and a policy's starts on them."""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from math import inf
from typing import Any

import numpy as np
import pytest
import zmq
from loguru import logger

from pipistrelle.platforms.description import Platform, homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.maintenance.plan import Maintenance
from pipistrelle.protocol.messages import HelloData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.zmtp import ZmtpConnection
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result, simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

#: (submit, size, runtime, walltime) in the order of the ids, which count from 0
Row = tuple[float, int, float, float]
#: (job number, start, units)
Start = tuple[int, float, str]
#: announced, begin, length (s), units
Down = tuple[float, float, float, frozenset[int]]


class Starts(Observer):
    """Keeps every start, in order."""

    def __init__(self) -> None:
        self.starts: list[Start] = []

    def started(self, now: float, job: Job) -> None:
        """Keep it."""
        self.starts.append((int(job.id.partition("!")[2].partition("#")[0]), now, str(job.alloc)))


class Unfiltered(Runtime):
    """A runtime that is woken by every event: without the wake filter."""

    def hello(self) -> HelloData:
        """Return the policy's name and its features without the filter."""
        hello = super().hello()
        wanted = tuple(feature for feature in hello.features if feature != "wake_filter")
        return HelloData(hello.name, hello.version, features=wanted)


class Run:
    """The results of a policy on a workload."""

    def __init__(self, starts: list[Start], result: Result) -> None:
        self.starts = starts
        self.result = result
        #: {job number: start in seconds}
        self.start_of = {number: time for number, time, _ in starts}


@pytest.fixture(scope="session", autouse=True)
def _quiet_log() -> None:
    """Send the log nowhere: the command line alone configures it, and by default it writes to the terminal."""
    logger.remove()


@pytest.fixture(scope="session")
def run_policy() -> Callable[..., Run]:
    """Return a function that runs a policy: run_policy(policy, units, rows, filtered=True, ...)."""

    def run(
        policy: Policy,
        units: int,
        rows: Sequence[Row],
        *,
        filtered: bool = True,
        reliability: Reliability | None = None,
        platform: Platform | None = None,
    ) -> Run:
        columns = [np.array(column, dtype=float) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 4
        submit, size, runtime, walltime = columns
        trace = Workload(
            name="t",
            source="t",
            ids=[str(number) for number in range(len(rows))],
            submit=submit,
            size=size.astype(np.int64),
            walltime=walltime,
            runtime=runtime,
        )
        watch = Starts()
        runtime_class = Runtime if filtered else Unfiltered
        result = simulate(
            Setup.of(platform or homogeneous(units, "m"), trace, strict=True, reliability=reliability),
            InProcessTransport(runtime := runtime_class(policy)),
            clock=lambda: 0.0,
            observers=[watch],
            between=lambda simulation: check_invariants(simulation.engine, runtime.view),
        )
        if result.failure is not None:
            raise result.failure
        return Run(watch.starts, result)

    return run


class Planned:
    """Maintenance as a list."""

    def __init__(self, planned: Sequence[Down]) -> None:
        self._every = [
            Maintenance(f"m{number}", min(announced, begin), begin, begin + length, NodeSet.of(nodes), "test")
            for number, (announced, begin, length, nodes) in enumerate(planned)
        ]

    def occurrences(self) -> Iterator[Maintenance]:
        """Return the planned outages, by the time of their announcement."""
        return iter(sorted(self._every, key=lambda plan: plan.announced))


def _unsteady(planned: Sequence[Down], broken: dict[int, float]) -> Reliability:
    outages = Outages.of([Outage(node, down, down + 2.5) for node, down in sorted(broken.items())])
    return Reliability(maintenance=Planned(planned), outages=outages)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def unsteady() -> Callable[[Sequence[Down], dict[int, float]], Reliability]:
    """Return a function that makes nodes leave and return, by maintenance and {node: when it fails for 2.5 s}."""
    return _unsteady


@pytest.fixture(scope="session")
def waiting_job() -> Callable[..., SchedulerJob]:
    """Return a function that makes a waiting job: waiting_job(7, size=2, walltime=60.0, submit=3.0)."""

    def make(number: int, *, size: int = 1, walltime: float = inf, submit: float = 0.0, **more: Any) -> SchedulerJob:
        return SchedulerJob(f"w0!{number}", number, size, walltime, submit, **more)

    return make


@pytest.fixture
def router() -> Iterator["zmq.Socket[bytes]"]:
    """Return a ROUTER that is not bound yet."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.LINGER, 0)
    router.setsockopt(zmq.IPV6, 1)
    yield router
    router.close()
    context.term()


@contextmanager
def _connected(endpoint: str) -> Iterator[ZmtpConnection]:
    """Connect, and close at the end."""
    connection = ZmtpConnection(endpoint)
    connection.connect(inf)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _peer(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """Listen, and let ``serve`` handle each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                taken, _ = listener.accept()
            except OSError:
                return
            with taken, suppress(OSError):
                serve(taken)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def _saying(said: bytes) -> Callable[[socket.socket], None]:
    """Return a peer that sends something once and then only listens."""

    def serve(taken: socket.socket) -> None:
        taken.sendall(said)
        taken.shutdown(socket.SHUT_WR)
        while taken.recv(1000):
            pass

    return serve


@pytest.fixture(scope="session")
def saying() -> Callable[[bytes], Callable[[socket.socket], None]]:
    """Return a function that makes a peer out of the text that it sends."""
    return _saying


@pytest.fixture(scope="session")
def connected() -> Callable[[str], AbstractContextManager[ZmtpConnection]]:
    """Return what connects to an endpoint."""
    return _connected


@pytest.fixture(scope="session")
def peer() -> Callable[[Callable[[socket.socket], None]], AbstractContextManager[str]]:
    """Return a peer that listens like another one."""
    return _peer
