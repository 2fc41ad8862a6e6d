"""Limits on how much unknown peers can send to libzmq's encrypted socket.

libzmq alone would buffer an unknown peer's handshake up to the length of the longest allowed message. So a thread
passes the bytes between peers and libzmq, and passes only a few of them until libzmq has accepted the peer's key. The
thread parses only the beginning and type of each CurveZMQ command (https://rfc.zeromq.org/spec/26/).
"""

import contextlib
import os
import resource
import selectors
import socket
import threading
import time
from typing import Any, Final

#: most bytes passed on from a peer until its key is accepted; a handshake has about 700
_MOST_UNKNOWN: Final = 4096
#: length of a greeting (ZMTP 3)
_GREETING: Final = 64
#: most bytes read at once, and waiting to be passed on
_CHUNK: Final = 1 << 18
#: time (s) that an unknown peer may stay connected when there are too many
_STAY_S: Final = 1.0
#: pause (s) until room for another connection is checked again
_SOON_S: Final = 0.1
#: file descriptors of the process per peer; a connection takes two here and one in libzmq
_SHARE: Final = 12
#: detects a vanished machine within two minutes: idle time (s), interval (s) and number of probes
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


class _Passage:
    """A peer's connection, and the matching connection to libzmq."""

    def __init__(self, outer: socket.socket, inner: socket.socket) -> None:
        self.outer = outer
        self.inner = inner
        self.came = time.monotonic()
        #: {socket: bytes to be written there}
        self.unsent: dict[socket.socket, bytearray] = {outer: bytearray(), inner: bytearray()}
        self.ended: set[socket.socket] = set()
        self.known = False
        self._said = 0
        self._answers = bytearray()

    def other(self, end: socket.socket) -> socket.socket:
        return self.inner if end is self.outer else self.outer

    def wants(self, end: socket.socket) -> int:
        """Return the selector events (readable, writable) to wait for at ``end``.

        ``end`` is one of the two sockets.
        """
        reads = end not in self.ended and len(self.unsent[self.other(end)]) < _CHUNK
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self.unsent[end] else 0)

    def move(self, end: socket.socket, events: int) -> bool:
        """Copy the bytes that can be moved now.

        Return False if both connections must be closed.
        """
        try:
            if events & selectors.EVENT_READ and end not in self.ended:
                self._read(end)
            for one in (self.outer, self.inner):
                if self.unsent[one]:
                    with contextlib.suppress(BlockingIOError):
                        del self.unsent[one][: one.send(self.unsent[one])]
        except OSError:
            return False
        over = any(not self.unsent[self.other(end)] for end in self.ended)
        return not over and (self.known or self._said <= _MOST_UNKNOWN)

    def _read(self, end: socket.socket) -> None:
        try:
            data = end.recv(_CHUNK if self.known else _MOST_UNKNOWN)
        except BlockingIOError:
            return
        if not data:
            self.ended.add(end)
        if not self.known:
            if end is self.outer:
                self._said += len(data)
            else:
                self._answers += data
                self.known = _is_welcome(self._answers)
        self.unsent[self.other(end)] += data

    def close(self) -> None:
        self.outer.close()
        self.inner.close()


def _is_welcome(answers: bytearray) -> bool:
    """Return whether libzmq's answers include READY, which means the key is accepted."""
    at = _GREETING
    while len(answers) > at + 9:
        long = answers[at] & 2
        head = 9 if long else 2
        size = int.from_bytes(answers[at + 1 : at + head], "big")
        if answers[at + head : at + head + 6] == b"\x05READY":
            return True
        at += head + size
    return False


