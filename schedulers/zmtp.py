"""A REQ socket's side of one ZeroMQ connection, on a plain socket: ZMTP 3.0, mechanism NULL.

libzmq hands every message from one thread to another at each end. A scheduler that has but one connection, and waits
whenever it does not think, needs none of that: without it a round trip takes a third less (benchmarks/wire.py), and the
end of the server's process is seen at once. What is on the wire is the same: https://rfc.zeromq.org/spec/23/.
"""

import re
import socket
import time
from math import inf
from typing import Any, Final

from pipistrelle.protocol.errors import PipistrelleError

_TCP: Final = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:.]+\]|[^:/\[\]*;]+):(?P<port>[0-9]{1,5})")
_MAX_PORT: Final = 65535
#: how long to wait between two attempts to connect, in seconds
RETRY_S: Final = 0.05
#: signature, version 3.0, mechanism NULL, as no server, filler
_GREETING: Final = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
_MORE: Final = 0x01
_LONG: Final = 0x02
_COMMAND: Final = 0x04
_SHORTEST_LONG: Final = 256
_RECEIVED_BYTES: Final = 16384
_READY: Final = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ\x08Identity\x00\x00\x00\x00"
#: the empty part that a REQ puts before what it sends, and that comes before what it is answered
_DELIMITER: Final = b"\x01\x00"
#: commands of a peer are this long at most, in bytes
_LONGEST_COMMAND: Final = 65536


class AddressError(PipistrelleError):
    """What shall lead to the server is neither an endpoint nor a connection file."""


class ConnectionLost(Exception):
    """There is no connection, or no more; its text says why."""


class Connection:
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

    __slots__ = ("_address", "_family", "_left", "_socket", "endpoint")

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._family, self._address = _address(endpoint)
        self._socket = socket.socket()
        #: what came after the message that was read last
        self._left = b""
        self._socket.close()

    def connect(self, deadline: float) -> None:
        """Connect, or connect again, as soon as somebody listens.

        Parameters
        ----------
        deadline
            until when to try, in seconds of `time.monotonic`.

        Raises
        ------
        ConnectionLost
            when nobody did until then; its text says what became of the last attempt.
        AddressError
            when nobody ever will.
        """
        while True:
            try:
                self._open(deadline)
                return
            except (ConnectionLost, TimeoutError) as error:
                reason = str(error)
            except (OSError, UnicodeError) as error:
                reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
                # A file that is not there may come; a name that is too long, or that may not be used, will not do.
                if self._family == socket.AF_UNIX and not isinstance(error, (ConnectionError, FileNotFoundError)):
                    self.close()
                    raise AddressError(
                        f"cannot connect ({reason})", where=self.endpoint, expected="tcp://HOST:PORT or ipc://PATH"
                    ) from None
            self.close()
            if time.monotonic() + RETRY_S >= deadline:
                raise ConnectionLost(reason)
            time.sleep(RETRY_S)

    def _open(self, deadline: float) -> None:
        self.close()
        self._left = b""
        family: int = self._family
        address: Any = self._address
        if family != socket.AF_UNIX:
            host, port = address
            family, _, _, _, address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self.limit(deadline)
        self._socket.connect(address)
        if family != socket.AF_UNIX:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(_GREETING)
        greeting = self._exactly(len(_GREETING))
        if greeting[0] != 0xFF or not greeting[9] & 1 or greeting[10] < 3 or greeting[12:32].rstrip(b"\0") != b"NULL":
            raise ConnectionLost("what listens there does not speak ZeroMQ's protocol (ZMTP 3, mechanism NULL)")
        self._socket.sendall(_framed(_READY, _COMMAND))
        flags, body = self._frame()
        if not flags & _COMMAND or not body.startswith(b"\x05READY"):
            raise ConnectionLost("what listens there refuses the connection")

    def limit(self, deadline: float) -> None:
        """Let what waits from now on raise `TimeoutError` at this time of `time.monotonic`; inf: never."""
        self._socket.settimeout(None if deadline == inf else max(deadline - time.monotonic(), 1e-3))

    def send(self, message: bytes) -> None:
        """Send a message; one that does not arrive shows when the answer is awaited."""
        size = len(message)
        try:
            if size < _SHORTEST_LONG:
                self._socket.sendall(b"\x01\x00\x00%c%b" % (size, message))
            else:
                self._socket.sendall(b"\x01\x00\x02%b%b" % (size.to_bytes(8, "big"), message))
        except (ConnectionError, TimeoutError):  # what it has sent before can still be read
            pass

    def receive(self) -> bytes:
        """Return the next message.

        Raises
        ------
        ConnectionLost
            when the peer has closed the connection.
        TimeoutError
            when the limit is over.
        """
        if not self._left:
            # Nearly every message comes in one piece.
            try:
                data = self._socket.recv(_RECEIVED_BYTES)
            except ConnectionError:
                raise ConnectionLost("the connection was closed") from None
            if data[:3] == b"\x01\x00\x00" and len(data) == data[3] + 4:
                return data[4:]
            if data[:3] == b"\x01\x00\x02" and len(data) == int.from_bytes(data[3:11], "big") + 11:
                return data[11:]
            if not data:
                raise ConnectionLost("the connection was closed")
            self._left = data
        flags, body = self._part()
        if flags & ~_LONG == _MORE and not body:
            flags, body = self._part()
        if flags & _MORE:
            raise ConnectionLost("a message has several parts")
        return body

    def _part(self) -> tuple[int, bytes]:
        """Return the flags and body of the next frame that is no command; a PING is answered."""
        while True:
            flags, body = self._frame()
            if not flags & _COMMAND:
                return flags, body
            if body.startswith(b"\x04PING"):
                self._socket.sendall(_framed(b"\x04PONG" + body[7:], _COMMAND))

    def _frame(self) -> tuple[int, bytes]:
        flags = self._exactly(1)[0]
        size = int.from_bytes(self._exactly(8 if flags & _LONG else 1), "big")
        if flags & _COMMAND and size > _LONGEST_COMMAND:
            raise ConnectionLost("what listens there does not speak ZeroMQ's protocol")
        return flags, self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        """Return so many bytes more."""
        data = self._left
        if len(data) < size:
            pieces, missing = [data], size - len(data)
            while missing > 0:
                try:
                    piece = self._socket.recv(min(max(missing, _RECEIVED_BYTES), 1 << 20))
                except ConnectionError:
                    piece = b""
                if not piece:
                    raise ConnectionLost("the connection was closed")
                pieces.append(piece)
                missing -= len(piece)
            data = b"".join(pieces)
        self._left = data[size:]
        return data[:size]

    def close(self) -> None:
        """Close the connection; what was sent still leaves."""
        self._socket.close()


def _address(endpoint: str) -> "tuple[socket.AddressFamily, str | tuple[str, int]]":
    """Return what a socket is told to connect to."""
    if endpoint.startswith("ipc://"):
        path = endpoint.removeprefix("ipc://")
        if path and "\0" not in path:
            return socket.AF_UNIX, path
    match = _TCP.fullmatch(endpoint)
    if match is None or not 0 < int(match["port"]) <= _MAX_PORT:
        raise AddressError("cannot connect to this", where=endpoint, expected="tcp://HOST:PORT or ipc://PATH")
    return socket.AF_UNSPEC, (match["host"].strip("[]"), int(match["port"]))


def _framed(body: bytes, flags: int) -> bytes:
    if len(body) < _SHORTEST_LONG:
        return bytes((flags, len(body))) + body
    return bytes((flags | _LONG,)) + len(body).to_bytes(8, "big") + body
