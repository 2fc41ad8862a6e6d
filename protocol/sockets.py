"""What both sides ask of the sockets that they listen at, and the keys of those that are encrypted (CurveZMQ)."""

import re
from typing import Final, NamedTuple, Protocol, TypeVar

from pipistrelle.protocol.zmtp import ZmtpMessage

_LOOPBACK: Final = re.compile(r"tcp://(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[^:]*)?")


def is_loopback(endpoint: str) -> bool:
    """Tell whether an endpoint is of this machine alone: a Unix socket's, or one of loopback.

    Other names and interfaces count as of others, whatever they stand for today.
    """
    return endpoint.startswith("ipc://") or _LOOPBACK.fullmatch(endpoint) is not None


class KeyPair(NamedTuple):
    """Whoever has the secret key is who the public one names; both are Z85, 40 characters each."""

    public: bytes
    secret: bytes


class ListenerKeys(NamedTuple):
    """The keys of who listens, and the public keys of those who may come; None: all who know the listener's."""

    own: KeyPair
    known: frozenset[bytes] | None = None


class CallerKeys(NamedTuple):
    """The keys of who connects, and the public key of who must be there."""

    own: KeyPair
    listener: bytes


class AcceptedConnection(Protocol):
    """A connection to who may be the peer that is waited for."""

    lost: bool

    def serve(self, route: list[bytes], longest: int) -> None:
        """Wait a tick for what comes and goes from now on; messages have the parts of ``route`` before their frame."""

    def frame(self, flags: int) -> bytes | ZmtpMessage | None:
        """Return the next frame, or a message that is made otherwise; None if it is not whole yet."""

    def send_frame(self, frame: bytes) -> bool:
        """Send a frame; False if some of it is left for `flush`."""

    def flush(self) -> bool:
        """Send some of what is left; False if there is still more."""

    def holds_more(self) -> bool:
        """Tell whether there is something to read."""

    def close(self) -> None:
        """Close it; what was sent still leaves."""


_C = TypeVar("_C", bound=AcceptedConnection)


class ListeningSocket(Protocol[_C]):
    """Who connects; whatever strangers do, nothing of this waits for them."""

    endpoint: str
    #: what was wrong with the stranger that was sent away last; empty if none was
    fault: str

    def look(self, now: float, patience: float) -> bool:
        """Take who comes and read what they say; wait for it, for so many seconds at most."""

    def message(self) -> tuple[_C, ZmtpMessage] | None:
        """Return the next message that was read, and whose it is."""

    def answer(self, stranger: _C, route: list[bytes], frame: bytes) -> None:
        """Send a message, if it is taken at once."""

    def holds_more(self) -> bool:
        """Tell whether somebody has come, or said something."""

    def release(self, stranger: _C) -> None:
        """Leave a connection to who serves it."""

    def unwatch(self, connection: _C) -> None:
        """Do not look any more whether something comes from a connection that was released."""

    def close(self) -> None:
        """Listen no more, and close the connections of all who were not released."""
