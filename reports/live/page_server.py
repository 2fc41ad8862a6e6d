"""Serve the live page read-only on the loopback interface, in its own thread.

The run hands over immutable bytes and never waits. A slow viewer gets the newest state when it has received the
previous one. A viewer that receives nothing is disconnected. Memory is bounded: one state, and a few kilobytes for each
of at most 64 connections. The thread uses little processor time: it rests 20 times as long as it has worked, but at
most 0.2 s at a time.

The standard library's http.server cannot keep these bounds; asyncio can (docs/explanation/design.md, "Parts we do not
write").
"""

import asyncio
import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.sockets import check_descriptors
from pipistrelle.reports.live.asking import STREAM, answer, read_request, refusal

HOST: Final = "127.0.0.1"
#: maximum number of simultaneous connections
MOST_VISITORS: Final = 64
#: time limits (s): for a request to arrive, for a client to receive a piece of the answer, and for closing afterwards
_ASK_S: Final = 10.0
_TAKE_S: Final = 30.0
_GO_S: Final = 2.0
#: how long (s) the last state is offered, and how long accepting pauses when no file descriptors are left
_LAST_S: Final = 2.0
_NO_ROOM_S: Final = 0.5
#: ratio of rest to processor time of the thread, and the longest rest (s)
_REST: Final = 20.0
_LONGEST_REST_S: Final = 0.2
#: sizes in bytes: of a read, of a write, and of the system's send buffer per connection
_READ: Final = 4096
_SENT: Final = 1 << 14
_KEPT: Final = 1 << 18
_JSON: Final = "application/json"
#: advice if the port cannot be opened
_HINTS: Final = {
    errno.EADDRINUSE: "Another run may be using this port. Use --page 0 to take any free port.",
    errno.EACCES: "Choose a port above 1023, or use --page 0 to take any free port.",
}


class PageError(PipistrelleError):
    """The page of a run cannot be served."""


