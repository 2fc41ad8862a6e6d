"""A REQ socket's side of one ZeroMQ connection, on a plain socket.

libzmq hands every message from one thread to another at each end. A scheduler has one connection and waits whenever it
does not think, so it needs none of that. Without it a round trip takes less than three quarters of the time
(docs/explanation/design.md, "Parts we do not write"), and the end of the server's process shows at once.
What is on the wire is the same (protocol/zmtp.py).
"""

import re
import socket
import time
from contextlib import suppress
from math import inf
from typing import Any, Final

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.zmtp import (
    GREETING,
    LONGEST_NOTICE,
    RECEIVED_BYTES,
    ZmtpError,
    ZmtpMessage,
    ZmtpStream,
    framed,
    parts_before,
    sole_frame,
)

_TCP: Final = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:.]+\]|[^:/\[\]*;]+):(?P<port>[0-9]{1,5})")
_MAX_PORT: Final = 65535
#: the empty part that a REQ puts before what it sends, and that comes before what it is answered
_DELIMITER: Final = parts_before([b""])
#: socket types that answer a REQ
_ANSWERING: Final = (b"ROUTER", b"REP")


class AddressError(PipistrelleError):
    """What shall lead to the server is neither an endpoint nor a connection file."""


class ConnectionLost(Exception):
    """There is no connection, or no more; its text says why."""


class HandshakeRefused(ConnectionLost):
    """Somebody is there who will never take these keys, or shows others; the text says which."""


class ZmtpConnection:
    """Messages of one part each, to and from a ROUTER or REP.

    Parameters
    ----------
    endpoint
        ``tcp://HOST:PORT`` or ``ipc://PATH``.

    Raises
    ------
    AddressError
        when the endpoint is none.
    """

    __slots__ = ("_deadline", "_family", "_path", "_place", "_socket", "_stream", "endpoint")

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        #: where to connect to: the path of a Unix socket, else host and port
        self._path, self._place = address_of(endpoint)
        self._family = socket.AF_UNIX if self._path else socket.AF_UNSPEC
        self._socket = socket.socket()
        self._stream = _stream()
        self._deadline = inf
        self._socket.close()

    def connect(self, deadline: float) -> None:
        """Connect, or connect again, to whoever listens now; ``deadline`` is a time of `time.monotonic`.

        Raises
        ------
        ConnectionLost
            when there is nobody, or nobody of our kind.
        TimeoutError
            when who is there has not said what he is until the deadline.
        AddressError
            when there never will be anybody.
        """
        try:
            self._open(deadline)
        except (OSError, UnicodeError, ConnectionLost) as error:
            self.close()
            if isinstance(error, ConnectionLost) or (isinstance(error, TimeoutError) and error.errno is None):
                raise
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            if _hopeless(error, self._family):
                raise AddressError(
                    f"cannot connect ({reason})", where=self.endpoint, expected="tcp://HOST:PORT or ipc://PATH"
                ) from None
            raise ConnectionLost(reason) from None

    def _open(self, deadline: float) -> None:
        if self._family == socket.AF_UNIX:
            self._reach(socket.AF_UNIX, self._path, deadline)
        else:
            host, port = self._place
            places = socket.getaddrinfo(host, port, self._family, socket.SOCK_STREAM)
            left = len(places)
            for family, _, _, _, address in places:  # a name can have several, and nobody listen at some
                now = time.monotonic()
                try:
                    self._reach(family, address, now + (deadline - now) / left)
                    break
                except OSError:
                    left -= 1
                    if not left:
                        raise
            self.limit(deadline)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._shake_hands()

    def _reach(self, family: int, address: Any, deadline: float) -> None:
        self.close()
        self._stream = _stream()
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self.limit(deadline)
        self._socket.connect(address)

    def _shake_hands(self) -> None:
        self._socket.sendall(GREETING)
        try:
            while not self._stream.shake_hands():
                self._read()
        except ZmtpError as error:
            raise _strange(error) from None
        except ConnectionLost as lost:  # libzmq says no word if the handshake is not of its kind
            raise ConnectionLost(f"{lost} in the handshake; perhaps it wants --curve") from None
        self._answer()

    def limit(self, deadline: float) -> None:
        """Let what waits from now on raise `TimeoutError` at this time of `time.monotonic`; inf: never."""
        self._deadline = deadline
        self._socket.settimeout(None if deadline == inf else max(deadline - time.monotonic(), 1e-3))

    def send(self, message: bytes) -> None:
        """Send a message; one that does not arrive shows when the answer is awaited.

        Raises
        ------
        ConnectionLost
            when it cannot even be tried.
        """
        try:
            self._socket.sendall(_DELIMITER + framed(message))
        except (ConnectionError, TimeoutError):  # what it has sent before can still be read
            pass
        except OSError as error:
            raise _broken(error) from None

    def receive(self) -> bytes:
        """Return the next message.

        Raises
        ------
        ConnectionLost
            when the peer has closed the connection.
        TimeoutError
            when the limit is over.
        """
        if self._stream.at_rest:
            data = self._some(RECEIVED_BYTES)
            body = sole_frame(data, _DELIMITER)
            if body is not None:
                return body
            self._stream.feed(data)
        parts = self._message().parts
        if len(parts) > 1 and not parts[0]:
            del parts[0]
        if len(parts) > 1:
            raise ConnectionLost("a message has several parts")
        return parts[0]

    def _message(self) -> ZmtpMessage:
        try:
            while (message := self._stream.message()) is None:
                self._read()
        except ZmtpError as error:
            raise _strange(error) from None
        self._answer()
        return message

    def _read(self) -> None:
        """Answer what has been asked so far, and take what has come since, at least one byte."""
        self._answer()
        self._check_time()
        self._stream.feed(self._some(self._stream.convenient))

    def _answer(self) -> None:
        if answers := self._stream.answers():
            with suppress(OSError):  # it shows when more is read
                self._socket.sendall(answers)

    def _some(self, most: int) -> bytes:
        """Return what has come, at least one byte."""
        try:
            data = self._socket.recv(most)
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:  # ours, not that of a network that is gone
                raise
            raise _broken(error) from None
        if not data:
            raise ConnectionLost("the connection was closed")
        return data

    def _check_time(self) -> None:
        """Raise TimeoutError if the limit is over, however little each piece was late."""
        if self._deadline < inf:
            if time.monotonic() >= self._deadline:
                raise TimeoutError("timed out")
            self.limit(self._deadline)

    def close(self) -> None:
        """Close the connection; what was sent still leaves."""
        self._socket.close()


