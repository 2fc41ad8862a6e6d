"""A study's results as one table with a row per trial: Parquet, pandas or polars."""

import html
import json
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.fields import package_version
from pipistrelle.runs.execution.job_table import JobTableBook
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.outputs.reliability_book import ReliabilitySummary
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.measures.distributions import QUANTILES
from pipistrelle.studies.measures.metrics import metrics
from pipistrelle.studies.trials.axes import column_of
from pipistrelle.studies.trials.grid import Prepared
from pipistrelle.studies.trials.study import Label, Study
from pipistrelle.studies.trials.trial import Outcome

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

TRIALS: Final = "trials.parquet"
#: metrics that are whole numbers, except metrics of size classes
_COUNTS: Final = frozenset(
    one.encode_name
    for kind in (Summary, ReliabilitySummary)
    for one in msgspec.structs.fields(kind)
    if one.type is int or one.encode_name in ("dropped", "running_at_end", "waiting_at_end")
)
#: metrics of classes of jobs that are whole numbers
_COUNT: Final = re.compile(r"jobs_.+", re.DOTALL)
#: columns of the short table, if they exist
_SHOWN: Final = (
    *("mean_wait", "mean_bounded_slowdown", "utilisation", "node_failures"),
    *("allocated_100", "fragmented_100"),
)
_MOST_SHOWN: Final = 40


