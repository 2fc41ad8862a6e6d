"""Checking the address that a server shall listen at, before a socket is opened."""

import re
from typing import Final

from pipistrelle.protocol.sockets import is_loopback
from pipistrelle.server.errors import EndpointError

_TCP: Final = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:]+\]|[^:/\[\]]+):(?P<port>[0-9]{1,5}|\*)")
#: longest path of a Unix socket on Linux (sun_path, with its final zero byte)
_IPC_BYTES: Final = 107
_MAX_PORT: Final = 65535


def check_endpoint(endpoint: str, *, allow_remote: bool = False) -> str:
    """Return the endpoint if a server may listen there.

    Raises
    ------
    EndpointError
        when it is neither ``tcp://HOST:PORT`` nor ``ipc://PATH``, when the path is too long for a Unix socket, or
        when the host is beyond loopback and ``allow_remote`` is False.
    """
    if endpoint.startswith("ipc://"):
        path = endpoint.removeprefix("ipc://")
        length = len(path.encode("utf-8", "surrogateescape"))
        # @ begins an abstract socket, which has no rights, and * one in a folder of ZeroMQ's choice.
        if not 0 < length <= _IPC_BYTES or not endpoint.isprintable() or path[0] in "@*":
            raise EndpointError(
                "this is no usable path of a Unix socket",
                where=endpoint,
                expected=f"1 to {_IPC_BYTES} bytes of printable text after ipc://, a file's path",
                found=f"{length} bytes, '{path[:20]}'",
                hint="Use a shorter path, or tcp://127.0.0.1:28000.",
            )
        return endpoint
    match = _TCP.fullmatch(endpoint)
    if match is None or (match["port"] != "*" and not 0 < int(match["port"]) <= _MAX_PORT):
        raise EndpointError(
            "this is no endpoint",
            where=endpoint,
            expected="tcp://HOST:PORT (PORT 1 to 65535, or * for any free one) or ipc://PATH",
            hint="For example tcp://127.0.0.1:28000.",
        )
    if not allow_remote and not is_loopback(endpoint):
        raise EndpointError(
            "this endpoint can be reached from other machines, or is on one",
            where=endpoint,
            expected="a loopback address such as tcp://127.0.0.1:28000",
            hint="With --curve both sides show keys ('pipistrelle help remote'); with --insecure whoever reaches it "
            "can act as either.",
        )
    return endpoint
