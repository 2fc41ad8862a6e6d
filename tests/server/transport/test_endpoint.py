"""Addresses that a server may listen at."""

import pytest

from pipistrelle.server.errors import EndpointError
from pipistrelle.server.transport.endpoint import check_endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://127.0.0.1:28000",
        "tcp://127.0.0.1:*",
        "tcp://localhost:1",
        "tcp://[::1]:65535",
        "tcp://127.9.8.7:28000",
        "ipc:///run/user/server",
        "ipc://relative",
    ],
)
def test_loopback_and_unix_sockets_are_taken(endpoint: str) -> None:
    """The endpoint is returned unchanged."""
    assert check_endpoint(endpoint) == endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "28000",
        "127.0.0.1:28000",
        "http://127.0.0.1:28000",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:",
        "tcp://127.0.0.1:0",
        "tcp://127.0.0.1:65536",
        "tcp://127.0.0.1:-1",
        "tcp://:28000",
        "tcp://127.0.0.1:28000/path",
        "inproc://server",
        "ipc://",
        "ipc://" + "x" * 108,
        "ipc://" + "ü" * 54,
    ],
)
def test_invalid_endpoint_is_rejected(endpoint: str) -> None:
    """Form, port range and the length of a socket's path in bytes are checked before anything is opened."""
    with pytest.raises(EndpointError) as caught:
        check_endpoint(endpoint, allow_remote=True)

    assert caught.value.exit_code == 2
    assert "tcp://127.0.0.1:28000" in str(caught.value)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "*", "lo", "10.0.0.1", "node7", "[::]", "localhost.evil.org", "127.0.0.1.org"],  # noqa: S104
)
def test_an_address_that_others_can_reach_must_be_allowed(host: str) -> None:
    """Any peer that reaches the server can act as the scheduler, so this requires an option."""
    endpoint = f"tcp://{host}:28000"
    with pytest.raises(EndpointError, match="--insecure"):
        check_endpoint(endpoint)

    assert check_endpoint(endpoint, allow_remote=True) == endpoint
