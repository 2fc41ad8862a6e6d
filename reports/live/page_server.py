"""Serves the page of a run on this machine, read-only, from a thread of its own that costs the run next to nothing.

The run hands over immutable bytes, and waits for nobody. A viewer that is slow is sent the newest state when it has
taken the one before; one that takes nothing is sent away. All that anybody can make the thread keep is one state and a
few kilobytes for each of 64 connections; and however much is asked of it, it rests 20 times as long as it has worked.
"""

import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.live.asking import STREAM, answer, read_request, refusal

HOST: Final = "127.0.0.1"
#: connections at a time
MOST_VISITORS: Final = 64
#: how long (s) somebody may take to ask, to take something of what was sent, and to go once all was said
_ASK_S: Final = 10.0
_TAKE_S: Final = 30.0
_GO_S: Final = 2.0
#: how long (s) the last state is offered, and how long nobody new is let in when there are no descriptors left
_LAST_S: Final = 2.0
_NO_ROOM_S: Final = 0.5
#: how long the thread rests for the processor time that it took, and at most (s)
_REST: Final = 20.0
_LONGEST_REST_S: Final = 0.2
#: bytes that are read at once, and that the system keeps for each connection
_READ: Final = 4096
_KEPT: Final = 1 << 18
_JSON: Final = "application/json"
#: what to do if the port cannot be had
_HINTS: Final = {
    errno.EADDRINUSE: "Is another run's page there? --page 0 takes any port that is free.",
    errno.EACCES: "Choose a port above 1023; --page 0 takes any that is free.",
}


class PageError(PipistrelleError):
    """The page of a run cannot be served."""


class _Visitor:
    """A connection: first it asks, then it is answered, perhaps it follows the run, at last it goes."""

    __slots__ = ("asked", "blocked", "deadline", "following", "frame", "goes", "out", "socket")

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.asked = b""
        #: what is still to be sent
        self.out = memoryview(b"")
        #: when it is sent away (s)
        self.deadline = time.monotonic() + _ASK_S
        self.following = False
        #: the number of the state that it was sent last
        self.frame = -1
        #: whether all was said
        self.goes = False
        #: whether the system takes no more for now
        self.blocked = False


