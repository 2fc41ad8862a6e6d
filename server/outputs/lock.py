"""The lock on an output folder: only one run at a time may write there."""

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
from pipistrelle.protocol.base.whole import is_still, read_whole, without_waiting
from pipistrelle.server.errors import OutputFailed

_MODE: Final = 0o666
_MOST_BYTES: Final = 1 << 16


@contextmanager
def sole_writer(prefix: str, option: str = "--out") -> Iterator[None]:
    """Keep other runs from writing outputs with this prefix, such as ``DIR/out``.

    Create the folder if needed. The lock is on a hidden file that names the writing process; the lock ends with the
    process. If the file system has no locks, log a warning. Raise OutputFailed, before anything is written, if another
    run writes there or the folder cannot be written.
    """
    path = _lock_file(prefix)
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    except BlockingIOError:
        raise OutputFailed(
            "another run is writing outputs here",
            where=str(folder),
            found=_writer(path),
            hint=f"Wait until it is over, end it, or choose another place with {option}.",
        ) from None
    except OSError as error:
        raise unwritable_folder(folder, error, option) from None
    try:
        yield
    finally:
        with suppress(OSError):  # removed while still locked: a process that has just opened it notices
            path.unlink()
        os.close(file)


def is_written(prefix: str) -> bool:
    """Return whether a run is writing outputs with this prefix now."""
    try:
        file = without_waiting(_lock_file(prefix), os.O_RDONLY)
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
    """Return the error for a folder that cannot be written."""
    return OutputFailed(
        f"cannot write to the output folder ({error.strerror or error})",
        where=str(folder),
        hint=f"Choose another with {option}.",
    )


def _lock_file(prefix: str) -> Path:
    folder, name = os.path.split(prefix)
    return Path(folder or ".") / f".{name}.lock"


def _locked(path: Path) -> int:
    """Open and lock the file; raise BlockingIOError if another process holds the lock."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, _MODE)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError as error:
                logger().warning("{}: cannot lock the folder ({}); let no other run write to it", path.parent, error)
            if not is_still(path, file):
                os.close(file)  # the previous run has just ended and removed the file
                continue
            os.ftruncate(file, 0)
            who = {"process": os.getpid(), "host": socket.gethostname(), "command": shlex.join(sys.argv)}
            os.write(file, json.dumps(who).encode())
        except OSError:
            os.close(file)
            raise
        return file


def _writer(path: Path) -> str | None:
    """Describe the process that holds the lock; None if unreadable."""
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        who = json.loads(read_whole(path)[:_MOST_BYTES])
        return f"process {who['process']} on {printable(who['host'])}: {printable(who['command'])}"
    return None
