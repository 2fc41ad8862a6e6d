"""Read the CSV files of an output folder as columns of cells, each file once."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.whole import read_whole
from pipistrelle.runs.folders.cells import TextColumn
from pipistrelle.runs.folders.files import ExplainError
from pipistrelle.runs.folders.packed import packed_table
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX

#: maximum characters of one cell: no message of a scheduler is longer
_LONGEST_CELL: Final = 1 << 27

_QUOTE: Final = ord('"')

#: number of bytes of a file to search together, small enough for a processor's cache
_BLOCK: Final = 1 << 18

Columns = Mapping[str, TextColumn]


class OutputTables:
    """The tables of an output folder; incomplete last lines are skipped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Columns | None] = {}

    def columns(self, name: str, *needed: str) -> Columns:
        """Return {column: cells} of ``out_NAME.csv``.

        Raise ExplainError if the file or a needed column is missing.
        """
        found = self.perhaps(name, *needed)
        if found is None:
            raise ExplainError(f"the folder has no {OUTPUT_PREFIX}{name}.csv", where=str(self.folder))
        return found

    def perhaps(self, name: str, *needed: str) -> Columns | None:
        """Return {column: cells} of ``out_NAME.csv``.

        Return None if the folder has no such table. Older versions did not write some tables. Raise ExplainError if a
        needed column is missing.
        """
        path = self.folder / f"{OUTPUT_PREFIX}{name}.csv"
        if name not in self._read:
            self._read[name] = _columns(path)
            if self._read[name] is None and (packed := packed_table(self.folder, name)) is not None:
                self._read[name] = {column: TextColumn.of(cells) for column, cells in packed.items()}
        found = self._read[name]
        missing = [column for column in needed if found is not None and column not in found]
        if missing:
            raise ExplainError(f"the column {missing[0]} is missing", where=str(path), hint="Is it a run's output?")
        return found


def _columns(path: Path) -> Columns | None:
    csv.field_size_limit(_LONGEST_CELL)
    try:
        octets = read_whole(path)
        if not octets.isascii():
            octets.decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExplainError(f"cannot read the file ({error.strerror or error})", where=str(path)) from None
    except UnicodeDecodeError:
        raise ExplainError("the file is not UTF-8 text", where=str(path)) from None
    octets = octets[: octets.rfind(b"\n") + 1]
    plain = _plain_columns(octets)
    if plain is not None:
        return plain
    rows: list[list[str]] = []
    with suppress(csv.Error):  # the file ends inside a quoted field; read the lines before it
        rows.extend(csv.reader(io.StringIO(octets.decode(), newline=""), strict=True))
    if not rows:
        return {}
    header, *lines = rows
    if set(map(len, lines)) - {len(header)}:  # the last line is incomplete
        del lines[next(number for number, line in enumerate(lines) if len(line) != len(header)) :]
    cells: Sequence[Sequence[str]] = list(zip(*lines, strict=True)) or [()] * len(header)
    return dict(zip(header, map(TextColumn.of, cells), strict=True))


def _plain_columns(text: bytes) -> Columns | None:
    """Split a CSV text into columns; return None if the text needs a full CSV parser."""
    if not text or b"\r" in text:
        return None
    header = text[: text.find(b"\n")].decode().split(",")
    width = len(header)
    octets = np.frombuffer(text, dtype=np.uint8)
    blocks: list[tuple[int, NDArray[np.int32]]] = []
    begin = quotes = 0
    while begin < len(text):
        end = text.rfind(b"\n", begin, begin + _BLOCK) + 1 or text.find(b"\n", begin) + 1
        block = octets[begin:end]
        ends = np.flatnonzero((block == ord(",")) | (block == ord("\n")))
        if len(ends) % width or end - begin > _LONGEST_CELL:
            return None
        marks = block[ends].reshape(-1, width)
        if not (marks[:, -1] == ord("\n")).all() or (marks[:, :-1] == ord("\n")).any():
            return None
        quotes += int(np.count_nonzero(block == _QUOTE))
        blocks.append((begin, np.ascontiguousarray(ends.reshape(-1, width).T, dtype=np.int32)))
        begin = end
    empty = None
    if quotes:  # two quotes as the last cell are an empty text
        last = _PlainColumns(header, octets, blocks, None)[header[-1]]
        empty = np.flatnonzero(last.lengths == 2)
        at = last.begins[empty]
        empty = empty[(octets[at] == _QUOTE) & (octets[at + 1] == _QUOTE)]
        if quotes != 2 * len(empty) or '"' in header[-1]:
            return None
    return _PlainColumns(header, octets, blocks, empty)


class _PlainColumns(Columns):
    """The columns of a CSV file; a column is built when it is first read.

    Args:
        blocks: for each block of lines including the header: its offset in the file, and the ends of its cells relative
        to that offset, shape (columns, lines).
        empty: numbers of the lines whose last cell is a quoted empty text.
    """

    def __init__(
        self,
        header: Sequence[str],
        octets: NDArray[np.uint8],
        blocks: Sequence[tuple[int, NDArray[np.int32]]],
        empty: NDArray[np.intp] | None,
    ) -> None:
        self._places = {name: place for place, name in enumerate(header)}
        self._last = len(header) - 1
        self._octets = octets
        self._blocks = blocks
        self._empty = empty
        self._made: dict[str, TextColumn] = {}

    def __getitem__(self, name: str) -> TextColumn:
        place = self._places[name]
        if name not in self._made:
            ends = self._ends(place)
            begins = self._ends(place - 1)[1:] + 1 if place else self._ends(self._last)[:-1] + 1
            lengths = ends[1:] - begins
            if place == self._last and self._empty is not None:
                lengths[self._empty] = 0
            self._made[name] = TextColumn(self._octets, begins, lengths)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _ends(self, place: int) -> NDArray[np.int64]:
        """Return the end (byte offset) of each cell of column ``place``.

        The header is included: the shape is (lines + 1,).
        """
        found = np.empty(sum(block.shape[1] for _, block in self._blocks), dtype=np.int64)
        row = 0
        for begin, block in self._blocks:
            np.add(block[place], begin, out=found[row : row + block.shape[1]])
            row += block.shape[1]
        return found


def numbers(cells: Sequence[str], empty: float = np.nan) -> NDArray[np.float64]:
    """Parse cells as finite numbers (``empty`` for ""), or raise ExplainError."""
    read = cells.numbers() if isinstance(cells, TextColumn) else None
    if read is not None:
        found, is_empty = read
        found[is_empty] = empty
        return found
    try:
        found = np.array(list(map(float, cells)), dtype=np.float64)
    except ValueError:
        found = np.array([_number(cell, empty) for cell in cells], dtype=np.float64)
    else:
        if not np.isfinite(found).all():
            raise _no_number(cells[int(np.flatnonzero(~np.isfinite(found))[0])])
    return found


def _number(cell: str, empty: float) -> float:
    if not cell:
        return empty
    try:
        number = float(cell)
    except ValueError:
        raise _no_number(cell) from None
    if not np.isfinite(number):
        raise _no_number(cell)
    return number


def _no_number(cell: str) -> ExplainError:
    return ExplainError("a value in the outputs is not a number", found=f"'{printable(cell)[:60]}'")
