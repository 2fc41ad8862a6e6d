"""Serves the page of a run on this machine, read-only, from a thread of its own that costs the run next to nothing.

The run hands over immutable bytes, and waits for nobody. A viewer that is slow is sent the newest state when it has
taken the one before; one that takes nothing is sent away. All that anybody can make the thread keep is one state and a
few kilobytes for each of 64 connections; and however much is asked of it, it rests 20 times as long as it has worked.

The standard library's http.server cannot keep these promises; asyncio can
(docs/explanation/design.md, "Parts we do not write").
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
from pipistrelle.reports.live.asking import STREAM, answer, read_request, refusal

HOST: Final = "127.0.0.1"
#: connections at a time
MOST_VISITORS: Final = 64
#: how long (s) somebody may take to ask, to take a piece of what is sent, and to go once all was said
_ASK_S: Final = 10.0
_TAKE_S: Final = 30.0
_GO_S: Final = 2.0
#: how long (s) the last state is offered, and how long nobody new is let in when there are no descriptors left
_LAST_S: Final = 2.0
_NO_ROOM_S: Final = 0.5
#: how long the thread rests for the processor time that it took, and at most (s)
_REST: Final = 20.0
_LONGEST_REST_S: Final = 0.2
#: bytes that are read at once, of a piece, and that the system keeps for each connection
_READ: Final = 4096
_SENT: Final = 1 << 14
_KEPT: Final = 1 << 18
_JSON: Final = "application/json"
#: what to do if the port cannot be had
_HINTS: Final = {
    errno.EADDRINUSE: "Is another run's page there? --page 0 takes any port that is free.",
    errno.EACCES: "Choose a port above 1023; --page 0 takes any that is free.",
}


class PageError(PipistrelleError):
    """The page of a run cannot be served."""


class _RestingSelector(selectors.DefaultSelector):
    """Before an event loop waits for the next events, it rests for as long as it should."""

    _begun = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Rest, and then wait as long as the loop wants to."""
        time.sleep(min(_REST * (time.thread_time() - self._begun), _LONGEST_REST_S) if self._begun else 0.0)
        ready = super().select(timeout)
        self._begun = time.thread_time()
        return ready


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
        #: what serves each connection, those that came first at the front, and those of them that follow the run
        self._visitors: dict[asyncio.Task[None], None] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._loop = asyncio.SelectorEventLoop(_RestingSelector())
        #: set when there is a newer state, and when all is over
        self._news = asyncio.Event()
        self._woken = False
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="pipistrelle-page", daemon=True)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/"

    @property
    def viewers(self) -> int:
        """How many follow the run."""
        return len(self._following)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def publish(self, state: bytes) -> None:
        """Show a state from now on, JSON in one line; returns at once."""
        self._newest = (self._newest[0] + 1, b"data: %b\n\n" % state)
        self._wake()

    def close(self) -> None:
        """Offer the last state to those who take it, for two seconds at most, and serve no more."""
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
        """Let go on who waits for news."""
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
            except OSError:  # no descriptors, no memory, or it has gone again
                await asyncio.sleep(_NO_ROOM_S)
                continue
            if self._has_room():
                visitor = self._loop.create_task(self._meet(connection))
                self._visitors[visitor] = None
                visitor.add_done_callback(partial(self._part, connection))
            else:
                with suppress(OSError):
                    connection.send(refusal(503, f"{MOST_VISITORS} look at this run already."))
                connection.close()
            await asyncio.sleep(0)

    def _has_room(self) -> bool:
        """Tell whether one more can come; who came first makes room for him, unless all follow the run."""
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
        """Hear what a visitor asks for, and answer; a connection that breaks or takes too long ends."""
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
            # Closing at once would wipe out what it has not read yet, if it still has something to say.
            connection.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(_GO_S):
                while await self._loop.sock_recv(connection, _READ):
                    await asyncio.sleep(0)

    def _answer(self, path: str) -> bytes:
        if path == "/":
            return self._page
        if path == "/state":
            return answer(self._newest[1][len(b"data: ") : -1], _JSON)
        return refusal(404, "There are / (the page), /state (how the run stands, JSON) and /events (again and again).")

    async def _follow(self, connection: socket.socket) -> None:
        """Send the newest state whenever the visitor has taken the one before, until it goes or all is over."""
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
        """Read what a follower says, which nobody would keep: it shows when it has gone."""
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
