"""Summarise a study: means with intervals for each combination of options, and comparisons of two values."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from pipistrelle.models.samples.estimates import (
    LEVEL,
    Interval,
    Method,
    StatisticsError,
    mean_interval,
    quantile_interval,
)
from pipistrelle.models.samples.paired import Paired, paired
from pipistrelle.studies.inference.trials import SEED, CellKey, TrialTable, Value, label


class CellRow(msgspec.Struct, frozen=True, kw_only=True):
    """A metric for one combination of the study's axis values (a cell).

    Attributes:
        cell: {axis: value}.
        metric: the column.
        estimate: mean, or quantile, over the replicas.
        missing: number of replicas without a value.
    """

    cell: dict[str, Value]
    metric: str
    estimate: Interval
    missing: int

    def plain(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {**self.cell, "metric": self.metric, **self.estimate.plain(), "missing": self.missing}


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of two cells that differ in one axis.

    Attributes:
        cell: {axis: value} of the other axes.
        metric: the column.
        pair: statistics of the pairs.
        unpaired: number of replicas without a value in both cells.
    """

    cell: dict[str, Value]
    metric: str
    pair: Paired
    unpaired: int

    def plain(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {**self.cell, "metric": self.metric, **self.pair.plain(), "unpaired": self.unpaired}


def summary(
    trials: TrialTable,
    metrics: Sequence[str] = (),
    *,
    level: float = LEVEL,
    method: Method = "t",
    quantile: float | None = None,
) -> list[CellRow]:
    """Return each metric for each cell (combination of the study's axis values), ordered by metric.

    Args:
        metrics: columns; empty: the usual ones.
        quantile: this quantile of the replicas, with an interval by order statistics; None: the mean.

    Raises:
        StatisticsError: a column is missing.
    """
    rows = []
    for metric in trials.metrics(metrics):
        for cell in trials.cells:
            sample = list(trials.sample(cell, metric).values())
            if quantile is None:
                estimate = mean_interval(sample, level=level, method=method)
            else:
                estimate = quantile_interval(sample, quantile, level=level)
            told = dict(zip(trials.axes, cell.key, strict=True))
            rows.append(CellRow(cell=told, metric=metric, estimate=estimate, missing=len(cell.rows) - len(sample)))
    return rows


def comparison(
    trials: TrialTable,
    axis: str,
    first: Value,
    second: Value,
    metrics: Sequence[str] = (),
    *,
    level: float = LEVEL,
    method: Method = "t",
) -> list[PairRow]:
    """Compare two values of an axis: return one row for each metric and each combination of the other axes' values.

    Raises:
        StatisticsError: a column is missing, no cell has both values, or paired replicas have different seeds.
    """
    place = trials.axes.index(axis)
    others = [name for name in trials.axes if name != axis]
    by_rest: dict[CellKey, dict[Value, Any]] = {}
    for cell in trials.cells:
        rest = cell.key[:place] + cell.key[place + 1 :]
        by_rest.setdefault(rest, {})[cell.key[place]] = cell
    pairs = {
        rest: (cells[first], cells[second]) for rest, cells in by_rest.items() if first in cells and second in cells
    }
    if not pairs:
        raise StatisticsError(f"no two cells differ only in {axis}", where=trials.where)
    seeds = trials.columns.get(SEED)
    rows = []
    for metric in trials.metrics(metrics):
        for rest, (one, other) in pairs.items():
            samples = trials.sample(one, metric), trials.sample(other, metric)
            both = [replica for replica in samples[0] if replica in samples[1]]
            if seeds is not None and any(seeds[one.rows[each]] != seeds[other.rows[each]] for each in both):
                raise StatisticsError(
                    "replicas with the same number have different seeds, so they cannot be paired",
                    where=f"{trials.where}: {axis}",
                )
            pair = paired(
                [samples[0][each] for each in both], [samples[1][each] for each in both], level=level, method=method
            )
            alone = len(one.rows.keys() | other.rows.keys()) - len(both)
            cell_values = dict(zip(others, rest, strict=True))
            rows.append(PairRow(cell=cell_values, metric=metric, pair=pair, unpaired=alone))
    return rows


class SizeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of a size class of jobs under two values of one axis.

    Attributes:
        name: the class: ``1``, ``2_15``, ``16_up``; ``all`` for all jobs.
        pair: statistics of the pairs; the ratio of means less 1 is the normalised difference.
        share: the class's share of all jobs; None: unknown.
    """

    name: str
    pair: Paired
    share: float | None

    def plain(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {"size": self.name, **self.pair.plain(), "share": self.share}


def by_size(
    trials: TrialTable, axis: str, first: Value, second: Value, metric: str = "mean_wait", *, level: float = LEVEL
) -> list[SizeRow]:
    """Compare a metric under two values of an axis, for each size class of jobs and for all jobs.

    Raises:
        StatisticsError: the trials have no columns of classes, such as ``mean_wait_1``, or another axis varies.
    """
    if rest := [name for name in trials.axes if name != axis]:
        raise more_axes(trials, rest)
    pattern = re.compile(rf"{re.escape(metric)}_(\d+)(?:_\d+|_up)?")
    found = sorted((int(match[1]), name) for name in trials.columns if (match := pattern.fullmatch(name)))
    if not found:
        raise StatisticsError(
            f"there are no columns of {metric} by size, such as {metric}_1",
            where=trials.where,
            hint="Add sizes to [metrics] of the study: sizes = [1, 2, 16, 128].",
        )
    names = {column.removeprefix(f"{metric}_"): column for _, column in found} | {"all": metric}
    rows = comparison(trials, axis, first, second, list(names.values()), level=level)
    counts = {name: sum(count or 0 for count in trials.columns.get(f"jobs_{name}", ())) for name in names}
    total = sum(counts.values())  # no column has all
    shares = {name: count / total if total and name != "all" else None for name, count in counts.items()}
    return [SizeRow(name=name, pair=row.pair, share=shares[name]) for name, row in zip(names, rows, strict=True)]


def more_axes(trials: TrialTable, rest: Sequence[str]) -> StatisticsError:
    """Return the error for a study in which more axes vary than this comparison allows."""
    return StatisticsError(
        f"other axes have more than one value: {', '.join(rest)}",
        where=trials.where,
        hint=f"Choose one: --where {rest[0]}={label(trials.values(rest[0])[0])}",
    )
