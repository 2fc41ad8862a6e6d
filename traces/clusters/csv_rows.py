"""Read the rows of CSV files as {column: cell}."""

import csv
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Final

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError, line_fault

#: what to do about a row that cannot be read
HINT: Final = "Correct or remove the line."


class Cells(dict[str, str]):
    """A row of a table as {column: cell}, with the number of its first line."""

    def __init__(self, columns: list[str], texts: list[str], where: str, line: int, hint: str = HINT) -> None:
        super().__init__(zip(columns, texts, strict=False))
        self.line = line
        self._where = where
        self._hint = hint

    def fault(self, what: str, expected: str, column: str) -> TraceError:
        """Return an error about this row.

        The error quotes the cell of `column`, or the column's name if the table does not have it.
        """
        return line_fault(f"{self._where}, line {self.line}", what, expected, self.get(column, column), self._hint)


class CsvLines:
    """The rows of a CSV file.

    Args:
        where: the file's name, for messages.
        needed: columns that the file must have.
        expected: the expected header, for messages.

    Raises:
        TraceError: a needed column is missing.
    """

    def __init__(
        self, stream: Iterable[bytes], where: str, needed: tuple[str, ...] = (), expected: str = "", hint: str = HINT
    ) -> None:
        self._where = where
        self._hint = hint
        self._reader = csv.reader(map(_decoded, stream, chain(["utf-8-sig"], repeat("utf-8"))))
        self.columns = next(self._next(), (1, []))[1]
        require_columns(needed, self.columns, f"{where}, line 1", expected, ",".join(self.columns))

    def _next(self) -> Iterator[tuple[int, list[str]]]:
        line = self._reader.line_num + 1
        try:
            for row in self._reader:
                cells = [cell.strip() for cell in row] if row else row
                if any(cells):
                    yield line, cells
                line = self._reader.line_num + 1
        except csv.Error as error:
            raise self._fault(line, "the row is not CSV", "cells with commas between", error) from None

    def __iter__(self) -> Iterator[Cells]:
        for line, cells in self._next():
            if len(cells) != len(self.columns):
                raise self._fault(
                    line,
                    "the row has another number of cells than the header",
                    f"{len(self.columns)} cells",
                    f"{len(cells)} cells",
                )
            yield Cells(self.columns, cells, self._where, line, self._hint)

    def _fault(self, line: int, what: str, expected: str, found: object) -> TraceError:
        return line_fault(f"{self._where}, line {line}", what, expected, found, self._hint)


def _decoded(line: bytes, encoding: str) -> str:
    return line.decode(encoding, "replace")


def text_lines(stream: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of each line of a file."""
    for number, line in enumerate(stream, 1):
        yield number, _decoded(line, "utf-8-sig" if number == 1 else "utf-8")


def require_columns(needed: tuple[str, ...], columns: list[str], where: str, expected: str, found: str) -> None:
    """Raise TraceError if a table lacks a needed column; `found` is its header."""
    for column in needed:
        if column not in columns:
            raise TraceError(f"the column '{column}' is missing", where=where, expected=expected, found=quoted(found))