class _RestingSelector(selectors.DefaultSelector):
    """An event-loop selector that pauses before it waits for events.

    The pauses save processor time.
    """

    _begun = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Pause, then wait for events."""
        time.sleep(min(_REST * (time.thread_time() - self._begun), _LONGEST_REST_S) if self._begun else 0.0)
        ready = super().select(timeout)
        self._begun = time.thread_time()
        return ready


#: number of file descriptors that an event loop needs
_LOOP_DESCRIPTORS: Final = 4


class PageServer:
    """A server of one page, and of the states of its run as server-sent events.

    Args:
        port: port on the loopback interface; 0 takes any free port.
        page: returns the complete HTTP answer with the page; called once the port is open.

    Raises:
        PageError: the port cannot be opened.
    """

    def __init__(self, port: int, page: Callable[[], bytes]) -> None:
        try:
            self._listener = socket.create_server((HOST, port), backlog=MOST_VISITORS)
        except OSError as error:
            raise PageError(
                f"cannot serve the page on this port ({error.strerror or error})",
                where=f"--page {port}",
                hint=_HINTS.get(error.errno or 0),
            ) from None
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._page = page()
        #: the newest state: its number and its server-sent event
        self._newest = (0, b"")
        #: the tasks that serve connections, oldest first; the subset whose viewers follow the run
        self._visitors: dict[asyncio.Task[None], None] = {}
        self._following: set[asyncio.Task[None]] = set()
        check_descriptors(_LOOP_DESCRIPTORS)
        self._loop = asyncio.SelectorEventLoop(_RestingSelector())
        #: event that is set, then replaced, when there is a newer state or the server closes
        self._news = asyncio.Event()
        self._woken = False
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="pipistrelle-page", daemon=True)

    @property
    def address(self) -> str:
        """The URL of the page."""
        return f"http://{HOST}:{self.port}/"

    @property
    def viewers(self) -> int:
        """Number of viewers that follow the run now."""
        return len(self._following)

    def start(self) -> None:
        """Start to serve the page."""
        self._thread.start()

    def publish(self, state: bytes) -> None:
        """Make ``state`` (JSON on one line) the newest state, and return at once.

        Viewers receive it when they can.
        """
        self._newest = (self._newest[0] + 1, b"data: %b\n\n" % state)
        self._wake()

    def close(self) -> None:
        """Offer the last state for at most two seconds, then stop serving."""
        if self._closing:
            return
        self._closing = True
        self._wake()
        self._thread.join()
        self._listener.close()
        self._loop.close()

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._tell)

    # -- the thread -------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        self._loop.run_until_complete(self._serve())

    def _tell(self) -> None:
        """Wake the tasks that wait for a newer state to send to their viewers."""
        self._woken = False
        self._news.set()
        self._news = asyncio.Event()

    async def _serve(self) -> None:
        accepting = self._loop.create_task(self._accept())
        while not self._closing:
            await self._news.wait()
        if self._following:
            await asyncio.wait(self._following, timeout=_LAST_S)
        everything = [accepting, *self._visitors]
        for one in everything:
            one.cancel()
        await asyncio.wait(everything)

    async def _accept(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listener)
            except OSError:  # no file descriptors or memory are left, or the client has disconnected
                await asyncio.sleep(_NO_ROOM_S)
                continue
            if self._has_room():
                visitor = self._loop.create_task(self._meet(connection))
                self._visitors[visitor] = None
                visitor.add_done_callback(partial(self._part, connection))
            else:
                with suppress(OSError):
                    connection.send(refusal(503, f"{MOST_VISITORS} viewers follow this run already. Try again later."))
                connection.close()
            await asyncio.sleep(0)

    def _has_room(self) -> bool:
        """Return whether another viewer may connect.

        If necessary, close a connection that does not follow the run.
        """
        if len(self._visitors) < MOST_VISITORS:
            return True
        first = next((one for one in self._visitors if one not in self._following), None)
        if first is not None:
            first.cancel()
            del self._visitors[first]
        return first is not None

    def _part(self, connection: socket.socket, visitor: asyncio.Task[None]) -> None:
        connection.close()
        self._visitors.pop(visitor, None)
        self._following.discard(visitor)
        if not visitor.cancelled():
            visitor.result()

    async def _meet(self, connection: socket.socket) -> None:
        """Read a viewer's HTTP request and answer it; close a connection that fails or takes too long."""
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KEPT)
            async with asyncio.timeout(_ASK_S):
                head = b""
                while (asked := read_request(head)) is None:
                    if not (said := await self._loop.sock_recv(connection, _READ)):
                        return
                    head += said
                    await asyncio.sleep(0)
            if asked.path == "/events":
                await self._follow(connection)
                return
            await self._give(connection, asked.answer or self._answer(asked.path))
            # If the client is still sending, closing at once would discard the unread part of the answer.
            connection.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(_GO_S):
                while await self._loop.sock_recv(connection, _READ):
                    await asyncio.sleep(0)

    def _answer(self, path: str) -> bytes:
        if path == "/":
            return self._page
        if path == "/state":
            return answer(self._newest[1][len(b"data: ") : -1], _JSON)
        return refusal(
            404, "Use / (the page), /state (the current state as JSON) or /events (the states as they change)."
        )

    async def _follow(self, connection: socket.socket) -> None:
        """Send a viewer the newest state each time that it has received the previous one."""
        visitor = asyncio.current_task()
        assert visitor is not None
        self._following.add(visitor)
        self._loop.add_reader(connection, self._overhear, connection, visitor)
        try:
            await self._give(connection, STREAM)
            frame = 0
            while True:
                number, event = self._newest
                if number > frame:
                    frame = number
                    await self._give(connection, event)
                elif self._closing:
                    return
                else:
                    await self._news.wait()
        finally:
            self._loop.remove_reader(connection)

    def _overhear(self, connection: socket.socket, visitor: asyncio.Task[None]) -> None:
        """Discard data that a viewer sends.

        If the viewer has disconnected, cancel the task that serves it.
        """
        try:
            gone = not connection.recv(_READ)
        except BlockingIOError:
            gone = False
        except OSError:
            gone = True
        if gone:
            visitor.cancel()

    async def _give(self, connection: socket.socket, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            async with asyncio.timeout(_TAKE_S):
                await self._loop.sock_sendall(connection, rest[:_SENT])
            rest = rest[_SENT:]
