"""The CSV files of a run's folder as columns of cells: each is read once, whole."""

import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import printable
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX
from pipistrelle.studies.explain.files import ExplainError
from pipistrelle.studies.report.cells import TextColumn

#: characters of one cell: a frame of a scheduler has no more
_LONGEST_CELL: Final = 1 << 27

_QUOTE: Final = ord('"')

Columns = dict[str, TextColumn]


class OutputTables:
    """The tables of a folder of outputs, as far as they were written: a last line that was cut off is left out.

    Parameters
    ----------
    folder
        the outputs of a run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Columns | None] = {}

    def columns(self, name: str, *needed: str) -> Columns:
        """Return {column: its cells, one for each line} of ``out_NAME.csv``.

        Raises
        ------
        ExplainError
            when there is no such file, it cannot be read, or has not the columns ``needed``.
        """
        found = self.perhaps(name, *needed)
        if found is None:
            raise ExplainError(f"there is no {OUTPUT_PREFIX}{name}.csv in it", where=str(self.folder))
        return found

    def perhaps(self, name: str, *needed: str) -> Columns | None:
        """Return the same, None where there is no such file, as in outputs of an older version."""
        path = self.folder / f"{OUTPUT_PREFIX}{name}.csv"
        if name not in self._read:
            self._read[name] = _columns(path)
        found = self._read[name]
        missing = [column for column in needed if found is not None and column not in found]
        if missing:
            raise ExplainError(f"there is no column {missing[0]}", where=str(path), hint="Is it a run's output?")
        return found


def _columns(path: Path) -> Columns | None:
    csv.field_size_limit(_LONGEST_CELL)
    try:
        octets = path.read_bytes()
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
    with suppress(csv.Error):  # a quoted field that was cut off ends the file; the lines before it are there
        rows.extend(csv.reader(io.StringIO(octets.decode(), newline=""), strict=True))
    if not rows:
        return {}
    header, *lines = rows
    if set(map(len, lines)) - {len(header)}:  # a line was cut off
        del lines[next(number for number, line in enumerate(lines) if len(line) != len(header)) :]
    cells: Sequence[Sequence[str]] = list(zip(*lines, strict=True)) or [()] * len(header)
    return dict(zip(header, map(TextColumn.of, cells), strict=True))


def _plain_columns(text: bytes) -> Columns | None:
    """Return the columns of lines that quote nothing but empty last cells, as most outputs do; None of others."""
    if not text or b"\r" in text:
        return None
    header = text[: text.find(b"\n")].decode().split(",")
    width = len(header)
    octets = np.frombuffer(text, dtype=np.uint8)
    quotes = int(np.count_nonzero(octets == _QUOTE)) if b'"' in text else 0
    ends = np.flatnonzero((octets == ord(",")) | (octets == ord("\n")))
    if len(ends) % width:
        return None
    marks = octets[ends].reshape(-1, width)
    if not (marks[:, -1] == ord("\n")).all() or (marks[:, :-1] == ord("\n")).any():
        return None
    begins = np.concatenate([[0], ends[:-1] + 1]).reshape(-1, width)
    lengths = ends.reshape(-1, width) - begins
    if quotes:  # two are an empty text, if there is nothing else in the last cell
        pairs = np.flatnonzero(lengths[:, -1] == 2)
        last = begins[pairs, -1]
        pairs = pairs[(octets[last] == _QUOTE) & (octets[last + 1] == _QUOTE)]
        if quotes != 2 * len(pairs) or '"' in header[-1]:
            return None
        lengths[pairs, -1] = 0
    rows = slice(1, None)
    return {
        name: TextColumn(octets, np.ascontiguousarray(begins[rows, place]), np.ascontiguousarray(lengths[rows, place]))
        for place, name in enumerate(header)
    }


def numbers(cells: Sequence[str], empty: float = np.nan) -> NDArray[np.float64]:
    """Return the finite numbers in some cells, ``empty`` where a cell is; ExplainError if one holds none."""
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
    return ExplainError("a value in the outputs is no number", found=f"'{printable(cell)[:60]}'")
