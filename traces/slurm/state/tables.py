"""Split the tables that Slurm's commands print into rows of named cells.

Three forms: cells between bars (``-P``, ``-o "%i|%u"``), columns of fixed width (``-O``, the commands' defaults), and
cells between blanks.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError

_WORD: Final = re.compile(r"\S+")
_DASHES: Final = re.compile(r"[\s-]*-[\s-]*")
#: columns whose cells may contain blanks if they are the last one
_FREE: Final = frozenset({"NODELIST(REASON)", "REASON", "NAME", "COMMENT", "WORK_DIR", "COMMAND"})
#: the longest line that is read
_LONGEST: Final = 1_000_000


class LiveRow(NamedTuple):
    """A row of a table: file and line, and {name of a column: cell}."""

    place: str
    cells: dict[str, str]


class LiveTable:
    """A parser of rows, by the header of their table.

    Args:
        header: the line with the names of the columns.
    """

    def __init__(self, header: str) -> None:
        self.bars = "|" in header
        if self.bars:
            self.names = _distinct([name.strip() for name in header.rstrip("|").split("|")])
            return
        found = list(_WORD.finditer(header))
        self.names = _distinct([one[0] for one in found])
        self._spans: list[tuple[int, int]] = []
        self._starts = [one.start() for one in found]
        self._ends = [one.end() for one in found]

    def underlined(self, line: str) -> bool:
        """Return whether a line underlines the column names with dashes.

        sshare's table has such a line. If so, the columns' widths are taken from the line.
        """
        if self.bars or _DASHES.fullmatch(line) is None:
            return False
        spans = [one.span() for one in _WORD.finditer(line)]
        if len(spans) == len(self.names):
            self._spans = [*spans[:-1], (spans[-1][0], _LONGEST)]
        return True

    def row(self, line: str, place: str) -> LiveRow:
        """Return a row; TraceError if it does not fit the header."""
        if len(line) > _LONGEST:
            raise TraceError("the line is too long", where=place, expected=f"at most {_LONGEST:,} characters")
        return LiveRow(place, dict(zip(self.names, self._cells(line, place), strict=True)))

    def _cells(self, line: str, place: str) -> list[str]:
        width = len(self.names)
        if self.bars:
            cells = line.split("|")
            if len(cells) == width + 1 and not cells[-1]:
                cells.pop()
            if len(cells) == width:
                return cells
        elif self._spans:
            return [line[begin:end].strip() for begin, end in self._spans]
        else:
            cells = line.split()
            if len(cells) == width:
                return cells
            if len(cells) > width and self.names[-1] in _FREE:
                cells = line.split(None, width - 1)
                if self._fits(self._starts, line) or self._fits(self._ends[:-1], line):
                    return [cell.strip() for cell in cells]
            for bounds in (self._starts[1:], self._ends[:-1]):
                if self._fits(bounds, line):
                    edges = [0, *bounds, len(line)]
                    return [line[begin:end].strip() for begin, end in pairwise(edges)]
        raise TraceError(
            "the row does not fit the columns of the header",
            where=place,
            expected=f"{width} columns",
            found=quoted(line),
            hint="Print the columns with bars between them, as squeue -o '%i|%u' does.",
        )

    @staticmethod
    def _fits(bounds: list[int], line: str) -> bool:
        """Return whether columns may begin at these positions.

        The line must have a blank at each position or just before it.
        """
        return all(at >= len(line) or at == 0 or line[at - 1].isspace() or line[at].isspace() for at in bounds)


def _distinct(names: list[str]) -> list[str]:
    """Return the names with repeated names numbered.

    The second "PRIORITY" becomes "PRIORITY 2".
    """
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found


def rows_of(lines: Iterator[tuple[str, str]], header: str) -> Iterator[LiveRow | TraceError]:
    """Yield the rows below a header, or the error of each row that cannot be read.

    Repeated headers are skipped.
    """
    table = LiveTable(header)
    for place, line in lines:
        text = line.rstrip("\r\n")
        if table.underlined(text) or not text.strip() or text.strip() == header.strip():
            continue
        try:
            yield table.row(text, place)
        except TraceError as error:
            yield error
