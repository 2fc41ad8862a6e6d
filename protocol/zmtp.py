"""ZeroMQ's wire protocol without I/O: ZMTP 3.0 with mechanism NULL.

Functions make outgoing bytes; a `ZmtpStream` reads incoming bytes. https://rfc.zeromq.org/spec/23/ defines the format,
and https://rfc.zeromq.org/spec/37/ defines PING and PONG. docs/explanation/design.md, "Parts we do not write", says why
Pipistrelle has this module.
"""

from typing import Final, NamedTuple

#: signature, version 3.0, mechanism NULL, as-server 0, filler
GREETING: Final = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
#: begin and end of the mechanism's name in the greeting
_MECHANISM: Final = 12
_AS_SERVER: Final = 32
#: offsets in the greeting: the signature's last byte (its lowest bit is set since ZMTP 2), and the version
_LATER_AT: Final = 9
_VERSION_AT: Final = 10
_MORE: Final = 0x01
_LONG: Final = 0x02
_COMMAND: Final = 0x04
_FLAGS: Final = _MORE | _LONG | _COMMAND
_SHORTEST_LONG: Final = 256
#: bytes before the body of a frame
_SHORT_HEAD: Final = 2
_LONG_HEAD: Final = 9
#: maximum length of a command in bytes, and maximum number of parts of a message
_LONGEST_COMMAND: Final = 65536
_MOST_PARTS: Final = 64
#: length of a PING in bytes before its context, and at most with the context; the PONG repeats the context
_PING_HEAD: Final = 7
_PING_BYTES: Final = _PING_HEAD + 16
_STRANGE: Final = "does not speak ZeroMQ's protocol (ZMTP 3, mechanism NULL)"
#: bytes read at once; nearly every message arrives in one piece
RECEIVED_BYTES: Final = 16384
_MOST_RECEIVED_BYTES: Final = 1 << 20


#: maximum length of a server's message in bytes; longer messages are refused because they would fill the memory
LONGEST_NOTICE: Final = 1 << 30


class ZmtpError(Exception):
    """The peer violated the protocol.

    The text says how, such as ``refuses the connection``.
    """


class ZmtpMessage(NamedTuple):
    """A message's parts.

    A part that is too long is empty here, and ``left_out`` counts its bytes.
    """

    parts: list[bytes]
    left_out: int = 0


def framed(body: bytes, flags: int = 0) -> bytes:
    """Return the frame of a message part, by default of the message's last part."""
    size = len(body)
    if size < _SHORTEST_LONG:
        return b"%c%c%b" % (flags, size, body)
    return b"%c%b%b" % (flags | _LONG, size.to_bytes(8, "big"), body)


def parts_before(parts: list[bytes]) -> bytes:
    """Return the frames of ``parts``, which precede a message's last part."""
    return b"".join(framed(part, _MORE) for part in parts)


def sole_frame(data: bytes, before: bytes) -> bytes | None:
    """Return the last part of a message whose other parts have the frames ``before``.

    Return None unless ``data`` is exactly one such message. This function is fast, and a peer's bytes are nearly always
    exactly one message.
    """
    if data.startswith(before):
        at = len(before)
        head = data[at : at + _LONG_HEAD]
        if len(head) >= _SHORT_HEAD:
            if head[0] == 0:
                at += _SHORT_HEAD
                if len(data) == at + head[1]:
                    return data[at:]
            elif head[0] == _LONG and len(data) == at + _LONG_HEAD + int.from_bytes(head[1:], "big"):
                return data[at + _LONG_HEAD :]
    return None


