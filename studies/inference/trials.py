"""The results of a study: a table with one row per trial (simulation)."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipistrelle.models.samples.estimates import StatisticsError
from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.protocol.base.lengths import seconds_of
from pipistrelle.studies.trials.axes import column_of

if TYPE_CHECKING:
    import pyarrow

#: name of the trials' file in a study's folder
TRIALS: Final = "trials.parquet"
#: suffix of the column that has an axis of times in seconds
SECONDS: Final = "_seconds"
#: the columns of replica numbers and of seeds
REPLICA, SEED = "replica", "seed"
#: metrics that are reported by default
USUAL: Final = ("mean_wait", "mean_bounded_slowdown", "utilisation", "allocated_100", "fragmented_100")
#: columns that describe how a trial was made
_ORIGIN: Final = (
    "point",
    REPLICA,
    SEED,
    "engine",
    "engine_why",
    "version",
    "reason",
    "message",
    "cause",
    "warm_up",
    "drain",
)

#: numbers of jobs that were running or queued at a trial's end
_NOT_ENDED: Final = ("running_at_end", "waiting_at_end")

Value = str | int | float | bool | None
#: values of the axes of one cell
CellKey = tuple[Value, ...]


@dataclass(frozen=True)
class Cell:
    """One combination of the study's axis values, with its replicas.

    Replicas are repetitions with other random numbers.

    Attributes:
        key: the values, in the order of the table's axes.
        rows: {replica: row of the table}.
    """

    key: CellKey
    rows: Mapping[int, int]


class TrialTable:
    """The results of a study: one row per trial (simulation).

    Args:
        columns: {name: values}, all of one length.
        axes: columns that distinguish cells; None: columns before ``replica`` that have more than one value.
        where: the table's name in errors.
        leads: {column: axis that sets it}. Each value of such an axis is a variant, a named set of options. The
            column itself is not an axis, because its values follow from the variant.
        selection: {column: values} if the table has only the trials with these values.

    Raises:
        StatisticsError: there are no trials or no replicas, or a cell has a replica twice.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        *,
        axes: Sequence[str] | None = None,
        where: str = "the trials",
        leads: Mapping[str, str] | None = None,
        selection: Mapping[str, Sequence[Value]] | None = None,
    ) -> None:
        self.columns = dict(columns)
        self.where = where
        self.leads = dict(leads or {})
        self.selection = dict(selection or {})
        if REPLICA not in self.columns:
            raise StatisticsError(f"the column '{REPLICA}' is missing", where=where, hint="Is it a study's table?")
        if not len(self.columns[REPLICA]):
            raise StatisticsError("there are no trials", where=where)
        names = list(self.columns)
        before = names[: names.index(REPLICA)]
        told = [name for name in before if name not in _ORIGIN and not self._in_seconds(name)] if axes is None else axes
        self.axes = [name for name in told if name not in self.leads and len(set(self.columns[name])) > 1]
        self.cells = self._cells()

    @classmethod
    def read(cls, place: str | Path) -> "TrialTable":
        """Read the trials of a study's folder or Parquet file, or raise StatisticsError."""
        path = Path(place)
        shown = printable(str(place))
        if path.is_dir():
            path = path / TRIALS
            if not path.is_file():
                raise StatisticsError(
                    f"the folder has no {TRIALS}",
                    where=shown,
                    hint="'pipistrelle study run STUDY --out DIR' writes it.",
                )
        elif not path.is_file():
            raise StatisticsError("there is no such folder", where=shown, expected=f"a study's folder, or a {TRIALS}")
        try:
            from pyarrow import ArrowException
            from pyarrow.parquet import read_table
        except ImportError:
            raise StatisticsError(
                "results of studies are Parquet files, which need pyarrow",
                hint="Install it: pip install 'pipistrelle[study]'.",
            ) from None
        try:
            table = read_table(path)
        except (ArrowException, OSError) as error:
            found = printable(str(error).splitlines()[0])[:100]
            raise StatisticsError("the file cannot be read as Parquet", where=shown, found=found) from None
        return cls.of(table, shown)

    @classmethod
    def of(cls, table: "pyarrow.Table", where: str = "the trials") -> "TrialTable":
        """Return the trials of a pyarrow table; its metadata may name the axes that vary."""
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        try:
            facts = json.loads((table.schema.metadata or {}).get(b"pipistrelle", b"{}"))
            told = facts.get("varied")
            axes = None if told is None else [name for name in told if name in columns]
            leads = _variants(facts.get("axes", ()))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise StatisticsError(
                "the file's metadata do not describe a study",
                where=where,
                expected="the trials.parquet of a study, or a table without metadata of pipistrelle",
            ) from None
        return cls(columns, axes=axes, where=where, leads=leads)

    def __len__(self) -> int:
        return len(self.columns[REPLICA])

    def _in_seconds(self, name: str) -> bool:
        return name.endswith(SECONDS) and name.removesuffix(SECONDS) in self.columns

    def _cells(self) -> list[Cell]:
        found: dict[CellKey, dict[int, int]] = {}
        parts = [self.columns[name] for name in self.axes]
        for row, replica in enumerate(self.columns[REPLICA]):
            rows = found.setdefault(tuple(part[row] for part in parts), {})
            if replica in rows:
                raise StatisticsError(
                    "a replica occurs twice",
                    where=f"{self.where}: row {row}",
                    expected="one trial per combination of the axes and replica",
                    found=f"replica {replica} in row {rows[replica]}, too",
                )
            rows[replica] = row
        return [Cell(key, rows) for key, rows in found.items()]

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a column, one per trial.

        If it is missing, raise StatisticsError, which suggests a similar name.
        """
        if name not in self.columns:
            known = [one for one in self.columns if one not in _ORIGIN]
            raise StatisticsError(
                f"the column '{printable(name)}' is missing", where=self.where, hint=did_you_mean(name, known)
            )
        return self.columns[name]

    def axis(self, name: str) -> str:
        """Return an axis's column name.

        Raise StatisticsError unless the axis has several values.
        """
        name = column_of(name)
        if name not in self.axes:
            self.column(name)
            if (lead := self.leads.get(name)) in self.axes:
                raise StatisticsError(
                    f"'{printable(name)}' follows from the variants of '{lead}'",
                    where=self.where,
                    expected=f"an axis: {', '.join(self.axes)}",
                )
            raise StatisticsError(
                f"'{printable(name)}' has only one value",
                where=self.where,
                expected=f"an axis: {', '.join(self.axes) or 'none varies'}",
            )
        return name

    def values(self, axis: str) -> list[Value]:
        """Return the values of an axis, in table order."""
        return list(dict.fromkeys(self.columns[axis]))

    def value(self, axis: str, text: str) -> Value:
        """Return the axis value that a text names, or raise StatisticsError."""
        known = self.values(axis)
        for one in known:
            if _says(text, one):
                return one
        texts = [label(one) for one in known]
        raise StatisticsError(
            f"{axis} has no value '{printable(text)}'", where=self.where, hint=did_you_mean(text, texts)
        )

    def number(self, axis: str, value: Value) -> float:
        """Return an axis value as a number (times in s), or raise StatisticsError."""
        seconds = self.columns.get(f"{axis}{SECONDS}")
        if seconds is not None:
            found = seconds[list(self.columns[axis]).index(value)]
            if found is not None:
                return float(found)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        try:
            return seconds_of(str(value))
        except ValueError:
            raise StatisticsError(
                f"{axis} has a value that is neither a number nor a length of time",
                where=self.where,
                found=f"'{label(value)}'",
            ) from None

    def only(self, conditions: Sequence[tuple[str, str]]) -> "TrialTable":
        """Return only the trials that meet conditions (axis, value).

        If one axis has several conditions, a trial must meet one of them.
        """
        wanted: dict[str, list[Value]] = {}
        for name, text in conditions:
            axis = column_of(name)
            self.column(axis)
            wanted.setdefault(axis, []).append(self.value(axis, text))
        if not wanted:
            return self
        rows = [
            row for row in range(len(self)) if all(self.columns[axis][row] in told for axis, told in wanted.items())
        ]
        if not rows:
            raise StatisticsError("no trial is left", where=self.where)
        columns = {name: [values[row] for row in rows] for name, values in self.columns.items()}
        selection = {**self.selection, **{axis: list(dict.fromkeys(told)) for axis, told in wanted.items()}}
        return TrialTable(columns, axes=self.axes, where=self.where, leads=self.leads, selection=selection)

    def sample(self, cell: Cell, metric: str) -> dict[int, float]:
        """Return {replica: metric} of a cell, without replicas that lack the metric."""
        values = self.column(metric)
        found = {}
        for replica in sorted(cell.rows):
            value = values[cell.rows[replica]]
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                raise StatisticsError(f"'{metric}' is not a number", where=self.where, found=f"'{label(value)}'")
            if value is not None and not math.isnan(value):
                found[replica] = float(value)
        return found

    def remarks(self) -> list[str]:
        """Return notes on what the means leave out: warm-up, drain and unfinished jobs."""
        found = []
        windows = [
            f"{name.replace('_', '-')} {printable(str(value))}"
            for name in ("warm_up", "drain")
            for value in dict.fromkeys(self.columns.get(name, ()))
            if value is not None
        ]
        if windows:
            found.append(f"left out of each trial: {', '.join(windows)}")
        most = [max((count or 0 for count in self.columns.get(name, ())), default=0) for name in _NOT_ENDED]
        if any(most):
            found.append(
                f"means leave out unfinished jobs: up to {most[0]:,} running and {most[1]:,} queued in a trial"
            )
        return found

    def metrics(self, names: Sequence[str]) -> list[str]:
        """Return ``names``, checked to be columns.

        Without names, return the default metrics that the table has.
        """
        for name in names:
            self.column(name)
        found = list(names) or [name for name in USUAL if name in self.columns]
        if not found:
            raise StatisticsError(
                "the table has none of the usual metrics", where=self.where, hint="Name one: --metric COLUMN."
            )
        return found


def _variants(axes: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Return {column of an option: axis of variants whose values set this option}.

    ``axes`` is a study's description of its axes.
    """
    found: dict[str, str] = {}
    for name, values in axes:
        if isinstance(values, list) and all(isinstance(one, dict) and "name" in one for one in values):
            options = dict.fromkeys(option for one in values for option in one if option != "name")
            found |= {column: column_of(name) for column in map(column_of, options) if column != column_of(name)}
    return found


def label(value: Value) -> str:
    """Return a value of an axis as text."""
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else printable(str(value))


def _says(text: str, value: Value) -> bool:
    if text in (str(value), label(value)):
        return True
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(text) == value
        except ValueError:
            return False
    try:
        return isinstance(value, str) and seconds_of(value) == seconds_of(text)
    except ValueError:
        return False
