"""A connection to the server's socket, from an unknown peer or from the scheduler."""

import socket
import struct
from contextlib import suppress
from typing import Final

from pipistrelle.protocol.frames import MAX_FRAME_BYTES
from pipistrelle.protocol.zmtp import (
    GREETING,
    RECEIVED_BYTES,
    ZmtpMessage,
    ZmtpStream,
    framed,
    parts_before,
    sole_frame,
)
from pipistrelle.server.transport.peer import TICK_MS

#: types of ZeroMQ sockets that can connect to a ROUTER
_ASKING: Final = (b"REQ", b"DEALER", b"ROUTER")
#: longest message accepted from an unknown peer (bytes); a HELLO has a few hundred
LONGEST_HELLO: Final = 512 * 1024
#: longer frames are skipped, up to this length, so that their sender gets an error message
FARTHEST: Final = 16 * MAX_FRAME_BYTES
#: a tick as the kernel's struct timeval
_TICK: Final = struct.pack("ll", 0, 1000 * TICK_MS)
#: number of reads before a connection is closed while the peer still sends
_LAST_READS: Final = 64


class RouterConnection:
    """A connection that the server has accepted; `close` also closes its socket.

    Reads do not block until `serve` is called. Until then, ``longest`` is the length (bytes) of the longest message
    accepted.
    """

    __slots__ = ("_before", "_socket", "_stream", "_unsent", "heard", "lost")

    def __init__(self, sock: socket.socket, longest: int = LONGEST_HELLO) -> None:
        self._socket = sock
        self._stream = ZmtpStream(b"ROUTER", _ASKING, longest=longest, farthest=FARTHEST)
        #: bytes before the frame in each message to and from the scheduler
        self._before = b""
        self._unsent = memoryview(b"")
        #: value of its listener's message count at its last message
        self.heard = 0
        self.lost = False
        sock.setblocking(False)
        with suppress(OSError):  # not a TCP socket, or already closed
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(GREETING)

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    @property
    def ready(self) -> bool:
        """Whether the peer has completed the handshake."""
        return self._stream.ready

    @property
    def held(self) -> int:
        """Number of bytes received and kept in memory."""
        return self._stream.held

    def read(self) -> None:
        """Read received bytes; `message` returns the messages in them."""
        data = self._receive(self._stream.convenient, 0)
        if data:
            self._stream.feed(data)

    def message(self) -> ZmtpMessage | None:
        """Return the next message already read, or None; raise ZmtpError if it is invalid."""
        message = self._stream.message()
        if (answers := self._stream.answers()) and not self._unsent:  # no answers for a peer that does not read
            self.send(answers)
        return message

    def serve(self, route: list[bytes], longest: int = MAX_FRAME_BYTES) -> None:
        """Prepare for reads that block for at most 0.1 s.

        Each message of the scheduler begins with the frames ``route``, as its HELLO did. A message of more than
        ``longest`` bytes is skipped.
        """
        self._before = parts_before(route)
        self._stream.allow(longest, FARTHEST)
        # Python's own timeout would need one more system call per message.
        self._socket.setblocking(True)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TICK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TICK)

    def frame(self, flags: int) -> bytes | ZmtpMessage | None:
        """Return the content of the scheduler's next message; None if it is incomplete.

        A message that has other parts than the route and one frame is returned as a whole.
        ``flags`` is 0 to wait for 0.1 s, or `socket.MSG_DONTWAIT` not to wait. Raise ZmtpError if the connection is
        unusable.
        """
        if not self._stream.at_rest:
            message = self.message()
            if message is not None:
                return message
        data = self._receive(RECEIVED_BYTES if self._stream.at_rest else self._stream.convenient, flags)
        if not data:
            return None
        if self._stream.at_rest:
            frame = sole_frame(data, self._before)
            if frame is not None:
                return frame
        self._stream.feed(data)
        return self.message()

    def send_frame(self, frame: bytes) -> bool:
        """Send a frame to the scheduler; return False if `flush` must send the rest."""
        return self.send(self._before + framed(frame))

    def send(self, data: bytes) -> bool:
        """Send bytes; return False if some are still unsent.

        A closed connection is only noticed by reading.
        """
        if self._unsent:
            self._unsent = memoryview(bytes(self._unsent) + data)
            return self.flush()
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return True
        if sent == len(data):
            return True
        self._unsent = memoryview(data)[sent:]
        return False

    def flush(self) -> bool:
        """Send more of the unsent bytes; return False if some are still unsent."""
        try:
            if self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent = memoryview(b"")
        return not self._unsent

    def holds_more(self) -> bool:
        """Return whether the peer has sent data that is not read yet."""
        if self.lost:
            return False
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def _receive(self, most: int, flags: int) -> bytes:
        """Return received bytes; empty if none have arrived or the peer has disconnected."""
        try:
            data = self._socket.recv(most, flags)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.lost = True
        return data

    def close(self) -> None:
        """Close the connection; data that was sent is still delivered."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            # Closing a TCP connection with unread data would reset it, and sent data would be lost.
            for _ in range(_LAST_READS):
                if not self._socket.recv(RECEIVED_BYTES, socket.MSG_DONTWAIT):
                    break
        self._socket.close()
