"""Connect a scheduler to a server and serve one simulation, in the native dialect."""

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from pipistrelle.protocol.base.errors import RemoteProtocolError, legible
from pipistrelle.protocol.base.whole import read_whole
from pipistrelle.protocol.messages import Notice, Refused, Reply, Restore, Save, Welcome
from pipistrelle.protocol.session import SchedulerSession
from pipistrelle.protocol.sockets import CallerKeys, is_loopback
from pipistrelle.schedulers.policy.errors import PolicyFailed, ServerGone
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.state import give_state, take_back
from pipistrelle.schedulers.wire.zmtp import AddressError, ConnectionLost, HandshakeRefused, ZmtpConnection

if TYPE_CHECKING:
    from pipistrelle.protocol.events import SimulationEndsData
    from pipistrelle.protocol.messages import HelloData, WelcomeData
    from pipistrelle.schedulers.wire.curve import CurveConnection

    AnyConnection: TypeAlias = ZmtpConnection | CurveConnection

#: interval at which a connection file is read, s
_TICK_S: Final = 0.1
#: pause between two attempts to connect, s
_RETRY_S: Final = 0.05
#: longest handshake at an endpoint from a connection file before the file is read again, s
_ATTEMPT_S: Final = 2.0
#: most characters shown of a server's text
_SHOWN: Final = 500
_HOST_AND_PORT: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]+|\[[0-9a-fA-F:]+\]:[0-9]+")
#: the empty reply to WELCOME, which is message number 0
_FIRST_REPLY: Final = Reply(0, 0.0)
#: longest time for sending a scheduler's last message, s
_LAST_WORD_S: Final = 0.5


class Answering(Protocol):
    """The object that answers notices: a `Runtime`, or a bridge to another program."""

    ended: "SimulationEndsData | None"

    def hello(self) -> "HelloData":
        """Return the scheduler's name and the features that it needs."""

    def welcome(self, data: "WelcomeData") -> None:
        """Take note of the features that the server granted."""

    def answer(self, notice: Notice) -> Reply:
        """Return the decisions for a notice."""


class ServerAddress:
    """The server's endpoint, given directly or in the server's connection file.

    The endpoint must be on this machine unless ``allow_remote`` is true.

    Raises:
        AddressError: ``connect`` is neither a valid endpoint nor a text that can be a file's path.
    """

    def __init__(self, connect: str, *, allow_remote: bool = False) -> None:
        self._connect = connect
        self._allow_remote = allow_remote
        #: whether the endpoint cannot change; a connection file may be rewritten
        self.fixed = "://" in connect
        if self.fixed:
            self._near(_checked(connect, connect))
        elif not connect or (_HOST_AND_PORT.fullmatch(connect) and not os.path.exists(connect)):
            raise AddressError(
                "this is neither an endpoint nor a connection file",
                where=repr(connect),
                expected="tcp://HOST:PORT, ipc://PATH, or the server's connection.json",
                hint=f"Did you mean tcp://{connect}?" if connect else None,
            )

    def endpoint(self) -> str | None:
        """Return the current endpoint; None if unknown.

        Raise AddressError if the connection file is invalid.
        """
        if self.fixed:
            return self._connect
        endpoint = _written_endpoint(self._connect)
        return None if endpoint is None else self._near(endpoint)

    def _near(self, endpoint: str) -> str:
        """Return ``endpoint`` unchanged if connecting to it is allowed.

        Raise AddressError if it is on another machine and ``allow_remote`` is false.
        """
        if self._allow_remote or is_loopback(endpoint):
            return endpoint
        raise AddressError(
            "the server may be on another machine",
            where=endpoint,
            expected="a loopback address such as tcp://127.0.0.1:28000",
            hint="Use --curve for keys on both sides ('pipistrelle help remote'). With --insecure any machine there "
            "or in between can act as the server.",
        )

    def nobody(self, timeout: float, endpoint: str | None, found: str) -> ServerGone:
        """Return the error to raise if no server answered within ``timeout`` s.

        ``endpoint`` was tried last; ``found`` says what happened there.
        """
        if endpoint is None:
            return ServerGone(
                f"no connection file was written within {timeout:g} s",
                where=str(_connection_file(self._connect)),
                hint="Start 'pipistrelle serve --out DIR' and give its DIR/connection.json, or an endpoint (tcp://..., ipc://...).",
            )
        return ServerGone(
            f"no server answered within {timeout:g} s",
            where=endpoint,
            found=found,
            hint="Start 'pipistrelle serve' with this endpoint, or raise --hello-timeout.",
        )


