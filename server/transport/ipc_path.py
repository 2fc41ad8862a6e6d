"""The file of a Unix socket that somebody shall listen at."""

import socket
from pathlib import Path

from pipistrelle.server.errors import EndpointError


def free_ipc_path(endpoint: str, option: str = "--endpoint") -> Path | None:
    """Remove the socket file that a killed program left behind, and return where the new one will be.

    ZeroMQ itself would silently take the path from a living program. None for an endpoint of another kind.

    Parameters
    ----------
    option
        chooses the endpoint on the command line.

    Raises
    ------
    EndpointError
        when something else is in the way, somebody listens there, or the folder is missing.
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
    raise in_use(endpoint, option)


def in_use(endpoint: str, option: str = "--endpoint") -> EndpointError:
    """Return the error for an endpoint at which somebody listens already."""
    return EndpointError(
        "the endpoint is in use",
        where=endpoint,
        hint=f"Another program listens there: end it, or choose another with {option}; "
        "tcp://127.0.0.1:* takes any free port.",
    )
