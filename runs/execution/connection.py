"""How server and scheduler of a run come together: in one process, with a child, or with one that is elsewhere."""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from pipistrelle.protocol.base.errors import InputError
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.sockets import CallerKeys, ListenerKeys
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution import DECISION_TIMEOUT, HELLO_TIMEOUT
from pipistrelle.runs.execution.child import Child, check_command, own_command
from pipistrelle.schedulers.catalogue.foreign import check_built
from pipistrelle.server.errors import EndpointError, SchedulerFailed
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.transport.endpoint import check_endpoint
from pipistrelle.server.transport.in_process import InProcessTransport, Transport

if TYPE_CHECKING:
    from pipistrelle.schedulers.policy.interfaces import Policy
    from pipistrelle.server.transport.peer import Peer

#: the path of a Unix socket has at most 107 bytes; a batch system's folder for temporary files can be longer
_LONGEST_HOME: Final = 80
_SHORT_HOME: Final = "/tmp"  # noqa: S108 - the folder made in it is private
#: tells whether the user wants the run to end
Interrupted = Callable[[], bool]


class Connection(Protocol):
    """A way to bring server and scheduler together; a run's result does not depend on it."""

    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> AbstractContextManager[Transport]:
        """Return what leads to the scheduler while it is entered; PipistrelleError if it cannot be had."""


@dataclass(frozen=True, slots=True)
class InProcess:
    """The scheduler is called directly; ``policy`` is what decides in the place of the one that the run names."""

    policy: "Policy | None" = None

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Yield what calls the policy."""
        if spec.batsim is not None and spec.batsim.no_sched:
            from pipistrelle.runs.description.batsim import StartAtOnce

            yield InProcessTransport(StartAtOnce(), interrupted)
            return
        from pipistrelle.schedulers.runtime.runtime import Runtime  # a server needs no scheduler's parts

        policy = self.policy
        if policy is None:
            check_scheduler(spec)
            if spec.program is not None:
                raise InputError(
                    "a program cannot run inside the server", found=" ".join(spec.program), hint="Run it as a child."
                )
            if spec.dialect == "batsim":
                raise InputError("a run in one process speaks no dialect", expected="native", found="batsim")
            policy = spec.make_policy()
        yield InProcessTransport(Runtime(policy, package_version(), cancellations=setup.cancels), interrupted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OverZeroMQ:
    """What all connections to another process have.

    Parameters
    ----------
    endpoint
        where to listen; None for a Unix socket in a private folder.
    allow_remote
        whether the endpoint may be on other machines, or reachable from them, though nothing is encrypted.
    hello_timeout, decision_timeout
        how long to wait for the scheduler and for each of its replies, s on the wall clock.
    announce
        called with the endpoint as soon as a scheduler can come; what it returns is entered meanwhile.
    """

    endpoint: str | None = None
    allow_remote: bool = False
    hello_timeout: float = HELLO_TIMEOUT
    decision_timeout: float = DECISION_TIMEOUT
    announce: Callable[[str], AbstractContextManager[None]] = lambda endpoint: nullcontext()

    def limits(self, interrupted: Interrupted) -> dict[str, Any]:
        """Return what ends each wait."""
        return {
            "hello_timeout": self.hello_timeout,
            "decision_timeout": self.decision_timeout,
            "interrupted": interrupted,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WithChild(_OverZeroMQ):
    """The scheduler is started as a child process and reached over ZeroMQ.

    In the batsim dialect the scheduler listens, at the endpoint, and the server connects.

    Parameters
    ----------
    verbose
        level of the log of a scheduler of ours, as `-v` counts.
    name
        what to call the scheduler in the batsim dialect, where it cannot say it itself; None: as its policy or program
        is called.
    """

    verbose: int = 0
    name: str | None = None

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Start the scheduler and yield what leads to it; it ends with the block."""
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

        def fate(patience: float) -> SchedulerFailed | None:
            return children[0].fate(patience) if children else None

        limits = {**self.limits(interrupted), "fate": fate}
        with _endpoint_or_private(self.endpoint) as place, ExitStack() as stack:
            transport: Peer[Any]
            if batsim:
                from pipistrelle.server.transport.batsim import BatsimTransport

                address = _with_port(check_endpoint(place, allow_remote=self.allow_remote))
                transport = BatsimTransport(address, name=name, allow_remote=self.allow_remote, **limits)
            else:
                from pipistrelle.server.transport.native import NativeTransport

                transport = NativeTransport(place, allow_remote=self.allow_remote, **limits)
            stack.callback(transport.close)
            stack.enter_context(self.announce(transport.endpoint))
            children.append(stack.enter_context(Child(words, transport.endpoint)))
            yield transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening(_OverZeroMQ):
    """The server listens for a scheduler that somebody else starts; with ``keys``, for one that shows its key."""

    keys: ListenerKeys | None = None

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Listen."""
        from pipistrelle.server.transport.native import NativeTransport

        with _endpoint_or_private(self.endpoint) as address, ExitStack() as stack:
            remote = self.allow_remote or self.keys is not None
            transport = NativeTransport(address, allow_remote=remote, keys=self.keys, **self.limits(interrupted))
            stack.callback(transport.close)
            stack.enter_context(self.announce(transport.endpoint))
            yield transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting(_OverZeroMQ):
    """The server connects to a scheduler that listens at the endpoint and speaks the batsim dialect.

    ``logged`` tells whether each message is logged, at level INFO; ``keys`` are for a socket that is encrypted.
    """

    logged: bool = False
    keys: CallerKeys | None = None

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: Interrupted) -> Iterator[Transport]:
        """Connect; without a scheduler, start all jobs at once."""
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
    """Raise PipistrelleError if a run does not say who decides, or with options that a program does not have."""
    if spec.scheduler in ((), ""):
        raise InputError(
            "the run does not say which scheduler decides: it was started elsewhere",
            expected='scheduler = "NAME"',
            hint="Add it, or --scheduler NAME on the command line; 'pipistrelle list schedulers' names them.",
        )
    if spec.program is not None:
        check_command(spec.program)
        if spec.folder is not None:
            check_built(spec.folder)
        if spec.options:
            raise InputError(f"{spec.options[0]} goes with a scheduler of ours, not with a program")


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


def _endpoint_or_private(endpoint: str | None) -> AbstractContextManager[str]:
    return private_endpoint() if endpoint is None else nullcontext(endpoint)
