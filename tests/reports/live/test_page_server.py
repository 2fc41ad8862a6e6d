"""The server of a run's page against raw sockets: viewers that follow, sleep or break every rule."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.live import page_server
from pipistrelle.reports.live.asking import answer
from pipistrelle.reports.live.page_server import MOST_VISITORS, PageServer

PAGE = answer(b"<!doctype html>", "text/html")


@pytest.fixture
def server() -> Iterator[PageServer]:
    """Yield a server that has a first state."""
    one = PageServer(0, lambda: PAGE)
    one.publish(b'{"now":0}')
    one.start()
    yield one
    one.close()


def connect(server, small=False):
    """Return a connection with a small receive buffer."""
    connection = socket.socket()
    if small:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    return connection


def ask(server, path="/", method="GET", host=None, more=""):
    """Return the whole answer to a request: its status, its head, its body."""
    with connect(server) as connection:
        name = host or f"127.0.0.1:{server.port}"
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: {name}\r\n{more}\r\n".encode())
        whole = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = whole.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body


class Follower:
    """A viewer that follows the run."""

    def __init__(self, server) -> None:
        self.connection = connect(server)
        self.connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self._file = self.connection.makefile("rb")

    def next(self):
        """Return the next state; None when no more will follow."""
        for line in self._file:
            if line.startswith(b"data: "):
                return json.loads(line.removeprefix(b"data: "))
        return None

    def close(self):
        """Go."""
        self._file.close()
        self.connection.close()


def until(condition):
    """Return as soon as a condition holds."""
    while not condition():
        time.sleep(0.01)


def test_the_page_and_the_state(server):
    """Each request gets one whole response and nothing else."""
    assert ask(server)[2] == b"<!doctype html>"
    status, head, body = ask(server, "/state")
    assert (status, json.loads(body)) == (200, {"now": 0})
    assert "application/json" in head
    assert "no-store" in head
    assert ask(server, "/etc/passwd")[0] == 404
    assert ask(server, "/../state")[0] == 404


def test_followers_get_every_state_they_have_time_for(server):
    """The newest at once, each later one, the last one, and then the end."""
    followers = [Follower(server) for _ in range(5)]
    assert [one.next() for one in followers] == [{"now": 0}] * 5
    assert server.viewers == 5
    for now in range(1, 4):
        server.publish(b'{"now":%d}' % now)
        assert [one.next() for one in followers] == [{"now": now}] * 5
    followers.pop().close()
    until(lambda: server.viewers == 4)
    server.publish(b'{"now":9}')
    server.close()
    assert [one.next() for one in followers] == [{"now": 9}] * 4
    assert [one.next() for one in followers] == [None] * 4
    for one in followers:
        one.close()


def test_a_slow_follower_gets_the_newest(server):
    """A slow viewer misses states; the run does not wait for it, and other viewers miss nothing."""
    large = b'{"now":%d,"text":"' + b"x" * 3_000_000 + b'"}'
    with connect(server, small=True) as slow:
        slow.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: server.viewers == 1)
        quick = Follower(server)
        assert quick.next() == {"now": 0}
        for now in range(1, 7):
            server.publish(large % now)
            assert quick.next()["now"] == now
        with slow.makefile("rb") as file:
            seen = []
            while 6 not in seen:
                line = file.readline()
                if line.startswith(b"data: "):
                    seen.append(json.loads(line[6:])["now"])
        quick.close()

    assert seen == sorted(set(seen))
    assert len(seen) < 6


@pytest.mark.parametrize(
    "said",
    [
        b"\x00\xff" * 6000,
        b"\x16\x03\x01\x02\x00" + b"\x01" * 200 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100_000,
        b"POST /state HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n" + b"z" * 10_000_000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n\r\n",
    ],
    ids=["bytes", "tls", "huge head", "huge body", "http/2", "nothing"],
)
def test_garbage_is_answered_and_sent_away(server, said):
    """The response is a 400, perhaps truncated, and the connection ends; other viewers are served as before."""
    follower = Follower(server)
    with connect(server) as connection:
        try:
            connection.sendall(said)
            got = b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionError:
            got = b""

    assert got == b"" or got.startswith(b"HTTP/1.1 4")
    assert follower.next() == {"now": 0}
    assert ask(server, "/state")[0] == 200
    follower.close()


def test_only_its_names_and_only_get(server):
    """Other names, other origins and other methods are refused, each with its status."""
    assert ask(server, host="evil.example")[0] == 403
    assert ask(server, "/events", host="evil.example")[0] == 403
    assert ask(server, "/state", more="Origin: http://evil.example\r\n")[0] == 403
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "HEAD", "CONNECT"):
        status, head, _ = ask(server, method=method)
        assert (status, "Allow: GET" in head) == (405, True)
    assert "access-control" not in ask(server, "/state")[1].lower()


def test_who_never_asks_makes_room(server):
    """Silent and incomplete connections do not block others."""
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(server)) for _ in range(2 * MOST_VISITORS)]
        for one in silent[:10]:
            one.send(b"GET /")
        assert ask(server, "/state")[0] == 200
        follower = Follower(server)
        assert follower.next() == {"now": 0}
        assert len(server._visitors) <= MOST_VISITORS
        follower.close()


def test_more_followers_than_there_is_room_for(server):
    """This many are served; the next is rejected until one closes."""
    followers = [Follower(server) for _ in range(MOST_VISITORS)]
    until(lambda: server.viewers == MOST_VISITORS)
    with connect(server) as late:
        late.sendall(b"GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            said = late.recv(100)
        except ConnectionError:
            said = b""
    assert said == b"" or said.startswith(b"HTTP/1.1 503")
    assert followers[0].next() == {"now": 0}
    followers.pop().close()
    until(lambda: server.viewers < MOST_VISITORS)
    assert ask(server, "/state")[0] == 200
    for one in followers:
        one.close()


def test_who_takes_nothing_is_sent_away(monkeypatch):
    """A viewer that never reads, or that never asks, is dropped when its time is over."""
    monkeypatch.setattr(page_server, "_TAKE_S", 0.3)
    monkeypatch.setattr(page_server, "_ASK_S", 0.3)
    server = PageServer(0, lambda: PAGE)
    server.start()
    with connect(server, small=True) as deaf, connect(server) as mute:
        deaf.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.publish(b'"' + b"x" * 30_000_000 + b'"')
        until(lambda: server.viewers == 1)
        until(lambda: server.viewers == 0)
        assert mute.recv(1) == b""
    server.close()


def test_publishing_waits_for_nobody(server):
    """With followers that never read, states are handed over by the thousand; only the newest is kept."""
    with ExitStack() as stack:
        for _ in range(20):
            deaf = stack.enter_context(connect(server, small=True))
            deaf.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: server.viewers == 20)
        for now in range(5000):
            server.publish(b'{"now":%d,"x":"%b"}' % (now, b"y" * 1000))
        assert json.loads(ask(server, "/state")[2])["now"] == 4999


def test_a_flood_of_questions_keeps_nobody_out(server):
    """Viewers of the run still get its states meanwhile."""
    over = threading.Event()

    def flood() -> None:
        while not over.is_set():
            try:
                ask(server, "/state")
            except OSError:
                continue

    thread = threading.Thread(target=flood)
    thread.start()
    follower = Follower(server)
    for now in range(1, 6):
        server.publish(b'{"now":%d}' % now)
        assert follower.next()["now"] <= now
    over.set()
    thread.join()
    follower.close()


def test_a_port_that_is_taken_is_said(server):
    """One message names the port and says what to do."""
    with pytest.raises(PipistrelleError, match=rf"--page {server.port}: cannot serve the page on this port .*--page 0"):
        PageServer(server.port, lambda: PAGE)


def test_a_state_is_asked_for_before_there_is_one():
    """The response is empty, not missing."""
    server = PageServer(0, lambda: PAGE)
    server.start()
    assert ask(server, "/state")[::2] == (200, b"")
    server.close()
