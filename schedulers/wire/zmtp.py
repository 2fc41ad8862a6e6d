"""A REQ socket's side of one ZeroMQ connection, on a plain socket: ZMTP 3.0, mechanism NULL.

libzmq hands every message from one thread to another at each end. A scheduler that has but one connection, and waits
whenever it does not think, needs none of that: without it a round trip takes a third less (benchmarks/wire.py), and the
end of the server's process is seen at once. What is on the wire is the same: https://rfc.zeromq.org/spec/23/.
"""

import re
import socket
import time
from contextlib import suppress
from math import inf
from typing import Any, Final

from pipistrelle.protocol.base.errors import PipistrelleError

_TCP: Final = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:.]+\]|[^:/\[\]*;]+):(?P<port>[0-9]{1,5})")
_MAX_PORT: Final = 65535
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
#: and its messages: what claims to be longer never comes, or would fill the memory
_LONGEST_MESSAGE: Final = 1 << 30
#: of the greeting: what comes before the version's minor number
_SIGNATURE_BYTES: Final = 11
_NO_PEER: Final = "what listens there does not speak ZeroMQ's protocol (ZMTP 3, mechanism NULL)"
#: socket types that answer a REQ
_ANSWERING: Final = (b"ROUTER", b"REP")


class AddressError(PipistrelleError):
    """What shall lead to the server is neither an endpoint nor a connection file."""


class ConnectionLost(Exception):
    """There is no connection, or no more; its text says why."""


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

    __slots__ = ("_deadline", "_family", "_left", "_path", "_place", "_socket", "endpoint")

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        #: where to connect to: the path of a Unix socket, else host and port
        self._path, self._place = _address(endpoint)
        self._family = socket.AF_UNIX if self._path else socket.AF_UNSPEC
        self._socket = socket.socket()
        #: what came after the message that was read last
        self._left = b""
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
        self._left = b""
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self.limit(deadline)
        self._socket.connect(address)

    def _shake_hands(self) -> None:
        self._socket.sendall(_GREETING)
        # Piece by piece: what is no peer may say less than a greeting, and then wait.
        if self._exactly(1)[0] != _GREETING[0]:
            raise ConnectionLost(_NO_PEER)
        signature = self._exactly(_SIGNATURE_BYTES - 1)
        if not signature[8] & 1 or signature[9] < _GREETING[10]:
            raise ConnectionLost(_NO_PEER)
        if self._exactly(len(_GREETING) - _SIGNATURE_BYTES)[1:21].rstrip(b"\0") != b"NULL":
            raise ConnectionLost(_NO_PEER)
        self._socket.sendall(_framed(_READY, _COMMAND))
        flags, body = self._frame()
        if not flags & _COMMAND or not body.startswith(b"\x05READY"):
            raise ConnectionLost("what listens there refuses the connection")
        kind = _socket_type(body[6:])
        if kind and kind not in _ANSWERING:
            name = kind.decode("ascii", "replace")
            raise ConnectionLost(f"what listens there is no server: a socket of type {name!r}, not ROUTER or REP")

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
        size = len(message)
        try:
            if size < _SHORTEST_LONG:
                self._socket.sendall(b"\x01\x00\x00%c%b" % (size, message))
            else:
                self._socket.sendall(b"\x01\x00\x02%b%b" % (size.to_bytes(8, "big"), message))
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
        if not self._left:
            # Nearly every message comes in one piece.
            data = self._some(_RECEIVED_BYTES)
            if data[:3] == b"\x01\x00\x00" and len(data) > 3 and len(data) == data[3] + 4:
                return data[4:]
            if data[:3] == b"\x01\x00\x02" and len(data) == int.from_bytes(data[3:11], "big") + 11:
                return data[11:]
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
                with suppress(OSError):  # it shows when more is read
                    self._socket.sendall(_framed(b"\x04PONG" + body[7:], _COMMAND))
            self._check_time()

    def _frame(self) -> tuple[int, bytes]:
        flags = self._exactly(1)[0]
        size = int.from_bytes(self._exactly(8 if flags & _LONG else 1), "big")
        if flags & _COMMAND and size > _LONGEST_COMMAND:
            raise ConnectionLost("what listens there does not speak ZeroMQ's protocol")
        if size > _LONGEST_MESSAGE:
            raise ConnectionLost(f"a message of {size:,} bytes was announced; {_LONGEST_MESSAGE:,} are the most")
        return flags, self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        """Return so many bytes more."""
        data = self._left
        if len(data) < size:
            pieces, missing = [data], size - len(data)
            while missing > 0:
                piece = self._some(min(max(missing, _RECEIVED_BYTES), 1 << 20))
                pieces.append(piece)
                missing -= len(piece)
                if missing > 0:
                    self._check_time()
            data = b"".join(pieces)
        self._left = data[size:]
        return data[:size]

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


def _address(endpoint: str) -> tuple[str, tuple[str, int]]:
    """Return the path of a Unix socket, empty if it is none, and the host and port else."""
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


def _socket_type(properties: bytes) -> bytes:
    """Return the Socket-Type among the properties of a READY; empty if it tells none."""
    while properties:
        name, rest = properties[1 : 1 + properties[0]], properties[1 + properties[0] :]
        size = int.from_bytes(rest[:4], "big")
        if name.lower() == b"socket-type":
            return rest[4 : 4 + size]
        properties = rest[4 + size :]
    return b""


def _framed(body: bytes, flags: int) -> bytes:
    if len(body) < _SHORTEST_LONG:
        return bytes((flags, len(body))) + body
    return bytes((flags | _LONG,)) + len(body).to_bytes(8, "big") + body
