"""Between strangers and libzmq's encrypted socket: few bytes pass before libzmq says that it knows the stranger's key.

libzmq itself holds whatever a stranger sends in his handshake, as much as the longest message may have. Here a thread
takes the connections and passes bytes on, both ways; it reads no more than where a command of CurveZMQ begins, and
which one it is (https://rfc.zeromq.org/spec/26/).
"""

import contextlib
import os
import resource
import selectors
import socket
import threading
import time
from typing import Any, Final

#: bytes of a stranger that pass before his key is known; a handshake has some 700
_MOST_UNKNOWN: Final = 4096
#: bytes of a greeting (ZMTP 3)
_GREETING: Final = 64
#: bytes that are read at once, and that wait to be passed on
_CHUNK: Final = 1 << 18
#: how long a stranger is given before he makes room for the next if there are too many, in seconds
_STAY_S: Final = 1.0
#: how soon it is looked again whether there is room, in seconds
_SOON_S: Final = 0.1
#: each connection takes two descriptors here and one in libzmq; strangers have a part of those that there may be
_SHARE: Final = 12
#: a machine that has gone without a word shows within two minutes: seconds of silence, between probes, and probes
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


class _Passage:
    """A stranger's connection, and the one to libzmq that belongs to it."""

    def __init__(self, outer: socket.socket, inner: socket.socket) -> None:
        self.outer = outer
        self.inner = inner
        self.came = time.monotonic()
        #: {socket: what waits to be written there}
        self.unsent: dict[socket.socket, bytearray] = {outer: bytearray(), inner: bytearray()}
        self.ended: set[socket.socket] = set()
        #: whether libzmq has said that it knows the key
        self.known = False
        self._said = 0
        self._answers = bytearray()

    def other(self, end: socket.socket) -> socket.socket:
        """Return the socket at the other end."""
        return self.inner if end is self.outer else self.outer

    def wants(self, end: socket.socket) -> int:
        """Return what is waited for there: something to read, room to write, both or nothing."""
        reads = end not in self.ended and len(self.unsent[self.other(end)]) < _CHUNK
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self.unsent[end] else 0)

    def move(self, end: socket.socket, events: int) -> bool:
        """Read and write what can be; False if the passage is to be closed."""
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
        """Close both ends."""
        self.outer.close()
        self.inner.close()


def _is_welcome(answers: bytearray) -> bool:
    """Return whether the last command of a handshake has begun, which is said to those alone whose key is known."""
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
    """Passes bytes between who connects to a socket and a Unix socket of libzmq's, until it is closed.

    Parameters
    ----------
    listening
        where strangers come; it does not block, and is closed here.
    inner
        address of the other one.
    most
        strangers at a time whose key is not known.
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
        #: until when it may go on after that
        self._until = 0.0
        #: until when nobody is taken, as there is no room
        self._paused: float | None = None
        self._thread = threading.Thread(target=self._work, name="doorway", daemon=True)
        self._thread.start()

    def close(self, patience: float) -> None:
        """Take nobody any more, and close all connections; what libzmq has said still leaves, for so many seconds."""
        if not self._is_open:
            return
        self._until = time.monotonic() + patience
        self._is_open = False
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
        """Return whether one more can come; who came first makes room for him, unless he has only just come."""
        unknown = self._unknown()
        if len(unknown) < self._most:
            return True
        first = min(unknown, key=lambda passage: passage.came)
        if time.monotonic() < first.came + _STAY_S:
            return False
        self._forget(first)
        return True

    def _take(self) -> bool:
        """Take the next one; False if there is no room."""
        if not self._has_room():
            return False
        try:
            outer, _ = self._listening.accept()
        except BlockingIOError:
            return True
        except OSError:  # no descriptors, or who was there has gone
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
        except OSError:  # libzmq is behind, or has gone
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
