"""Interfaces of listening sockets, and the keys of encrypted ones (CurveZMQ)."""

import os
import re
from typing import Final, NamedTuple, Protocol, TypeVar

from pipistrelle.protocol.zmtp import ZmtpMessage

_LOOPBACK: Final = re.compile(r"tcp://(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[^:]*)?")


#: number of file descriptors that libzmq needs for a context with one socket
ZMQ_DESCRIPTORS: Final = 12


def check_descriptors(number: int) -> None:
    """Raise OSError unless the process can open this many files and sockets.

    Call it before libraries that abort the process or print a traceback when they lack descriptors.
    """
    held: list[int] = []
    try:
        while len(held) < number:
            held += os.pipe()
    finally:
        for one in held:
            os.close(one)


def is_loopback(endpoint: str) -> bool:
    """Return whether an endpoint is a Unix socket or a loopback address.

    Other host names and interfaces count as remote, whatever they resolve to.
    """
    return endpoint.startswith("ipc://") or _LOOPBACK.fullmatch(endpoint) is not None


class KeyPair(NamedTuple):
    """A CurveZMQ key pair, each key in Z85 (40 characters)."""

    public: bytes
    secret: bytes


class ListenerKeys(NamedTuple):
    """A listener's keys, and its peers' allowed public keys; None allows any."""

    own: KeyPair
    known: frozenset[bytes] | None = None


class CallerKeys(NamedTuple):
    """A connecting side's keys, and the public key that the listener must have."""

    own: KeyPair
    listener: bytes


class AcceptedConnection(Protocol):
    """An accepted connection, perhaps from the awaited server or scheduler."""

    lost: bool

    def serve(self, route: list[bytes], longest: int) -> None:
        """Serve the peer: `frame` then waits briefly, and ``route`` precedes the frame of each message."""

    def frame(self, flags: int) -> bytes | ZmtpMessage | None:
        """Return the next frame, or a whole message if its form differs; None if incomplete."""

    def send_frame(self, frame: bytes) -> bool:
        """Send a frame; return False if some of it is left for `flush`."""

    def flush(self) -> bool:
        """Send more of the remaining bytes; return False if some still remain."""

    def holds_more(self) -> bool:
        """Return whether there is something to read."""

    def close(self) -> None:
        """Close the connection after sending what is left."""


_C = TypeVar("_C", bound=AcceptedConnection)


class ListeningSocket(Protocol[_C]):
    """A listening socket and its unidentified connections, which cannot block it."""

    endpoint: str
    #: why the last unknown peer was disconnected; empty if none was
    fault: str

    def look(self, now: float, patience: float) -> bool:
        """Accept connections and read, waiting up to ``patience`` (s); return whether anything arrived."""

    def message(self) -> tuple[_C, ZmtpMessage] | None:
        """Return the next message and its connection, or None."""

    def answer(self, stranger: _C, route: list[bytes], frame: bytes) -> None:
        """Send a message, or drop it if it cannot be sent at once."""

    def holds_more(self) -> bool:
        """Return whether a connection or data is waiting."""

    def release(self, stranger: _C) -> None:
        """Hand a connection over to its new reader."""

    def unwatch(self, connection: _C) -> None:
        """Stop watching a released connection for input."""

    def close(self) -> None:
        """Stop listening and close all connections that were not released."""
