"""A scheduler that connects to a server and serves one simulation."""

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipistrelle.protocol.base.errors import RemoteProtocolError, legible
from pipistrelle.protocol.messages import Notice, Refused, Reply, Restore, Save, Welcome
from pipistrelle.protocol.session import SchedulerSession
from pipistrelle.protocol.sockets import CallerKeys, is_loopback
from pipistrelle.schedulers.policy.errors import PolicyFailed, ServerGone
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.state import give_state, take_back
from pipistrelle.schedulers.wire.zmtp import AddressError, ConnectionLost, HandshakeRefused, ZmtpConnection

if TYPE_CHECKING:
    from pipistrelle.schedulers.wire.curve import CurveConnection

    AnyConnection = ZmtpConnection | CurveConnection

#: how often a connection file is looked for, in seconds
_TICK_S: Final = 0.1
#: how long to wait between two attempts to connect, in seconds
_RETRY_S: Final = 0.05
#: how long who listens where a connection file says may take to say what he is, before the file is read again, in s
_ATTEMPT_S: Final = 2.0
#: characters of a server's texts that are shown
_SHOWN: Final = 500
_HOST_AND_PORT: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]+|\[[0-9a-fA-F:]+\]:[0-9]+")
#: the empty reply to WELCOME, which is message 0
_FIRST_REPLY: Final = Reply(0, 0.0)
#: how long the word that it ends may take to leave a scheduler, in seconds
_LAST_WORD_S: Final = 0.5


