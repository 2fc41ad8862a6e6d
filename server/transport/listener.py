"""A listening socket that limits unknown peers in number, memory and time."""

import errno
import resource
import selectors
from typing import Any, Final

from pipistrelle.protocol.zmtp import ZmtpError, ZmtpMessage, framed, parts_before
from pipistrelle.server.transport.connection import LONGEST_HELLO, RouterConnection
from pipistrelle.server.transport.endpoint import BoundSocket

#: most unknown peers connected at a time, and most bytes kept of all their messages
MOST_STRANGERS: Final = 64
MOST_BYTES: Final = 64 << 20
_TAKEN_AT_ONCE: Final = 64
#: time limit for a peer's handshake (s)
_HANDSHAKE_S: Final = 30.0
#: time (s) that an unknown peer may stay connected when there are too many
_STAY_S: Final = 1.0
#: pause (s) when file descriptors or memory are exhausted
_PAUSE_S: Final = 0.5
#: unknown peers may use one in this many file descriptors; the process also opens files
_SHARE: Final = 4
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listener:
    """A listening socket that accepts connections and their messages.

    Args:
        handshake_timeout: time limit for a peer's handshake (s).
        longest: longest message accepted from an unknown peer (bytes). The limit for all unknown peers together is
            `MOST_BYTES`.
    """

    def __init__(
        self,
        endpoint: str,
        handshake_timeout: float = _HANDSHAKE_S,
        *,
        longest: int = LONGEST_HELLO,
        option: str = "--endpoint",
    ) -> None:
        self._handshake_timeout = handshake_timeout
        self._longest = longest
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = MOST_STRANGERS if descriptors < 0 else max(1, min(MOST_STRANGERS, descriptors // _SHARE))
        self._bound = BoundSocket(endpoint, option)
        self._socket = self._bound.socket
        #: the endpoint, with the actual port
        self.endpoint = self._bound.endpoint
        self._selector = selectors.PollSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._strangers: dict[RouterConnection, float] = {}
        #: unknown peers with data read but not handled, as keys; nothing more is read from them until then
        self._heard: dict[RouterConnection, None] = {}
        self._count = 0
        #: time until which no connection is accepted
        self._paused: float | None = None
        #: what was wrong with the last rejected peer; empty if none was rejected
        self.fault = ""

    def __len__(self) -> int:
        return len(self._strangers)

    def look(self, now: float, patience: float) -> bool:
        """Accept peers and read messages for ``patience`` s; return whether any arrived."""
        if self._paused is not None and now >= self._paused:
            self._paused = None
            self._selector.register(self._socket, selectors.EVENT_READ)
        for stranger, came in list(self._strangers.items()):
            if now >= came + self._handshake_timeout and not stranger.ready:
                self._send_away(stranger, "did not say in time what it is")
        anybody = False
        for key, _ in self._selector.select(0 if self._heard else patience):
            who: Any = key.fileobj
            if who is self._socket:
                self._take(now)
                anybody = True
            elif who in self._strangers and who not in self._heard:
                self._read(who)
                anybody = True
        return anybody

    def _take(self, now: float) -> None:
        for turn in range(_TAKEN_AT_ONCE):
            if len(self._strangers) >= self._most and (turn or not self._make_room(now)):
                return
            try:
                taken, _ = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:  # else the error would be reported again and again
                    if self._strangers:  # the unknown peers may use up the descriptors
                        self._send_away(self._least_wanted(), "was one of too many")
                    self._pause(now + _PAUSE_S)
                    return
                continue  # the peer has disconnected
            stranger = RouterConnection(taken, self._longest)
            self._count += 1
            stranger.heard = self._count
            self._strangers[stranger] = now
            self._selector.register(stranger, selectors.EVENT_READ)

    def _make_room(self, now: float) -> bool:
        """Reject an unknown peer that had time to send something.

        Return whether there was one. If none was found, no connection is accepted until later.
        """
        least = self._least_wanted()
        stays_until = self._strangers[least] + _STAY_S
        if now < stays_until:
            self._pause(stays_until)
            return False
        self._send_away(least, "was one of too many")
        return True

    def _pause(self, until: float) -> None:
        self._selector.unregister(self._socket)
        self._paused = until

    def _least_wanted(self) -> RouterConnection:
        """Return the unknown peer to reject first.

        This is a peer without a complete handshake, if any, else the peer that was silent longest.
        """
        return min(self._strangers, key=lambda stranger: (stranger.ready, stranger.heard))

    def _read(self, stranger: RouterConnection) -> None:
        stranger.read()
        if stranger.lost:
            if stranger.held and not stranger.ready:  # ZeroMQ's libraries disconnect like this if the security differs
                self.fault = "a peer that wants another handshake, perhaps --curve"
            self._forget(stranger)
            stranger.close()
        else:
            self._heard[stranger] = None
            if sum(one.held for one in self._strangers) > MOST_BYTES:
                self._send_away(max(self._strangers, key=lambda one: one.held), "says too much")

    def message(self) -> tuple[RouterConnection, ZmtpMessage] | None:
        """Return the next message already read, with its sender; None without messages."""
        while self._heard:
            stranger = next(iter(self._heard))
            del self._heard[stranger]
            try:
                message = stranger.message()
            except ZmtpError as error:
                self._send_away(stranger, str(error))
                continue
            if message is not None:
                self._count += 1
                stranger.heard = self._count
                self._heard[stranger] = None  # moved behind the other peers
                return stranger, message
        return None

    def answer(self, stranger: RouterConnection, route: list[bytes], frame: bytes) -> None:
        """Send a message to a peer.

        A peer that does not accept the message at once is rejected.
        """
        if stranger in self._strangers and not stranger.send(parts_before(route) + framed(frame)):
            self._send_away(stranger, "does not read its messages")

    def holds_more(self) -> bool:
        """Return whether a peer has connected or sent something."""
        return bool(self._heard or self._selector.select(0))

    def _send_away(self, stranger: RouterConnection, why: str) -> None:
        self.fault = f"a peer that {why}"
        self._forget(stranger)
        stranger.close()

    def _forget(self, stranger: RouterConnection) -> None:
        self.release(stranger)
        self.unwatch(stranger)

    def release(self, stranger: RouterConnection) -> None:
        """Let the caller read this peer's messages from now on, instead of this listener.

        `look` still returns when a message arrives.
        """
        del self._strangers[stranger]
        self._heard.pop(stranger, None)
        if self._paused is not None:  # there is room for a peer now
            self._paused = 0.0

    def unwatch(self, connection: RouterConnection) -> None:
        """Stop returning from `look` when a released connection has messages."""
        self._selector.unregister(connection)

    def close(self) -> None:
        """Stop listening, and close all connections that were not released."""
        self._bound.close()
        for stranger in self._strangers:
            stranger.close()
        self._strangers.clear()
        self._selector.close()
