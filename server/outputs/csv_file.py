"""Files of lines that grow with a run, and are written on when it goes on later; and how a text stands in them."""

import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final, Literal

from pipistrelle.protocol.base.state import Kept
from pipistrelle.server.errors import OutputFailed

#: so many lines are written at once
MANY_LINES: Final = 512
#: counts a place in a file from its end
_FROM_END: Final = 2
#: finds what must be quoted in a field
special: Final = re.compile(r'[,"\r\n]').search


class CsvFile:
    """A file that is written line by line once it is open; whatever cannot be done raises `OutputFailed`.

    Each write is one of whole lines, and of the header when it is opened: whatever ends the process, nothing is cut in
    two. Its state is its length in bytes.

    Parameters
    ----------
    path
        where it is.
    columns
        its header.
    option
        the command line's option that chooses where it is, for the error's text.
    lines_of
        makes the lines of what is added: texts, each a line that ends with a newline, unless something else is said.
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
        #: what is not written yet: many lines at once cost less than one by one. Who adds in great number may do so
        #: here, and hand over as `write` does
        self.rows: list[Any] = []
        #: what could not be written
        self._left = b""

    def open(self) -> None:
        """Open the file anew and write its header."""
        self._file = self._opened("wb")
        header = f"{self._columns}\n"
        with suppress(OSError):  # a full disk is told of when lines follow; the other files are opened first
            header = header[self._file.write(header.encode()) :]
        self._left = header.encode()

    def write(self, row: Any) -> None:
        """Write a line: its text, or what its text is made of later."""
        rows = self.rows
        rows.append(row)
        if len(rows) >= MANY_LINES:
            self.hand_over()

    def hand_over(self) -> None:
        """Write the lines of all that was added."""
        left = memoryview(self._left + "".join(self._lines_of(self.rows)).encode())
        self.rows.clear()
        try:
            while left:  # a disk that is nearly full takes a part
                left = left[self._file.write(left) :]  # type: ignore[union-attr]  # it is open
            self._left = b""
        except OSError as error:
            self._left = bytes(left)
            raise unwritable(self._path, error, self._option) from None

    def flush(self) -> None:
        """Let the lines so far reach the disk, if the file is open."""
        if self._file is not None:
            self.hand_over()

    def state(self) -> int:
        """Write what is left and return the file's size in bytes."""
        assert self._file is not None
        self.hand_over()
        try:
            return self._file.tell()
        except OSError as error:
            raise unwritable(self._path, error, self._option) from None

    def restore(self, size: int) -> None:
        """Open a file that has lines already, in place of `open`, and cut it off after ``size`` bytes."""
        file = self._file = self._opened("r+b")
        try:
            if (found := file.seek(0, _FROM_END)) < size:
                raise OutputFailed(
                    "the output so far is not whole",
                    where=self._path,
                    expected=f"{size} bytes or more",
                    found=str(found),
                )
            file.seek(size)
            file.truncate()
        except OSError as error:
            raise unwritable(self._path, error, self._option) from None

    def close(self) -> None:
        """Write what is left and close the file, if it is open."""
        if self._file is None:
            return
        try:
            self.hand_over()
        finally:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError as error:
                raise unwritable(self._path, error, self._option) from None

    def _opened(self, mode: Literal["wb", "r+b"]) -> FileIO:
        try:
            return open(self._path, mode, buffering=0)
        except OSError as error:
            raise unwritable(self._path, error, self._option) from None


class Written(Kept):
    """What writes files: those `CsvFile` among what it keeps."""

    def open(self) -> None:
        """Open the files anew and write their headers."""
        for file in self._files():
            file.open()

    def restore(self, state: Any, *made: Any, **more: Any) -> None:
        """Write on to the files that there are, in place of `open`; what came after the state is cut off."""
        try:
            super().restore(state, *made, **more)
        except OutputFailed:
            self.close()
            raise

    def flush(self) -> None:
        """Let the lines so far reach the disk."""
        for file in self._files():
            file.flush()

    def close(self) -> None:
        """Write what is left and close the files; one full disk must not keep the others from being closed."""
        with ExitStack() as closing:
            for file in self._files():
                closing.callback(file.close)

    def _files(self) -> list[CsvFile]:
        return [file for name in self._kept if isinstance(file := getattr(self, name), CsvFile)]


def unwritable(path: str | Path, error: OSError, option: str = "--out") -> OutputFailed:
    """Return the error for an output that cannot be written; ``option`` chooses where it is."""
    return OutputFailed(
        f"cannot write the output ({error.strerror or error})",
        where=str(path),
        hint=f"Make room, or choose another folder with {option}; what was written before is kept.",
    )


def csv_text(text: str) -> str:
    """Return a text as a CSV field (RFC 4180)."""
    if special(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'