def _written_endpoint(connect: str) -> str | None:
    """Return the endpoint that the connection file contains.

    Return None if the file does not exist, or names a Unix socket that does not exist.
    """
    path = _connection_file(connect)
    if not os.path.isfile(path):  # Path.is_file raises an error if the name is too long
        return None
    try:
        endpoint = json.loads(read_whole(path))["endpoint"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AddressError(
            f"this is not a connection file ({type(error).__name__}: {error})",
            where=str(path),
            expected='JSON with an "endpoint"',
            hint="Give the connection.json that the server wrote.",
        ) from None
    endpoint = _checked(endpoint, f"{path}: endpoint")
    if endpoint.startswith("ipc://") and not os.path.exists(endpoint.removeprefix("ipc://")):
        return None
    return endpoint


def _connection_file(connect: str) -> Path:
    """Return the connection file's path.

    It is ``connect``, or connection.json in that folder.
    """
    return Path(connect, "connection.json") if os.path.isdir(connect) else Path(connect)


def _checked(endpoint: object, where: str) -> str:
    """Return an endpoint that a socket can connect to.

    Raise AddressError if it is invalid.
    """
    if isinstance(endpoint, str) and endpoint.startswith(("tcp://", "ipc://")) and endpoint.isprintable():
        return endpoint
    raise AddressError("this is no endpoint", where=where, expected="tcp://... or ipc://...", found=repr(endpoint))


def serve_simulation(
    runtime: Answering,
    address: ServerAddress,
    *,
    hello_timeout: float,
    report: Callable[[str], None],
    keys: CallerKeys | None = None,
    mark: Callable[[], str] = lambda: "",
) -> None:
    """Connect, negotiate, and answer notices until the simulation ends.

    Args:
        address: the server's address; the server may start later.
        hello_timeout: longest wait for WELCOME, in seconds of the wall clock.
        report: called with a line of text when the connection is made.
        keys: for an encrypted socket.
        mark: returns a digest of the policy's options; a state saved with another digest is refused.

    Raises:
        PolicyFailed: the policy fails, or the server returns a state of another scheduler.
        ServerGone: the server does not answer in time, refuses or disconnects.
        AddressError: the endpoint or connection file is invalid.
    """
    with ExitStack() as stack:
        connection, session, greeting = _agree(runtime, address, hello_timeout, stack, keys)
        if isinstance(greeting, Refused):
            raise _refused(greeting, connection.endpoint)
        runtime.welcome(greeting.data)
        report(f"connected to {legible(greeting.data.server, _SHOWN) or 'the server'} at {connection.endpoint}")
        connection.limit(inf)
        try:
            _serve(runtime, connection, session, mark)
        except (KeyboardInterrupt, PolicyFailed) as error:
            with suppress(ConnectionLost, TimeoutError):
                connection.limit(time.monotonic() + _LAST_WORD_S)
                connection.send(session.send_reply(leaving(session.seq, error)))
            raise


def leaving(seq: int, error: KeyboardInterrupt | PolicyFailed) -> Reply:
    """Return the reply with which a scheduler ends the session after notice ``seq``.

    The reply states the reason.
    """
    return Reply(seq, 0.0, leaves="interrupted" if isinstance(error, KeyboardInterrupt) else "error")


def _serve(runtime: Answering, connection: "AnyConnection", session: SchedulerSession, mark: Callable[[], str]) -> None:
    endpoint = connection.endpoint
    reply = session.send_reply(_FIRST_REPLY)
    while True:
        try:
            connection.send(reply)
            frame = connection.receive()
        except ConnectionLost as lost:
            raise ServerGone(
                f"the server disconnected before notice {session.seq + 1}", where=endpoint, found=str(lost)
            ) from None
        try:
            notice = session.receive_notice(frame)
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"notice {session.seq + 1} is invalid: {error}", where=endpoint) from None
        if not isinstance(notice, Notice):
            reply = _instead(runtime, session, notice, endpoint, mark)
            continue
        answer = runtime.answer(notice)
        if runtime.ended is not None:
            return
        reply = session.send_reply(answer)


