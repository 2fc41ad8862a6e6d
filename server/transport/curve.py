"""A listening socket for encrypted connections (CurveZMQ).

It checks the keys of peers. It replaces a `Listener`. libzmq disconnects peers without the right key within seconds and
delivers nothing from them. A `Doorway` limits such peers further; other limits are libzmq's options.
"""

import contextlib
import os
import socket
from collections import deque
from typing import Final

import zmq
from zmq.utils import z85

from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.frames import MAX_FRAME_BYTES, socket_event
from pipistrelle.protocol.sockets import ZMQ_DESCRIPTORS, ListenerKeys, check_descriptors
from pipistrelle.protocol.zmtp import ZmtpMessage
from pipistrelle.server.transport.connection import LONGEST_HELLO
from pipistrelle.server.transport.doorway import Doorway
from pipistrelle.server.transport.endpoint import BoundSocket
from pipistrelle.server.transport.listener import MOST_STRANGERS
from pipistrelle.server.transport.peer import LINGER_S, TICK_MS

#: time limit for a peer to prove its key (ms)
_HANDSHAKE_MS: Final = 5000
#: messages of one peer waiting to be read, and messages read at once
_AHEAD: Final = 2
_READ_AT_ONCE: Final = 64
#: frames up to this multiple of the limit are read, to report the error; a longer frame ends the connection
_FARTHEST: Final = 2
#: endpoint at which a socket asks which keys are known (https://rfc.zeromq.org/spec/27/)
_ZAP: Final = "inproc://zeromq.zap.01"
_MONITOR: Final = "inproc://strangers"
#: errors in handshakes of unknown peers; unknown keys are reported where they are checked
_FAULTS: Final[dict[int, str]] = {
    zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH: "uses no CURVE (--curve)",
    zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC: "has another key of this side (--server-key)",
}


class CurveStranger:
    """A peer whose key is accepted and which may become the scheduler."""

    __slots__ = ("_descriptor", "_listener", "_longest", "_peephole", "_route", "_unsent", "identity", "inbox", "lost")

    def __init__(self, listener: "CurveListener", identity: bytes, descriptor: int) -> None:
        self._listener = listener
        self._descriptor = descriptor
        self._peephole: socket.socket | None = None
        self._longest = LONGEST_HELLO
        self._route: list[bytes] = []
        self._unsent: bytes | None = None
        self.identity = identity
        self.inbox: deque[list[bytes]] = deque()
        self.lost = False

    def serve(self, route: list[bytes], longest: int) -> None:
        """Prepare for reads that block for at most 0.1 s.

        Each message of the scheduler begins with the frames ``route``, as its HELLO did.
        """
        self._route, self._longest = route, longest
        with contextlib.suppress(OSError):
            # libzmq reports a closed connection only among other events, which unknown peers could flood.
            self._peephole = socket.socket(fileno=os.dup(self._descriptor))

    def frame(self, flags: int) -> bytes | ZmtpMessage | None:
        """Return the content of the next message; None if none has arrived.

        A message that does not begin with the route, or is too long, is returned as a whole.

        ``flags`` is 0 to wait for 0.1 s, or `socket.MSG_DONTWAIT` not to wait.
        """
        if not self.inbox:
            self._listener.attend(0 if flags else TICK_MS)
        if not self.inbox and self._closed():
            self._listener.attend(TICK_MS)  # earlier messages may still be on their way through libzmq
            self.lost = not self.inbox
        if not self.inbox:
            return None
        message = bounded(self.inbox.popleft(), self._longest)
        return message if message.left_out or message.parts[:-1] != self._route else message.parts[-1]

    def _closed(self) -> bool:
        try:
            return self._peephole is not None and not self._peephole.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def send_frame(self, frame: bytes) -> bool:
        """Send a frame; return False if `flush` must send it.

        If the connection is closed, the frame is dropped.
        """
        self._unsent = frame
        return self.flush()

    def flush(self) -> bool:
        """Send the unsent frame; return False if that is not possible yet."""
        if self._unsent is not None:
            if not self._listener.send([self.identity, *self._route, self._unsent]):
                return False
            self._unsent = None
        return True

    def holds_more(self) -> bool:
        """Return whether the peer has sent data that is not read yet."""
        return bool(self.inbox) or self._listener.readable()

    def close(self) -> None:
        """Close the connection; sent data is still delivered."""
        self._listener.forget(self)
        if self._peephole is not None:
            self._peephole.close()


