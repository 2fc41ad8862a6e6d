"""A run from one call: in this process, or with the scheduler in another one."""

import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.fields import package_version
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.runtime import Runtime
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import EndpointError, Interrupted
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.once import prepare_folder
from pipistrelle.server.setup import Setup
from pipistrelle.server.simulation import Result, simulate
from pipistrelle.server.transport.endpoint import check_endpoint
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.studies.inputs.named import InputError, load_platform, load_workload, platform_for
from pipistrelle.studies.inputs.reliability import ReliabilityOptions
from pipistrelle.studies.runs.child import Child, check_command
from pipistrelle.studies.runs.timeouts import DECISION_TIMEOUT, HELLO_TIMEOUT
from pipistrelle.traces.workload import Workload

if TYPE_CHECKING:
    from pipistrelle.server.transport.peer import ZmqPeer

#: the path of a Unix socket has at most 107 bytes; a batch system's folder for temporary files can be longer
_LONGEST_HOME: Final = 80
_SHORT_HOME: Final = "/tmp"  # noqa: S108 - the folder made in it is private


def run_in_process(
    workload: str | Workload = "demo",
    policy: str | Policy = "easy",
    *,
    platform: str | Platform | None = None,
    out: Path | None = None,
    strict: bool = False,
    observers: Sequence[Observer] = (),
    reliability: Reliability | None = None,
) -> Result:
    """Simulate a workload under a policy in this process.

    Parameters
    ----------
    workload, platform
        a bundled name, a path, or the object itself; without a platform the workload's header says how large the
        machine is.
    policy
        a name that `make_policy` knows, or the object.
    out
        folder for the outputs, made if need be.
    reliability
        what fails, as `pipistrelle.studies.inputs.reliability.ReliabilityOptions` loads it; None: as the platform says.

    Raises
    ------
    PipistrelleError
        when an input is wrong or the run failed; outputs so far are kept.
    KeyboardInterrupt
        when Ctrl-C ended the run; outputs so far are kept.
    """
    trace = load_workload(workload) if isinstance(workload, str) else workload
    if platform is None:
        machine = platform_for(trace, workload if isinstance(workload, str) else "")
    else:
        machine = load_platform(platform) if isinstance(platform, str) else platform
    if reliability is None:
        reliability = ReliabilityOptions().load(machine, trace)
    runtime = Runtime(make_policy(policy) if isinstance(policy, str) else policy, package_version())
    if out is not None:
        prepare_folder(out)
    with deferred_interrupts() as interrupted:
        result = simulate(
            Setup.of(machine, trace, strict=strict, reliability=reliability),
            InProcessTransport(runtime, interrupted),
            clock=time.perf_counter,
            out=out,
            observers=observers,
        )
    if isinstance(result.failure, Interrupted):  # a caller that goes on after a failed run must not go on after this
        raise KeyboardInterrupt from result.failure
    if result.failure is not None:
        raise result.failure
    return result


def run_with_child(
    setup: Setup,
    command: Sequence[str],
    *,
    endpoint: str | None = None,
    allow_remote: bool = False,
    out: Path | None = None,
    observers: Sequence[Observer] = (),
    hello_timeout: float = HELLO_TIMEOUT,
    decision_timeout: float = DECISION_TIMEOUT,
    name: str | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Result:
    """Simulate with a scheduler that is started as a child process and reached over ZeroMQ.

    A setup with Batsim's options is run in the batsim dialect: the scheduler listens, the server connects.

    Parameters
    ----------
    command
        the scheduler's program and arguments, with ``{endpoint}`` in one of them.
    endpoint
        where to listen; None for a Unix socket in a private folder.
    allow_remote
        whether the endpoint may be reachable from other machines.
    name
        what to call the scheduler in the batsim dialect, where it cannot say it itself; None: it has no name.
    asked
        what the user asked for, as with `simulate`.

    Raises
    ------
    PipistrelleError
        when the scheduler cannot be started or never says HELLO; a run that fails later says so in the result.
    KeyboardInterrupt
        when the user interrupts before the run has begun.
    """
    check_command(command)
    children: list[Child] = []

    def fate() -> str | None:
        return children[0].fate() if children else None

    with deferred_interrupts() as interrupted, _endpoint_or_private(endpoint) as address:
        transport: ZmqPeer[Any]
        if setup.batsim is None:
            from pipistrelle.server.transport.native import ZmqTransport  # a run in one process needs no ZeroMQ

            transport = ZmqTransport(
                address,
                hello_timeout=hello_timeout,
                decision_timeout=decision_timeout,
                alive=fate,
                interrupted=interrupted,
                allow_remote=allow_remote,
            )
        else:
            from pipistrelle.server.transport.batsim import UNNAMED, BatsimTransport

            transport = BatsimTransport(
                _with_port(check_endpoint(address, allow_remote=allow_remote)),
                hello_timeout=hello_timeout,
                decision_timeout=decision_timeout,
                alive=fate,
                interrupted=interrupted,
                name=UNNAMED if name is None else name,
            )
        try:
            with Child(command, transport.endpoint) as child:
                children.append(child)
                return simulate(setup, transport, clock=time.perf_counter, out=out, observers=observers, asked=asked)
        finally:
            transport.close()


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], bool]]:
    """Keep the first Ctrl-C from striking in the middle of something.

    Inside, an interrupt or a request to terminate only makes the yielded function return True, for a transport to
    look at between messages; a second one raises KeyboardInterrupt at once. Signals that are ignored or end the
    process stay as they are, and so does everything outside the main thread, where Python takes no handlers.
    """
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        if len(caught) > 1:
            raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, note)
    try:
        yield lambda: bool(caught)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def private_endpoint() -> Iterator[str]:
    """Yield an ipc endpoint in a folder that only this user can enter, removed afterwards.

    Raises
    ------
    InputError
        when there is no place for such a folder.
    """
    try:
        home = tempfile.gettempdir()
        if len(os.fsencode(home)) > _LONGEST_HOME and os.path.isdir(_SHORT_HOME):
            home = _SHORT_HOME
        folder = tempfile.TemporaryDirectory(prefix="pipistrelle-", dir=home)
    except OSError as error:
        raise InputError(
            f"cannot make a folder for the socket ({error.strerror or error})",
            where=error.filename,
            hint="Set TMPDIR to a folder that can be written to, or choose an address with --endpoint.",
        ) from None
    with folder:
        yield f"ipc://{folder.name}/server"


def _with_port(endpoint: str) -> str:
    """Return an endpoint with a free port in the place of ``*``: both sides must know it before either is there."""
    if not endpoint.endswith(":*"):
        return endpoint
    host = endpoint.removeprefix("tcp://").removesuffix(":*")
    family = socket.AF_INET6 if "[" in host else socket.AF_INET
    try:
        with socket.create_server((host.strip("[]"), 0), family=family) as probe:
            return f"tcp://{host}:{probe.getsockname()[1]}"
    except OSError as error:
        raise EndpointError(f"there is no free port ({error.strerror or error})", where=endpoint) from None


@contextmanager
def _endpoint_or_private(endpoint: str | None) -> Iterator[str]:
    if endpoint is not None:
        yield endpoint
    else:
        with private_endpoint() as address:
            yield address