def _instead(
    runtime: Answering,
    session: SchedulerSession,
    message: Refused | Save | Restore,
    endpoint: str,
    mark: Callable[[], str],
) -> bytes:
    """Return the answer to a SAVE or RESTORE message, which came instead of a notice.

    Raise ServerGone if the message is REFUSED.
    """
    if isinstance(message, Refused):
        raise _refused(message, endpoint)
    if not isinstance(runtime, Runtime):
        raise ServerGone("the server asked for a state that this scheduler does not have", where=endpoint)
    if isinstance(message, Save):
        longest = None if session.welcome is None else session.welcome.max_state
        return session.send_saved(give_state(runtime, message.data.seq, mark(), longest))
    take_back(runtime, bytes(message.data.state), mark(), message.data.seq)
    return session.send_reply(Reply(message.data.seq, message.data.now))


def _agree(
    runtime: Answering, address: ServerAddress, hello_timeout: float, stack: ExitStack, keys: CallerKeys | None
) -> tuple["AnyConnection", SchedulerSession, Welcome | Refused]:
    """Send HELLO until a server answers.

    Return the connection, its session and the answer. Servers may stop and start in the meantime. ``stack`` closes the
    connection.
    """
    deadline = time.monotonic() + hello_timeout
    while True:
        endpoint, found, pause = address.endpoint(), "", _TICK_S
        if endpoint is not None:
            session, connection = SchedulerSession(), _connection(endpoint, keys)
            stack.callback(connection.close)
            try:
                # A new owner of the port may never answer, while the file may name a new endpoint.
                connection.connect(deadline if address.fixed else min(deadline, time.monotonic() + _ATTEMPT_S))
                connection.limit(deadline)
                connection.send(session.send_hello(runtime.hello()))
                return connection, session, session.receive_greeting(_greeting(connection, address, deadline))
            except (ConnectionLost, TimeoutError) as error:
                connection.close()
                found, pause = str(error), _RETRY_S
                if address.fixed and isinstance(error, HandshakeRefused):  # a file may name another server soon
                    raise ServerGone("the keys do not match", where=endpoint, found=found) from None
        if time.monotonic() + pause >= deadline:
            raise address.nobody(hello_timeout, endpoint, found)
        time.sleep(pause)


def _connection(endpoint: str, keys: CallerKeys | None) -> "AnyConnection":
    if keys is None:
        return ZmtpConnection(endpoint)
    from pipistrelle.schedulers.wire.curve import CurveConnection  # needs libzmq

    return CurveConnection(endpoint, keys)


def _greeting(connection: "AnyConnection", address: ServerAddress, deadline: float) -> bytes:
    """Wait for the server's answer to HELLO, and return it.

    Raise ConnectionLost if the server's endpoint has changed meanwhile.
    """
    while not address.fixed and (now := time.monotonic()) < deadline:
        connection.limit(min(deadline, now + _TICK_S))
        with suppress(TimeoutError):
            return connection.receive()
        if address.endpoint() not in (None, connection.endpoint):
            raise ConnectionLost("its connection file names another endpoint now")
    connection.limit(deadline)
    return connection.receive()


def _refused(refused: Refused, endpoint: str) -> ServerGone:
    return ServerGone(
        f"the server refused ({refused.data.code}): {legible(refused.data.message, _SHOWN)}", where=endpoint
    )
