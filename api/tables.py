"""Tables of results, stored with Apache Arrow.

They can be converted to pandas and polars.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, printable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_MOST_SHOWN: Final = 10
#: the extra that installs all packages for notebooks
EXTRA: Final = "pipistrelle[notebook]"


class MissingPackage(PipistrelleError):
    """An optional package is not installed."""


class TableError(PipistrelleError):
    """A table has no such column."""


def imported(module: str, what: str) -> Any:
    """Import and return an optional package.

    Args:
        module: name of the module.
        what: what needs the package, for the error message, such as ``a plot``.

    Raises:
        MissingPackage: the package is not installed; the message names the extra that installs it.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingPackage(
            f"{what} needs {package}, which is not installed", hint=f"Install it: pip install '{EXTRA}'."
        ) from None


class Table:
    """A table of results with typed columns.

    Polars, DuckDB and other packages that read Arrow accept it directly. ``table["wait"]`` is a column as a NumPy
    array, in which a missing number is NaN and a missing text is None.

    Attributes:
        arrow: the table as a ``pyarrow.Table``.
    """

    def __init__(self, arrow: "pyarrow.Table") -> None:
        self.arrow = arrow

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> "Table":
        """Make a table from rows, given as dictionaries; missing values become null.

        Raises:
            MissingPackage: pyarrow is not installed.
        """
        arrow = imported("pyarrow", "a table")
        names = dict.fromkeys(name for row in rows for name in row)
        return cls(arrow.table({name: [row.get(name) for row in rows] for name in names}))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.arrow.column_names)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.columns:
            raise TableError(f"there is no column '{printable(name)}'", hint=did_you_mean(name, self.columns))
        found: NDArray[Any] = self.arrow.column(name).to_numpy()
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dictionary."""
        for batch in self.arrow.to_batches():
            yield from batch.to_pylist()

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table as a pandas data frame.

        Raises:
            MissingPackage: pandas is not installed.
        """
        imported("pandas", "a pandas data frame")
        return self.arrow.to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """Return the table as a polars data frame.

        Raises:
            MissingPackage: polars is not installed.
        """
        return imported("polars", "a polars data frame").from_arrow(self.arrow)  # type: ignore[no-any-return]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def _texts(self) -> list[list[str]]:
        return [[cell_text(value) for value in row.values()] for row in self.arrow.slice(0, _MOST_SHOWN).to_pylist()]

    def _more(self) -> str:
        left = len(self) - _MOST_SHOWN
        return f"... {left:,} more rows" if left > 0 else ""

    def __repr__(self) -> str:
        return "\n".join([*text_rows(self.columns, self._texts()), *filter(None, [self._more()])])

    def _repr_html_(self) -> str:
        return html_table(self.columns, self._texts(), below=self._more())


def cell_text(value: Any) -> str:
    """Return a value of a table as text; empty for None and NaN."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:,.6g}"
    return printable(str(value))


def text_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines of text, each column right-aligned."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", below: str = "") -> str:
    """Return a table as HTML for notebooks; all texts are escaped.

    ``below`` is the text after the table.
    """
    head = "".join(f"<th>{html.escape(one)}</th>" for one in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    more = f"<p>{html.escape(below)}</p>" if below else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