class ServerAddress:
    """Where the server is: at an endpoint, or at that which its connection file names as long as it runs.

    Without ``allow_remote`` it must be on this machine.

    Raises
    ------
    AddressError
        when ``connect`` can be neither, or is an endpoint that is none.
    """

    def __init__(self, connect: str, *, allow_remote: bool = False) -> None:
        self._connect = connect
        self._allow_remote = allow_remote
        #: whether it stays what it is; a file may be written anew
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
        """Return the endpoint as it is now, None if there is none yet; AddressError if the file says none."""
        if self.fixed:
            return self._connect
        endpoint = _written_endpoint(self._connect)
        return None if endpoint is None else self._near(endpoint)

    def _near(self, endpoint: str) -> str:
        """Return an endpoint that may be connected to; AddressError if it is beyond this machine and must not be."""
        if self._allow_remote or is_loopback(endpoint):
            return endpoint
        raise AddressError(
            "the server may be on another machine",
            where=endpoint,
            expected="a loopback address such as tcp://127.0.0.1:28000",
            hint="With --curve both sides show keys ('pipistrelle help remote'); with --insecure whoever is there, "
            "or in between, can act as the server.",
        )

    def nobody(self, timeout: float, endpoint: str | None, found: str) -> ServerGone:
        """Return the error for a server that has not answered in time, nor at the ``endpoint`` that was tried last."""
        if endpoint is None:
            return ServerGone(
                f"no connection file came within {timeout:g} s",
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
    """Return what the connection file says; None if there is none yet, or only that of a server that was killed."""
    path = _connection_file(connect)
    if not os.path.isfile(path):  # pathlib's would raise for a name that is too long
        return None
    try:
        endpoint = json.loads(path.read_text(encoding="utf-8"))["endpoint"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AddressError(
            f"this is no connection file ({type(error).__name__}: {error})",
            where=str(path),
            expected='JSON with an "endpoint"',
            hint="Give the connection.json that the server wrote.",
        ) from None
    endpoint = _checked(endpoint, f"{path}: endpoint")
    if endpoint.startswith("ipc://") and not os.path.exists(endpoint.removeprefix("ipc://")):
        return None
    return endpoint


def _connection_file(connect: str) -> Path:
    """Return where the file is looked for now: the folder that may hold it may not be there yet."""
    return Path(connect, "connection.json") if os.path.isdir(connect) else Path(connect)


def _checked(endpoint: object, where: str) -> str:
    """Return an endpoint that a socket can be asked to connect to; AddressError if it is none."""
    if isinstance(endpoint, str) and endpoint.startswith(("tcp://", "ipc://")) and endpoint.isprintable():
        return endpoint
    raise AddressError("this is no endpoint", where=where, expected="tcp://... or ipc://...", found=repr(endpoint))


def serve_simulation(
    runtime: Runtime,
    address: ServerAddress,
    *,
    hello_timeout: float,
    report: Callable[[str], None],
    keys: CallerKeys | None = None,
    mark: Callable[[], str] = lambda: "",
) -> None:
    """Connect, agree, and answer notices until the simulation ends.

    Parameters
    ----------
    address
        where the server is; it need not be there yet.
    hello_timeout
        how long to wait for the server's WELCOME, in seconds of the wall clock.
    report
        called with a line of text when the connection is made.
    keys
        to connect with, where the server's socket is encrypted.
    mark
        returns what stands for how the policy was made, when that is asked for: a state of one that was made
        otherwise is not taken back.

    Raises
    ------
    PolicyFailed
        when the policy fails, or the server gives back a state that is not its own.
    ServerGone
        when no server answers in time, it refuses, or it disconnects.
    AddressError
        when the endpoint is none, or the connection file none.
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
    """Return the last word of a scheduler that ends for this: notice ``seq`` was the last that it has read."""
    return Reply(seq, 0.0, leaves="interrupted" if isinstance(error, KeyboardInterrupt) else "error")


def _serve(runtime: Runtime, connection: "AnyConnection", session: SchedulerSession, mark: Callable[[], str]) -> None:
    """Answer notices until the simulation ends."""
    endpoint = connection.endpoint
    reply = session.send_reply(_FIRST_REPLY)
    while True:
        try:
            connection.send(reply)
            frame = connection.receive()
        except ConnectionLost as lost:
            raise ServerGone(
                f"the server disconnected while notice {session.seq + 1} was awaited", where=endpoint, found=str(lost)
            ) from None
        try:
            notice = session.receive_notice(frame)
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"notice {session.seq + 1} is wrong: {error}", where=endpoint) from None
        if not isinstance(notice, Notice):
            reply = _instead(runtime, session, notice, endpoint, mark)
            continue
        answer = runtime.answer(notice)
        if runtime.ended is not None:
            return
        reply = session.send_reply(answer)


def _instead(
    runtime: Runtime,
    session: SchedulerSession,
    message: Refused | Save | Restore,
    endpoint: str,
    mark: Callable[[], str],
) -> bytes:
    """Return the answer to what came in the place of a notice; ServerGone if there is none."""
    if isinstance(message, Refused):
        raise _refused(message, endpoint)
    if isinstance(message, Save):
        longest = None if session.welcome is None else session.welcome.max_state
        return session.send_saved(give_state(runtime, message.data.seq, mark(), longest))
    take_back(runtime, bytes(message.data.state), mark(), message.data.seq)
    return session.send_reply(Reply(message.data.seq, message.data.now))


def _agree(
    runtime: Runtime, address: ServerAddress, hello_timeout: float, stack: ExitStack, keys: CallerKeys | None
) -> tuple["AnyConnection", SchedulerSession, Welcome | Refused]:
    """Say HELLO to whoever listens until somebody answers; a server may go and another come until then.

    The connection is closed with ``stack``.
    """
    deadline = time.monotonic() + hello_timeout
    while True:
        endpoint, found, pause = address.endpoint(), "", _TICK_S
        if endpoint is not None:
            session, connection = SchedulerSession(), _connection(endpoint, keys)
            stack.callback(connection.close)
            try:
                # What has another endpoint's port by now may say nothing; a file may name a new one meanwhile.
                connection.connect(deadline if address.fixed else min(deadline, time.monotonic() + _ATTEMPT_S))
                connection.limit(deadline)
                connection.send(session.send_hello(runtime.hello()))
                return connection, session, session.receive_greeting(_greeting(connection, address, deadline))
            except (ConnectionLost, TimeoutError) as error:
                connection.close()
                found, pause = str(error), _RETRY_S
                if address.fixed and isinstance(error, HandshakeRefused):  # a file may name another server soon
                    raise ServerGone("there is no agreement on keys", where=endpoint, found=found) from None
        if time.monotonic() + pause >= deadline:
            raise address.nobody(hello_timeout, endpoint, found)
        time.sleep(pause)


def _connection(endpoint: str, keys: CallerKeys | None) -> "AnyConnection":
    if keys is None:
        return ZmtpConnection(endpoint)
    from pipistrelle.schedulers.wire.curve import CurveConnection  # most schedulers need no libzmq

    return CurveConnection(endpoint, keys)


def _greeting(connection: "AnyConnection", address: ServerAddress, deadline: float) -> bytes:
    """Return the answer to HELLO; ConnectionLost if none has come and the server is elsewhere by now."""
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