class CurveListener:
    """A listener for encrypted connections.

    It receives only messages of peers with known keys. ``longest`` is the length (bytes) of the longest
    message that the scheduler may send. libzmq closes the connection of a peer that sends a message twice as long.
    Raise EndpointError if the endpoint cannot be used.
    """

    def __init__(
        self, endpoint: str, keys: ListenerKeys, *, longest: int = MAX_FRAME_BYTES, option: str = "--endpoint"
    ) -> None:
        self._bound = BoundSocket(endpoint, option)
        #: the endpoint, with the actual port
        self.endpoint = self._bound.endpoint
        #: what was wrong with the last rejected peer; empty if none was rejected
        self.fault = ""
        self._told: set[str] = set()
        self._served: CurveStranger | None = None
        self._strangers: deque[tuple[CurveStranger, ZmtpMessage]] = deque()
        check_descriptors(ZMQ_DESCRIPTORS)
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._known = keys.known
        options = (
            (zmq.LINGER, int(1000 * LINGER_S)),
            (zmq.ROUTER_MANDATORY, 1),
            (zmq.RCVHWM, _AHEAD),
            (zmq.MAXMSGSIZE, _FARTHEST * longest),
            (zmq.HANDSHAKE_IVL, _HANDSHAKE_MS),
            (zmq.CURVE_SERVER, 1),
        )
        for name, value in options:
            self._socket.setsockopt(name, value)
        self._socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.own.public)
        self._socket.setsockopt(zmq.CURVE_SECRETKEY, keys.own.secret)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._judge = self._context.socket(zmq.REP)
        if keys.known is not None:
            self._socket.setsockopt(zmq.ZAP_DOMAIN, b"pipistrelle")  # every key is checked
            self._judge.bind(_ZAP)
            self._poller.register(self._judge, zmq.POLLIN)
        # No limit, so that nothing blocks: messages are read only before a scheduler is served, and then constantly.
        self._socket.monitor(_MONITOR, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        self._monitor: zmq.Socket[bytes] | None = self._context.socket(zmq.PAIR)
        self._monitor.setsockopt(zmq.RCVHWM, 0)
        self._monitor.connect(_MONITOR)
        # Only this process may connect. There is no file, which would remain if the process is killed.
        inner = f"pipistrelle-{os.urandom(16).hex()}"
        self._socket.setsockopt(zmq.IPC_FILTER_PID, os.getpid())
        self._socket.bind(f"ipc://@{inner}")
        self._doorway = Doorway(self._bound.socket, f"\0{inner}", MOST_STRANGERS)

    def look(self, now: float, patience: float) -> bool:
        """Accept peers and read messages for ``patience`` s; return whether any arrived."""
        return self.attend(0 if self._strangers else int(1000 * patience))

    def message(self) -> tuple[CurveStranger, ZmtpMessage] | None:
        """Return the next message already read, with its sender; None without messages."""
        return self._strangers.popleft() if self._strangers else None

    def answer(self, stranger: CurveStranger, route: list[bytes], frame: bytes) -> None:
        """Send a message to a peer, if it can be sent at once."""
        self.send([stranger.identity, *route, frame])

    def holds_more(self) -> bool:
        """Return whether any peer has sent a message that is not read yet."""
        return bool(self._strangers) or self.readable()

    def release(self, stranger: CurveStranger) -> None:
        """Let the caller read this peer's messages from now on, instead of this listener.

        `look` still returns when a message arrives.
        """
        self._served = stranger
        self._hush()

    def unwatch(self, connection: CurveStranger) -> None:
        """Do nothing, because all connections share one socket."""

    def attend(self, patience: int) -> bool:
        """Check keys of peers and read messages for ``patience`` ms.

        Return whether any message arrived.
        """
        ready = dict(self._poller.poll(patience))
        self._note_faults()
        if self._judge in ready:
            self._let_in()
        if self._socket in ready:
            self._read()
        return bool(ready)

    def _read(self) -> None:
        for _ in range(_READ_AT_ONCE):
            served = self._served
            if (served is not None and len(served.inbox) >= _AHEAD) or len(self._strangers) >= MOST_STRANGERS:
                return  # libzmq keeps the rest and limits each peer
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            identity, *parts = (frame.bytes for frame in frames)
            if served is not None and identity == served.identity:
                served.inbox.append(parts)
            elif parts:
                descriptor = -1
                with contextlib.suppress(zmq.ZMQError):  # the connection is already closed
                    descriptor = int(frames[-1].get(zmq.SRCFD))
                stranger = CurveStranger(self, identity, descriptor)
                self._strangers.append((stranger, bounded(parts, LONGEST_HELLO)))

    def _let_in(self) -> None:
        with contextlib.suppress(zmq.Again):
            version, request, *_, mechanism, key = self._judge.recv_multipart(zmq.NOBLOCK)
            known = self._known is not None and mechanism == b"CURVE" and z85.encode(key) in self._known
            if not known:
                self._blame("whose key is not among the known ones (--clients)")
            status = (b"200", b"OK") if known else (b"400", b"unknown key")
            self._judge.send_multipart([version, request, *status, b"", b""])

    def _note_faults(self) -> None:
        if self._monitor is None:
            return
        with contextlib.suppress(zmq.Again):
            while True:
                _, value = socket_event(self._monitor.recv_multipart(zmq.NOBLOCK))
                self._blame(f"that {_FAULTS.get(value, 'does not speak ZeroMQ with CURVE')}")

    def _blame(self, whom: str) -> None:
        """Log that a peer was rejected.

        ``whom`` says which peer and why, such as ``whose key is not known``. Each reason is logged only once, because
        there may be thousands of peers.
        """
        self.fault = f"a peer {whom}"
        if self.fault not in self._told:
            self._told.add(self.fault)
            logger().warning("turned away {}", self.fault)

    def _hush(self) -> None:
        if self._monitor is not None:
            self._socket.disable_monitor()
            self._monitor.close(0)
            self._monitor = None

    def send(self, parts: list[bytes]) -> bool:
        """Send a message; return False if not possible yet.

        If the peer's connection is closed, the message is dropped.
        """
        try:
            self._socket.send_multipart(parts, zmq.NOBLOCK)
        except zmq.Again:
            return False
        except zmq.ZMQError:
            pass
        return True

    def readable(self) -> bool:
        """Return whether a message has arrived."""
        return bool(self._socket.poll(0))

    def forget(self, stranger: CurveStranger) -> None:
        """Treat a peer as unknown from now on.

        Call this when the peer is no longer the server's scheduler.
        """
        if self._served is stranger:
            self._served = None

    def close(self) -> None:
        """Stop listening; the last message is still sent, within two seconds."""
        self._hush()
        self._judge.close(0)
        self._socket.close()
        self._context.term()
        self._doorway.close(LINGER_S)
        self._bound.remove_file()


def bounded(parts: list[bytes], longest: int) -> ZmtpMessage:
    """Return the frames ``parts`` as a message.

    If the frames together exceed ``longest`` bytes, an empty frame replaces the last one.
    """
    size = sum(map(len, parts))
    return ZmtpMessage(parts) if size <= longest else ZmtpMessage([*parts[:-1], b""], size)