class Results:
    """The results of a study: one row per trial, ordered by point and replica.

    Attributes:
        table: a pyarrow table; docs/how-to/studies.md describes its columns.
        path: the table's file; None if it was not kept.
    """

    def __init__(self, table: "pyarrow.Table", path: Path | None = None) -> None:
        self.table = table
        self.path = path

    @classmethod
    def read(cls, folder: str | Path) -> "Results":
        """Read the results in a study's folder or Parquet file, or raise StudyError."""
        arrow = import_pyarrow()
        path = Path(folder)
        path = path / TRIALS if path.is_dir() else path
        try:
            return cls(arrow.read_table(path), path)
        except (OSError, ValueError) as error:
            raise StudyError("these are not results of a study", where=str(path), found=str(error)[:100]) from None

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the results as a pandas data frame; pandas must be installed."""
        return self.table.to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """Return the results as a polars data frame; polars must be installed."""
        import polars

        found = polars.from_arrow(self.table)
        assert isinstance(found, polars.DataFrame)
        return found

    @property
    def stalled(self) -> int:
        """Return the number of trials that stalled.

        Their jobs waited forever, so these trials have no metrics.
        """
        return sum(reason == "stalled" for reason in self.table.column("reason").to_pylist())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and rows of a short table of the results.

        It has the means of some metrics per point. A mean that leaves out trials without the metric ends with an
        asterisk.
        """
        table = self.table
        told = json.loads((table.schema.metadata or {}).get(b"pipistrelle", b"{}"))
        varied = [name for name in told.get("varied", []) if name in table.column_names]
        figures = [name for name in _SHOWN if name in table.column_names]
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in table.select([*varied, *figures]).to_pylist():
            groups.setdefault(tuple(row[name] for name in varied), []).append(row)
        rows = []
        for key, members in groups.items():
            cells = [printable(str(value)) for value in key] + [str(len(members))]
            for name in figures:
                known = [row[name] for row in members if row[name] is not None]
                mark = "*" if len(known) < len(members) else ""  # the mean is over the other trials only
                cells.append(f"{fsum(known) / len(known):,.6g}{mark}" if known else "-")
            rows.append(cells)
        return [*varied, "trials", *figures], rows

    def _repr_html_(self) -> str:
        """Return a short table of the results as HTML, for notebooks."""
        headings, rows = self._shown()
        head = "".join(f"<th>{html.escape(one)}</th>" for one in headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[:_MOST_SHOWN]
        )
        more = f"<p>and {len(rows) - _MOST_SHOWN:,} more points</p>" if len(rows) > _MOST_SHOWN else ""
        return f"<table><caption>{len(self):,} trials, means</caption><tr>{head}</tr>{body}</table>{more}"

    def __repr__(self) -> str:
        """Return a short table of the results as text."""
        headings, rows = self._shown()
        lines = [headings, *rows[:_MOST_SHOWN]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        more = [f"and {len(rows) - _MOST_SHOWN:,} more points"] if len(rows) > _MOST_SHOWN else []
        return "\n".join([f"{len(self):,} trials, means", *texts, *more])


def import_pyarrow() -> Any:
    """Return pyarrow.parquet; raise StudyError if pyarrow is not installed."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise StudyError(
            "results of studies are Parquet files, which need pyarrow",
            hint="Install it: pip install 'pipistrelle[study]'.",
        ) from None
    return parquet


def table_of(
    study: Study, grid: Sequence[Prepared], outcomes: Mapping[tuple[int, int], Outcome], identity: Mapping[str, Any]
) -> "pyarrow.Table":
    """Return a study's trials as a table, ordered by point and replica.

    Args:
        grid: the study's points.
        outcomes: {(point, replica): outcome}.
        identity: what determines the study's results; it is stored in the file's metadata.
    """
    import pyarrow

    keys = sorted(outcomes)
    rows = [outcomes[key] for key in keys]
    points = [grid[point] for point, _ in keys]
    labels = [one.point.labels for one in grid]
    columns: dict[str, Any] = {"point": pyarrow.array([point for point, _ in keys], pyarrow.int64())}
    for name in dict.fromkeys(name for one in labels for name in one):
        kind = _kind([one.get(name) for one in labels])
        values = [one.point.labels.get(name) for one in points]
        columns[name] = pyarrow.array(
            values if kind != "string" else [None if one is None else str(one) for one in values],
            pyarrow.type_for_alias(kind),
        )
    version = package_version()
    said: dict[str, tuple[str, list[Any]]] = {
        "replica": ("int64", [replica for _, replica in keys]),
        "seed": ("int64", [study.seed_of(one.point, key[1]) for one, key in zip(points, keys, strict=True)]),
        "engine": ("string", [one.engine for one in points]),
        "engine_why": ("string", [one.why for one in points]),
        "version": ("string", [version] * len(keys)),
        "reason": ("string", [row.reason for row in rows]),
        "message": ("string", [row.message for row in rows]),
        "cause": ("string", [row.cause for row in rows]),
        "warm_up": ("string", [study.metrics.warm_up] * len(keys)),
        "drain": ("string", [study.metrics.drain] * len(keys)),
    }
    for name, (kind, values) in said.items():
        columns[name] = pyarrow.array(values, pyarrow.type_for_alias(kind))
    names = dict.fromkeys(name for row in rows for name in row.figures)
    for name in names or metrics(JobTableBook().table()):  # if every trial stalled, the usual columns are empty
        kind = "int64" if name in _COUNTS or _COUNT.fullmatch(name) else "float64"
        columns[name] = pyarrow.array([row.figures.get(name) for row in rows], pyarrow.type_for_alias(kind))
    for name in dict.fromkeys(name for row in rows for name in row.quantiles):
        found = [row.quantiles.get(name) for row in rows]
        columns[f"{name}{QUANTILES}"] = pyarrow.array(found, pyarrow.list_(pyarrow.float64()))
    varied = [column_of(name) for name in study.varied]
    metadata = {"pipistrelle": json.dumps({**identity, "varied": varied}, sort_keys=True, ensure_ascii=False)}
    return pyarrow.table(columns, metadata=metadata)


def parquet_of(table: "pyarrow.Table") -> bytes:
    """Return a table as a Parquet file; equal tables give equal bytes."""
    sink = BytesIO()
    import_pyarrow().write_table(table, sink, compression="snappy")
    return sink.getvalue()


def _kind(values: list[Label]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int}:
        return "int64" if kinds else "string"
    if kinds <= {int, float}:
        return "float64"
    return "bool" if kinds == {bool} else "string"