def address_of(endpoint: str) -> tuple[str, tuple[str, int]]:
    """Return the path of a Unix socket, empty if it is none, and the host and port else; AddressError if neither."""
    if endpoint.startswith("ipc://"):
        path = endpoint.removeprefix("ipc://")
        if path and "\0" not in path:
            return path, ("", 0)
    match = _TCP.fullmatch(endpoint)
    if match is None or not 0 < int(match["port"]) <= _MAX_PORT:
        raise AddressError("cannot connect to this", where=endpoint, expected="tcp://HOST:PORT or ipc://PATH")
    return "", (match["host"].strip("[]"), int(match["port"]))


def _broken(error: OSError) -> ConnectionLost:
    what = "was closed" if isinstance(error, ConnectionError) else f"is broken: {error.strerror or error}"
    return ConnectionLost(f"the connection {what}")


def _hopeless(error: OSError | UnicodeError, family: int) -> bool:
    """Tell whether connecting will never do: for a name that none can have, or a file that may not be used.

    A file that is not there yet may come; so may room in the queue of a server that is busy.
    """
    if family != socket.AF_UNIX:
        return isinstance(error, UnicodeError)
    return not isinstance(error, ConnectionError | FileNotFoundError | BlockingIOError)


def _stream() -> ZmtpStream:
    return ZmtpStream(b"REQ", _ANSWERING, longest=LONGEST_NOTICE, farthest=LONGEST_NOTICE)


def _strange(error: ZmtpError) -> ConnectionLost:
    return ConnectionLost(f"what listens there {error}")
