"""Interfaces of listening sockets, and the keys of encrypted sockets (CurveZMQ)."""

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

    All other host names and interfaces count as remote, whatever they resolve to.
    """
    return endpoint.startswith("ipc://") or _LOOPBACK.fullmatch(endpoint) is not None


class KeyPair(NamedTuple):
    """A CurveZMQ key pair, each key in Z85 (40 characters)."""

    public: bytes
    secret: bytes


class ListenerKeys(NamedTuple):
    """A listener's own key pair, and the public keys of allowed peers.

    If ``known``, the allowed peers' keys, is None, any peer is allowed.
    """

    own: KeyPair
    known: frozenset[bytes] | None = None


class CallerKeys(NamedTuple):
    """The keys of a connecting side, and the public key that the listener must have."""

    own: KeyPair
    listener: bytes


class AcceptedConnection(Protocol):
    """An accepted connection, perhaps from the expected server or scheduler."""

    lost: bool

    def serve(self, route: list[bytes], longest: int) -> None:
        """Prepare for blocking reads by `frame`.

        Expected messages begin with the parts ``route`` and have at most ``longest`` bytes.
        """

    def frame(self, flags: int) -> bytes | ZmtpMessage | None:
        """Return the next frame; None if it has not arrived completely.

        A message that does not begin with the route, or is too long, is returned as a whole.

        Args:
            flags: 0 to wait up to 0.1 s for data, or `socket.MSG_DONTWAIT` not to wait.
        """

    def send_frame(self, frame: bytes) -> bool:
        """Send a frame; return False if `flush` must send the rest."""

    def flush(self) -> bool:
        """Send more of the remaining bytes; return False if some are still left."""

    def holds_more(self) -> bool:
        """Return whether the connection has unread data."""

    def close(self) -> None:
        """Send the remaining bytes and close the connection."""


_C = TypeVar("_C", bound=AcceptedConnection)


class ListeningSocket(Protocol[_C]):
    """A listening socket and its connections to unknown peers; it never blocks."""

    endpoint: str
    #: why the last unknown peer was disconnected; empty if none was
    fault: str

    def look(self, now: float, patience: float) -> bool:
        """Accept connections and read from them for up to ``patience`` (s).

        Return whether data arrived.
        """

    def message(self) -> tuple[_C, ZmtpMessage] | None:
        """Return the next complete message and its connection, or None if there is none."""

    def answer(self, stranger: _C, route: list[bytes], frame: bytes) -> None:
        """Send a message to a connection.

        The message is dropped if it cannot be sent at once.
        """

    def holds_more(self) -> bool:
        """Return whether a new connection or unread data is waiting."""

    def release(self, stranger: _C) -> None:
        """Stop reading this connection's messages; the caller reads them from now on."""

    def unwatch(self, connection: _C) -> None:
        """Stop watching a released connection for input."""

    def close(self) -> None:
        """Stop listening and close all connections that were not released."""
