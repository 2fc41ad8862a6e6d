"""The client side (REQ) of one ZeroMQ connection, on a plain socket.

libzmq passes every message between two threads at each end. A scheduler has one connection and waits for it whenever it
does not decide, so it needs no second thread. A round trip then takes less than three quarters of the time
that libzmq needs (docs/explanation/design.md, "Parts we do not write"). The end of the server's process is noticed at
once. The bytes sent are the same as with libzmq (protocol/zmtp.py).
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
#: the empty part that precedes each message of a REQ socket and each reply to it
_DELIMITER: Final = parts_before([b""])
#: types of ZeroMQ sockets that may answer a REQ socket
_ANSWERING: Final = (b"ROUTER", b"REP")


class AddressError(PipistrelleError):
    """The server's address is neither an endpoint nor a connection file."""


class ConnectionLost(Exception):
    """The connection cannot be made or was lost; the text says why."""


class HandshakeRefused(ConnectionLost):
    """The peer rejects our keys, or has other keys than expected; the text says which."""


class ZmtpConnection:
    """A connection to a server's ROUTER or REP socket; each message has one part.

    Args:
        endpoint: ``tcp://HOST:PORT`` or ``ipc://PATH``.

    Raises:
        AddressError: the endpoint is invalid.
    """

    __slots__ = ("_deadline", "_family", "_path", "_place", "_socket", "_stream", "endpoint")

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        #: path of a Unix socket, or host and port
        self._path, self._place = address_of(endpoint)
        self._family = socket.AF_UNIX if self._path else socket.AF_UNSPEC
        self._socket = socket.socket()
        self._stream = _stream()
        self._deadline = inf
        self._socket.close()

    def connect(self, deadline: float) -> None:
        """Connect, or reconnect; ``deadline`` is a time of `time.monotonic`.

        Raises:
            ConnectionLost: no ZeroMQ socket of a suitable type listens.
            TimeoutError: the peer did not complete the handshake in time.
            AddressError: the address can never work.
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
            for family, _, _, _, address in places:  # a host name can have several addresses
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
        except ConnectionLost as lost:  # libzmq just closes if the mechanisms differ
            raise ConnectionLost(f"{lost} in the handshake; the server may require --curve") from None
        self._answer()

    def limit(self, deadline: float) -> None:
        """Make waits raise `TimeoutError` after ``deadline``.

        ``deadline`` is a time of `time.monotonic`; inf means never.
        """
        self._deadline = deadline
        self._socket.settimeout(None if deadline == inf else max(deadline - time.monotonic(), 1e-3))

    def send(self, message: bytes) -> None:
        """Send a message.

        Raise ConnectionLost if that is impossible. A message can be lost after sending. Reading the answer then fails.
        """
        try:
            self._socket.sendall(_DELIMITER + framed(message))
        except (ConnectionError, TimeoutError):  # messages that the peer sent before can still be read
            pass
        except OSError as error:
            raise _broken(error) from None

    def receive(self) -> bytes:
        """Return the next message from the peer.

        Raises:
            ConnectionLost: the peer closed the connection.
            TimeoutError: the time limit has passed.
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
        """Answer commands of the peer, then read at least one byte into the input buffer."""
        self._answer()
        self._check_time()
        self._stream.feed(self._some(self._stream.convenient))

    def _answer(self) -> None:
        if answers := self._stream.answers():
            with suppress(OSError):  # the next read reports the failure
                self._socket.sendall(answers)

    def _some(self, most: int) -> bytes:
        """Wait for data from the peer, and return at least one and at most ``most`` bytes."""
        try:
            data = self._socket.recv(most)
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:  # the limit's, not the network's
                raise
            raise _broken(error) from None
        if not data:
            raise ConnectionLost("the connection was closed")
        return data

    def _check_time(self) -> None:
        """Raise TimeoutError if the time limit has passed, even if data keeps arriving."""
        if self._deadline < inf:
            if time.monotonic() >= self._deadline:
                raise TimeoutError("timed out")
            self.limit(self._deadline)

    def close(self) -> None:
        """Close the connection; messages already sent still leave."""
        self._socket.close()


def address_of(endpoint: str) -> tuple[str, tuple[str, int]]:
    """Return (Unix path or "", (host, port)) of an endpoint.

    Raise AddressError if the endpoint is invalid.
    """
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
    """Return whether connecting can never succeed.

    This is so if the name is invalid or the file is unusable. Retrying may help if a file is missing or a server's
    queue is full.
    """
    if family != socket.AF_UNIX:
        return isinstance(error, UnicodeError)
    return not isinstance(error, ConnectionError | FileNotFoundError | BlockingIOError)


def _stream() -> ZmtpStream:
    return ZmtpStream(b"REQ", _ANSWERING, longest=LONGEST_NOTICE, farthest=LONGEST_NOTICE)


def _strange(error: ZmtpError) -> ConnectionLost:
    return ConnectionLost(f"the peer {error}")
