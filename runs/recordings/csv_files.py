"""Read the CSV files of a recording; each error names the file and the line."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipistrelle.protocol.base.errors import printable, quoted
from pipistrelle.runs.recordings.errors import RecordingError
from pipistrelle.traces.files import read_text


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of a CSV file: {column: text}, and its file and line."""

    cells: dict[str, str]
    where: str

    def __getitem__(self, column: str) -> str:
        """Return the text that the row has in a column."""
        return self.cells[column]

    def number(self, column: str, *, least: float = 0.0) -> float:
        """Return the number in a column.

        Raise RecordingError if the cell is not a finite number of at least ``least``.
        """
        try:
            value = float(self.cells[column])
        except ValueError:
            value = math.nan
        if not least <= value < math.inf:
            raise self.wrong(column, f"a number of at least {least:g}")
        return value

    def whole(self, column: str, *, least: int = 0) -> int:
        """Return the whole number in a column, or raise RecordingError as `number` does."""
        value = self.number(column, least=least)
        if value != int(value):
            raise self.wrong(column, "a whole number")
        return int(value)

    def wrong(self, column: str, expected: str) -> RecordingError:
        """Return an error that says what was ``expected`` in a column instead of its value."""
        found = quoted(self.cells[column])
        return RecordingError(f"wrong value of '{column}'", where=self.where, expected=expected, found=found)


def read_rows(folder: Path, name: str, columns: Sequence[str], *, optional: bool = False) -> list[CsvRow]:
    """Return the rows of a CSV file.

    Args:
        columns: the columns that are used; further columns are kept.
        optional: return [] if the file does not exist.

    Raises:
        RecordingError: the file is missing, or a line is damaged.
    """
    path = folder / name
    if not path.is_file():
        if optional:
            return []
        raise missing(folder, name)
    return list(_rows(path, columns))


def missing(folder: Path, name: str) -> RecordingError:
    """Return the error about a missing file that every recording must have."""
    return RecordingError(
        f"the recording has no file '{name}'",
        where=printable(str(folder)),
        hint="'pipistrelle slurm record' makes recordings.",
    )


def _rows(path: Path, columns: Sequence[str]) -> Iterator[CsvRow]:
    shown = printable(str(path))
    lines = csv.reader(read_text(path).splitlines(keepends=True), strict=True)
    head: list[str] = []
    try:
        for cells in lines:
            where = f"{shown}:{lines.line_num}"
            if not head:
                head = cells
                lacking = [name for name in columns if name not in head]
                if lacking:
                    raise RecordingError("a column is missing", where=where, expected=f"the column '{lacking[0]}'")
            elif len(cells) != len(head):
                raise RecordingError(
                    "the line is damaged", where=where, expected=f"{len(head)} cells", found=str(len(cells))
                )
            else:
                yield CsvRow(dict(zip(head, cells, strict=True)), where)
    except csv.Error as error:
        raise RecordingError(f"the line is damaged ({error})", where=f"{shown}:{lines.line_num}") from None
    if not head:
        raise RecordingError("the file is empty", where=shown, expected="a line with the names of the columns")
