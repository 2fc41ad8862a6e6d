"""Files that outlast an interruption: lines on the disk before what follows begins, files whole or absent."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.server.errors import OutputFailed


class LineFile:
    """A file of lines that only grows.

    Parameters
    ----------
    path
        its name, for messages.
    file
        it, opened to append to.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file

    def append(self, lines: Iterable[bytes]) -> None:
        """Let lines reach the disk; OutputFailed if they cannot."""
        try:
            for line in lines:
                self._file.write(line + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self._path, error) from None


def read_lines(path: Path, what: str, make: type[PipistrelleError]) -> tuple[list[bytes], int]:
    """Return the whole lines of a file, and how many bytes these have; none if the file does not exist.

    What follows the last newline was cut off, and is left out. If the file cannot be read, the error says that
    ``what`` cannot be.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise make(f"{what} cannot be read ({error.strerror or error})", where=str(path)) from None
    *lines, rest = content.split(b"\n")
    return lines, len(content) - len(rest)


@contextmanager
def open_lines(path: Path, length: int) -> Iterator[LineFile]:
    """Yield a file to append lines to, cut to so many bytes first; OutputFailed if it cannot be written."""
    try:
        file = path.open("ab")
        file.truncate(length)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield LineFile(path, file)
    finally:
        with suppress(OSError):  # what could not be written was told of already
            file.close()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all; OutputFailed if that cannot be done."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> OutputFailed:
    return OutputFailed(
        f"cannot be written ({error.strerror or error})",
        where=str(path),
        hint="What was written stays: make room, and run the same command to go on.",
    )
