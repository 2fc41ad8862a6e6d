"""What may be asked of the page of a run: little, and nothing that anybody sends breaks it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.reports.live.asking import LONGEST_HEAD, read_request


def asked(*lines: str):
    """Return the response to a whole request."""
    return read_request("\r\n".join([*lines, "", ""]).encode("latin-1"))


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:9000", "LOCALHOST", "127.0.0.1"])
def test_the_page_is_reached_by_its_names(host):
    """The same holds through a tunnel with another port."""
    found = asked("GET /events?x=1 HTTP/1.1", f"Host: {host}", "Accept: */*")

    assert (found.path, found.answer) == ("/events", b"")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["GET / HTTP/1.1", "Host: evil.example:8765"], 403),
        (["GET / HTTP/1.1", "Host: 127.0.0.1.evil.example"], 403),
        (["GET / HTTP/1.1", "Host: localhost:8765@evil.example"], 403),
        (["GET / HTTP/1.1", "Host: "], 403),
        (["GET / HTTP/1.1"], 400),
        (["GET / HTTP/1.1", "Host: localhost", "Host: localhost"], 400),
        (["GET http://localhost/ HTTP/1.1", "Host: localhost"], 400),
        (["GET / HTTP/2", "Host: localhost"], 400),
        (["GET  / HTTP/1.1", "Host: localhost"], 400),
        (["GET / HTTP/1.1", "Host: localhost", " folded"], 400),
        (["GET / HTTP/1.1", "Host : localhost"], 400),
        (["nonsense"], 400),
        (["GET / HTTP/1.1", "Host: localhost:1", "Origin: http://evil.example"], 403),
        (["GET / HTTP/1.1", "Host: localhost:1", "Origin: null"], 403),
        (["GET / HTTP/1.1", "Host: localhost:1", "Origin: http://localhost:2"], 403),
        (["POST / HTTP/1.1", "Host: localhost", "Content-Length: 100000000000"], 405),
        (["HEAD / HTTP/1.1", "Host: localhost"], 405),
        (["OPTIONS / HTTP/1.1", "Host: localhost"], 405),
        (["DELETE / HTTP/1.1", "Host: localhost"], 405),
        (["GET / HTTP/1.1", "Host: localhost", "X: " + "a" * LONGEST_HEAD], 431),
    ],
)
def test_everything_else_is_refused(lines, status):
    """The response has an error status and no data of the run."""
    found = asked(*lines)

    assert found.path == ""
    assert found.answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b"\r\nAllow: GET\r\n" in found.answer) == (status == 405)
    assert b"access-control" not in found.answer.lower()


def test_an_origin_of_our_own_is_let_in():
    """A browser names it with some requests of the page itself."""
    assert asked("GET /events HTTP/1.1", "Host: localhost:5", "Origin: http://localhost:5").path == "/events"


@given(st.binary(max_size=2 * LONGEST_HEAD), st.booleans())
def test_garbage_is_refused_or_awaited(data, ended):
    """Whatever comes, it is a path of a whole request, a whole refusal, or not all there yet."""
    found = read_request(data + b"\r\n\r\n" if ended else data)

    if found is None:
        assert not ended
        assert len(data) < LONGEST_HEAD
    elif found.path:
        assert found.path.startswith("/")
    else:
        assert re.match(rb"HTTP/1\.1 4\d\d [ -~]+\r\n", found.answer)
