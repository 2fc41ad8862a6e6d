"""Files that survive interruptions: lines synced to disk, and files written whole."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.server.errors import OutputFailed


class LineFile:
    """An append-only file of lines."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file

    def append(self, lines: Iterable[bytes]) -> None:
        """Write lines to disk, or raise OutputFailed."""
        try:
            for line in lines:
                self._file.write(line + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self._path, error) from None


def read_lines(path: Path, what: str, make: type[PipistrelleError]) -> tuple[list[bytes], int]:
    """Return a file's whole lines and their length in bytes; none without a file.

    An incomplete last line is left out.

    Args:
        what: names the file in an error.
        make: the error to raise if the file is unreadable.
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
    """Truncate a file to ``length`` bytes and yield it for appending."""
    try:
        file = path.open("ab")
        file.truncate(length)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield LineFile(path, file)
    finally:
        with suppress(OSError):  # reported already
            file.close()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically, or raise OutputFailed."""
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
        hint="What was written stays. Free some space, then repeat the command to continue.",
    )
