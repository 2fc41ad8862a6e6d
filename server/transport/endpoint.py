"""Check listening endpoints, bind sockets, and manage the files of Unix sockets."""

import errno
import fcntl
import re
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pipistrelle.protocol.sockets import is_loopback
from pipistrelle.server.errors import EndpointError

_TCP: Final = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:]+\]|[^:/\[\]]+):(?P<port>[0-9]{1,5}|\*)")
#: longest path of a Unix socket on Linux (sun_path with its zero byte)
_IPC_BYTES: Final = 107
_MAX_PORT: Final = 65535
_BACKLOG: Final = 128
#: ioctl request for the address of a network interface, and the address's position in the result (netdevice(7))
_SIOCGIFADDR: Final = 0x8915
_INTERFACE: Final = struct.Struct("16s4x4s16x")


class BoundSocket:
    """A non-blocking listening socket.

    Args:
        endpoint: ``tcp://HOST:PORT`` or ``ipc://PATH``, already checked. HOST may be an interface or ``*``, PORT may be
            ``*`` (any free port).

    Raises:
        EndpointError: the server cannot listen there.
    """

    def __init__(self, endpoint: str, option: str = "--endpoint") -> None:
        self._file = free_ipc_path(endpoint, option)
        self.socket = socket.socket()
        self.socket.close()
        try:
            self._bind(endpoint)
        except (OSError, UnicodeError) as error:
            self.socket.close()
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                raise _in_use(endpoint, option) from None
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise EndpointError(
                f"cannot listen here ({reason})", where=endpoint, hint=f"Choose another with {option}."
            ) from None
        #: the endpoint, with the actual port
        self.endpoint = endpoint
        if self._file is None:
            host, port = self.socket.getsockname()[:2]
            self.endpoint = f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"

    def _bind(self, endpoint: str) -> None:
        if self._file is not None:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(str(self._file))
        else:
            host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
            family, address = _resolved(host, 0 if port == "*" else int(port))
            self.socket = socket.socket(family)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # [::] also accepts IPv4
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self.socket.bind(address)
        self.socket.listen(_BACKLOG)
        self.socket.setblocking(False)

    def close(self) -> None:
        """Stop listening."""
        self.remove_file()
        self.socket.close()

    def remove_file(self) -> None:
        """Remove the file of a Unix socket."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()


def check_endpoint(endpoint: str, *, allow_remote: bool = False) -> str:
    """Return the endpoint if a server may listen there, else raise EndpointError.

    It may listen at ``ipc://PATH`` if the path is short enough, and at ``tcp://HOST:PORT``. Without ``allow_remote``,
    HOST must be a loopback address.
    """
    if endpoint.startswith("ipc://"):
        path = endpoint.removeprefix("ipc://")
        length = len(path.encode("utf-8", "surrogateescape"))
        # @ begins an abstract socket, which has no access rights; * would be a path chosen by ZeroMQ.
        if not 0 < length <= _IPC_BYTES or not endpoint.isprintable() or path[0] in "@*":
            raise EndpointError(
                "this is not a usable path of a Unix socket",
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
            hint="Use --curve, with keys on both sides ('pipistrelle help remote'); with --insecure any program that "
            "reaches the endpoint can act as either side.",
        )
    return endpoint


def free_ipc_path(endpoint: str, option: str = "--endpoint") -> Path | None:
    """Remove the socket file of a killed program; return the path for a new socket.

    ZeroMQ would silently take the path from a running program. Return None if the endpoint is not ``ipc://``.

    Raises:
        EndpointError: another file has the path, a program listens there, or the folder is missing.
    """
    if not endpoint.startswith("ipc://"):
        return None
    path = Path(endpoint.removeprefix("ipc://"))
    if not path.parent.is_dir():
        raise EndpointError("the folder does not exist", where=endpoint, hint=f"Create {path.parent} first.")
    if not path.exists():
        return path
    if not path.is_socket():
        raise EndpointError("a file that is no socket is in the way", where=endpoint, hint="Choose another path.")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return path
        except OSError as error:
            raise EndpointError(f"cannot listen here ({error.strerror})", where=endpoint) from None
    raise _in_use(endpoint, option)


def _in_use(endpoint: str, option: str = "--endpoint") -> EndpointError:
    return EndpointError(
        "the endpoint is in use",
        where=endpoint,
        hint=f"Another program listens there: end it, or choose another with {option}; "
        "tcp://127.0.0.1:* takes any free port.",
    )


def _resolved(host: str, port: int) -> tuple[int, Any]:
    """Return (address family, address) of a host or an interface.

    The host may be an IPv6 address in brackets.
    """
    if host == "*":
        return socket.AF_INET, ("", port)
    if host.startswith("["):
        found = socket.getaddrinfo(host.strip("[]"), port, socket.AF_INET6, socket.SOCK_STREAM)
    elif host in (name for _, name in socket.if_nameindex()):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            request = _INTERFACE.pack(host.encode(), b"")
            _, address = _INTERFACE.unpack(fcntl.ioctl(asking, _SIOCGIFADDR, request))
        return socket.AF_INET, (socket.inet_ntoa(address), port)
    else:
        found = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)
    return found[0][0], found[0][4]
