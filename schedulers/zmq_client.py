"""The scheduler's socket: a REQ that connects to a server and serves one simulation."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import zmq
from zmq.backend import Socket as RawSocket
from zmq.utils.monitor import parse_monitor_message

from pipistrelle.protocol.errors import PipistrelleError
from pipistrelle.protocol.messages import Refused, Reply
from pipistrelle.protocol.session import SchedulerSession
from pipistrelle.schedulers.errors import ServerGone
from pipistrelle.schedulers.runtime import Runtime

#: the compiled class beneath pyzmq's own, whose `send` costs as much again before it sends
_raw_send: Final = RawSocket.send
#: how often a waiting scheduler looks at whether the server is still there
TICK_MS: Final = 100
#: how long the last message may take to leave the socket
LINGER_MS: Final = 500
_HOST_AND_PORT: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]+|\[[0-9a-fA-F:]+\]:[0-9]+")
#: the empty reply to WELCOME, which is message 0
_FIRST_REPLY: Final = Reply(0, 0.0)


class AddressError(PipistrelleError):
    """What shall lead to the server is neither an endpoint nor a connection file."""


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
        time.sleep(TICK_MS / 1000)
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
    context = zmq.Context(io_threads=1)
    sock = context.socket(zmq.REQ)
    sock.setsockopt(zmq.LINGER, 0)
    sock.setsockopt(zmq.RCVTIMEO, TICK_MS)
    sock.setsockopt(zmq.IPV6, int("[" in endpoint))
    monitor = sock.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
    try:
        try:
            sock.connect(endpoint)
        except zmq.ZMQError as error:
            raise AddressError(
                f"cannot connect ({error})", where=endpoint, expected="tcp://HOST:PORT or ipc://PATH"
            ) from None
        _converse(runtime, sock, monitor, endpoint, hello_timeout, report)
        sock.setsockopt(zmq.LINGER, LINGER_MS)
    finally:
        sock.disable_monitor()
        monitor.close(0)
        sock.close()
        context.term()


def _converse(
    runtime: Runtime,
    sock: "zmq.Socket[bytes]",
    monitor: "zmq.Socket[bytes]",
    endpoint: str,
    hello_timeout: float,
    report: Callable[[str], None],
) -> None:
    session = SchedulerSession()
    deadline = time.monotonic() + hello_timeout
    gone = False

    def receive(waiting_for: str) -> bytes:
        nonlocal gone
        while True:
            try:
                return sock.recv()
            except zmq.Again:
                pass
            if session.welcome is None:
                if time.monotonic() >= deadline:
                    raise ServerGone(
                        f"no server answered within {hello_timeout:g} s",
                        where=endpoint,
                        hint="Start 'pipistrelle serve' with this endpoint, or raise --hello-timeout.",
                    )
                continue
            gone = gone or zmq.EVENT_DISCONNECTED in _connection_events(monitor)
            if gone and not sock.poll(0):  # what it sent with its last breath counts
                raise ServerGone(f"the server disconnected while {waiting_for} was awaited", where=endpoint)

    sock.send(session.send_hello(runtime.hello()))
    greeting = session.receive_greeting(receive("its greeting"))
    if isinstance(greeting, Refused):
        raise _refused(greeting, endpoint)
    if _connection_events(monitor)[-1:] == [zmq.EVENT_DISCONNECTED]:  # earlier ones were attempts
        raise ServerGone("the server disconnected after its greeting", where=endpoint)
    runtime.welcome(greeting.data)
    report(f"connected to {greeting.data.server or 'the server'} at {endpoint}")
    reply = session.send_reply(_FIRST_REPLY)
    while True:
        _raw_send(sock, reply)
        notice = session.receive_notice(receive(f"notice {session.seq + 1}"))
        if isinstance(notice, Refused):
            raise _refused(notice, endpoint)
        answer = runtime.answer(notice)
        if runtime.ended is not None:
            return
        reply = session.send_reply(answer)


def _connection_events(monitor: "zmq.Socket[bytes]") -> list[int]:
    """Return what has become of the connection since the last look."""
    events = []
    while True:
        try:
            events.append(int(parse_monitor_message(monitor.recv_multipart(zmq.NOBLOCK))["event"]))
        except zmq.Again:
            return events


def _refused(refused: Refused, endpoint: str) -> ServerGone:
    return ServerGone(f"the server refused ({refused.data.code}): {refused.data.message}", where=endpoint)
