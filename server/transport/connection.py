"""One connection to the server's socket: bytes in and out, first a stranger's and then perhaps the scheduler's."""

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

#: socket types whose messages a ROUTER takes
_ASKING: Final = (b"REQ", b"DEALER", b"ROUTER")
#: bytes of a stranger's message that are kept; a HELLO has some hundred
LONGEST_HELLO: Final = 512 * 1024
#: frames beyond their limit are read over, up to this length, so that their sender gets a text, not a silence
FARTHEST: Final = 16 * MAX_FRAME_BYTES
#: a tick as the kernel wants it
_TICK: Final = struct.pack("ll", 0, 1000 * TICK_MS)
#: how often what a peer still sends is read before its connection is closed
_LAST_READS: Final = 64


class RouterConnection:
    """A connection that was accepted; everything is done without waiting, until it is served.

    Parameters
    ----------
    sock
        the socket, which this closes.
    longest
        bytes of a stranger's message that are kept.
    """

    __slots__ = ("_before", "_socket", "_stream", "_unsent", "heard", "lost")

    def __init__(self, sock: socket.socket, longest: int = LONGEST_HELLO) -> None:
        self._socket = sock
        self._stream = ZmtpStream(b"ROUTER", _ASKING, longest=longest, farthest=FARTHEST)
        #: what comes before the frame in each message to and from the scheduler
        self._before = b""
        #: what could not be sent yet
        self._unsent = memoryview(b"")
        #: when something was last heard of it, as its listener counts
        self.heard = 0
        #: whether nothing more will come
        self.lost = False
        sock.setblocking(False)
        with suppress(OSError):  # it has no such thing, or has gone already
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(GREETING)

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    @property
    def ready(self) -> bool:
        """Whether the peer has shown that it speaks our protocol."""
        return self._stream.ready

    @property
    def held(self) -> int:
        """How many bytes of the peer's are kept."""
        return self._stream.held

    # -- strangers --------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Take what has come; `message` tells what it is."""
        data = self._receive(self._stream.convenient, 0)
        if data:
            self._stream.feed(data)

    def message(self) -> ZmtpMessage | None:
        """Return the next message of those that were read; None if there is none.

        Raises
        ------
        ZmtpError
            when the peer cannot be talked to.
        """
        message = self._stream.message()
        if (answers := self._stream.answers()) and not self._unsent:  # who takes no answers gets none
            self.send(answers)
        return message

    # -- the scheduler ----------------------------------------------------------------------------------------------

    def serve(self, route: list[bytes], longest: int = MAX_FRAME_BYTES) -> None:
        """Wait a tick for what comes and goes from now on; messages have the parts of ``route`` before their frame.

        A message of more than ``longest`` bytes is read over.
        """
        self._before = parts_before(route)
        self._stream.allow(longest, FARTHEST)
        # Not Python's own time limit: that takes one more system call for each message.
        self._socket.setblocking(True)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TICK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TICK)

    def frame(self, flags: int) -> bytes | ZmtpMessage | None:
        """Return the scheduler's next frame, or a message that is made otherwise; None if it is not whole yet.

        Parameters
        ----------
        flags
            0 to wait a tick for it, else `socket.MSG_DONTWAIT`.

        Raises
        ------
        ZmtpError
            when the scheduler cannot be talked to any more.
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
        """Send the scheduler a frame; False if some of it is left for `flush`."""
        return self.send(self._before + framed(frame))

    def send(self, data: bytes) -> bool:
        """Send bytes; False if some are left. Who is gone gets nothing: that shows when it is read from."""
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
        """Send some of what is left; False if there is still more."""
        try:
            if self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent = memoryview(b"")
        return not self._unsent

    def holds_more(self) -> bool:
        """Return whether there is something to read."""
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
        """Return what has come; nothing if nothing has, or never will again."""
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
        """Close the connection; what was sent still leaves."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            # A TCP connection that is closed with something unread is torn down, and what was sent with it.
            for _ in range(_LAST_READS):
                if not self._socket.recv(RECEIVED_BYTES, socket.MSG_DONTWAIT):
                    break
        self._socket.close()
