"""A scheduler that connects to a server and serves one simulation."""

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final

from pipistrelle.protocol.messages import Refused, Reply, Welcome
from pipistrelle.protocol.session import SchedulerSession
from pipistrelle.schedulers.policy.errors import PolicyFailed, ServerGone
from pipistrelle.schedulers.policy.runtime import Runtime
from pipistrelle.schedulers.wire.zmtp import AddressError, ConnectionLost, ZmtpConnection

#: how often a connection file is looked for, in seconds
_TICK_S: Final = 0.1
#: how long to wait between two attempts to connect, in seconds
_RETRY_S: Final = 0.05
_HOST_AND_PORT: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]+|\[[0-9a-fA-F:]+\]:[0-9]+")
#: the empty reply to WELCOME, which is message 0
_FIRST_REPLY: Final = Reply(0, 0.0)
#: how long the word that it ends may take to leave a scheduler, in seconds
_LAST_WORD_S: Final = 0.5


def resolve_endpoint(connect: str, *, timeout: float) -> str:
    """Return the endpoint that ``connect`` names: itself, or what a server's connection file says.

    A connection file that is not there yet is waited for, up to ``timeout`` seconds.

    Raises
    ------
    ServerGone
        when the file does not come.
    AddressError
        when it is no connection file, or the endpoint is none.
    """
    if "://" in connect:
        return _checked(connect, connect)
    if not connect or (_HOST_AND_PORT.fullmatch(connect) and not os.path.exists(connect)):
        raise AddressError(
            "this is neither an endpoint nor a connection file",
            where=repr(connect),
            expected="tcp://HOST:PORT, ipc://PATH, or the server's connection.json",
            hint=f"Did you mean tcp://{connect}?" if connect else None,
        )
    deadline = time.monotonic() + timeout
    while (endpoint := _written_endpoint(connect)) is None:
        if time.monotonic() >= deadline:
            raise ServerGone(
                f"no connection file came within {timeout:g} s",
                where=str(_connection_file(connect)),
                hint="Start 'pipistrelle serve --out DIR' and give its DIR/connection.json, or an endpoint (tcp://..., ipc://...).",
            )
        time.sleep(_TICK_S)
    return endpoint


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


def serve_simulation(runtime: Runtime, endpoint: str, *, hello_timeout: float, report: Callable[[str], None]) -> None:
    """Connect, agree, and answer notices until the simulation ends.

    Parameters
    ----------
    endpoint
        ``tcp://HOST:PORT`` or ``ipc://PATH``; the server need not be there yet.
    hello_timeout
        how long to wait for the server's WELCOME, in seconds of the wall clock.
    report
        called with a line of text when the connection is made.

    Raises
    ------
    ServerGone
        when no server answers in time, it refuses, or it disconnects.
    AddressError
        when the endpoint is none.
    """
    connection = ZmtpConnection(endpoint)
    try:
        _converse(runtime, connection, hello_timeout, report)
    finally:
        connection.close()


def _converse(
    runtime: Runtime, connection: ZmtpConnection, hello_timeout: float, report: Callable[[str], None]
) -> None:
    endpoint = connection.endpoint
    session, greeting = _agree(runtime, connection, hello_timeout)
    if isinstance(greeting, Refused):
        raise _refused(greeting, endpoint)
    runtime.welcome(greeting.data)
    report(f"connected to {greeting.data.server or 'the server'} at {endpoint}")
    connection.limit(inf)
    try:
        _serve(runtime, connection, session)
    except (KeyboardInterrupt, PolicyFailed) as error:
        with suppress(ConnectionLost, TimeoutError):
            connection.limit(time.monotonic() + _LAST_WORD_S)
            connection.send(session.send_reply(leaving(session.seq, error)))
        raise


def leaving(seq: int, error: KeyboardInterrupt | PolicyFailed) -> Reply:
    """Return the last word of a scheduler that ends for this: notice ``seq`` was the last that it has read."""
    return Reply(seq, 0.0, leaves="interrupted" if isinstance(error, KeyboardInterrupt) else "error")


def _serve(runtime: Runtime, connection: ZmtpConnection, session: SchedulerSession) -> None:
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
        notice = session.receive_notice(frame)
        if isinstance(notice, Refused):
            raise _refused(notice, endpoint)
        answer = runtime.answer(notice)
        if runtime.ended is not None:
            return
        reply = session.send_reply(answer)


def _agree(
    runtime: Runtime, connection: ZmtpConnection, hello_timeout: float
) -> tuple[SchedulerSession, Welcome | Refused]:
    """Say HELLO to whoever listens until somebody answers; a server may go and another come until then."""
    deadline = time.monotonic() + hello_timeout
    while True:
        session = SchedulerSession()
        try:
            connection.connect(deadline)
            connection.send(session.send_hello(runtime.hello()))
            return session, session.receive_greeting(connection.receive())
        except (ConnectionLost, TimeoutError) as error:
            if time.monotonic() + _RETRY_S >= deadline:
                raise ServerGone(
                    f"no server answered within {hello_timeout:g} s",
                    where=connection.endpoint,
                    found=str(error),
                    hint="Start 'pipistrelle serve' with this endpoint, or raise --hello-timeout.",
                ) from None
            time.sleep(_RETRY_S)


def _refused(refused: Refused, endpoint: str) -> ServerGone:
    return ServerGone(f"the server refused ({refused.data.code}): {refused.data.message}", where=endpoint)
