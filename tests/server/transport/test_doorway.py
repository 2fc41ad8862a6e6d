"""The doorway to an encrypted socket: little passes until the key is accepted, then everything."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from pipistrelle.server.transport.doorway import Doorway

PATIENCE_S = 600.0
GREETING = bytes(64)
WELCOME = b"\x04\xa8\x07WELCOME" + bytes(160)
READY = b"\x04\x2b\x05READY" + bytes(37)
ERROR = b"\x04\x07\x05ERROR" + bytes(1)
Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def house(tmp_path) -> Iterator[tuple[Callable[[], Ends], Doorway]]:
    """Yield what makes a stranger, and returns his end and the other one behind the doorway; and that doorway."""
    outer, inner = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
    outer.setblocking(False)
    inner.bind(str(tmp_path / "s"))
    inner.listen(100)
    inner.settimeout(PATIENCE_S)
    doorway = Doorway(outer, str(tmp_path / "s"), most=3)
    address = outer.getsockname()
    opened: list[socket.socket] = []

    def come() -> Ends:
        stranger = socket.create_connection(address, PATIENCE_S)
        behind, _ = inner.accept()
        behind.settimeout(PATIENCE_S)
        opened.extend([stranger, behind])
        return stranger, behind

    yield come, doorway
    doorway.close(0.0)
    for one in (*opened, inner):
        one.close()


def whole(end: socket.socket, size: int = -1) -> bytes:
    """Return this many bytes that arrive, or all until the end."""
    data = b""
    while len(data) != size:
        try:
            more = end.recv(1 << 16 if size < 0 else size - len(data))
        except ConnectionResetError:
            break
        if not more:
            break
        data += more
    return data


def say(end: socket.socket, data: bytes) -> None:
    """Send all, in the background, as far as it is taken."""

    def send() -> None:
        try:
            end.sendall(data)
        except OSError:
            return

    threading.Thread(target=send, daemon=True).start()


@pytest.mark.parametrize("answers", [b"", GREETING, GREETING + WELCOME, GREETING + WELCOME + ERROR, bytes(500)])
def test_stranger_that_sends_more_than_a_handshake_is_closed(house, answers):
    """However long what he begins, and whatever he was answered but that his key is known."""
    stranger, behind = house[0]()
    behind.sendall(answers)
    assert whole(stranger, len(answers)) == answers
    say(stranger, b"\x06" + (1 << 40).to_bytes(8, "big") + bytes(4_000_000))
    assert len(whole(behind)) <= 3 * 4096
    assert whole(stranger) == b""


@pytest.mark.parametrize("byte_by_byte", [False, True])
def test_client_with_an_accepted_key_is_not_limited(house, byte_by_byte):
    """In both directions at once, more than the buffers hold; the end of one side is noticed by the other."""
    stranger, behind = house[0]()
    stranger.sendall(bytes(700))
    assert whole(behind, 700) == bytes(700)
    answers = GREETING + WELCOME + READY
    for part in [bytes([one]) for one in answers] if byte_by_byte else [answers]:
        behind.sendall(part)
    assert whole(stranger, len(answers)) == answers
    there, back = bytes(range(256)) * 20_000, bytes(range(255, -1, -1)) * 20_000
    say(stranger, there)
    say(behind, back)
    assert whole(behind, len(there)) == there
    assert whole(stranger, len(back)) == back
    behind.sendall(b"goodbye")
    behind.close()
    assert whole(stranger) == b"goodbye"


def test_oldest_connection_is_closed_over_the_limit(house):
    """Silent strangers do not keep others out; those whose key is known stay."""
    friend, behind = house[0]()
    answers = GREETING + WELCOME + READY
    behind.sendall(answers)
    whole(friend, len(answers))
    strangers = [house[0]() for _ in range(5)]
    for stranger, _ in strangers[:2]:
        assert whole(stranger) == b""
    for stranger, inside in [*strangers[-3:], (friend, behind)]:
        stranger.sendall(b"here")
        assert whole(inside, 4) == b"here"


def test_pending_data_is_sent_at_the_end(house):
    """No other peer is accepted; closing twice is closing once."""
    come, doorway = house
    stranger, behind = come()
    behind.sendall(b"x" * 1_000_000)
    behind.close()
    closing = threading.Thread(target=doorway.close, args=(PATIENCE_S,))
    closing.start()
    assert whole(stranger) == b"x" * 1_000_000
    closing.join()
    doorway.close(0.0)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(stranger.getpeername(), PATIENCE_S)
