"""CSV files that are written during a run and that a resumed run can continue."""

import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Any, Final, Literal

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.base.whole import flush_to_disk, write_rows
from pipistrelle.server.errors import OutputFailed

MANY_LINES: Final = 512
#: argument of `seek`: count from the end of the file
_FROM_END: Final = 2
#: finds a character that requires quotes around its field
special: Final = re.compile(r'[,"\r\n]').search


class CsvFile:
    """A file written line by line; every failure raises `OutputFailed`.

    The file has whole rows only, even if the disk is full. The saved state is the file's length in bytes.

    Args:
        option: command-line option that chooses the path, for error messages.
        lines_of: turns added rows into lines with newlines; by default each row is such a line.
    """

    def __init__(
        self,
        path: str,
        columns: str,
        option: str = "--out",
        lines_of: Callable[[list[Any]], Iterable[str]] = iter,
    ) -> None:
        self._path = path
        self._columns = columns
        self._option = option
        self._lines_of = lines_of
        self._file: FileIO | None = None
        #: rows not yet written; fast callers append here and call `hand_over` after `MANY_LINES` rows
        self.rows: list[Any] = []
        self._left = b""

    def open(self) -> None:
        """Create the file and write its header."""
        self._file = self._opened("wb")
        header = f"{self._columns}\n".encode()
        written, _ = write_rows(self._file, header)  # a full disk is reported after all files are open
        self._left = header[written:]

    def write(self, row: Any) -> None:
        """Add a row, which is written later with others."""
        rows = self.rows
        rows.append(row)
        if len(rows) >= MANY_LINES:
            self.hand_over()

    def hand_over(self) -> None:
        """Convert all rows added with `write` to lines, and write these to the file."""
        rows = self._left + "".join(self._lines_of(self.rows)).encode()
        self.rows.clear()
        written, error = write_rows(self._file, rows)  # type: ignore[arg-type]  # it is open
        self._left = rows[written:]
        if error is not None:
            raise unwritable(self._path, error, self._option) from error

    def flush(self) -> None:
        """Write all added rows to the file, if it is open."""
        if self._file is not None:
            self.hand_over()

    def state(self) -> int:
        """Write all rows and return the file's size in bytes."""
        assert self._file is not None
        self.hand_over()
        try:
            return self._file.tell()
        except OSError as error:
            raise unwritable(self._path, error, self._option) from None

    def restore(self, size: int) -> None:
        """Open an existing file instead of a new one, and cut it off after ``size`` bytes."""
        file = self._file = self._opened("r+b")
        try:
            if (found := file.seek(0, _FROM_END)) < size:
                raise OutputFailed(
                    "the output is shorter than when the run was saved",
                    where=self._path,
                    expected=f"{size} bytes or more",
                    found=str(found),
                )
            file.seek(size)
            file.truncate()
        except OSError as error:
            raise unwritable(self._path, error, self._option) from None

    def close(self) -> None:
        """Write all rows, wait until they are on disk, and close the file, if it is open."""
        if self._file is None:
            return
        try:
            self.hand_over()
        finally:
            file, self._file = self._file, None
            try:
                with file:
                    flush_to_disk(file.fileno())
            except OSError as error:
                raise unwritable(self._path, error, self._option) from None

    def _opened(self, mode: Literal["wb", "r+b"]) -> FileIO:
        try:
            return open(self._path, mode, buffering=0)
        except OSError as error:
            raise unwritable(self._path, error, self._option) from None


class Written(Kept):
    """Base class of observers that write one or more `CsvFile`; raises OutputFailed."""

    def open(self) -> None:
        """Create the files and write their headers."""
        for file in self._files():
            file.open()

    def restore(self, state: Any, *made: Any, **more: Any) -> None:
        """Continue the existing files.

        The lines written after the snapshot ``state`` are cut off.
        """
        try:
            super().restore(state, *made, **more)
        except OutputFailed:
            self.close()
            raise

    def flush(self) -> None:
        """Write all added rows to the files."""
        for file in self._files():
            file.flush()

    def close(self) -> None:
        """Write all rows and close all files, even if writing one of them fails."""
        with ExitStack() as closing:
            for file in self._files():
                closing.callback(file.close)

    def _files(self) -> list[CsvFile]:
        return [file for name in self._kept if isinstance(file := getattr(self, name), CsvFile)]


def unwritable(path: str | Path, error: OSError, option: str = "--out") -> OutputFailed:
    """Return the error for an output file that cannot be written."""
    return OutputFailed(
        f"cannot write the output ({error.strerror or error})",
        where=str(path),
        hint=f"Free space, or choose another folder with {option}; what was written before is kept.",
    )


def csv_text(text: str) -> str:
    """Return a text as a CSV field (RFC 4180)."""
    if special(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'