class ZmtpStream:
    """A parser of a peer's bytes: its greeting and READY, then messages.

    Bytes may be fed in pieces of any length. `answers` returns our READY, and a PONG for each PING. Memory use is at
    most a few times the peer's longest message.

    Args:
        kind: our type of socket: ``b"REQ"``, ``b"ROUTER"``.
        wanted: types of sockets that may connect to ours; a peer that does not state its type may connect, too.
        longest: maximum length of a message in bytes, all parts together; parts beyond it are skipped.
        farthest: maximum length of a frame that may be skipped, in bytes.
    """

    __slots__ = (
        "_answers",
        "_buffer",
        "_farthest",
        "_greeted",
        "_kind",
        "_left_out",
        "_longest",
        "_parts",
        "_size",
        "_skip",
        "_wanted",
        "at_rest",
        "ready",
    )

    def __init__(self, kind: bytes, wanted: tuple[bytes, ...], *, longest: int, farthest: int) -> None:
        self._kind = kind
        self._wanted = wanted
        self._buffer = bytearray()
        self._answers = b""
        self._greeted = False
        #: whether the ZeroMQ handshake is complete
        self.ready = False
        #: whether no part of the next message has arrived, so that `sole_frame` may be tried
        self.at_rest = False
        self._parts: list[bytes] = []
        #: number of bytes of the parts that have arrived, and of the skipped ones
        self._size = 0
        self._left_out = 0
        #: number of bytes still to be skipped
        self._skip = 0
        self.allow(longest, farthest)

    def allow(self, longest: int, farthest: int) -> None:
        """Set the limits for later messages, in bytes.

        ``longest`` is the most for a message. ``farthest`` is the most for a frame that may be skipped.
        """
        self._longest = longest
        self._farthest = farthest

    def feed(self, data: bytes) -> None:
        """Append bytes received from the peer."""
        self.at_rest = False
        if self._skip:
            read_over = min(self._skip, len(data))
            self._skip -= read_over
            data = data[read_over:]
        self._buffer += data

    def answers(self) -> bytes:
        """Return the bytes that must be sent to the peer; each byte is returned once."""
        answers, self._answers = self._answers, b""
        return answers

    @property
    def held(self) -> int:
        """The number of received bytes in memory."""
        return len(self._buffer) + self._size

    @property
    def convenient(self) -> int:
        """The number of bytes to ask the socket for next, so that few reads are needed."""
        missing = self._skip
        head = self._head()
        if head is not None:
            missing += sum(head[1:]) - len(self._buffer)
        return min(max(missing, RECEIVED_BYTES), _MOST_RECEIVED_BYTES)

    def message(self) -> ZmtpMessage | None:
        """Return the next message; None if more bytes are needed.

        Raises:
            ZmtpError: if the bytes are not ZMTP, or a frame is too long to skip.
        """
        if not self.ready and not self.shake_hands():
            return None
        while (frame := self._frame()) is not None:
            flags, body = frame
            if flags & _COMMAND:
                self._obey(body)
                continue
            self._parts.append(body)
            self._size += len(body)
            if not flags & _MORE:
                message = ZmtpMessage(self._parts, self._left_out)
                self._parts, self._size, self._left_out = [], 0, 0
                self.at_rest = not self._buffer
                return message
            if len(self._parts) == _MOST_PARTS:
                raise ZmtpError(f"sent a message of more than {_MOST_PARTS} parts")
        self.at_rest = not (self._buffer or self._parts or self._skip or self._left_out)
        return None

    def shake_hands(self) -> bool:
        """Read the peer's greeting and READY; return whether both have arrived.

        Raises:
            ZmtpError: if the peer is not a suitable ZeroMQ socket.
        """
        # Check every byte as it arrives: another kind of peer may send less than a greeting and then wait.
        said = self._buffer
        if not self._greeted:
            if (
                (said and said[0] != GREETING[0])
                or (len(said) > _LATER_AT and not said[_LATER_AT] & 1)
                or (len(said) > _VERSION_AT and said[_VERSION_AT] < GREETING[_VERSION_AT])
            ):
                raise ZmtpError(_STRANGE)
            if len(said) < len(GREETING):
                return False
            mechanism = said[_MECHANISM:_AS_SERVER]
            if mechanism != GREETING[_MECHANISM:_AS_SERVER]:
                encrypted = mechanism.startswith(b"CURVE")
                raise ZmtpError("wants an encrypted connection (--curve)" if encrypted else _STRANGE)
            del said[: len(GREETING)]
            self._greeted = True
            properties = b"\x0bSocket-Type" + _counted(self._kind) + b"\x08Identity" + _counted(b"")
            self._answers += framed(b"\x05READY" + properties, _COMMAND)
        frame = self._frame()
        if frame is None:
            return False
        flags, body = frame
        if not flags & _COMMAND or not body.startswith(b"\x05READY"):
            raise ZmtpError("refuses the connection")
        kind = _socket_type(body[6:])
        if kind and kind not in self._wanted:
            wanted = " or ".join(name.decode() for name in self._wanted)
            raise ZmtpError(f"is a socket of type {kind[:20].decode('ascii', 'replace')!r}, not {wanted}")
        self.ready = True
        self.at_rest = not said
        return True

    def _head(self) -> tuple[int, int, int] | None:
        """Return the next frame's flags, length of head and length of body.

        Return None if the head is incomplete.
        """
        said = self._buffer
        if not self._greeted or len(said) < _SHORT_HEAD:
            return None
        if not said[0] & _LONG:
            return said[0], _SHORT_HEAD, said[1]
        if len(said) < _LONG_HEAD:
            return None
        return said[0], _LONG_HEAD, int.from_bytes(said[1:_LONG_HEAD], "big")

    def _frame(self) -> tuple[int, bytes] | None:
        if self._skip:
            return None
        if self._buffer and self._buffer[0] & ~_FLAGS:
            raise ZmtpError(_STRANGE)
        head = self._head()
        if head is None:
            return None
        flags, begin, size = head
        if (flags & _COMMAND and size > _LONGEST_COMMAND) or not (self.ready or flags & _COMMAND):
            raise ZmtpError(_STRANGE)
        if size > self._farthest:
            raise ZmtpError(f"announced a message of {size:,} bytes; at most {self._farthest:,} are allowed")
        if not flags & _COMMAND and self._size + size > self._longest:
            return self._read_over(flags, begin, size)
        end = begin + size
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as said:
            body = bytes(said[begin:end])
        del self._buffer[:end]
        return flags, body

    def _read_over(self, flags: int, begin: int, size: int) -> tuple[int, bytes] | None:
        """Remove a body that is too long, and return an empty frame with the same flags.

        The rest of the body is skipped when it arrives. Return None if the next frame is incomplete.
        """
        there = min(len(self._buffer) - begin, size)
        del self._buffer[: begin + there]
        self._buffer[:0] = bytes((flags & ~_LONG, 0))
        self._left_out += size
        self._skip = size - there
        return self._frame()

    def _obey(self, command: bytes) -> None:
        if command.startswith(b"\x04PING"):
            self._answers += framed(b"\x04PONG" + command[_PING_HEAD:_PING_BYTES], _COMMAND)


def _counted(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


def _socket_type(properties: bytes) -> bytes:
    """Return the Socket-Type in a READY's properties; empty if it is missing."""
    while properties:
        name, rest = properties[1 : 1 + properties[0]], properties[1 + properties[0] :]
        size = int.from_bytes(rest[:4], "big")
        if name.lower() == b"socket-type":
            return rest[4 : 4 + size]
        properties = rest[4 + size :]
    return b""