class PageServer:
    """Serves one page, and the states of its run one after another as server-sent events.

    Parameters
    ----------
    port
        on the loopback interface; 0: any that is free.
    page
        makes the whole answer to who asks for the page, given the port.

    Raises
    ------
    PageError
        when the port cannot be had.
    """

    def __init__(self, port: int, page: Callable[[], bytes]) -> None:
        try:
            self._listener = socket.create_server((HOST, port), backlog=MOST_VISITORS)
        except OSError as error:
            raise PageError(
                f"cannot serve the page there ({error.strerror or error})",
                where=f"--page {port}",
                hint=_HINTS.get(error.errno or 0),
            ) from None
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._page = page()
        #: the newest state: its number, and the event that tells of it
        self._newest = (0, b"")
        #: how many follow the run
        self.viewers = 0
        self._visitors: dict[int, _Visitor] = {}
        self._selector = selectors.DefaultSelector()
        self._wakes, self._woken = socket.socketpair()
        self._accepts_at = 0.0
        #: when all is over (s); None: it goes on
        self._closing: float | None = None
        for one in (self._wakes, self._woken):
            one.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="pipistrelle-page", daemon=True)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/"

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def publish(self, state: bytes) -> None:
        """Show a state from now on, JSON in one line; returns at once."""
        self._newest = (self._newest[0] + 1, b"data: %b\n\n" % state)
        self._wake()

    def close(self) -> None:
        """Offer the last state to those who take it, for two seconds at most, and serve no more."""
        if self._closing is not None:
            return
        self._closing = time.monotonic() + _LAST_S
        self._wake()
        self._thread.join()
        for visitor in list(self._visitors.values()):
            self._drop(visitor)
        for one in (self._listener, self._wakes, self._woken):
            one.close()
        self._selector.close()

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # it has been woken, and has not looked yet
            self._wakes.send(b"\0")

    # -- the thread -------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._is_done():
            ready = self._selector.select(self._patience())
            begun = time.thread_time()
            for key, mask in ready:
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    with suppress(BlockingIOError):
                        self._woken.recv(_READ)
                elif (visitor := self._visitors.get(key.fd)) is not None:
                    self._meet(visitor, mask)
            self._tell_newest()
            self._send_away()
            time.sleep(min(_REST * (time.thread_time() - begun), _LONGEST_REST_S))

    def _is_done(self) -> bool:
        """Tell whether all is over: everybody who follows the run has its last state, or has had time for it."""
        if self._closing is None:
            return False
        owed = any(one.out or one.frame < self._newest[0] for one in self._visitors.values() if one.following)
        return not owed or time.monotonic() >= self._closing

    def _patience(self) -> float:
        """Return how long nothing need be done if nobody says anything, in seconds."""
        if self._closing is not None:
            return 0.05
        return 1.0 if self._visitors or self._accepts_at else 60.0

    def _accept(self) -> None:
        now = time.monotonic()
        if now < self._accepts_at:
            return
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptors, no memory, or it has gone again
            self._accepts_at = now + _NO_ROOM_S
            self._selector.unregister(self._listener)
            return
        connection.setblocking(False)
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KEPT)
        if len(self._visitors) >= MOST_VISITORS:
            idle = [one for one in self._visitors.values() if not one.following]
            if not idle:
                with suppress(OSError):
                    connection.send(refusal(503, f"{MOST_VISITORS} look at this run already."))
                connection.close()
                return
            self._drop(min(idle, key=lambda one: one.deadline))
        self._visitors[connection.fileno()] = _Visitor(connection)
        self._selector.register(connection, selectors.EVENT_READ)

    def _meet(self, visitor: _Visitor, mask: int) -> None:
        """Take what a visitor says, and send on what it has not been sent yet."""
        if mask & selectors.EVENT_READ and not self._hear(visitor):
            self._drop(visitor)
        if mask & selectors.EVENT_WRITE and visitor.socket.fileno() >= 0:
            self._send(visitor)

    def _hear(self, visitor: _Visitor) -> bool:
        """Read something; tell whether the visitor may stay."""
        try:
            said = visitor.socket.recv(_READ)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not said:
            return False
        if visitor.following or visitor.goes or visitor.out:  # it has nothing more to say that anybody would keep
            return True
        visitor.asked += said
        asked = read_request(visitor.asked)
        if asked is None:
            return True
        self._answer(visitor, asked.path, asked.answer)
        return visitor.socket.fileno() >= 0

    def _answer(self, visitor: _Visitor, path: str, refused: bytes) -> None:
        visitor.asked = b""
        visitor.goes = True
        if refused:
            found = refused
        elif path == "/":
            found = self._page
        elif path == "/state":
            found = answer(self._newest[1][len(b"data: ") : -1], _JSON)
        elif path == "/events":
            visitor.following, visitor.goes = True, False
            self.viewers += 1
            found = STREAM
        else:
            found = refusal(
                404, "There are / (the page), /state (how the run stands, JSON) and /events (again and again)."
            )
        self._give(visitor, found)

    def _give(self, visitor: _Visitor, data: bytes) -> None:
        visitor.out = memoryview(data)
        visitor.deadline = time.monotonic() + _TAKE_S
        self._send(visitor)

    def _send(self, visitor: _Visitor) -> None:
        """Send as much as the system takes, and then what comes next."""
        while visitor.out:
            try:
                sent = visitor.socket.send(visitor.out)
            except BlockingIOError:
                if not visitor.blocked:
                    visitor.blocked = True
                    self._selector.modify(visitor.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
                return
            except OSError:
                self._drop(visitor)
                return
            visitor.out = visitor.out[sent:]
            visitor.deadline = time.monotonic() + _TAKE_S
        if visitor.blocked:
            visitor.blocked = False
            self._selector.modify(visitor.socket, selectors.EVENT_READ)
        if visitor.goes:
            # Closing at once would wipe out what it has not read yet, if it still has something to say.
            visitor.deadline = time.monotonic() + _GO_S
            with suppress(OSError):
                visitor.socket.shutdown(socket.SHUT_WR)

    def _tell_newest(self) -> None:
        """Send the newest state to those who have taken all before, and have not got it."""
        number, event = self._newest
        if number:
            for visitor in list(self._visitors.values()):
                if visitor.following and not visitor.out and visitor.frame < number:
                    visitor.frame = number
                    self._give(visitor, event)

    def _send_away(self) -> None:
        """Close the connections of those whose time is over, and let others in again."""
        now = time.monotonic()
        for visitor in list(self._visitors.values()):
            waits_for_us = visitor.following and not visitor.out
            if now >= visitor.deadline and not waits_for_us:
                self._drop(visitor)
        if self._accepts_at and now >= self._accepts_at:
            self._accepts_at = 0.0
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _drop(self, visitor: _Visitor) -> None:
        number = visitor.socket.fileno()
        if self._visitors.pop(number, None) is None:
            return
        self.viewers -= visitor.following
        self._selector.unregister(visitor.socket)
        visitor.socket.close()
