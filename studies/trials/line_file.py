"""Append lines to a file so that they survive crashes.

Each line is flushed to disk.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.whole import flush_to_disk, read_whole, without_waiting, write_rows, write_whole
from pipistrelle.server.errors import OutputFailed


class LineFile:
    """An append-only file of lines."""

    def __init__(self, path: Path, file: FileIO) -> None:
        self._path, self._file = path, file

    def append(self, lines: Iterable[bytes]) -> None:
        """Write lines and flush them to disk.

        Raise OutputFailed if the disk has no room for all lines. The file then ends with the last line that fits.
        """
        _, error = write_rows(self._file, b"".join(line + b"\n" for line in lines), quotes=False)
        try:
            flush_to_disk(self._file.fileno())
        except OSError as unsynced:
            error = error or unsynced
        if error is not None:
            raise _unwritable(self._path, error) from error


def read_lines(path: Path, what: str, make: type[PipistrelleError]) -> tuple[list[bytes], int]:
    """Return a file's complete lines, and their total length in bytes.

    An incomplete last line is left out. If the file does not exist, there are no lines.

    Args:
        what: names the file in an error.
        make: the error to raise if the file is unreadable.
    """
    try:
        content = read_whole(path)
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
        file = open(path, "ab", buffering=0, opener=without_waiting)  # noqa: SIM115 - closed below
        file.truncate(length)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield LineFile(path, file)
    finally:
        with suppress(OSError):  # reported already
            file.close()


def write_table(path: Path, content: bytes) -> None:
    """Replace a study's file as a whole; raise OutputFailed if it cannot be written."""
    try:
        write_whole(path, [content])
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> OutputFailed:
    return OutputFailed(
        f"cannot be written ({error.strerror or error})",
        where=str(path),
        hint="What was written stays. Free some space, then repeat the command to continue.",
    )
