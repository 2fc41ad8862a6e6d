"""Ways to connect server and scheduler: in one process, as a child, over a socket."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from pipistrelle.protocol.base.errors import InputError
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.fields import package_version
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution import DECISION_TIMEOUT, HELLO_TIMEOUT
from pipistrelle.schedulers.catalogue.foreign import check_built
from pipistrelle.schedulers.catalogue.names import SLURMCTLD
from pipistrelle.server.errors import EndpointError, SchedulerFailed
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.transport.in_process import InProcessTransport, Transport

if TYPE_CHECKING:
    from pipistrelle.protocol.sockets import CallerKeys, ListenerKeys
    from pipistrelle.schedulers.policy.interfaces import Policy
    from pipistrelle.server.transport.peer import Peer

#: maximum length of a temporary folder, because a Unix socket's path has at most 107 bytes
_LONGEST_HOME: Final = 80
_SHORT_HOME: Final = "/tmp"  # noqa: S108 - the folder made in it is private
#: beginning of an error that a process of this program prints
_ERROR: Final = "pipistrelle: "
#: how long a scheduler that leaves may take to end the processes that it started, and to print why it leaves
_LAST_WORDS_S: Final = 20.0
#: a function that returns whether the user has interrupted the run
Interrupted = Callable[[], bool]


class Connection(Protocol):
    """A way to connect server and scheduler.

    The choice does not change a run's result.
    """

    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> AbstractContextManager[Transport]:
        """Connect to the scheduler and yield the transport, or raise PipistrelleError."""


@dataclass(frozen=True, slots=True)
class InProcess:
    """A connection that calls a scheduler in this process.

    Attributes:
        policy: the scheduler to call; None: the scheduler of the run's description.
    """

    policy: "Policy | None" = None

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Yield a transport that calls the policy."""
        if spec.batsim is not None and spec.batsim.no_sched:
            from pipistrelle.runs.description.batsim import StartAtOnce

            yield InProcessTransport(StartAtOnce(), interrupted, setup.needed)
            return
        from pipistrelle.schedulers.runtime.runtime import Runtime  # only needed for built-in policies

        policy = self.policy
        if policy is None:
            check_scheduler(spec)
            if spec.program is not None:
                raise InputError(
                    "a program cannot run inside the server", found=" ".join(spec.program), hint="Run it as a child."
                )
            if spec.dialect == "batsim":
                raise InputError(
                    "a run in one process supports only the native dialect", expected="native", found="batsim"
                )
            policy = spec.make_policy()
        runtime = Runtime(policy, package_version(), cancellations=setup.cancels)
        yield InProcessTransport(runtime, interrupted, setup.needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OverZeroMQ:
    """A connection to a scheduler in another process, over ZeroMQ.

    Attributes:
        endpoint: address to listen at; None: a Unix socket in a private folder.
        allow_remote: allow an endpoint that other machines can reach, although nothing is encrypted.
        hello_timeout, decision_timeout: how long to wait for the scheduler and for each reply (wall-clock s).
        announce: called with the endpoint once a scheduler can connect; the context that it returns is open during the
            run.
    """

    endpoint: str | None = None
    allow_remote: bool = False
    hello_timeout: float = HELLO_TIMEOUT
    decision_timeout: float = DECISION_TIMEOUT
    announce: Callable[[str], AbstractContextManager[None]] = lambda endpoint: nullcontext()

    def limits(self, interrupted: Interrupted) -> dict[str, Any]:
        return {
            "hello_timeout": self.hello_timeout,
            "decision_timeout": self.decision_timeout,
            "interrupted": interrupted,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WithChild(_OverZeroMQ):
    """A connection that starts the scheduler as a child process.

    In the batsim dialect the scheduler listens at the endpoint, and the server connects.

    Attributes:
        verbose: number of `-v` options to pass to a built-in scheduler.
        name: name of the scheduler, which it cannot send itself in the batsim dialect; None: the name of the policy or
            program.
        pin: keep server and scheduler on one core, if the scheduler is a built-in one; see `pinning.one_core`.
    """

    verbose: int = 0
    name: str | None = None
    pin: bool = False

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Start the scheduler and yield its transport; end the process after the block."""
        from pipistrelle.runs.execution.child import Child, own_command  # runs in one process start no other
        from pipistrelle.runs.execution.pinning import one_core

        check_scheduler(spec)
        batsim = setup.batsim is not None
        words: Sequence[str] | None = spec.program
        if words is None:
            assert isinstance(spec.scheduler, str)
            name = self.name or spec.make_policy().name
            more = ["--insecure"] if self.allow_remote else []
            more += ["--cancellations"] if setup.cancels and not batsim else []
            words = own_command(spec.scheduler, *spec.options, *more, verbose=self.verbose, batsim=batsim)
        else:
            name = self.name or spec.program_name or ""
        children: list[Child] = []

        printed: IO[bytes] | None = None

        def fate(patience: float) -> SchedulerFailed | None:
            if patience and printed is not None:
                patience = max(patience, _LAST_WORDS_S)
            error = children[0].fate(patience) if children else None
            return error if error is None or printed is None else _said_by(error, printed)

        limits = {**self.limits(interrupted), "fate": fate}
        with _endpoint_or_private(self.endpoint) as place, ExitStack() as stack:
            if spec.scheduler == SLURMCTLD:  # one error instead of two: its own, as the reason of the run's end
                printed = stack.enter_context(tempfile.TemporaryFile())
                stack.callback(_warn, printed)
            transport: Peer[Any]
            if batsim:
                from pipistrelle.server.transport.batsim import BatsimTransport
                from pipistrelle.server.transport.endpoint import check_endpoint

                address = _with_port(check_endpoint(place, allow_remote=self.allow_remote))
                transport = BatsimTransport(address, name=name, allow_remote=self.allow_remote, **limits)
            else:
                from pipistrelle.server.transport.native import NativeTransport

                transport = NativeTransport(place, allow_remote=self.allow_remote, **limits)
                transport.needed = setup.needed
            stack.callback(transport.close)
            stack.enter_context(self.announce(transport.endpoint))
            if self.pin and spec.program is None:
                stack.enter_context(one_core())  # the process that is started next inherits the core
            children.append(stack.enter_context(Child(words, transport.endpoint, printed=printed)))
            yield transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening(_OverZeroMQ):
    """A connection that waits until a scheduler, started by the user, connects.

    It is encrypted if ``keys`` is not None.
    """

    keys: "ListenerKeys | None" = None

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Listen for the scheduler, and yield the transport."""
        from pipistrelle.server.transport.native import NativeTransport

        with _endpoint_or_private(self.endpoint) as address, ExitStack() as stack:
            remote = self.allow_remote or self.keys is not None
            transport = NativeTransport(address, allow_remote=remote, keys=self.keys, **self.limits(interrupted))
            transport.needed = setup.needed
            stack.callback(transport.close)
            stack.enter_context(self.announce(transport.endpoint))
            yield transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting(_OverZeroMQ):
    """A connection to a scheduler that listens and uses the batsim dialect.

    Attributes:
        logged: log each message at level INFO.
        keys: keys for an encrypted socket.
    """

    logged: bool = False
    keys: "CallerKeys | None" = None

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Connect to the listening scheduler and yield the transport.

        With ``--no-sched``, start all jobs at once instead.
        """
        with ExitStack() as stack:
            transport: Transport
            if spec.batsim is not None and spec.batsim.no_sched:
                transport = stack.enter_context(InProcess().open(spec, setup, interrupted))
            else:
                from pipistrelle.server.transport.batsim import BatsimTransport

                assert self.endpoint is not None, "nowhere to connect to"
                remote = self.allow_remote or self.keys is not None
                limits = self.limits(interrupted)
                transport = BatsimTransport(self.endpoint, allow_remote=remote, keys=self.keys, **limits)
                stack.callback(transport.close)
                stack.enter_context(self.announce(self.endpoint))
            if self.logged:
                from pipistrelle.runs.description.batsim import LoggedTransport

                transport = LoggedTransport(transport)
            yield transport


def check_scheduler(spec: RunSpec) -> None:
    """Raise PipistrelleError if the scheduler is missing or its options do not apply."""
    if spec.scheduler in ((), ""):
        raise InputError(
            "the run description names no scheduler, because the scheduler was started separately",
            expected='scheduler = "NAME"',
            hint="Add it, or --scheduler NAME on the command line; 'pipistrelle show scheduler' names them.",
        )
    if spec.program is not None:
        from pipistrelle.runs.execution.child import check_command

        check_command(spec.program)
        if spec.folder is not None:
            check_built(spec.folder)
        if spec.options and spec.scheduler != SLURMCTLD:
            raise InputError(
                f"{spec.options[0]} applies to built-in schedulers, not to a program", hint="Remove the option."
            )


def _said_by(error: SchedulerFailed, printed: IO[bytes]) -> SchedulerFailed:
    """Return ``error`` with the error message of the scheduler's process.

    This is the message that the bundled scheduler printed, if it printed one.
    """
    said = [line for line in _lines(printed) if line.startswith(_ERROR)]
    return SchedulerFailed(said[-1].removeprefix(_ERROR).rstrip("."), reason=error.reason) if said else error


def _warn(printed: IO[bytes]) -> None:
    """Log what a bundled scheduler's process printed, except its error."""
    for line in _lines(printed):
        if line and not line.startswith(_ERROR):
            logger().warning("{}", line)


def _lines(printed: IO[bytes]) -> list[str]:
    printed.seek(0)
    return printed.read().decode("utf-8", "replace").splitlines()


@contextmanager
def private_endpoint() -> Iterator[str]:
    """Yield an ipc endpoint in a private folder; remove the folder afterwards."""
    try:
        home = tempfile.gettempdir()
        if len(os.fsencode(home)) > _LONGEST_HOME and os.path.isdir(_SHORT_HOME):
            home = _SHORT_HOME
        folder = tempfile.mkdtemp(prefix="pipistrelle-", dir=home)
    except OSError as error:
        raise InputError(
            f"cannot make a folder for the socket ({error.strerror or error})",
            where=error.filename,
            hint="Set TMPDIR to a folder that can be written to, or choose an address with --endpoint.",
        ) from None
    path = os.path.join(folder, "server")
    try:
        yield f"ipc://{path}"
    finally:  # unlike rmtree, without a file descriptor, of which the process may have run out
        with suppress(OSError):
            os.unlink(path)
        with suppress(OSError):
            os.rmdir(folder)


def _with_port(endpoint: str) -> str:
    """Replace ``*`` in an endpoint by the number of a free port.

    Server and scheduler then both know the port.
    """
    if not endpoint.endswith(":*"):
        return endpoint
    import socket  # few runs choose a port

    host = endpoint.removeprefix("tcp://").removesuffix(":*")
    family = socket.AF_INET6 if "[" in host else socket.AF_INET
    try:
        with socket.create_server((host.strip("[]"), 0), family=family) as probe:
            return f"tcp://{host}:{probe.getsockname()[1]}"
    except OSError as error:
        raise EndpointError(f"no port is free ({error.strerror or error})", where=endpoint) from None


def _endpoint_or_private(endpoint: str | None) -> AbstractContextManager[str]:
    return private_endpoint() if endpoint is None else nullcontext(endpoint)