class Doorway:
    """A thread that passes bytes between peers and a Unix socket of libzmq.

    Args:
        listening: non-blocking socket to which peers connect; closed by `close`.
        inner: address of libzmq's Unix socket.
        most: largest number of peers connected at a time.
    """

    def __init__(self, listening: socket.socket, inner: str, most: int) -> None:
        self._listening = listening
        self._inner = inner
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = most if descriptors < 0 else max(1, min(most, descriptors // _SHARE))
        self._passages: set[_Passage] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ)
        self._end, self._ending = os.pipe()
        self._selector.register(self._end, selectors.EVENT_READ)
        self._is_open = True
        #: time limit for sending libzmq's last bytes
        self._until = 0.0
        #: time until which no connection is accepted, for lack of room
        self._paused: float | None = None
        self._thread = threading.Thread(target=self._work, name="doorway", daemon=True)
        self._thread.start()

    def close(self, patience: float) -> None:
        """Close all connections; first send libzmq's last bytes for up to ``patience`` s."""
        if not self._is_open:
            return
        self._until = time.monotonic() + patience
        self._is_open = False
        with contextlib.suppress(BrokenPipeError):  # the thread may have noticed and ended already
            os.write(self._ending, b".")
        self._thread.join(patience + 1)
        os.close(self._ending)

    def _work(self) -> None:
        while self._is_open or (self._passages and time.monotonic() < self._until):
            waits = self._paused is not None or not self._is_open
            for key, events in self._selector.select(_SOON_S if waits else None):
                where: Any = key.fileobj
                if where is self._listening:
                    if not self._take():
                        self._selector.unregister(self._listening)
                        self._paused = time.monotonic() + _SOON_S
                elif where == self._end:
                    self._listen_no_more()
                elif key.data in self._passages:
                    self._move(key.data, where, events)
            if self._paused is not None and time.monotonic() >= self._paused and self._has_room():
                self._paused = None
                self._selector.register(self._listening, selectors.EVENT_READ)
        for passage in list(self._passages):
            self._forget(passage)
        self._selector.close()
        self._listening.close()
        os.close(self._end)

    def _listen_no_more(self) -> None:
        self._selector.unregister(self._end)
        if self._paused is None:
            self._selector.unregister(self._listening)
        self._paused = None
        self._listening.close()

    def _unknown(self) -> list[_Passage]:
        return [passage for passage in self._passages if not passage.known]

    def _has_room(self) -> bool:
        """Return whether another peer can be accepted.

        After some time without room, disconnect the unknown peer that came first.
        """
        unknown = self._unknown()
        if len(unknown) < self._most:
            return True
        first = min(unknown, key=lambda passage: passage.came)
        if time.monotonic() < first.came + _STAY_S:
            return False
        self._forget(first)
        return True

    def _take(self) -> bool:
        """Accept the next peer's connection.

        Return False if no further peer can be accepted now.
        """
        if not self._has_room():
            return False
        try:
            outer, _ = self._listening.accept()
        except BlockingIOError:
            return True
        except OSError:  # no descriptors left, or the peer has disconnected
            return False
        outer.setblocking(False)
        try:
            inner = socket.socket(socket.AF_UNIX)
        except OSError:
            outer.close()
            return False
        try:
            inner.setblocking(False)
            inner.connect(self._inner)
            if outer.family != socket.AF_UNIX:
                outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                outer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for name, value in _KEEPALIVE:
                    if hasattr(socket, name):
                        outer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        except OSError:  # libzmq is too slow, or has closed its socket
            outer.close()
            inner.close()
            return True
        passage = _Passage(outer, inner)
        self._passages.add(passage)
        for end in (outer, inner):
            self._selector.register(end, selectors.EVENT_READ, passage)
        return True

    def _move(self, passage: _Passage, end: socket.socket, events: int) -> None:
        if not passage.move(end, events):
            self._forget(passage)
            return
        watched = self._selector.get_map()
        for one in (passage.outer, passage.inner):
            wanted = passage.wants(one)
            if one not in watched:
                if wanted:
                    self._selector.register(one, wanted, passage)
            elif not wanted:
                self._selector.unregister(one)
            elif watched[one].events != wanted:
                self._selector.modify(one, wanted, passage)

    def _forget(self, passage: _Passage) -> None:
        self._passages.discard(passage)
        for end in (passage.outer, passage.inner):
            if end in self._selector.get_map():
                self._selector.unregister(end)
        passage.close()
