"""Who writes to a folder: one run at a time, whichever command or program it is of."""

import fcntl
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.log import logger
from pipistrelle.server.errors import OutputFailed

_MODE: Final = 0o666
_MOST_BYTES: Final = 1 << 16


@contextmanager
def sole_writer(prefix: str, option: str = "--out") -> Iterator[None]:
    """Keep every other run from writing outputs whose paths begin with ``prefix``, such as ``DIR/out``.

    The folder is made if it is not there. The lock is the kernel's, on a hidden file beside the outputs that says who
    writes: it ends with the process, however that ends. Where a file system has no locks, that is warned of.

    Parameters
    ----------
    option
        the command line's option that chooses the place, for the error's text.

    Raises
    ------
    OutputFailed
        when another run writes there, or nothing can be written there: before anything is.
    """
    path = _lock_file(prefix)
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    except BlockingIOError:
        raise OutputFailed(
            "another run writes its outputs there",
            where=str(folder),
            found=_writer(path),
            hint=f"Wait until it is over, end it, or choose another place with {option}.",
        ) from None
    except OSError as error:
        raise unwritable_folder(folder, error, option) from None
    try:
        yield
    finally:
        with suppress(OSError):  # while it is still ours: who has opened it meanwhile finds that it is gone
            path.unlink()
        os.close(file)


def is_written(prefix: str) -> bool:
    """Return whether a run is writing outputs with this prefix now."""
    try:
        file = os.open(_lock_file(prefix), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False


def unwritable_folder(folder: Path, error: OSError, option: str = "--out") -> OutputFailed:
    """Return the error for a folder in which no output can be written."""
    return OutputFailed(
        f"cannot write to the outputs' folder ({error.strerror or error})",
        where=str(folder),
        hint=f"Choose another with {option}.",
    )


def _lock_file(prefix: str) -> Path:
    folder, name = os.path.split(prefix)
    return Path(folder or ".") / f".{name}.lock"


def _locked(path: Path) -> int:
    """Return the lock's open file, with our name in it; OSError, BlockingIOError if it is another's."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, _MODE)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError as error:
                logger().warning("{}: no lock can be had ({}): let no other run write there", path.parent, error)
            if not _is_still(path, file):
                os.close(file)  # the run before has just ended, and removed it
                continue
            os.ftruncate(file, 0)
            who = {"process": os.getpid(), "host": socket.gethostname(), "command": shlex.join(sys.argv)}
            os.write(file, json.dumps(who).encode())
        except OSError:
            os.close(file)
            raise
        return file


def _is_still(path: Path, file: int) -> bool:
    """Return whether the open file is the one of this name."""
    try:
        there, ours = os.stat(path), os.fstat(file)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _writer(path: Path) -> str | None:
    """Return who holds the lock, in words; None if that cannot be read."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        who = json.loads(path.read_bytes()[:_MOST_BYTES])
        return f"process {who['process']} on {printable(who['host'])}: {printable(who['command'])}"
    return None
